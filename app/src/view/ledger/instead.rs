//! What round-robin would have done with an open decision, and the way to What-if with it loaded.

use leptos::prelude::*;
use radixscope_icicle::palette::label;
use radixscope_insight::round_robin::{RoundRobin, not_known};
use radixscope_state::cluster::DecisionEntry;

use crate::store::Store;
use crate::url::{Address, Panel};
use crate::view::control::view;
use crate::view::nav::Goes;

/// The sentence, and how it was derived.
#[derive(Clone)]
pub(super) struct Instead {
    /// For people and tickets.
    pub sentence: String,
    /// `None` where nothing could be derived.
    pub derivation: Option<String>,
}

impl Instead {
    pub(super) fn of(store: Store, decided: &DecisionEntry) -> Self {
        match store.peek(|shown| RoundRobin::of(shown.cluster, decided)) {
            Ok(found) => Self { sentence: found.sentence(label), derivation: Some(found.derivation()) },
            Err(missing) => Self { sentence: not_known(missing), derivation: None },
        }
    }
}

#[component]
pub(super) fn RoundRobinInstead(store: Store, decided: DecisionEntry, instead: Instead) -> impl IntoView {
    let id = decided.decision.id;
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
