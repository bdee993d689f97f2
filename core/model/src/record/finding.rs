//! What a check found, as it is logged, sent and shown. Knows no rule.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

use super::Engine;
use crate::id::{Millis, WorkerIx};

/// Something that is wrong, or worth knowing, with its evidence and its remedy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Which rule found it; there is one finding a code.
    pub code: Cow<'static, str>,
    /// How bad.
    pub severity: Severity,
    /// Where it stands.
    #[serde(rename = "state")]
    pub phase: Phase,
    /// In half a sentence.
    pub title: Cow<'static, str>,
    /// Code of the finding that causes it; empty: none is known. Its own severity does not change by that.
    #[serde(serialize_with = "empty_is_null")]
    pub cause: Cow<'static, str>,
    /// What it means, in two sentences.
    pub explanation: Cow<'static, str>,
    /// The numbers it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do, one setting each; proposed, never applied. Alternatives, not steps. Empty where another finding is the
    /// cause: that one has the remedy.
    pub fix: Vec<Fix>,
    /// The workers it is about; empty: the whole deployment.
    pub workers: Vec<WorkerIx>,
    /// The panel that shows more of it.
    pub panel: PanelRef,
    /// Whether that panel opens with the first of `workers` selected.
    pub selects_worker: bool,
    /// When it began: first seen, and held without a break since. It is reported once it has held for a while, and every view
    /// gives this time as its beginning.
    #[serde(rename = "first_seen_ms")]
    pub first_ms: Millis,
    /// When it was last seen to hold.
    #[serde(rename = "last_seen_ms")]
    pub last_ms: Millis,
}

/// Text that is absent where it is empty: `null` in JSON.
fn empty_is_null<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    if text.is_empty() && to.is_human_readable() { to.serialize_none() } else { to.serialize_str(text) }
}

/// A panel of the page. Only the page knows where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PanelRef {
    /// Everything at once.
    #[default]
    Overview,
    /// What is wrong.
    Findings,
    /// How long requests take.
    Latency,
    /// What the workers' memory is filled with.
    Memory,
    /// The prefix tree.
    Tree,
    /// The workers.
    Workers,
    /// The routing decisions.
    Decisions,
    /// Live figures beside baselines.
    Compare,
}

impl Finding {
    /// A fault, in half a sentence and in two sentences; of which rule and since when is for the caller to say.
    pub fn new(severity: Severity, title: impl Into<String>, explanation: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(""),
            severity,
            phase: Phase::Warn,
            title: Cow::Owned(title.into()),
            cause: Cow::Borrowed(""),
            explanation: Cow::Owned(explanation.into()),
            evidence: Vec::new(),
            fix: Vec::new(),
            workers: Vec::new(),
            panel: PanelRef::Overview,
            selects_worker: false,
            first_ms: Millis(0),
            last_ms: Millis(0),
        }
    }

    /// Names the finding that causes it by its code; empty: none is known.
    #[must_use]
    pub fn cause(mut self, code: &'static str) -> Self {
        self.cause = Cow::Borrowed(code);
        self
    }

    /// Adds a number: of what and from which source, the number with its denominator, its unit.
    #[must_use]
    pub fn evidence(
        mut self,
        label: impl Into<Cow<'static, str>>,
        value: impl ToString,
        unit: impl Into<Cow<'static, str>>,
    ) -> Self {
        let value = Cow::Owned(value.to_string());
        self.evidence.push(Evidence { label: label.into(), value, unit: unit.into() });
        self
    }

    /// Adds a remedy: what to do, for which engine and version; the exact setting; its value.
    #[must_use]
    pub fn fix(
        mut self,
        text: impl Into<Cow<'static, str>>,
        setting: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fix.push(Fix { text: text.into(), setting: setting.into(), value: value.into(), engine: None });
        self
    }

    /// Adds a remedy of one engine, see [`Finding::fix`]; `None`: of any.
    #[must_use]
    pub fn fix_of(
        mut self,
        engine: Option<Engine>,
        text: impl Into<Cow<'static, str>>,
        setting: impl Into<Cow<'static, str>>,
        value: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.fix.push(Fix { text: text.into(), setting: setting.into(), value: value.into(), engine });
        self
    }

    /// Says when it began, where that is known to be before it was first seen.
    #[must_use]
    pub fn began(mut self, at_ms: Millis) -> Self {
        self.first_ms = at_ms;
        self
    }

    /// Names the workers it is about.
    #[must_use]
    pub fn workers(mut self, workers: impl IntoIterator<Item = WorkerIx>) -> Self {
        self.workers.extend(workers);
        self
    }

    /// Names the panel that shows it.
    #[must_use]
    pub fn panel(mut self, panel: PanelRef) -> Self {
        self.panel = panel;
        self
    }

    /// Names the panel that shows it, to be opened with the first of its workers selected if it has named any before.
    #[must_use]
    pub fn panel_of_worker(mut self, panel: PanelRef) -> Self {
        self.selects_worker = !self.workers.is_empty();
        self.panel(panel)
    }
}

/// How bad.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Deserialize)]
pub enum Severity {
    /// Worth knowing; nothing has to be done.
    Info,
    /// Costs time or hides something.
    Warning,
    /// KV-aware routing does not work, requests fail, or users wait a multiple of what they should.
    Critical,
}

impl From<Severity> for CheckStatus {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warning => Self::Warning,
            Severity::Critical => Self::Critical,
        }
    }
}

/// Where a finding stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum Phase {
    /// It holds.
    Warn,
    /// It no longer shows, but not for long enough to say that it is over.
    Recheck,
    /// It is over.
    Cleared,
}

/// A number behind a finding.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// Of what, with its source.
    pub label: Cow<'static, str>,
    /// The number as text, with its denominator if it has one.
    pub value: Cow<'static, str>,
    /// Its unit; empty: none.
    pub unit: Cow<'static, str>,
}

/// A remedy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fix {
    /// What to do, and for which engine and version.
    pub text: Cow<'static, str>,
    /// The exact setting, complete with its value: what may be copied; empty: there is none.
    #[serde(serialize_with = "empty_is_null")]
    pub setting: Cow<'static, str>,
    /// What to set it to; empty: the setting is a switch.
    #[serde(serialize_with = "empty_is_null")]
    pub value: Cow<'static, str>,
    /// The engine whose setting it is; `None`: any, or none of an engine. Where the engine that runs is known, remedies of
    /// others are left out.
    pub engine: Option<Engine>,
}

/// What became of one rule at the last check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its code.
    pub code: Cow<'static, str>,
    /// What it looks at, in a few words.
    pub subject: Cow<'static, str>,
    /// What came of it.
    pub status: CheckStatus,
    /// With [`CheckStatus::NoData`] what is missing to judge, and how to provide it; with [`CheckStatus::Ok`] what is worth a
    /// note; else empty.
    #[serde(serialize_with = "empty_is_null")]
    pub missing: Cow<'static, str>,
    /// Code of the finding that explains what shows; empty unless the status is [`CheckStatus::Explained`].
    #[serde(serialize_with = "empty_is_null")]
    pub explained_by: Cow<'static, str>,
    /// The finding to come; `None` unless the status is [`CheckStatus::Pending`].
    pub pending: Option<Pending>,
}

/// What shows and has not held for long enough to be a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// Title of the finding that it becomes, as of when it began.
    pub title: Cow<'static, str>,
    /// How bad.
    pub severity: Severity,
    /// Since when it shows.
    pub since_ms: Millis,
    /// When it becomes a finding, if it still shows then.
    pub due_ms: Millis,
}

/// What came of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum CheckStatus {
    /// Looked at, nothing found.
    Ok,
    /// There is a finding that is worth knowing.
    Info,
    /// There is a finding that is a warning.
    Warning,
    /// There is a critical finding.
    Critical,
    /// Not enough is known.
    NoData,
    /// What it looks for shows, as a consequence of another finding.
    Explained,
    /// What it looks for shows, and has not held for long enough to be a finding.
    Pending,
}
