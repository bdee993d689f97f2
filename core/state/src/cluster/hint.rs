//! Which setting would show what was never received, per version of Dynamo. One wording for the API and the page. Pure.

use std::fmt;

use serde::Serialize;

use super::{Cluster, TierCounts};

/// What is missing, and what would show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Hint {
    /// What is missing and why, in sentences.
    pub text: &'static str,
    /// What to set, each on its own.
    pub settings: &'static [HintOption],
}

impl fmt::Display for Hint {
    /// In one paragraph.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        for HintOption { versions, set, on, shows } in self.settings {
            write!(f, " Dynamo {versions}: ")?;
            for name in *set {
                write!(f, "{name} ")?;
            }
            write!(f, "on {on}, shows {shows}.")?;
        }
        Ok(())
    }
}

/// Something to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct HintOption {
    /// Versions of Dynamo that know it.
    pub versions: &'static str,
    /// Options and variables, all of them together.
    pub set: &'static [&'static str],
    /// Where.
    pub on: &'static str,
    /// What shows then.
    pub shows: &'static str,
}

const EVENTS: HintOption = HintOption {
    versions: "0.8, 0.9",
    set: &["--router-mode kv"],
    on: "every frontend, without --no-kv-events",
    shows: "the worker of every decision and its overlap",
};
const REPLICA_SYNC: HintOption = HintOption {
    versions: "1.0 and later",
    set: &["--router-replica-sync"],
    on: "every frontend; where this server reads NATS without --discovery, also DYN_EVENT_PLANE=nats there and on the workers",
    shows: "each request with its worker and prompt, from which every candidate's cost is reconstructed",
};
const TRACE: HintOption = HintOption {
    versions: "1.4 and later",
    set: &["DYN_REQUEST_TRACE=1", "DYN_REQUEST_TRACE_SINKS=nats"],
    on: "every frontend; without the second its traces go to files, which --request-trace reads",
    shows: "worker, prompt, time to first token and tokens of each request, when it ends",
};
const INFO_LOG: HintOption = HintOption {
    versions: "0.8, 0.9",
    set: &["--logs"],
    on: "this server, with the frontend's log at INFO",
    shows: "every candidate's cost, as the router wrote it",
};
const DEBUG_LOG: HintOption = HintOption {
    versions: "1.0 to 1.5",
    set: &["DYN_LOG=info,dynamo_llm::kv_router=debug,dynamo_kv_router=debug", "--logs"],
    on: "the frontend, and its log given to this server",
    shows: "every candidate's cost, as the router wrote it",
};
const INPUT_LOG: HintOption = HintOption {
    versions: "1.6 and later",
    set: &["DYN_LOG=info,dynamo_llm::kv_router=debug,dynamo_kv_router=debug", "--logs"],
    on: "the frontend, and its log given to this server",
    shows: "the prompt of each request ([ROUTING_INPUT]), from which every candidate's cost is reconstructed",
};

/// Dynamo from 1.0 on, recognised by a message that only it sends.
const FROM_1_0: Hint = Hint {
    text: "These workers are of Dynamo 1.0 or later, whose routers do not publish their decisions by themselves. \
           They do when asked:",
    settings: &[REPLICA_SYNC, TRACE],
};

/// Any version.
const ANY: Hint = Hint {
    text: "No source reports the router's decisions. Dynamo 0.8 and 0.9 publish every decision of a KV router by \
           themselves, later versions when asked:",
    settings: &[EVENTS, REPLICA_SYNC, TRACE],
};

/// Engines that are listened to directly.
const ENGINES: Hint = Hint {
    text: "No router: engines report which blocks they cache, and neither requests nor decisions. Which engine gets a request is decided \
           by whatever stands in front of them.",
    settings: &[],
};

/// The option that reports all candidates of a decision, if only the chosen one is known.
const CANDIDATES: Hint = Hint {
    text: "Only the chosen worker is known: cached blocks and costs of the others are not reported. Any of these reports \
           them:",
    settings: &[INFO_LOG, DEBUG_LOG, INPUT_LOG, REPLICA_SYNC, TRACE],
};

impl Cluster {
    /// Which setting would show routing decisions. `None` where decisions were received, or no worker yet.
    pub fn decisions_hint(&self) -> Option<Hint> {
        if self.workers().is_empty() || self.decisions().totals().count > 0 {
            return None;
        }
        if self.has_no_router() {
            return Some(ENGINES);
        }
        // Workers themselves report the end of a prefill from 1.5 on, other storage tiers from 1.1 on.
        let is_new =
            self.workers().iter().any(|w| w.sequences.prefilled > 0 || w.other_tier != TierCounts::default());
        Some(if is_new { FROM_1_0 } else { ANY })
    }
}

/// Which setting would show every candidate of a decision.
pub const fn candidates_hint() -> Hint {
    CANDIDATES
}
