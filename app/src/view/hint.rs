//! Which setting would show what is missing, as the core words it.

use crate::view::control::view;
use leptos::prelude::*;
use radixscope_state::cluster::{Hint, HintOption};

/// A hint's sentences and its settings as a list.
#[component]
pub(super) fn HintList(hint: Hint) -> impl IntoView {
    let item = |setting: &'static HintOption| {
        let set = setting.set.iter().map(|&set| view! { <code>{set}</code> " " }).collect_view();
        view! {
            <li>"Dynamo " {setting.versions} ": " {set} "on " {setting.on} ", shows " {setting.shows}</li>
        }
    };
    view! {
        <p>{hint.text}</p>
        <ul>{hint.settings.iter().map(item).collect_view()}</ul>
    }
}
