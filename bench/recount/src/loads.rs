//! What the messages about requests make each worker do, replayed in order, slowly and plainly.

use std::collections::{BTreeMap, BTreeSet};

use crate::Worker;

/// A request's choice: the request's id, and the worker.
pub(crate) type Choice = (String, Worker);

/// Requests that run.
#[derive(Default)]
pub(crate) struct Loads {
    running: BTreeMap<Choice, Running>,
}

struct Running {
    chain: Vec<u64>,
    /// Of its prompt that is not computed.
    prefill_tokens: u64,
}

impl Loads {
    /// Prompt tokens that wait on a worker.
    pub(crate) fn waiting_tokens(&self, worker: Worker) -> u64 {
        self.on(worker).map(|running| running.prefill_tokens).sum()
    }

    /// One more request; gives the different blocks of all that run there, this one among them.
    pub(crate) fn add(&mut self, of: &Choice, chain: &[u64], prefill_tokens: u64) -> u64 {
        self.running.insert(of.clone(), Running { chain: chain.to_vec(), prefill_tokens });
        let blocks: BTreeSet<u64> = self.on(of.1).flat_map(|running| running.chain.iter().copied()).collect();
        blocks.len() as u64
    }

    /// Its prompt is computed.
    pub(crate) fn prefilled(&mut self, of: &Choice) {
        if let Some(running) = self.running.get_mut(of) {
            running.prefill_tokens = 0;
        }
    }

    /// It is over.
    pub(crate) fn freed(&mut self, of: &Choice) {
        self.running.remove(of);
    }

    fn on(&self, worker: Worker) -> impl Iterator<Item = &Running> {
        self.running.iter().filter(move |((_, of), _)| *of == worker).map(|(_, running)| running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_two_requests_count_once_and_tokens_until_they_are_computed() {
        let mut loads = Loads::default();
        let (one, two, other) = (("a".into(), (7, 0)), ("b".to_owned(), (7, 0)), ("a".to_owned(), (8, 0)));
        assert_eq!(loads.add(&one, &[1, 2, 3], 48), 3);
        assert_eq!(loads.waiting_tokens((7, 0)), 48);
        assert_eq!(loads.add(&two, &[1, 2, 4], 20), 4);
        assert_eq!(loads.add(&other, &[9], 5), 1);
        loads.prefilled(&one);
        assert_eq!((loads.waiting_tokens((7, 0)), loads.waiting_tokens((8, 0))), (20, 5));
        loads.freed(&two);
        assert_eq!((loads.waiting_tokens((7, 0)), loads.add(&two, &[4], 0)), (0, 4));
    }
}
