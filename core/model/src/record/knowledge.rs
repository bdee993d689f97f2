//! What is known of the blocks of a worker: everything, a part or nothing; why, and what is done about it. Knows nothing of
//! how workers are asked.

use serde::{Deserialize, Serialize, Serializer};

use crate::id::Millis;

/// How much is known of the blocks that a worker holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Deserialize)]
pub enum TreeKnowledge {
    /// Nothing: no event and no dump of it was received.
    #[default]
    Unknown,
    /// Some of them: others were stored before we listened, or their events were lost.
    Partial,
    /// All of them.
    Complete,
}

/// Why that much is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Deserialize)]
pub enum KnowledgeWhy {
    /// No KV event of it was received.
    #[default]
    NoEvents,
    /// Every event was received, the first one included.
    FromFirstEvent,
    /// Its stream keeps history, which was read from the first event on (0.8, 0.9).
    History,
    /// It was asked for all its blocks, and every event since was received.
    Dump,
    /// It dropped everything, and every event since was received.
    Cleared,
    /// It had stored blocks before its first event was received.
    JoinedLate,
    /// Events of it were lost and not got back.
    EventsLost,
    /// The connection by which its events come broke, and what was missed is unknown.
    ConnectionBroke,
    /// Another process uses its id, and its blocks are unknown.
    Restarted,
}

/// Where asking a worker for its blocks stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum QueryState {
    /// It is not asked and need not be.
    #[default]
    No,
    /// Its query endpoint is unknown.
    NoEndpoint,
    /// It could be asked and is not, unless somebody requests it: its version answers where it works (0.9), or it was set so.
    OnRequest,
    /// It will be asked: others are asked first, or it is not certain yet that every event of it is received.
    Waiting,
    /// A query for all blocks runs.
    Dump,
    /// A query for lost events runs.
    Range,
    /// The response was applied. Events that it already holds may still arrive, so blocks that are removed and not held, and
    /// parents that are not held, are nothing to count.
    Joining,
    /// The last query brought nothing.
    Failed {
        /// When it is asked again. `None`: not before somebody requests it.
        next_ms: Option<Millis>,
    },
}

/// What a worker's response was compared with: the tree as it was kept from events. All are counts of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Divergence {
    /// The worker holds them; the tree had them not, or elsewhere.
    pub missing_blocks: u64,
    /// The tree had them; the worker does not hold them.
    pub surplus_blocks: u64,
    /// The tree had them below a block that the worker removed; with that block the worker's own index lost them, although no
    /// event reported it. Not a fault of the events.
    pub detached_blocks: u64,
}

impl Divergence {
    /// Whether events must have been lost or wrong.
    pub const fn is_fault(&self) -> bool {
        self.missing_blocks + self.surplus_blocks > 0
    }
}

impl QueryState {
    /// Whether a query runs.
    pub const fn is_running(self) -> bool {
        matches!(self, Self::Dump | Self::Range)
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::NoEndpoint => "no_endpoint",
            Self::OnRequest => "on_request",
            Self::Waiting => "waiting",
            Self::Dump => "dump",
            Self::Range => "range",
            Self::Joining => "joining",
            Self::Failed { .. } => "failed",
        }
    }
}

str_names! {
    /// Name in the API.
    TreeKnowledge { Unknown => "unknown", Partial => "partial", Complete => "complete" }
}
str_names! {
    /// Name in the API.
    KnowledgeWhy {
        NoEvents => "no_events", FromFirstEvent => "from_first_event", History => "history", Dump => "dump",
        Cleared => "cleared", JoinedLate => "joined_late", EventsLost => "events_lost",
        ConnectionBroke => "connection_broke", Restarted => "restarted",
    }
}
