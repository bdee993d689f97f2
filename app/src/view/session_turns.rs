//! The requests of the session in the address, one by one: where each ran, what it lost and why. Everything is computed by core; this
//! shows it.

use leptos::prelude::*;
use radixscope_export::panel::session::{TITLE, Turn, turns};
use radixscope_icicle::palette::label;

use crate::store::{Store, time_of_day};
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::control::view;

/// Nothing without a session.
#[component]
pub(super) fn SessionTurns(store: Store) -> impl IntoView {
    let session = Memo::new(move |_| store.address.with(|address| address.session.clone()));
    let all = Memo::new(move |_| {
        session.with(|session| match session.is_empty() {
            true => Vec::new(),
            false => store.on_beat(|shown| turns(shown.cluster, session, label)),
        })
    });
    let row = move |turn: &Turn| {
        let (id, worker, moved) = (turn.id, turn.worker, turn.moved_from.is_some());
        let (figures, slowest) = (turn.figures(), turn.is_slowest);
        let (number, time, sentence) = (turn.number, time_of_day(turn.at_ms), turn.sentence.clone());
        let open =
            move |_| store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
        view! {
            <li class:moved=moved class:slowest=slowest data-testid="session-turn">
                <button class="plain" title="Open its decision" on:click=open>{number.to_string()}</button>
                <span class="quiet">{time}</span>
                <Chip store worker/>
                <b>{figures}{slowest.then_some(", the slowest")}</b>
                <p>{sentence}</p>
            </li>
        }
    };
    let in_tree = move |_| {
        store.address.update(|address| (address.panel, address.decision) = (Panel::Tree, None));
    };
    view! {
        <Show when=move || all.with(|all| !all.is_empty())>
            <div class="session-turns">
                <h3>{TITLE} <button class="plain" data-testid="session-in-tree" title="Its requests outlined in the tree" on:click=in_tree>"Show in the tree"</button></h3>
                <ol data-testid="session-turns">{move || all.with(|all| all.iter().map(row).collect_view())}</ol>
            </div>
        </Show>
    }
}
