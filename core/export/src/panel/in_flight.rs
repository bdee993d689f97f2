//! Requests in flight on each worker, step by step, and the gap between the most and the least loaded one.

use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::UNKNOWN;
use radixscope_state::cluster::TimeSteps;

use super::{EmptyText, NO_ROUTER};
use crate::tree::svg::label;

/// Its heading.
pub const TITLE: &str = "In-flight imbalance";
/// What the gap is.
pub const GAP: &str = "max − min";

/// A figure as text.
pub fn figure(requests: Option<u32>) -> String {
    requests.map_or(UNKNOWN.to_owned(), |n| n.to_string())
}

/// One strip of the chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Strip {
    /// Whose requests; `None`: the gap.
    pub worker: Option<WorkerIx>,
    /// Max of each step; `None`: not known.
    pub values: Vec<Option<u32>>,
    /// Times in which the worker was too full, as far as they lie in the time shown.
    pub spikes: Vec<(Millis, Millis)>,
}

impl Strip {
    /// What it is.
    pub fn name(&self) -> String {
        self.worker.map_or(GAP.to_owned(), label)
    }
}

/// The chart: all strips have one scale.
#[derive(Clone, PartialEq, Debug)]
pub struct StripsChart {
    /// One per worker, then the gap.
    pub strips: Vec<Strip>,
    /// Begin of each step.
    pub times: Vec<Millis>,
    /// Length of a step, milliseconds.
    pub step_ms: u64,
    /// The time it shows.
    pub span: TimeSpan,
    /// Batch limit of a worker: a dashed line in the strips of workers.
    pub limit: Option<f64>,
    /// End of the scale.
    pub highest: f64,
}

impl StripsChart {
    /// Of those workers of `imbalance` that are to be drawn; the gap is that of all.
    pub fn of(
        shown: &ViewContext<'_>,
        imbalance: &Imbalance,
        is_drawn: impl Fn(WorkerIx) -> bool,
        span: TimeSpan,
        now: Millis,
    ) -> Self {
        let steps = TimeSteps::between(span.from, span.until, now);
        let over_time = in_flight::per_worker(shown.cluster, steps);
        let is_seen = |(from, until): &(Millis, Millis)| span.from <= *until && *from <= span.until;
        let strip = |worker: WorkerIx| {
            let values = over_time.iter().find(|(of, _)| *of == worker);
            let spikes = imbalance.spikes_of(worker);
            let spikes = spikes.map(|of| (Millis(of.from_s * 1_000), Millis((of.until_s + 1) * 1_000)));
            Strip {
                worker: Some(worker),
                values: values.map(|(_, values)| values.clone()).unwrap_or_default(),
                spikes: spikes.filter(is_seen).collect(),
            }
        };
        let gap = Strip { worker: None, values: imbalance.gaps_of(&over_time), spikes: Vec::new() };
        let drawn = imbalance.series.workers.iter().map(|(worker, _)| *worker).filter(|&ix| is_drawn(ix));
        let strips: Vec<Strip> = drawn.map(strip).chain([gap]).collect();
        let limit = imbalance.limit.map(|limit| limit as f64);
        let most = strips.iter().flat_map(|strip| strip.values.iter().copied().flatten()).max();
        let highest = f64::from(most.unwrap_or(0)).max(limit.unwrap_or(0.0)).max(4.0) * 1.05;
        let times = steps.begins().collect();
        Self { strips, times, step_ms: steps.len_s() * 1_000, span, limit, highest: highest.ceil() }
    }
}

/// What stands where requests in flight are not reported. `has_no_router`: engines are listened to without Dynamo.
pub fn empty(has_no_router: bool) -> EmptyText {
    if has_no_router {
        return EmptyText::new("spread-absent", NO_ROUTER.0, NO_ROUTER.1);
    }
    EmptyText::new(
        "spread-absent",
        "Not reported: when requests begin and end on a worker",
        "Known from `active_sequences_events` (routers with `--router-replica-sync`), or from a frontend's log: `--logs FILE` \
         (Dynamo ≥ 1.5)",
    )
}
