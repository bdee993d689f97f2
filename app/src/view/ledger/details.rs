//! One decision in full: why, every candidate's cost, the prompt, how the request went on.

use leptos::prelude::*;
use radixscope_export::panel::not_reused;
use radixscope_insight::latency;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::duration;
use radixscope_model::record::{ClientMeasured, Completeness, Outcome};
use radixscope_state::cluster::{ByFilter, DecisionEntry, TtftPart, candidates_hint};

use radixscope_icicle::palette::label;
use radixscope_router::explain::Short;

use super::instead::{Instead, RoundRobinInstead};
use super::row::{clock_of, known_from, milliseconds, time};
use super::scores::ScoresTable;
use super::state::Ledger;
use super::strip::Strip;
use super::table::GRID_ID;
use super::trace_link::TraceLink;
use super::waterfall::Waterfall;
use crate::format;
use crate::store::ViewContext;
use crate::url::Panel;
use crate::view::chip::Chip;
use crate::view::clipboard::copy;
use crate::view::control::view;
use crate::view::figure::WAITING;
use crate::view::hint::HintList;

/// Beside candidates that were computed on a tree that lacked blocks.
pub(in crate::view) const ON_PARTIAL_TREE: &str = "Computed on a tree that lacked blocks: workers may have had more of the prompt cached, and \
    cost less, than shown. Cost gap and better-cached workers are withheld.";

#[derive(Clone, PartialEq)]
struct Open {
    decided: DecisionEntry,
    /// The state has it no more.
    is_dropped: bool,
}

#[component]
pub(super) fn Details(ledger: Ledger) -> impl IntoView {
    let store = ledger.store;
    let requested = Memo::new(move |_| store.address.with(|address| address.decision));
    // What is open stays as it was last known, also when the state drops it.
    let open = Memo::new(move |before: Option<&Option<Open>>| {
        let id = requested.get()?;
        ledger.view.track();
        store.on_beat(|_| ());
        let found = ledger.decided(id).map(|decided| Open { decided, is_dropped: false });
        let before = || before.cloned().flatten().filter(|open| open.decided.decision.id == id);
        found.or_else(|| before().map(|open| Open { is_dropped: true, ..open }))
    });
    move || {
        requested.get().map(|id| {
            view! {
                <section class="ledger-details" aria-labelledby="details-title" data-testid="ledger-details" data-decision=id.to_string()>
                    <header>
                        <h3 id="details-title">{format!("Decision {id}")}</h3>
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
                            <p class="caption" data-testid="details-gone">"This decision is no longer retained: the server retains the latest 10,000 since it started."</p>
                        },
                    }}
                </section>
            }
        })
    }
}

#[component]
fn One(ledger: Ledger, open: Open) -> impl IntoView {
    let store = ledger.store;
    let Open { decided, is_dropped } = open;
    let decision = &decided.decision;
    let (worker, id) = (decision.worker, decision.id);
    let request = decision.request_id.as_ref().map(ToString::to_string);
    let endpoint = store.peek(|shown| shown.endpoint_of(worker).map(str::to_owned));
    let lost = decided.why_affinity_was_lost(label);
    let not_reused = not_reused_of(ledger, &decided);
    let instead = Instead::of(store, &decided);
    let is_chosen_only = decision.completeness == Completeness::ChosenOnly || decision.candidates.is_empty();
    let knows_prompt = decision.isl_blocks.is_some_and(|isl| isl > 0);
    let is_of_other_router = decided.is_of_other_router();
    let costs = if is_of_other_router {
        view! { <ScoresTable store decided=decided.clone()/> }
    } else if is_chosen_only {
        let forgotten = decided.candidates_forgotten();
        view! {
            <div data-testid="chosen-only">
                {if forgotten {
                    view! { <p>"Its candidates are no longer retained: newer decisions took their place."</p> }
                } else if let Some(missing) = decision.not_reconstructed {
                    let text = format!("The costs of the others could not be computed: {}.", missing.to_text());
                    view! { <p data-testid="not-reconstructed">{text}</p> }
                } else {
                    view! { <HintList hint=candidates_hint()/> }
                }}
            </div>
        }
    } else {
        view! {
            {decided.partial.then(|| view! { <p class="partial-note" data-testid="details-partial">{ON_PARTIAL_TREE}</p> })}
            <Waterfall store decided=decided.clone()/>
        }
    };
    let held = match decided.ignores_cache {
        true => {
            view! { <p class="caption">"Decode decisions ignore cached blocks: the KV cache is transferred from the prefill worker."</p> }
        }
        false => knows_prompt.then(|| view! { <Strip store decided=decided.clone()/> }).into_any(),
    };
    let ghost = not_reused::ghost(&decided, label);
    let in_tree = match (decision.path, &ghost) {
        (None, None) => {
            view! { <p class="caption">"Its source names no blocks, or none was cached: there is no path to show in the tree."</p> }
        }
        (path, ghost) => {
            let (pool, of_worker) = (decided.pool, path.map(|end| end.worker));
            let show = move |_| {
                let pool = of_worker.map_or(Some(pool), |worker| store.peek(|shown| shown.pool_of(worker)));
                if let Some(pool) = pool {
                    store.show_pool(pool);
                }
                store.address.update(|address| *address = address.with_decision(Panel::Tree, id));
            };
            let blocks = path.map_or(0, |end| end.blocks);
            let path = format!("The path of its first {}", format::plural(blocks.into(), "block", "blocks"));
            let title = ghost.as_ref().map_or(path.clone(), |ghost| format!("{path}, then {}", ghost.label));
            let text = if ghost.is_some() { "Show in the tree what was gone" } else { "Show in the tree" };
            view! { <button class="plain" data-testid="show-in-tree" title=title on:click=show>{text}</button> }
        }
    };
    view! {
        <div class="one">
            <p class="why" data-testid="why">{decided.why(label)}</p>
            {lost.map(|lost| view! { <p class="why lost" data-testid="lost-affinity">{lost}</p> })}
            {not_reused.map(|text| view! { <p class="why" data-testid="not-reused">{text}</p> })}
            {(!is_of_other_router).then(|| view! { <RoundRobinInstead store decided=decided.clone() instead=instead.clone()/> })}
            <OtherPart ledger decided=decided.clone()/>
            {is_dropped.then(|| view! { <p class="caption" data-testid="details-dropped">"The server no longer retains it; shown as last received."</p> })}
            <dl>
                <div><dt>"Worker"</dt><dd><Chip store worker/> <span class="mono">{full_id(ledger, worker)}</span></dd></div>
                {move || store.pool_label(worker).map(|(_, text)| view! { <div><dt>"Pool"</dt><dd data-testid="details-pool">{text}</dd></div> })}
                {decision.adapter.clone().map(|name| view! { <div><dt>"Adapter"</dt><dd data-testid="details-adapter">{name}</dd></div> })}
                {request.clone().map(|id| view! { <div><dt>"Request"</dt><dd class="mono" data-testid="details-request">{id}</dd></div> })}
                {decision.session.clone().map(|session| view! { <SessionLink ledger session/> })}
                <TraceLink decided=decided.clone()/>
                {endpoint.map(|name| view! { <div><dt>"Endpoint"</dt><dd class="mono" data-testid="details-endpoint">{name}</dd></div> })}
                <div><dt>"Router"</dt><dd data-testid="details-router">{decision.arithmetic.label()}</dd></div>
                <div><dt>"Decided by"</dt><dd data-testid="details-by">{ByFilter(decision.decided_by).to_text()}</dd></div>
                <div><dt>"Known"</dt><dd>{known_from(&decided)}</dd></div>
            </dl>
            <h4>{if is_of_other_router { "Score, higher wins" } else { "Cost, lower wins" }}</h4>
            {costs}
            <h4>"Cached blocks of the prompt"</h4>
            {held}
            {(!decided.ignores_cache).then_some(in_tree)}
            <h4>"The request"</h4>
            {timeline(&decided)}
            {ttft_split(ledger, &decided)}
            <Ticket ledger decided instead/>
        </div>
    }
}

/// Why its prompt was not reused whole.
fn not_reused_of(ledger: Ledger, decided: &DecisionEntry) -> Option<String> {
    ledger.store.peek(|shown| not_reused::sentence(shown.cluster, decided, label))
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
fn OtherPart(ledger: Ledger, decided: DecisionEntry) -> impl IntoView {
    let store = ledger.store;
    let id = decided.decision.other_part?;
    let part = Memo::new(move |_| store.on_beat(|shown| OtherDecision::of(shown, &decided)));
    let note = move || match part.get() {
        None => {
            let text = format!("The other decision for this request, {id}, is no longer retained.");
            view! { <p class="caption" data-testid="other-part-gone">{text}</p> }
        }
        Some(part) => {
            let name = if part.is_decode { "decode" } else { "prefill" };
            let does = if part.is_decode { "generates the response" } else { "computes the prompt" };
            let cost = part.cost.map(|cost| format!(", cost {} blocks", Short((cost * 10.0).round() / 10.0)));
            view! {
                <div class="other-part" data-testid="other-part" data-decision=id.to_string()>
                    <p>{format!("The {name} worker of this request, which {does}: ")}<Chip store worker=part.worker/>{cost}</p>
                    <p class="quiet">{part.why}</p>
                    <p data-testid="transfer-gap">{gap_text(part.gap)}</p>
                    <button class="plain" data-testid="open-other-part" on:click=move |_| ledger.open(Some(id))>
                        {format!("Open the {name} decision, {id}")}
                    </button>
                </div>
            }
        }
    };
    Some(note)
}

/// The texts of the other choice.
#[derive(Clone, PartialEq)]
struct OtherDecision {
    is_decode: bool,
    worker: WorkerIx,
    cost: Option<f64>,
    why: String,
    gap: Option<i64>,
}

impl OtherDecision {
    fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Option<Self> {
        let parts = shown.parts_of(decided)?;
        let is_decode = parts.prefill.decision.id == decided.decision.id;
        let other = if is_decode { parts.decode } else { parts.prefill };
        Some(Self {
            is_decode,
            worker: other.decision.worker,
            cost: other.chosen_cost(),
            why: other.why(label),
            gap: parts.transfer_gap_ms(),
        })
    }
}

fn gap_text(gap: Option<i64>) -> String {
    match gap {
        None => "Transfer gap not reported: from prefill freed to the first token".to_owned(),
        Some(ms) if ms < 0 => {
            format!(
                "No transfer gap: the first token came {} before prefill was freed",
                milliseconds(-ms as f64)
            )
        }
        Some(ms) => {
            format!("Transfer gap {}: from prefill freed to the first token", milliseconds(ms as f64))
        }
    }
}

fn full_id(ledger: Ledger, worker: WorkerIx) -> Option<String> {
    ledger.store.peek(|cluster| cluster.worker(worker).map(|worker| worker.id.to_string()))
}

/// What happened when, as far as it was reported.
fn timeline(decided: &DecisionEntry) -> impl IntoView + use<> {
    let progress = decided.progress;
    let decided_ms = decided.decided_ms();
    let since = |at: Millis| milliseconds(at.since(decided_ms) as f64);
    let first = match decided.time_to_first_token_ms() {
        Some((ms, true)) => format!("after {}, as the frontend measured it", milliseconds(ms)),
        Some((ms, false)) => format!("after {}", milliseconds(ms)),
        None => "not reported".to_owned(),
    };
    let end = match (progress.ended_ms, progress.outcome.map(Outcome::as_str)) {
        (Some(at), outcome) => {
            format!("after {}{}", since(at), outcome.map_or(String::new(), |how| format!(", {how}")))
        }
        (None, Some(outcome)) => outcome.to_owned(),
        (None, None) => "in flight, or not reported".to_owned(),
    };
    let client = decided.client.map(|measured| client_text(decided, &measured));
    let tokens = progress.output_tokens.map(|n| format::plural(n, "output token", "output tokens"));
    let itl = progress.itl_us.map(|us| format!("{:.1} ms between tokens on average", us as f64 / 1_000.0));
    let cached = progress
        .cached_tokens
        .map(|n| format!("{} from the cache", format::plural(n, "prompt token", "prompt tokens")));
    let more: Vec<String> = [tokens, itl, cached].into_iter().flatten().collect();
    view! {
        <ol class="timeline" data-testid="timeline">
            <li><b>"Decided"</b> {format!(" {}, {}", time(decided_ms), clock_of(decided))}</li>
            <li class:not_reported=progress.first_token_ms.is_none() && progress.ttft_us.is_none()><b>"TTFT"</b> " " {first}</li>
            <li class:not_reported=progress.ended_ms.is_none()><b>"End"</b> " " {end}</li>
            {client.map(|client| view! { <li data-testid="client-result"><b>"Client"</b> " " {client}</li> })}
        </ol>
        {(!more.is_empty()).then(|| view! { <p class="caption">{more.join(", ")}</p> })}
    }
}

/// What the client measured, and how its time to first token differs from the frontend's.
fn client_text(decided: &DecisionEntry, measured: &ClientMeasured) -> String {
    let ttft = latency::ttft_difference(decided).map(|text| format!("TTFT {text}"));
    let ms = |us: u64| us as f64 / 1_000.0;
    let itl = measured.itl_us.map(|us| format!("{:.1} ms between tokens on average", ms(us)));
    let whole = measured.duration_us.map(|us| format!("{} in all", milliseconds(ms(us))));
    let end = (measured.outcome != Outcome::Success).then(|| match measured.status {
        Some(status) => format!("{}, status {status}", measured.outcome.as_str()),
        None => measured.outcome.as_str().to_owned(),
    });
    [end, ttft, itl, whole].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What the time to first token is made of, with where each part is known from.
fn ttft_split(ledger: Ledger, decided: &DecisionEntry) -> impl IntoView + use<> {
    let parts = ledger.store.peek(|shown| decided.ttft_parts(shown.parts_of(decided)));
    let sum: f64 = parts.iter().filter_map(|part| part.ms).sum();
    let class = ["queued", "computed", "handed"];
    let bar = move |(part, class): (&TtftPart, &'static str)| {
        let ms = part.ms.filter(|ms| *ms > 0.0 && sum > 0.0)?;
        Some(view! { <i class=class style=format!("width:{}", format::width(ms / sum))></i> })
    };
    let row = |(part, class): (&TtftPart, &'static str)| {
        let time = part.ms.map_or("not reported".to_owned(), duration);
        view! { <li><i class=class aria-hidden="true"></i><b>{part.name}</b> " " {time} " " <span class="quiet">{part.source}</span></li> }
    };
    view! {
        <div class="ttft-split" data-testid="ttft-split">
            <div class="ttft-bar" aria-hidden="true">{parts.iter().zip(class).map(bar).collect_view()}</div>
            <ul>{parts.iter().zip(class).map(row).collect_view()}</ul>
        </div>
    }
}

/// The whole decision as text.
#[component]
fn Ticket(ledger: Ledger, decided: DecisionEntry, instead: Instead) -> impl IntoView {
    let at = js_sys::Date::new(&(decided.decided_ms().0 as f64).into()).to_iso_string();
    let mut text = ledger.store.peek(|cluster| {
        decided.ticket(&String::from(at), |worker| {
            (label(worker), cluster.worker(worker).map(|worker| worker.id))
        })
    });
    if let Some(why) = not_reused_of(ledger, &decided) {
        text.push_str(&format!("- {why}\n"));
    }
    if !decided.is_of_other_router() {
        text.push_str(&format!("- {}\n", instead.sentence));
        if let Some(how) = instead.derivation {
            text.push_str(&format!("- {how}\n"));
        }
    }
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
