//! Requests in flight per worker, second by second, the gap between fullest and emptiest, and spikes that moved.

use leptos::prelude::*;
use radixscope_export::panel::in_flight::{self, GAP, StripsChart, TITLE, figure};
use radixscope_icicle::palette::{Palette, label};
use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight::{Episode, Spike};
use radixscope_model::id::{Millis, WorkerIx};

use crate::draw::strips;
use crate::format;
use crate::store::{Store, time_of_day};
use crate::time_range::TimeSpan;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::figure::EmptyPanel;
use crate::view::time_chart::TimeChart;

/// More workers than this are not drawn one by one; the gap counts all of them.
const MAX_STRIPS: usize = 32;

/// Workers that have a strip.
fn drawn(imbalance: &Imbalance) -> impl Iterator<Item = WorkerIx> {
    imbalance.series.workers.iter().map(|(worker, _)| *worker).take(MAX_STRIPS)
}

/// The strips as text.
fn description(shown: &Imbalance) -> String {
    let of_worker = |worker: WorkerIx| {
        let [now, most] = shown.figures(worker).map(figure);
        let spikes = format::plural(shown.spikes_of(worker).count() as u64, "spike", "spikes");
        format!("{}: {now} in flight now, max {most} in the last 5 minutes, {spikes}. ", label(worker))
    };
    let [now, most, p95] = shown.gap_figures().map(figure);
    let workers: String = drawn(shown).map(of_worker).collect();
    format!(
        "{workers}Difference between the most and the least loaded worker: {now} now, max {most}, p95 {p95} in the last 5 minutes"
    )
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
    let workers = Memo::new(move |_| shown.with(|shown| drawn(shown).collect::<Vec<_>>()));
    let limit = move || shown.with(Imbalance::limit_text);
    let chart = move |palette: &Palette| {
        let span = span.get();
        let (now, drawn) = (store.received_ms(), workers.get());
        let chart = shown.with(|imbalance| {
            store.peek(|shown| StripsChart::of(shown, imbalance, |worker| drawn.contains(&worker), span, now))
        });
        Some(strips::option(&chart, palette))
    };
    let description = Memo::new(move |_| shown.with(description));
    let left_out = move || shown.with(|shown| shown.series.workers.len().saturating_sub(MAX_STRIPS));
    view! {
        <section class="spread" aria-labelledby="spread-title" data-testid="spread">
            <h3 id="spread-title">{TITLE} <span class="quiet">" requests in flight per worker, max of each second, last 5 min"</span></h3>
            <Show when=move || known.get() fallback=move || view! { <EmptyPanel text=in_flight::empty(store.peek(|shown| shown.has_no_router()))/> }>
                <p class="caption" data-testid="spread-limit">{move || limit()}</p>
                <div class="strips">
                    <For each=move || workers.get() key=|worker| *worker let:worker><WorkerRow store shown worker/></For>
                    <GapRow shown/>
                    <TimeChart store dark id="spread-chart" description insets=strips::INSETS span option=chart/>
                </div>
                {move || (left_out() > 0).then(|| view! { <p class="caption">{format!("{} more workers are not drawn; the gap counts them", left_out())}</p> })}
                <Episodes shown/>
            </Show>
            <Estimates store shown/>
        </section>
    }
}

/// What stands beside a worker's strip.
#[component]
fn WorkerRow(store: Store, shown: Memo<Imbalance>, worker: WorkerIx) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(|shown| shown.figures(worker)));
    let text = move |at: usize| move || figure(figures.get()[at]);
    view! {
        <div class="strip-row" data-testid="spread-worker">
            <Chip store worker/>
            <span class="strip-figures"><b data-testid="spread-now">{text(0)}</b>" now, max "<b>{text(1)}</b></span>
        </div>
    }
}

#[component]
fn GapRow(shown: Memo<Imbalance>) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(Imbalance::gap_figures));
    let text = move |at: usize| move || figure(figures.get()[at]);
    view! {
        <div class="strip-row" data-testid="spread-gap">
            <span class="quiet">{GAP}</span>
            <span class="strip-figures">
                <b data-testid="gap-now">{text(0)}</b>" now, max "<b data-testid="gap-max">{text(1)}</b>", p95 "<b data-testid="gap-p95">{text(2)}</b>
            </span>
        </div>
    }
}

/// Spikes that moved, the last one first.
#[component]
fn Episodes(shown: Memo<Imbalance>) -> impl IntoView {
    let episodes = Memo::new(move |_| {
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
                let all = episodes.get();
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
