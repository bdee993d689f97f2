//! The prompts of the latest requests, for playing them again: bounded, shared prefixes kept once.

use std::collections::VecDeque;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use radixscope_model::id::{DecisionId, Millis};

/// Requests kept.
pub const MAX_ARRIVALS: usize = 10_000;
/// Distinct blocks kept: about 40 MiB with their index.
pub const MAX_ARRIVAL_BLOCKS: usize = 1 << 20;

/// A block before the first one.
const NONE: u32 = u32::MAX;

/// A request as it arrived at the router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// Which decision it led to.
    pub decision: DecisionId,
    /// When it arrived.
    pub at_ms: Millis,
    /// Prompt length in tokens; `None`: only its full blocks are known.
    pub isl_tokens: Option<u64>,
    /// Output tokens, once they are known.
    pub output_tokens: Option<u64>,
    /// Last full block of its prompt, an index into the blocks; of an empty prompt nothing.
    leaf: u32,
    /// Full blocks of its prompt.
    pub blocks: u32,
}

/// Arrivals with their prompts, as they travel to whoever plays them again.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Arrivals {
    latest: VecDeque<Arrival>,
    /// The block before, and the chain hash, of every block.
    blocks: Vec<(u32, u64)>,
    #[serde(skip)]
    index: HashMap<(u32, u64), u32>,
}

impl Arrivals {
    /// Remembers a request; `chain` are the chain hashes of its prompt's full blocks (reference §5.10).
    pub fn push(&mut self, decision: DecisionId, at_ms: Millis, isl_tokens: Option<u64>, chain: &[u64]) {
        if chain.len() > MAX_ARRIVAL_BLOCKS / 4 || self.of(decision).is_some() {
            return;
        }
        if self.latest.len() == MAX_ARRIVALS {
            self.latest.pop_front();
        }
        if self.blocks.len() + chain.len() > MAX_ARRIVAL_BLOCKS {
            self.forget_older_half();
        }
        let leaf = self.insert(chain);
        let blocks = chain.len() as u32;
        // Where the line of the choice does not name the request, its prompt may be known after a later one's.
        let place = self.latest.partition_point(|arrival| arrival.decision < decision);
        self.latest.insert(place, Arrival { decision, at_ms, isl_tokens, output_tokens: None, leaf, blocks });
    }

    /// What became known of a request later.
    pub fn finished(&mut self, decision: DecisionId, output_tokens: u64) {
        if let Ok(at) = self.latest.binary_search_by_key(&decision, |arrival| arrival.decision) {
            self.latest[at].output_tokens = Some(output_tokens);
        }
    }

    /// In order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arrival> {
        self.latest.iter()
    }

    /// The last `count` arrivals with the blocks of their prompts and no others, as they travel.
    pub fn latest(&self, count: usize) -> Self {
        self.latest_of(count, |_| true)
    }

    /// The last `count` of those that are meant.
    pub fn latest_of(&self, count: usize, is_meant: impl Fn(&Arrival) -> bool) -> Self {
        let mut latest: VecDeque<Arrival> =
            self.latest.iter().rev().filter(|arrival| is_meant(arrival)).take(count).copied().collect();
        latest.make_contiguous().reverse();
        let mut is_used = vec![false; self.blocks.len()];
        for arrival in &latest {
            let mut at = arrival.leaf;
            while let Some(used) = is_used.get_mut(at as usize).filter(|used| !**used) {
                *used = true;
                at = self.blocks[at as usize].0;
            }
        }
        // A block's predecessor comes before it, so one pass moves both.
        let mut moved = vec![NONE; self.blocks.len()];
        let to = |moved: &[u32], at: u32| moved.get(at as usize).copied().unwrap_or(NONE);
        let mut blocks = Vec::with_capacity(is_used.iter().filter(|used| **used).count());
        for (at, &(before, hash)) in self.blocks.iter().enumerate().filter(|(at, _)| is_used[*at]) {
            moved[at] = blocks.len() as u32;
            blocks.push((to(&moved, before), hash));
        }
        latest.iter_mut().for_each(|arrival| arrival.leaf = to(&moved, arrival.leaf));
        Self { latest, blocks, index: HashMap::new() }
    }

    /// The one that led to `decision`.
    pub fn of(&self, decision: DecisionId) -> Option<&Arrival> {
        let at = self.latest.binary_search_by_key(&decision, |arrival| arrival.decision).ok()?;
        self.latest.get(at)
    }

    /// Chain hashes of the full blocks of a prompt, from the first on, written to `into`.
    pub fn prompt(&self, arrival: &Arrival, into: &mut Vec<u64>) {
        into.clear();
        let mut at = arrival.leaf;
        // A block's predecessor always has a smaller index, so this ends whatever was received.
        while let Some(&(before, hash)) = self.blocks.get(at as usize) {
            into.push(hash);
            if before >= at {
                break;
            }
            at = before;
        }
        into.reverse();
    }

    fn insert(&mut self, chain: &[u64]) -> u32 {
        let Self { blocks, index, .. } = self;
        chain.iter().fold(NONE, |before, &hash| {
            *index.entry((before, hash)).or_insert_with(|| {
                blocks.push((before, hash));
                blocks.len() as u32 - 1
            })
        })
    }

    /// Blocks are shared, so that they cannot be dropped one by one: what is kept is written anew.
    fn forget_older_half(&mut self) {
        let mut chain = Vec::new();
        let retained = self.latest.split_off(self.latest.len().div_ceil(2));
        let before = std::mem::take(self);
        let mut room = MAX_ARRIVAL_BLOCKS / 2;
        for mut arrival in retained.into_iter().rev() {
            before.prompt(&arrival, &mut chain);
            let blocks = self.blocks.len();
            arrival.leaf = self.insert(&chain);
            let added = self.blocks.len() - blocks;
            if added > room {
                break;
            }
            room -= added;
            self.latest.push_front(arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(arrivals: &Arrivals, id: u64) -> Vec<u64> {
        let mut into = Vec::new();
        arrivals.prompt(arrivals.of(DecisionId(id)).expect("kept"), &mut into);
        into
    }

    #[test]
    fn shared_prefixes_are_kept_once_and_prompts_come_back_whole() {
        let mut arrivals = Arrivals::default();
        arrivals.push(DecisionId(1), Millis(1), None, &[1, 2, 3]);
        arrivals.push(DecisionId(2), Millis(2), Some(70), &[1, 2, 3, 4]);
        arrivals.push(DecisionId(3), Millis(3), None, &[]);
        assert_eq!(arrivals.blocks.len(), 4);
        assert_eq!((prompt(&arrivals, 1), prompt(&arrivals, 2)), (vec![1, 2, 3], vec![1, 2, 3, 4]));
        assert!(prompt(&arrivals, 3).is_empty());
        let bytes = postcard::to_allocvec(&arrivals).expect("encodes");
        let read: Arrivals = postcard::from_bytes(&bytes).expect("decodes");
        assert_eq!(prompt(&read, 2), [1, 2, 3, 4]);
    }

    #[test]
    fn the_latest_travel_with_their_own_blocks_alone() {
        let mut arrivals = Arrivals::default();
        arrivals.push(DecisionId(1), Millis(1), None, &[7, 8, 9]);
        arrivals.push(DecisionId(2), Millis(2), Some(70), &[1, 2, 3]);
        arrivals.push(DecisionId(3), Millis(3), None, &[1, 2, 4]);
        arrivals.push(DecisionId(4), Millis(4), None, &[]);
        let latest = arrivals.latest(3);
        assert_eq!((latest.iter().len(), latest.blocks.len()), (3, 4));
        assert_eq!((prompt(&latest, 2), prompt(&latest, 3)), (vec![1, 2, 3], vec![1, 2, 4]));
        assert!(prompt(&latest, 4).is_empty() && latest.of(DecisionId(1)).is_none());
        assert_eq!(arrivals.latest(9).blocks, arrivals.blocks);
    }

    #[test]
    fn a_flood_of_new_blocks_costs_the_older_arrivals_and_never_more_memory() {
        let mut arrivals = Arrivals::default();
        for id in 1..=3_000_u64 {
            let chain: Vec<u64> = (0..1_000).map(|i| id * 1_000 + i).collect();
            arrivals.push(DecisionId(id), Millis(id), None, &chain);
            assert!(arrivals.blocks.len() <= MAX_ARRIVAL_BLOCKS);
        }
        assert!(arrivals.iter().len() >= 500, "{}", arrivals.iter().len());
        assert_eq!(prompt(&arrivals, 3_000).len(), 1_000);
        assert_eq!(prompt(&arrivals, 3_000)[0], 3_000_000);
        assert!(arrivals.of(DecisionId(1)).is_none());
    }

    #[test]
    fn damaged_arrivals_are_read_without_end_or_panic() {
        let mut arrivals = Arrivals::default();
        arrivals.push(DecisionId(1), Millis(1), None, &[1, 2]);
        arrivals.blocks[0].0 = 1;
        assert_eq!(prompt(&arrivals, 1), [1, 2]);
        arrivals.latest[0].leaf = 77;
        assert!(prompt(&arrivals, 1).is_empty());
    }
}
