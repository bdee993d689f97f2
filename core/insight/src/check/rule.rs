//! What a rule is, and what comes of it.

use std::borrow::Cow;

use super::View;
use radixscope_model::record::Finding;

/// One kind of fault.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its code: lower case with underscores, never changed once released.
    pub code: &'static str,
    /// What it looks at, in a few words, for the list of what was checked.
    pub subject: &'static str,
    /// How long it has to hold before it is reported, milliseconds.
    pub hold_ms: u64,
    /// How long it has to be away before it is resolved, milliseconds.
    pub clear_ms: u64,
    /// Looks.
    pub evaluate: fn(&View<'_>) -> RuleOutcome,
}

impl Rule {
    /// With the usual times.
    pub(super) const fn new(
        code: &'static str,
        subject: &'static str,
        evaluate: fn(&View<'_>) -> RuleOutcome,
    ) -> Self {
        Self { code, subject, hold_ms: 5_000, clear_ms: 30_000, evaluate }
    }

    /// Whether it finds something now, be it long enough for a finding or not.
    pub(super) fn finds(&self, view: &View<'_>) -> bool {
        matches!((self.evaluate)(view), RuleOutcome::Found(_))
    }

    /// Whether its finding is active, or it finds something now.
    pub(super) fn shows(&self, view: &View<'_>) -> bool {
        view.is_active(self.code) || self.finds(view)
    }
}

/// What comes of a rule.
pub enum RuleOutcome {
    /// Nothing is wrong.
    Ok,
    /// Nothing is wrong, and something is worth a note.
    Noted(Cow<'static, str>),
    /// Not enough is known to judge: what is missing, and how to provide it.
    NoData(Cow<'static, str>),
    /// What the rule looks for shows, and follows from the finding of this code.
    Explained(&'static str),
    /// Something is wrong. Which rule found it, and since when, is filled in by [`super::Checks`].
    Found(Finding),
}

impl RuleOutcome {
    /// Not enough is known to judge, for want of `missing`.
    pub(super) fn no_data(missing: impl Into<Cow<'static, str>>) -> Self {
        Self::NoData(missing.into())
    }
}

impl RuleOutcome {
    /// What comes of a rule that judges pool by pool: the gravest finding, else what explains one, else that a pool is well.
    /// `none`: what to say where there is no pool.
    pub(super) fn of_pools(outcomes: impl Iterator<Item = Self>, none: &'static str) -> Self {
        let rank = |outcome: &Self| match outcome {
            Self::Found(finding) => (4, finding.severity as u8),
            Self::Explained(_) => (3, 0),
            Self::Noted(_) => (2, 0),
            Self::Ok => (1, 0),
            Self::NoData(_) => (0, 0),
        };
        let gravest = outcomes.reduce(|first, other| if rank(&other) > rank(&first) { other } else { first });
        gravest.unwrap_or_else(|| Self::no_data(none))
    }
}

impl From<Finding> for RuleOutcome {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}
