//! What the reader chose about the tree's picture, as the address says it, and the controls that choose it.

use radixscope_export::tree::svg::Heat;
use radixscope_state::cluster::{TOUCH_MS, touch};
use radixscope_state::tree::forest::{Arrangement, NarrowBoxes, Order, Width};

use radixscope_icicle::crumb::Crumb;
use radixscope_insight::changes::{BlockChange, ChangeTree};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;

use crate::format;
use crate::url::Address;

/// Keys in the address that only this panel reads.
pub mod key {
    /// `hits`: boxes are as wide as their hits; absent: as their blocks.
    pub const WIDTH: &str = "tree.width";
    /// `recency`, `hits`, `owners`, `sessions`: what boxes are coloured by; absent: their owners.
    pub const HEAT: &str = "tree.heat";
    /// `1`: one lane a worker.
    pub const LANES: &str = "tree.lanes";
    /// `1`: the table in place of the picture.
    pub const TABLE: &str = "tree.table";
    /// The engine's hash of the block to begin at.
    pub const BLOCK: &str = "tree.block";
}

/// How far back hits count.
pub const HITS_WINDOW_MS: u64 = 5 * 60 * 1_000;
/// The same in steps of the tree's clock.
const HITS_WINDOW: u32 = (HITS_WINDOW_MS / TOUCH_MS) as u32;

/// Where the tree stands, and so what belongs to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TreePlacement {
    /// A panel that fills the page: wheel and hand move the camera, a click selects, the address says how it looks.
    Page,
    /// The same in the panel of changes between two moments: coloured by what changed.
    Changes,
    /// A panel among others, on a page that scrolls: a click zooms. Always an icicle by owners.
    Overview,
}

/// What the address says about the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// Order and width.
    pub arrangement: Arrangement,
    /// Colours.
    pub heat: Heat,
    /// One lane a worker.
    pub lanes: bool,
    /// The table in place of the picture.
    pub table: bool,
}

impl Choice {
    /// As an address says, as far as the place of the tree obeys it.
    pub fn of(form: TreePlacement, address: &Address) -> Self {
        if form != TreePlacement::Page {
            let arrangement = Arrangement { order: address.order, ..Arrangement::default() };
            return Self { arrangement, ..Self::default() };
        }
        let is = |key: &str, value: &str| address.other(key).as_deref() == Some(value);
        let heat = Heat::ALL.into_iter().find(|heat| is(key::HEAT, heat.as_str()));
        let width = if is(key::WIDTH, "hits") { Width::Hits } else { Width::Blocks };
        Self {
            arrangement: Arrangement { order: address.order, width, hits_window: HITS_WINDOW },
            heat: heat.unwrap_or_default(),
            lanes: is(key::LANES, "1"),
            table: is(key::TABLE, "1"),
        }
    }

    /// Whether the picture cannot be drawn without hits.
    pub fn needs_hits(&self) -> bool {
        self.arrangement.width == Width::Hits || self.heat == Heat::Hits
    }
}

/// Requests within the window of hits of which it is known how much of the prompt the chosen worker held.
pub fn known_requests(shown: &ViewContext<'_>, now: Millis) -> u32 {
    shown.tree().requests(touch(now).saturating_sub(HITS_WINDOW))
}

/// One of several, of which exactly one is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// For tests and for the browser's name of the group.
    pub id: &'static str,
    /// Its name.
    pub label: &'static str,
    /// What it does.
    pub title: &'static str,
    /// Whether it is the one that is chosen.
    pub is_on: fn(&Choice) -> bool,
    /// Chooses it.
    pub choose: fn(&mut Address),
}

/// Several, with what they choose.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    /// What is chosen.
    pub name: &'static str,
    /// Among these.
    pub all: &'static [Segment],
}

/// The controls above the picture, in their order.
pub const CONTROLS: [Segments; 4] = [
    Segments { name: "Width", all: &WIDTHS },
    Segments { name: "Order", all: &ORDERS },
    Segments { name: "Colour", all: &COLOURS },
    Segments { name: "View", all: &VIEWS },
];

const WIDTHS: [Segment; 2] = [
    Segment {
        id: "width-blocks",
        label: "Blocks",
        title: "A box is as wide as the blocks in it and below it",
        is_on: |choice| choice.arrangement.width == Width::Blocks,
        choose: |address| address.set_other(key::WIDTH, None),
    },
    Segment {
        id: "width-hits",
        label: "Hits, 5 min",
        title: "A box is as wide as the requests of the last 5 minutes that were sent to a worker on which its first block was cached",
        is_on: |choice| choice.arrangement.width == Width::Hits,
        choose: |address| address.set_other(key::WIDTH, Some("hits")),
    },
];

const ORDERS: [Segment; 2] = [
    Segment {
        id: "order-size",
        label: "Largest left",
        title: "Siblings by width: what matters most stands left, and places change as widths do",
        is_on: |choice| choice.arrangement.order == Order::LeftHeavy,
        choose: |address| address.order = Order::LeftHeavy,
    },
    Segment {
        id: "order-stable",
        label: "Fixed",
        title: "Siblings by their hash: a box keeps its neighbours whatever happens",
        is_on: |choice| choice.arrangement.order == Order::Stable,
        choose: |address| address.order = Order::Stable,
    },
];

const COLOURS: [Segment; 5] = [
    Segment {
        id: "heat-owner",
        label: "Worker",
        title: "The colour of the one worker on which a box is cached; where it is on several, deeper for more",
        is_on: |choice| choice.heat == Heat::Owner,
        choose: |address| address.set_other(key::HEAT, None),
    },
    Segment {
        id: "heat-recency",
        label: "Recency",
        title: "When a worker last stored, or a request last used, a block of the box",
        is_on: |choice| choice.heat == Heat::Recency,
        choose: |address| address.set_other(key::HEAT, Some(Heat::Recency.as_str())),
    },
    Segment {
        id: "heat-hits",
        label: "Hits",
        title: "Requests of the last 5 minutes that were sent to a worker on which the box was cached",
        is_on: |choice| choice.heat == Heat::Hits,
        choose: |address| address.set_other(key::HEAT, Some(Heat::Hits.as_str())),
    },
    Segment {
        id: "heat-owners",
        label: "Replica count",
        title: "On how many workers the box is cached",
        is_on: |choice| choice.heat == Heat::Owners,
        choose: |address| address.set_other(key::HEAT, Some(Heat::Owners.as_str())),
    },
    Segment {
        id: "heat-sessions",
        label: "Session",
        title: "The session whose requests found the box cached, by the retained decisions: colours for the eight with most requests",
        is_on: |choice| choice.heat == Heat::Sessions,
        choose: |address| address.set_other(key::HEAT, Some(Heat::Sessions.as_str())),
    },
];

const VIEWS: [Segment; 3] = [
    Segment {
        id: "view-icicle",
        label: "Icicle",
        title: "One picture of all workers' blocks",
        is_on: |choice| !choice.lanes && !choice.table,
        choose: |address| set_view(address, false, false),
    },
    Segment {
        id: "view-lanes",
        label: "Lanes",
        title: "One picture a worker, the same prefix at the same place in each",
        is_on: |choice| choice.lanes && !choice.table,
        choose: |address| set_view(address, true, false),
    },
    Segment {
        id: "view-table",
        label: "Table",
        title: "The same as a list that can be unfolded",
        is_on: |choice| choice.table,
        choose: |address| set_view(address, false, true),
    },
];

fn set_view(address: &mut Address, lanes: bool, table: bool) {
    address.set_other(key::LANES, lanes.then_some("1"));
    address.set_other(key::TABLE, table.then_some("1"));
}

/// What is under the pointer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Hovered {
    /// A block.
    Block(Crumb),
    /// Neighbours that are too narrow to be distinguished.
    NarrowBoxes(Narrow),
}

/// Sums over neighbours that are too narrow to be distinguished, and all that is below them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Narrow {
    /// Boxes.
    pub boxes: u32,
    /// Blocks that somebody holds.
    pub blocks: u32,
    /// Workers 0 … 63 that hold one of them, a bit each.
    pub workers: u64,
    /// Hits.
    pub hits: u32,
}

impl Narrow {
    /// Of a run of boxes.
    pub fn of(run: &NarrowBoxes) -> Self {
        Self { boxes: run.chains, blocks: run.blocks, workers: run.workers, hits: run.hits }
    }

    /// `37 boxes, 1,204 blocks, 3 workers`. Of more than 64 workers the mask knows only the first.
    pub fn to_text(self, has_more_workers: bool) -> String {
        let workers = u64::from(self.workers.count_ones());
        let more = if has_more_workers { " or more" } else { "" };
        let hits = (self.hits > 0).then(|| format!(", {}", format::plural(self.hits.into(), "hit", "hits")));
        format!(
            "{}, {}, {}{more}{}",
            format::plural(self.boxes.into(), "box", "boxes"),
            format::plural(self.blocks.into(), "block", "blocks"),
            format::plural(workers, "worker", "workers"),
            hits.unwrap_or_default()
        )
    }

    /// The same where two moments are compared: `37 boxes, 1,204 blocks: kept, stored`.
    pub fn to_text_of_changes(self) -> String {
        let changes: Vec<&str> = ChangeTree::in_bits(self.workers).map(BlockChange::as_str).collect();
        let boxes = format::plural(self.boxes.into(), "box", "boxes");
        format!("{boxes}, {}: {}", format::plural(self.blocks.into(), "block", "blocks"), changes.join(", "))
    }
}
