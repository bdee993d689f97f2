//! Figures of prompts from the trees: how long the chains are that were stored lately, and whether prompts share prefixes.
//! A walk over all trees, so it is done at most once a look, and only when a rule has to know.

use super::View;
use radixscope_model::id::PoolIx;
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::{NodeId, Step, Tree};

/// What "lately" means here.
const RECENT_MS: u64 = 60_000;
/// Continuations of one block that are counted.
const MAX_CHILDREN: usize = 100;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Chains {
    /// Blocks of the longest chain whose end was stored lately.
    pub(super) longest_blocks: u64,
    /// Times that a prompt continued a block which another one continues too, and blocks that several workers hold.
    pub(super) shared: u64,
}

impl View<'_> {
    /// The chains of all trees as they are now.
    pub(super) fn chains(&self) -> Chains {
        let all = self.chains_by_pool().iter();
        all.fold(Chains::default(), |sum, of| Chains {
            longest_blocks: sum.longest_blocks.max(of.longest_blocks),
            shared: sum.shared + of.shared,
        })
    }

    /// The chains of a pool's tree.
    pub(super) fn chains_in(&self, pool: PoolIx) -> Chains {
        self.chains_by_pool().get(pool.at()).copied().unwrap_or_default()
    }

    fn chains_by_pool(&self) -> &[Chains] {
        self.history.chains.get_or_init(|| self.cluster.trees().map(|(_, tree)| walk(self, tree)).collect())
    }
}

fn walk(view: &View<'_>, tree: &Tree) -> Chains {
    let mut chains = Chains::default();
    for step in tree.walk(NodeId::ROOT) {
        let Step::Enter { node, depth } = step else { continue };
        if node == NodeId::ROOT {
            continue;
        }
        let owners = tree.owners(node);
        let deeper = u64::from(depth) > chains.longest_blocks && !owners.is_empty();
        if deeper && view.now.since(touched_ms(tree.touched(node))) <= RECENT_MS {
            chains.longest_blocks = u64::from(depth);
        }
        let continued = tree.children(node).take(MAX_CHILDREN).count() as u64;
        chains.shared += continued.saturating_sub(1) + u64::from(owners.len() > 1);
    }
    chains
}
