//! Workers by index, the last event id of each, and how its events come.

use std::sync::Arc;

use hashbrown::HashMap;
use indexmap::IndexSet;

use radixscope_dynamo::subject::Subject;
use radixscope_model::id::{Millis, Worker, WorkerId, WorkerIx};
use radixscope_model::record::EventTransport;
use radixscope_state::cluster::{Cluster, MAX_WORKERS};
use radixscope_state::per_worker::PerWorker;

/// Departed workers that are remembered, so that a metric that never drops them does not bring them back: those of a few
/// hundred rollouts, 2 MiB.
const MAX_DEPARTED: usize = 1 << 16;

/// Pairs of namespace and component that are remembered.
const MAX_NAMES: usize = 1 << 12;

pub(super) struct Interner {
    /// Indices; of a worker that the state has forgotten until another one has its slot.
    by_id: HashMap<Worker, WorkerIx>,
    /// Namespaces and components of workers, each pair once.
    names: IndexSet<(Box<str>, Box<str>), hashbrown::DefaultHashBuilder>,
    workers: PerWorker<InternedWorker>,
    departed: IndexSet<Worker, hashbrown::DefaultHashBuilder>,
    /// Most slots.
    slots: usize,
    /// The one that was looked up last: consecutive messages are mostly about one worker.
    last: Option<(Worker, WorkerIx)>,
}

/// When and to which state a message shows that a worker is there.
#[derive(Clone, Copy)]
pub(super) struct Presence<'c> {
    pub(super) cluster: &'c Cluster,
    /// `None`: it may name workers that left long ago, so that none gives its slot to it.
    pub(super) at: Option<Millis>,
}

#[derive(Default)]
struct InternedWorker {
    id: Option<Worker>,
    /// When a message named it last, as far as that shows that it is present.
    mentioned: Millis,
    /// Index of its namespace and component, as far as reported.
    named: Option<u32>,
    /// The subject through which a message named it last, and whether its names were slugs: all that such a message shows of the
    /// worker is recorded.
    recorded_through: Option<(Arc<Subject>, bool)>,
    /// Ways its KV events come, one bit each.
    transports: u8,
    last_event_id: Option<u64>,
    /// Number of the message that its last event was in, counted over all sources.
    last_message: u64,
}

impl Default for Interner {
    fn default() -> Self {
        Self::with_slots(MAX_WORKERS)
    }
}

impl Interner {
    /// For so many workers at a time, at most [`MAX_WORKERS`].
    pub(super) fn with_slots(slots: usize) -> Self {
        Self {
            by_id: HashMap::new(),
            names: IndexSet::default(),
            workers: PerWorker::default(),
            departed: IndexSet::default(),
            slots: slots.min(MAX_WORKERS),
            last: None,
        }
    }

    /// Resumes with the workers of a restored state; nothing was received since `until`.
    pub(super) fn resume(&mut self, until: Millis, cluster: &Cluster) {
        for (worker, state) in cluster.workers().indexed() {
            self.by_id.insert(state.id, worker);
            *self.workers.of(worker) =
                InternedWorker { id: Some(state.id), mentioned: until, ..InternedWorker::default() };
        }
        self.departed.extend(cluster.departed().map(|(_, state)| state.id));
        self.departed.retain(|id| !self.by_id.contains_key(id));
    }

    /// Index of a worker, and whether there is news of it to record: that it exists, or of which component it is. A name that
    /// `is_slug` fills a gap and replaces no real one. `None`: it would be one too many.
    pub(super) fn intern(
        &mut self,
        id: Worker,
        name: (&str, &str),
        is_slug: bool,
        presence: Presence<'_>,
    ) -> Option<(WorkerIx, bool)> {
        let Presence { cluster, at } = presence;
        if let Some(worker) = self.known(id, cluster) {
            return Some((worker, self.is_news(worker, name, is_slug)));
        }
        let mentioned = |worker| self.mentioned(worker);
        let replaces: Option<(Millis, &dyn Fn(WorkerIx) -> Millis)> = at.map(|at| (at, &mentioned as _));
        let worker = cluster.next_worker(self.slots, replaces)?;
        self.take_slot(worker, id, name);
        Some((worker, true))
    }

    fn take_slot(&mut self, worker: WorkerIx, id: Worker, (namespace, component): (&str, &str)) {
        let named = self.name((namespace.into(), component.into()));
        let before = self.workers.in_slot(worker.slot()).and_then(|(ix, known)| Some((known.id?, ix)));
        *self.workers.of(worker) = InternedWorker { id: Some(id), named, ..InternedWorker::default() };
        // One that came back meanwhile has another index.
        if let Some((before, _)) = before.filter(|(before, ix)| self.by_id.get(before) == Some(ix)) {
            self.by_id.remove(&before);
            self.departed.insert(before);
        }
        self.by_id.insert(id, worker);
        self.departed.swap_remove(&id);
        self.last = Some((id, worker));
        if self.departed.len() > MAX_DEPARTED {
            self.departed.drain(..MAX_DEPARTED / 2);
        }
    }

    /// Takes in names of a known worker; whether they are news.
    fn is_news(&mut self, worker: WorkerIx, (namespace, component): (&str, &str), is_slug: bool) -> bool {
        let named = self.workers.get(worker).and_then(|known| known.named);
        let known = named.and_then(|name| self.names.get_index(name as usize));
        let (known_namespace, known_component) = known.map_or(("", ""), |(n, c)| (&**n, &**c));
        if known.is_some() && known_component == component && known_namespace == namespace {
            return false;
        }
        let of = |known: &str, new: &str| match new.is_empty() || (is_slug && !known.is_empty()) {
            true => None,
            false => (known != new).then(|| Box::from(new)),
        };
        let changed = (of(known_namespace, namespace), of(known_component, component));
        if changed == (None, None) {
            return false;
        }
        let pair = (
            changed.0.unwrap_or_else(|| known_namespace.into()),
            changed.1.unwrap_or_else(|| known_component.into()),
        );
        let name = self.name(pair);
        if let Some(known) = self.workers.get_mut(worker) {
            (known.named, known.recorded_through) = (name, None);
        }
        true
    }

    /// Index of a worker of which all is recorded that messages through this subject show: no names need to be compared.
    #[inline]
    pub(super) fn recorded_through(
        &mut self,
        id: Worker,
        subject: &Arc<Subject>,
        is_slug: bool,
        cluster: &Cluster,
    ) -> Option<WorkerIx> {
        let worker = self.known(id, cluster)?;
        let (known, was_slug) = self.workers.get(worker)?.recorded_through.as_ref()?;
        (Arc::ptr_eq(known, subject) && *was_slug == is_slug).then_some(worker)
    }

    /// The same for an event that came at `at` by a way that is recorded of the worker too: nothing but its time needs to be noted.
    #[inline]
    pub(super) fn known_of_event(
        &mut self,
        id: Worker,
        (subject, is_slug): (&Arc<Subject>, bool),
        transport: EventTransport,
        at: Millis,
        cluster: &Cluster,
    ) -> Option<WorkerIx> {
        let worker = self.known(id, cluster)?;
        let known = self.workers.get_mut(worker)?;
        let (through, was_slug) = known.recorded_through.as_ref()?;
        let is_recorded = Arc::ptr_eq(through, subject)
            && *was_slug == is_slug
            && known.transports & transport_bit(transport) != 0;
        if !is_recorded {
            return None;
        }
        known.mentioned = at.max(known.mentioned);
        Some(worker)
    }

    /// A message through this subject named the worker, and what it shows is recorded. The subject stays shared, so that no other
    /// one has its address.
    pub(super) fn note_recorded_through(&mut self, worker: WorkerIx, subject: &Arc<Subject>, is_slug: bool) {
        if let Some(known) = self.workers.get_mut(worker) {
            known.recorded_through = Some((Arc::clone(subject), is_slug));
        }
    }

    /// Index of a pair of names. Beyond the limit names are reported again, which costs only time.
    fn name(&mut self, pair: (Box<str>, Box<str>)) -> Option<u32> {
        if self.names.len() == MAX_NAMES {
            self.names.clear();
            self.workers
                .iter_mut()
                .for_each(|(_, known)| (known.named, known.recorded_through) = (None, None));
        }
        Some(self.names.insert_full(pair).0 as u32)
    }

    /// A message named the worker at `at`.
    pub(super) fn mention(&mut self, worker: WorkerIx, at: Millis) {
        if let Some(known) = self.workers.get_mut(worker) {
            known.mentioned = at.max(known.mentioned);
        }
    }

    /// When a message named the worker last.
    pub(super) fn mentioned(&self, worker: WorkerIx) -> Millis {
        self.workers.get(worker).map_or(Millis(0), |known| known.mentioned)
    }

    /// Whether the worker departed and is forgotten.
    pub(super) fn has_departed(&self, id: Worker, cluster: &Cluster) -> bool {
        self.departed.contains(&id)
            || self.by_id.get(&id).is_some_and(|&worker| cluster.workers().get(worker).is_none())
    }

    /// Whether an event of `worker` came this way for the first time.
    pub(super) fn comes_newly_by(&mut self, worker: WorkerIx, transport: EventTransport) -> bool {
        let Some(known) = self.workers.get_mut(worker) else { return false };
        let is_new = known.transports & transport_bit(transport) == 0;
        known.transports |= transport_bit(transport);
        is_new
    }

    /// Entries in each store that is to be as large as the workers that are there or left last.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> [(&'static str, usize); 1] {
        [("ids", self.by_id.len())]
    }

    /// Index of a worker that the state has.
    #[inline]
    pub(super) fn known(&mut self, id: Worker, cluster: &Cluster) -> Option<WorkerIx> {
        let again = self.last.filter(|(last, _)| *last == id).map(|(_, worker)| worker);
        let worker = again.or_else(|| self.by_id.get(&id).copied())?;
        cluster.workers().get(worker)?;
        self.last = Some((id, worker));
        Some(worker)
    }

    /// Index of a worker, also of one that the state may have forgotten since.
    pub(super) fn last_known(&self, id: Worker) -> Option<WorkerIx> {
        self.by_id.get(&id).copied()
    }

    /// The only rank of a worker, if it has one.
    pub(super) fn only_rank(&self, id: WorkerId) -> Option<WorkerIx> {
        let mut ranks = self.by_id.iter().filter(|(worker, _)| worker.id == id).map(|(_, &ix)| ix);
        ranks.next().filter(|_| ranks.next().is_none())
    }

    /// Events lost before `event_id` of message number `now`, where ids are contiguous, and the number of the message that the
    /// worker's last event was in. Ids that start again are a worker that did.
    #[inline]
    pub(super) fn event_id(&mut self, worker: WorkerIx, event_id: u64, now: u64) -> (u64, u64) {
        let Some(known) = self.workers.get_mut(worker) else { return (0, 0) };
        let last = known.last_event_id.replace(event_id);
        let lost = last.and_then(|last| event_id.checked_sub(last)).map_or(0, |step| step.saturating_sub(1));
        (lost, std::mem::replace(&mut known.last_message, now))
    }
}

const fn transport_bit(transport: EventTransport) -> u8 {
    1 << transport as u8
}

/// The ranks of a worker that are known, by slot.
pub(super) fn ranks_of(id: WorkerId, cluster: &Cluster) -> Vec<(Worker, WorkerIx)> {
    let ranks = cluster.workers().indexed().filter(|(_, state)| state.id.id == id);
    ranks.map(|(worker, state)| (state.id, worker)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::Seq;
    use radixscope_model::record::{Entry, Record};

    fn subject(component: &str) -> Arc<Subject> {
        let text = format!("namespace.dynamo.component.{component}.kv-events");
        Arc::new(radixscope_dynamo::subject::parse(&text).expect("one of Dynamo's"))
    }

    #[test]
    fn names_are_compared_again_once_another_subject_has_changed_them() {
        let (mut interner, mut cluster) = (Interner::default(), Cluster::default());
        let (id, backend, prefill) = (Worker::new(7, 0), subject("backend"), subject("prefill"));
        let mut mention = |subject: &Arc<Subject>| {
            if let Some(worker) = interner.recorded_through(id, subject, false, &cluster) {
                return (worker, false, true);
            }
            let (namespace, component) = (&*subject.namespace, &*subject.component);
            let presence = Presence { cluster: &cluster, at: Some(Millis(1)) };
            let (worker, is_news) =
                interner.intern(id, (namespace, component), false, presence).expect("room");
            if is_news {
                let record = Record::new_worker(worker, id, namespace, component);
                cluster.fold(Seq(1), &Entry { at_ms: Millis(1), record });
            }
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
