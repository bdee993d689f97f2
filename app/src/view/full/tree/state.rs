//! What the reader chose about the tree, where the camera is, what is selected: shared by the panel's parts.

use leptos::prelude::*;
use radixscope_core::cluster::TOUCH_MS;
use radixscope_core::tree::forest::{Arrangement, Width};

use super::camera::{Camera, Goal};
use crate::store::Store;
use crate::view::tree::Painted;
use crate::view::tree::crumb::Crumb;

/// Keys in the address that only this panel reads.
pub(super) mod key {
    /// `hits`: boxes are as wide as their hits; absent: as their blocks.
    pub(in super::super) const WIDTH: &str = "tree.width";
    /// `recency`, `hits`, `owners`: what boxes are coloured by; absent: their owners.
    pub(in super::super) const HEAT: &str = "tree.heat";
    /// `1`: one lane a worker.
    pub(in super::super) const LANES: &str = "tree.lanes";
    /// `1`: the table in place of the picture.
    pub(in super::super) const TABLE: &str = "tree.table";
    /// The engine's hash of the selected block.
    pub(in super::super) const BLOCK: &str = "tree.block";
}

/// How far back hits count.
pub(super) const HITS_WINDOW_MS: u64 = 5 * 60 * 1_000;

/// What boxes are coloured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Heat {
    /// Their owners.
    #[default]
    Owner,
    /// When a worker last stored or a request last used one of their blocks.
    Recency,
    /// Requests of the window that found them held.
    Hits,
    /// How many workers hold them.
    Owners,
}

impl Heat {
    /// Value in the address.
    pub(super) const fn as_str(self) -> Option<&'static str> {
        match self {
            Heat::Owner => None,
            Heat::Recency => Some("recency"),
            Heat::Hits => Some("hits"),
            Heat::Owners => Some("owners"),
        }
    }
}

/// What the address says about the picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Choice {
    /// Order and width.
    pub arrangement: Arrangement,
    /// Colours.
    pub heat: Heat,
    /// One lane a worker.
    pub lanes: bool,
    /// The table in place of the picture.
    pub table: bool,
}

/// Handle to what the panel's parts share; copied freely.
#[derive(Clone, Copy)]
pub(super) struct TreeView {
    /// The state.
    pub store: Store,
    /// Theme.
    pub dark: Signal<bool>,
    /// What the reader chose.
    pub choice: Memo<Choice>,
    /// Where the camera is and goes to. No signal: it changes with every frame of a movement.
    pub camera: StoredValue<Camera, LocalStorage>,
    /// Raised when the picture must be drawn again though the state did not change.
    pub redraw: RwSignal<u32>,
    /// The block that is selected, by click, key, search or list. Its details are shown.
    pub selected: RwSignal<Option<Crumb>>,
    /// The block under the pointer.
    pub hovered: RwSignal<Option<Crumb>>,
    /// What a search found; outlined in the picture.
    pub found: RwSignal<Vec<Crumb>>,
    /// What is said of the open decision's path.
    pub painted: Painted,
}

impl TreeView {
    pub(super) fn new(store: Store, dark: Signal<bool>) -> Self {
        let choice = Memo::new(move |_| {
            store.address.with(|address| {
                let is = |key: &str, value: &str| address.other(key).as_deref() == Some(value);
                let heat = [Heat::Recency, Heat::Hits, Heat::Owners]
                    .into_iter()
                    .find(|heat| heat.as_str().is_some_and(|value| is(key::HEAT, value)));
                let width = if is(key::WIDTH, "hits") { Width::Hits } else { Width::Blocks };
                let hits_window = (HITS_WINDOW_MS / TOUCH_MS) as u32;
                Choice {
                    arrangement: Arrangement { order: address.order, width, hits_window },
                    heat: heat.unwrap_or_default(),
                    lanes: is(key::LANES, "1"),
                    table: is(key::TABLE, "1"),
                }
            })
        });
        Self {
            store,
            dark,
            choice,
            camera: StoredValue::new_local(Camera::default()),
            redraw: RwSignal::new(0),
            selected: RwSignal::new(None),
            hovered: RwSignal::new(None),
            found: RwSignal::new(Vec::new()),
            painted: Painted { words: RwSignal::new(String::new()), end: RwSignal::new(String::new()) },
        }
    }

    /// Selects a block and moves the camera to it and what is below it.
    pub(super) fn go_to(self, crumb: Crumb) {
        self.selected.set(Some(crumb));
        self.look_at(Goal::Block(crumb));
    }

    /// Moves the camera.
    pub(super) fn look_at(self, goal: Goal) {
        self.camera.update_value(|camera| camera.go(goal));
        self.redraw.update(|n| *n += 1);
    }
}
