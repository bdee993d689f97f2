//! Requests in flight on each worker, second by second, and the gap between the most and the least loaded one.

use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::plural;

use super::super::in_flight::{self, GAP, Strip, StripsChart, TITLE, figure};
use super::axis::{Axes, span_text};
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::lanes::more;
use super::{Body, Content, PanelRequest};
use crate::colour::css;

/// Least and greatest height of a strip with what is free below it.
const STRIP_PX: (f64, f64) = (26.0, 60.0);
/// Width of label and figures before a strip, in wide and in narrow pictures.
const HEAD_PX: [f64; 2] = [212.0, 154.0];

struct InFlight {
    chart: StripsChart,
    /// The figures beside each strip.
    figures: Vec<String>,
}

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, now: Millis) -> Content {
    let imbalance = Imbalance::of(shown, now);
    if imbalance.series.workers.is_empty() {
        return Content::empty(TITLE, &in_flight::empty(shown.has_no_router()));
    }
    let is_drawn = |worker: WorkerIx| request.worker.is_none_or(|only| only == worker);
    let chart = StripsChart::of(shown, &imbalance, is_drawn, request.span, now);
    let [gap_now, gap_max, gap_p95] = imbalance.gap_figures().map(figure);
    let gap = format!("{gap_now} now, max {gap_max}, p95 {gap_p95}");
    let of_strip = |strip: &Strip| {
        let Some(worker) = strip.worker else { return gap.clone() };
        let [now, max] = imbalance.figures(worker).map(figure);
        format!("{now} now, max {max}")
    };
    let figures = chart.strips.iter().map(of_strip).collect();
    let facts = format!(
        "Requests in flight per worker, max of each step, tracked from decisions; figures: last 5 min. Max − min {gap}; {} from \
         worker to worker; {}. Chart: {}",
        plural(imbalance.episodes.len() as u64, "spike moved", "spikes moved"),
        imbalance.limit_text(),
        span_text(request.span)
    );
    Content::new(TITLE, facts, InFlight { chart, figures })
}

impl InFlight {
    fn strip(&self, paper: &mut ChartArea<'_>, area: Area, strip: &Strip, figures: &str) -> Axes {
        let chart = &self.chart;
        let middle = area.y + area.height / 2.0 + 1.0;
        let head = match strip.worker {
            Some(worker) => paper.chip(area.x, middle, worker),
            None => {
                paper.text(area.x, middle, paper.quiet(), GAP);
                66.0
            }
        };
        let head_px = area.fitting(HEAD_PX);
        paper.text_within(area.x + head, middle, head_px - head - 4.0, paper.plain(), figures);
        let plot =
            Area { x: area.x + head_px, width: area.width - head_px, height: area.height - 3.0, ..area };
        paper.rect(plot, &css(paper.theme.raised));
        let axes = Axes { area: plot, span: chart.span, most: chart.highest, is_down: false };
        let values = strip.values.iter().map(|value| value.map(|n| (0.0, f64::from(n))));
        let points: Vec<_> = chart.times.iter().copied().zip(values).collect();
        let fill = strip.worker.map_or_else(|| css(paper.theme.shared), |worker| paper.fill(worker));
        paper.shape(&axes.steps(&points, chart.step_ms), &fill, 1.0);
        let bad = css(paper.theme.bad);
        for &(from, until) in &strip.spikes {
            let (left, right) = (axes.x(from), axes.x(until));
            paper.shape(
                &format!("M{left:.1} {0:.1}H{right:.1}v{1:.1}H{left:.1}Z", plot.y, plot.height),
                &bad,
                0.28,
            );
        }
        if let Some(limit) = chart.limit.filter(|_| strip.worker.is_some()) {
            let way = axes.way([(chart.span.from, Some(limit)), (chart.span.until, Some(limit))]);
            paper.line(&way, paper.theme.text, 0.7, true);
        }
        axes
    }
}

impl Body for InFlight {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let all: Vec<_> = self.chart.strips.iter().zip(&self.figures).collect();
        let Some(((gap, gap_figures), workers)) = all.split_last() else { return };
        let room = area.height - LINE_PX;
        let fit = ((room / STRIP_PX.0) as usize).saturating_sub(1).max(1);
        let has_more = workers.len() > fit;
        let drawn = &workers[..workers.len().min(fit)];
        let rows = drawn.len() + 1 + usize::from(has_more);
        let height = (room / rows as f64).floor().min(STRIP_PX.1);
        let mut row = Area { height, ..area };
        for (strip, figures) in drawn {
            self.strip(paper, row, strip, figures);
            row.y += height;
        }
        if has_more {
            let text = format!("{} not drawn; the gap counts them", more(workers.len() - drawn.len()));
            paper.text(area.x, row.y + 12.0, paper.quiet(), &text);
            row.y += height.min(LINE_PX + 4.0);
        }
        self.strip(paper, row, gap, gap_figures).draw_times(paper);
    }
}
