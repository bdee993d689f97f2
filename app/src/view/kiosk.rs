//! The kiosk: what a screen on a wall says to those who stand before it. Nothing in it can be clicked or takes the focus;
//! the style sheet sizes everything by the screen.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_export::FindingFilter;
use radixscope_export::Summary;
use radixscope_export::finding_ticket::severity_word;
use radixscope_export::panel::decisions::NO_DECISION;
use radixscope_icicle::palette::label;
use radixscope_insight::latency;
use radixscope_insight::round_robin::RoundRobin;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format;
use radixscope_state::cluster::DecisionEntry;

use super::chip::{Chip, with_labels};
use super::figure::severity_mark;
use super::status::{Connection, Mark};
use super::summary::{TILES, Tile, tiles, to_come};
use super::tree::KioskTree;
use crate::format::{self, UNKNOWN};
use crate::store::{Feed, Store, ViewContext, time_of_day};
use crate::view::control::view;

/// How long a reason stays: it has to be read from afar.
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
            <div class="kiosk-words"><Worst store tiles/><Reason store turn/><Now store/></div>
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

/// The worst finding; where there is none, how much was checked.
#[component]
fn Worst(store: Store, tiles: Memo<[Tile; 5]>) -> impl IntoView {
    let shown = Memo::new(move |_| tiles.with(|tiles| store.on_beat(|shown| worst(shown, tiles))));
    let class = move || format!("kiosk-card kiosk-worst {}", shown.with(|shown| shown.class));
    view! {
        <section class=class data-testid="kiosk-worst">
            <h2>{move || shown.with(|shown| shown.head.clone())}" "<span class="kiosk-note">{move || shown.with(|shown| shown.more.clone())}</span></h2>
            <p>{move || shown.with(|shown| shown.text.clone())}</p>
        </section>
    }
}

#[derive(Clone, PartialEq)]
struct WorstText {
    class: &'static str,
    head: String,
    more: String,
    text: String,
}

fn worst(shown: &ViewContext<'_>, tiles: &[Tile]) -> WorstText {
    let found = FindingFilter::default().of(shown);
    if let Some(worst) = found.first() {
        return WorstText {
            class: worst.severity.as_str(),
            head: format!("{} {}", severity_mark(worst.severity), severity_word(worst.severity)),
            more: if found.len() > 1 { format!("1 of {} findings", found.len()) } else { String::new() },
            text: with_labels(shown, worst, &worst.title),
        };
    }
    let summary = Summary::of(shown);
    let (class, head, text) = match to_come(&summary, shown.now_ms(), tiles) {
        Some(text) => ("warning", "◆ No finding yet", text),
        None if summary.rules == 0 => ("", "Findings", "Nothing was checked yet".to_owned()),
        None => ("", "Findings", "No findings".to_owned()),
    };
    WorstText { class, head: head.to_owned(), more: summary.coverage(), text }
}

/// Figures of the present: for tests, what is looked up.
type KioskFigure = (&'static str, fn(&ViewContext<'_>, Millis) -> FigureText);

const NOW: [KioskFigure; 3] =
    [("kiosk-fullest", fullest), ("kiosk-throughput", throughput), ("kiosk-shared", shared)];

/// A figure and what it is of.
#[derive(Clone, PartialEq)]
struct FigureText {
    value: String,
    of: String,
}

impl FigureText {
    fn unknown(of: &str) -> Self {
        Self { value: UNKNOWN.to_owned(), of: of.to_owned() }
    }
}

/// What the cluster holds and does, beside what requests see.
#[component]
fn Now(store: Store) -> impl IntoView {
    let figure = move |(id, look): KioskFigure| {
        let shown = Memo::new(move |_| store.on_beat(|shown| look(shown, store.received_ms())));
        view! {
            <div>
                <dt>{move || shown.with(|figure| figure.of.clone())}</dt>
                <dd data-testid=id>{move || shown.with(|figure| figure.value.clone())}</dd>
            </div>
        }
    };
    view! { <dl class="kiosk-card kiosk-now">{NOW.map(figure)}</dl> }
}

fn fullest(shown: &ViewContext<'_>, _: Millis) -> FigureText {
    let of = |worker: WorkerIx| {
        let capacity = shown.capacity(worker).filter(|capacity| capacity.value > 0)?.value;
        let held =
            shown.blocks(worker).filter(|_| shown.worker(worker).is_some_and(|w| w.departure.is_none()))?;
        Some((worker, held as f64 / capacity as f64))
    };
    let fullest = shown.worker_list().filter_map(of).max_by(|a, b| a.1.total_cmp(&b.1));
    match fullest {
        Some((worker, share)) => FigureText {
            value: format::percent(share),
            of: format!("of {}'s KV blocks are cached: the fullest worker", label(worker)),
        },
        None => FigureText::unknown("of the fullest worker's KV blocks are cached"),
    }
}

fn throughput(shown: &ViewContext<'_>, now: Millis) -> FigureText {
    let Some(all) = latency::counts(shown, now).throughput else {
        return FigureText::unknown("requests/s, last 60 s");
    };
    let tokens = all.output_tokens_per_s.map(|n| format!(", {} output tokens/s", number_format::digits(n)));
    FigureText {
        value: number_format::digits(all.requests_per_s).to_string(),
        of: format!("requests/s{}, last 60 s", tokens.unwrap_or_default()),
    }
}

fn shared(shown: &ViewContext<'_>, _: Millis) -> FigureText {
    const OF: &str = "of distinct blocks cached on two workers or more";
    let totals = shown.tree().totals();
    if totals.nodes == 0 || shown.trust().withheld().is_some() {
        return FigureText::unknown(OF);
    }
    FigureText { value: format::percent(totals.shared as f64 / totals.nodes as f64), of: OF.to_owned() }
}
