//! What the tree must say, in the plainest form: per worker a map from hash to full path, nothing shared.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::tree::{Holdings, NodeId, OverlapRule, Step, Totals, Tree};

use crate::tree::hits::Times;

/// Where a path begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Top {
    Root,
    /// Below the parent that this worker calls so and that was never seen.
    Missing(u16, u64),
}

/// A block's place: where its path begins and the tokens hashes down to it.
pub(crate) type Path = (Top, Vec<u64>);

/// A change of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Store {
        worker: u16,
        parent: Option<u64>,
        blocks: Vec<(u64, u64)>,
    },
    Remove {
        worker: u16,
        hash: u64,
    },
    Clear {
        worker: u16,
    },
    /// A request whose held prefix ended so many blocks above the one that `worker` calls `hash`.
    Hit {
        worker: u16,
        hash: u64,
        above: usize,
    },
}

impl Op {
    pub(crate) fn worker(&self) -> u16 {
        match self {
            Op::Store { worker, .. }
            | Op::Remove { worker, .. }
            | Op::Clear { worker }
            | Op::Hit { worker, .. } => *worker,
        }
    }

    pub(crate) fn apply(&self, tree: &mut Tree, touched: u32) {
        match self {
            Op::Store { worker, parent, blocks } => {
                let blocks: Vec<Block> = blocks.iter().map(|&(hash, tokens)| block(hash, tokens)).collect();
                tree.store(Slot(*worker), parent.map(BlockHash), &blocks, touched);
            }
            Op::Remove { worker, hash } => {
                tree.remove(Slot(*worker), BlockHash(*hash));
            }
            Op::Clear { worker } => {
                tree.clear(Slot(*worker));
            }
            Op::Hit { worker, hash, above } => {
                let held = tree.find(Slot(*worker), BlockHash(*hash));
                let up = std::iter::successors(held, |&node| tree.parent(node)).take(above + 1);
                tree.hit(up.last().unwrap_or(NodeId::ROOT), touched);
            }
        }
    }
}

pub(crate) fn block(hash: u64, tokens: u64) -> Block {
    Block { block_hash: BlockHash(hash), tokens_hash: TokensHash(tokens) }
}

/// Per worker: hash to place.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Model {
    pub(crate) workers: BTreeMap<u16, BTreeMap<u64, Path>>,
    pub(crate) times: Times,
}

impl Model {
    pub(crate) fn apply(&mut self, op: &Op, touched: u32) {
        match op {
            Op::Store { worker, parent, blocks } => self.store(*worker, *parent, blocks, touched),
            Op::Remove { worker, hash } => {
                self.workers.entry(*worker).or_default().remove(hash);
                self.drop_unneeded();
            }
            Op::Clear { worker } => {
                self.workers.entry(*worker).or_default().clear();
                self.drop_unneeded();
            }
            Op::Hit { worker, hash, above } => {
                let held = self.workers.get(worker).and_then(|held| held.get(hash));
                self.times.hit(held, *above, touched);
            }
        }
    }

    /// What is no longer in the tree loses its times.
    fn drop_unneeded(&mut self) {
        let needed = self.needed();
        self.times.drop_unneeded(&needed);
    }

    fn store(&mut self, worker: u16, parent: Option<u64>, blocks: &[(u64, u64)], touched: u32) {
        let held = self.workers.entry(worker).or_default();
        let mut path = match parent {
            None => (Top::Root, Vec::new()),
            Some(hash) => held.get(&hash).cloned().unwrap_or((Top::Missing(worker, hash), Vec::new())),
        };
        for &(hash, tokens) in blocks {
            path.1.push(tokens);
            let held = self.workers.entry(worker).or_default();
            let has_moved = place(held, hash, &path);
            self.times.store(&path, touched);
            if has_moved {
                self.drop_unneeded();
            }
            let held = self.workers.entry(worker).or_default();
            let waiting = Top::Missing(worker, hash);
            if path.0 != waiting && held.values().any(|p| p.0 == waiting) {
                let joined: Vec<_> =
                    held.iter().filter(|(_, p)| p.0 == waiting).map(|(&h, p)| (h, p.clone())).collect();
                for (name, (_, below)) in joined {
                    place(held, name, &(path.0, [path.1.clone(), below].concat()));
                }
                self.times.join(waiting, &path);
                self.drop_unneeded();
            }
        }
    }

    /// Holders of every held path, with the names each gives it.
    pub(crate) fn paths(&self) -> BTreeMap<Path, BTreeMap<u16, BTreeSet<u64>>> {
        let mut paths: BTreeMap<Path, BTreeMap<u16, BTreeSet<u64>>> = BTreeMap::new();
        for (&worker, held) in &self.workers {
            for (&hash, path) in held {
                paths.entry(path.clone()).or_default().entry(worker).or_default().insert(hash);
            }
        }
        paths
    }

    /// Paths that are in the tree: the held ones and all that lead to them.
    pub(crate) fn needed(&self) -> BTreeSet<Path> {
        let mut needed = BTreeSet::new();
        for (top, path) in self.paths().keys() {
            let from = usize::from(*top == Top::Root);
            needed.extend((from..=path.len()).map(|len| (*top, path[..len].to_vec())));
        }
        needed
    }

    /// State without the workers that hold nothing: what two trees must agree in.
    pub(crate) fn state(&self) -> BTreeMap<u16, BTreeMap<u64, Path>> {
        self.workers.iter().filter(|(_, held)| !held.is_empty()).map(|(&w, h)| (w, h.clone())).collect()
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for ((top, _), holders) in self.paths() {
            let count = holders.len() as u64;
            totals.resident += count;
            if top == Top::Root {
                totals.nodes += 1;
                totals.shared += u64::from(count > 1);
            } else {
                totals.unattached += count;
            }
        }
        totals
    }

    /// Overlap of `prompt` with `worker`, by either rule.
    fn overlap(&self, rule: OverlapRule, worker: u16, prompt: &[u64]) -> u32 {
        let holders = |len: usize| -> BTreeSet<u16> {
            let path = (Top::Root, prompt[..len].to_vec());
            let holds = |held: &BTreeMap<u64, Path>| held.values().any(|p| *p == path);
            self.workers.iter().filter(|(_, held)| holds(held)).map(|(&w, _)| w).collect()
        };
        let on_path = (1..=prompt.len()).map(holders);
        match rule {
            OverlapRule::Prefix => on_path.take_while(|h| h.contains(&worker)).count() as u32,
            OverlapRule::PathNodes => {
                on_path.take_while(|h| !h.is_empty()).filter(|h| h.contains(&worker)).count() as u32
            }
        }
    }
}

/// One name of a worker's means one place: `true` if it meant another one before.
fn place(held: &mut BTreeMap<u64, Path>, hash: u64, path: &Path) -> bool {
    held.insert(hash, path.clone()).is_some_and(|before| before != *path)
}

/// The path of a node, read from the tree upwards.
pub(crate) fn path_of(tree: &Tree, node: NodeId) -> Vec<u64> {
    let mut path = Vec::new();
    let mut at = Some(node);
    while let Some(n) = at.filter(|&n| n != NodeId::ROOT) {
        path.push(tree.tokens_hash(n).0);
        at = tree.parent(n);
    }
    path.reverse();
    path
}

/// Everything the tree says, against the model.
pub(crate) fn check(tree: &Tree, model: &Model, hashes: &[u64], prompts: &[Vec<u64>]) {
    assert_eq!(tree.totals(), model.totals());
    let blocks = tree.walk(NodeId::ROOT).filter_map(|step| match step {
        Step::Enter { node, .. } => Some(tree.owners(node).len() as u64),
        Step::Leave { .. } => None,
    });
    assert_eq!(tree.totals().copies(), blocks.map(|holders| holders.saturating_sub(1)).sum::<u64>());
    for (&worker, held) in &model.workers {
        check_worker(tree, worker, held, hashes);
    }
    check_nodes(tree, model);
    let mut scores = Vec::new();
    for rule in [OverlapRule::Prefix, OverlapRule::PathNodes] {
        for prompt in prompts {
            tree.overlap(rule, prompt.iter().map(|&t| TokensHash(t)), &mut scores);
            for &worker in model.workers.keys() {
                let score = scores.get(usize::from(worker)).copied().unwrap_or(0);
                assert_eq!(score, model.overlap(rule, worker, prompt), "{rule:?} of {worker} for {prompt:?}");
            }
        }
    }
}

fn check_worker(tree: &Tree, worker: u16, held: &BTreeMap<u64, Path>, hashes: &[u64]) {
    let ix = Slot(worker);
    let places: BTreeSet<&Path> = held.values().collect();
    let unattached = places.iter().filter(|(top, _)| *top != Top::Root).count() as u64;
    let (resident, further) = (places.len() as u64, (held.len() - places.len()) as u64);
    assert_eq!(tree.holdings(ix), Holdings { resident, unattached, hidden: 0, further });
    for hash in hashes.iter().chain(held.keys()) {
        let node = tree.find(ix, BlockHash(*hash));
        let Some((top, path)) = held.get(hash) else {
            assert_eq!(node, None, "worker {worker} does not hold {hash}");
            continue;
        };
        let node = node.unwrap_or_else(|| panic!("worker {worker} holds {hash}"));
        assert_eq!(&path_of(tree, node), path);
        assert_eq!(tree.is_attached(node), *top == Top::Root);
        assert!(tree.owners(node).contains(ix));
        assert!(tree.find_any(BlockHash(*hash)).is_some());
    }
}

/// Every node of the tree is a held path or leads to one, has exactly its holders, and nothing else is allocated.
fn check_nodes(tree: &Tree, model: &Model) {
    let mut want = model.paths();
    let needed = model.needed();
    assert_eq!(tree.allocated() as usize, needed.len(), "nothing but held paths and what leads to them");
    let mut seen = 0;
    for top in std::iter::once(NodeId::ROOT).chain(tree.orphan_parents()) {
        for step in tree.walk(top) {
            let Step::Enter { node, .. } = step else { continue };
            seen += usize::from(node != NodeId::ROOT);
            let holders: Vec<u16> = tree.owners(node).iter().map(|w| w.0).collect();
            if holders.is_empty() {
                continue;
            }
            let any = holders[0];
            let path = path_of(tree, node);
            let key = want.keys().find(|(t, p)| {
                *p == path
                    && match t {
                        Top::Root => top == NodeId::ROOT,
                        Top::Missing(w, hash) => {
                            *w == any && tree.block_hash(top).0 == *hash && top != NodeId::ROOT
                        }
                    }
            });
            let key = key.unwrap_or_else(|| panic!("no worker holds {path:?}")).clone();
            let names = want.remove(&key).unwrap_or_default();
            assert_eq!(holders, names.keys().copied().collect::<Vec<_>>(), "holders of {key:?}");
            let distinct: BTreeSet<u64> = names.values().flatten().copied().collect();
            assert!(distinct.contains(&tree.block_hash(node).0), "a present holder's name for {key:?}");
            // Of several names that one worker has for a place, one counts.
            if names.values().all(|names| names.len() == 1) {
                assert_eq!(tree.hashes_agree(node), distinct.len() == 1, "names of {key:?}: {names:?}");
            }
        }
    }
    assert!(want.is_empty(), "not in the tree: {want:?}");
    assert_eq!(seen, needed.len());
}

/// Workers on either side of the border at which owner sets change their form.
const WORKERS: [u16; 6] = [0, 1, 2, 63, 64, 90];
/// Hashes of the anarchic kind.
pub(crate) const FEW_HASHES: u64 = 9;
const FEW_TOKENS: u64 = 3;

/// What an engine calls the block at the end of `path`.
pub(crate) fn chain(seed: u64, path: &[u64]) -> u64 {
    path.iter().fold(seed, |above, &tokens| {
        (above ^ tokens.wrapping_add(0x9e37_79b9)).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)
    })
}

/// Changes as engines make them: hashes are chains, blocks come below held or not yet received parents.
pub(crate) fn engine_op(seeds: u64) -> impl Strategy<Value = Op> {
    let worker = proptest::sample::select(&WORKERS[..]);
    let path = proptest::collection::vec(0..FEW_TOKENS, 1..6);
    (worker, path, 0usize..6, 0u8..12).prop_map(move |(worker, path, skip, kind)| {
        let seed = 1 + u64::from(worker) % seeds;
        let at = |len: usize| chain(seed, &path[..len]);
        match kind {
            0 => Op::Clear { worker },
            1..=5 => Op::Remove { worker, hash: at(path.len()) },
            _ => {
                let skip = skip.min(path.len() - 1);
                let parent = (skip > 0).then(|| at(skip));
                let blocks = (skip..path.len()).map(|i| (at(i + 1), path[i])).collect();
                Op::Store { worker, parent, blocks }
            }
        }
    })
}

/// Changes that make no sense: any hash for any block, anywhere, also as its own ancestor.
pub(crate) fn anarchic_op() -> impl Strategy<Value = Op> {
    let worker = proptest::sample::select(&WORKERS[..4]);
    let parent = proptest::option::of(0..FEW_HASHES);
    let blocks = proptest::collection::vec((0..FEW_HASHES, 0..FEW_TOKENS), 0..4);
    (worker, parent, blocks, 0..FEW_HASHES, 0u8..20).prop_map(|(worker, parent, blocks, hash, kind)| {
        match kind {
            0 => Op::Clear { worker },
            1..=5 => Op::Remove { worker, hash },
            _ => Op::Store { worker, parent, blocks },
        }
    })
}

/// One of the three kinds of history: uniform engines, engines of two seeds, anarchy.
pub(crate) fn ops(most: usize) -> impl Strategy<Value = Vec<Op>> {
    use proptest::collection::vec;
    prop_oneof![
        vec(engine_op(1), 1..most),
        vec(engine_op(2), 1..most),
        vec(engine_op(64), 1..most),
        vec(anarchic_op(), 1..most),
    ]
}

/// Prompts over the few tokens there are.
pub(crate) fn prompts() -> impl Strategy<Value = Vec<Vec<u64>>> {
    proptest::collection::vec(proptest::collection::vec(0..FEW_TOKENS, 0..7), 1..6)
}
