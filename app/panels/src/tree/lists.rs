//! Prefixes worth a look, the largest or the most used first.

use radixscope_icicle::crumb::Crumb;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::WorkerIx;
use radixscope_state::cluster::{Hint, candidates_hint};
use radixscope_state::tree::forest::{ChainId, Forest};

use crate::format;

/// Lines at first, and by how many more there are at a press.
pub const LINES: usize = 10;
/// Most lines: who looks for more wants the table.
pub const MOST_LINES: usize = 100;
/// Holders named in a line.
pub const LIST_HOLDERS: usize = 3;

/// By what prefixes are ranked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranked {
    /// Blocks at and below them.
    Largest,
    /// Requests that found them held.
    Hottest,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedBox {
    /// First block of the box.
    pub crumb: Crumb,
    /// Position of the box's last block.
    pub last: u32,
    /// Who holds it.
    pub owners: Vec<WorkerIx>,
    /// Blocks at and below it.
    pub blocks: u32,
    /// Requests that found it held.
    pub hits: u32,
    /// Copies at and below it.
    pub copies: u64,
}

/// A list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrefixList {
    /// The lines.
    pub lines: Vec<ListedBox>,
    /// Whether there are more than were asked for.
    pub is_cut: bool,
    /// Blocks of the whole picture.
    pub blocks: u32,
    /// Requests of the window of which is known what was held.
    pub requests: u32,
}

impl PrefixList {
    /// At most `most` lines.
    pub fn of(shown: &ViewContext<'_>, forest: &Forest, by: Ranked, most: usize) -> Self {
        let tree = shown.tree();
        // Boxes that are cached nowhere cannot be selected; a few more than wanted make up for them.
        let ranked = match by {
            Ranked::Largest => forest.largest(most + LINES),
            Ranked::Hottest => forest.hottest(most + LINES),
        };
        let line = |id: ChainId| {
            let chain = forest.chain(id);
            ListedBox {
                crumb: Crumb::of(tree, forest, id),
                last: chain.end() - 1,
                owners: shown.owners(tree.chain_owners(chain)).collect(),
                blocks: chain.sums.blocks,
                hits: chain.sums.hits,
                copies: chain.sums.copies,
            }
        };
        let mut lines: Vec<ListedBox> =
            ranked.into_iter().map(line).filter(|line| !line.owners.is_empty()).collect();
        let is_cut = lines.len() > most;
        lines.truncate(most);
        Self { lines, is_cut, blocks: forest.sums().blocks, requests: forest.requests() }
    }

    /// Whether more lines can be asked for than the `most` that are.
    pub const fn can_grow(&self, most: usize) -> bool {
        self.is_cut && most < MOST_LINES
    }

    /// What stands above the lines.
    pub fn head(&self, by: Ranked) -> String {
        match by {
            Ranked::Largest => "By cached blocks at and below. Near-duplicates hidden.".to_owned(),
            Ranked::Hottest => format!(
                "By requests of the last 5 min that found them cached, of {} known.",
                format::plural(self.requests.into(), "request", "requests")
            ),
        }
    }

    /// What a line is ranked by.
    pub fn main_text(&self, by: Ranked, line: &ListedBox) -> String {
        match by {
            Ranked::Largest => self.blocks_text(line),
            Ranked::Hottest => self.hits_text(line),
        }
    }

    /// The other of the two.
    pub fn other_text(&self, by: Ranked, line: &ListedBox) -> String {
        match by {
            Ranked::Largest => self.hits_text(line),
            Ranked::Hottest => self.blocks_text(line),
        }
    }

    /// Length of a line's bar, for style sheets.
    pub fn bar(&self, by: Ranked, line: &ListedBox) -> String {
        let share = match by {
            Ranked::Largest => self.block_share(line),
            Ranked::Hottest => self.hit_share(line),
        };
        format!("--share:{}", format::width(share))
    }

    /// Of the blocks of the whole picture.
    fn block_share(&self, line: &ListedBox) -> f64 {
        f64::from(line.blocks) / f64::from(self.blocks.max(1))
    }

    /// Of the requests of which is known what was cached.
    fn hit_share(&self, line: &ListedBox) -> f64 {
        f64::from(line.hits) / f64::from(self.requests.max(1))
    }

    fn blocks_text(&self, line: &ListedBox) -> String {
        let blocks = format::plural(line.blocks.into(), "block", "blocks");
        format!("{blocks}, {}", format::percent(self.block_share(line)))
    }

    fn hits_text(&self, line: &ListedBox) -> String {
        if self.requests == 0 {
            return "hits unknown".to_owned();
        }
        let hits = format::plural(line.hits.into(), "hit", "hits");
        format!("{hits}, {}", format::percent(self.hit_share(line)))
    }
}

impl ListedBox {
    /// Where it leads, and its copies.
    pub fn title(&self) -> String {
        let copies = match self.copies {
            0 => "no duplicates".to_owned(),
            copies => format::plural(copies, "duplicate", "duplicates"),
        };
        format!("Go there. At and below it: {copies}")
    }

    /// Positions of its blocks in their prompt.
    pub fn place(&self) -> String {
        let first = format::count(self.crumb.position.into());
        if self.crumb.position == self.last {
            return format!("block {first}");
        }
        format!("blocks {first}–{}", format::count(self.last.into()))
    }
}

/// What an empty list says.
#[derive(Clone, PartialEq, Debug)]
pub enum EmptyList {
    /// Why it has no line.
    Text(String),
    /// Prompts are not visible, and which source would show them.
    Hint(&'static str, Hint),
}

impl EmptyList {
    /// Of a list with so many known requests and blocks. `hint`: what the state says is missing.
    pub fn of(by: Ranked, requests: u32, blocks: u32, hint: impl FnOnce() -> Option<Hint>) -> Self {
        match (by, requests, blocks) {
            (_, _, 0) => Self::Text("No cached block. The list fills with the first stored one.".to_owned()),
            (Ranked::Hottest, 0, _) => Self::Hint(
                "Prompts are not visible: no request of the last 5 min is known with its cached blocks. A source that shows prompts:",
                hint().unwrap_or(candidates_hint()),
            ),
            (Ranked::Hottest, requests, _) => Self::Text(format!(
                "None of {} in the last 5 min found a cached block.",
                format::plural(requests.into(), "request", "requests")
            )),
            (Ranked::Largest, ..) => Self::Text("No prefix is known from its beginning.".to_owned()),
        }
    }
}
