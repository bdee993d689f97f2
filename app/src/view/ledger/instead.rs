//! What round-robin would have done with an open decision, and the way to What-if with it loaded.

use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_panels::decisions::details::Instead;

use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::control::view;
use crate::view::nav::Goes;

#[component]
pub(super) fn RoundRobinInstead(store: Store, id: DecisionId, instead: Instead) -> impl IntoView {
    let to = move |address: Address| address.with_decision(Panel::WhatIf, id);
    let how = instead.derivation.map(|text| {
        let title = text.clone();
        view! {
            <button type="button" class="how" title=title aria-describedby="round-robin-how" data-testid="round-robin-how">"How derived"</button>
            <span class="how-text" id="round-robin-how">{text}</span>
        }
    });
    view! {
        <p class="why instead" data-testid="round-robin"><span>{instead.sentence}</span> {how}</p>
        <p><Goes store to id="open-whatif">"Open in What-if"</Goes></p>
    }
}
