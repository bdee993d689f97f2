//! The selected block, or the one under the pointer, in all its particulars.

use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{BlockHash, Millis, WorkerIx};
use radixscope_state::cluster::touched_ms;
use radixscope_state::redundancy::{BlockSize, Redundancy, gib};
use radixscope_state::tree::forest::{Forest, Prefix};

use super::choice::Hovered;
use crate::format::{self, UNKNOWN};

/// Holders named one by one; a cluster may have thousands.
pub const HOLDERS: usize = 64;

/// The block that a link names, if the tree has it.
pub fn linked_block(shown: &ViewContext<'_>, hash: BlockHash) -> Option<Crumb> {
    let tree = shown.tree();
    let node = tree.find_any(hash).filter(|&node| tree.is_attached(node))?;
    Some(Crumb::at(tree, node, tree.position(node)))
}

/// What is known of a block.
#[derive(Clone, PartialEq, Debug)]
pub struct Detail {
    /// The block.
    pub crumb: Crumb,
    /// What is at and below it.
    pub prefix: Prefix,
    /// Who holds it.
    pub owners: Vec<WorkerIx>,
    /// What each holder calls it, where they differ.
    pub names: Vec<(WorkerIx, BlockHash)>,
    /// Since when it is in the tree.
    pub first_stored: Millis,
    /// When any of its workers last stored it.
    pub last_stored: Millis,
    /// When a block of its box or below was last stored or used.
    pub last_used: Millis,
    /// Requests of the window of which is known what was held.
    pub requests: u32,
    /// Blocks of the whole picture.
    pub all: u32,
    /// First block of the nearest box above that somebody holds.
    pub above: Option<Crumb>,
}

impl Detail {
    /// `None`: it is cached nowhere.
    pub fn of(shown: &ViewContext<'_>, forest: &Forest, crumb: Crumb) -> Option<Self> {
        let tree = shown.tree();
        let node = crumb.node(tree)?;
        let prefix = tree.prefix(node)?;
        let owners: Vec<WorkerIx> = shown.owners(tree.owners(node)).collect();
        let names = if tree.hashes_agree(node) {
            Vec::new()
        } else {
            owners.iter().map(|&worker| (worker, tree.block_hash_by(node, worker.slot()))).collect()
        };
        let above = forest.up(prefix.chain).skip(1).find(|&id| tree.held_in(forest.chain(id)) > 0);
        Some(Self {
            crumb,
            owners,
            names,
            first_stored: touched_ms(tree.first_stored(node)),
            last_stored: touched_ms(tree.touched(node)),
            last_used: touched_ms(prefix.touched),
            requests: forest.requests(),
            all: forest.sums().blocks,
            above: above.map(|id| Crumb::of(tree, forest, id)),
            prefix,
        })
    }

    /// Its position, and the tokens there where a block's size is known.
    pub fn position_text(&self, block_tokens: Option<u32>) -> String {
        let position = self.crumb.position;
        let at = format::count(position.into());
        let Some(size) = block_tokens.map(u64::from) else { return at };
        let first = u64::from(position) * size;
        format!("{at}, tokens {}–{}", format::count(first), format::count(first + size - 1))
    }

    /// Its place in its box.
    pub fn box_text(&self) -> String {
        format!(
            "block {} of {}",
            format::count(u64::from(self.prefix.place) + 1),
            format::count(self.prefix.chain_len.into())
        )
    }

    /// How many of the workers hold it.
    pub fn holders_text(&self, workers: usize) -> String {
        format!(
            "{} of {}",
            format::count(self.owners.len() as u64),
            format::plural(workers as u64, "worker", "workers")
        )
    }

    /// What workers call it, where they differ: a label and a hash each.
    pub fn names_text(&self) -> Vec<(String, String)> {
        self.names.iter().take(HOLDERS).map(|(worker, hash)| (label(*worker), hash.to_string())).collect()
    }

    /// Requests that found it cached.
    pub fn hits_text(&self) -> String {
        match self.requests {
            0 => format!("{UNKNOWN} prompts not visible"),
            requests => {
                let share = f64::from(self.prefix.hits) / f64::from(requests);
                format!(
                    "{} of {}, {}",
                    format::count(self.prefix.hits.into()),
                    format::plural(requests.into(), "request", "requests"),
                    format::percent(share)
                )
            }
        }
    }

    /// Blocks that follow it.
    pub fn children_text(&self) -> String {
        format::count(self.prefix.children.into())
    }

    /// Cached blocks at and below it.
    pub fn subtree_text(&self) -> String {
        let share = f64::from(self.prefix.blocks) / f64::from(self.all.max(1));
        format!(
            "{}, {} of all",
            format::plural(self.prefix.blocks.into(), "block", "blocks"),
            format::percent(share)
        )
    }

    /// Position of the deepest block at or below it.
    pub fn deepest_text(&self) -> String {
        format!("block {}", format::count(u64::from(self.prefix.bottom.saturating_sub(1))))
    }

    /// Blocks at and below it on several workers.
    pub fn shared_text(&self) -> String {
        let of = Redundancy::from(&self.prefix);
        let share = of.shared_share().map_or(String::new(), |share| format!(", {}", format::percent(share)));
        format!("{}{share}", format::plural(of.shared, "block", "blocks"))
    }

    /// Copies at and below it, in tokens and bytes as far as those are known.
    pub fn copies_text(&self, size: BlockSize) -> String {
        let copies = self.prefix.copies;
        let mut text = format::plural(copies, "block", "blocks");
        if let Some(tokens) = size.tokens(copies) {
            text += &format!(", {} tokens", format::short(tokens));
        }
        if let Some(bytes) = size.bytes(copies) {
            text += &format!(", {}", gib(bytes));
        }
        text
    }
}

/// What there is to show.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// No block.
    Nothing,
    /// It was there once.
    Evicted(Crumb),
    /// A block.
    Block(Box<Detail>),
}

impl Subject {
    /// Which block is meant: the one that is selected, else the one under the pointer.
    pub fn crumb(selected: Option<Crumb>, hovered: Option<Hovered>) -> Option<Crumb> {
        selected.or(match hovered {
            Some(Hovered::Block(crumb)) => Some(crumb),
            Some(Hovered::NarrowBoxes(_)) | None => None,
        })
    }

    /// With what is known of it. What is cached nowhere can be pointed at, but has no name.
    pub fn of(crumb: Crumb, is_selected: bool, detail: Option<Detail>) -> Self {
        match detail {
            Some(detail) => Subject::Block(Box::new(detail)),
            None if is_selected => Subject::Evicted(crumb),
            None => Subject::Nothing,
        }
    }

    /// The block, if it is one.
    pub fn block(&self) -> Option<&Detail> {
        if let Subject::Block(detail) = self { Some(detail) } else { None }
    }

    /// What is said where it is none any longer.
    pub fn evicted_text(&self) -> Option<String> {
        let Subject::Evicted(crumb) = self else { return None };
        Some(format!(
            "Block {} at position {} was evicted from every worker.",
            crumb.hash,
            format::count(crumb.position.into())
        ))
    }
}

/// Head above a block's particulars.
pub const fn head(is_selected: bool) -> &'static str {
    if is_selected { "Selected block" } else { "Block under the pointer" }
}
