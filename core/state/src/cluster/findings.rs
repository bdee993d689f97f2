//! What checks found and looked at, kept as it was said and taken apart when somebody asks.

use serde::{Deserialize, Serialize};

use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Finding, FindingHead, Opened, RuleStatus, Sealed};

/// Most findings kept: far more than there are rules.
const MAX_FINDINGS: usize = 128;

/// All findings by code, and what was checked last.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Findings {
    found: Vec<Said>,
    checked: Option<Sealed<'static>>,
    #[serde(skip)]
    open_found: Opened<Vec<Finding<'static>>>,
    #[serde(skip)]
    open_checked: Opened<Vec<RuleStatus<'static>>>,
}

/// A finding as it was said last.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Said {
    code: String,
    finding: Sealed<'static>,
    /// Places that others may have taken since. Left out when the finding is taken apart, so that the fold need not.
    vacated: Vec<WorkerIx>,
}

impl Said {
    fn open(&self) -> Option<Finding<'static>> {
        let mut finding: Finding<'static> = self.finding.open()?;
        finding.workers.retain(|worker| self.vacated.binary_search(worker).is_err());
        Some(finding)
    }
}

impl Findings {
    pub(super) fn found(&mut self, code: &str, finding: &Sealed<'_>) {
        let said = Said { code: code.to_owned(), finding: finding.to_static(), vacated: Vec::new() };
        if let Some(known) = self.found.iter_mut().find(|known| known.code == code) {
            *known = said;
        } else if self.found.len() < MAX_FINDINGS {
            self.found.push(said);
        }
        self.open_found = Opened::default();
    }

    pub(super) fn checked(&mut self, rules: &Sealed<'_>) {
        self.checked = Some(rules.to_static());
        self.open_checked = Opened::default();
    }

    pub(super) fn all(&self) -> &[Finding<'static>] {
        self.open_found.get(|| self.found.iter().filter_map(Said::open).collect())
    }

    /// Other workers take these places: what was found of those who had them names them in words alone.
    pub(super) fn vacate(&mut self, workers: &[WorkerIx]) {
        for found in &mut self.found {
            found.vacated.extend(workers);
            found.vacated.sort_unstable();
            found.vacated.dedup();
        }
        self.open_found = Opened::default();
    }

    pub(super) fn heads(&self) -> impl Iterator<Item = FindingHead> + '_ {
        self.found.iter().filter_map(|said| said.finding.open_front())
    }

    /// A list begins with its length.
    pub(super) fn rules_count(&self) -> u32 {
        self.checked.as_ref().and_then(Sealed::open_front).unwrap_or(0)
    }

    pub(super) fn rules(&self) -> &[RuleStatus<'static>] {
        self.open_checked.get(|| self.checked.as_ref().and_then(Sealed::open).unwrap_or_default())
    }
}
