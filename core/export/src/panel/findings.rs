//! Findings: how many are active, which of them concern a worker, and what is shown where there are none.

use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Finding, Phase, Severity};
use radixscope_state::cluster::Cluster;

use super::EmptyText;
use crate::finding_ticket::summary;
use crate::{FindingFilter, Summary};

/// Its heading.
pub const TITLE: &str = "Findings";

/// Severities, the worst first, each with what one finding of it is called and what several are.
pub const SEVERITIES: [(Severity, &str, &str); 3] = [
    (Severity::Critical, "critical", "critical"),
    (Severity::Warning, "warning", "warnings"),
    (Severity::Info, "note", "notes"),
];

/// How many of `active` there are of each of [`SEVERITIES`].
pub fn counts(active: &[&Finding]) -> [u64; 3] {
    SEVERITIES
        .map(|(severity, ..)| active.iter().filter(|finding| finding.severity == severity).count() as u64)
}

/// The active findings, the worst first, those about a worker or about all where one is picked.
pub fn active(cluster: &Cluster, picked: Option<WorkerIx>) -> Vec<&Finding> {
    let mut active = FindingFilter::default().of(cluster);
    active.retain(|finding| picked.is_none_or(|worker| concerns(finding, worker)));
    active
}

/// Whether a finding is about a worker; one without workers is about all.
pub fn concerns(finding: &Finding, worker: WorkerIx) -> bool {
    finding.workers.is_empty() || finding.workers.contains(&worker)
}

/// What stands before the last time of a finding.
pub const fn last_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Warn => "last seen",
        Phase::Recheck | Phase::Cleared => "seen until",
    }
}

/// What is shown where nothing was checked.
pub fn empty(cluster: &Cluster) -> Option<EmptyText> {
    let text = "Rules run once a second as soon as a source is connected and its history is read.";
    let is_empty = cluster.checked().is_empty();
    is_empty.then(|| EmptyText::new("findings-unchecked", "Nothing was checked yet", text))
}

/// What is shown where rules ran and found nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoFindings {
    /// How much was checked, and what is to come.
    pub text: String,
    /// Whether every rule had its data, and nothing is to come: only this has a check mark.
    pub is_good: bool,
}

impl NoFindings {
    /// By the last check.
    pub fn of(cluster: &Cluster) -> Self {
        Self { text: summary(cluster), is_good: Summary::of(cluster).is_good() }
    }
}
