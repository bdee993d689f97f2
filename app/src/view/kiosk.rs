//! The kiosk: what a screen on a wall says to those who stand before it. Nothing in it can be clicked or takes the focus;
//! the style sheet sizes everything by the screen.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_export::Wanted;
use radixscope_export::finding_ticket::severity_word;
use radixscope_insight::in_flight::batch_limit;
use radixscope_insight::latency::{self, MIN_SAMPLES, Quantity, Times, WINDOW_MS};
use radixscope_insight::random_worker::random_worker;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format;
use radixscope_model::range::Standing;
use radixscope_state::cluster::DecisionEntry;

use super::chip::Chip;
use super::decisions::rate;
use super::figure::severity_mark;
use super::latency::{Goal, TPOT, TTFT};
use super::status::{Connection, Mark};
use super::tree::KioskTree;
use crate::draw::palette::label;
use crate::format::{self, UNKNOWN};
use crate::store::{Feed, Shown, Store, time_of_day};

/// How long a reason stays: it has to be read from afar. A highlight stays twice as long.
const TURN: Duration = Duration::from_secs(5);

/// The whole page.
#[component]
pub(super) fn Kiosk(store: Store, dark: Signal<bool>) -> impl IntoView {
    let second = store.second();
    let turn = RwSignal::new(0_usize);
    if let Ok(turning) = set_interval_with_handle(move || turn.update(|n| *n += 1), TURN) {
        on_cleanup(move || turning.clear());
    }
    let name = Memo::new(move |_| store.on_beat(pool_words));
    let hit_rate = Memo::new(move |_| {
        let now = second.get();
        store.peek(|shown| {
            let sums = shown.recent_sums(now, WINDOW_MS);
            (rate(&sums), format!("last 60 s, {}", format::plural(sums.count, "decision", "decisions")))
        })
    });
    let in_flight = Memo::new(move |_| store.on_beat(in_flight_words));
    let note = move |feed: Feed, words: String| match store.as_of(feed) {
        Some(at) => format!("as of {}", time_of_day(at)),
        None => words,
    };
    view! {
        <div class="kiosk" data-testid="kiosk">
            <header class="kiosk-head">
                <Mark/>
                <p class="kiosk-name" data-testid="kiosk-name">{move || name.get()}</p>
                <Connection store/>
            </header>
            <dl class="kiosk-figures">
                <Latency store second goal=Goal::of(store, TTFT) quantity=Quantity::Ttft id="kiosk-ttft" title="TTFT p95"/>
                <Latency store second goal=Goal::of(store, TPOT) quantity=Quantity::Tpot id="kiosk-itl" title="ITL p95"/>
                <div>
                    <dt>"KV hit rate"</dt>
                    <dd data-testid="kiosk-hit-rate">{move || hit_rate.get().0}</dd>
                    <dd class="kiosk-note">{move || note(Feed::Events, hit_rate.get().1)}</dd>
                </div>
                <div>
                    <dt>"Requests in flight"</dt>
                    <dd data-testid="kiosk-in-flight">{move || in_flight.get().0}</dd>
                    <dd class="kiosk-note">{move || note(Feed::Events, in_flight.get().1)}</dd>
                </div>
            </dl>
            <KioskTree store dark/>
            <div class="kiosk-words"><Reason store turn/><Highlight store turn/></div>
        </div>
    }
}

/// A percentile and how it stands to its target, in words and with a mark.
#[component]
fn Latency(
    store: Store,
    second: Memo<Millis>,
    goal: Goal,
    quantity: Quantity,
    id: &'static str,
    title: &'static str,
) -> impl IntoView {
    let times = Memo::new(move |_| {
        let now = second.get();
        store.peek(|shown| latency::figure(shown, quantity, now))
    });
    let old = move || store.as_of(Feed::Metrics);
    let standing = move || {
        let of =
            |times: &Option<Times>| times.as_ref().map_or(Standing::Unknown, |t| t.standing(goal.ms.get()));
        if old().is_some() { Standing::Unknown } else { times.with(of) }
    };
    let value = move || times.with(|times| p95_words(times.as_ref(), quantity));
    let note = move || match old() {
        Some(at) => format!("as of {}", time_of_day(at)),
        None => {
            times.with(|times| standing_words(times.as_ref(), standing(), &quantity.words(goal.ms.get())))
        }
    };
    view! {
        <div class=move || standing().as_str()>
            <dt>{title}</dt>
            <dd data-testid=id>{value}</dd>
            <dd class="kiosk-note" data-testid=format!("{id}-note")>{note}</dd>
        </div>
    }
}

fn p95_words(times: Option<&Times>, quantity: Quantity) -> String {
    let p95 = times.and_then(|times| times.quantiles).map(|[_, p95, _]| p95);
    p95.map_or(UNKNOWN.to_owned(), |p95| quantity.range_words(&p95))
}

fn standing_words(times: Option<&Times>, standing: Standing, target: &str) -> String {
    let Some(times) = times else { return "no data: no frontend's metrics or log".to_owned() };
    match standing {
        Standing::Within => format!("✓ within target {target}"),
        Standing::Above => format!("◆ above target {target}"),
        Standing::Unknown if times.samples < MIN_SAMPLES => {
            format!("{} of at least {MIN_SAMPLES} samples", times.samples)
        }
        Standing::Unknown => format!("target {target} lies within"),
    }
}

/// The pool that is shown and its model; of several how many there are.
fn pool_words(shown: &Shown<'_>) -> String {
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
fn loads<'a>(shown: &Shown<'a>) -> impl Iterator<Item = (WorkerIx, u32)> + use<'a> {
    let cluster = shown.cluster;
    let here = shown.worker_list().filter_map(move |ix| Some((ix, cluster.worker(ix)?)));
    here.filter(|(_, state)| state.gone.is_none())
        .filter_map(|(ix, state)| Some((ix, state.in_flight.now()?)))
}

fn in_flight_words(shown: &Shown<'_>) -> (String, String) {
    let (sum, workers) =
        loads(shown).fold((0, 0), |(sum, n), (_, requests)| (sum + u64::from(requests), n + 1));
    match workers {
        0 => (UNKNOWN.to_owned(), "no data: no source reports when requests end".to_owned()),
        n => (format::count(sum), format!("on {}", format::plural(n, "worker", "workers"))),
    }
}

/// Why the latest decision went where it went; it stays for a turn.
#[component]
fn Reason(store: Store, turn: RwSignal<usize>) -> impl IntoView {
    let latest = Memo::new(move |before: Option<&(usize, Option<(WorkerIx, String, String)>)>| {
        let turn = turn.get();
        let found = store.on_beat(|shown| {
            let mut newest = shown.decisions().newest_first().filter(|decided| decided.pool == shown.pool);
            newest.next().map(reason)
        });
        match before {
            Some((at, Some(before))) if *at == turn => (turn, Some(before.clone())),
            _ => (turn, found),
        }
    });
    view! {
        <section class="kiosk-card kiosk-reason">
            {move || match latest.get().1 {
                Some((worker, why, at)) => view! {
                    <h2>"Latest decision: "<Chip store worker/></h2>
                    <p data-testid="kiosk-why">{why}</p>
                    <p class="kiosk-note">{at}</p>
                }.into_any(),
                None => view! {
                    <h2>"Latest decision"</h2>
                    <p data-testid="kiosk-no-decision">{move || store.on_beat(|shown| shown.decisions_hint()).map_or("No decision received yet".to_owned(), |hint| hint.to_string())}</p>
                }.into_any(),
            }}
        </section>
    }
}

fn reason(decided: &DecisionEntry) -> (WorkerIx, String, String) {
    let prompt = decided
        .decision
        .isl_blocks
        .map(|isl| format!(", a prompt of {}", format::plural(isl, "block", "blocks")));
    let at = format!("at {}{}", time_of_day(decided.decided_ms()), prompt.unwrap_or_default());
    (decided.decision.worker, decided.why(label), at)
}

/// Something worth knowing; the next every second turn.
#[component]
fn Highlight(store: Store, turn: RwSignal<usize>) -> impl IntoView {
    let at = Memo::new(move |_| turn.get() / 2);
    let shown = Memo::new(move |_| {
        let at = at.get();
        // What is told is told as of its turn, and none while nothing is known to be current.
        let is_current = !store.is_lost() && store.ready();
        let mut all =
            if is_current { store.peek(|shown| highlights(shown, store.received_ms())) } else { Vec::new() };
        let (n, of) = (at % all.len().max(1), all.len());
        (n < of).then(|| (all.swap_remove(n), n + 1, of))
    });
    move || {
        shown.get().map(|((title, text), n, of)| {
            view! {
                // Two names for one movement: it begins anew only with another one.
                <section class="kiosk-card kiosk-highlight" class:even={n % 2 == 0} data-testid="kiosk-highlight">
                    <h2>{title}" "<span class="kiosk-note">{format!("{n} of {of}")}</span></h2>
                    <p>{text}</p>
                </section>
            }
        })
    }
}

/// What is known and worth saying, each with its title. Nothing unknown is said.
fn highlights(shown: &Shown<'_>, now: Millis) -> Vec<(String, String)> {
    let all = [
        finding(shown),
        against_round_robin(shown, now),
        busiest(shown),
        fullest(shown),
        throughput(shown, now),
        shared(shown),
    ];
    all.into_iter().flatten().collect()
}

fn finding(shown: &Shown<'_>) -> Option<(String, String)> {
    let checked = shown.checked().len() as u64;
    match Wanted::default().of(shown).first() {
        Some(worst) => {
            let title = format!("{} {}", severity_mark(worst.severity), severity_word(worst.severity));
            Some((title, worst.title.to_string()))
        }
        None if checked > 0 => Some((
            "✓ No findings".to_owned(),
            format!("{} checked", format::plural(checked, "rule", "rules")),
        )),
        None => None,
    }
}

fn against_round_robin(shown: &Shown<'_>, now: Millis) -> Option<(String, String)> {
    let both = random_worker(shown, now, WINDOW_MS, |pool| pool == shown.pool)?;
    let text = format!(
        "{} of prompt blocks were cached on the chosen worker. Round-robin would have found {} in the same caches. Last 60 s, {}.",
        format::percent(both.chosen_hit_rate()),
        format::percent(both.hit_rate()),
        format::plural(both.decisions, "decision", "decisions"),
    );
    Some(("KV hit rate against round-robin".to_owned(), text))
}

fn busiest(shown: &Shown<'_>) -> Option<(String, String)> {
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
    Some(("Busiest and idlest worker".to_owned(), text))
}

fn fullest(shown: &Shown<'_>) -> Option<(String, String)> {
    let of = |worker: WorkerIx| {
        let capacity = shown.capacity(worker).filter(|capacity| capacity.value > 0)?.value;
        let held = shown.blocks(worker).filter(|_| shown.worker(worker).is_some_and(|w| w.gone.is_none()))?;
        Some((worker, held, capacity))
    };
    let share = |held: u64, capacity: u64| held as f64 / capacity as f64;
    let by_share =
        |a: &(WorkerIx, u64, u64), b: &(WorkerIx, u64, u64)| share(a.1, a.2).total_cmp(&share(b.1, b.2));
    let (worker, held, capacity) = shown.worker_list().filter_map(of).max_by(by_share)?;
    let (worker, share) = (label(worker), format::percent(share(held, capacity)));
    let text =
        format!("{worker} holds {} of {} KV blocks: {share}.", format::count(held), format::count(capacity));
    Some(("Fullest worker".to_owned(), text))
}

fn throughput(shown: &Shown<'_>, now: Millis) -> Option<(String, String)> {
    let all = latency::counts(shown, now).throughput?;
    let tokens = all.output_tokens_per_s.map(|n| format!(", {} output tokens/s", number_format::digits(n)));
    let requests = number_format::digits(all.requests_per_s);
    Some((
        "Throughput".to_owned(),
        format!("{requests} requests/s{}, last 60 s.", tokens.unwrap_or_default()),
    ))
}

fn shared(shown: &Shown<'_>) -> Option<(String, String)> {
    let totals = shown.tree().totals();
    if totals.nodes == 0 || shown.trust().withheld().is_some() {
        return None;
    }
    let share = format::percent(totals.shared as f64 / totals.nodes as f64);
    let text = format!(
        "{share} of {} distinct blocks are held by two workers or more.",
        format::count(totals.nodes)
    );
    Some(("Shared prefixes".to_owned(), text))
}
