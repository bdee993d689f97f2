//! What checks found and looked at, kept as it was said and taken apart when somebody asks.

use serde::{Deserialize, Serialize};

use crate::record::{Finding, FindingHead, Opened, RuleStatus, Sealed};

/// Most findings kept: far more than there are rules.
const MAX_FINDINGS: usize = 128;

/// All findings by code, and what was checked last.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Findings {
    found: Vec<(String, Sealed<'static>)>,
    checked: Option<Sealed<'static>>,
    #[serde(skip)]
    open_found: Opened<Vec<Finding<'static>>>,
    #[serde(skip)]
    open_checked: Opened<Vec<RuleStatus<'static>>>,
}

impl Findings {
    pub(super) fn found(&mut self, code: &str, finding: &Sealed<'_>) {
        if let Some((_, known)) = self.found.iter_mut().find(|(known, _)| known == code) {
            *known = finding.to_static();
        } else if self.found.len() < MAX_FINDINGS {
            self.found.push((code.to_owned(), finding.to_static()));
        }
        self.open_found = Opened::default();
    }

    pub(super) fn checked(&mut self, rules: &Sealed<'_>) {
        self.checked = Some(rules.to_static());
        self.open_checked = Opened::default();
    }

    pub(super) fn all(&self) -> &[Finding<'static>] {
        self.open_found.get(|| self.found.iter().filter_map(|(_, finding)| finding.open()).collect())
    }

    pub(super) fn heads(&self) -> impl Iterator<Item = FindingHead> + '_ {
        self.found.iter().filter_map(|(_, finding)| finding.open_front())
    }

    /// A list begins with its length.
    pub(super) fn rules_count(&self) -> u32 {
        self.checked.as_ref().and_then(Sealed::open_front).unwrap_or(0)
    }

    pub(super) fn rules(&self) -> &[RuleStatus<'static>] {
        self.open_checked.get(|| self.checked.as_ref().and_then(Sealed::open).unwrap_or_default())
    }
}
