//! What the reader chose about the tree, where the camera is, what is selected: shared by the panel's parts.

use std::time::Duration;

use leptos::prelude::*;
pub(super) use radixscope_export::tree::svg::Heat;
use radixscope_icicle::camera::{Camera, Goal};
use radixscope_icicle::crumb::Crumb;
use radixscope_icicle::lanes::Lanes;
use radixscope_model::id::{PoolIx, Slot};
use radixscope_panels::tree::known_requests;
pub(super) use radixscope_panels::tree::{BlockSummary, Choice, Hovered, Narrow, TreePlacement, key};

use super::decision_path::Painted;
use super::lights::LightsShown;
use super::paused::TreePause;
use crate::store::{Store, TIER_KEY};
use crate::view_context::DrawnTree;

/// From one step of what fades, or waits to be announced, to the next.
const STEP: Duration = Duration::from_millis(50);

/// A place of the pointer, as in [`TreeView::pointer`], and what was under it then.
type PointerSample = ((f64, f64), Option<Hovered>);

/// Handle to what the panel's parts share; copied freely.
#[derive(Clone, Copy)]
pub(super) struct TreeView {
    /// Where the tree stands.
    pub form: TreePlacement,
    /// The state.
    pub store: Store,
    /// Theme.
    pub dark: Memo<bool>,
    /// What the reader chose.
    pub choice: Memo<Choice>,
    /// Where the camera is and goes to. No signal: it changes with every frame of a movement.
    pub camera: StoredValue<Camera, LocalStorage>,
    /// Raised when the picture must be drawn again though the state did not change. At most once a frame:
    /// [`TreeView::redraw_soon`].
    pub redraw: RwSignal<u32>,
    /// Raised when what lies over the picture must be drawn again, and nothing else: [`TreeView::overlay_in_a_step`].
    pub overlay: RwSignal<u32>,
    frame_requested: StoredValue<bool>,
    step_requested: StoredValue<bool>,
    overlay_requested: StoredValue<bool>,
    /// The block that is selected, by click, key, search or list. Its details are shown.
    pub selected: RwSignal<Option<Crumb>>,
    /// What is under the pointer.
    pub hovered: RwSignal<Option<Hovered>>,
    /// The block under the pointer, in short.
    pub pointed: RwSignal<Option<BlockSummary>>,
    /// What was under it, and where it was then.
    pub seen: StoredValue<Option<PointerSample>>,
    /// Why the tree holds still.
    pub pause: TreePause,
    /// Pointer over the picture, CSS pixels from its upper left corner, the axis included.
    pub pointer: RwSignal<Option<(f64, f64)>>,
    /// Boxes from the top to the one that spans the window, or that is looked at.
    pub path: RwSignal<Vec<Crumb>>,
    /// What the camera shows, as text.
    pub showing: RwSignal<String>,
    /// What a search found; outlined in the picture.
    pub found: RwSignal<Vec<Crumb>>,
    /// How far the lanes are scrolled, CSS pixels.
    pub scrolled: RwSignal<f64>,
    /// Where the lanes stood in the last frame, CSS pixels; `None`: there are none.
    pub lanes: StoredValue<Option<Lanes>>,
    /// Sessions with colours, while boxes are coloured by session.
    pub sessions: RwSignal<Vec<(Box<str>, Slot)>>,
    /// The texts of the open decision's path.
    pub painted: Painted,
    /// Requests in flight.
    pub lights: RwSignal<LightsShown>,
    /// The tree whose blocks are selected, hovered and found.
    drawn: StoredValue<DrawnTree>,
}

impl TreeView {
    pub(super) fn new(form: TreePlacement, store: Store, dark: Memo<bool>) -> Self {
        let choice = Memo::new(move |_| store.address.with(|address| Choice::of(form, address)));
        let tree = Self {
            form,
            store,
            dark,
            choice,
            camera: StoredValue::new_local(Camera::default()),
            redraw: RwSignal::new(0),
            overlay: RwSignal::new(0),
            frame_requested: StoredValue::new(false),
            step_requested: StoredValue::new(false),
            overlay_requested: StoredValue::new(false),
            selected: RwSignal::new(None),
            hovered: RwSignal::new(None),
            pointed: RwSignal::new(None),
            seen: StoredValue::new(None),
            pause: TreePause::new(),
            pointer: RwSignal::new(None),
            path: RwSignal::new(Vec::new()),
            showing: RwSignal::new(String::new()),
            found: RwSignal::new(Vec::new()),
            scrolled: RwSignal::new(0.0),
            lanes: StoredValue::new(None),
            sessions: RwSignal::new(Vec::new()),
            painted: Painted::new(),
            lights: RwSignal::new(LightsShown::default()),
            drawn: StoredValue::new(store.pools.get_untracked().drawn()),
        };
        Effect::new(move |_| tree.begin(store.pools.get().drawn()));
        tree
    }

    /// Another tree is drawn: what was selected, pointed at and looked at is not in it.
    fn begin(self, drawn: DrawnTree) {
        if self.drawn.get_value() == drawn {
            return;
        }
        self.drawn.set_value(drawn);
        self.seen.set_value(None);
        self.selected.set(None);
        self.hovered.set(None);
        self.pointed.set(None);
        self.path.set(Vec::new());
        self.found.set(Vec::new());
        self.camera.set_value(Camera::default());
        self.redraw_soon();
    }

    /// Selects a block on the devices of a pool and moves the camera to it; their tree is drawn.
    pub(super) fn go_in(self, pool: PoolIx, crumb: Crumb) {
        self.store.show_pool(pool);
        if self.store.address.with_untracked(|address| address.other(TIER_KEY).is_some()) {
            self.store.address.update(|address| address.set_other(TIER_KEY, None));
        }
        self.begin((pool, None));
        // It may have come after the tree was paused.
        self.store.renew_tree();
        self.go_to(crumb);
    }

    /// Selects a block and moves the camera to it and what is below it.
    pub(super) fn go_to(self, crumb: Crumb) {
        self.selected.set(Some(crumb));
        self.look_at(Goal::Block(crumb));
    }

    /// Moves the camera.
    pub(super) fn look_at(self, goal: Goal) {
        self.steer(|camera| camera.go(goal));
    }

    /// Moves the camera by hand.
    pub(super) fn steer(self, how: impl FnOnce(&mut Camera)) {
        self.camera.update_value(how);
        self.redraw_soon();
    }

    /// Draws once more with the next frame, however often it is requested until then.
    pub(super) fn redraw_soon(self) {
        if self.frame_requested.try_update_value(|was_requested| std::mem::replace(was_requested, true))
            != Some(false)
        {
            return;
        }
        request_animation_frame(move || {
            // Both are gone when the panel is.
            if self.frame_requested.try_set_value(false).is_none() {
                self.redraw.try_update(|n| *n += 1);
            }
        });
    }

    /// Draws what lies over the picture once more in a while: twenty steps a second fade smoothly enough.
    pub(super) fn overlay_in_a_step(self) {
        if self.overlay_requested.try_update_value(|was_requested| std::mem::replace(was_requested, true))
            != Some(false)
        {
            return;
        }
        // By a frame, which a hidden page has none of.
        let draw = move || {
            if self.overlay_requested.try_set_value(false).is_none() {
                self.overlay.try_update(|n| *n += 1);
            }
        };
        set_timeout(move || request_animation_frame(draw), STEP);
    }

    /// Draws once more in a while, for what waits to be announced: each frame costs the browser a picture of the whole canvas.
    pub(super) fn redraw_in_a_step(self) {
        if self.step_requested.try_update_value(|was_requested| std::mem::replace(was_requested, true))
            != Some(false)
        {
            return;
        }
        set_timeout(
            move || {
                if self.step_requested.try_set_value(false).is_none() {
                    self.redraw_soon();
                }
            },
            STEP,
        );
    }

    /// Requests within the window of hits of which it is known how much of the prompt the chosen worker held. Tracked.
    pub(super) fn known_requests(self) -> u32 {
        self.store.on_beat(|cluster| known_requests(cluster, self.store.now_ms()))
    }
}
