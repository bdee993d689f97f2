//! Choices of routers that weigh workers by other arithmetic than Dynamo's cost formula: whose it is, and the scores that they gave. Knows
//! nothing of how such routers write them.

use serde::{Deserialize, Serialize, Serializer};

use crate::id::WorkerIx;

/// The router whose arithmetic a decision shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Deserialize)]
pub enum Arithmetic {
    /// Dynamo's router: the lowest cost in blocks wins.
    #[default]
    Dynamo,
    /// An endpoint picker (EPP) of the Gateway API Inference Extension, as llm-d's: scorers give each endpoint 0 … 1, their weighted sum
    /// is its score, and the highest wins.
    EndpointPicker,
    /// SGLang's model gateway: the longest match in its own tree of prompts, unless loads are too far apart.
    SglangGateway,
}

impl Arithmetic {
    /// Whose it is, in a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Dynamo => "Dynamo",
            Self::EndpointPicker => "endpoint picker (EPP)",
            Self::SglangGateway => "SGLang model gateway",
        }
    }

    /// The same, to stand in a sentence.
    pub const fn to_text(self) -> &'static str {
        match self {
            Self::Dynamo => "Dynamo's router",
            Self::EndpointPicker => {
                "an endpoint picker (EPP) of llm-d or the Gateway API Inference Extension"
            }
            Self::SglangGateway => "SGLang's model gateway",
        }
    }
}

/// What a router gave the workers that it chose among.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Scores {
    /// The scheduling profile that ran, as its configuration names it (`prefill`, `decode` …). `None`: not reported.
    pub profile: Option<String>,
    /// What chose among the scored: the picker's name, or the branch of the policy. `None`: not reported.
    pub picker: Option<String>,
    /// Names of the scorers, in the order in which they ran; at most [`MAX_SCORERS`].
    pub scorers: Vec<String>,
    /// The workers, by falling score; empty: they are no longer retained, or only the chosen one is known.
    pub candidates: Vec<ScoredCandidate>,
    /// Workers that were scored and are not among them, because there was no room.
    pub omitted: u32,
}

/// Most scorers of a choice that are told apart.
pub const MAX_SCORERS: usize = 16;

/// A worker as another router scored it for one request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ScoredCandidate {
    /// Who.
    pub worker: WorkerIx,
    /// Its score, the highest of which wins. `None`: not reported.
    pub score: Option<f64>,
    /// What each scorer gave it, before its weight, in the order of [`Scores::scorers`]. `None`: nothing, or not reported.
    pub by_scorer: Vec<Option<f64>>,
    /// Requests that ran there, as the router knew it.
    pub running: Option<u32>,
    /// Requests that waited there, as the router knew it.
    pub waiting: Option<u32>,
    /// Share of its KV cache in use, 0 … 1, as the router knew it.
    pub kv_usage: Option<f64>,
}

impl Scores {
    /// The chosen worker among the candidates.
    pub fn of(&self, worker: WorkerIx) -> Option<&ScoredCandidate> {
        self.candidates.iter().find(|candidate| candidate.worker == worker)
    }

    /// Best score of the others less that of `chosen`, with who has it. `None`: either is not reported, or there was no other.
    pub fn next_best(&self, chosen: WorkerIx) -> Option<(WorkerIx, f64)> {
        let own = self.of(chosen)?.score?;
        let others = self.candidates.iter().filter(|of| of.worker != chosen);
        let scored = others.filter_map(|of| Some((of.worker, of.score? - own)));
        scored.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
    }
}

str_names! {
    /// Name in the API.
    Arithmetic { Dynamo => "dynamo", EndpointPicker => "endpoint_picker", SglangGateway => "sglang_gateway" }
}
