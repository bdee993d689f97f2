//! Requests in flight on each worker, second by second, and the gap between the most and the least loaded one.

use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight;
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, plural};
use radixscope_state::cluster::TimeSteps;

use super::axis::{Axes, span_text};
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::lanes::more;
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const TITLE: &str = "In-flight imbalance";
/// Least and greatest height of a strip with what is free below it.
const STRIP_PX: (f64, f64) = (26.0, 60.0);
/// Width of label and figures before a strip, in wide and in narrow pictures.
const HEAD_PX: [f64; 2] = [212.0, 154.0];

/// One worker; `None`: the gap.
struct Lane {
    worker: Option<WorkerIx>,
    figures: String,
    values: Vec<Option<u32>>,
    spikes: Vec<(Millis, Millis)>,
}

struct InFlightPanel {
    strips: Vec<Lane>,
    gap: Lane,
    times: Vec<Millis>,
    step_ms: u64,
    span: TimeSpan,
    limit: Option<f64>,
}

pub(super) fn content(shown: &ViewContext<'_>, asked: &PanelRequest, now: Millis) -> Content {
    let of = Imbalance::of(shown, now);
    if of.series.workers.is_empty() {
        let text = "Known from active_sequences_events (routers with --router-replica-sync), or from a frontend's log: --logs \
                    FILE (Dynamo ≥ 1.5).";
        return Content::empty(TITLE, "Not reported: when requests begin and end on a worker", text);
    }
    let steps = TimeSteps::between(asked.span.from, asked.span.until, now);
    let mut over_time = in_flight::per_worker(shown.cluster, steps);
    over_time.retain(|(worker, _)| of.series.workers.iter().any(|(known, _)| known == worker));
    let words = |figure: Option<u32>| figure.map_or(UNKNOWN.to_owned(), |n| n.to_string());
    let gap_values = of.gaps_of(&over_time);
    let strip = |(worker, values): (WorkerIx, Vec<Option<u32>>)| {
        let [now, most] = of.figures(worker).map(words);
        let end = |spike_s: u64| Millis(spike_s * 1_000);
        let spikes = of.spikes_of(worker).map(|spike| (end(spike.from_s), end(spike.until_s + 1)));
        Lane {
            worker: Some(worker),
            figures: format!("{now} now, max {most}"),
            values,
            spikes: spikes.collect(),
        }
    };
    let is_meant = |worker: WorkerIx| asked.worker.is_none_or(|only| only == worker);
    let strips: Vec<Lane> =
        over_time.into_iter().filter(|(worker, _)| is_meant(*worker)).map(strip).collect();
    let [gap_now, gap_max, gap_p95] = of.gap_figures().map(words);
    let figures = format!("{gap_now} now, max {gap_max}, p95 {gap_p95}");
    let moved = plural(of.episodes.len() as u64, "spike moved", "spikes moved");
    let facts = format!(
        "Requests in flight per worker, max of each step, tracked from decisions; figures: last 5 min. Max − min {figures}; {moved} \
         from worker to worker; {}. Chart: {}",
        of.limit_text(),
        span_text(asked.span)
    );
    let gap = Lane { worker: None, figures, values: gap_values, spikes: Vec::new() };
    let limit = of.limit.map(|limit| limit as f64);
    let (times, step_ms) = (steps.begins().collect(), steps.len_s() * 1_000);
    Content::new(TITLE, facts, InFlightPanel { strips, gap, times, step_ms, span: asked.span, limit })
}

impl InFlightPanel {
    fn most(&self) -> f64 {
        let all = self.strips.iter().chain([&self.gap]);
        let most = all.flat_map(|strip| strip.values.iter().copied().flatten()).max();
        f64::from(most.unwrap_or(0)).max(self.limit.unwrap_or(0.0)).max(4.0) * 1.05
    }

    fn strip(&self, paper: &mut ChartArea<'_>, area: Area, strip: &Lane) -> Axes {
        let middle = area.y + area.height / 2.0 + 1.0;
        let head = match strip.worker {
            Some(worker) => paper.chip(area.x, middle, worker),
            None => {
                paper.text(area.x, middle, paper.quiet(), "max − min");
                66.0
            }
        };
        let head_px = area.fitting(HEAD_PX);
        paper.text_within(area.x + head, middle, head_px - head - 4.0, paper.plain(), &strip.figures);
        let plot =
            Area { x: area.x + head_px, width: area.width - head_px, height: area.height - 3.0, ..area };
        paper.rect(plot, &css(paper.theme.raised));
        let axes = Axes { area: plot, span: self.span, most: self.most(), is_down: false };
        let values = strip.values.iter().map(|value| value.map(|n| (0.0, f64::from(n))));
        let points: Vec<_> = self.times.iter().copied().zip(values).collect();
        let fill = strip.worker.map_or_else(|| css(paper.theme.shared), |worker| paper.fill(worker));
        paper.shape(&axes.steps(&points, self.step_ms), &fill, 1.0);
        let bad = css(paper.theme.bad);
        for &(from, until) in
            strip.spikes.iter().filter(|(from, until)| self.span.from <= *until && *from <= self.span.until)
        {
            let (left, right) = (axes.x(from), axes.x(until));
            paper.shape(
                &format!("M{left:.1} {0:.1}H{right:.1}v{1:.1}H{left:.1}Z", plot.y, plot.height),
                &bad,
                0.28,
            );
        }
        if let Some(limit) = self.limit.filter(|_| strip.worker.is_some()) {
            let way = axes.way([(self.span.from, Some(limit)), (self.span.until, Some(limit))]);
            paper.line(&way, paper.theme.text, 0.7, true);
        }
        axes
    }
}

impl Body for InFlightPanel {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let room = area.height - LINE_PX;
        let fit = ((room / STRIP_PX.0) as usize).saturating_sub(1).max(1);
        let has_more = self.strips.len() > fit;
        let drawn = &self.strips[..self.strips.len().min(fit)];
        let rows = drawn.len() + 1 + usize::from(has_more);
        let height = (room / rows as f64).floor().min(STRIP_PX.1);
        let mut row = Area { height, ..area };
        for strip in drawn {
            self.strip(paper, row, strip);
            row.y += height;
        }
        if has_more {
            let words = format!("{} not drawn; the gap counts them", more(self.strips.len() - drawn.len()));
            paper.text(area.x, row.y + 12.0, paper.quiet(), &words);
            row.y += height.min(LINE_PX + 4.0);
        }
        self.strip(paper, row, &self.gap).draw_times(paper);
    }
}
