//! Short texts round the picture: where in the tree the reader is, what the camera shows, why the tree is paused, what hits leave out,
//! and how a worker's cache is filled.

use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::viewport::Region;
use radixscope_icicle::visible;
use radixscope_insight::changes::BlockChange;
use radixscope_insight::completeness::coverage_text;
use radixscope_insight::view_context::{PoolLabel, ViewContext};
use radixscope_model::id::{PoolIx, Seq, WorkerIx};
use radixscope_state::tree::forest::{Forest, Width};
use radixscope_state::tree::{Totals, Tree};

use radixscope_export::tree::svg::Heat;

use super::choice::Choice;
use crate::format;

/// Boxes that are named at the path's beginning, and at its end.
const FIRST: usize = 1;
const LAST: usize = 3;

/// The way from everything to what spans the window.
#[derive(Clone, PartialEq, Debug)]
pub struct PathBar {
    /// Boxes from the top.
    pub first: Vec<PathItem>,
    /// What is said of those between.
    pub between: Option<String>,
    /// Boxes at the end.
    pub last: Vec<PathItem>,
}

/// A box of it.
#[derive(Clone, PartialEq, Debug)]
pub struct PathItem {
    /// The box.
    pub crumb: Crumb,
    /// The token at which it begins, where a block's size is known.
    pub token: Option<String>,
    /// Whether it is what is looked at.
    pub is_last: bool,
}

impl PathBar {
    /// Of boxes from the top.
    pub fn of(path: &[Crumb], block_tokens: Option<u32>) -> Self {
        let n = path.len();
        let item = |at: usize| PathItem {
            crumb: path[at],
            token: block_tokens.map(|size| format::count(u64::from(path[at].position) * u64::from(size))),
            is_last: at + 1 == n,
        };
        let first = n.min(FIRST);
        let left_out = n.saturating_sub(FIRST + LAST);
        Self {
            first: (0..first).map(item).collect(),
            between: (left_out > 0)
                .then(|| format!("{} between", format::plural(left_out as u64, "box", "boxes"))),
            last: (first + left_out..n).map(item).collect(),
        }
    }
}

impl PathItem {
    /// Where it leads.
    pub fn title(&self) -> String {
        let Crumb { position, hash, .. } = self.crumb;
        format!("Zoom to block {position} and what is below it: hash {hash}")
    }
}

/// The unit of the axis; `None`: what is shown has none.
pub fn axis_unit(choice: &Choice, block_tokens: Option<u32>) -> Option<&'static str> {
    let unit = if block_tokens.is_some() { "tokens" } else { "blocks" };
    (!choice.table && !choice.lanes).then_some(unit)
}

/// Which part of the tree is shown.
pub fn showing(region: Region, forest: &Forest, block_tokens: Option<u32>) -> String {
    let all = Region::all(forest);
    let (from, to) = (region.top.max(0.0).floor(), region.bottom.min(all.bottom).ceil());
    let share = ((region.x1.min(all.x1) - region.x0.max(0.0)) / all.x1).clamp(0.0, 1.0);
    let tokens = block_tokens.map(|size| {
        let at = |position: f64| format::count(position as u64 * u64::from(size));
        format!(", tokens {}–{}", at(from), at(to))
    });
    let unit = match forest.arrangement().width {
        Width::Blocks => "the tree's blocks",
        Width::Hits => "the hits",
    };
    format!(
        "Blocks {}–{} of the prompt{}, {} of {unit} across",
        format::count(from as u64),
        format::count(to as u64),
        tokens.unwrap_or_default(),
        percent(share),
    )
}

/// A share with a digit more where it is small.
fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.095 {
        let percent = share * 100.0;
        if percent < 0.05 { "<0.1 %".to_owned() } else { format!("{percent:.1} %") }
    } else {
        format::percent(share)
    }
}

/// From the pointer to the text beside it, CSS pixels.
const AWAY_PX: f64 = 14.0;

/// Where the text beside the pointer stands in a frame, for style sheets: on the side of the pointer where there is more room.
pub fn tip_place((x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let px = |distance: f64| (distance + AWAY_PX).round() as i64;
    let across =
        if x > width / 2.0 { format!("right:{}px", px(width - x)) } else { format!("left:{}px", px(x)) };
    let down =
        if y > height / 2.0 { format!("bottom:{}px", px(height - y)) } else { format!("top:{}px", px(y)) };
    format!("{across};{down}")
}

/// What is shown below the block, beside the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SideTab {
    /// The largest prefixes.
    Largest,
    /// The most used ones.
    Hottest,
    /// What duplicates cost.
    Copies,
    /// The open decision.
    Decision,
}

impl SideTab {
    /// All of them, in their order.
    pub const ALL: [SideTab; 4] = [Self::Largest, Self::Hottest, Self::Copies, Self::Decision];

    /// For tests.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Largest => "largest",
            Self::Hottest => "hottest",
            Self::Copies => "copies",
            Self::Decision => "decision",
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Largest => "Largest",
            Self::Hottest => "Hottest",
            Self::Copies => "Duplicates",
            Self::Decision => "Decision",
        }
    }

    /// Id of its element.
    pub fn id(self) -> String {
        format!("side-tab-{}", self.key())
    }

    /// The tab that a key leads to from the one at a place; `None` for other keys.
    pub fn after(at: usize, key: &str) -> Option<Self> {
        let all = Self::ALL.len();
        let to = match key {
            "ArrowRight" => (at + 1) % all,
            "ArrowLeft" => (at + all - 1) % all,
            "Home" => 0,
            "End" => all - 1,
            _ => return None,
        };
        Some(Self::ALL[to])
    }
}

/// Why the tree is paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PauseReason {
    /// The pointer is over it.
    Pointer,
    /// One of its boxes has the focus of the keyboard.
    Focus,
}

impl PauseReason {
    /// What pauses it, if anything does.
    pub fn of(is_pointer_over: bool, has_focus: bool) -> Option<Self> {
        if is_pointer_over { Some(Self::Pointer) } else { has_focus.then_some(Self::Focus) }
    }

    /// As text.
    pub const fn to_text(self) -> &'static str {
        match self {
            PauseReason::Pointer => "Paused while the pointer is here",
            PauseReason::Focus => "Paused while a box has the focus",
        }
    }
}

/// What is not in the picture because widths or colours are hits. `requests`: those whose cached blocks are known.
pub fn hits_note(requests: u32, seen: Option<(&Tree, &Forest)>) -> String {
    if requests == 0 {
        return "No hit is known in the last 5 minutes, so hits rank nothing".to_owned();
    }
    let left_out = seen.and_then(|(tree, forest)| {
        let all = forest.sums().blocks;
        let is_hits = forest.arrangement().width == Width::Hits;
        let without = if is_hits { visible::without_hit(tree, forest) } else { 0 };
        let (blocks, of) = (format::count(without.into()), format::count(all.into()));
        (without > 0).then(|| format!(". {blocks} of {of} blocks are in boxes without a hit and are hidden"))
    });
    let requests = format::plural(requests.into(), "request", "requests");
    format!(
        "Hits of the last 5 minutes, from {requests} whose cached blocks are known{}",
        left_out.unwrap_or_default()
    )
}

/// Cached blocks: those in the tree, of all.
pub fn shown_of(totals: Totals) -> String {
    let shown = totals.resident.saturating_sub(totals.hidden);
    format!("{}/{}", format::count(shown), format::count(totals.resident))
}

/// Distinct blocks; unknown before any KV event.
pub fn distinct_blocks(totals: Totals, has_kv_events: bool) -> String {
    if has_kv_events { format::count(totals.nodes) } else { format::UNKNOWN.to_owned() }
}

/// Distinct blocks on two workers or more, of all.
pub fn shared_text(totals: Totals) -> String {
    match totals.nodes {
        0 => format::UNKNOWN.to_owned(),
        nodes => format::percent(totals.shared as f64 / nodes as f64),
    }
}

/// What each colour of two moments compared says in full.
const CHANGES: [&str; 5] = [
    "The same workers hold it at A and at B",
    "Workers stored it between A and B, and none evicted it",
    "Workers evicted it between A and B, and none stored it",
    "A worker evicted it and another one stored it between A and B",
    "The selected worker holds it neither at A nor at B",
];

/// A colour of two moments compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeKey {
    /// What became of a block, for tests and style sheets.
    pub id: &'static str,
    /// The same for the reader.
    pub name: &'static str,
    /// In full.
    pub title: &'static str,
    /// How many blocks.
    pub count: String,
}

impl ChangeKey {
    /// Of so many blocks; `None`: only where a worker is selected is there any.
    pub fn of(change: BlockChange, blocks: u64) -> Option<Self> {
        let id = change.as_str();
        let is_elsewhere = change == BlockChange::Elsewhere;
        (!is_elsewhere || blocks > 0).then(|| Self {
            id,
            name: if is_elsewhere { "not on the selected worker" } else { id },
            title: CHANGES[change as usize],
            count: format::count(blocks),
        })
    }
}

/// How full a worker is, where that is known; else what it holds.
pub fn fill_text(shown: &ViewContext<'_>, worker: WorkerIx) -> String {
    let capacity = shown.capacity(worker).filter(|capacity| capacity.value > 0);
    match (shown.blocks(worker), capacity) {
        (Some(held), Some(capacity)) => {
            format!("{} full", format::percent(held as f64 / capacity.value as f64))
        }
        (Some(held), None) => format!("{} blocks", format::short(held)),
        (None, _) => "unknown".to_owned(),
    }
}

/// Distinct blocks and how much of all is known; empty: there is none.
pub fn blocks_and_coverage(shown: &ViewContext<'_>) -> String {
    match shown.tree().totals().nodes {
        0 => String::new(),
        nodes => {
            let blocks = format::plural(nodes, "distinct block", "distinct blocks");
            format!("{blocks}, {}", coverage_text(&shown.coverage()))
        }
    }
}

/// Which pool is drawn, where pools take turns.
pub fn turn_text(labels: &[PoolLabel], drawn: PoolIx) -> Option<String> {
    let at = labels.iter().position(|label| label.pool == drawn)?;
    Some(format!("{}, pool {} of {}", labels[at].beside(labels), at + 1, labels.len()))
}

/// What a saved picture is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PictureFacts {
    /// Part, width and colour.
    pub title: String,
    /// The moment.
    pub at: String,
    /// Name of the file, without its end.
    pub name: String,
}

impl PictureFacts {
    /// `iso`: the cluster's time, as ISO 8601 writes it.
    pub fn of(shown: &ViewContext<'_>, forest: &Forest, region: Region, choice: &Choice, iso: &str) -> Self {
        let Seq(seq) = shown.seq();
        let width = match choice.arrangement.width {
            Width::Blocks => "width: cached blocks",
            Width::Hits => "width: hits of the last 5 min",
        };
        let heat = match choice.heat {
            Heat::Owner => "colour: worker",
            Heat::Recency => "colour: last use",
            Heat::Hits => "colour: hits of the last 5 min",
            Heat::Owners => "colour: replica count",
            Heat::Sessions => "colour: session",
        };
        let pool = match shown.pool_list().len() {
            0 | 1 => String::new(),
            _ => shown.cluster.pool(shown.pool).map_or(String::new(), |pool| format!(" of {}", pool.name())),
        };
        let blocks = |n: f64| format::count(n.max(0.0).round() as u64);
        let part = if region == Region::all(forest) {
            "all prompts".to_owned()
        } else {
            format!("positions {} to {}", blocks(region.top), blocks(region.bottom))
        };
        Self {
            title: format!("Prefix tree{pool}, {part}; {width}; {heat}"),
            at: format!("{iso}, record {}", format::count(seq)),
            name: format!("radixscope-tree-{}-{seq}", iso.get(..19).unwrap_or_default().replace(':', "-")),
        }
    }
}

/// What a picture's blocks are in all.
pub fn picture_sums(totals: Totals) -> String {
    format!(
        "{} distinct blocks, {} on several workers, {} hidden by the limit. Down: position in the prompt",
        format::count(totals.nodes),
        format::count(totals.shared),
        format::count(totals.hidden)
    )
}
