//! The requests of the session in the address, one by one: where each ran, what it lost and why. Everything is computed by core; this
//! shows it.

use leptos::prelude::*;
use radixscope_export::panel::session::TITLE;
use radixscope_panels::session_turns::TurnRow;

use crate::store::{Store, zone};
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
            false => store.on_beat(|shown| TurnRow::all(shown, session, zone())),
        })
    });
    let row = move |turn: &TurnRow| {
        let TurnRow { id, number, time, worker, has_moved, figures, is_slowest, sentence } = turn.clone();
        let open =
            move |_| store.address.update(|address| *address = address.with_decision(Panel::Decisions, id));
        view! {
            <li class:moved=has_moved class:slowest=is_slowest data-testid="session-turn">
                <button class="plain" title="Open its decision" on:click=open>{number}</button>
                <span class="quiet">{time}</span>
                <Chip store worker/>
                <b>{figures}</b>
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
