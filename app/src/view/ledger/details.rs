//! One decision in full: why, every candidate's cost, the prompt, how the request went on.

use leptos::prelude::*;
use radixscope_model::id::{DecisionId, Millis};
use radixscope_panels::decisions::details::{
    self, CachedPrompt, Costs, DecisionDetails, OpenDecision, OtherPart, Timeline, TreePath, TtftRow,
};
use radixscope_state::cluster::DecisionEntry;

use super::instead::RoundRobinInstead;
use super::scores::ScoresTable;
use super::state::Ledger;
use super::strip::Strip;
use super::table::GRID_ID;
use super::trace_link::{TraceLink, trace_url};
use super::waterfall::Waterfall;
use crate::store::{Store, zone};
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::clipboard::copy;
use crate::view::control::view;
use crate::view::figure::WAITING;
use crate::view::hint::HintList;

#[component]
pub(super) fn Details(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let requested = Memo::new(move |_| store.address.with(|address| address.decision));
    // What is open stays as it was last known, also when the state drops it.
    let open = Memo::new(move |before: Option<&Option<OpenDecision>>| {
        let id = requested.get()?;
        ledger.view.track();
        store.on_beat(|_| ());
        OpenDecision::follow(id, ledger.decided(id), before.cloned().flatten())
    });
    move || {
        requested.get().map(|id| {
            view! {
                <section class="ledger-details" aria-labelledby="details-title" data-testid="ledger-details" data-decision=id.to_string()>
                    <header>
                        <h3 id="details-title">{details::title(id)}</h3>
                        <span class="spacer"></span>
                        <button class="plain" aria-keyshortcuts="Escape" data-testid="details-close" on:click=move |_| {
                            ledger.open(None);
                            crate::keys::focus(GRID_ID);
                        }>"Close"</button>
                    </header>
                    {move || match open.get() {
                        Some(open) => view! { <One ledger open/> },
                        None if !store.ready() => view! { <p class="caption">{WAITING}</p> },
                        None => view! {
                            <p class="caption" data-testid="details-gone">{details::GONE}</p>
                        },
                    }}
                </section>
            }
        })
    }
}

#[component]
fn One(ledger: Ledger, open: OpenDecision) -> impl IntoView {
    let store = ledger.store;
    let utc = utc(open.decided.decided_ms());
    let template = trace_url();
    let details = store.peek(|shown| DecisionDetails::of(shown, &open, zone(), &utc, template.as_ref()));
    let DecisionDetails { id, worker, worker_id, .. } = details;
    view! {
        <div class="one">
            <p class="why" data-testid="why">{details.why}</p>
            {details.lost_affinity.map(|lost| view! { <p class="why lost" data-testid="lost-affinity">{lost}</p> })}
            {details.not_reused.map(|text| view! { <p class="why" data-testid="not-reused">{text}</p> })}
            {details.instead.map(|instead| view! { <RoundRobinInstead store id instead/> })}
            <OtherDecision ledger decided=open.decided/>
            {details.dropped.map(|text| view! { <p class="caption" data-testid="details-dropped">{text}</p> })}
            <dl>
                <div><dt>"Worker"</dt><dd><Chip store worker/> <span class="mono">{worker_id}</span></dd></div>
                {move || store.pool_label(worker).map(|(_, text)| view! { <div><dt>"Pool"</dt><dd data-testid="details-pool">{text}</dd></div> })}
                {details.adapter.map(|name| view! { <div><dt>"Adapter"</dt><dd data-testid="details-adapter">{name}</dd></div> })}
                {details.request.map(|id| view! { <div><dt>"Request"</dt><dd class="mono" data-testid="details-request">{id}</dd></div> })}
                {details.session.map(|session| view! { <SessionLink ledger session/> })}
                {details.trace.map(|(url, trace_id)| view! { <TraceLink url trace_id/> })}
                {details.endpoint.map(|name| view! { <div><dt>"Endpoint"</dt><dd class="mono" data-testid="details-endpoint">{name}</dd></div> })}
                <div><dt>"Router"</dt><dd data-testid="details-router">{details.router}</dd></div>
                <div><dt>"Decided by"</dt><dd data-testid="details-by">{details.decided_by}</dd></div>
                <div><dt>"Known"</dt><dd>{details.known}</dd></div>
            </dl>
            <h4>{details.costs_title}</h4>
            {costs(store, details.costs)}
            <h4>"Cached blocks of the prompt"</h4>
            {match details.cached {
                CachedPrompt::Ignored(text) => Some(view! { <p class="caption">{text}</p> }),
                CachedPrompt::Strip(strip) => Some(view! { <Strip store chosen=worker strip/> }),
                CachedPrompt::Unknown => None,
            }}
            {details.path.map(|path| in_tree(store, id, path))}
            <h4>"The request"</h4>
            {timeline(details.timeline)}
            {ttft_split(&details.ttft)}
            <Ticket ledger text=details.ticket/>
        </div>
    }
}

/// `2026-11-21T11:34:18.123Z`.
fn utc(at: Millis) -> String {
    js_sys::Date::new(&(at.0 as f64).into()).to_iso_string().into()
}

fn costs(store: Store, costs: Costs) -> AnyView {
    let chosen_only = |text: AnyView| view! { <div data-testid="chosen-only">{text}</div> };
    match costs {
        Costs::Scores(scores) => scores.map(|scores| view! { <ScoresTable store scores/> }).into_any(),
        Costs::Forgotten(text) => chosen_only(view! { <p>{text}</p> }),
        Costs::NotReconstructed(text) => chosen_only(view! { <p data-testid="not-reconstructed">{text}</p> }),
        Costs::ChosenOnly(hint) => chosen_only(view! { <HintList hint/> }),
        Costs::Candidates(candidates, note) => view! {
            {note.map(|note| view! { <p class="partial-note" data-testid="details-partial">{note}</p> })}
            <Waterfall store candidates/>
        },
    }
}

/// The way to the path of its prompt.
fn in_tree(store: Store, id: DecisionId, path: TreePath) -> AnyView {
    match path {
        TreePath::None(text) => view! { <p class="caption">{text}</p> },
        TreePath::Shown { text, title, worker, pool } => {
            let show = move |_| {
                let pool = worker.map_or(Some(pool), |worker| store.peek(|shown| shown.pool_of(worker)));
                if let Some(pool) = pool {
                    store.show_pool(pool);
                }
                store.address.update(|address| *address = address.with_decision(Panel::Tree, id));
            };
            view! { <button class="plain" data-testid="show-in-tree" title=title on:click=show>{text}</button> }
        }
    }
}

/// The session of a decision, and the way to its other decisions.
#[component]
fn SessionLink(ledger: Ledger, session: String) -> impl IntoView {
    let store = ledger.store;
    let name = session.clone();
    let list = move |_| store.address.update(|address| address.session.clone_from(&name));
    view! {
        <div>
            <dt>"Session"</dt>
            <dd class="mono">
                <button class="plain" data-testid="details-session" title="List the decisions of this session" on:click=list>{session}</button>
            </dd>
        </div>
    }
}

/// The other choice for the same request, and how long the KV cache was between both.
#[component]
fn OtherDecision(ledger: Ledger, decided: DecisionEntry) -> impl IntoView {
    let store = ledger.store;
    let id = decided.decision.other_part?;
    let part = Memo::new(move |_| store.on_beat(|shown| OtherPart::of(shown, &decided)));
    let note = move || match part.get() {
        None => view! { <p class="caption" data-testid="other-part-gone">{OtherPart::gone_text(id)}</p> },
        Some(OtherPart { head, worker, cost, why, gap, open }) => view! {
            <div class="other-part" data-testid="other-part" data-decision=id.to_string()>
                <p>{head}<Chip store worker/>{cost}</p>
                <p class="quiet">{why}</p>
                <p data-testid="transfer-gap">{gap}</p>
                <button class="plain" data-testid="open-other-part" on:click=move |_| ledger.open(Some(id))>{open}</button>
            </div>
        },
    };
    Some(note)
}

/// What happened when, as far as it was reported.
fn timeline(timeline: Timeline) -> impl IntoView + use<> {
    let Timeline { decided, ttft: (ttft, has_ttft), end: (end, has_end), client, more } = timeline;
    view! {
        <ol class="timeline" data-testid="timeline">
            <li><b>"Decided"</b> " " {decided}</li>
            <li class:not_reported=!has_ttft><b>"TTFT"</b> " " {ttft}</li>
            <li class:not_reported=!has_end><b>"End"</b> " " {end}</li>
            {client.map(|client| view! { <li data-testid="client-result"><b>"Client"</b> " " {client}</li> })}
        </ol>
        {(!more.is_empty()).then(|| view! { <p class="caption">{more}</p> })}
    }
}

/// What the time to first token is made of, with where each part is known from.
fn ttft_split(parts: &[TtftRow; 3]) -> impl IntoView + use<> {
    let bar = |part: &TtftRow| {
        let style = format!("width:{}", part.width.as_ref()?);
        Some(view! { <i class=part.class style=style></i> })
    };
    let row = |part: &TtftRow| {
        let TtftRow { class, name, time, source, .. } = part.clone();
        view! { <li><i class=class aria-hidden="true"></i><b>{name}</b> " " {time} " " <span class="quiet">{source}</span></li> }
    };
    view! {
        <div class="ttft-split" data-testid="ttft-split">
            <div class="ttft-bar" aria-hidden="true">{parts.iter().map(bar).collect_view()}</div>
            <ul>{parts.iter().map(row).collect_view()}</ul>
        </div>
    }
}

/// The whole decision as text.
#[component]
fn Ticket(ledger: Ledger, text: String) -> impl IntoView {
    let copied = text.clone();
    let copy = move |_| match copy(&copied) {
        true => ledger.status_text.set("Copied".to_owned()),
        false => {
            ledger.status_text.set("This browser does not let pages copy; select the text below".to_owned())
        }
    };
    view! {
        <div class="ticket">
            <button class="plain" data-testid="copy-text" on:click=copy>"Copy as text"</button>
            <details><summary>"As text"</summary><pre data-testid="ticket">{text}</pre></details>
        </div>
    }
}
