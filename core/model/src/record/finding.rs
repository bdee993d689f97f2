//! What a check found, as it is logged, sent and shown. Knows no rule.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::id::{Millis, WorkerIx};

/// The front of a [`Finding`]: all that a line needs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct FindingHead {
    /// See [`Finding::code`].
    pub code: String,
    /// See [`Finding::severity`].
    pub severity: Severity,
    /// See [`Finding::phase`].
    pub phase: Phase,
    /// See [`Finding::title`].
    pub title: String,
    /// See [`Finding::cause`].
    pub cause: String,
}

/// Something that is wrong, or worth knowing, with its evidence and its remedy. Its first fields are those of
/// [`FindingHead`], in the same order: they are read alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding<'a> {
    /// Which rule found it; there is one finding a code.
    pub code: Cow<'a, str>,
    /// How bad.
    pub severity: Severity,
    /// Where it stands.
    pub phase: Phase,
    /// In half a sentence.
    pub title: Cow<'a, str>,
    /// Code of the finding that causes it; empty: none is known. Its own severity does not change by that.
    pub cause: Cow<'a, str>,
    /// What it means, in two sentences.
    pub explanation: Cow<'a, str>,
    /// The numbers it rests on.
    pub evidence: Vec<Evidence<'a>>,
    /// What to do, one setting each; proposed, never applied.
    pub fix: Vec<Fix<'a>>,
    /// The workers it is about; empty: the whole deployment.
    pub workers: Vec<WorkerIx>,
    /// Query of the panel that shows it (`view=decisions&worker=…`).
    pub link: Cow<'a, str>,
    /// When it was first seen.
    pub first_ms: Millis,
    /// When it was last seen to hold.
    pub last_ms: Millis,
}

/// How bad.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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
pub struct Evidence<'a> {
    /// Of what, with its source.
    pub label: Cow<'a, str>,
    /// The number as text, with its denominator if it has one.
    pub value: Cow<'a, str>,
    /// Its unit; empty: none.
    pub unit: Cow<'a, str>,
}

/// A remedy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Fix<'a> {
    /// What to do, and for which engine and version.
    pub text: Cow<'a, str>,
    /// The exact setting; empty: there is none.
    pub setting: Cow<'a, str>,
    /// What to set it to; empty: nothing to set.
    pub value: Cow<'a, str>,
}

/// What became of one rule at the last check.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RuleStatus<'a> {
    /// Its code.
    pub code: Cow<'a, str>,
    /// What it looks at, in a few words.
    pub subject: Cow<'a, str>,
    /// What came of it.
    pub status: CheckStatus,
    /// What is missing to judge, and how to provide it; empty unless the status is [`CheckStatus::NoData`].
    pub missing: Cow<'a, str>,
    /// Code of the finding that explains what shows; empty unless the status is [`CheckStatus::Explained`].
    pub explained_by: Cow<'a, str>,
}

/// What came of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
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
}
