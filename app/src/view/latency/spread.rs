//! Requests in flight per worker, second by second, the gap between fullest and emptiest, and spikes that moved.

use leptos::prelude::*;
use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight::{self, Episode, Spike};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_state::cluster::TimeSteps;

use crate::draw::option::ChartOption;
use crate::draw::palette::{Palette, label};
use crate::draw::strips::{self, Strip};
use crate::format::{self, UNKNOWN};
use crate::store::{Store, time_of_day};
use crate::time_range::TimeSpan;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::figure::prose;
use crate::view::time_chart::TimeChart;

/// More workers than this are not drawn one by one; the gap counts all of them.
const MAX_STRIPS: usize = 32;

/// Workers that have a strip.
fn drawn(shown: &Imbalance) -> impl Iterator<Item = &(WorkerIx, Vec<Option<u32>>)> {
    shown.series.workers.iter().take(MAX_STRIPS)
}

/// A strip for each worker, and one for the gap.
fn option(shown: &Imbalance, chart: Drawn, palette: &Palette) -> ChartOption {
    let limit = shown.limit.map(|limit| limit as f64);
    let of_worker = |(worker, _): &(WorkerIx, Vec<Option<u32>>)| Strip {
        name: format!("{}, requests", label(*worker)),
        colour: palette.worker(worker.slot()),
        values: chart.values(*worker),
        spikes: shown
            .spikes_of(*worker)
            .map(|spike| (Millis(spike.from_s * 1_000), Millis((spike.until_s + 1) * 1_000)))
            .filter(|(from, until)| chart.span.from <= *until && *from <= chart.span.until)
            .collect(),
        limit,
    };
    let gap = Strip {
        name: "max − min, requests".to_owned(),
        colour: palette.shared,
        values: shown.gaps_of(&chart.workers),
        spikes: Vec::new(),
        limit: None,
    };
    let strips: Vec<Strip> = drawn(shown).map(of_worker).chain([gap]).collect();
    let most = strips.iter().flat_map(|strip| strip.values.iter().copied().flatten()).max();
    let most = f64::from(most.unwrap_or(0)).max(limit.unwrap_or(0.0)).max(4.0) * 1.05;
    strips::option(&strips, &chart.times, chart.span, most.ceil(), palette)
}

/// The strips in words.
fn words(shown: &Imbalance) -> String {
    let of_worker = |(worker, _): &(WorkerIx, Vec<Option<u32>>)| {
        let [now, most] = shown.figures(*worker).map(or_unknown);
        let spikes = format::plural(shown.spikes_of(*worker).count() as u64, "spike", "spikes");
        format!("{}: {now} in flight now, max {most} in the last 5 minutes, {spikes}. ", label(*worker))
    };
    let [now, most, p95] = shown.gap_figures().map(or_unknown);
    let workers: String = drawn(shown).map(of_worker).collect();
    format!(
        "{workers}Difference between the most and the least loaded worker: {now} now, max {most}, p95 {p95} in the last 5 minutes"
    )
}

/// What the chart shows: another stretch of time than the figures beside it, perhaps.
struct Drawn {
    times: Vec<Millis>,
    span: TimeSpan,
    workers: Vec<(WorkerIx, Vec<Option<u32>>)>,
}

impl Drawn {
    fn values(&self, worker: WorkerIx) -> Vec<Option<u32>> {
        let of = self.workers.iter().find(|(of, _)| *of == worker);
        of.map(|(_, values)| values.clone()).unwrap_or_default()
    }
}

fn or_unknown(figure: Option<u32>) -> String {
    figure.map_or(UNKNOWN.to_owned(), |n| n.to_string())
}

/// The section.
#[component]
pub(super) fn SpreadSection(
    store: Store,
    dark: Memo<bool>,
    second: Memo<Millis>,
    span: Memo<TimeSpan>,
) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let now = second.get();
        store.pools.track();
        store.peek(|cluster| Imbalance::of(cluster, now))
    });
    let known = Memo::new(move |_| shown.with(|shown| !shown.series.workers.is_empty()));
    let workers =
        Memo::new(move |_| shown.with(|shown| drawn(shown).map(|(worker, _)| *worker).collect::<Vec<_>>()));
    let limit = move || shown.with(Imbalance::limit_text);
    let chart = move |palette: &Palette| {
        let span = span.get();
        let over_time = store.peek(|cluster| {
            let steps = TimeSteps::between(span.from, span.until, store.received_ms());
            Drawn { times: steps.begins().collect(), span, workers: in_flight::per_worker(cluster, steps) }
        });
        shown.with(|shown| Some(option(shown, over_time, palette)))
    };
    let words = Memo::new(move |_| shown.with(words));
    let left_out = move || shown.with(|shown| shown.series.workers.len().saturating_sub(MAX_STRIPS));
    view! {
        <section class="spread" aria-labelledby="spread-title" data-testid="spread">
            <h3 id="spread-title">"In-flight imbalance" <span class="quiet">" requests in flight per worker, max of each second, last 5 min"</span></h3>
            <Show when=move || known.get() fallback=move || view! { <Absent/> }>
                <p class="caption" data-testid="spread-limit">{move || limit()}</p>
                <div class="strips">
                    <For each=move || workers.get() key=|worker| *worker let:worker><WorkerRow store shown worker/></For>
                    <GapRow shown/>
                    <TimeChart store dark id="spread-chart" words insets=strips::INSETS span option=chart/>
                </div>
                {move || (left_out() > 0).then(|| view! { <p class="caption">{format!("{} more workers are not drawn; the gap counts them", left_out())}</p> })}
                <Episodes shown/>
            </Show>
            <Estimates store shown/>
        </section>
    }
}

/// Where nothing tells requests' beginnings and ends.
#[component]
fn Absent() -> impl IntoView {
    view! {
        <div class="empty" data-testid="spread-absent">
            <p class="empty-head">"Not reported: when requests begin and end on a worker"</p>
            {prose(
                "Known from `active_sequences_events` (routers with `--router-replica-sync`), or from a frontend's log: `--logs FILE` \
                 (Dynamo ≥ 1.5)"
            )}
        </div>
    }
}

/// What stands beside a worker's strip.
#[component]
fn WorkerRow(store: Store, shown: Memo<Imbalance>, worker: WorkerIx) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(|shown| shown.figures(worker)));
    let figure = move |at: usize| move || or_unknown(figures.get()[at]);
    view! {
        <div class="strip-row" data-testid="spread-worker">
            <Chip store worker/>
            <span class="strip-figures"><b data-testid="spread-now">{figure(0)}</b>" now, max "<b>{figure(1)}</b></span>
        </div>
    }
}

#[component]
fn GapRow(shown: Memo<Imbalance>) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(Imbalance::gap_figures));
    let figure = move |at: usize| move || or_unknown(figures.get()[at]);
    view! {
        <div class="strip-row" data-testid="spread-gap">
            <span class="quiet">"max − min"</span>
            <span class="strip-figures">
                <b data-testid="gap-now">{figure(0)}</b>" now, max "<b data-testid="gap-max">{figure(1)}</b>", p95 "<b data-testid="gap-p95">{figure(2)}</b>
            </span>
        </div>
    }
}

/// Spikes that moved, the last one first.
#[component]
fn Episodes(shown: Memo<Imbalance>) -> impl IntoView {
    let words = Memo::new(move |_| {
        let one = |episode: &Episode| {
            let part = |spike: &Spike| {
                let at = time_of_day(Millis(spike.from_s * 1000));
                format!("{at} {} (up to {})", label(spike.worker), spike.peak)
            };
            episode.spikes.iter().map(part).collect::<Vec<_>>().join(" → ")
        };
        shown.with(|shown| shown.episodes.iter().rev().map(one).collect::<Vec<_>>())
    });
    let single = Memo::new(move |_| shown.with(|shown| shown.spikes.len()));
    view! {
        <div class="episodes" data-testid="episodes">
            <h4>"Spikes that moved from worker to worker"</h4>
            {move || {
                let all = words.get();
                if all.is_empty() {
                    let n = single.get() as u64;
                    let spikes = format::plural(n, "spike stayed", "spikes stayed");
                    let text = if n == 0 { "None in the last 5 minutes, and no spike at all".to_owned() } else { format!("None in the last 5 minutes; {spikes} where it was") };
                    view! { <p class="quiet">{text}</p> }
                } else {
                    view! { <ol>{all.into_iter().map(|text| view! { <li>"▲ " {text}</li> }).collect_view()}</ol> }
                }
            }}
        </div>
    }
}

/// What is known of workers without counted requests.
#[component]
fn Estimates(store: Store, shown: Memo<Imbalance>) -> impl IntoView {
    let known = Memo::new(move |_| {
        shown.with(|shown| {
            shown.estimates.iter().filter(|(_, blocks)| blocks.is_some()).copied().collect::<Vec<_>>()
        })
    });
    move || {
        let all = known.get();
        (!all.is_empty()).then(|| {
            let one = |(worker, blocks): (WorkerIx, Option<u64>)| view! { <span><Chip store worker/> " " {blocks.map(format::count)}</span> };
            view! {
                <p class="caption estimates" data-testid="spread-estimates">"Active decode blocks now, as a router estimates them: " {all.into_iter().map(one).collect_view()}</p>
            }
        })
    }
}
