//! A value for each worker, found by the worker's index: one table for everything that is stored beside the workers. A value
//! belongs to one worker alone: the next worker of the slot begins with the default, and whoever had the slot before has none.
//! Must not know what it holds.

use serde::{Deserialize, Serialize};

use radixscope_model::id::{Slot, WorkerIx};

/// Values by worker; bounded, because slots are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PerWorker<T> {
    slots: Vec<Option<(WorkerIx, T)>>,
    /// Where changes go that are about a worker that has its slot no more.
    #[serde(skip)]
    discarded: T,
}

impl<T: Default> Default for PerWorker<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), discarded: T::default() }
    }
}

impl<T: PartialEq> PartialEq for PerWorker<T> {
    fn eq(&self, other: &Self) -> bool {
        self.slots == other.slots
    }
}

impl<T: Default> PerWorker<T> {
    /// The value of a worker that was named before.
    #[inline]
    pub fn get(&self, worker: WorkerIx) -> Option<&T> {
        let (of, value) = self.slots.get(worker.slot().at())?.as_ref()?;
        (*of == worker).then_some(value)
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, worker: WorkerIx) -> Option<&mut T> {
        let (of, value) = self.slots.get_mut(worker.slot().at())?.as_mut()?;
        (*of == worker).then_some(value)
    }

    /// The value of a worker, the default at first. Of one that has its slot no more, a value that is dropped.
    #[inline]
    pub fn of(&mut self, worker: WorkerIx) -> &mut T {
        let at = worker.slot().at();
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        let (of, value) = self.slots[at].get_or_insert_with(|| (worker, T::default()));
        if *of < worker {
            (*of, *value) = (worker, T::default());
        }
        if *of == worker {
            return value;
        }
        self.discarded = T::default();
        &mut self.discarded
    }

    /// The value of whoever had a slot last.
    pub fn in_slot(&self, slot: Slot) -> Option<(WorkerIx, &T)> {
        self.slots.get(slot.at())?.as_ref().map(|(worker, value)| (*worker, value))
    }

    /// Takes the value of a worker out.
    pub fn take(&mut self, worker: WorkerIx) -> Option<T> {
        let slot = self.slots.get_mut(worker.slot().at())?;
        slot.take_if(|(of, _)| *of == worker).map(|(_, value)| value)
    }

    /// All values, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (WorkerIx, &T)> {
        self.slots.iter().flatten().map(|(worker, value)| (*worker, value))
    }

    /// All values, by slot, to change them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (WorkerIx, &mut T)> {
        self.slots.iter_mut().flatten().map(|(worker, value)| (*worker, value))
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_worker_of_a_slot_begins_anew_and_the_one_before_has_nothing_any_more() {
        let mut values = PerWorker::<u32>::default();
        let first = WorkerIx(3);
        let second = first.next().expect("a second one");
        *values.of(first) += 7;
        assert_eq!((values.get(first), values.get(second)), (Some(&7), None));

        *values.of(second) += 8;
        *values.of(first) += 9;
        assert_eq!(*values.of(first), 0);
        assert_eq!((values.get(first).copied(), values.take(first)), (None, None));
        assert_eq!((values.take(second), values.is_empty()), (Some(8), true));
    }
}
