//! What checks found and looked at, as it was reported last.

use serde::{Deserialize, Serialize};

use crate::redact::{self, Pseudonyms};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Finding, RuleStatus};

/// Most findings kept: far more than there are rules.
const MAX_FINDINGS: usize = 128;

/// All findings by code, and what was checked last.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Findings {
    found: Vec<Finding>,
    checked: Vec<RuleStatus>,
}

impl Findings {
    pub(super) fn found(&mut self, finding: &Finding) {
        if let Some(known) = self.found.iter_mut().find(|known| known.code == finding.code) {
            *known = finding.clone();
        } else if self.found.len() < MAX_FINDINGS {
            self.found.push(finding.clone());
        }
    }

    pub(super) fn checked(&mut self, rules: &[RuleStatus]) {
        self.checked = rules.to_vec();
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.found
    }

    /// Replaces names and ids.
    pub(super) fn redact(&mut self, names: &mut dyn Pseudonyms) {
        self.found.iter_mut().for_each(|finding| redact::finding(finding, names));
        self.checked.iter_mut().for_each(|status| redact::rule(status, names));
    }

    /// A worker is forgotten: what was found of it names it in its text alone.
    pub(super) fn forget_worker(&mut self, worker: WorkerIx) {
        for found in &mut self.found {
            found.workers.retain(|of| *of != worker);
        }
    }

    pub(super) fn rules(&self) -> &[RuleStatus] {
        &self.checked
    }
}
