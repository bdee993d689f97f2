//! Workers by index, the last event id of each, and how its events come.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use indexmap::IndexSet;

use radixscope_dynamo::subject::Subject;
use radixscope_model::id::{Millis, Worker, WorkerId, WorkerIx};
use radixscope_model::record::EventTransport;
use radixscope_state::cluster::{Cluster, MAX_WORKERS};

/// Departed workers that are remembered, so that a metric that never drops them does not bring them back: those of a few
/// hundred rollouts, 2 MiB.
const MAX_DEPARTED: usize = 1 << 16;

/// Pairs of namespace and component that are remembered.
const MAX_NAMES: usize = 1 << 12;

pub(super) struct Interner {
    by_id: HashMap<Worker, WorkerIx>,
    /// Namespaces and components of workers, each pair once.
    names: IndexSet<(Box<str>, Box<str>), hashbrown::DefaultHashBuilder>,
    workers: Vec<InternedWorker>,
    /// Indices to be given again, by the order in which they became free.
    vacant: VecDeque<WorkerIx>,
    departed: IndexSet<Worker, hashbrown::DefaultHashBuilder>,
    /// Most indices.
    places: usize,
    /// The one asked for last: a message is about one worker, mostly.
    last: Option<(Worker, WorkerIx)>,
}

struct InternedWorker {
    id: Worker,
    /// When a message named it last, as far as that shows that it is present.
    mentioned: Millis,
    /// Index of its namespace and component, as far as reported.
    named: Option<u32>,
    /// The subject through which a message named it last, and whether its names were slugs: all that such a message shows of the
    /// worker is recorded.
    recorded_through: Option<(Arc<Subject>, bool)>,
    /// Ways its KV events come, one bit each.
    lines: u8,
    last_event_id: Option<u64>,
}

impl InternedWorker {
    fn new(id: Worker, mentioned: Millis, named: Option<u32>) -> Self {
        Self { id, mentioned, named, recorded_through: None, lines: 0, last_event_id: None }
    }
}

impl Default for Interner {
    fn default() -> Self {
        Self::with_slots(MAX_WORKERS)
    }
}

impl Interner {
    /// For so many workers at a time, at most [`MAX_WORKERS`].
    pub(super) fn with_slots(places: usize) -> Self {
        Self {
            by_id: HashMap::new(),
            names: IndexSet::default(),
            workers: Vec::new(),
            vacant: VecDeque::new(),
            departed: IndexSet::default(),
            places: places.min(MAX_WORKERS),
            last: None,
        }
    }

    /// Resumes with the slots of a restored state; nothing was received since `until`.
    pub(super) fn resume(&mut self, until: Millis, cluster: &Cluster) {
        for (worker, state) in (0..).map(WorkerIx).zip(cluster.workers()) {
            self.workers.push(InternedWorker::new(state.id, until, None));
            if cluster.reclaimed().contains(&worker) {
                self.vacant.push_back(worker);
                self.departed.insert(state.id);
            } else {
                self.by_id.insert(state.id, worker);
            }
        }
    }

    /// Index of a worker, and whether there is news of it to record: that it exists, or of which component it is. A name that
    /// `is_slug` fills a gap and replaces no real one. `None`: it would be one too many.
    pub(super) fn intern(
        &mut self,
        id: Worker,
        (namespace, component): (&str, &str),
        is_slug: bool,
    ) -> Option<(WorkerIx, bool)> {
        let again = self.last.filter(|(last, _)| *last == id).map(|(_, worker)| worker);
        if let Some(worker) = again.or_else(|| self.by_id.get(&id).copied()) {
            self.last = Some((id, worker));
            if self.is_told(worker, namespace, component) {
                return Some((worker, false));
            }
            let known = self.workers[worker.at()].named.and_then(|name| self.names.get_index(name as usize));
            let of = |known: &str, new: &str| match new.is_empty() || (is_slug && !known.is_empty()) {
                true => None,
                false => (known != new).then(|| Box::from(new)),
            };
            let (told_namespace, told_component) = known.map_or(("", ""), |(n, c)| (&**n, &**c));
            let changed = (of(told_namespace, namespace), of(told_component, component));
            if changed == (None, None) {
                return Some((worker, false));
            }
            let pair = (
                changed.0.unwrap_or_else(|| told_namespace.into()),
                changed.1.unwrap_or_else(|| told_component.into()),
            );
            let named = self.name(pair);
            let known = &mut self.workers[worker.at()];
            (known.named, known.recorded_through) = (named, None);
            return Some((worker, true));
        }
        let named = self.name((namespace.into(), component.into()));
        let known = InternedWorker::new(id, Millis(0), named);
        // One that comes back takes its own place if that is free yet.
        let own = self.vacant.iter().position(|ix| self.workers[ix.at()].id == id);
        let worker = match self.vacant.remove(own.unwrap_or(0)) {
            Some(vacant) => {
                self.workers[vacant.at()] = known;
                vacant
            }
            None if self.workers.len() < self.places => {
                self.workers.push(known);
                WorkerIx((self.workers.len() - 1) as u16)
            }
            None => return None,
        };
        self.by_id.insert(id, worker);
        self.departed.swap_remove(&id);
        Some((worker, true))
    }

    /// Index of a worker of which all is recorded that messages through this subject show: no names need to be compared.
    #[inline]
    pub(super) fn recorded_through(
        &mut self,
        id: Worker,
        subject: &Arc<Subject>,
        is_slug: bool,
    ) -> Option<WorkerIx> {
        let worker = match self.last {
            Some((last, worker)) if last == id => worker,
            _ => *self.by_id.get(&id)?,
        };
        let (known, was_slug) = self.workers[worker.at()].recorded_through.as_ref()?;
        let is_recorded = Arc::ptr_eq(known, subject) && *was_slug == is_slug;
        self.last = Some((id, worker));
        is_recorded.then_some(worker)
    }

    /// A message through this subject named the worker, and what it shows is recorded. The subject stays shared, so that no other
    /// one has its address.
    pub(super) fn note_recorded_through(&mut self, worker: WorkerIx, subject: &Arc<Subject>, is_slug: bool) {
        self.workers[worker.at()].recorded_through = Some((Arc::clone(subject), is_slug));
    }

    /// Whether exactly these names of a worker were reported.
    #[inline]
    fn is_told(&self, worker: WorkerIx, namespace: &str, component: &str) -> bool {
        let Some(named) = self.workers[worker.at()].named else { return false };
        let known_name = self.names.get_index(named as usize);
        known_name.is_some_and(|(n, c)| **c == *component && **n == *namespace)
    }

    /// Index of a pair of names. Beyond the limit names are reported again, which costs only time.
    fn name(&mut self, pair: (Box<str>, Box<str>)) -> Option<u32> {
        if self.names.len() == MAX_NAMES {
            self.names.clear();
            self.workers.iter_mut().for_each(|known| (known.named, known.recorded_through) = (None, None));
        }
        Some(self.names.insert_full(pair).0 as u32)
    }

    /// A message named the worker at `at`.
    pub(super) fn mention(&mut self, worker: WorkerIx, at: Millis) {
        let mentioned = &mut self.workers[worker.at()].mentioned;
        *mentioned = at.max(*mentioned);
    }

    /// When a message named the worker last.
    pub(super) fn mentioned(&self, worker: WorkerIx) -> Millis {
        self.workers.get(worker.at()).map_or(Millis(0), |known| known.mentioned)
    }

    /// Whether the worker gave its place to another.
    pub(super) fn has_departed(&self, id: Worker) -> bool {
        self.departed.contains(&id)
    }

    /// These give their places to others.
    pub(super) fn reclaim(&mut self, workers: &[WorkerIx]) {
        self.last = None;
        for &worker in workers {
            let id = self.workers[worker.at()].id;
            if self.by_id.remove(&id).is_some() {
                self.vacant.push_back(worker);
                self.departed.insert(id);
            }
        }
        if self.departed.len() > MAX_DEPARTED {
            self.departed.drain(..MAX_DEPARTED / 2);
        }
    }

    /// Whether an event of `worker` came this way for the first time.
    pub(super) fn comes_newly_by(&mut self, worker: WorkerIx, line: EventTransport) -> bool {
        let (known, bit) = (&mut self.workers[worker.at()].lines, 1 << line as u8);
        let is_new = *known & bit == 0;
        *known |= bit;
        is_new
    }

    /// Entries in each store that is to be as large as the workers that are there or left last.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [(&'static str, usize); 3] {
        [("ids", self.by_id.len()), ("places", self.workers.len()), ("vacant places", self.vacant.len())]
    }

    /// Index of a worker that has one.
    pub(super) fn known(&self, id: Worker) -> Option<WorkerIx> {
        self.by_id.get(&id).copied()
    }

    /// The ranks of a worker that are known, in the order in which they were first seen.
    pub(super) fn ranks_of(&self, id: WorkerId) -> Vec<(Worker, WorkerIx)> {
        let is_its = |(worker, _): &(&Worker, &WorkerIx)| worker.id == id;
        let mut ranks: Vec<_> = self.by_id.iter().filter(is_its).map(|(&worker, &ix)| (worker, ix)).collect();
        ranks.sort_unstable_by_key(|(_, ix)| ix.at());
        ranks
    }

    /// Events lost before `event_id`, where ids are contiguous. Ids that start again are a worker that did.
    pub(super) fn event_id(&mut self, worker: WorkerIx, event_id: u64) -> u64 {
        let last = self.workers[worker.at()].last_event_id.replace(event_id);
        last.and_then(|last| event_id.checked_sub(last)).map_or(0, |step| step.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(component: &str) -> Arc<Subject> {
        let text = format!("namespace.dynamo.component.{component}.kv-events");
        Arc::new(radixscope_dynamo::subject::parse(&text).expect("one of Dynamo's"))
    }

    #[test]
    fn names_are_compared_again_once_another_subject_has_changed_them() {
        let mut interner = Interner::default();
        let (id, backend, prefill) = (Worker::new(7, 0), subject("backend"), subject("prefill"));
        let mut mention = |subject: &Arc<Subject>| {
            if let Some(worker) = interner.recorded_through(id, subject, false) {
                return (worker, false, true);
            }
            let (worker, is_news) =
                interner.intern(id, (&subject.namespace, &subject.component), false).expect("room");
            interner.note_recorded_through(worker, subject, false);
            (worker, is_news, false)
        };
        let (first, is_news, is_quick) = mention(&backend);
        assert!(is_news && !is_quick);
        assert_eq!(mention(&backend), (first, false, true));
        assert_eq!(mention(&prefill), (first, true, false), "another component");
        assert_eq!(mention(&backend), (first, true, false), "and back again");
        assert_eq!(mention(&backend), (first, false, true));
    }
}
