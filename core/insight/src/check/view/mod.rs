//! What rules may look at: the state now, its totals over the last minutes, and what the operator gave. Knows no threshold
//! of a rule.

mod events;
mod peers;
mod processes;

use super::{Criteria, History, Totals};
use crate::reuse::{Funnel, Step};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::number_format::count;
use radixscope_model::record::{Finding, LinkState, Phase};
use radixscope_state::cluster::{Cluster, DecisionEntry, ProcessState, WorkerState};

pub(super) use events::{event_transport, is_joined_late};
pub(super) use peers::median;

/// What "lately" means to most rules.
pub(super) const WINDOW_MS: u64 = 60_000;
/// The same in words.
pub(super) const WINDOW: &str = "last 60 s";
/// Fewer visible prompts name no cause.
const MIN_PROMPTS: u32 = 10;

/// What rules may look at.
#[derive(Clone, Copy)]
pub struct View<'v> {
    /// The state.
    pub cluster: &'v Cluster,
    /// The time of this look.
    pub now: Millis,
    /// Its totals over the last minutes.
    pub history: &'v History,
    /// What the operator gave.
    pub criteria: &'v Criteria,
}

impl<'v> View<'v> {
    /// Decisions made within the last `ms`, newest first, as far as they are kept.
    pub fn decisions(&self, ms: u64) -> impl Iterator<Item = &'v DecisionEntry> + use<'v> {
        let now = self.now;
        self.cluster.decisions().newest_first().take_while(move |decided| now.since(decided.at_ms) <= ms)
    }

    /// Adds to a finding the cause that cost most reuse lately, in one pool or in all, where enough prompts are visible.
    pub(super) fn with_lost_reuse(&self, finding: Finding, pool: Option<PoolIx>) -> Finding {
        let of_pool = |decided: &&DecisionEntry| pool.is_none_or(|pool| pool == decided.pool);
        let funnel = Funnel::of(self.decisions(WINDOW_MS).filter(of_pool));
        match funnel.worst() {
            Some(loss) if funnel.decisions >= MIN_PROMPTS => finding.evidence(
                format!("Most tokens of prompts computed for one cause, {WINDOW}: {}", loss.cause.label()),
                part(loss.tokens, funnel.steps[Step::Prompt as usize]),
                "tokens",
            ),
            _ => finding,
        }
    }

    /// Workers that did not leave.
    pub fn present(&self) -> impl Iterator<Item = WorkerIx> + use<'v> {
        let workers = self.cluster.workers().indexed();
        workers.filter(|(_, state)| state.departure.is_none()).map(|(worker, _)| worker)
    }

    /// How long Dynamo's messages have been received without a break, milliseconds; `None`: they are not received now.
    pub fn listening_ms(&self) -> Option<u64> {
        let sources = self.cluster.sources().iter();
        let live = sources.filter(|source| source.kind.is_event_plane() && source.state == LinkState::Live);
        live.map(|source| self.now.since(source.since_ms)).min()
    }

    pub(super) fn worker(&self, worker: WorkerIx) -> Option<&'v WorkerState> {
        self.cluster.worker(worker)
    }

    pub(super) fn processes(&self) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
        self.cluster.processes().iter()
    }

    /// What a worker's totals rose by over the last `ms`, or since we listen if that is shorter.
    pub(super) fn rise(&self, worker: WorkerIx, ms: u64) -> Totals {
        self.history.rise(self.cluster, worker, self.now, ms)
    }

    /// A worker's totals since we listen.
    pub(super) fn session(&self, worker: WorkerIx) -> Totals {
        self.history.session(self.cluster, worker)
    }

    /// Stored events of all workers lately.
    pub(super) fn stores(&self) -> u64 {
        self.present().map(|worker| self.rise(worker, WINDOW_MS).store_events).sum()
    }

    /// The moment `ms` ago.
    pub(super) fn ago(&self, ms: u64) -> Millis {
        Millis(self.now.0.saturating_sub(ms))
    }

    pub(super) fn seconds_since(&self, at: Millis) -> u64 {
        self.now.since(at) / 1_000
    }

    /// The finding of a code, if it is active.
    pub(super) fn active(&self, code: &str) -> Option<&'v Finding> {
        self.cluster.findings().iter().find(|finding| finding.code == code && finding.phase != Phase::Cleared)
    }

    pub(super) fn is_active(&self, code: &str) -> bool {
        self.active(code).is_some()
    }

    /// Blocks that a worker's KV cache holds.
    pub(super) fn capacity_blocks(&self, worker: WorkerIx) -> Option<u64> {
        self.cluster.capacity(worker).map(|capacity| capacity.value)
    }

    /// Name of a worker in evidence: its decimal id and rank.
    pub(super) fn name(&self, worker: WorkerIx) -> String {
        self.worker(worker).map_or_else(|| "unknown worker".to_owned(), |w| format!("worker {}", w.id))
    }

    /// Names of some workers, the first three of them.
    pub(super) fn names(&self, workers: &[WorkerIx]) -> String {
        let named: Vec<_> = workers.iter().take(3).map(|&worker| self.name(worker)).collect();
        let more = workers.len() - named.len();
        if more == 0 { named.join(", ") } else { format!("{} and {more} more", named.join(", ")) }
    }
}

/// A part of a whole: `12 of 30 (40 %)`.
pub(super) fn part(part: u64, whole: u64) -> String {
    if whole == 0 {
        return format!("{} of 0", count(part));
    }
    let percent = (part as f64 / whole as f64 * 100.0).round();
    format!("{} of {} ({percent} %)", count(part), count(whole))
}
