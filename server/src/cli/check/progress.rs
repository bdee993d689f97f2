//! Progress of a running check: the values that decide when it ends, and a progress line for the terminal.

use std::fmt;

use radixscope_export::FindingFilter;
use radixscope_model::number_format::count;
use radixscope_model::record::{LinkState, Severity, SourceKind};
use radixscope_state::cluster::Cluster;

/// A summary of the state.
pub(super) struct Progress {
    /// A source is live or has ended.
    pub(super) any_live: bool,
    /// A source still reads history.
    pub(super) catching_up: bool,
    /// The highest severity of the active findings.
    pub(super) worst: Option<Severity>,
    findings: usize,
    workers: usize,
    received: u64,
}

impl Progress {
    pub(super) fn of(cluster: &Cluster) -> Self {
        // Worker queries and what is written are live at once, but provide no data of their own.
        let shows_nothing = |kind: SourceKind| kind == SourceKind::WorkerTrees || kind.is_output();
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

impl fmt::Display for Progress {
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
