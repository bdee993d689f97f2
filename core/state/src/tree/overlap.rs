//! How much of a prompt each worker holds, by the rule of the deployed Dynamo (reference §6).

use super::arena::Node;
use super::owners::{SetId, WorkerGroup};
use super::{NodeId, OwnerSet, Tree};
use radixscope_model::id::{Slot, TokensHash};

/// How a version of Dynamo counts the overlap of a prompt with a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverlapRule {
    /// 0.8, 0.9: every block on the path that the worker holds counts, holes do not end the count; the walk ends
    /// where no worker holds the block.
    PathNodes,
    /// From 1.0: blocks from the first on without a hole.
    Prefix,
}

impl Tree {
    /// Overlap of `prompt` with every worker, in blocks, written to `out` by worker index. `out` is resized to hold
    /// every worker that ever held a block.
    pub fn overlap(
        &self,
        rule: OverlapRule,
        prompt: impl IntoIterator<Item = TokensHash>,
        out: &mut Vec<u32>,
    ) {
        out.clear();
        out.resize(self.holdings.len(), 0);
        match rule {
            OverlapRule::PathNodes => self.count_path_nodes(prompt, out),
            OverlapRule::Prefix => self.count_prefix(prompt, out),
        }
    }

    /// Owner sets of the blocks along `prompt`, as far as it is known and some worker holds each.
    fn owners_along(&self, prompt: impl IntoIterator<Item = TokensHash>) -> impl Iterator<Item = SetId> {
        let mut at = NodeId::ROOT;
        let mut child = self.arena[at].child;
        let mut next: &[Node] = &[];
        prompt.into_iter().map_while(move |tokens| {
            // The blocks of a chain mostly lie in a row. To read the next one before the link to it has arrived from memory
            // halves the time of a long prompt.
            let node = match next.split_first() {
                Some((node, rest)) if child == at.0 + 1 && node.tokens == tokens.0 => {
                    (at, next) = (NodeId(at.0 + 1), rest);
                    node
                }
                _ => {
                    at = self.child_index.find(&self.arena, at, tokens.0)?;
                    let (node, rest) = self.arena.row(at).split_first()?;
                    next = rest;
                    node
                }
            };
            child = node.child;
            (node.set() != SetId::EMPTY).then_some(node.set())
        })
    }

    fn count_path_nodes(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        // Neighbours share their set: count stretches, not blocks.
        let mut stretch = (SetId::EMPTY, 0);
        let mut count = |(set, len): (SetId, u32)| {
            self.sets.get(set).iter().for_each(|worker| out[worker.at()] += len);
        };
        for set in self.owners_along(prompt) {
            if stretch.0 != set {
                count(stretch);
                stretch = (set, 0);
            }
            stretch.1 += 1;
        }
        count(stretch);
    }

    fn count_prefix(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        let mut holders = PrefixOwners(Vec::new());
        let mut last_set = SetId::EMPTY;
        let mut depth = 0;
        for set in self.owners_along(prompt) {
            if set != last_set {
                let owners = self.sets.get(set);
                if depth == 0 {
                    holders = PrefixOwners(owners.groups().collect());
                } else {
                    holders.intersect(owners, |worker| out[worker.at()] = depth);
                }
                last_set = set;
            }
            if holders.0.is_empty() {
                break;
            }
            depth += 1;
        }
        holders.0.iter().flat_map(|group| group.iter()).for_each(|worker| out[worker.at()] = depth);
    }
}

/// Workers that hold every block so far: ascending groups, each with a member.
struct PrefixOwners(Vec<WorkerGroup>);

impl PrefixOwners {
    /// Drops whoever is not among `owners`, and reports each.
    fn intersect(&mut self, owners: &OwnerSet, mut dropped: impl FnMut(Slot)) {
        let mut owners = owners.groups().peekable();
        self.0.retain_mut(|group| {
            while owners.next_if(|owned| owned.number < group.number).is_some() {}
            let owned =
                owners.peek().filter(|owned| owned.number == group.number).map_or(0, |owned| owned.members);
            let lost = WorkerGroup { members: group.members & !owned, ..*group };
            if lost.members != 0 {
                lost.iter().for_each(&mut dropped);
                group.members &= owned;
            }
            group.members != 0
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use radixscope_model::id::BlockHash;
    use radixscope_model::record::Block;

    /// Workers on both sides of what an owner set keeps in its bits.
    fn workers() -> impl Strategy<Value = Vec<(u16, Vec<bool>)>> {
        proptest::collection::vec(
            (0u16..300, proptest::collection::vec(proptest::bool::weighted(0.97), 40)),
            1..200,
        )
    }

    proptest! {
        #[test]
        fn a_prefix_ends_at_a_workers_first_hole(workers in workers()) {
            let mut tree = Tree::default();
            let block = |n: u64| Block { block_hash: BlockHash(n + 1), tokens_hash: TokensHash(n + 1) };
            let path: Vec<Block> = (0..40).map(block).collect();
            let mut holes = std::collections::BTreeMap::new();
            for (worker, holds) in &workers {
                tree.store(Slot(*worker), None, &path, 0);
                holes.insert(*worker, holds);
            }
            for (&worker, holds) in &holes {
                for (block, _) in path.iter().zip(*holds).filter(|(_, holds)| !**holds) {
                    tree.remove(Slot(worker), block.block_hash);
                }
            }
            let mut out = Vec::new();
            tree.overlap(OverlapRule::Prefix, path.iter().map(|b| b.tokens_hash), &mut out);
            for (&worker, holds) in &holes {
                let want = holds.iter().take_while(|holds| **holds).count();
                prop_assert_eq!(out[usize::from(worker)] as usize, want, "worker {}", worker);
            }
        }
    }
}
