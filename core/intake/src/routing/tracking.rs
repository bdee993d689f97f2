//! Whether the routers of a pool name prompts in their messages by hashes with a secret key (`--router-tracking-hash
//! keyed-xxh3-v1`, ≥ 1.6): such a chain meets no block of any tree, whatever workers hold. No message and no line says so. KV
//! events, traces and the log's lines contain the public hashes all the same.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_model::id::{DecisionId, PoolIx};

/// Choices whose router counted cached blocks where no worker holds the first block by our tree, before it is concluded. One alone
/// may be a router that counts a block before the worker has stored it.
const ENOUGH: usize = 4;

/// What is known of a pool.
#[derive(Default)]
struct Evidence {
    /// A chain met blocks.
    is_public: bool,
    /// Choices whose chain met none, though their router counted some.
    unmatched: BTreeSet<DecisionId>,
    is_keyed: bool,
}

/// The hashes in routers' messages, by pool.
#[derive(Default)]
pub(super) struct TrackingHashes(BTreeMap<PoolIx, Evidence>);

impl TrackingHashes {
    /// The chain of a message met blocks of the pool's tree.
    pub(super) fn matched(&mut self, pool: PoolIx) {
        let of = self.0.entry(pool).or_default();
        of.is_public = true;
        of.unmatched.clear();
    }

    /// The chain of a message met none, though the router counted cached blocks and the tree lacks none. Gives whether it shows, for
    /// the first time, that the chains are keyed.
    pub(super) fn unmatched(&mut self, pool: PoolIx, decision: DecisionId) -> bool {
        let of = self.0.entry(pool).or_default();
        if of.is_public || of.is_keyed {
            return false;
        }
        of.unmatched.insert(decision);
        of.is_keyed = of.unmatched.len() >= ENOUGH;
        of.is_keyed
    }

    /// The chain of a message is another one than that of the request's trace, which is public. Gives whether it is the first.
    pub(super) fn differs(&mut self, pool: PoolIx) -> bool {
        !std::mem::replace(&mut self.0.entry(pool).or_default().is_keyed, true)
    }

    /// Whether chains of this pool's messages name no block of the tree.
    pub(super) fn are_keyed(&self, pool: PoolIx) -> bool {
        self.0.get(&pool).is_some_and(|of| of.is_keyed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_choices_that_met_nothing_show_it_and_one_that_met_something_refutes_it() {
        let (mut hashes, pool) = (TrackingHashes::default(), PoolIx(1));
        let shown = |ids: std::ops::Range<u64>, hashes: &mut TrackingHashes| {
            ids.filter(|&id| hashes.unmatched(pool, DecisionId(id))).count()
        };
        assert_eq!(shown(0..3, &mut hashes), 0);
        assert_eq!(shown(0..3, &mut hashes), 0, "tried again");
        assert_eq!(shown(3..9, &mut hashes), 1);
        assert!(hashes.are_keyed(pool) && !hashes.are_keyed(PoolIx(0)));
        let mut hashes = TrackingHashes::default();
        hashes.matched(pool);
        assert_eq!(shown(0..9, &mut hashes), 0);
        assert!(hashes.differs(pool) && !hashes.differs(pool));
        assert!(hashes.are_keyed(pool), "a trace is certain");
    }
}
