//! What is to happen when. Events of one time happen in the order in which they were planned.
//! Must not know what the events mean.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events to come, and the time of the last one that came, in microseconds since the start.
#[derive(Debug)]
pub(super) struct EventQueue<E> {
    now_us: u64,
    /// The order of the events themselves decides nothing: every one has its own number.
    planned: BinaryHeap<Reverse<(u64, u64, E)>>,
    count: u64,
}

impl<E: Copy + Ord> EventQueue<E> {
    pub(super) fn new() -> Self {
        Self { now_us: 0, planned: BinaryHeap::new(), count: 0 }
    }

    /// Time of the last event, in microseconds since the start.
    pub(super) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Plans an event `us` microseconds from now.
    pub(super) fn after(&mut self, us: u64, event: E) {
        self.planned.push(Reverse((self.now_us + us, self.count, event)));
        self.count += 1;
    }

    /// It is so many microseconds since the start, unless it is later already.
    pub(super) fn pass_to(&mut self, us: u64) {
        self.now_us = self.now_us.max(us);
    }

    /// The next event up to and including `until_us`, and it is then.
    pub(super) fn next(&mut self, until_us: u64) -> Option<E> {
        let &Reverse((at_us, _, event)) = self.planned.peek()?;
        if at_us > until_us {
            return None;
        }
        self.planned.pop();
        self.now_us = at_us;
        Some(event)
    }
}
