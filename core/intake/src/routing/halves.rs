//! The messages about the two choices of one request, where prefill and decode are apart (reference: topologies §1): the
//! one about prefill tells how many tokens are to be computed, the one about decode which blocks the prompt has. Together
//! they tell its length and what the prefill worker held of it. They come on two subjects, in either order.

use std::collections::VecDeque;

use radixscope_dynamo::active_sequence::AddRequest;
use radixscope_model::id::Millis;
use radixscope_model::moment::Moment;

use super::joiner::Placed;

/// Requests of which one message has come: the other follows within milliseconds, and of an aggregated deployment that does
/// not report what is to prefill it never comes.
const MAX_REQUESTS: usize = 1 << 10;
/// Blocks of their prompts together: 8 MiB.
const MAX_BLOCKS: usize = 1 << 20;

/// A choice as its message tells it.
#[derive(Clone, Debug)]
pub(super) struct Half {
    pub(super) placed: Placed,
    /// When the router chose.
    pub(super) at: Moment,
    pub(super) received_ms: Millis,
    /// Prompt tokens that waited on the chosen worker before.
    pub(super) waiting_tokens: u64,
    pub(super) request: AddRequest,
}

impl Half {
    fn blocks(&self) -> usize {
        self.request.token_sequence.as_ref().map_or(0, Vec::len)
    }

    /// Whether the other one tells what this one does not.
    fn completes(&self, other: &Self) -> bool {
        self.placed.id != other.placed.id
            && self.request.token_sequence.is_some() != other.request.token_sequence.is_some()
    }
}

/// Halves whose others have not come.
#[derive(Default)]
pub(super) struct Halves {
    waiting: VecDeque<(Box<str>, Half)>,
    blocks: usize,
}

impl Halves {
    /// Takes a half; gives the other one if it has come, and else keeps this one.
    pub(super) fn take(&mut self, request_id: &str, half: &Half) -> Option<Half> {
        let is_other = |(of, known): &(Box<str>, Half)| **of == *request_id && known.completes(half);
        if let Some(at) = self.waiting.iter().rposition(is_other) {
            let (_, other) = self.waiting.remove(at)?;
            self.blocks -= other.blocks();
            return Some(other);
        }
        self.waiting.push_back((request_id.into(), half.clone()));
        self.blocks += half.blocks();
        while self.waiting.len() > MAX_REQUESTS || self.blocks > MAX_BLOCKS {
            let Some((_, oldest)) = self.waiting.pop_front() else { break };
            self.blocks -= oldest.blocks();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, PoolIx, WorkerIx};

    fn half(id: u64, chain: Option<Vec<u64>>) -> Half {
        Half {
            placed: Placed { id: DecisionId(id), worker: WorkerIx(id as u32), pool: PoolIx(id as u16) },
            at: Moment(id),
            received_ms: Millis(id),
            waiting_tokens: 0,
            request: AddRequest { token_sequence: chain, ..AddRequest::default() },
        }
    }

    #[test]
    fn two_halves_meet_in_either_order_and_two_of_a_kind_do_not() {
        let mut halves = Halves::default();
        assert!(halves.take("a", &half(1, None)).is_none());
        assert!(halves.take("b", &half(2, Some(vec![7]))).is_none());
        assert!(halves.take("a", &half(3, None)).is_none());
        assert_eq!(halves.take("b", &half(4, None)).map(|other| other.placed.id), Some(DecisionId(2)));
        assert_eq!(halves.blocks, 0);
        assert_eq!(
            halves.take("a", &half(5, Some(vec![]))).map(|other| other.placed.id),
            Some(DecisionId(3))
        );
    }

    #[test]
    fn those_that_never_meet_stay_bounded() {
        let mut halves = Halves::default();
        for n in 0..3 * MAX_REQUESTS as u64 {
            halves.take(&n.to_string(), &half(n, Some(vec![n; 2_048])));
        }
        assert!(halves.waiting.len() <= MAX_REQUESTS && halves.blocks <= MAX_BLOCKS);
    }
}
