//! What a rule is, what it may look at, and what it may say.

use std::borrow::Cow;

use super::{Given, History};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Finding, LinkState, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// One kind of fault.
pub trait Rule: Sync {
    /// Its code: lower case with underscores, never changed once released.
    fn code(&self) -> &'static str;
    /// What it looks at, in a few words, for the list of what was checked.
    fn subject(&self) -> &'static str;
    /// How long it has to hold before it is reported, milliseconds.
    fn hold_ms(&self) -> u64 {
        5_000
    }
    /// How long it has to be away before it is over, milliseconds.
    fn clear_ms(&self) -> u64 {
        30_000
    }
    /// Looks.
    fn look(&self, view: &View<'_>) -> RuleOutcome;
}

/// What comes of a rule.
pub enum RuleOutcome {
    /// Nothing is wrong.
    Ok,
    /// Not enough is known to judge: what is missing, and how to provide it.
    Unknown(Cow<'static, str>),
    /// What the rule looks for shows, and follows from the finding of this code.
    Explained(&'static str),
    /// Something is wrong. Which rule found it, and since when, is filled in by [`super::Checks`].
    Found(Finding),
}

impl From<Finding> for RuleOutcome {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

/// What rules may look at.
#[derive(Clone, Copy)]
pub struct View<'v> {
    /// The state.
    pub cluster: &'v Cluster,
    /// The time of this look.
    pub now: Millis,
    /// Its totals over the last minutes.
    pub history: &'v History,
    /// What the operator gave.
    pub given: &'v Given,
}

impl<'v> View<'v> {
    /// Decisions made within the last `ms`, newest first, as far as they are kept.
    pub fn decisions(&self, ms: u64) -> impl Iterator<Item = &'v DecisionEntry> + use<'v> {
        let now = self.now;
        self.cluster.decisions().newest_first().take_while(move |decided| now.since(decided.at_ms) <= ms)
    }

    /// Workers that did not leave.
    pub fn present(&self) -> impl Iterator<Item = WorkerIx> + use<'v> {
        let workers = self.cluster.workers();
        (0..workers.len()).filter(|&at| workers[at].gone.is_none()).map(|at| WorkerIx(at as u16))
    }

    /// How long Dynamo's messages have been heard without a break, milliseconds; `None`: they are not heard now.
    pub fn listening_ms(&self) -> Option<u64> {
        let heard = |kind| matches!(kind, SourceKind::Nats | SourceKind::Simulator);
        let live = self.cluster.sources().iter().filter(|s| heard(s.kind) && s.state == LinkState::Live);
        live.map(|source| self.now.since(source.since_ms)).min()
    }
}
