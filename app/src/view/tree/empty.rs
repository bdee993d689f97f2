//! What stands in the place of a tree without a block.

use leptos::prelude::*;
use radixscope_export::panel::tree;

use crate::store::Store;
use crate::view::control::view;
use crate::view::figure::{EmptyPanel, Waiting};

/// The reason, by what was received.
#[component]
pub(super) fn EmptyTree(store: Store) -> impl IntoView {
    let text = Memo::new(move |_| store.on_beat(|shown| tree::empty(shown)));
    move || match store.ready() {
        true => view! { <EmptyPanel text=text.get()/> },
        false => view! { <Waiting id="tree-wait"/> },
    }
}
