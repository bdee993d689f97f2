//! Filters of the ledger, which live in the address, and its exports.

use leptos::prelude::*;
use radixscope_icicle::palette::label;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_state::cluster::{ByFilter, ClientFilter, DecisionKind, HIT_SHARE};

use super::outcome_name;
use super::save;
use super::state::Ledger;
use crate::format;
use crate::store::{TrackUntilDropped as _, ViewContext};
use crate::view::control::view;

/// Workers to choose from in a list; any other is chosen in the table of workers.
const LISTED: usize = 256;

#[component]
pub(super) fn Filters(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let picked = Memo::new(move |_| store.picked());
    let workers = Memo::new(move |_| store.on_beat(workers));
    let option = move |(worker, id): (WorkerIx, Worker)| {
        let title = format!("{} ({id})", label(worker));
        view! { <option value=id.to_string() selected=move || picked.get_until_dropped() == Some(worker)>{title}</option> }
    };
    let options = move || workers.get().into_iter().map(option).collect_view();
    let choose = move |event| {
        let id = event_target_value(&event);
        let chosen = workers.with(|all| all.iter().map(|(_, of)| *of).find(|of| of.to_string() == id));
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
                    title="Text in the ids of request and session, in the name of worker, pool or model, or in the reason"
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

/// The workers that a reader can choose from: those of the pools shown.
fn workers(shown: &ViewContext<'_>) -> Vec<(WorkerIx, Worker)> {
    let known = shown.workers().indexed().filter(|(_, state)| shown.has(state.pool));
    known.map(|(worker, state)| (worker, state.id)).take(LISTED).collect()
}

/// A value of a filter.
#[derive(Clone, Copy, PartialEq)]
struct Choice {
    /// In the address.
    value: &'static str,
    text: &'static str,
    /// Decisions that it lists.
    count: u32,
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
                {move || format!("{text} {}", format::count(count.get().into()))}
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
    let only = Memo::new(move |_| store.address.with(|address| address.by.map(|by| by.as_str())));
    let all = Memo::new(move |_| {
        let counts = ledger.view.with(|view| view.picked.of_by);
        let choice = |(by, count): (ByFilter, u32)| Choice { value: by.as_str(), text: by.to_text(), count };
        // What decided none of them is left out, unless it is chosen.
        let is_listed = |choice: &Choice| choice.count > 0 || only.get() == Some(choice.value);
        ByFilter::ALL.into_iter().zip(counts).map(choice).filter(is_listed).collect()
    });
    let choose = move |value: &str| {
        let by = ByFilter::named(value);
        store.address.update(|address| address.by = by);
    };
    let title = "What decided: the lowest cost, the session that is bound to a worker, another policy or mode. Decisions that the cost \
                 did not decide are no ties and skip no better-cached worker";
    view! { <Choices label="Decided by" id="filter-by" title all only choose/> }
}

/// What clients measured. Not there where no client's results are read.
#[component]
fn ClientChoice(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let only = Memo::new(move |_| store.address.with(|address| address.client.map(|kind| kind.as_str())));
    let all = Memo::new(move |_| {
        let counts = ledger.view.with(|view| view.picked.of_client);
        let choice =
            |(kind, count): (ClientFilter, u32)| Choice { value: kind.as_str(), text: kind.to_text(), count };
        ClientFilter::ALL.into_iter().zip(counts).map(choice).collect::<Vec<_>>()
    });
    let is_shown = Memo::new(move |_| {
        let is_measured =
            |choice: &Choice| choice.count > 0 && choice.value != ClientFilter::Unknown.as_str();
        only.get().is_some() || all.with(|all| all.iter().any(is_measured))
    });
    let choose = move |value: &str| {
        let client = ClientFilter::named(value);
        store.address.update(|address| address.client = client);
    };
    let title = "What the client measured of the request: its time to first token against the target, or that it failed";
    view! {
        <Show when=move || is_shown.get()><Choices label="Client" id="filter-client" title all only choose/></Show>
    }
}

/// The session whose decisions are listed, with the way back to all. It is chosen in a decision's details.
#[component]
fn SessionFilter(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let session = Memo::new(move |_| store.address.with(|address| address.session.clone()));
    let clear = move |_| store.address.update(|address| address.session.clear());
    view! {
        <Show when=move || !session.with(String::is_empty)>
            <button class="filter on" data-testid="filter-session" title="List the decisions of all sessions" on:click=clear>
                {move || format!("Session {} ×", session.get())}
            </button>
        </Show>
    }
}

/// One kind with its count; `None` is every kind.
#[component]
fn KindButton(ledger: Ledger, kind: Option<DecisionKind>) -> impl IntoView {
    let store = ledger.store;
    let is_on = Memo::new(move |_| store.address.with(|address| address.outcome == kind));
    let count = Memo::new(move |_| {
        ledger.view.with(|view| match kind {
            Some(kind) => view.picked.of_kind[kind as usize],
            None => view.picked.of_any_kind,
        })
    });
    let choose = move |_| {
        store.address.update(|address| address.outcome = kind);
        ledger.status_text.set(format!(
            "{}: {}",
            kind.map_or("All", outcome_name),
            format::plural(count.get_untracked().into(), "decision", "decisions")
        ));
    };
    view! {
        <button class="filter" class:on=move || is_on.get() aria-pressed=move || is_on.get().to_string()
            title=explained(kind) data-testid=format!("kind-{}", kind.map_or("all", DecisionKind::as_str)) on:click=choose>
            {kind.map_or("All", outcome_name)} " " <b>{move || format::count(count.get().into())}</b>
        </button>
    }
}

fn explained(kind: Option<DecisionKind>) -> String {
    match kind {
        None => "Every decision".to_owned(),
        Some(DecisionKind::Hit) => {
            format!(
                "At least {} of the prompt's full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(DecisionKind::Partial) => {
            format!(
                "Some, but less than {} of the full blocks were cached on the chosen worker",
                format::percent(HIT_SHARE)
            )
        }
        Some(DecisionKind::Miss) => "No block of the prompt was cached on the chosen worker".to_owned(),
        Some(DecisionKind::Tie) => {
            "The router reported a tie, or several workers share the lowest known cost".to_owned()
        }
        Some(DecisionKind::LostAffinity) => {
            "Another worker had more of the prompt cached than the chosen one".to_owned()
        }
        Some(DecisionKind::Unknown) => "The prompt's length or its cached part is unknown".to_owned(),
    }
}
