//! Deduplicates a publisher's messages across brokers by sequence number.

use std::collections::HashMap;

use radixscope_model::record::Topic;

/// How far a broker may lag behind another, in messages of one publisher: half a minute of a busy one.
const WINDOW: u64 = 1_024;
/// Publishers per generation; two generations are kept, and publishers without recent messages are dropped.
const MAX_PUBLISHERS: usize = 8_192;

type StreamKey = (Topic, u64);

/// See the module.
#[derive(Default)]
pub(super) struct Received {
    lately: HashMap<StreamKey, Window>,
    before: HashMap<StreamKey, Window>,
}

/// The latest sequence numbers, as a bit set.
#[derive(Clone)]
struct Window {
    newest: u64,
    bits: Box<[u64; (WINDOW / 64) as usize]>,
}

impl Received {
    /// Whether a message is new. One older than the window counts as a duplicate, except sequence 0 of a restarted publisher.
    pub(super) fn is_new(&mut self, publisher: StreamKey, sequence: u64) -> bool {
        if let Some(window) = self.lately.get_mut(&publisher) {
            return window.is_new(sequence);
        }
        if self.lately.len() == MAX_PUBLISHERS {
            self.before = std::mem::take(&mut self.lately);
        }
        let (window, is_new) = match self.before.remove(&publisher) {
            Some(mut window) => {
                let is_new = window.is_new(sequence);
                (window, is_new)
            }
            None => (Window::from(sequence), true),
        };
        self.lately.insert(publisher, window);
        is_new
    }
}

impl Window {
    fn from(newest: u64) -> Self {
        let mut window = Self { newest, bits: Box::default() };
        window.mark(newest);
        window
    }

    fn is_new(&mut self, sequence: u64) -> bool {
        if sequence > self.newest {
            let ahead = sequence - self.newest;
            if ahead >= WINDOW {
                self.bits.fill(0);
            } else {
                (self.newest + 1..=sequence).for_each(|passed| self.unmark(passed));
            }
            self.newest = sequence;
        } else if self.newest - sequence >= WINDOW {
            if sequence == 0 {
                *self = Self::from(0);
                return true;
            }
            return false;
        }
        self.mark(sequence)
    }

    /// Whether it was not marked.
    fn mark(&mut self, sequence: u64) -> bool {
        let (word, bit) = place(sequence);
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }

    fn unmark(&mut self, sequence: u64) {
        let (word, bit) = place(sequence);
        self.bits[word] &= !bit;
    }
}

fn place(sequence: u64) -> (usize, u64) {
    let at = sequence % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StreamKey = (Topic::KvEvents, 7);

    #[test]
    fn each_message_is_new_once_in_whatever_order() {
        let mut received = Received::default();
        let mut is_new = |sequence| received.is_new(ONE, sequence);
        assert!(is_new(5) && is_new(6) && is_new(9));
        assert!(!is_new(5) && !is_new(6) && !is_new(9));
        assert!(is_new(7) && is_new(8) && !is_new(8) && is_new(4));
        // A jump beyond the window, and one that ends on the place of an earlier number.
        assert!(is_new(9 + 3 * WINDOW) && !is_new(9 + 3 * WINDOW) && is_new(8 + 3 * WINDOW));
        assert!(!is_new(9), "older than the window");
    }

    #[test]
    fn publishers_and_topics_count_apart_and_may_begin_again() {
        let mut received = Received::default();
        assert!(
            received.is_new(ONE, 3)
                && received.is_new((Topic::KvMetrics, 7), 3)
                && received.is_new((Topic::KvEvents, 8), 3)
        );
        assert!(
            received.is_new(ONE, 5_000)
                && received.is_new(ONE, 0)
                && !received.is_new(ONE, 0)
                && received.is_new(ONE, 1)
        );
    }

    #[test]
    fn the_latest_publishers_are_remembered_and_no_more() {
        let mut received = Received::default();
        for publisher in 0..5 * MAX_PUBLISHERS as u64 {
            assert!(received.is_new((Topic::KvEvents, publisher), 1));
            assert!(received.lately.len() + received.before.len() <= 2 * MAX_PUBLISHERS);
        }
        assert!(!received.is_new((Topic::KvEvents, 5 * MAX_PUBLISHERS as u64 - 1), 1));
    }
}
