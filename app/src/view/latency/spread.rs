//! Requests in flight per worker, second by second, the gap between fullest and emptiest, and spikes that moved.

use leptos::prelude::*;
use radixscope_insight::in_flight::{self, Episode, Gap, Series, Spike};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::percentile::nearest_rank;
use radixscope_model::sort;
use radixscope_state::cluster::{RATE_WINDOW_S, TimeSteps};

use crate::draw::option::ChartOption;
use crate::draw::palette::{Palette, label};
use crate::draw::strips::{self, Strip};
use crate::format::{self, UNKNOWN};
use crate::store::{Shown, Store, time_of_day};
use crate::time_range::Span;
use crate::view::chip::Chip;
use crate::view::time_chart::TimeChart;

/// More workers than this are not drawn one by one; the gap counts all of them.
const MAX_STRIPS: usize = 32;
#[derive(Clone, PartialEq, Default)]
struct Imbalance {
    series: Series,
    gaps: Vec<Option<Gap>>,
    /// The workers of each pool.
    pools: Vec<(PoolIx, Vec<WorkerIx>)>,
    limit: Option<u64>,
    spikes: Vec<Spike>,
    episodes: Vec<Episode>,
    /// What routers say of workers whose requests are not known: worker, active decode blocks now.
    estimates: Vec<(WorkerIx, Option<u64>)>,
}

impl Imbalance {
    fn of(cluster: &Shown<'_>, now: Millis) -> Self {
        let mut series = in_flight::series(cluster, now, RATE_WINDOW_S);
        let pool_of = |worker: WorkerIx| cluster.pool_of(worker).unwrap_or_default();
        series.workers.retain(|(worker, _)| cluster.has(pool_of(*worker)));
        // A router has the choice among the workers of a pool: only they are full or empty beside each other.
        let mut pools: Vec<(PoolIx, Series)> = Vec::new();
        for (worker, values) in &series.workers {
            let of = (*worker, values.clone());
            match pools.iter_mut().find(|(pool, _)| *pool == pool_of(*worker)) {
                Some((_, series)) => series.workers.push(of),
                None => pools.push((pool_of(*worker), Series { first_s: series.first_s, workers: vec![of] })),
            }
        }
        let limit = in_flight::batch_limit(cluster);
        let mut spikes: Vec<Spike> =
            pools.iter().flat_map(|(_, series)| in_flight::spikes(series, limit)).collect();
        sort::sort_by_key(&mut spikes, |spike| (spike.from_s, spike.worker));
        let mut episodes: Vec<Episode> =
            pools.iter().flat_map(|(_, series)| in_flight::episodes(series, limit)).collect();
        sort::sort_by_key(&mut episodes, |episode| episode.spikes.first().map(|spike| spike.from_s));
        let estimates = cluster.worker_list().filter_map(|worker| {
            let state = cluster.worker(worker)?;
            let is_meant = state.gone.is_none() && state.in_flight.now().is_none();
            is_meant.then(|| (worker, state.router_loads.first().and_then(|load| load.decode_blocks)))
        });
        let gaps = widest(&pools);
        let of_pool = |(pool, series): (PoolIx, Series)| {
            (pool, series.workers.into_iter().map(|(worker, _)| worker).collect())
        };
        let pools = pools.into_iter().map(of_pool).collect();
        Self { gaps, pools, spikes, episodes, estimates: estimates.collect(), limit, series }
    }

    /// Workers that have a strip.
    fn drawn(&self) -> impl Iterator<Item = &(WorkerIx, Vec<Option<u32>>)> {
        self.series.workers.iter().take(MAX_STRIPS)
    }

    fn widths(&self) -> Vec<Option<u32>> {
        self.gaps.iter().map(|gap| gap.map(Gap::width)).collect()
    }

    /// Present and greatest value of a worker.
    fn figures(&self, worker: WorkerIx) -> [Option<u32>; 2] {
        let values = self.series.workers.iter().find(|(w, _)| *w == worker).map(|(_, values)| values);
        let most = values.and_then(|values| values.iter().copied().flatten().max());
        [values.and_then(|values| values.last().copied().flatten()), most]
    }

    /// Present, greatest and 95th-percentile gap.
    fn gap_figures(&self) -> [Option<u32>; 3] {
        let widths = self.widths();
        let mut known: Vec<u32> = widths.iter().copied().flatten().collect();
        sort::sort_by(&mut known, Ord::cmp);
        let p95 = nearest_rank(&known, 95);
        [widths.last().copied().flatten(), known.last().copied(), p95]
    }

    fn spikes_of(&self, worker: WorkerIx) -> impl Iterator<Item = &Spike> {
        self.spikes.iter().filter(move |spike| spike.worker == worker)
    }

    /// A strip for each worker, and one for the gap.
    fn option(&self, drawn: Drawn, palette: &Palette) -> ChartOption {
        let limit = self.limit.map(|limit| limit as f64);
        let of_worker = |(worker, _): &(WorkerIx, Vec<Option<u32>>)| Strip {
            name: format!("{}, requests", label(*worker)),
            colour: palette.worker(*worker),
            values: drawn.values(*worker),
            spikes: self
                .spikes_of(*worker)
                .map(|spike| (Millis(spike.from_s * 1_000), Millis((spike.until_s + 1) * 1_000)))
                .filter(|(from, until)| drawn.span.from <= *until && *from <= drawn.span.until)
                .collect(),
            limit,
        };
        let gap = Strip {
            name: "max − min, requests".to_owned(),
            colour: palette.shared,
            values: drawn.gaps(self),
            spikes: Vec::new(),
            limit: None,
        };
        let strips: Vec<Strip> = self.drawn().map(of_worker).chain([gap]).collect();
        let most = strips.iter().flat_map(|strip| strip.values.iter().copied().flatten()).max();
        let most = f64::from(most.unwrap_or(0)).max(limit.unwrap_or(0.0)).max(4.0) * 1.05;
        strips::option(&strips, &drawn.times, drawn.span, most.ceil(), palette)
    }

    /// The strips in words.
    fn words(&self) -> String {
        let of_worker = |(worker, _): &(WorkerIx, Vec<Option<u32>>)| {
            let [now, most] = self.figures(*worker).map(or_unknown);
            let spikes = format::plural(self.spikes_of(*worker).count() as u64, "spike", "spikes");
            format!("{}: {now} in flight now, max {most} in the last 5 minutes, {spikes}. ", label(*worker))
        };
        let [now, most, p95] = self.gap_figures().map(or_unknown);
        let workers: String = self.drawn().map(of_worker).collect();
        format!(
            "{workers}Difference between the most and the least loaded worker: {now} now, max {most}, p95 {p95} in the last 5 minutes"
        )
    }
}

/// What the chart shows: another stretch of time than the figures beside it, perhaps.
struct Drawn {
    times: Vec<Millis>,
    span: Span,
    workers: Vec<(WorkerIx, Vec<Option<u32>>)>,
}

impl Drawn {
    fn values(&self, worker: WorkerIx) -> Vec<Option<u32>> {
        self.workers
            .iter()
            .find(|(of, _)| *of == worker)
            .map(|(_, values)| values.clone())
            .unwrap_or_default()
    }

    /// Of each time the widest gap within a pool.
    fn gaps(&self, of: &Imbalance) -> Vec<Option<u32>> {
        let series = |(_, workers): &(PoolIx, Vec<WorkerIx>)| Series {
            first_s: 0,
            workers: workers.iter().map(|worker| (*worker, self.values(*worker))).collect(),
        };
        let pools: Vec<(PoolIx, Series)> = of.pools.iter().map(|pool| (pool.0, series(pool))).collect();
        widest(&pools).into_iter().map(|gap| gap.map(Gap::width)).collect()
    }
}

/// In each second the widest gap within a pool.
fn widest(pools: &[(PoolIx, Series)]) -> Vec<Option<Gap>> {
    let gaps: Vec<Vec<Option<Gap>>> = pools.iter().map(|(_, series)| series.gaps()).collect();
    let seconds = gaps.iter().map(Vec::len).max().unwrap_or(0);
    let at = |at: usize| gaps.iter().filter_map(|of| *of.get(at)?).max_by_key(|gap| gap.width());
    (0..seconds).map(at).collect()
}

fn or_unknown(figure: Option<u32>) -> String {
    figure.map_or(UNKNOWN.to_owned(), |n| n.to_string())
}

/// The section.
#[component]
pub(super) fn SpreadSection(
    store: Store,
    dark: Signal<bool>,
    second: Memo<Millis>,
    span: Memo<Span>,
) -> impl IntoView {
    let shown = Memo::new(move |_| {
        let now = second.get();
        store.pools.track();
        store.peek(|cluster| Imbalance::of(cluster, now))
    });
    let known = Memo::new(move |_| shown.with(|shown| !shown.series.workers.is_empty()));
    let workers =
        Memo::new(move |_| shown.with(|shown| shown.drawn().map(|(worker, _)| *worker).collect::<Vec<_>>()));
    let limit = move || match shown.with(|shown| shown.limit) {
        Some(limit) => format!("dashed: batch limit {limit}, by the model's max_num_seqs"),
        None => "batch limit unknown: a scraped frontend reports max_num_seqs".to_owned(),
    };
    let option = move |palette: &Palette| {
        let span = span.get();
        let over_time = store.peek(|cluster| {
            let steps = TimeSteps::between(span.from, span.until, store.received_ms());
            Drawn { times: steps.begins().collect(), span, workers: in_flight::per_worker(cluster, steps) }
        });
        shown.with(|shown| Some(shown.option(over_time, palette)))
    };
    let words = Signal::derive(move || shown.with(Imbalance::words));
    let left_out = move || shown.with(|shown| shown.series.workers.len().saturating_sub(MAX_STRIPS));
    view! {
        <section class="spread" aria-labelledby="spread-title" data-testid="spread">
            <h3 id="spread-title">"In-flight imbalance" <span class="quiet">" requests in flight per worker, max of each second, last 5 min"</span></h3>
            <Show when=move || known.get() fallback=move || view! { <Absent/> }>
                <p class="caption" data-testid="spread-limit">{limit}</p>
                <div class="strips">
                    <For each=move || workers.get() key=|worker| *worker let:worker><WorkerRow store shown worker/></For>
                    <GapRow shown/>
                    <TimeChart store dark id="spread-chart" words insets=strips::INSETS span option/>
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
            <p>"Known from "<code>"active_sequences_events"</code>" (routers with "<code>"--router-replica-sync"</code>"), or from a frontend's log: "<code>"--logs FILE"</code>" (Dynamo ≥ 1.5)"</p>
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
                    view! { <p class="quiet">{text}</p> }.into_any()
                } else {
                    view! { <ol>{all.into_iter().map(|text| view! { <li>"▲ " {text}</li> }).collect_view()}</ol> }.into_any()
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
