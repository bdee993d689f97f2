//! How much of a prompt each worker holds, by the rule of the deployed Dynamo (reference §6).

use super::owners::bits;
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

    /// Nodes along `prompt` as far as somebody holds them, with the owner set's key.
    fn held_path(&self, prompt: impl IntoIterator<Item = TokensHash>) -> impl Iterator<Item = (NodeId, u32)> {
        let mut at = NodeId::ROOT;
        prompt.into_iter().map_while(move |tokens| {
            at = self.families.find(&self.arena, at, tokens.0)?;
            let set = self.arena[at].set();
            (!self.sets.get(set).is_empty()).then_some((at, set.0))
        })
    }

    fn count_path_nodes(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        // Neighbours share their set: count runs, not blocks.
        let mut run: Option<(NodeId, u32, u32)> = None;
        let mut close = |run: Option<(NodeId, u32, u32)>| {
            if let Some((node, _, len)) = run {
                self.owners(node).iter().for_each(|w| out[w.at()] += len);
            }
        };
        for (node, set) in self.held_path(prompt) {
            match &mut run {
                Some((_, of, len)) if *of == set => *len += 1,
                _ => {
                    close(run);
                    run = Some((node, set, 1));
                }
            }
        }
        close(run);
    }

    fn count_prefix(&self, prompt: impl IntoIterator<Item = TokensHash>, out: &mut [u32]) {
        let mut active = Active::default();
        let mut last_set = None;
        let mut depth = 0;
        for (node, set) in self.held_path(prompt) {
            if last_set != Some(set) {
                let owners = self.owners(node);
                if depth == 0 {
                    active = Active { low: owners.low(), high: owners.high().to_vec() };
                } else {
                    active.keep(owners, |w| out[w.at()] = depth);
                }
                last_set = Some(set);
            }
            if active.is_empty() {
                break;
            }
            depth += 1;
        }
        active.iter().for_each(|w| out[w.at()] = depth);
    }
}

/// Workers that hold every block so far, laid out as in [`OwnerSet`].
#[derive(Default)]
struct Active {
    low: u64,
    high: Vec<u16>,
}

impl Active {
    fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        bits(self.low).chain(self.high.iter().map(|&w| Slot(w)))
    }

    /// Drops who is not among `owners`. With a thousand workers sets differ in one or two, so equal stretches are
    /// compared and moved whole.
    fn keep(&mut self, owners: &OwnerSet, mut gone: impl FnMut(Slot)) {
        bits(self.low & !owners.low()).for_each(&mut gone);
        self.low &= owners.low();
        let mut owners = owners.high();
        let (mut kept, mut at) = (0, 0);
        while at < self.high.len() {
            let same = equal_len(&self.high[at..], owners);
            self.high.copy_within(at..at + same, kept);
            (kept, at, owners) = (kept + same, at + same, &owners[same..]);
            let Some(&worker) = self.high.get(at) else { break };
            owners = &owners[owners.partition_point(|&owner| owner < worker)..];
            if owners.first() != Some(&worker) {
                gone(Slot(worker));
                at += 1;
            }
        }
        self.high.truncate(kept);
    }
}

/// How long two slices begin alike.
fn equal_len(a: &[u16], b: &[u16]) -> usize {
    const CHUNK: usize = 32;
    let chunks = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK));
    let whole = CHUNK * chunks.take_while(|(a, b)| a == b).count();
    whole + a[whole..].iter().zip(&b[whole..]).take_while(|(a, b)| a == b).count()
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
