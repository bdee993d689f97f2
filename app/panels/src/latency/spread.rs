//! Requests in flight per worker, the gap between fullest and emptiest, and spikes that moved.

use radixscope_export::panel::in_flight::figure;
use radixscope_icicle::palette::label;
use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight::{Episode, Spike};
use radixscope_model::id::{Millis, WorkerIx};

use crate::format;
use crate::time_zone::TimeZone;

/// More workers than this are not drawn one by one; the gap counts all of them.
const MAX_STRIPS: usize = 32;

/// What stands around the strips.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Spread {
    /// Workers that have a strip, with their present and greatest number of requests.
    pub workers: Vec<(WorkerIx, [String; 2])>,
    /// The gap now, its greatest, and its 95th percentile.
    pub gap: [String; 3],
    /// What the batch limit is, or what would report it.
    pub limit: String,
    /// The strips as text.
    pub description: String,
    /// That there are workers without a strip.
    pub left_out: Option<String>,
    /// Spikes that moved, the last one first.
    pub episodes: Vec<String>,
    /// What stands in their place where there are none.
    pub no_episode: String,
    /// Workers whose requests are not counted, with what a router says of them: active decode blocks.
    pub estimates: Vec<(WorkerIx, String)>,
}

impl Spread {
    /// Of the workers shown; times of day are the reader's.
    pub fn of(imbalance: &Imbalance, zone: TimeZone) -> Self {
        let drawn: Vec<WorkerIx> =
            imbalance.series.workers.iter().map(|(worker, _)| *worker).take(MAX_STRIPS).collect();
        let workers: Vec<(WorkerIx, [String; 2])> =
            drawn.iter().map(|&worker| (worker, imbalance.figures(worker).map(figure))).collect();
        let gap = imbalance.gap_figures().map(figure);
        let left_out = imbalance.series.workers.len().saturating_sub(MAX_STRIPS);
        let estimates = imbalance.estimates.iter();
        Self {
            description: description(imbalance, &workers, &gap),
            workers,
            gap,
            limit: imbalance.limit_text(),
            left_out: (left_out > 0)
                .then(|| format!("{left_out} more workers are not drawn; the gap counts them")),
            episodes: imbalance.episodes.iter().rev().map(|episode| moved(episode, zone)).collect(),
            no_episode: no_episode(imbalance),
            estimates: estimates
                .filter_map(|(worker, blocks)| Some((*worker, format::count((*blocks)?))))
                .collect(),
        }
    }

    /// The present and greatest number of requests of a worker.
    pub fn figures(&self, worker: WorkerIx) -> [String; 2] {
        let found = self.workers.iter().find(|(of, _)| *of == worker);
        found.map_or_else(Default::default, |(_, figures)| figures.clone())
    }
}

fn description(imbalance: &Imbalance, workers: &[(WorkerIx, [String; 2])], gap: &[String; 3]) -> String {
    let of_worker = |(worker, [now, most]): &(WorkerIx, [String; 2])| {
        let spikes = format::plural(imbalance.spikes_of(*worker).count() as u64, "spike", "spikes");
        format!("{}: {now} in flight now, max {most} in the last 5 minutes, {spikes}. ", label(*worker))
    };
    let [now, most, p95] = gap;
    let workers: String = workers.iter().map(of_worker).collect();
    format!(
        "{workers}Difference between the most and the least loaded worker: {now} now, max {most}, p95 {p95} in the last 5 minutes"
    )
}

fn moved(episode: &Episode, zone: TimeZone) -> String {
    let part = |spike: &Spike| {
        let at = zone.time_of_day(Millis(spike.from_s * 1000));
        format!("{at} {} (up to {})", label(spike.worker), spike.peak)
    };
    episode.spikes.iter().map(part).collect::<Vec<_>>().join(" → ")
}

fn no_episode(imbalance: &Imbalance) -> String {
    match imbalance.spikes.len() as u64 {
        0 => "None in the last 5 minutes, and no spike at all".to_owned(),
        spikes => {
            let stayed = format::plural(spikes, "spike stayed", "spikes stayed");
            format!("None in the last 5 minutes; {stayed} where it was")
        }
    }
}
