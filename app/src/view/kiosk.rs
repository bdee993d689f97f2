//! The kiosk: what a screen on a wall says to those who stand before it. Nothing in it can be clicked or takes the focus;
//! the style sheet sizes everything by the screen.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_export::FindingFilter;
use radixscope_export::Summary;
use radixscope_export::finding_ticket::severity_word;
use radixscope_export::panel::decisions::NO_DECISION;
use radixscope_icicle::palette::label;
use radixscope_insight::in_flight::batch_limit;
use radixscope_insight::latency;
use radixscope_insight::round_robin::RoundRobin;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format;
use radixscope_state::cluster::DecisionEntry;

use super::chip::Chip;
use super::figure::severity_mark;
use super::status::{Connection, Mark};
use super::summary::{TILES, Tile, tiles};
use super::tree::KioskTree;
use crate::format;
use crate::store::{Feed, Store, ViewContext, time_of_day};
use crate::view::control::view;

/// How long a reason stays: it has to be read from afar. A highlight stays twice as long.
const TURN: Duration = Duration::from_secs(5);

/// So many turns a pool stays, where there are several: a reason of it and the next.
const TURNS_PER_POOL: usize = 2;

/// The overview's figures by their place there, as far as there is room for them.
const FIGURES: [(usize, &str); 4] =
    [(0, "kiosk-ttft"), (1, "kiosk-itl"), (2, "kiosk-hit-rate"), (4, "kiosk-in-flight")];

/// The whole page.
#[component]
pub fn Kiosk(store: Store, dark: Memo<bool>) -> impl IntoView {
    let turn = RwSignal::new(0_usize);
    if let Ok(turning) = set_interval_with_handle(move || turn.update(|n| *n += 1), TURN) {
        on_cleanup(move || turning.clear());
    }
    turn_pools(store, turn);
    let name = Memo::new(move |_| store.on_beat(pool_label));
    let as_of = move || store.as_of(Feed::Any).or_else(|| store.as_of(Feed::Events));
    let tiles = tiles(store);
    let figure = move |(at, id): (usize, &'static str)| {
        let of = move |part: fn(&Tile) -> &String| move || tiles.with(|all| part(&all[at]).clone());
        view! {
            <div class=move || tiles.with(|all| all[at].state)>
                <dt>{TILES[at].1}</dt>
                <dd data-testid=id>{of(|tile| &tile.value)}</dd>
                <dd class="kiosk-note">{of(|tile| &tile.status_text)}<span>{of(|tile| &tile.more)}</span></dd>
            </div>
        }
    };
    view! {
        <div class="kiosk" data-testid="kiosk">
            <header class="kiosk-head">
                <Mark/>
                <p class="kiosk-name" data-testid="kiosk-name">{move || name.get()}</p>
                {move || as_of().map(|at| view! { <p class="as-of" data-testid="as-of">"as of "{time_of_day(at)}</p> })}
                <Connection store/>
            </header>
            <dl class="kiosk-figures">{FIGURES.map(figure).collect_view()}</dl>
            <KioskTree store dark/>
            <div class="kiosk-words"><Reason store turn/><Highlight store turn/></div>
        </div>
    }
}

/// Where several pools are shown, the tree and the latest decision are of one after the other.
fn turn_pools(store: Store, turn: RwSignal<usize>) {
    Effect::new(move |_| {
        let at = turn.get() / TURNS_PER_POOL;
        let pools = store.peek(|shown| {
            let mut pools = shown.pool_list();
            pools.retain(|&pool| shown.cluster.tree(pool).totals().nodes > 0);
            pools
        });
        store.turned_to.set(pools.get(at % pools.len().max(1)).copied());
    });
    on_cleanup(move || store.turned_to.set(None));
}

/// The pool that is shown and its model; of several how many there are.
fn pool_label(shown: &ViewContext<'_>) -> String {
    let pools = shown.pool_list().len();
    if pools > 1 && shown.only.is_none() {
        return format!(
            "{pools} pools, {}",
            format::plural(shown.workers().len() as u64, "worker", "workers")
        );
    }
    let name = shown.cluster.pool(shown.pool).map(|pool| pool.name());
    let models = Some(shown.models_in(shown.pool).join(", ")).filter(|models| !models.is_empty());
    [name, models].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Workers shown that did not leave, with their requests in flight.
fn loads<'a>(shown: &ViewContext<'a>) -> impl Iterator<Item = (WorkerIx, u32)> + use<'a> {
    let cluster = shown.cluster;
    let here = shown.worker_list().filter_map(move |ix| Some((ix, cluster.worker(ix)?)));
    here.filter(|(_, state)| state.departure.is_none())
        .filter_map(|(ix, state)| Some((ix, state.in_flight.now()?)))
}

/// The texts of a decision.
#[derive(Clone, PartialEq)]
struct DecisionText {
    worker: WorkerIx,
    why: String,
    /// What round-robin would have done, where that is known.
    instead: Option<String>,
    at: String,
}

impl DecisionText {
    fn of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Self {
        let blocks = |isl| format!(", a prompt of {}", format::plural(isl, "block", "blocks"));
        let prompt = decided.decision.isl_blocks.map_or(String::new(), blocks);
        Self {
            worker: decided.decision.worker,
            why: decided.why(label),
            instead: RoundRobin::of(shown.cluster, decided).ok().map(|found| found.sentence(label)),
            at: format!("at {}{prompt}", time_of_day(decided.decided_ms())),
        }
    }
}

/// Why the latest decision went where it went; it stays for a turn.
#[component]
fn Reason(store: Store, turn: RwSignal<usize>) -> impl IntoView {
    let latest = Memo::new(move |before: Option<&(usize, Option<DecisionText>)>| {
        let turn = turn.get();
        let is_due = before.is_none_or(|(at, status_text)| *at != turn || status_text.is_none());
        // Without one it is looked for with every beat.
        let found = store.on_beat(|shown| {
            let mut newest = shown.decisions().newest_first().filter(|decided| decided.pool == shown.pool);
            newest.next().filter(|_| is_due).map(|decided| DecisionText::of(shown, decided))
        });
        (turn, if is_due { found } else { before.and_then(|(_, status_text)| status_text.clone()) })
    });
    let hint = move || {
        let hint = store.on_beat(|shown| shown.decisions_hint());
        hint.map_or(NO_DECISION.to_owned(), |hint| hint.to_string())
    };
    view! {
        <section class="kiosk-card kiosk-reason">
            {move || match latest.get().1 {
                Some(status_text) => view! {
                    <h2>"Latest decision: "<Chip store worker=status_text.worker/></h2>
                    <p data-testid="kiosk-why">{status_text.why}</p>
                    {status_text.instead.map(|instead| view! { <p data-testid="kiosk-instead">{instead}</p> })}
                    <p class="kiosk-note">{status_text.at}</p>
                },
                None => view! { <h2>"Latest decision"</h2><p data-testid="kiosk-no-decision">{move || hint()}</p> },
            }}
        </section>
    }
}

/// Something worth knowing; the next every second turn.
#[component]
fn Highlight(store: Store, turn: RwSignal<usize>) -> impl IntoView {
    let at = Memo::new(move |_| turn.get() / 2);
    let shown = Memo::new(move |_| {
        let at = at.get();
        // Each figure is as of its turn; none is shown while nothing is known to be current.
        let is_current = !store.is_lost() && store.ready();
        let mut all =
            if is_current { store.peek(|shown| highlights(shown, store.received_ms())) } else { Vec::new() };
        let (n, of) = (at % all.len().max(1), all.len());
        (n < of).then(|| (all.swap_remove(n), n + 1, of))
    });
    move || {
        shown.get().map(|((title, text), n, of)| {
            view! {
                // Two names for one movement: it begins again only with another one.
                <section class="kiosk-card kiosk-highlight" class:even={n % 2 == 0} data-testid="kiosk-highlight">
                    <h2>{title}" "<span class="kiosk-note">{format!("{n} of {of}")}</span></h2>
                    <p>{text}</p>
                </section>
            }
        })
    }
}

/// What is known and worth showing, each with its title.
fn highlights(shown: &ViewContext<'_>, now: Millis) -> Vec<(String, String)> {
    let all = [finding(shown), busiest(shown), fullest(shown), throughput(shown, now), shared(shown)];
    all.into_iter().flatten().collect()
}

fn finding(shown: &ViewContext<'_>) -> Option<(String, String)> {
    if let Some(worst) = FindingFilter::default().of(shown).first() {
        let title = format!("{} {}", severity_mark(worst.severity), severity_word(worst.severity));
        return Some((title, worst.title.to_string()));
    }
    if shown.checked().is_empty() {
        return None;
    }
    // Without a check mark: a figure above its target may stand beside it.
    Some(("No findings".to_owned(), format!("{}.", Summary::of(shown).coverage())))
}

fn busiest(shown: &ViewContext<'_>) -> Option<(String, String)> {
    let (most, least) = (loads(shown).max_by_key(|load| load.1)?, loads(shown).min_by_key(|load| load.1)?);
    if most.0 == least.0 {
        return None;
    }
    let limit =
        batch_limit(shown).map_or(String::new(), |limit| format!(", batch limit {}", format::count(limit)));
    let text = format!(
        "{} requests in flight on {}, {} on {}{limit}.",
        most.1,
        label(most.0),
        least.1,
        label(least.0)
    );
    Some(("Most and least loaded worker".to_owned(), text))
}

fn fullest(shown: &ViewContext<'_>) -> Option<(String, String)> {
    let of = |worker: WorkerIx| {
        let capacity = shown.capacity(worker).filter(|capacity| capacity.value > 0)?.value;
        let held =
            shown.blocks(worker).filter(|_| shown.worker(worker).is_some_and(|w| w.departure.is_none()))?;
        Some((worker, held, capacity))
    };
    let share = |held: u64, capacity: u64| held as f64 / capacity as f64;
    let by_share =
        |a: &(WorkerIx, u64, u64), b: &(WorkerIx, u64, u64)| share(a.1, a.2).total_cmp(&share(b.1, b.2));
    let (worker, held, capacity) = shown.worker_list().filter_map(of).max_by(by_share)?;
    let (worker, share) = (label(worker), format::percent(share(held, capacity)));
    let text = format!(
        "{} of {} KV blocks are cached on {worker}: {share}.",
        format::count(held),
        format::count(capacity)
    );
    Some(("Highest KV occupancy".to_owned(), text))
}

fn throughput(shown: &ViewContext<'_>, now: Millis) -> Option<(String, String)> {
    let all = latency::counts(shown, now).throughput?;
    let tokens = all.output_tokens_per_s.map(|n| format!(", {} output tokens/s", number_format::digits(n)));
    let requests = number_format::digits(all.requests_per_s);
    Some((
        "Throughput".to_owned(),
        format!("{requests} requests/s{}, last 60 s.", tokens.unwrap_or_default()),
    ))
}

fn shared(shown: &ViewContext<'_>) -> Option<(String, String)> {
    let totals = shown.tree().totals();
    if totals.nodes == 0 || shown.trust().withheld().is_some() {
        return None;
    }
    let share = format::percent(totals.shared as f64 / totals.nodes as f64);
    let text = format!(
        "{share} of {} distinct blocks are cached on two workers or more.",
        format::count(totals.nodes)
    );
    Some(("Shared prefixes".to_owned(), text))
}
