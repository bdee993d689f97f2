//! The latest routing decisions and the KV hit rate over them.

use radixscope_insight::view_context::ViewContext;
use radixscope_model::id::Millis;
use radixscope_model::number_format::clock;

use super::super::decisions::{
    self, CACHED, DecisionRow, HIT_RATE, HitRates, OVERALL, PROMPT, PromptBars, RECENT, SOURCE, TIME, TITLE,
    WORKER,
};
use super::chart_area::{Area, ChartArea, LINE_PX};
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const ROW_PX: f64 = 18.0;
/// More rows than this fit on no screen.
const MAX_ROWS: usize = 200;
/// Least width that has room for the blocks of the prompt.
const LEAST_FOR_PROMPT_PX: f64 = 260.0;

/// Where columns begin or, of numbers, end.
struct Columns {
    worker: f64,
    /// `None`, as with the source: there is no room for it.
    prompt: Option<f64>,
    cached: f64,
    rate: f64,
    /// Where the share is written, right of its bar.
    right: f64,
    source: Option<f64>,
}

struct Decisions {
    rates: HitRates,
    rows: Vec<DecisionRow>,
}

pub(super) fn content(shown: &ViewContext<'_>, request: &PanelRequest, now: Millis) -> Content {
    let rates = HitRates::of(shown, request.worker, now);
    if rates.overall.count == 0 {
        return Content::empty(TITLE, &decisions::empty(shown, request.worker));
    }
    let rows = decisions::rows(shown, request.worker, MAX_ROWS);
    Content::new(TITLE, rates.caption(), Decisions { rates, rows })
}

impl Body for Decisions {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = area.y + 14.0;
        let big = paper.plain().bold().size(16.0);
        let recent = self.rates.recent.rate_text();
        paper.text(area.x, y, big, &recent);
        let after = area.x + big.width(&recent) + 8.0;
        let labels = format!("{RECENT} · {} {OVERALL}", self.rates.overall.rate_text());
        paper.text_within(after, y, area.right() - after, paper.quiet(), &labels);
        let columns = Columns::of(area);
        let mut y = y + LINE_PX + 7.0;
        let quiet = paper.quiet();
        let time = if columns.source.is_some() { format!("{TIME}, UTC") } else { "UTC".to_owned() };
        paper.text(area.x, y, quiet, &time);
        paper.text(columns.worker, y, quiet, WORKER);
        if let Some(prompt) = columns.prompt {
            paper.text(prompt, y, quiet.right(), PROMPT);
        }
        paper.text(columns.cached, y, quiet.right(), CACHED);
        paper.text(columns.rate, y, quiet, HIT_RATE);
        if let Some(source) = columns.source {
            paper.text(source, y, quiet, SOURCE);
        }
        let bars = PromptBars::of(self.rows.iter().map(|row| row.prompt_blocks));
        for row in &self.rows {
            y += ROW_PX;
            if y > area.bottom() {
                return;
            }
            draw_row(row, bars, paper, area.x, y, &columns);
        }
    }
}

impl Columns {
    fn of(area: Area) -> Self {
        let at = |share: f64| area.x + area.width * share;
        if area.is_wide() {
            let source = at(0.88);
            return Self {
                worker: at(0.16),
                prompt: Some(at(0.42)),
                cached: at(0.56),
                rate: at(0.60),
                right: source - 14.0,
                source: Some(source),
            };
        }
        let worker = area.x + 62.0;
        let prompt = (area.width >= LEAST_FOR_PROMPT_PX).then_some(worker + 88.0);
        let cached = prompt.unwrap_or(worker + 40.0) + 48.0;
        Self { worker, prompt, cached, rate: cached + 10.0, right: area.right(), source: None }
    }
}

fn draw_row(
    row: &DecisionRow,
    bars: PromptBars,
    paper: &mut ChartArea<'_>,
    left: f64,
    y: f64,
    columns: &Columns,
) {
    let plain = paper.plain();
    paper.text(left, y, plain, &clock(row.at_ms.0, 0));
    paper.chip(columns.worker, y, row.worker);
    if let Some(prompt) = columns.prompt {
        paper.text(prompt, y, plain.right(), &row.prompt);
    }
    paper.text(columns.cached, y, plain.right(), &row.cached);
    let width = (columns.right - columns.rate - 42.0).max(4.0);
    if let Some(length) = bars.length(row.prompt_blocks) {
        let bar = Area { x: columns.rate, y: y - 8.0, width: width * length, height: 8.0 };
        let fill = css(paper.theme.edge);
        paper.meter(bar, row.share, &fill);
    }
    paper.text(columns.right, y, plain.right(), &row.share_text());
    if let Some(source) = columns.source {
        paper.text(source, y, paper.quiet(), row.source);
    }
}
