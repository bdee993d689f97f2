//! The latest routing decisions and the KV hit rate over them.

use radixscope_insight::view_context::{ViewContext, caption, source_name};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, clock, count, percent};

use super::chart_area::{Area, ChartArea, LINE_PX};
use super::{Body, Content, PanelRequest};
use crate::colour::css;

const TITLE: &str = "Decisions";
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

struct DecisionCells {
    time: String,
    worker: WorkerIx,
    prompt: String,
    cached: String,
    share: Option<f64>,
    source: &'static str,
}

struct Decisions {
    recent: String,
    all: String,
    rows: Vec<DecisionCells>,
}

pub(super) fn content(shown: &ViewContext<'_>, asked: &PanelRequest, now: Millis) -> Content {
    let (recent, all) = shown.decision_figures(asked.worker, now);
    if all.count == 0 {
        return empty(shown, asked);
    }
    let number = |n: Option<u64>| n.map_or(UNKNOWN.to_owned(), count);
    let rows = shown.decisions_on(asked.worker).take(MAX_ROWS).map(|d| DecisionCells {
        time: clock(d.at_ms.0, 0),
        worker: d.decision.worker,
        prompt: number(d.decision.isl_blocks),
        cached: number(d.overlap_blocks().filter(|_| !d.ignores_cache)),
        share: d.overlap_share(),
        source: source_name(d.decision.source),
    });
    let body = Decisions { recent: recent.rate_text(), all: all.rate_text(), rows: rows.collect() };
    Content::new(TITLE, caption(&recent, &all), body)
}

fn empty(shown: &ViewContext<'_>, asked: &PanelRequest) -> Content {
    if asked.worker.is_some() {
        return Content::empty(TITLE, "No decision for this worker yet", "");
    }
    match shown.decisions_hint() {
        Some(hint) => Content::empty(TITLE, "No routing decisions received", hint.to_string()),
        None => Content::empty(
            TITLE,
            "No decision received yet",
            "Every request that the KV router places appears here, with the share of its prompt that was cached on the chosen \
             worker.",
        ),
    }
}

impl Body for Decisions {
    fn draw(&self, paper: &mut ChartArea<'_>, area: Area) {
        let y = area.y + 14.0;
        let big = paper.plain().bold().size(16.0);
        paper.text(area.x, y, big, &self.recent);
        let after = area.x + big.width(&self.recent) + 8.0;
        let words = format!("KV hit rate, last 60 s · {} since start", self.all);
        paper.text_within(after, y, area.right() - after, paper.quiet(), &words);
        let columns = Columns::of(area);
        let mut y = y + LINE_PX + 7.0;
        let quiet = paper.quiet();
        paper.text(area.x, y, quiet, if columns.source.is_some() { "Time, UTC" } else { "UTC" });
        paper.text(columns.worker, y, quiet, "Worker");
        if let Some(prompt) = columns.prompt {
            paper.text(prompt, y, quiet.right(), "Prompt");
        }
        paper.text(columns.cached, y, quiet.right(), "Cached");
        paper.text(columns.rate, y, quiet, "Hit rate");
        if let Some(source) = columns.source {
            paper.text(source, y, quiet, "Source");
        }
        for row in &self.rows {
            y += ROW_PX;
            if y > area.bottom() {
                return;
            }
            row.draw(paper, area.x, y, &columns);
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

impl DecisionCells {
    fn draw(&self, paper: &mut ChartArea<'_>, left: f64, y: f64, columns: &Columns) {
        let plain = paper.plain();
        paper.text(left, y, plain, &self.time);
        paper.chip(columns.worker, y, self.worker);
        if let Some(prompt) = columns.prompt {
            paper.text(prompt, y, plain.right(), &self.prompt);
        }
        paper.text(columns.cached, y, plain.right(), &self.cached);
        let width = (columns.right - columns.rate - 42.0).max(4.0);
        let bar = Area { x: columns.rate, y: y - 8.0, width, height: 8.0 };
        let fill = css(paper.theme.edge);
        paper.meter(bar, self.share, &fill);
        paper.text(columns.right, y, plain.right(), &self.share.map_or(UNKNOWN.to_owned(), percent));
        if let Some(source) = columns.source {
            paper.text(source, y, paper.quiet(), self.source);
        }
    }
}
