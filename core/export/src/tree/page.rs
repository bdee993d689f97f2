//! A page of the tree: elements in pre-order, siblings in the order asked for, from the top or after a cursor.

use std::cmp::Reverse;

use serde::Serialize;

use super::cursor::Cursor;
use super::element::Element;
use super::sums::{Chain, Place, Sums};
use super::{MAX_HITS_WINDOW_MS, NotFound, SumsOfAll, TreeSnapshot};
use radixscope_model::id::{BlockHash, Millis, Seq, WorkerIx};
use radixscope_state::tree::NodeId;

/// In which order siblings come. Ties are broken by tokens hash, the smaller first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// First stored first.
    #[default]
    First,
    /// Most blocks at and below them first.
    Blocks,
    /// Most hits first.
    Hits,
    /// Latest touched first, themselves or below them.
    Recent,
    /// By tokens hash alone, so that nothing changes its place.
    Hash,
}

impl Sort {
    /// All, by name.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("first", Self::First),
        ("blocks", Self::Blocks),
        ("hits", Self::Hits),
        ("recent", Self::Recent),
        ("hash", Self::Hash),
    ];

    /// As the API calls it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, sort)| *sort == self).map_or("", |&(name, _)| name)
    }

    pub(super) fn letter(self) -> &'static str {
        match self {
            Self::First => "f",
            Self::Blocks => "b",
            Self::Hits => "h",
            Self::Recent => "r",
            Self::Hash => "x",
        }
    }

    pub(super) fn of_letter(letter: &str) -> Option<Self> {
        Self::NAMES.iter().map(|&(_, sort)| sort).find(|sort| sort.letter() == letter)
    }
}

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// The block that the response begins with; `None`: the top.
    pub root: Option<BlockHash>,
    /// Only what leads to blocks that one of these holds; `None`: that anyone holds.
    pub workers: Option<Vec<WorkerIx>>,
    /// Levels of elements.
    pub levels: usize,
    /// Most elements.
    pub limit: usize,
    /// Order of siblings.
    pub sort: Sort,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// How far back hits count, at most [`MAX_HITS_WINDOW_MS`].
    pub hits_window_ms: u64,
    /// What a token takes, if the reader knows.
    pub kv_bytes_per_token: Option<u64>,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            root: None,
            workers: None,
            levels: 60,
            limit: 1_000,
            sort: Sort::default(),
            after: None,
            hits_window_ms: MAX_HITS_WINDOW_MS,
            kv_bytes_per_token: None,
        }
    }
}

/// By what siblings are ordered.
type SortKey = (u64, u64);

/// A page of the tree, and where the next one goes on.
#[derive(Serialize)]
pub struct PageResponse<'p> {
    seq: Seq,
    at_ms: Millis,
    pool: &'p str,
    root: Option<BlockHash>,
    sort: Sort,
    /// Sums over what was asked for.
    blocks: u32,
    shared_blocks: u32,
    copies: u64,
    totals: SumsOfAll,
    /// Parents first, each with its level.
    rows: Vec<Element<'p>>,
    /// Whether something was left out, by limit or by depth.
    truncated: bool,
    next: Option<Cursor>,
}

/// About what a row takes as JSON.
const ROW_BYTES: usize = 420;

impl PageResponse<'_> {
    /// As JSON.
    pub fn json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(1024 + self.rows.len() * ROW_BYTES);
        // Writing plain data into memory cannot fail.
        let _ = serde_json::to_writer(&mut json, self);
        json
    }
}

impl TreeSnapshot {
    /// A page of the tree.
    ///
    /// # Errors
    /// The root, or where the last page ended, is not in the tree.
    pub fn page(&self, page: &Page) -> Result<PageResponse<'_>, NotFound> {
        let tree = self.tree();
        let root = match page.root {
            None => NodeId::ROOT,
            Some(hash) => self.find(hash, page.workers.as_deref(), "root")?,
        };
        let mut own = None;
        let sums: &Sums = match page {
            Page { root: None, workers: None, hits_window_ms: MAX_HITS_WINDOW_MS, .. } => {
                self.whole.get_or_init(|| Sums::below(tree, root, None, self.since(MAX_HITS_WINDOW_MS)))
            }
            _ => {
                let slots = page.workers.as_deref().map(|workers| self.slots(workers));
                own.insert(Sums::below(tree, root, slots.as_deref(), self.since(page.hits_window_ms)))
            }
        };
        let mut walk = Walk {
            picture: self,
            page,
            sums,
            begin: tree.is_attached(root).then(|| tree.position(root)),
            requests: self.requests(page.hits_window_ms),
            rows: Vec::new(),
            last: None,
            is_cut_by_limit: false,
            is_cut_by_depth: false,
        };
        let open = match &page.after {
            None => vec![walk.at_top(root)],
            Some(cursor) => walk.resume(root, cursor)?,
        };
        walk.elements(open);
        let row = sums.row(0);
        Ok(PageResponse {
            seq: self.seq,
            at_ms: self.at_ms,
            pool: &self.pool_name,
            root: page.root,
            sort: page.sort,
            blocks: row.blocks,
            shared_blocks: row.shared,
            copies: row.copies,
            totals: self.sums_of_all(page.hits_window_ms, page.kv_bytes_per_token),
            truncated: walk.is_cut_by_limit || walk.is_cut_by_depth,
            next: walk.next(),
            rows: walk.rows,
        })
    }
}

struct Walk<'w, 'p> {
    picture: &'p TreeSnapshot,
    page: &'w Page,
    sums: &'w Sums,
    /// Position of the first row; `None` if its path to the top is not known.
    begin: Option<u32>,
    requests: Option<u32>,
    rows: Vec<Element<'p>>,
    /// First block of the last element.
    last: Option<Place>,
    is_cut_by_limit: bool,
    is_cut_by_depth: bool,
}

/// Siblings that are not yet on a page, last first.
type Siblings = Vec<Place>;

impl Walk<'_, '_> {
    /// Elements that still have room.
    fn left(&self) -> usize {
        self.page.limit.saturating_sub(self.rows.len())
    }

    /// Adds what is open, level by level, and what is below it.
    fn elements(&mut self, mut open: Vec<Siblings>) {
        while let Some(siblings) = open.last_mut() {
            let Some(next) = siblings.pop() else {
                open.pop();
                continue;
            };
            if self.left() == 0 {
                self.is_cut_by_limit = true;
                return;
            }
            let end = self.element(next, open.len() - 1);
            if open.len() < self.page.levels {
                open.push(self.children(end, |_| true));
            } else {
                self.is_cut_by_depth |= self.sums.row(end).branches > 0;
            }
        }
    }

    /// Adds the chain that begins at `first`, and gives its last block.
    fn element(&mut self, first: Place, level: usize) -> Place {
        let (tree, sums) = (self.picture.tree(), self.sums);
        let row = sums.row(first);
        let Chain { end, len, touched } = sums.chain(tree, first);
        self.rows.push(Element {
            picture: self.picture,
            level: Some(level),
            first: row.node,
            last: sums.row(end).node,
            len,
            position: self.begin.map(|begin| sums.position(first, begin)),
            blocks: row.blocks,
            shared: row.shared,
            copies: row.copies,
            depth: self.begin.map(|begin| begin + row.bottom),
            hits: self.requests.map(|_| row.hits),
            touched,
            subtree_touched: row.touched,
            branches: sums.row(end).branches as usize,
        });
        self.last = Some(first);
        end
    }

    fn key(&self, place: Place) -> SortKey {
        let (tree, row) = (self.picture.tree(), self.sums.row(place));
        let rank = match self.page.sort {
            Sort::First => tree.first_stored(row.node).into(),
            Sort::Blocks => u64::MAX - u64::from(row.blocks),
            Sort::Hits => u64::MAX - u64::from(row.hits),
            Sort::Recent => u64::MAX - u64::from(row.touched),
            Sort::Hash => 0,
        };
        (rank, tree.tokens_hash(row.node).0)
    }

    /// What is below the block at `place` and `is_wanted`, last first; no more of it than has room, and one.
    fn children(&self, place: Place, is_wanted: impl Fn(SortKey) -> bool) -> Siblings {
        let branches = self.sums.branches(place).map(|child| (self.key(child), child));
        let mut children: Vec<(SortKey, Place)> = branches.filter(|&(key, _)| is_wanted(key)).collect();
        let most = self.left().saturating_add(1);
        if children.len() > most {
            children.select_nth_unstable(most);
            children.truncate(most);
        }
        children.sort_unstable_by_key(|&child| Reverse(child));
        children.into_iter().map(|(_, place)| place).collect()
    }

    /// The elements of the first level.
    fn at_top(&self, root: NodeId) -> Siblings {
        if root == NodeId::ROOT { self.children(0, |_| true) } else { vec![0] }
    }

    /// What is left after the element of `cursor`, level by level.
    fn resume(&self, root: NodeId, cursor: &Cursor) -> Result<Vec<Siblings>, NotFound> {
        let (tree, sums) = (self.picture.tree(), self.sums);
        let named = self.named(cursor);
        // If it has gone, its siblings go on below the block before it; at the top there is always a place.
        let from = match (named, cursor.above) {
            (Some(node), _) => node,
            (None, Some(above)) => tree.find_any(above).ok_or(NotFound::Place)?,
            (None, None) => NodeId::ROOT,
        };
        let behind = |key: SortKey| move |other: SortKey| other > key;
        let behind_cursor = |(rank, tokens): SortKey| {
            (rank, tokens) > (cursor.rank, cursor.tokens.0) && tokens != cursor.tokens.0
        };
        let mut levels = Vec::new();
        if root != NodeId::ROOT {
            levels.push(Vec::new());
        }
        let mut place = 0;
        for node in self.path(root, from)? {
            let below = sums.children(place).find(|&at| sums.row(at).node == node).ok_or(NotFound::Place)?;
            if sums.begins(tree, place, below) {
                levels.push(match named == Some(node) {
                    true => self.children(place, behind_cursor),
                    false => self.children(place, behind(self.key(below))),
                });
            }
            place = below;
        }
        let end = if sums.row(place).node == NodeId::ROOT { place } else { sums.chain(tree, place).end };
        levels.push(match named {
            Some(_) => self.children(end, |_| true),
            None => self.children(end, behind_cursor),
        });
        levels.truncate(self.page.levels);
        Ok(levels)
    }

    /// The block that `cursor` names, if it is where it was.
    fn named(&self, cursor: &Cursor) -> Option<NodeId> {
        let tree = self.picture.tree();
        let is_it = |&node: &NodeId| {
            tree.tokens_hash(node) == cursor.tokens && tree.position(node) == cursor.position
        };
        let any = tree.find_any(cursor.block).filter(is_it);
        any.or_else(|| self.picture.places(cursor.block).into_iter().find(is_it))
    }

    /// The blocks from behind `root` to `to`.
    fn path(&self, root: NodeId, to: NodeId) -> Result<Vec<NodeId>, NotFound> {
        let tree = self.picture.tree();
        let mut path = Vec::new();
        let mut at = to;
        while at != root {
            path.push(at);
            at = tree.parent(at).ok_or(NotFound::Elsewhere)?;
        }
        path.reverse();
        Ok(path)
    }

    /// Where the next page goes on.
    fn next(&self) -> Option<Cursor> {
        let last = self.last.filter(|_| self.is_cut_by_limit)?;
        let tree = self.picture.tree();
        let node = self.sums.row(last).node;
        Some(Cursor {
            sort: self.page.sort,
            rank: self.key(last).0,
            tokens: tree.tokens_hash(node),
            block: tree.block_hash(node),
            position: tree.position(node),
            above: tree
                .parent(node)
                .filter(|&above| above != NodeId::ROOT)
                .map(|above| tree.block_hash(above)),
        })
    }
}
