//! What a rule is, what it may look at, and what it may say.

use std::borrow::Cow;

use super::{Given, History};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Evidence, Finding, Fix, LinkState, Phase, Severity, SourceKind};
use radixscope_state::cluster::{Cluster, Decided};

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
    fn look(&self, view: &View<'_>) -> Look;
}

/// What a rule sees.
pub enum Look {
    /// Nothing is wrong.
    Ok,
    /// Not enough is known to judge: what is missing, and how to provide it.
    Unknown(Cow<'static, str>),
    /// What the rule looks for shows, and follows from the finding of this code.
    Explained(&'static str),
    /// Something is wrong.
    Found(Found),
}

/// A fault with its evidence and remedy.
#[derive(Clone, Debug)]
pub struct Found {
    severity: Severity,
    title: String,
    cause: &'static str,
    explanation: String,
    evidence: Vec<Evidence<'static>>,
    fix: Vec<Fix<'static>>,
    workers: Vec<WorkerIx>,
    link: Cow<'static, str>,
}

impl Found {
    /// A fault, in half a sentence and in two sentences.
    pub fn new(severity: Severity, title: impl Into<String>, explanation: impl Into<String>) -> Self {
        Self {
            severity,
            title: title.into(),
            cause: "",
            explanation: explanation.into(),
            evidence: Vec::new(),
            fix: Vec::new(),
            workers: Vec::new(),
            link: Cow::Borrowed(""),
        }
    }

    /// Names the finding that causes it by its code; empty: none is known.
    pub fn cause(mut self, code: &'static str) -> Self {
        self.cause = code;
        self
    }

    /// How bad it is.
    pub(super) fn severity(&self) -> Severity {
        self.severity
    }

    /// Adds a number: of what and from which source, the number with its denominator, its unit.
    pub fn evidence(
        mut self,
        label: impl Into<Cow<'static, str>>,
        value: impl ToString,
        unit: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.evidence.push(Evidence {
            label: label.into(),
            value: Cow::Owned(value.to_string()),
            unit: unit.into(),
        });
        self
    }

    /// Adds a remedy: what to do, for which engine and version; the exact setting; its value.
    pub fn fix(
        mut self,
        text: impl Into<Cow<'static, str>>,
        setting: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fix.push(Fix { text: text.into(), setting: setting.into(), value: value.into() });
        self
    }

    /// Names the workers it is about.
    pub fn workers(mut self, workers: impl IntoIterator<Item = WorkerIx>) -> Self {
        self.workers.extend(workers);
        self
    }

    /// Names the panel that shows it, as the query of its address.
    pub fn link(mut self, query: impl Into<Cow<'static, str>>) -> Self {
        self.link = query.into();
        self
    }

    pub(super) fn into_finding(self, code: &'static str, first_ms: Millis, now: Millis) -> Finding<'static> {
        Finding {
            code: Cow::Borrowed(code),
            severity: self.severity,
            phase: Phase::Warn,
            title: Cow::Owned(self.title),
            cause: Cow::Borrowed(self.cause),
            explanation: Cow::Owned(self.explanation),
            evidence: self.evidence,
            fix: self.fix,
            workers: self.workers,
            link: self.link,
            first_ms,
            last_ms: now,
        }
    }
}

impl From<Found> for Look {
    fn from(found: Found) -> Self {
        Self::Found(found)
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
    pub fn decisions(&self, ms: u64) -> impl Iterator<Item = &'v Decided> + use<'v> {
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
