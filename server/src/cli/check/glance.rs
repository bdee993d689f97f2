//! How it goes while a check listens: what decides when it ends, and a line for the person who waits.

use std::fmt;

use radixscope_export::FindingFilter;
use radixscope_model::number_format::count;
use radixscope_model::record::{LinkState, Severity, SourceKind};
use radixscope_state::cluster::Cluster;

/// The state in a few numbers.
pub(super) struct Glance {
    /// A source is connected and current, or has said all it will ever say.
    pub(super) any_live: bool,
    /// A source still reads what was kept before we came.
    pub(super) catching_up: bool,
    /// Of the findings that are present.
    pub(super) worst: Option<Severity>,
    findings: usize,
    workers: usize,
    received: u64,
}

impl Glance {
    pub(super) fn of(cluster: &Cluster) -> Self {
        // Asking workers is ready at once, as is a recording, and alone neither shows anything.
        let shows_nothing = |kind| matches!(kind, SourceKind::WorkerTrees | SourceKind::Recording);
        let shows = cluster.sources().iter().filter(|s| !shows_nothing(s.kind));
        let any = |wanted: &[LinkState]| shows.clone().any(|s| wanted.contains(&s.state));
        let findings = FindingFilter::default().of(cluster);
        Self {
            any_live: any(&[LinkState::Live, LinkState::Ended]),
            catching_up: any(&[LinkState::CatchingUp]),
            worst: findings.iter().map(|finding| finding.severity).max(),
            findings: findings.len(),
            workers: cluster.workers().len(),
            received: cluster.sources().iter().map(|source| source.received).sum(),
        }
    }
}

impl fmt::Display for Glance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.catching_up {
            f.write_str("reading history,  ")?;
        } else if !self.any_live {
            f.write_str("connecting, ")?;
        }
        let (messages, workers, findings) =
            (count(self.received), count(self.workers as u64), count(self.findings as u64));
        write!(f, "messages {messages}, workers {workers}, findings {findings}")
    }
}
