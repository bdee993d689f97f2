//! The workers: what each holds, how fast it changes, and facts about it that may point at a fault.

use leptos::prelude::*;
use radixscope_insight::completeness::{known_text, query_text, why_text};
use radixscope_insight::occupancy::Occupancy;
use radixscope_insight::queues;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{QueryState, Tier};
use radixscope_state::cluster::{Cluster, Liveness, TierCounts, WorkerState};

use super::ask::AskForBlocks;
use super::chip::Chip;
use super::figure::{Empty, Figure, PanelHead, prose};
use crate::format::{self, UNKNOWN};
use crate::store::{Feed, Store};
use crate::url::Panel;
use crate::view::control::view;
use crate::view_context::Unit;

/// Rates are means over so many full seconds: long enough to be read, short enough to follow a burst.
const RATE_SECONDS: u64 = 10;

#[derive(Clone, PartialEq, Default)]
struct Row {
    tail: String,
    id: String,
    held: String,
    held_title: String,
    /// Filled part of the bar, in percent.
    bar: String,
    /// Whether the bar is a share of the capacity, or of the worker that holds most.
    of_capacity: bool,
    in_flight: String,
    /// Those of them that wait there; empty: none does, or it is not reported.
    queued: String,
    in_flight_title: String,
    used: String,
    stored: String,
    removed: String,
    overlap: String,
    overlap_title: String,
    age: String,
    sign: &'static str,
    sign_title: &'static str,
    facts: Vec<(&'static str, String)>,
    /// What is missing of it and why, where blocks are.
    lacks: Option<String>,
    /// What is done about that, and when to ask for more.
    asking: Option<String>,
    /// Whether the reader may ask it for its blocks.
    can_ask: bool,
}

/// The panel.
#[component]
pub(super) fn WorkersPanel(store: Store) -> impl IntoView {
    let resident = Memo::new(move |_| {
        if store.has_kv_events() {
            store.on_beat(|shown| match shown.held() {
                Some((held, _, Unit::Blocks)) => format::count(held),
                Some((held, _, Unit::Tokens)) => format!("{} tokens", format::short(held)),
                None => UNKNOWN.to_owned(),
            })
        } else {
            UNKNOWN.to_owned()
        }
    });
    let title = Memo::new(move |_| {
        match store.on_beat(|shown| shown.held()) {
            Some((.., Unit::Blocks)) => "Cached blocks, summed over the workers",
            Some((.., Unit::Tokens)) => {
                "Tokens in cached blocks, summed over the workers: pools have blocks of different size"
            }
            None => "Pools have blocks of different size, and the size of some is unknown: choose a pool",
        }
        .to_owned()
    });
    let count = move || store.listed.with(Vec::len);
    let unsized_workers = Memo::new(move |_| {
        store.on_beat(|c| {
            let has_events = |w: &WorkerIx| c.worker(*w).is_some_and(|w| w.last_event_ms.is_some());
            c.worker_list().filter(|w| has_events(w) && c.capacity(*w).is_none()).count()
        })
    });
    view! {
        <section class="panel workers" aria-labelledby="workers-title" data-testid="workers">
            <PanelHead store panel=Panel::Workers title="Workers">
                <Figure id="resident" label="cached blocks, all workers" value=resident title/>
            </PanelHead>
            <Show when=move || count() != 0 fallback=move || view! { <NoWorkers store/> }>
                <div class="scroll" tabindex="0" role="region" aria-label="Table of workers">
                    <table>
                        <thead><tr>
                            <th scope="col">"Worker"</th>
                            <th scope="col">"Cached blocks"</th>
                            <th scope="col" class="n" title="Requests in flight on it now, tracked from decisions; in brackets: those of them that are queued there">"In flight"</th>
                            <th scope="col" class="n c-used" title="Blocks that running requests use, by the engine">"In use"</th>
                            <th scope="col" class="n" title="Blocks stored per second, mean of the last 10 s">"Stored/s"</th>
                            <th scope="col" class="n" title="Blocks removed per second, mean of the last 10 s">"Removed/s"</th>
                            <th scope="col" class="n c-overlap" title="KV hit rate: cached blocks ÷ prompt blocks, over the decisions for this worker">"Hit rate"</th>
                            <th scope="col" class="n c-age" title="Time since its last KV event">"Event"</th>
                        </tr></thead>
                        <For each=move || store.listed.get() key=|worker| *worker let:worker>
                            <WorkerRow store worker/>
                        </For>
                    </table>
                </div>
                <Show when=move || unsized_workers.get() != 0>
                    <p class="caption" data-testid="capacity-unknown">{move || format!(
                        "Capacity unknown for {}: total_kv_blocks of the model card, read from discovery, reports it. Bars compare with the worker with most blocks.",
                        format::plural(unsized_workers.get() as u64, "worker", "workers")
                    )}</p>
                </Show>
            </Show>
        </section>
    }
}

#[component]
fn NoWorkers(store: Store) -> impl IntoView {
    view! {
        <Show when=move || store.ready()
            fallback=|| view! { <Empty id="workers-wait" head="Waiting for the server's state"/> }>
            <Empty id="workers-empty" head="No worker known yet">
                {prose(
                    "Workers appear with their first KV event, load report or routing decision, or at once with `--discovery` \
                     (etcd, Kubernetes or a folder), which also finds the ZeroMQ publishers of Dynamo 1.3 and later. On NATS, set \
                     `DYN_EVENT_PLANE=nats` on frontends and workers alike. KV events need `--kv-events-config` (vLLM) or \
                     `--publish-events-and-metrics` (TensorRT-LLM). `radixscope sources` lists what a cluster offers."
                )}
            </Empty>
        </Show>
    }
}

#[component]
fn WorkerRow(store: Store, worker: WorkerIx) -> impl IntoView {
    let row = Memo::new(move |_| {
        let (now, is_current) = (store.now_ms(), store.as_of(Feed::Events).is_none());
        store
            .on_beat(|cluster| cluster.worker(worker).map(|w| look(cluster, worker, w, now, is_current)))
            .unwrap_or_default()
    });
    let picked = move || store.picked() == Some(worker);
    // All in one: where `class` is written anew, what `class:picked` had added would be gone.
    let classes = move || {
        let beside = match store.picked() {
            Some(picked) if picked == worker => " picked",
            Some(_) => " other",
            None => "",
        };
        ["worker ", row.with(|r| r.sign), beside].concat()
    };
    let pick = move |_| store.pick(worker);
    let id = move || row.with(|r| r.id.clone());
    let of = move |part: fn(&Row) -> &String| move || row.with(|r| part(r).clone());
    view! {
        <tbody class=classes on:click=pick data-testid="worker" data-worker=move || id()>
            <tr>
                <th scope="row">
                    <button class="pick" aria-pressed=move || picked().to_string() title=move || format!("Worker {}, click to select it", id())>
                        <i class="sign" title=move || row.with(|r| r.sign_title) aria-hidden="true"></i>
                        <Chip store worker/>
                        <span class="id">{of(|r| &r.tail)}</span>
                        {move || store.pool_words(worker).map(|(beside, words)| view! {
                            <span class="of-pool" title=words data-testid="worker-pool">{beside}</span>
                        })}
                        <span class="hidden">{move || row.with(|r| format!("worker {}, {}", r.id, r.sign))}</span>
                    </button>
                </th>
                <td class="held" title=of(|r| &r.held_title)>
                    <span class="meter" class:guess=move || row.with(|r| !r.of_capacity) class:lacks=move || row.with(|r| r.lacks.is_some()) aria-hidden="true">
                        <i style=move || row.with(|r| format!("width:{};--c:var({})", r.bar, crate::draw::palette::token(worker.slot(), store.workers.get())))></i>
                    </span>
                    <span data-testid="held">{of(|r| &r.held)}</span>
                </td>
                <td class="n" title=of(|r| &r.in_flight_title)>
                    <span data-testid="in-flight">{of(|r| &r.in_flight)}</span>
                    <span class="queued" data-testid="queued">{of(|r| &r.queued)}</span>
                </td>
                <td class="n c-used">{of(|r| &r.used)}</td>
                <td class="n" data-testid="stored-rate">{of(|r| &r.stored)}</td>
                <td class="n" data-testid="removed-rate">{of(|r| &r.removed)}</td>
                <td class="n c-overlap" title=of(|r| &r.overlap_title) data-testid="overlap">{of(|r| &r.overlap)}</td>
                <td class="n c-age">{of(|r| &r.age)}</td>
            </tr>
            <Show when=move || row.with(|r| r.lacks.is_some())>
                <tr class="worker-facts"><td colspan="8" data-testid="knowledge">
                    {of(|r| r.lacks.as_ref().unwrap_or(&r.tail))}
                    {move || row.with(|r| r.asking.clone()).map(|words| view! { <span class="quiet" data-testid="asking">{words}</span> })}
                    <Show when=move || row.with(|r| r.can_ask)><AskForBlocks store worker/></Show>
                </td></tr>
            </Show>
            <Show when=move || row.with(|r| !r.facts.is_empty())>
                <tr class="worker-facts"><td colspan="8">
                    {move || {
                        let fact = |(id, text): (&'static str, String)| {
                            view! { <span class:quiet=id.contains("tier") data-testid=id>{text}</span> }
                        };
                        row.with(|r| r.facts.clone()).into_iter().map(fact).collect_view()
                    }}
                </td></tr>
            </Show>
        </tbody>
    }
}

fn look(cluster: &Cluster, ix: WorkerIx, w: &WorkerState, now: Millis, is_current: bool) -> Row {
    let held = Occupancy::of(cluster, ix);
    let rates = cluster.rate_per_second(ix, now, RATE_SECONDS).filter(|_| is_current);
    let rate = |per_second: Option<f64>| per_second.map_or(UNKNOWN.to_owned(), format::rate);
    let totals = cluster.decisions().totals_of(ix);
    let (in_flight, queued, in_flight_title) = in_flight(cluster, ix, w, now);
    let sign = w.sign(now);
    let is_incomplete = cluster.is_incomplete(ix);
    let knowledge = &w.knowledge;
    let rank = if w.id.dp_rank > 0 { format!(" dp {}", w.id.dp_rank) } else { String::new() };
    Row {
        tail: format!("{}{rank}", format::tail(w.id.id.0)),
        id: w.id.to_string(),
        held: held.to_text(),
        held_title: held.explain(),
        bar: format::width(held.share.unwrap_or(0.0)),
        of_capacity: held.capacity.is_some(),
        in_flight,
        queued,
        in_flight_title,
        used: w.engine_used_blocks.map_or(UNKNOWN.to_owned(), format::short),
        stored: rate(rates.map(|rates| rates.0)),
        removed: rate(rates.map(|rates| rates.1)),
        overlap: totals.overlap_share().map_or(UNKNOWN.to_owned(), format::percent),
        overlap_title: overlap_title(totals),
        age: w.last_event_ms.map_or("never".to_owned(), |last| format::age(now.since(last))),
        sign: if is_current { sign.as_str() } else { "unknown" },
        sign_title: match sign {
            _ if !is_current => "Unknown: no connection",
            Liveness::Active => "Active: received from it within the last 10 s",
            Liveness::Quiet => "Quiet: idle or gone, nothing received for more than 10 s",
            Liveness::NeverSeen => "Nothing received from it: only routers report it",
            Liveness::Left => "Left: it left the deployment",
        },
        facts: facts(cluster, ix, w),
        lacks: is_incomplete
            .then(|| format!("Known {}: {}", known_text(cluster, ix), why_text(knowledge.why))),
        asking: query_text(knowledge, now).filter(|_| is_incomplete),
        can_ask: is_incomplete
            && is_current
            && matches!(knowledge.asking, QueryState::OnRequest | QueryState::Failed { .. }),
    }
}

/// Requests on it, those of them that wait there, and where both are from.
fn in_flight(cluster: &Cluster, ix: WorkerIx, w: &WorkerState, at: Millis) -> (String, String, String) {
    let now = w.in_flight.now().map(|n| format::count(n.into()));
    let tracked = match now {
        Some(_) => "In flight: tracked from decision to end",
        None => {
            "In flight: not reported; active_sequences_events (routers with --router-replica-sync) or a frontend's log (--logs) reports it"
        }
    };
    let text = now.unwrap_or(UNKNOWN.to_owned());
    let Some(queued) = queues::on_worker(cluster, ix, at) else {
        let title = format!(
            "{tracked}. Queued: not reported for this worker; its scraped engine reports it (Dynamo ≥ 1.0)"
        );
        return (text, String::new(), title);
    };
    let requests = format::count(queued.requests);
    let words = if queued.requests > 0 { format!("({requests} queued)") } else { String::new() };
    (text, words, format!("{tracked}. {requests} of them queued: {}", queued.source))
}

fn overlap_title(totals: radixscope_state::cluster::DecisionTotals) -> String {
    format!(
        "{} of {} prompt blocks over {}, as the router counted them, since the server started",
        format::count(totals.overlap_blocks),
        format::count(totals.isl_blocks),
        format::plural(totals.count, "decision", "decisions")
    )
}

/// Quiet facts: each is zero on a healthy worker, and says nothing by itself about why it is not.
fn facts(cluster: &Cluster, ix: WorkerIx, w: &WorkerState) -> Vec<(&'static str, String)> {
    let unattached = cluster.holdings(ix).unattached;
    let mut facts = Vec::new();
    let mut add = |id, n: u64, one: &str, many: &str| {
        if n > 0 {
            facts.push((id, format::plural(n, one, many)));
        }
    };
    add("fact-unattached", unattached, "block unattached", "blocks unattached");
    add(
        "fact-unknown-removals",
        w.unexplained_removed_total(),
        "removal of an unknown block",
        "removals of unknown blocks",
    );
    add("fact-empty-stores", w.empty_stores_total, "empty store", "empty stores");
    add("fact-recovered", w.recovered_total, "missed event recovered", "missed events recovered");
    add("fact-cleared", w.cleared_total, "time cleared", "times cleared");
    let missed = w.missed_total - w.recovered_total.min(w.missed_total);
    let is_bound = cluster.is_missed_at_least(ix);
    if missed > 0 {
        let missed = format::plural(missed, "event missed", "events missed");
        facts.push(("fact-missed", format::bound(missed, is_bound)));
    }
    facts.extend(tier_facts(cluster, ix, w));
    facts
}

/// What it holds below device memory.
fn tier_facts(cluster: &Cluster, ix: WorkerIx, w: &WorkerState) -> Vec<(&'static str, String)> {
    let changes = |counts: TierCounts| {
        format!("{} stored, {} removed", format::short(counts.stored), format::short(counts.removed))
    };
    let mut facts = Vec::new();
    for (tier, counts) in Tier::ALL.into_iter().zip(w.tiers) {
        let id = match tier {
            Tier::Host => "tier-host",
            Tier::Disk => "tier-disk",
            Tier::External => "tier-external",
        };
        if let Some(held) = cluster.tier_blocks(ix, tier) {
            let held = format::plural(held, "block", "blocks");
            facts.push((id, format!("{}: {held}, {}", tier.label(), changes(counts))));
        }
    }
    if w.other_tier != TierCounts::default() {
        facts.push(("tier-other", format!("shared or unknown tiers: {}", changes(w.other_tier))));
    }
    facts
}
