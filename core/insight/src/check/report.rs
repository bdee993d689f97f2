//! What the findings of many rules have in common: rows for each worker, rows that may be missing, the panel to open.

use std::borrow::Cow;

use super::view::part;
use super::{Finding, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::{LogSignal, PanelRef};

/// Workers whose numbers are shown one by one.
const SHOWN_WORKERS: usize = 6;

/// Parts of a finding.
pub(super) trait Report: Sized {
    /// Adds a number if it is known.
    #[must_use]
    fn evidence_if(
        self,
        label: impl Into<Cow<'static, str>>,
        value: Option<impl ToString>,
        unit: &'static str,
    ) -> Self;

    /// Adds how often a line stood in logs since we listen, if it did.
    #[must_use]
    fn log_lines(self, view: &View<'_>, label: &'static str, sign: LogSignal) -> Self;

    /// Adds the most requests that a worker runs at once, where that is known.
    #[must_use]
    fn batch_limit(self, view: &View<'_>) -> Self;

    /// Names the workers it is about, and the panel that shows them.
    #[must_use]
    fn about(self, panel: PanelRef, workers: &[WorkerIx]) -> Self;

    /// Adds rows for each of some workers, by number and by name, the rest in one.
    #[must_use]
    fn each(self, view: &View<'_>, workers: &[WorkerIx], rows: impl Fn(Self, WorkerIx, &str) -> Self)
    -> Self;
}

impl Report for Finding {
    fn evidence_if(
        self,
        label: impl Into<Cow<'static, str>>,
        value: Option<impl ToString>,
        unit: &'static str,
    ) -> Self {
        match value {
            Some(value) => self.evidence(label, value, unit),
            None => self,
        }
    }

    fn log_lines(self, view: &View<'_>, label: &'static str, sign: LogSignal) -> Self {
        let lines = view.cluster.sign(|known| *known == sign).map(|known| known.count);
        self.evidence_if(label, lines, "lines")
    }

    fn batch_limit(self, view: &View<'_>) -> Self {
        self.evidence_if("Batch limit of a worker, frontends' metrics", view.batch_limit(), "requests")
    }

    fn about(self, panel: PanelRef, workers: &[WorkerIx]) -> Self {
        let found = self.workers(workers.iter().copied());
        if workers.len() == 1 { found.panel_of_worker(panel) } else { found.panel(panel) }
    }

    fn each(
        mut self,
        view: &View<'_>,
        workers: &[WorkerIx],
        rows: impl Fn(Self, WorkerIx, &str) -> Self,
    ) -> Self {
        for &worker in workers.iter().take(SHOWN_WORKERS) {
            self = rows(self, worker, &view.name(worker));
        }
        let more = workers.len().saturating_sub(SHOWN_WORKERS) as u64;
        let more = (more > 0).then(|| part(more, view.cluster.workers().len() as u64));
        self.evidence_if("Further workers with the same fault, of all known", more, "workers")
    }
}
