//! The latest routing decisions and the KV hit rate over them.

use radixscope_insight::shown::{Shown, caption, source_name};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, clock, count, percent};

use super::paper::{Area, LINE_PX, Paper};
use super::{Asked, Body, Content};
use crate::colour::css;

const TITLE: &str = "Decisions";
const ROW_PX: f64 = 18.0;
/// More rows than this fit on no screen.
const MAX_ROWS: usize = 200;
/// Where columns begin or, of numbers, end: shares of the width.
const WORKER: f64 = 0.16;
const PROMPT: f64 = 0.42;
const CACHED: f64 = 0.56;
const RATE: f64 = 0.60;
const SOURCE: f64 = 0.88;
/// Below this width there is no room for the source.
const WIDE_PX: f64 = 420.0;

struct Row {
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
    rows: Vec<Row>,
}

pub(super) fn content(shown: &Shown<'_>, asked: &Asked, now: Millis) -> Content {
    let (recent, all) = shown.decision_figures(asked.worker, now);
    if all.count == 0 {
        return empty(shown, asked);
    }
    let number = |n: Option<u64>| n.map_or(UNKNOWN.to_owned(), count);
    let rows = shown.decisions_on(asked.worker).take(MAX_ROWS).map(|d| Row {
        time: clock(d.at_ms.0, 0),
        worker: d.decision.worker,
        prompt: number(d.decision.isl_blocks),
        cached: number(d.overlap_blocks().filter(|_| !d.ignores_cache)),
        share: d.overlap_share(),
        source: source_name(d.decision.source),
    });
    let body = Decisions { recent: recent.rate_words(), all: all.rate_words(), rows: rows.collect() };
    Content::new(TITLE, caption(&recent, &all), body)
}

fn empty(shown: &Shown<'_>, asked: &Asked) -> Content {
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
    fn draw(&self, paper: &mut Paper<'_>, area: Area) {
        let y = area.y + 14.0;
        let big = paper.plain().bold().size(16.0);
        paper.text(area.x, y, big, &self.recent);
        let after = area.x + big.width(&self.recent) + 8.0;
        let words = format!("KV hit rate, last 60 s · {} since start", self.all);
        paper.text_within(after, y, area.right() - after, paper.quiet(), &words);
        let is_wide = area.width >= WIDE_PX;
        let at = |share: f64| area.x + area.width * share;
        let mut y = y + LINE_PX + 7.0;
        let quiet = paper.quiet();
        paper.text(area.x, y, quiet, "Time, UTC");
        paper.text(at(WORKER), y, quiet, "Worker");
        paper.text(at(PROMPT), y, quiet.right(), "Prompt");
        paper.text(at(CACHED), y, quiet.right(), "Cached");
        paper.text(at(RATE), y, quiet, "Hit rate");
        if is_wide {
            paper.text(at(SOURCE), y, quiet, "Source");
        }
        for row in &self.rows {
            y += ROW_PX;
            if y > area.bottom() {
                return;
            }
            row.draw(paper, area, y, is_wide);
        }
    }
}

impl Row {
    fn draw(&self, paper: &mut Paper<'_>, area: Area, y: f64, is_wide: bool) {
        let at = |share: f64| area.x + area.width * share;
        let plain = paper.plain();
        paper.text(area.x, y, plain, &self.time);
        paper.chip(at(WORKER), y, self.worker);
        paper.text(at(PROMPT), y, plain.right(), &self.prompt);
        paper.text(at(CACHED), y, plain.right(), &self.cached);
        let right = if is_wide { at(SOURCE) - 14.0 } else { area.right() };
        let bar = Area { x: at(RATE), y: y - 8.0, width: (right - at(RATE) - 42.0).max(4.0), height: 8.0 };
        let fill = css(paper.theme.focus);
        paper.meter(bar, self.share, &fill);
        paper.text(right, y, plain.right(), &self.share.map_or(UNKNOWN.to_owned(), percent));
        if is_wide {
            paper.text(at(SOURCE), y, paper.quiet(), self.source);
        }
    }
}
