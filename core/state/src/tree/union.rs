//! Two states of a tree as one: every place that either holds, once. Its only owner is no worker but a mark, chosen by who
//! held the place before and who does after: all that arranges, sums up and draws by owners then does so by mark. Must not
//! know what marks mean.

use hashbrown::{DefaultHashBuilder, HashMap};

use super::owners::SetId;
use super::{NodeId, OwnerSet, Tree};
use radixscope_model::id::{BlockHash, Slot};

/// Who held places before, and who does after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holders {
    /// In the earlier state.
    pub before: OwnerSet,
    /// In the later one.
    pub after: OwnerSet,
    /// At so many places.
    pub places: u64,
}

/// Both states as one tree.
pub struct Union {
    /// Its owners are marks.
    pub tree: Tree,
    holders: Vec<Holders>,
    /// By node: which of `holders`.
    of_node: Vec<u32>,
}

impl Union {
    /// Of two states of one tree. `mark` is asked once for each pair of holders; a place without a mark leads to others.
    /// Blocks whose parent is unknown have no place and are left out. Linear in both trees.
    pub fn of(earlier: &Tree, later: &Tree, mark: &dyn Fn(&OwnerSet, &OwnerSet) -> Option<Slot>) -> Self {
        let mut maker = Maker {
            union: Self { tree: Tree::with_limit(u32::MAX), holders: Vec::new(), of_node: vec![0] },
            earlier,
            later,
            known: HashMap::default(),
            mark,
        };
        maker.holders(NodeId::ROOT, NodeId::ROOT);
        // A place that only one state knows is `NONE` in the other.
        let mut todo = vec![(NodeId::ROOT, NodeId::ROOT, NodeId::ROOT)];
        while let Some((before, after, at)) = todo.pop() {
            for child in children(later, after) {
                let same = child_of(earlier, before, later.arena[child].tokens);
                todo.push((same, child, maker.add(at, same, child)));
            }
            for child in children(earlier, before) {
                if child_of(later, after, earlier.arena[child].tokens) == NodeId::NONE {
                    todo.push((child, NodeId::NONE, maker.add(at, child, NodeId::NONE)));
                }
            }
        }
        maker.union
    }

    /// Who held a place of its tree, and who does.
    pub fn holders_of(&self, node: NodeId) -> &Holders {
        &self.holders[self.of_node[node.at()] as usize]
    }

    /// All pairs of holders that there are, each once.
    pub fn into_holders(self) -> Vec<Holders> {
        self.holders
    }
}

fn children(tree: &Tree, node: NodeId) -> impl Iterator<Item = NodeId> {
    (node != NodeId::NONE).then(|| tree.children(node)).into_iter().flatten()
}

fn child_of(tree: &Tree, node: NodeId, tokens: u64) -> NodeId {
    let found = || tree.child_index.find(&tree.arena, node, tokens);
    if node == NodeId::NONE { NodeId::NONE } else { found().unwrap_or(NodeId::NONE) }
}

struct Maker<'a> {
    union: Union,
    earlier: &'a Tree,
    later: &'a Tree,
    /// By the sets in both trees: which of the holders, and the set of their mark.
    known: HashMap<(SetId, SetId), (u32, SetId), DefaultHashBuilder>,
    mark: &'a dyn Fn(&OwnerSet, &OwnerSet) -> Option<Slot>,
}

impl Maker<'_> {
    fn holders(&mut self, before: NodeId, after: NodeId) -> (u32, SetId) {
        let set =
            |tree: &Tree, node| if node == NodeId::NONE { SetId::EMPTY } else { tree.arena[node].set() };
        let sets = (set(self.earlier, before), set(self.later, after));
        if let Some(&known) = self.known.get(&sets) {
            return known;
        }
        let (before, after) = (self.earlier.sets.get(sets.0), self.later.sets.get(sets.1));
        let own = match (self.mark)(before, after) {
            Some(mark) => self.union.tree.sets.intern(std::iter::once(mark).collect()),
            None => SetId::EMPTY,
        };
        let new = (self.union.holders.len() as u32, own);
        self.union.holders.push(Holders { before: before.clone(), after: after.clone(), places: 0 });
        self.known.insert(sets, new);
        new
    }

    /// A place below `parent`.
    fn add(&mut self, parent: NodeId, before: NodeId, after: NodeId) -> NodeId {
        let (which, set) = self.holders(before, after);
        self.union.holders[which as usize].places += 1;
        let known = [(self.earlier, before), (self.later, after)];
        let known = known.into_iter().filter(|(_, node)| *node != NodeId::NONE);
        let (mut tokens, mut block, mut touched) = (0, 0, 0);
        for (tree, node) in known {
            let of = &tree.arena[node];
            tokens = of.tokens;
            // A block without owners now is named by its earlier owners.
            block = if tree.owners(node).is_empty() && block != 0 { block } else { of.block };
            touched = of.touched.max(touched);
        }
        let tree = &mut self.union.tree;
        let node = tree.arena.add(parent, tokens, block, touched);
        tree.child_index.link(&mut tree.arena, parent, node);
        self.union.of_node.push(which);
        if set != SetId::EMPTY {
            tree.sets.add_use(set);
            tree.arena[node].change_set(set);
            let key = tree.index.key(block);
            tree.index.enter(&tree.arena, node, key);
            tree.totals.nodes += 1;
            tree.totals.resident += 1;
            let mark = tree.sets.get(set).iter().next();
            if let Some(mark) = mark {
                tree.holdings_mut(mark).resident += 1;
            }
        }
        node
    }
}

impl Tree {
    /// Every name that any worker has for a block that it holds, also of blocks whose parent is unknown. In no order;
    /// linear in the tree. Blocks that the limit keeps out have no name here.
    pub fn each_held(&self, mut each: impl FnMut(Slot, BlockHash)) {
        for node in self.arena.ids().skip(1) {
            let n = &self.arena[node];
            if n.is_free() || n.is_orphan_parent() {
                continue;
            }
            for worker in self.owners(node).iter() {
                each(worker, self.block_hash_by(node, worker));
                self.further_names_by(node, worker).for_each(|name| each(worker, name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::super::Step;
    use super::super::forest::Arrangement;
    use super::*;
    use radixscope_model::id::TokensHash;
    use radixscope_model::record::Block;

    fn block(t: u64) -> Block {
        Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) }
    }

    fn store(tree: &mut Tree, worker: u16, tokens: impl IntoIterator<Item = u64>) {
        let blocks: Vec<Block> = tokens.into_iter().map(block).collect();
        tree.store(Slot(worker), None, &blocks, 1);
    }

    /// Marks: 0 no owner now, 1 no owner before, 2 both.
    fn mark(before: &OwnerSet, after: &OwnerSet) -> Option<Slot> {
        match (before.is_empty(), after.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Slot(0)),
            (true, false) => Some(Slot(1)),
            (false, false) => Some(Slot(2)),
        }
    }

    /// Paths of the places that somebody holds, with who.
    fn places(tree: &Tree) -> BTreeMap<Vec<u64>, BTreeSet<u16>> {
        let (mut path, mut places) = (Vec::new(), BTreeMap::new());
        for step in tree.walk(NodeId::ROOT) {
            match step {
                Step::Enter { node, .. } => {
                    path.push(tree.tokens_hash(node).0);
                    let owners: BTreeSet<u16> = tree.owners(node).iter().map(|worker| worker.0).collect();
                    if !owners.is_empty() {
                        places.insert(path[1..].to_vec(), owners);
                    }
                }
                Step::Leave { .. } => {
                    path.pop();
                }
            }
        }
        places
    }

    #[test]
    fn every_place_of_either_state_is_there_once_with_its_mark() {
        let (mut earlier, mut later) = (Tree::default(), Tree::default());
        store(&mut earlier, 0, 1..=4);
        store(&mut earlier, 1, [1, 2, 7]);
        store(&mut later, 1, 1..=3);
        store(&mut later, 0, [9]);
        let mut union = Union::of(&earlier, &later, &mark);
        let counts = [0, 1, 2].map(|mark| union.tree.holdings(Slot(mark)).resident);
        assert_eq!(counts, [2, 1, 3], "4 and 7 are gone, 9 is new, 1 to 3 stay");
        let at = |hash| union.tree.find_any(BlockHash(hash)).expect("it is there");
        let who = |set: &OwnerSet| set.iter().map(|worker| worker.0).collect::<Vec<_>>();
        let holders = |hash| {
            let of = union.holders_of(at(hash));
            (who(&of.before), who(&of.after))
        };
        assert_eq!(holders(1), (vec![0, 1], vec![1]));
        assert_eq!(holders(4), (vec![0], vec![]));
        assert_eq!(holders(9), (vec![], vec![0]));
        union.tree.build_forest(Arrangement::default());
        let forest = union.tree.forest().expect("built");
        assert_eq!((forest.sums().blocks, forest.width()), (6, 6));
    }

    #[test]
    fn what_waits_for_its_parent_has_no_place_but_a_name() {
        let mut tree = Tree::default();
        tree.store(Slot(3), Some(BlockHash(99)), &[block(5)], 1);
        let union = Union::of(&tree, &Tree::default(), &mark);
        assert_eq!(union.tree.totals().nodes, 0);
        let mut held = Vec::new();
        tree.each_held(|worker, name| held.push((worker.0, name.0)));
        assert_eq!(held, [(3, 5)]);
    }

    /// Prompts that workers store, of few blocks so that they meet, and how many blocks of them go again from the end.
    fn prompts() -> impl Strategy<Value = Vec<(u16, Vec<u64>, usize)>> {
        prop::collection::vec((0u16..4, prop::collection::vec(0u64..4, 1..6), 0usize..4), 0..12)
    }

    /// A block's name says its path, as an engine's does.
    fn named(path: &[u64]) -> u64 {
        path.iter().fold(7, |name: u64, part| name.wrapping_mul(31).wrapping_add(part + 1))
    }

    fn tree_of(prompts: &[(u16, Vec<u64>, usize)]) -> Tree {
        let mut tree = Tree::default();
        for (worker, tokens, gone) in prompts {
            let name = |at: usize| BlockHash(named(&tokens[..=at]));
            let block = |at| Block { block_hash: name(at), tokens_hash: TokensHash(tokens[at]) };
            tree.store(Slot(*worker), None, &(0..tokens.len()).map(block).collect::<Vec<_>>(), 1);
            for at in (0..tokens.len()).rev().take(*gone) {
                tree.remove(Slot(*worker), name(at));
            }
        }
        tree
    }

    proptest! {
        #[test]
        fn a_union_is_that_of_the_sets_of_places(one in prompts(), other in prompts()) {
            let (earlier, later) = (tree_of(&one), tree_of(&other));
            let union = Union::of(&earlier, &later, &mark);
            let (before, after) = (places(&earlier), places(&later));
            let paths: BTreeSet<&Vec<u64>> = before.keys().chain(after.keys()).collect();
            let expected: BTreeMap<Vec<u64>, BTreeSet<u16>> = paths
                .into_iter()
                .map(|path| {
                    let mark = match (before.contains_key(path), after.contains_key(path)) {
                        (true, true) => 2,
                        (false, _) => 1,
                        _ => 0,
                    };
                    (path.clone(), BTreeSet::from([mark]))
                })
                .collect();
            prop_assert_eq!(places(&union.tree), expected);
            let held: u64 = union.holders.iter().filter(|of| mark(&of.before, &of.after).is_some()).map(|of| of.places).sum();
            prop_assert_eq!(held, union.tree.totals().nodes);
        }
    }
}
