//! Workers by index, the last event id of each, and how its events come.

use hashbrown::HashMap;

use crate::cluster::MAX_WORKERS;
use crate::id::{Worker, WorkerId, WorkerIx};
use crate::record::EventLine;

#[derive(Default)]
pub(super) struct Interner {
    by_id: HashMap<Worker, WorkerIx>,
    workers: Vec<Known>,
    /// The one asked for last: a message is about one worker, mostly.
    last: Option<(Worker, WorkerIx)>,
}

struct Known {
    has_component: bool,
    /// Ways its KV events come, one bit each.
    lines: u8,
    last_event_id: Option<u64>,
}

impl Interner {
    /// Index of a worker, and whether there is news of it to tell: that it exists, or of which component it is.
    /// `None`: it would be one too many.
    pub(super) fn intern(
        &mut self,
        id: Worker,
        namespace: &str,
        component: &str,
    ) -> Option<(WorkerIx, bool)> {
        let has_component = !namespace.is_empty() && !component.is_empty();
        let again = self.last.filter(|(last, _)| *last == id).map(|(_, worker)| worker);
        if let Some(worker) = again.or_else(|| self.by_id.get(&id).copied()) {
            self.last = Some((id, worker));
            let known = &mut self.workers[worker.at()];
            let news = has_component && !known.has_component;
            known.has_component |= has_component;
            return Some((worker, news));
        }
        if self.workers.len() == MAX_WORKERS {
            return None;
        }
        let worker = WorkerIx(self.workers.len() as u16);
        self.by_id.insert(id, worker);
        self.workers.push(Known { has_component, lines: 0, last_event_id: None });
        Some((worker, true))
    }

    /// The ranks of a worker that are known, in the order in which they were first heard of.
    pub(super) fn ranks_of(&self, id: WorkerId) -> Vec<(Worker, WorkerIx)> {
        let is_its = |(worker, _): &(&Worker, &WorkerIx)| worker.id == id;
        let mut ranks: Vec<_> = self.by_id.iter().filter(is_its).map(|(&worker, &ix)| (worker, ix)).collect();
        ranks.sort_unstable_by_key(|(_, ix)| ix.at());
        ranks
    }

    /// Whether an event of `worker` came this way for the first time.
    pub(super) fn comes_newly_by(&mut self, worker: WorkerIx, line: EventLine) -> bool {
        let (known, bit) = (&mut self.workers[worker.at()].lines, 1 << line as u8);
        let is_new = *known & bit == 0;
        *known |= bit;
        is_new
    }

    /// Events lost before `event_id`, where ids are contiguous. Ids that start again are a worker that did.
    pub(super) fn event_id(&mut self, worker: WorkerIx, event_id: u64) -> u64 {
        let last = self.workers[worker.at()].last_event_id.replace(event_id);
        last.and_then(|last| event_id.checked_sub(last)).map_or(0, |step| step.saturating_sub(1))
    }
}
