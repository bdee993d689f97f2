//! The tree beside its picture: its table, lists, search, details and the open decision, recounted from the tree itself, and the gestures
//! that move the camera.

mod find;
mod gestures;
mod grid;
mod silent;
mod texts;

use radixscope_insight::view_context::ViewContext;
use radixscope_panels::tree::{Choice, TreePlacement};
use radixscope_panels::url::Address;
use radixscope_state::tree::forest::{Arrangement, Forest};

use crate::folded::Folded;

/// The order and widths that the page begins with.
fn as_on_page() -> Arrangement {
    Choice::of(TreePlacement::Page, &Address::parse("").0).arrangement
}

/// Looks at a folded state with its forest arranged, as the page keeps it.
fn with_forest<T>(
    folded: &mut Folded,
    arrangement: Arrangement,
    look: impl FnOnce(&ViewContext<'_>, &Forest) -> T,
) -> T {
    let pools = {
        let shown = folded.shown();
        (shown.pool, shown.tier)
    };
    folded.cluster.arrange_forest(pools.0, pools.1, arrangement);
    folded.cluster.update_forest();
    let shown = folded.shown();
    look(&shown, shown.tree().forest().expect("it is arranged"))
}
