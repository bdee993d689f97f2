//! What the tree tells of prompts: how long the chains are that were stored lately, and whether prompts share prefixes.

use crate::check::View;
use crate::cluster::touched_ms;
use crate::tree::{NodeId, Step};

use super::super::event_path::WINDOW_MS;

/// Most steps of a walk: enough for any fault to show, and a few milliseconds of work.
const MAX_STEPS: usize = 400_000;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::check::rules) struct Chains {
    /// Blocks of the longest chain whose end was stored lately.
    pub(in crate::check::rules) longest_blocks: u64,
    /// Blocks behind which prompts part, or that several workers hold.
    pub(in crate::check::rules) shared: u64,
}

/// Walks the tree, as far as the bound allows.
pub(in crate::check::rules) fn chains(view: &View<'_>) -> Chains {
    let tree = view.cluster.tree();
    let mut chains = Chains::default();
    for step in tree.walk(NodeId::ROOT).take(MAX_STEPS) {
        let Step::Enter { node, depth } = step else { continue };
        if node == NodeId::ROOT {
            continue;
        }
        let is_recent = view.now.since(touched_ms(tree.touched(node))) <= WINDOW_MS;
        if is_recent && !tree.owners(node).is_empty() {
            chains.longest_blocks = chains.longest_blocks.max(u64::from(depth));
        }
        let parts = tree.children(node).nth(1).is_some();
        chains.shared += u64::from(parts || tree.owners(node).len() > 1);
    }
    chains
}
