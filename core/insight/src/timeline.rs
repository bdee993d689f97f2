//! A row of the timeline: what one second brought. Sums of records, and the marks that a reader looks for.

use serde::Serialize;

use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::range::Range;
use radixscope_model::record::{Finding, Phase, Record, ReportedSettings, Severity};
use radixscope_state::cluster::Cluster;

use crate::latency::{self, Quantity};

/// The process that a mark of our own start names.
const OURSELVES: &str = "Radixscope";
/// Most marks of each kind in one row; a second with more has their number.
const MAX_MARKS: usize = 32;

/// What one second brought.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SecondRow {
    /// When the second was over; the server's clock.
    pub at_ms: Millis,
    /// Blocks stored, all workers.
    pub stored: u64,
    /// Blocks removed, all workers; those of a cleared cache included.
    pub removed: u64,
    /// Routing decisions received.
    pub decisions: u64,
    /// TTFT, 95th percentile of the last minute, milliseconds; `null`: not reported.
    pub ttft_p95_ms: Option<Range>,
    /// Findings that began or ended.
    pub findings: Vec<FindingMark>,
    /// Workers and processes that came, went or started again, and routers whose settings changed.
    pub workers: Vec<WorkerMark>,
    /// Marks of either kind that are not listed.
    pub more_marks: u32,
}

/// A finding began or ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FindingMark {
    /// Its code.
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// Whether it began; else it ended.
    pub opened: bool,
    /// When it began or last held, as the finding itself gives it; the row is of the second in which that was reported.
    pub since_ms: Millis,
}

/// What became of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerTransition {
    /// It was seen for the first time.
    Joined,
    /// It departed.
    Left,
    /// It departed before and is there again.
    #[serde(rename = "returned")]
    Rejoined,
    /// Its process started anew.
    Restarted,
    /// A source reports other settings of its router than before.
    SettingsChanged,
}

/// A worker or a process came, went or started again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkerMark {
    /// What happened.
    pub what: WorkerTransition,
    /// The worker; `null` where a process is meant.
    pub worker: Option<Worker>,
    /// The process as its metrics are named, or the log or file that has the settings; `null` where a worker is meant.
    pub process: Option<String>,
}

/// The row of the second that is not over.
#[derive(Debug, Default)]
pub struct RowInProgress {
    stored: u64,
    removed: u64,
    decisions: u64,
    findings: Vec<FindingMark>,
    workers: Vec<WorkerMark>,
    more_marks: u32,
    /// Restarts of all processes at the end of the last row.
    restarts: u64,
    last_end_ms: Millis,
}

impl RowInProgress {
    /// Goes on after a time in which nothing was received: our own start is a mark.
    pub fn resume(&mut self, until: Millis, cluster: &Cluster) {
        *self = Self { restarts: restarts(cluster), last_end_ms: until, ..Self::default() };
        let process = Some(OURSELVES.to_owned());
        self.mark(WorkerMark { what: WorkerTransition::Restarted, worker: None, process });
    }

    /// Counts one record; `before` is the state that it is about to change.
    pub fn count(&mut self, before: &Cluster, record: &Record<'_>) {
        match record {
            Record::Stored { blocks, .. } => self.stored += blocks.len() as u64,
            Record::Removed { hashes, .. } => self.removed += hashes.len() as u64,
            Record::Cleared { worker, .. } => self.removed += before.blocks(*worker).unwrap_or(0),
            // Later records of a decision replace its first one.
            Record::Decision(decision) => {
                let newest = before.decisions().newest(0);
                self.decisions += u64::from(newest.is_none_or(|newest| newest.decision.id < decision.id));
            }
            Record::Finding(finding) => self.finding(before, finding),
            Record::Worker(identity) => self.worker(WorkerTransition::Joined, Some(identity.id)),
            Record::Left { worker, .. }
                if before.worker(*worker).is_some_and(|state| state.departure.is_none()) =>
            {
                self.worker(WorkerTransition::Left, id(before, *worker));
            }
            Record::Settings(reported) if is_change(before, reported) => {
                let process = Some(reported.of.reporter.clone());
                self.mark(WorkerMark { what: WorkerTransition::SettingsChanged, worker: None, process });
            }
            Record::Rejoined { worker } => self.worker(WorkerTransition::Rejoined, id(before, *worker)),
            _ => {}
        }
    }

    fn finding(&mut self, before: &Cluster, finding: &Finding) {
        let is_open = |finding: &Finding| finding.phase != Phase::Cleared;
        let known = before.findings().iter().find(|known| known.code == finding.code);
        let opened = is_open(finding);
        if known.is_some_and(is_open) == opened {
            return;
        }
        if self.findings.len() == MAX_MARKS {
            self.more_marks += 1;
            return;
        }
        let code = finding.code.clone().into_owned();
        let since_ms = if opened { finding.first_ms } else { finding.last_ms };
        self.findings.push(FindingMark { code, severity: finding.severity, opened, since_ms });
    }

    fn worker(&mut self, what: WorkerTransition, worker: Option<Worker>) {
        self.mark(WorkerMark { what, worker, process: None });
    }

    fn mark(&mut self, mark: WorkerMark) {
        if self.workers.len() == MAX_MARKS {
            self.more_marks += 1;
        } else {
            self.workers.push(mark);
        }
    }

    /// The row, now that its second is over.
    pub fn end(&mut self, at_ms: Millis, cluster: &Cluster) -> SecondRow {
        let restarts = restarts(cluster);
        if restarts > self.restarts {
            let since = self.last_end_ms;
            let restarted = cluster
                .processes()
                .iter()
                .filter(|process| process.restarts > 0 && process.restarted_ms.is_some_and(|at| at >= since));
            for process in restarted {
                let process = Some(process.name.clone());
                self.mark(WorkerMark { what: WorkerTransition::Restarted, worker: None, process });
            }
        }
        let ended = std::mem::replace(self, Self { restarts, last_end_ms: at_ms, ..Self::default() });
        let ttft = latency::figure(cluster, Quantity::Ttft, at_ms);
        SecondRow {
            at_ms,
            stored: ended.stored,
            removed: ended.removed,
            decisions: ended.decisions,
            ttft_p95_ms: ttft.and_then(|times| times.quantiles).map(|[_, p95, _]| p95),
            findings: ended.findings,
            workers: ended.workers,
            more_marks: ended.more_marks,
        }
    }
}

/// Whether a source reported other settings of this router before.
fn is_change(before: &Cluster, reported: &ReportedSettings) -> bool {
    let mut known = before.settings().iter();
    let known = known.find(|known| known.source == reported.source && known.of == reported.of);
    known.zip(reported.numbers).is_some_and(|(known, numbers)| known.latest.numbers != numbers)
}

/// Restarts of all processes, as far as they were seen.
fn restarts(cluster: &Cluster) -> u64 {
    cluster.processes().iter().map(|process| u64::from(process.restarts)).sum()
}

fn id(cluster: &Cluster, worker: WorkerIx) -> Option<Worker> {
    cluster.worker(worker).map(|state| state.id)
}
