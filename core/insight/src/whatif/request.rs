//! A what-if question: a prompt, the router's settings, and a cluster that differs from the live one. Plain values.

use thiserror::Error;

use super::prompt::Blocks;
use radixscope_model::id::{BlockHash, DecisionId, PoolIx, WorkerIx};
use radixscope_router::numbers::RefusedNumber;
use radixscope_router::{Load, RouterSettings};

/// Most workers that a question adds.
pub const MAX_ADDED: u32 = 64;
/// Most blocks of a prompt: far beyond any context, small enough that no question takes long.
pub const MAX_PROMPT_BLOCKS: u64 = 1 << 20;

/// A question.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WhatIfRequest {
    /// What is routed.
    pub prompt: Prompt,
    /// The pool whose workers are weighed. `None`: that of the prompt or of the decision compared with, else of the latest
    /// decision.
    pub pool: Option<PoolIx>,
    /// A decision to compare the response with.
    pub actual: Option<DecisionId>,
    /// What the router runs with.
    pub options: RouterSettings,
    /// Tokens per block. `None`: as the prompt's source or the cluster reports.
    pub block_size_tokens: Option<u32>,
    /// The router whose estimate of loads counts. `None`: the one that reported last.
    pub router: Option<u64>,
    /// How the cluster differs.
    pub changes: WorkerChanges,
}

/// What is routed.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Prompt {
    /// The arithmetic as everybody explains it, with its own three workers (see [`radixscope_router::example`]).
    #[default]
    Example,
    /// A recorded decision as its router saw it: the candidates' recorded terms, nothing of the live state.
    Recorded(DecisionId),
    /// A prompt of known blocks, against the live state.
    Blocks(Blocks),
    /// A prompt that goes on where a held one ends.
    After {
        /// A worker that holds the block.
        worker: WorkerIx,
        /// The block, as that worker calls it.
        block_hash: BlockHash,
        /// Tokens after it, held by no worker.
        new_tokens: u64,
    },
    /// A prompt of which nothing is cached anywhere.
    Length {
        /// Its length.
        isl_tokens: u64,
    },
}

/// A candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CandidateRef {
    /// A worker of the cluster.
    Worker(WorkerIx),
    /// A worker that the question adds, from 0.
    Added(u32),
    /// A worker of the worked example, from 0.
    Example(u32),
}

/// How the cluster differs from the live one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkerChanges {
    /// Workers that cannot be chosen.
    pub left_out: Vec<CandidateRef>,
    /// Workers added, idle and with an empty cache. At most [`MAX_ADDED`].
    pub added: u32,
    /// Workers busier or less busy than they are. Of a worker named twice the first counts.
    pub busy: Vec<(CandidateRef, Busy)>,
}

/// Another load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Busy {
    /// Tokens of requests whose first token has not come.
    pub prefill_tokens: Adjustment,
    /// Blocks in use, without those of the prompt that is routed.
    pub decode_blocks: Adjustment,
    /// Requests not finished.
    pub active_requests: Adjustment,
}

/// A number other than it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Adjustment {
    /// As it is.
    #[default]
    Keep,
    /// This instead.
    Set(u64),
    /// So much more, or less, but never below 0.
    Add(i64),
}

impl Adjustment {
    /// Whether it leaves every number as it is.
    pub fn is_nothing(self) -> bool {
        matches!(self, Adjustment::Keep | Adjustment::Add(0))
    }

    fn apply(self, number: u64) -> u64 {
        match self {
            Adjustment::Keep => number,
            Adjustment::Set(to) => to,
            Adjustment::Add(more) => number.saturating_add_signed(more),
        }
    }
}

impl Busy {
    /// Whether it leaves every number as it is.
    pub fn is_nothing(self) -> bool {
        self.prefill_tokens.is_nothing()
            && self.decode_blocks.is_nothing()
            && self.active_requests.is_nothing()
    }

    /// `new_blocks` are those of the prompt, which a load counts in; setting the blocks in use does not take them away.
    pub(super) fn apply(self, load: &mut Load, new_blocks: u64) {
        load.active_prefill_tokens = self.prefill_tokens.apply(load.active_prefill_tokens);
        load.decode_blocks = match self.decode_blocks {
            Adjustment::Set(to) => to.saturating_add(new_blocks),
            other => other.apply(load.decode_blocks),
        };
        load.active_requests = self.active_requests.apply(load.active_requests);
    }
}

/// Why a question has no response.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Refused {
    /// An option that Dynamo would refuse.
    #[error(transparent)]
    Option(#[from] RefusedNumber),
    /// The decision is not retained.
    #[error("decision {0} is not retained: there was none, or it is older than the latest 10,000")]
    NoDecision(DecisionId),
    /// Of the decision only the chosen worker is known.
    #[error(
        "of decision {0} only the chosen worker is known; its candidates come with the frontend's log (--logs) or with \
         --router-replica-sync"
    )]
    NoCandidates(DecisionId),
    /// Another router than Dynamo's decided.
    #[error("decision {0} is of {1}: what-if knows the arithmetic of Dynamo's router alone")]
    OtherRouter(DecisionId, &'static str),
    /// The block size is not reported.
    #[error("tokens per block are unknown: no model card was read and no decision reports them; give them")]
    NoBlockSize,
    /// A block size that is none.
    #[error("{0} tokens per block: expected 1 to 65,536")]
    BadBlockSize(u32),
    /// Hashes cannot be cut anew.
    #[error(
        "this prompt is known as hashes of blocks of {known} tokens; cutting it into blocks of {requested} needs its token ids"
    )]
    Rechunk {
        /// The size that the hashes belong to.
        known: u32,
        /// The size requested.
        requested: u32,
    },
    /// More blocks than a prompt may have.
    #[error("the prompt has {0} blocks; at most 1,048,576 are taken")]
    TooLong(u64),
    /// A length that its blocks contradict.
    #[error("a prompt of {isl_tokens} tokens has no {blocks} full blocks of {block_size_tokens}")]
    BadLength {
        /// The length.
        isl_tokens: u64,
        /// Full blocks given.
        blocks: u64,
        /// Tokens of each.
        block_size_tokens: u32,
    },
    /// No such block.
    #[error(
        "block {block_hash} is not cached on worker {worker} with a known path; it may have been evicted"
    )]
    NoBlock {
        /// The worker, by its label.
        worker: String,
        /// The block.
        block_hash: BlockHash,
    },
    /// Too many workers added.
    #[error("{0} workers added: at most 64 are taken")]
    TooManyAdded(u32),
    /// No candidate is left.
    #[error("there is no worker to choose from: none is known, or all are excluded")]
    NoWorker,
}

impl Refused {
    /// The part of the question that is at fault, by its name in the API.
    pub const fn field(&self) -> &'static str {
        match self {
            Refused::Option(_) => "options",
            Refused::NoDecision(_) | Refused::NoCandidates(_) | Refused::OtherRouter(..) => "decision",
            Refused::NoBlockSize | Refused::BadBlockSize(_) | Refused::Rechunk { .. } => "block_size_tokens",
            Refused::TooLong(_) => "prompt",
            Refused::BadLength { .. } => "isl_tokens",
            Refused::NoBlock { .. } => "after",
            Refused::TooManyAdded(_) | Refused::NoWorker => "workers",
        }
    }
}

impl WhatIfRequest {
    pub(super) fn check(&self) -> Result<(), Refused> {
        self.options.validate()?;
        if let Some(size) = self.block_size_tokens.filter(|size| !(1..=1 << 16).contains(size)) {
            return Err(Refused::BadBlockSize(size));
        }
        if self.changes.added > MAX_ADDED {
            return Err(Refused::TooManyAdded(self.changes.added));
        }
        Ok(())
    }
}
