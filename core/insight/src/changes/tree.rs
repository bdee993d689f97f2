//! Both states of a prefix tree as one that is coloured by what changed. Knows no colour.

use radixscope_model::id::{PoolIx, Slot, Worker};
use radixscope_model::record::Tier;
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::forest::{Chain, Sliver};
use radixscope_state::tree::{Holders, NodeId, OwnerSet, Tree, Union};

use super::{MemberIndex, members, tree_of};

/// What became of the block at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockChange {
    /// The same workers hold it.
    Retained,
    /// Workers stored it, and none evicted it.
    Stored,
    /// Workers evicted it, and none stored it.
    Evicted,
    /// A worker evicted it and another stored it.
    Moved,
    /// The worker that is picked out holds it neither before nor after.
    Elsewhere,
}

impl BlockChange {
    /// All of them, as they are numbered in the tree.
    pub const ALL: [Self; 5] = [Self::Retained, Self::Stored, Self::Evicted, Self::Moved, Self::Elsewhere];

    /// Its name on screen and for style sheets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retained => "kept",
            Self::Stored => "stored",
            Self::Evicted => "evicted",
            Self::Moved => "moved",
            Self::Elsewhere => "elsewhere",
        }
    }

    const fn mark(self) -> Slot {
        Slot(self as u16)
    }

    fn marked(mark: Slot) -> Option<Self> {
        Self::ALL.get(mark.at()).copied()
    }
}

/// Both states as one tree.
pub struct ChangeTree {
    union: Union,
    /// Which of several it is, as its maker counts them: what was drawn of another is of no use.
    pub version: u64,
}

impl ChangeTree {
    /// Of the devices of the pool of this name, or of a lower tier. With a worker picked out only what it holds, or
    /// held, changes.
    pub fn of(a: &Cluster, b: &Cluster, pool: &str, tier: Option<Tier>, picked: Option<Worker>) -> Self {
        let pools: [Option<PoolIx>; 2] = [a, b].map(|cluster| cluster.pool_by_name(pool));
        let members = members((a, pools[0]), (b, pools[1]));
        let known = MemberIndex::of(&members);
        let picked = picked.and_then(|id| members.iter().position(|member| member.id == id));
        let mark = |before: &OwnerSet, after: &OwnerSet| {
            let change = change(&known, picked, before, after)?;
            Some(change.mark())
        };
        let union = Union::of(tree_of(a, pools[0], tier), tree_of(b, pools[1], tier), &mark);
        Self { union, version: 0 }
    }

    /// The tree. Its owners are what [`ChangeTree::of_chain`] and [`ChangeTree::of_sliver`] read.
    pub fn tree(&self) -> &Tree {
        &self.union.tree
    }

    /// The same, to be arranged.
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.union.tree
    }

    /// Who held the block of a node before, and who does after.
    pub fn holders_of(&self, node: NodeId) -> &Holders {
        self.union.holders_of(node)
    }

    /// Distinct blocks of which this became.
    pub fn count(&self, change: BlockChange) -> u64 {
        self.union.tree.holdings(change.mark()).resident
    }

    /// What became of the blocks of a chain; `None`: no worker held or holds them.
    pub fn of_chain(tree: &Tree, chain: &Chain) -> Option<BlockChange> {
        tree.chain_owners(chain).iter().next().and_then(BlockChange::marked)
    }

    /// What became of blocks that are too narrow to be drawn separately.
    pub fn of_sliver(sliver: &Sliver) -> impl Iterator<Item = BlockChange> {
        Self::in_bits(sliver.workers)
    }

    /// What became of any of several blocks, of which the tree knows a bit each.
    pub fn in_bits(bits: u64) -> impl Iterator<Item = BlockChange> {
        BlockChange::ALL.into_iter().filter(move |change| bits & (1 << *change as u64) != 0)
    }
}

fn change(
    known: &MemberIndex,
    picked: Option<usize>,
    before: &OwnerSet,
    after: &OwnerSet,
) -> Option<BlockChange> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let (lost, gained) = known.differences(before, after);
    let is_of = |members: &[usize]| picked.map_or(!members.is_empty(), |picked| members.contains(&picked));
    let holds = |picked| {
        before.iter().any(|ix| known.before(ix) == Some(picked))
            || after.iter().any(|ix| known.after(ix) == Some(picked))
    };
    Some(match (is_of(&lost), is_of(&gained)) {
        _ if picked.is_some_and(|picked| !holds(picked)) => BlockChange::Elsewhere,
        // Of one worker: whether another one took it, or gave it away.
        (true, false) if picked.is_some() && !gained.is_empty() => BlockChange::Moved,
        (false, true) if picked.is_some() && !lost.is_empty() => BlockChange::Moved,
        (true, true) => BlockChange::Moved,
        (true, false) => BlockChange::Evicted,
        (false, true) => BlockChange::Stored,
        (false, false) => BlockChange::Retained,
    })
}

/// How many places have which holders before and after.
pub(super) fn places(earlier: &Tree, later: &Tree) -> Vec<Holders> {
    Union::of(earlier, later, &|_, _| None).into_holders()
}
