//! Steps, causes and what is left out, in words. Must not know units of other figures.

use super::{LossCause, NoReuse, Step};

impl Step {
    /// On screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Seen => "ever cached",
            Self::Held => "cached on a worker",
            Self::Eligible => "on a worker that could be chosen",
            Self::Chosen => "on the chosen worker",
            Self::Reused => "reused by the engine",
        }
    }
}

impl LossCause {
    /// In a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::BelowBlock => "below one block",
            Self::FirstSeen => "first time seen",
            Self::NotKnown => "not known",
            Self::Evicted => "evicted",
            Self::Cleared => "cache cleared",
            Self::WorkerLeft => "worker left",
            Self::EventLost => "gone, event lost",
            Self::Scattered => "on several workers in pieces",
            Self::NotEligible => "worker could not be chosen",
            Self::RouterIndex => "not in the router's index",
            Self::Load => "worker was busier",
            Self::Affinity => "bound to another worker",
            Self::Policy => "policy chose another worker",
            Self::Chance => "chosen at random",
            Self::Skipped => "not chosen, cost unknown",
            Self::EngineHadLess => "engine reused less",
        }
    }

    /// In a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::BelowBlock => {
                "The end of a prompt that fills no block is never cached, and an engine computes at least the last token."
            }
            Self::FirstSeen => {
                "No worker of the pool stored these blocks since departures of blocks are remembered: new text."
            }
            Self::NotKnown => "The tree lacked blocks, so that these may have been cached.",
            Self::Evicted => {
                "The last worker that held the next block had evicted it: the cache is too small for what is asked again."
            }
            Self::Cleared => "The last worker that held the next block had cleared its cache.",
            Self::WorkerLeft => "The last worker that held the next block has left.",
            Self::EventLost => {
                "The last worker that held the next block no longer does, and its event was not received: a list of its blocks showed it."
            }
            Self::Scattered => {
                "Several workers held these blocks, but none held all of them from the beginning of the prompt."
            }
            Self::NotEligible => {
                "A worker held them that the router could not choose: it was unreachable, leaving or of another router."
            }
            Self::RouterIndex => {
                "A worker held them by its KV events, but the router's own index did not have them: it was behind, cold, or lost events."
            }
            Self::Load => "A worker held them, but cost more than the chosen one because of its load.",
            Self::Affinity => "A worker held them, but the session or the request was bound to another one.",
            Self::Policy => {
                "A worker held them, but a worker-selection policy or routing mode chose another one."
            }
            Self::Chance => {
                "A worker held them and cost no more, and the router chose another one: at random, or among equals."
            }
            Self::Skipped => "A worker held them and was not chosen; what the workers cost is not known.",
            Self::EngineHadLess => {
                "The chosen worker's engine reused less than its KV events let expect: events were lost, or it evicted in between."
            }
        }
    }

    /// What can be done, in a sentence; `None`: nothing in the deployment's settings.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::BelowBlock | Self::FirstSeen | Self::NotKnown => None,
            Self::Evicted => {
                Some("More KV blocks or a host tier keep it; Memory shows how many are missing.")
            }
            Self::Cleared => {
                Some("Look for who clears the caches: /clear_kv_blocks, or a reset of the engine.")
            }
            Self::WorkerLeft => Some("Fewer restarts, or a shared tier that outlives a worker."),
            Self::EventLost => Some("Findings shows what events were lost and why."),
            Self::Scattered | Self::NotEligible => None,
            Self::RouterIndex => {
                Some("Findings shows why the router's index differs from the workers' caches.")
            }
            Self::Load => Some(
                "A higher weight of overlap sends requests to the cache in spite of load; What-if shows what that costs.",
            ),
            Self::Affinity => Some("Soft session affinity lets cost decide when it differs."),
            Self::Policy => Some("The cost formula weighs caches; this policy or mode does not."),
            Self::Chance => Some("router_temperature 0 chooses the cheapest worker always."),
            Self::Skipped => Some("The frontend's log at DEBUG reports what all workers cost."),
            Self::EngineHadLess => {
                Some("Findings shows whether KV events were lost or the tree differs from the engine's.")
            }
        }
    }
}

impl NoReuse {
    /// Name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Query => "query",
            Self::NotVisible => "not_visible",
            Self::Length => "length",
        }
    }

    /// In a few words, after a count of decisions.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ignored => "looked at no cache",
            Self::Query => "were queries that ran nothing",
            Self::NotVisible => "do not show the blocks of their prompts",
            Self::Length => "have prompts of unknown length",
        }
    }
}
