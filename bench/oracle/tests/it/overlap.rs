//! After any traffic that engines can make, both trees give every prompt the same overlap; and where Dynamo's tree
//! forgets by design, what still holds.

use std::collections::HashSet;

use dynamo_kv_router::RadixTree;
use proptest::prelude::*;
use radixscope_model::id::{BlockHash, TokensHash, Worker};
use radixscope_oracle::engine::Eviction;
use radixscope_oracle::talk::{Talk, Talks};
use radixscope_oracle::{Change, Event, ours, theirs};
use radixscope_router::hash::chain_hash;
use radixscope_state::tree::Tree;

const WORKERS: u16 = 5;

struct Both {
    ours: Tree,
    theirs: RadixTree,
    workers: Vec<Worker>,
    events: u64,
    /// Per worker every hash it ever removed.
    removed: Vec<HashSet<u64>>,
}

impl Both {
    fn new() -> Self {
        Self {
            ours: Tree::default(),
            theirs: RadixTree::new(),
            workers: (0..WORKERS).map(|w| Worker::new(u64::from(w), 0)).collect(),
            events: 0,
            removed: vec![HashSet::new(); usize::from(WORKERS)],
        }
    }

    /// Both trees apply `event`; says whether theirs took it.
    fn apply(&mut self, event: &Event) -> bool {
        self.events += 1;
        if let Change::Removed(hashes) = &event.change {
            self.removed[usize::from(event.worker)].extend(hashes);
        }
        ours::apply(&mut self.ours, event);
        self.theirs.apply_event(theirs::router_event(event, self.events)).is_ok()
    }

    fn scores(&self, prompt: &[u64]) -> (Vec<u32>, Vec<u32>) {
        let ours = ours::overlap(&self.ours, prompt, self.workers.len());
        (ours, theirs::overlap(&self.theirs, prompt, &self.workers))
    }

    /// Whether `worker` never removed a block of `prompt`.
    fn is_unbroken(&self, worker: usize, prompt: &[u64]) -> bool {
        let mut parent = None;
        prompt.iter().all(|&tokens| {
            let hash = chain_hash(parent, TokensHash(tokens));
            parent = Some(hash);
            !self.removed[worker].contains(&hash.0)
        })
    }
}

fn talk() -> impl Strategy<Value = Talk> {
    (8usize..200, 1usize..5, 1usize..12, 1usize..12, prop_oneof![Just(0u32), 5u32..40]).prop_map(
        |(capacity_blocks, starters, starter_blocks, turn_blocks, clear_every)| Talk {
            workers: WORKERS,
            capacity_blocks,
            starters,
            starter_blocks,
            turn_blocks,
            eviction: Eviction::LeavesFirst,
            clear_every,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn overlap_equals_dynamos_for_every_prompt_and_prefix(
        talk in talk(), seed in any::<u64>(), turns in 1usize..60, gone in proptest::option::of(0..WORKERS),
    ) {
        let mut both = Both::new();
        let mut talks = Talks::new(talk, seed);
        let mut prompts = Vec::new();
        for _ in 0..turns {
            let mut refused = 0;
            prompts.push(talks.turn(&mut |event| refused += u32::from(!both.apply(&event))));
            prop_assert_eq!(refused, 0, "an engine that evicts leaves first tells Dynamo's tree nothing it refuses");
        }
        if let Some(worker) = gone {
            both.theirs.remove_worker(u64::from(worker));
            ours::apply(&mut both.ours, &Event { worker, change: Change::Cleared });
        }
        prompts.extend(ours::paths(&both.ours));
        for prompt in &prompts {
            for len in 0..=prompt.len() {
                let (ours, theirs) = both.scores(&prompt[..len]);
                prop_assert_eq!(ours, theirs);
            }
        }
        prop_assert_eq!(both.ours.totals().unattached, 0);
    }

    #[test]
    fn where_chains_get_holes_dynamo_forgets_and_never_knows_more(
        talk in talk(), seed in any::<u64>(), turns in 1usize..60,
    ) {
        // An engine that evicts prefixes first makes holes. Dynamo's tree then forgets that worker's later blocks of
        // the edge, and refuses what is stored below them (reference §6.3). So there its overlap may be less; where
        // the worker never removed a block of the prompt, it is the same.
        let talk = Talk { eviction: Eviction::PrefixesFirst, clear_every: 0, ..talk };
        let mut both = Both::new();
        let mut talks = Talks::new(talk, seed);
        let mut prompts = Vec::new();
        for _ in 0..turns {
            prompts.push(talks.turn(&mut |event| { both.apply(&event); }));
        }
        prompts.extend(ours::paths(&both.ours));
        for prompt in &prompts {
            let (ours, theirs) = both.scores(prompt);
            for worker in 0..ours.len() {
                prop_assert!(theirs[worker] <= ours[worker]);
                if both.is_unbroken(worker, prompt) {
                    prop_assert_eq!(theirs[worker], ours[worker]);
                }
            }
        }
    }

    #[test]
    fn dynamos_own_dump_builds_the_same_tree(talk in talk(), seed in any::<u64>(), turns in 1usize..40) {
        let mut both = Both::new();
        let mut talks = Talks::new(talk, seed);
        for _ in 0..turns {
            talks.turn(&mut |event| { both.apply(&event); });
        }
        let mut again = Tree::default();
        for event in both.theirs.dump_tree_as_events() {
            ours::apply(&mut again, &theirs::event(&event));
        }
        prop_assert_eq!(again.totals(), both.ours.totals());
        prop_assert_eq!(again.digest(), both.ours.digest());
    }
}

#[test]
fn a_hole_that_is_filled_again_counts_here_at_once_and_there_when_the_rest_is_stored_again() {
    let mut both = Both::new();
    let prompt = [1, 2, 3];
    let mut parent = None;
    let chain: Vec<u64> = prompt
        .iter()
        .map(|&t| {
            let hash = chain_hash(parent, TokensHash(t));
            parent = Some(hash);
            hash.0
        })
        .collect();
    let blocks: Vec<(u64, u64)> = chain.iter().copied().zip(prompt).collect();
    let mut tell = |change| both.apply(&Event { worker: 0, change });
    assert!(tell(Change::Stored { parent: None, blocks: blocks.clone() }));
    assert!(tell(Change::Removed(vec![chain[1]])));
    assert!(tell(Change::Stored { parent: Some(chain[0]), blocks: blocks[1..2].to_vec() }));
    assert!(!tell(Change::Removed(vec![99])), "an unknown removal is an error there, a number here");
    let (ours, theirs) = both.scores(&prompt);
    assert_eq!((ours[0], theirs[0]), (3, 2));
    assert!(both.ours.find(radixscope_model::id::Slot(0), BlockHash(chain[2])).is_some());
}
