//! One field that finds a block, a worker or a decision by what the reader has at hand: the results as they are listed, and the keys of
//! the field. What a text may mean and what the state has of it is core's.

use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::palette::label;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{DecisionId, PoolIx, WorkerIx};
use radixscope_state::search::{self, Query, SearchHit};
use radixscope_state::tree::NodeId;

use crate::format;

/// Results shown at a time.
const MOST: usize = 20;

/// Where a result leads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Way {
    /// To a block of a pool's tree.
    Block(PoolIx, Crumb),
    /// A block whose parent was never received: not in the picture.
    Nowhere,
    /// A worker is picked out.
    Worker(WorkerIx),
    /// A decision is opened.
    Decision(DecisionId),
}

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchResult {
    /// Results of a kind stand together below this.
    pub group: &'static str,
    /// What it is.
    pub main: String,
    /// The rest, in short.
    pub more: String,
    /// Where it leads.
    pub way: Way,
}

/// What was found for a text.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchResults {
    /// What was looked for.
    pub text: String,
    understood: String,
    /// Those shown.
    pub lines: Vec<SearchResult>,
    /// Number of results before those.
    pub from: usize,
    /// How many there are.
    pub total: usize,
    /// Where was looked.
    through: String,
}

impl SearchResults {
    /// For a text that is not empty, from one of its results on.
    pub fn of(cluster: &ViewContext<'_>, text: &str, from: usize) -> Self {
        let query = Query::parse(text);
        let results = search::find(cluster, &query, from..from + MOST);
        let lines = results.found.into_iter().filter_map(|found| SearchResult::of(cluster, found)).collect();
        Self {
            text: text.trim().to_owned(),
            understood: query.to_text(),
            lines,
            from,
            total: results.total,
            through: search::looked_through(cluster),
        }
    }

    /// The blocks in the tree of `shown`.
    pub fn blocks(&self, shown: PoolIx) -> Vec<Crumb> {
        let block = |line: &SearchResult| match line.way {
            Way::Block(pool, crumb) => (pool == shown).then_some(crumb),
            Way::Nowhere | Way::Worker(_) | Way::Decision(_) => None,
        };
        self.lines.iter().filter_map(block).collect()
    }

    /// For those who hear the page, and below the field.
    pub fn summary(&self) -> String {
        if self.understood.is_empty() {
            return "Not understood: a block hash or tokens hash (decimal, signed or 0x…, four digits of one or more), a \
                    worker (W3, its id, id/rank), #decision or the beginning of a request id"
                .to_owned();
        }
        if self.lines.is_empty() {
            return format!("Nothing found for {} as {}. {}", self.text, self.understood, self.through);
        }
        let results = format::plural(self.total as u64, "result", "results");
        let shown = self.is_part().then(|| {
            format!(", {}–{} shown", self.from + 1, format::count((self.from + self.lines.len()) as u64))
        });
        format!("{results} for {}{}", self.understood, shown.unwrap_or_default())
    }

    /// Whether there are more than are shown.
    pub fn is_part(&self) -> bool {
        self.lines.len() < self.total
    }

    /// Where the results after these, or before them, begin; `None`: there are none.
    pub fn beside(&self, is_next: bool) -> Option<usize> {
        if is_next {
            Some(self.from + MOST).filter(|&from| from < self.total)
        } else {
            (self.from > 0).then(|| self.from.saturating_sub(MOST))
        }
    }
}

impl SearchResult {
    fn of(cluster: &ViewContext<'_>, found: SearchHit) -> Option<Self> {
        Some(match found {
            SearchHit::Block { pool, node, workers } => {
                let named = if workers.len() > 3 {
                    format!("{} workers", workers.len())
                } else {
                    workers.into_iter().map(label).collect::<Vec<_>>().join(" ")
                };
                Self::block(cluster, (pool, node), "Blocks by engine hash", &format!("called so by {named}"))
            }
            SearchHit::Tokens { pool, node } => {
                let hash = cluster.cluster.tree(pool).block_hash(node);
                Self::block(cluster, (pool, node), "Blocks by tokens hash", &format!("block hash {hash}"))
            }
            SearchHit::Part { pool, node, hash, is_tokens } => {
                let which = if is_tokens { "tokens hash" } else { "block hash" };
                let name = format!("{which} {hash}, 0x{}", format::hex(hash));
                Self::block(cluster, (pool, node), "Blocks by a part of a hash", &name)
            }
            SearchHit::Worker(ix) => {
                let worker = cluster.worker(ix)?;
                let holds = cluster
                    .blocks(ix)
                    .map_or("blocks unknown".to_owned(), |n| format::plural(n, "block", "blocks"));
                Self {
                    group: "Workers",
                    main: format!("{}  {}", label(ix), worker.id),
                    more: holds,
                    way: Way::Worker(ix),
                }
            }
            SearchHit::Decision(id) => {
                let decided = cluster.decisions().get(id)?;
                let request = decided.decision.request_id.as_deref().unwrap_or("request id unknown");
                let held = decided.overlap_blocks().map_or("cached part unknown".to_owned(), |held| {
                    format!("{} cached", format::plural(held, "block", "blocks"))
                });
                Self {
                    group: "Decisions",
                    main: format!("#{id}  {request}"),
                    more: format!("for {}, {held}", label(decided.decision.worker)),
                    way: Way::Decision(id),
                }
            }
        })
    }

    fn block(
        cluster: &ViewContext<'_>,
        (pool, node): (PoolIx, NodeId),
        group: &'static str,
        name: &str,
    ) -> Self {
        let tree = cluster.cluster.tree(pool);
        let mut holders = format::plural(tree.owners(node).len() as u64, "worker", "workers");
        if let Some(other) = cluster.cluster.pool(pool).filter(|_| pool != cluster.pool) {
            holders += &format!(", in pool {}", other.name());
        }
        if !tree.is_attached(node) {
            let main = "Waits for a parent that was never received".to_owned();
            return Self { group, main, more: format!("{name}, {holders}; not drawn"), way: Way::Nowhere };
        }
        let crumb = Crumb::at(tree, node, tree.position(node));
        let main = format!("Block at position {}", format::count(crumb.position.into()));
        Self { group, main, more: format!("{name}, {holders}"), way: Way::Block(pool, crumb) }
    }
}

/// Results of one kind, each with its number.
pub type Group<'a> = (&'static str, Vec<(usize, &'a SearchResult)>);

impl SearchResults {
    /// The results, those of a kind together, each with its number.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let lines: Vec<(usize, &SearchResult)> = self.lines.iter().enumerate().collect();
        let groups = lines.chunk_by(|(_, a), (_, b)| a.group == b.group);
        groups.map(|group| (group.first().map_or("", |(_, line)| line.group), group.to_vec())).collect()
    }
}

/// What a key of the field does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchKey {
    /// Opens the list and marks a result by its number.
    Mark(usize),
    /// Opens the list as it is marked.
    Open,
    /// Shows the results after these, or before them, and marks the first, or the last, of them.
    Turn {
        /// Which.
        is_next: bool,
        /// Whether the last of them is marked.
        marks_last: bool,
    },
    /// Goes where the marked result leads.
    Go,
    /// Closes the list.
    Close,
    /// Empties the field and leaves it.
    Leave,
}

impl SearchKey {
    /// Of a key's name; `None`: it is not the field's. `marked`: the number of the marked result.
    pub fn of(key: &str, results: Option<&SearchResults>, marked: usize, is_open: bool) -> Option<Self> {
        let lines = results.map_or(0, |results| results.lines.len());
        let has = |is_next| results.is_some_and(|results| results.beside(is_next).is_some());
        match key {
            "ArrowDown" | "ArrowUp" if lines > 0 => {
                let is_down = key == "ArrowDown";
                let is_last = marked == if is_down { lines - 1 } else { 0 };
                Some(match is_open {
                    true if is_last && has(is_down) => Self::Turn { is_next: is_down, marks_last: !is_down },
                    true => Self::Mark((marked + if is_down { 1 } else { lines - 1 }) % lines),
                    false => Self::Open,
                })
            }
            "PageDown" => Some(Self::Turn { is_next: true, marks_last: false }),
            "PageUp" => Some(Self::Turn { is_next: false, marks_last: false }),
            "Enter" => Some(Self::Go),
            "Escape" if is_open => Some(Self::Close),
            "Escape" => Some(Self::Leave),
            _ => None,
        }
    }
}
