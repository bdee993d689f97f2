//! What the trees tell of prompts: how long the chains are that were stored lately, and whether prompts share prefixes.
//! A walk over all trees, so it is done at most once a look, and only when a rule has to know.

use super::View;
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::{NodeId, Step};

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
    /// The chains of the trees as they are now.
    pub(super) fn chains(&self) -> Chains {
        *self.history.chains.get_or_init(|| walk(self))
    }
}

fn walk(view: &View<'_>) -> Chains {
    let mut chains = Chains::default();
    let trees = view.cluster.trees().map(|(_, tree)| tree);
    for (tree, step) in trees.flat_map(|tree| tree.walk(NodeId::ROOT).map(move |step| (tree, step))) {
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
