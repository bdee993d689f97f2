//! The tree is paused while the pointer is over it or one of its boxes has the focus: for how long, and what waits.

use leptos::prelude::*;
use radixscope_panels::tree::PauseReason;

use super::state::TreeView;
use crate::format;
use crate::view::control::view;

/// What may pause the tree, and what does.
#[derive(Clone, Copy)]
pub(super) struct TreePause {
    is_over: StoredValue<bool>,
    has_focus: StoredValue<bool>,
    /// What pauses it now.
    pub by: RwSignal<Option<PauseReason>>,
}

impl TreePause {
    pub(super) fn new() -> Self {
        Self { is_over: StoredValue::new(false), has_focus: StoredValue::new(false), by: RwSignal::new(None) }
    }
}

impl TreeView {
    /// The pointer is over the tree, or no longer.
    pub(super) fn pause_by_pointer(self, is_over: bool) {
        // The kiosk has no pointer.
        let is_kiosk = self.store.address.with_untracked(|address| address.is_kiosk());
        self.pause.is_over.set_value(is_over && !is_kiosk);
        self.update_pause();
    }

    /// The keyboard is on the tree, or no longer. It pauses the tree if it is on a box.
    pub(super) fn pause_by_focus(self, has_focus: bool) {
        self.pause.has_focus.set_value(has_focus && self.selected.with_untracked(Option::is_some));
        self.update_pause();
    }

    fn update_pause(self) {
        let reasons = (self.pause.is_over.try_get_value(), self.pause.has_focus.try_get_value());
        // A tree that is taken off the page loses the focus when all that it had is gone already.
        let (Some(is_over), Some(has_focus)) = reasons else { return };
        self.set_pause_reason(PauseReason::of(is_over, has_focus));
    }

    /// Applies all changes until the pointer moves or a key is pressed.
    pub(super) fn resume(self) {
        self.set_pause_reason(None);
    }

    fn set_pause_reason(self, by: Option<PauseReason>) {
        if self.pause.by.with_untracked(|before| *before != by) {
            self.pause.by.set(by);
            self.store.pause_tree(by.is_some());
            self.redraw_soon();
        }
    }
}

/// Says that the tree is paused, why, and what is pending. It takes no room that anything else has.
#[component]
pub(super) fn PausedNote(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let by = tree.pause.by;
    let waiting = Memo::new(move |_| {
        by.get()?;
        store.on_beat(|_| ());
        store.waiting().filter(|waiting| *waiting != Default::default())
    });
    let text = move || {
        let reason = by.get()?.to_text();
        // Two parts, each of which stays whole where there is little room.
        let since = waiting.get().map(|waiting| {
            let stored = format::plural(waiting.stored, "block", "blocks");
            view! {
                <span>"+" {stored} " stored, " <i class="key evicted" aria-hidden="true"></i> "−" {format::count(waiting.evicted)} " evicted since"</span>
            }
        });
        let colon = since.is_some().then_some(":");
        Some(view! { <span>{reason}{colon}</span> " " {since} })
    };
    view! {
        <span class="still" class:on=move || by.with(Option::is_some) data-testid="tree-still"
            title="What workers stored and evicted meanwhile, each worker's blocks counted. It appears when the pointer or the focus leaves, or with Esc">
            {move || text()}
        </span>
    }
}
