//! What is wrong, why, and what to set; and what was checked to say so. Paints what [`radixscope_panels::findings`] computes.

mod card;
mod checked;

use leptos::prelude::*;
use radixscope_export::finding_ticket::findings_ticket;
use radixscope_export::panel::findings::TITLE;
use radixscope_panels::findings::{
    self, ListedFindings, NoFinding, SEVERITY, SUBTITLE, SeverityChoice, active_titles, news, resolved_text,
    severity_choices,
};

use card::Card;
use checked::Checked;

use super::clipboard::CopyButton;
use crate::store::{Store, zone};
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::figure::{Empty, EmptyPanel, PanelHead, Waiting};

/// The panel.
#[component]
pub fn FindingsPanel(store: Store) -> impl IntoView {
    let filter = Memo::new(move |_| {
        let picked = store.picked();
        store.address.with(|address| ListedFindings::of(address, picked))
    });
    let codes = move |is_over: bool| {
        Memo::new(move |_| {
            let filter = filter.get();
            store.on_beat(|cluster| filter.codes(cluster, is_over))
        })
    };
    let (held, over) = (codes(false), codes(true));
    let counts = Memo::new(move |_| store.on_beat(|shown| findings::counts(shown)));
    let figure = move |at: usize, id: &'static str| {
        view! {
            <span class="figure" title="Active findings">
                <b data-testid=id>{move || counts.with(|counts| counts[at].0.clone())}</b>
                <span>{move || counts.with(|counts| counts[at].1)}</span>
            </span>
        }
    };
    let all = Callback::new(move |()| store.peek(|shown| findings_ticket(shown)));
    view! {
        <section class="panel findings" aria-labelledby="findings-title" data-testid="findings">
            <PanelHead store panel=Panel::Findings title=TITLE>
                <span class="quiet cf-sub">{SUBTITLE}</span>
                {figure(0, "findings-critical")}
                {figure(1, "findings-warning")}
                {figure(2, "findings-info")}
            </PanelHead>
            <div class="filters">
                <Severities store filter/>
                <Picked store filter/>
                <span class="spacer"></span>
                <CopyButton label="Copy all as text" id="copy-findings" text=all/>
            </div>
            <News store/>
            <div class="scroll findings-columns">
                <div class="findings-list">
                    <Show when=move || held.with(Vec::is_empty)>
                        <Nothing store filter/>
                    </Show>
                    <ul class="cards" aria-label="Findings" data-testid="finding-list">
                        <For each=move || held.get() key=String::clone let:code><Card store code/></For>
                    </ul>
                    <Show when=move || !over.with(Vec::is_empty)>
                        <details class="over" data-testid="findings-over">
                            <summary>{move || resolved_text(over.with(Vec::len))}</summary>
                            <ul class="cards" aria-label="Resolved findings">
                                <For each=move || over.get() key=String::clone let:code><Card store code/></For>
                            </ul>
                        </details>
                    </Show>
                </div>
                <Checked store/>
            </div>
        </section>
    }
}

#[component]
fn Severities(store: Store, filter: Memo<ListedFindings>) -> impl IntoView {
    let button = move |SeverityChoice { severity, value, text }| {
        let is_on = move || filter.get().severity == severity;
        let pick = move |_| store.address.update(|address| *address = address.with_other(SEVERITY, value));
        view! {
            <button class="filter" class:on=move || is_on() aria-pressed=move || is_on().to_string() on:click=pick
                data-testid=format!("severity-{}", value.unwrap_or("all"))>{text}</button>
        }
    };
    view! {
        <div class="kinds" role="group" aria-label="Severity">
            {severity_choices().into_iter().map(button).collect_view()}
        </div>
    }
}

#[component]
fn Picked(store: Store, filter: Memo<ListedFindings>) -> impl IntoView {
    move || {
        filter.get().worker.map(|worker| {
            view! {
                <button class="filter on" data-testid="findings-worker" title="Show all workers again"
                    on:click=move |_| store.pick(worker)>
                    <Chip store worker/> " only ×"
                </button>
            }
        })
    }
}

/// Says what was not there before, for those who hear the page.
#[component]
fn News(store: Store) -> impl IntoView {
    let held = Memo::new(move |_| store.on_beat(|cluster| active_titles(cluster)));
    let status_text = RwSignal::new(String::new());
    Effect::new(move |before: Option<Vec<String>>| {
        let now = held.get();
        if let Some(text) = before.and_then(|before| news(&before, &now)) {
            status_text.set(text);
        }
        now.into_iter().map(|(code, _)| code).collect()
    });
    view! { <p class="hidden" role="status" aria-live="polite" data-testid="findings-news">{status_text}</p> }
}

/// What stands where no finding does.
#[component]
fn Nothing(store: Store, filter: Memo<ListedFindings>) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let (now, filter) = (store.now_ms(), filter.get());
        store.on_beat(|cluster| NoFinding::of(cluster, filter, now, zone()))
    });
    // The text changes with time, and what kind it is of seldom.
    let kind = Memo::new(move |_| shown.with(std::mem::discriminant));
    let healthy = Memo::new(move |_| match shown.get() {
        NoFinding::Healthy { text, is_good, since } => (text, is_good, since),
        NoFinding::Unchecked(_) | NoFinding::Filtered(_) => Default::default(),
    });
    move || {
        if !store.ready() {
            return view! { <Waiting id="findings-wait"/> };
        }
        kind.track();
        match shown.get_untracked() {
            NoFinding::Unchecked(text) => view! { <EmptyPanel text/> },
            NoFinding::Filtered(head) => view! { <Empty id="findings-filtered" head/> },
            NoFinding::Healthy { .. } => view! {
                <div class="healthy" data-testid="findings-none">
                    <p class="cf-headline">
                        {move || healthy.with(|(_, is_good, _)| is_good.then(|| view! { <span class="good-mark" aria-hidden="true">"✓ "</span> }))}
                        {move || healthy.with(|(text, ..)| text.clone())}
                    </p>
                    <p class="quiet">{move || healthy.with(|(.., since)| since.clone())}</p>
                </div>
            },
        }
    }
}
