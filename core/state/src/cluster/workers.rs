//! The workers of the state, by slot: those that are there, and of those that left the latest ones. A slot passes from worker
//! to worker, an index never does. Must not know what is stored of workers elsewhere.

use std::ops::Index;

use serde::{Deserialize, Serialize};

use super::{MAX_WORKERS, WorkerState};
use radixscope_model::id::{Millis, Slot, Worker, WorkerIx};
use radixscope_model::record::DepartureCause;

/// A worker that no message named for this long may have left: longer than a request lasts, and than an idle cluster is
/// silent between two reports of load.
pub const SILENT_AFTER_MS: u64 = 600_000;
/// Workers that left and are retained with all that is known of them: the latest rollout of a usual deployment stays visible.
/// One costs about 20 kB by the sizes of its parts: an hour of rates and load, its part of each keyframe, samples for the checks.
const MAX_LEFT: usize = 128;

/// Workers by slot. Slots of forgotten workers are free.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Workers {
    slots: Vec<SlotState>,
    /// How many are retained, and how many of those left. Not written: it follows from the slots.
    #[serde(skip)]
    retained: usize,
    #[serde(skip)]
    left: usize,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct SlotState {
    /// Who had the slot last.
    ix: WorkerIx,
    state: Option<Box<WorkerState>>,
}

/// What an index that a record gives to a worker means.
pub(super) enum Admission {
    /// The worker has it already.
    Known,
    /// It is new; so far this worker has the slot.
    New(Option<WorkerIx>),
    /// Another worker had it, or there is no such slot.
    Invalid,
}

impl Workers {
    /// One worker. `None`: it was never introduced, or is forgotten.
    #[inline]
    pub fn get(&self, worker: WorkerIx) -> Option<&WorkerState> {
        let slot = self.slots.get(worker.slot().at())?;
        if slot.ix == worker { slot.state.as_deref() } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, worker: WorkerIx) -> Option<&mut WorkerState> {
        let slot = self.slots.get_mut(worker.slot().at())?;
        if slot.ix == worker { slot.state.as_deref_mut() } else { None }
    }

    /// Who has a slot.
    pub fn in_slot(&self, slot: Slot) -> Option<WorkerIx> {
        let slot = self.slots.get(slot.at())?;
        slot.state.is_some().then_some(slot.ix)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.retained
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.retained == 0
    }

    /// How many slots are or were in use: the length of a store by slot.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The workers, by slot.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WorkerState> + Clone {
        self.slots.iter().filter_map(|slot| slot.state.as_deref())
    }

    /// The workers with their indices, by slot.
    pub fn indexed(&self) -> impl DoubleEndedIterator<Item = (WorkerIx, &WorkerState)> + Clone {
        self.slots.iter().filter_map(|slot| Some((slot.ix, slot.state.as_deref()?)))
    }

    /// Their indices, by slot.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = WorkerIx> + Clone {
        self.indexed().map(|(worker, _)| worker)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (WorkerIx, &mut WorkerState)> {
        self.slots.iter_mut().filter_map(|slot| Some((slot.ix, slot.state.as_deref_mut()?)))
    }

    /// The index of a worker by its id.
    pub(super) fn find(&self, id: Worker) -> Option<WorkerIx> {
        self.indexed().find(|(_, state)| state.id == id).map(|(worker, _)| worker)
    }

    /// The index for one more worker, with at most so many slots: in a free slot, in a new one, else in that of a worker that
    /// it `replaces`. `None`: all slots are needed.
    pub(super) fn next(
        &self,
        slots: usize,
        replaces: Option<(Millis, &dyn Fn(WorkerIx) -> Millis)>,
    ) -> Option<WorkerIx> {
        let free = || self.slots.iter().filter(|slot| slot.state.is_none()).find_map(|slot| slot.ix.next());
        let new = || {
            let at = self.slots.len();
            (at < slots.min(MAX_WORKERS)).then(|| WorkerIx::first(Slot(at as u16)))
        };
        free()
            .or_else(new)
            .or_else(|| replaces.and_then(|(at, mentioned)| self.to_replace(at, mentioned)?.next()))
    }

    /// The worker that left first, or that no message named for longest, if that is longer than [`SILENT_AFTER_MS`] at `at`.
    fn to_replace(&self, at: Millis, mentioned: &dyn Fn(WorkerIx) -> Millis) -> Option<WorkerIx> {
        if let Some((_, first)) = self.departures().min() {
            return Some(first);
        }
        let last_sign = |(worker, state): (WorkerIx, &WorkerState)| {
            (mentioned(worker).max(state.last_sign_ms.unwrap_or_default()), worker)
        };
        let (last, silent) = self.indexed().map(last_sign).min()?;
        (at.since(last) > SILENT_AFTER_MS).then_some(silent)
    }

    fn departures(&self) -> impl Iterator<Item = (Millis, WorkerIx)> {
        self.indexed().filter_map(|(worker, state)| Some((state.departure?.at_ms, worker)))
    }

    pub(super) fn admission(&self, worker: WorkerIx) -> Admission {
        match self.slots.get(worker.slot().at()) {
            Some(slot) if slot.ix == worker && slot.state.is_some() => Admission::Known,
            Some(slot) if slot.ix < worker => Admission::New(self.in_slot(worker.slot())),
            None if worker.slot().at() == self.slots.len() => Admission::New(None),
            _ => Admission::Invalid,
        }
    }

    /// Takes a worker in whose index is new and whose slot is free.
    pub(super) fn insert(&mut self, worker: WorkerIx, state: WorkerState) {
        let new = SlotState { ix: worker, state: Some(Box::new(state)) };
        match self.slots.get_mut(worker.slot().at()) {
            Some(slot) => *slot = new,
            None => self.slots.push(new),
        }
        self.count();
    }

    /// A worker left.
    pub(super) fn leave(&mut self, worker: WorkerIx, at: Millis, why: DepartureCause) {
        if let Some(state) = self.get_mut(worker).filter(|state| state.departure.is_none()) {
            state.left(at, why);
            self.left += 1;
        }
    }

    /// A worker that left is there again.
    pub(super) fn rejoin(&mut self, worker: WorkerIx, at: Millis) {
        if let Some(state) = self.get_mut(worker).filter(|state| state.departure.is_some()) {
            state.returned(at);
            self.left -= 1;
        }
    }

    /// Workers that left and are to be forgotten: those that left first, if there are more than `MAX_LEFT`.
    pub(super) fn surplus(&self) -> Vec<WorkerIx> {
        let surplus = self.left.saturating_sub(MAX_LEFT);
        if surplus == 0 {
            return Vec::new();
        }
        let mut departures: Vec<_> = self.departures().collect();
        departures.sort();
        departures.into_iter().take(surplus).map(|(_, worker)| worker).collect()
    }

    /// Takes a worker out; its slot is free.
    pub(super) fn remove(&mut self, worker: WorkerIx) -> Option<Box<WorkerState>> {
        let slot = self.slots.get_mut(worker.slot().at()).filter(|slot| slot.ix == worker)?;
        let state = slot.state.take();
        self.count();
        state
    }

    /// Works out what is not written into a snapshot. `false`: a worker stands in a slot that is not its own.
    pub(super) fn restored(&mut self) -> bool {
        self.count();
        self.slots.iter().enumerate().all(|(at, slot)| slot.ix.slot().at() == at)
    }

    fn count(&mut self) {
        self.retained = self.iter().count();
        self.left = self.iter().filter(|state| state.departure.is_some()).count();
    }
}

/// The worker that stands so many places behind the first.
impl Index<usize> for Workers {
    type Output = WorkerState;

    fn index(&self, place: usize) -> &WorkerState {
        match self.iter().nth(place) {
            Some(worker) => worker,
            None => panic!("there are {} workers, none at {place}", self.retained),
        }
    }
}
