//! TTFT and ITL: percentiles against the target, and the 95th over time.

use radixscope_insight::latency::{self, Side, Times};
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::number_format::UNKNOWN;
use radixscope_model::range::{Range, TargetComparison};

use super::super::latency::{
    ITL, NO_SAMPLE, QuantityLabels, TITLE, TREND_NOTE, TTFT, TrendSeries, empty, empty_both,
};
use super::axis::{Axes, span_text};
use super::chart_area::{Area, ChartArea, LINE_PX, Style};
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const AXIS_PX: f64 = 46.0;
/// Beside each other from this width on.
const WIDE_PX: f64 = 620.0;
/// A lower chart shows nothing.
const LEAST_CHART_PX: f64 = 30.0;

/// One quantity.
struct Card {
    labels: QuantityLabels,
    /// The figure that is shown, compared and coloured; `None`: not reported.
    times: Option<Times>,
    source: String,
    target: f64,
    trend: Option<TrendSeries>,
}

struct Latency {
    cards: [Card; 2],
    span: TimeSpan,
}

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, now: Millis) -> Content {
    let card = |labels: QuantityLabels, target| {
        let all = latency::latest(shown.cluster, labels.quantity, now);
        Card {
            labels,
            source: latency::source_text(&all, labels.quantity),
            times: all.iter().find(|times| times.samples > 0).or(all.first()).cloned(),
            target,
            trend: TrendSeries::of(shown.cluster, labels.quantity, Side::Frontend, request.span, now),
        }
    };
    let [ttft, itl] = request.targets_ms;
    let cards = [card(TTFT, ttft), card(ITL, itl)];
    if cards.iter().all(|card| card.times.is_none()) {
        return Content::empty(TITLE, &empty_both());
    }
    let facts = format!(
        "Percentiles over the last 60 s, all pools. Chart, {}: {TREND_NOTE}",
        span_text(request.span)
    );
    Content::new(TITLE, facts, Latency { cards, span: request.span })
}

impl Body for Latency {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let half = |at: f64| match area.width >= WIDE_PX {
            true => {
                let width = (area.width - 20.0) / 2.0;
                Area { x: area.x + (width + 20.0) * at, width, ..area }
            }
            false => {
                let height = (area.height - 10.0) / 2.0;
                Area { y: area.y + (height + 10.0) * at, height, ..area }
            }
        };
        let [ttft, itl] = &self.cards;
        ttft.draw(paper, half(0.0), self.span);
        itl.draw(paper, half(1.0), self.span);
    }
}

impl Card {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area, span: TimeSpan) {
        let quantiles = self.times.as_ref().and_then(|times| times.quantiles);
        let quantity = self.labels.quantity;
        let range_text =
            |range: Option<Range>| range.map_or(UNKNOWN.to_owned(), |range| quantity.range_text(&range));
        let [p50, p95, p99] = quantiles.map_or([None; 3], |all| all.map(Some));
        let comparison =
            self.times.as_ref().map_or(TargetComparison::Unknown, |times| times.standing(self.target));
        let colour = match comparison {
            TargetComparison::Within => paper.theme.good_text,
            TargetComparison::Above => paper.theme.bad_text,
            TargetComparison::Unknown => paper.theme.text,
        };
        let mut y = area.y + 14.0;
        let (name, value) = (format!("{} p95", self.labels.name), range_text(p95));
        let (title, big) = (paper.plain().bold().size(13.0), Style::of(colour).bold().size(15.0));
        let at = area.x + title.width(&name) + 8.0;
        paper.text(area.x, y, title, &name);
        paper.text(at, y, big, &value);
        let others = format!("p50 {}   p99 {}", range_text(p50), range_text(p99));
        let quiet = paper.quiet();
        if at + big.width(&value) + quiet.width(&others) + 10.0 <= area.right() {
            paper.text(area.right(), y, quiet.right(), &others);
        } else {
            y += LINE_PX;
            paper.text_within(area.x, y, area.width, quiet, &others);
        }
        let Some(times) = &self.times else {
            let text = empty(&self.labels).to_text();
            paper.lines((area.x, y + LINE_PX + 2.0), area.width, paper.quiet(), &text, 4);
            return;
        };
        let target = quantity.to_text(self.target);
        let standing = match quantiles {
            Some(_) => times.standing_text(quantity, self.target),
            None => NO_SAMPLE.to_owned(),
        };
        y += LINE_PX + 2.0;
        let message = match standing.starts_with("target") {
            true => standing,
            false => format!("{standing}; target {target}"),
        };
        paper.text_within(area.x, y, area.width, Style::of(colour), &message);
        y = paper.lines(
            (area.x, y + LINE_PX),
            area.width,
            paper.quiet(),
            &self.source,
            if area.height < 160.0 { 1 } else { 2 },
        );
        let plot = Area {
            x: area.x + AXIS_PX,
            y: y - 6.0,
            width: area.width - AXIS_PX,
            height: area.bottom() - LINE_PX - y + 6.0,
        };
        if plot.height >= LEAST_CHART_PX {
            self.chart(paper, plot, span);
        } else if y <= area.bottom() {
            paper.text_within(
                area.x,
                y,
                area.width,
                paper.quiet(),
                "Chart not shown: the picture is too low",
            );
        }
    }

    fn chart(&self, paper: &mut ChartArea<'_>, area: Area, span: TimeSpan) {
        let Some(trend) = &self.trend else { return };
        let highest = trend.values.iter().flatten().map(|(_, high)| *high).fold(self.target, f64::max);
        let axes = Axes { area, span, most: highest * 1.1, is_down: false };
        axes.draw_values(paper);
        axes.draw_times(paper);
        paper.text(area.x - 6.0, area.bottom() + 13.0, paper.quiet().right(), "ms");
        let bands: Vec<_> = trend.times.iter().copied().zip(trend.bands()).collect();
        paper.shape(&axes.steps(&bands, trend.step_ms), &css(paper.theme.focus), 0.3);
        let line = axes.way(trend.times.iter().copied().zip(trend.line()));
        paper.line(&line, paper.theme.focus, 2.0, false);
        let target = axes.way([(span.from, Some(self.target)), (span.until, Some(self.target))]);
        paper.line(&target, paper.theme.warn, 1.0, true);
    }
}
