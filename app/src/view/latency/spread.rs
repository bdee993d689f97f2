//! Requests in flight per worker, second by second, the gap between fullest and emptiest, and spikes that moved.

use leptos::prelude::*;
use radixscope_export::panel::in_flight::{self, GAP, StripsChart, TITLE};
use radixscope_icicle::palette::Palette;
use radixscope_insight::imbalance::Imbalance;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_panels::latency::Spread;

use crate::draw::strips;
use crate::store::{Store, zone};
use crate::time_range::TimeSpan;
use crate::view::chip::Chip;
use crate::view::control::view;
use crate::view::figure::EmptyPanel;
use crate::view::time_chart::TimeChart;

/// The section.
#[component]
pub(super) fn SpreadSection(
    store: Store,
    dark: Memo<bool>,
    second: Memo<Millis>,
    span: Memo<TimeSpan>,
) -> impl IntoView {
    let imbalance = Memo::new(move |_| {
        let now = second.get();
        store.pools.track();
        store.peek(|cluster| Imbalance::of(cluster, now))
    });
    let shown = Memo::new(move |_| imbalance.with(|imbalance| Spread::of(imbalance, zone())));
    let workers = Memo::new(move |_| {
        shown.with(|shown| shown.workers.iter().map(|(worker, _)| *worker).collect::<Vec<_>>())
    });
    let known = Memo::new(move |_| workers.with(|workers| !workers.is_empty()));
    let text = move |of: fn(&Spread) -> &String| Memo::new(move |_| shown.with(|shown| of(shown).clone()));
    let chart = move |palette: &Palette| {
        let span = span.get();
        let (now, drawn) = (store.received_ms(), workers.get());
        let chart = imbalance.with(|imbalance| {
            store.peek(|shown| StripsChart::of(shown, imbalance, |worker| drawn.contains(&worker), span, now))
        });
        Some(strips::option(&chart, palette))
    };
    let description = text(|shown| &shown.description);
    let left_out = Memo::new(move |_| shown.with(|shown| shown.left_out.clone()));
    view! {
        <section class="spread" aria-labelledby="spread-title" data-testid="spread">
            <h3 id="spread-title">{TITLE} <span class="quiet">" requests in flight per worker, max of each second, last 5 min"</span></h3>
            <Show when=move || known.get() fallback=move || view! { <EmptyPanel text=in_flight::empty(store.peek(|shown| shown.has_no_router()))/> }>
                <p class="caption" data-testid="spread-limit">{text(|shown| &shown.limit)}</p>
                <div class="strips">
                    <For each=move || workers.get() key=|worker| *worker let:worker><WorkerRow store shown worker/></For>
                    <GapRow shown/>
                    <TimeChart store dark id="spread-chart" description insets=strips::INSETS span option=chart/>
                </div>
                {move || left_out.get().map(|text| view! { <p class="caption">{text}</p> })}
                <Episodes shown/>
            </Show>
            <Estimates store shown/>
        </section>
    }
}

/// What stands beside a worker's strip.
#[component]
fn WorkerRow(store: Store, shown: Memo<Spread>, worker: WorkerIx) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(|shown| shown.figures(worker)));
    let text = move |at: usize| move || figures.with(|figures| figures[at].clone());
    view! {
        <div class="strip-row" data-testid="spread-worker">
            <Chip store worker/>
            <span class="strip-figures"><b data-testid="spread-now">{text(0)}</b>" now, max "<b>{text(1)}</b></span>
        </div>
    }
}

#[component]
fn GapRow(shown: Memo<Spread>) -> impl IntoView {
    let figures = Memo::new(move |_| shown.with(|shown| shown.gap.clone()));
    let text = move |at: usize| move || figures.with(|figures| figures[at].clone());
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
fn Episodes(shown: Memo<Spread>) -> impl IntoView {
    let episodes = Memo::new(move |_| shown.with(|shown| (shown.episodes.clone(), shown.no_episode.clone())));
    view! {
        <div class="episodes" data-testid="episodes">
            <h4>"Spikes that moved from worker to worker"</h4>
            {move || match episodes.get() {
                (all, none) if all.is_empty() => view! { <p class="quiet">{none}</p> },
                (all, _) => view! { <ol>{all.into_iter().map(|text| view! { <li>"▲ " {text}</li> }).collect_view()}</ol> },
            }}
        </div>
    }
}

/// What is known of workers without counted requests.
#[component]
fn Estimates(store: Store, shown: Memo<Spread>) -> impl IntoView {
    let known = Memo::new(move |_| shown.with(|shown| shown.estimates.clone()));
    move || {
        let all = known.get();
        (!all.is_empty()).then(|| {
            let one = |(worker, blocks): (WorkerIx, String)| view! { <span><Chip store worker/> " " {blocks}</span> };
            view! {
                <p class="caption estimates" data-testid="spread-estimates">"Active decode blocks now, as a router estimates them: " {all.into_iter().map(one).collect_view()}</p>
            }
        })
    }
}
