//! The tree holds still while the pointer is over it or one of its boxes has the focus: for how long, and what waits.

use leptos::prelude::*;

use super::state::TreeView;
use crate::format;
use crate::view::control::view;

/// Why the tree holds still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holder {
    /// The pointer is over it.
    Pointer,
    /// One of its boxes has the focus of the keyboard.
    Focus,
}

/// What may hold the tree, and what does.
#[derive(Clone, Copy)]
pub(super) struct Hold {
    is_over: StoredValue<bool>,
    has_focus: StoredValue<bool>,
    /// What holds it now.
    pub by: RwSignal<Option<Holder>>,
}

impl Hold {
    pub(super) fn new() -> Self {
        Self { is_over: StoredValue::new(false), has_focus: StoredValue::new(false), by: RwSignal::new(None) }
    }
}

impl TreeView {
    /// The pointer is over the tree, or no longer.
    pub(super) fn hold_by_pointer(self, is_over: bool) {
        // The kiosk has no pointer.
        let is_kiosk = self.store.address.with_untracked(|address| address.is_kiosk());
        self.hold.is_over.set_value(is_over && !is_kiosk);
        self.choose_holder();
    }

    /// The keyboard is on the tree, or no longer. It holds it if it is on a box.
    pub(super) fn hold_by_focus(self, has_focus: bool) {
        self.hold.has_focus.set_value(has_focus && self.selected.with_untracked(Option::is_some));
        self.choose_holder();
    }

    fn choose_holder(self) {
        let held = (self.hold.is_over.try_get_value(), self.hold.has_focus.try_get_value());
        // A tree that is taken off the page loses the focus when all that it had is gone already.
        let (Some(is_over), Some(has_focus)) = held else { return };
        let by = if is_over { Some(Holder::Pointer) } else { has_focus.then_some(Holder::Focus) };
        self.set_holder(by);
    }

    /// Lets all changes in until the pointer moves or a key is pressed.
    pub(super) fn let_go(self) {
        self.set_holder(None);
    }

    fn set_holder(self, by: Option<Holder>) {
        if self.hold.by.with_untracked(|before| *before != by) {
            self.hold.by.set(by);
            self.store.hold_tree(by.is_some());
            self.redraw_soon();
        }
    }
}

/// Says that the tree holds still, why, and what waits meanwhile. It takes no room that anything else has.
#[component]
pub(super) fn StillNote(tree: TreeView) -> impl IntoView {
    let store = tree.store;
    let by = tree.hold.by;
    let waiting = Memo::new(move |_| {
        by.get()?;
        store.on_beat(|_| ());
        store.waiting().filter(|waiting| *waiting != Default::default())
    });
    let text = move || {
        let held = match by.get()? {
            Holder::Pointer => "Held while the pointer is here",
            Holder::Focus => "Held while a box has the focus",
        };
        // Two parts, each of which stays whole where there is little room.
        let since = waiting.get().map(|waiting| {
            let stored = format::plural(waiting.stored, "block", "blocks");
            view! {
                <span>"+" {stored} " stored, " <i class="key evicted" aria-hidden="true"></i> "−" {format::count(waiting.evicted)} " evicted since"</span>
            }
        });
        let colon = since.is_some().then_some(":");
        Some(view! { <span>{held}{colon}</span> " " {since} })
    };
    view! {
        <span class="still" class:on=move || by.with(Option::is_some) data-testid="tree-still"
            title="What workers stored and evicted meanwhile, each worker's blocks counted. It appears when the pointer or the focus leaves, or with Esc">
            {move || text()}
        </span>
    }
}
