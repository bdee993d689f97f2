//! Blocks stored and removed per second over time, one band per worker: stored upward, removed downward.

use radixscope_insight::block_rates::{BlockRates, OTHERS};
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::{Millis, WorkerIx};

use super::super::rates::{self, REMOVED, RatesChart, STORED, TITLE};
use super::super::workers;
use super::axis::{Axes, span_text};
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::{Body, Content, PanelRequest};
use crate::colour::css;
use crate::tree::svg::label;
use crate::tree::svg::text::width_px;

/// Room for the values of the axes.
const AXIS_PX: f64 = 52.0;

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, now: Millis) -> Content {
    if shown.worker_list().next().is_none() {
        return Content::empty(TITLE, &workers::empty());
    }
    let [stored, removed] = rates::means(shown, request.worker, now);
    let chart = RatesChart::of(shown, request.worker, request.span, now, |_| false);
    let facts = format!(
        "{stored} blocks {STORED}, {removed} {REMOVED}, {}, by KV events. Chart: {}, per {}",
        rates::mean_window(),
        span_text(request.span),
        if chart.step_ms == 1_000 { "second".to_owned() } else { format!("{} s", chart.step_ms / 1_000) },
    );
    Content::new(TITLE, facts, chart)
}

/// From where to where a band lies at each time, blocks per second; `None`: not known.
type Stack = Vec<Option<(f64, f64)>>;

impl RatesChart {
    /// The bands of one half, each upon the one before.
    fn stacked(&self, of: fn(&BlockRates) -> &[Option<f64>]) -> Vec<Stack> {
        let mut tops = vec![0.0; self.times.len()];
        let stack = |band: &BlockRates| {
            let values = of(band).iter().zip(&mut tops).map(|(value, top)| {
                let low = *top;
                *top += (*value)?;
                Some((low, *top))
            });
            values.collect()
        };
        self.bands.iter().map(stack).collect()
    }

    fn half(&self, paper: &mut ChartArea<'_>, axes: Axes, bands: &[Stack], name: &str) {
        axes.draw_values(paper);
        for (band, values) in self.bands.iter().zip(bands) {
            let points: Vec<_> = self.times.iter().copied().zip(values.iter().copied()).collect();
            let fill = band.worker.map_or_else(|| css(paper.theme.shared), |worker| paper.fill(worker));
            paper.shape(&axes.steps(&points, self.step_ms), &fill, 0.75);
        }
        let y = if axes.is_down { axes.area.bottom() - 4.0 } else { axes.area.y + 10.0 };
        paper.text(axes.area.x + 4.0, y, paper.quiet(), name);
    }

    fn legend(&self, paper: &mut ChartArea<'_>, area: Area) {
        let mut x = area.x;
        for (at, band) in self.bands.iter().enumerate() {
            let left = self.bands.len() - at;
            if x + 60.0 > area.right() {
                return paper.text(x, area.y, paper.quiet(), &format!("+{left}"));
            }
            match band.worker {
                Some(worker) => x += paper.chip(x, area.y, worker) + 6.0,
                None => {
                    let neutral = css(paper.theme.shared);
                    paper.rect(Area { x, y: area.y - 9.0, width: 10.0, height: 10.0 }, &neutral);
                    paper.text(x + 14.0, area.y, paper.plain(), OTHERS);
                    x += width_px(OTHERS) + 20.0;
                }
            }
        }
    }
}

impl Body for RatesChart {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        self.legend(paper, Area { y: area.y + 9.0, ..area });
        let top = area.y + LINE_PX + 6.0;
        let height = ((area.bottom() - LINE_PX - top) / 2.0).max(1.0);
        let half = |at: usize| Area {
            x: area.x + AXIS_PX,
            y: top + (height + 3.0) * at as f64,
            width: area.width - AXIS_PX,
            height: height - 3.0,
        };
        let most = self.highest().max(1.0);
        let axes = |at: usize| Axes { area: half(at), span: self.span, most, is_down: at == 1 };
        self.half(paper, axes(0), &self.stacked(|band| &band.stored), STORED);
        self.half(paper, axes(1), &self.stacked(|band| &band.removed), REMOVED);
        axes(1).draw_times(paper);
        let is_unknown = self.bands.iter().all(|band| band.stored.iter().all(Option::is_none));
        if is_unknown {
            let names: Vec<WorkerIx> = self.bands.iter().filter_map(|band| band.worker).collect();
            let of = if let [only] = names[..] { label(only) } else { "any worker".to_owned() };
            let text = format!("Unknown: no KV event of {of} was received in this time");
            paper.text_within(
                area.x + AXIS_PX + 4.0,
                top + height / 2.0,
                area.width - AXIS_PX,
                paper.quiet(),
                &text,
            );
        }
    }
}
