//! Which worker each session is bound to, by the messages of routers with session affinity (≥ 1.6). A message names no request:
//! the session of a request comes from its trace or from the log's lines of it, and a binding that was there before the choice
//! is what decided it.
//!
//! A router that binds softly writes the same messages and lines: seen of 1.6.1 and 1.7.0.dev20261026, its cost formula follows the
//! binding too.

use std::collections::VecDeque;

use hashbrown::HashMap;

use radixscope_model::id::WorkerIx;
use radixscope_model::micros::Micros;

/// Sessions that are retained, the newest: more than decisions are, and a router retains 65,536.
const MAX_SESSIONS: usize = 1 << 14;
/// Bindings retained of one session: the present one and those before, because a trace arrives behind a new binding.
const MAX_BINDINGS: usize = 4;

/// A session was bound to a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Binding {
    pub(super) worker: WorkerIx,
    /// The router that made it, and its number there.
    pub(super) number: (Option<u64>, u64),
    /// When a message first reported it, by the router's clock.
    pub(super) first: Micros,
}

/// Bindings of sessions.
#[derive(Default)]
pub(super) struct Sessions {
    bindings: HashMap<Box<str>, Vec<Binding>>,
    /// Oldest first.
    order: VecDeque<Box<str>>,
    /// Whether a log wrote that a request was bound to its worker, as it does where bindings are hard.
    are_hard: bool,
}

impl Sessions {
    /// A message reports a binding. Gives whether it is the first of all.
    pub(super) fn observe(&mut self, session: &str, binding: Binding) -> bool {
        let is_first = self.order.is_empty();
        let Some(known) = self.bindings.get_mut(session) else {
            if self.order.len() == MAX_SESSIONS
                && let Some(oldest) = self.order.pop_front()
            {
                self.bindings.remove(&oldest);
            }
            self.order.push_back(session.into());
            self.bindings.insert(session.into(), vec![binding]);
            return is_first;
        };
        let is_same = |of: &&mut Binding| of.number == binding.number && of.worker == binding.worker;
        if let Some(same) = known.iter_mut().find(is_same) {
            same.first = same.first.min(binding.first);
            return false;
        }
        if known.len() == MAX_BINDINGS {
            known.remove(0);
        }
        known.push(binding);
        false
    }

    /// A log wrote that a request was bound to its worker. Gives whether it is the first time.
    pub(super) fn saw_pinned(&mut self) -> bool {
        !std::mem::replace(&mut self.are_hard, true)
    }

    /// What is known of a session.
    pub(super) fn of(&self, session: &str) -> &[Binding] {
        self.bindings.get(session).map_or(&[][..], Vec::as_slice)
    }

    /// Whether routers bind sessions, so that a choice of which no log says that it was free may have been bound.
    pub(super) fn are_bound(&self) -> bool {
        !self.order.is_empty()
    }

    /// Whether a log would say of a bound choice that it is.
    pub(super) fn are_hard(&self) -> bool {
        self.are_hard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(worker: u32, number: u64, first: u64) -> Binding {
        Binding { worker: WorkerIx(worker), number: (Some(1), number), first: Micros(first) }
    }

    #[test]
    fn a_binding_begins_with_its_earliest_message_and_a_new_one_does_not_replace_it() {
        let mut sessions = Sessions::default();
        assert!(!sessions.are_bound());
        for of in [binding(0, 1, 20), binding(0, 1, 10), binding(0, 1, 30), binding(2, 2, 40)] {
            sessions.observe("a", of);
        }
        assert_eq!(sessions.of("a"), [binding(0, 1, 10), binding(2, 2, 40)]);
        assert_eq!(sessions.of("b"), []);
        for number in 3..=6 {
            sessions.observe("a", binding(0, number, 50));
        }
        assert_eq!(sessions.of("a").len(), MAX_BINDINGS);
        assert_eq!(sessions.of("a")[0].number.1, 3);
    }

    #[test]
    fn the_oldest_session_goes_first() {
        let mut sessions = Sessions::default();
        for n in 0..=MAX_SESSIONS {
            sessions.observe(&n.to_string(), binding(0, 1, 1));
        }
        assert_eq!((sessions.bindings.len(), sessions.order.len()), (MAX_SESSIONS, MAX_SESSIONS));
        assert!(sessions.of("0").is_empty() && !sessions.of("1").is_empty());
    }
}
