//! Filters of the ledger, which live in the address, and its exports.

use leptos::prelude::*;
use radixscope_panels::decisions::filters::{
    BY_TITLE, CLIENT_TITLE, Choice, FIND_TITLE, WorkerChoice, by_choices, client_choices, kind_name,
    kind_status, kind_title, session_text, workers,
};
use radixscope_state::cluster::{ByFilter, ClientFilter, DecisionKind};

use super::save;
use super::state::Ledger;
use crate::format;
use crate::store::TrackUntilDropped as _;
use crate::view::control::view;

#[component]
pub(super) fn Filters(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let picked = Memo::new(move |_| store.picked());
    let workers = Memo::new(move |_| store.on_beat(workers));
    let option = move |WorkerChoice { worker, id, text }: WorkerChoice| {
        view! { <option value=id.to_string() selected=move || picked.get_until_dropped() == Some(worker)>{text}</option> }
    };
    let options = move || workers.get().into_iter().map(option).collect_view();
    let choose = move |event| {
        let id = event_target_value(&event);
        let chosen = workers.with(|all| all.iter().map(|choice| choice.id).find(|of| of.to_string() == id));
        store.address.update(|address| address.worker = chosen);
    };
    let find = move || store.address.with(|address| address.find.clone());
    view! {
        <div class="filters">
            <div class="kinds" role="group" aria-label="Outcome">
                <KindButton ledger kind=None/>
                {DecisionKind::ALL.map(|kind| view! { <KindButton ledger kind=Some(kind)/> }).collect_view()}
            </div>
            <label class="find">
                <span>"Worker"</span>
                <select data-testid="filter-worker" on:change=choose>
                    <option value="" selected=move || picked.get().is_none()>"all"</option>
                    {move || options()}
                </select>
            </label>
            <ByChoice ledger/>
            <ClientChoice ledger/>
            <SessionFilter ledger/>
            <label class="find">
                <span>"Find"</span>
                <input type="search" data-testid="filter-find" placeholder="request, session …" spellcheck="false"
                    title=FIND_TITLE
                    prop:value=move || find()
                    on:input=move |event| store.address.update(|a| a.find = event_target_value(&event))/>
            </label>
            <span class="spacer"></span>
            <span class="exports" role="group" aria-label="Export what is shown">
                <button class="plain" data-testid="export-csv" on:click=move |_| save::csv(ledger)
                    title="All shown decisions as comma-separated values, ids as text">"Save CSV"</button>
                <button class="plain" data-testid="export-json" on:click=move |_| save::json(ledger)
                    title="All shown decisions as the API gives them">"Save JSON"</button>
            </span>
        </div>
    }
}

/// A filter with its values, each with its count.
#[component]
fn Choices(
    label: &'static str,
    /// For tests.
    id: &'static str,
    title: &'static str,
    all: Memo<Vec<Choice>>,
    /// The value that is chosen; `None`: all decisions.
    only: Memo<Option<&'static str>>,
    /// Chooses a value; any other chooses all decisions.
    choose: impl Fn(&str) + 'static,
) -> impl IntoView {
    // Counts change with each decision, values seldom do.
    let values =
        move || all.with(|all| all.iter().map(|choice| (choice.value, choice.text)).collect::<Vec<_>>());
    let count = move |value| all.with(|all| all.iter().find(|of| of.value == value).map_or(0, |of| of.count));
    let option = move |(value, text): (&'static str, &'static str)| {
        let count = Memo::new(move |_| count(value));
        view! {
            <option value=value selected=move || only.get_until_dropped() == Some(value)>
                {move || Choice::to_text(text, count.get())}
            </option>
        }
    };
    view! {
        <label class="find">
            <span>{label}</span>
            <select data-testid=id title=title on:change=move |event| choose(&event_target_value(&event))>
                <option value="" selected=move || only.get().is_none()>"all"</option>
                <For each=move || values() key=|(value, _)| *value children=option/>
            </select>
        </label>
    }
}

/// What decided.
#[component]
fn ByChoice(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let by = Memo::new(move |_| store.address.with(|address| address.by));
    let only = Memo::new(move |_| by.get().map(ByFilter::as_str));
    let all = Memo::new(move |_| ledger.view.with(|view| by_choices(view, by.get())));
    let choose = move |value: &str| {
        let by = ByFilter::named(value);
        store.address.update(|address| address.by = by);
    };
    view! { <Choices label="Decided by" id="filter-by" title=BY_TITLE all only choose/> }
}

/// What clients measured. Not there where no client's results are read.
#[component]
fn ClientChoice(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let client = Memo::new(move |_| store.address.with(|address| address.client));
    let only = Memo::new(move |_| client.get().map(ClientFilter::as_str));
    let all = Memo::new(move |_| ledger.view.with(|view| client_choices(view, client.get())));
    let is_shown = Memo::new(move |_| all.with(|all| !all.is_empty()));
    let choose = move |value: &str| {
        let client = ClientFilter::named(value);
        store.address.update(|address| address.client = client);
    };
    view! {
        <Show when=move || is_shown.get()><Choices label="Client" id="filter-client" title=CLIENT_TITLE all only choose/></Show>
    }
}

/// The session whose decisions are listed, with the way back to all. It is chosen in a decision's details.
#[component]
fn SessionFilter(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let session = Memo::new(move |_| store.address.with(|address| session_text(&address.session)));
    let is_one = Memo::new(move |_| session.with(Option::is_some));
    let clear = move |_| store.address.update(|address| address.session.clear());
    view! {
        <Show when=move || is_one.get()>
            <button class="filter on" data-testid="filter-session" title="List the decisions of all sessions" on:click=clear>
                {session}
            </button>
        </Show>
    }
}

/// One kind with its count; `None` is every kind.
#[component]
fn KindButton(ledger: Ledger, kind: Option<DecisionKind>) -> impl IntoView {
    let store = ledger.store;
    let is_on = Memo::new(move |_| store.address.with(|address| address.outcome == kind));
    let count = Memo::new(move |_| ledger.view.with(|view| view.count_of(kind)));
    let choose = move |_| {
        store.address.update(|address| address.outcome = kind);
        ledger.status_text.set(kind_status(kind, count.get_untracked()));
    };
    view! {
        <button class="filter" class:on=move || is_on.get() aria-pressed=move || is_on.get().to_string()
            title=kind_title(kind) data-testid=format!("kind-{}", kind.map_or("all", DecisionKind::as_str)) on:click=choose>
            {kind_name(kind)} " " <b>{move || format::count(count.get().into())}</b>
        </button>
    }
}
