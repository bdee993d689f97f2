//! The tree as a table whose lines open: what the picture shows, for the keyboard and for those who hear the page. Its lines, what each
//! says, and where a key leads.
//!
//! Lines are put in order anew at a readable pace; the line that the reader is on stays where it is on the screen.

use std::collections::HashSet;

use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::touched_ms;
use radixscope_state::tree::Tree;
use radixscope_state::tree::forest::{Forest, Row, RowOrder};

use crate::format::{self, UNKNOWN};

/// Lines at most; a browser's elements end at some 30 million pixels.
const MOST_LINES: usize = 500_000;
/// Owners named in a line; all are named in its title.
const OWNERS: usize = 3;
/// How far a line is indented per level, CSS pixels, and how deep that goes.
const INDENT: (u32, u32) = (14, 16);

/// A column of the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Classes that say where it stands.
    pub class: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub title: &'static str,
    /// What it orders lines by.
    pub order: Option<RowOrder>,
}

/// The head.
pub const COLUMNS: [Column; 7] = [
    Column {
        class: "g-prefix",
        name: "Prefix",
        title: "Position of its first block in the prompt, and how many blocks follow on the same workers",
        order: None,
    },
    Column {
        class: "g-hash mono",
        name: "Block hash",
        title: "Engine's hash of its first block",
        order: None,
    },
    Column {
        class: "g-owners",
        name: "Workers",
        title: "Workers on which its blocks are cached",
        order: None,
    },
    Column {
        class: "g-blocks n",
        name: "Blocks",
        title: "Distinct cached blocks in it and below it",
        order: Some(RowOrder::Blocks),
    },
    Column {
        class: "g-copies n",
        name: "Duplicates",
        title: "Copies on a second or further worker, in it and below it",
        order: None,
    },
    Column {
        class: "g-hits n",
        name: "Hits, 5 min",
        title: "Requests sent to a worker on which its first block was cached",
        order: Some(RowOrder::Hits),
    },
    Column {
        class: "g-used n",
        name: "Last used",
        title: "When a worker last stored or a request last used a block in it or below it",
        order: Some(RowOrder::Recency),
    },
];

/// The part of a line that stays: the rest is looked up when it comes into sight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowKey {
    /// The box.
    pub crumb: Crumb,
    /// From 1.
    pub level: u32,
    /// Place among its siblings, from 1.
    pub place: u32,
    /// How many there are.
    pub siblings: u32,
    /// Whether the lines below it are shown.
    pub is_open: bool,
}

impl RowKey {
    fn of(tree: &Tree, forest: &Forest, row: &Row) -> Self {
        let crumb = Crumb::of(tree, forest, row.id);
        Self { crumb, level: row.level, place: row.place, siblings: row.siblings, is_open: row.is_open }
    }

    /// How far it is indented, for style sheets.
    pub fn indent(&self) -> String {
        format!("padding-left: {}px", INDENT.0 * (self.level.min(INDENT.1) - 1))
    }
}

/// A line in sight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GridRow {
    /// Its box and place.
    pub key: RowKey,
    /// Its number, from 0.
    pub at: usize,
    /// Whether it can be opened.
    pub has_children: bool,
    /// Position of its first block, and how many follow.
    pub prefix: String,
    /// Workers that hold it.
    pub owners: Vec<WorkerIx>,
    /// Blocks in it and below it.
    pub blocks: String,
    /// Copies of those.
    pub copies: String,
    /// Hits.
    pub hits: String,
    /// When it was last used.
    pub used: String,
}

impl GridRow {
    /// What a line shows now; `None` where its box is gone.
    pub fn of(shown: &ViewContext<'_>, now: Millis, at: usize, key: RowKey) -> Option<Self> {
        let tree = shown.tree();
        let forest = tree.forest()?;
        let id = key.crumb.chain(tree)?;
        let chain = forest.chain(id);
        let sums = &chain.sums;
        let len =
            if chain.len > 1 { format!(" ×{}", format::count(chain.len.into())) } else { String::new() };
        let knows_hits = tree.requests(0) > 0;
        Some(Self {
            key,
            at,
            has_children: !forest.children(Some(id)).is_empty(),
            prefix: format!("{}{len}", key.crumb.to_text()),
            owners: shown.owners(tree.chain_owners(chain)).collect(),
            blocks: format::count(sums.blocks.into()),
            copies: format::count(sums.copies),
            hits: if knows_hits { format::count(sums.hits.into()) } else { UNKNOWN.to_owned() },
            used: format::ago(now.0.saturating_sub(touched_ms(sums.touched).0)),
        })
    }

    /// Labels of all its workers.
    pub fn owner_labels(&self) -> String {
        self.owners.iter().map(|&worker| label(worker)).collect::<Vec<_>>().join(" ")
    }

    /// The workers named in the line, and how many more there are, as text.
    pub fn named_owners(&self) -> (&[WorkerIx], Option<String>) {
        let named = &self.owners[..self.owners.len().min(OWNERS)];
        let more = self.owners.len() - named.len();
        (named, (more > 0).then(|| format!("+{more}")))
    }
}

/// The lines of a tree, by which boxes are open.
pub fn lines(tree: &Tree, forest: &Forest, order: RowOrder, open: &HashSet<u64>) -> Vec<RowKey> {
    let rows = forest.rows(order, MOST_LINES, |chain| open.contains(&tree.block_hash(chain.first).0));
    rows.iter().map(|row| RowKey::of(tree, forest, row)).collect()
}

/// Where a box's line is.
pub fn line_of(lines: &[RowKey], crumb: Crumb) -> Option<usize> {
    lines.iter().position(|line| line.crumb == crumb)
}

/// Which line is to be at the upper edge when `before` become `after`, so that the line that the reader is on stays where it is; `None`:
/// nothing is to be scrolled. `first`: the line at the edge, whether it is the top of the table, and the cursor if it is in sight.
pub fn edge_after(
    before: &[RowKey],
    after: &[RowKey],
    (first, is_at_top): (usize, bool),
    cursor_in_sight: Option<Crumb>,
) -> Option<usize> {
    let at_edge = || before.get(first).filter(|_| !is_at_top).map(|line| line.crumb);
    let anchor = cursor_in_sight.or_else(at_edge)?;
    let (was, is) = (line_of(before, anchor)?, line_of(after, anchor)?);
    (was != is).then(|| (first + is).saturating_sub(was))
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GridMove {
    /// Opens the line.
    Open(Crumb),
    /// Closes it.
    Close(Crumb),
    /// Puts the cursor on another line.
    To(usize),
    /// Shows the box in the picture.
    Show(Crumb),
}

/// What a key other than those up and down does: right opens and then goes to the first line below; left closes and then goes to the
/// line above it; Enter and space show it as a picture. `None`: nothing, if also the key is taken.
pub fn sideways(lines: &[RowKey], at: usize, key: &str) -> Option<GridMove> {
    let line = lines.get(at)?;
    match key {
        "ArrowRight" if !line.is_open => Some(GridMove::Open(line.crumb)),
        "ArrowRight" => (at + 1 < lines.len()).then_some(GridMove::To(at + 1)),
        "ArrowLeft" if line.is_open => Some(GridMove::Close(line.crumb)),
        "ArrowLeft" => lines[..at].iter().rposition(|other| other.level < line.level).map(GridMove::To),
        "Enter" | " " => Some(GridMove::Show(line.crumb)),
        _ => None,
    }
}

/// Whether [`sideways`] takes a key.
pub fn is_sideways(key: &str) -> bool {
    matches!(key, "ArrowRight" | "ArrowLeft" | "Enter" | " ")
}

/// Which of `lines` lines a key leads to from the one that the keyboard is on; `None` for other keys. `first`: the first one in sight;
/// `fitting`: how many fit.
pub fn line_after(
    key: &str,
    at: Option<usize>,
    lines: usize,
    (first, fitting): (usize, usize),
) -> Option<usize> {
    let here = at.unwrap_or(0);
    let to = match key {
        "ArrowDown" => at.map_or(first, |at| at + 1),
        "ArrowUp" => here.saturating_sub(1),
        "PageDown" => here + fitting,
        "PageUp" => here.saturating_sub(fitting),
        "Home" => 0,
        "End" => lines.saturating_sub(1),
        _ => return None,
    };
    Some(to.min(lines.saturating_sub(1)))
}
