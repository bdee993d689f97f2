//! TTFT and ITL: percentiles against the target, and the 95th over time.

use radixscope_insight::latency::{self, Quantity, Times, Trend};
use radixscope_insight::time_range::TimeSpan;
use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::number_format::UNKNOWN;
use radixscope_model::range::{Range, TargetComparison};

use super::axis::{Axes, span_text};
use super::chart_area::{Area, ChartArea, LINE_PX, Style};
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const TITLE: &str = "Latency";
const AXIS_PX: f64 = 46.0;
/// Beside each other from this width on.
const WIDE_PX: f64 = 620.0;

/// A lower chart shows nothing.
const LEAST_CHART_PX: f64 = 30.0;

/// One quantity.
struct Card {
    quantity: Quantity,
    name: &'static str,
    /// The figure that is shown; `None`: not reported.
    times: Option<Times>,
    source: String,
    target: f64,
    trend: Option<Trend>,
}

struct Latency {
    cards: [Card; 2],
    span: TimeSpan,
}

pub(super) fn content(shown: &ViewContext<'_>, asked: &PanelRequest, now: Millis) -> Content {
    let card = |quantity, name, target| {
        let all = latency::latest(shown.cluster, quantity, now);
        Card {
            quantity,
            name,
            source: latency::source_text(&all, quantity),
            times: all.into_iter().next(),
            target,
            trend: latency::trend(shown.cluster, quantity, (asked.span.from, asked.span.until), now),
        }
    };
    let [ttft, itl] = asked.targets_ms;
    let cards = [card(Quantity::Ttft, "TTFT", ttft), card(Quantity::Tpot, "ITL", itl)];
    if cards.iter().all(|card| card.times.is_none()) {
        let text = format!(
            "Scrape a frontend's metrics: {}. Or read a frontend's log, which reports each request: --logs FILE (Dynamo ≥ 1.5).",
            latency::ENABLE_FRONTEND
        );
        return Content::empty(TITLE, "Not reported: time to first token, inter-token latency", text);
    }
    let facts = format!(
        "Percentiles over the last 60 s, all pools. Chart: p95 over the 60 s before each point, ms, {}; a band: the bucket that it \
         lies in",
        span_text(asked.span)
    );
    Content::new(TITLE, facts, Latency { cards, span: asked.span })
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
        let words =
            |range: Option<Range>| range.map_or(UNKNOWN.to_owned(), |range| self.quantity.range_text(&range));
        let [p50, p95, p99] = quantiles.map_or([None; 3], |all| all.map(Some));
        let judged =
            self.times.as_ref().map_or(TargetComparison::Unknown, |times| times.standing(self.target));
        let colour = match judged {
            TargetComparison::Within => paper.theme.good_text,
            TargetComparison::Above => paper.theme.bad_text,
            TargetComparison::Unknown => paper.theme.text,
        };
        let mut y = area.y + 14.0;
        let (name, value) = (format!("{} p95", self.name), words(p95));
        let (title, big) = (paper.plain().bold().size(13.0), Style::of(colour).bold().size(15.0));
        let at = area.x + title.width(&name) + 8.0;
        paper.text(area.x, y, title, &name);
        paper.text(at, y, big, &value);
        let others = format!("p50 {}   p99 {}", words(p50), words(p99));
        let quiet = paper.quiet();
        if at + big.width(&value) + quiet.width(&others) + 10.0 <= area.right() {
            paper.text(area.right(), y, quiet.right(), &others);
        } else {
            y += LINE_PX;
            paper.text_within(area.x, y, area.width, quiet, &others);
        }
        let Some(times) = &self.times else {
            let text = "Not reported: scrape a frontend's metrics (--prometheus), or read its log (--logs FILE, Dynamo ≥ 1.5)";
            paper.lines((area.x, y + LINE_PX + 2.0), area.width, paper.quiet(), text, 3);
            return;
        };
        let target = self.quantity.to_text(self.target);
        let standing = match quantiles {
            Some(_) => times.standing_text(self.quantity, self.target),
            None => "no sample in 60 s".to_owned(),
        };
        y += LINE_PX + 2.0;
        let words = match standing.starts_with("target") {
            true => standing,
            false => format!("{standing}; target {target}"),
        };
        paper.text_within(area.x, y, area.width, Style::of(colour), &words);
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
        let points: Vec<(Millis, Option<Range>)> = self.trend.iter().flat_map(Trend::points).collect();
        let ends = |range: Range| (range.low(), range.high().unwrap_or(range.low()));
        let known = points.iter().filter_map(|(_, range)| Some(ends((*range)?).1));
        let most = known.fold(self.target, f64::max) * 1.1;
        let axes = Axes { area, span, most, is_down: false };
        axes.draw_values(paper);
        axes.draw_times(paper);
        paper.text(area.x - 6.0, area.bottom() + 13.0, paper.quiet().right(), "ms");
        let step_ms = self.trend.as_ref().map_or(0, |trend| trend.step_ms);
        let band = |range: Range| Some(ends(range)).filter(|(low, high)| low != high);
        let bands: Vec<_> = points.iter().map(|&(at, range)| (at, range.and_then(band))).collect();
        paper.shape(&axes.steps(&bands, step_ms), &css(paper.theme.focus), 0.3);
        let exact = |range: Range| Some(ends(range)).filter(|(low, high)| low == high).map(|(low, _)| low);
        let line = axes.way(points.iter().map(|&(at, range)| (at, range.and_then(exact))));
        paper.line(&line, paper.theme.focus, 2.0, false);
        let target = axes.way([(span.from, Some(self.target)), (span.until, Some(self.target))]);
        paper.line(&target, paper.theme.warn, 1.0, true);
    }
}
