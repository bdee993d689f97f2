//! What the server keeps to go back to, and what each second brought: asked for again and again while the page is seen. Knows
//! no widget.

use std::time::Duration;

use js_sys::Array;
use leptos::prelude::*;
use radixscope_model::id::Millis;
use wasm_bindgen::{JsCast, JsValue};

use super::Store;
use crate::json::field;
use crate::net;
use crate::time_range::TimeSpan;
use crate::timeline::{TimelineMark, TimelineRow};

/// How often.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// What is kept.
#[derive(Default)]
pub(super) struct RetainedHistory {
    /// The run of the server, as it writes it.
    epoch: String,
    /// The first moment; 0: none.
    pub(super) from_ms: Millis,
    /// The last one that is known to be there.
    to_ms: Millis,
    /// Where segments begin, oldest first.
    pub(super) segments: Vec<Millis>,
    /// What each second brought.
    rows: Vec<TimelineRow>,
    /// Why nothing is kept.
    none: &'static str,
    is_asked: bool,
}

impl Store {
    /// Asks for what is kept, as long as the page is there.
    pub(crate) fn keep_timeline(self) {
        let ask = move || {
            let is_busy = self.live.with_value(|live| live.kept.is_asked);
            if untrack(|| self.ready.get()) && !document().hidden() && !is_busy {
                leptos::task::spawn_local(self.ask_for_timeline());
            }
        };
        Effect::new(move |_| {
            self.ready.track();
            ask();
        });
        if let Ok(asking) = set_interval_with_handle(ask, ASK_EVERY) {
            on_cleanup(move || asking.clear());
        }
    }

    async fn ask_for_timeline(self) {
        self.live.update_value(|live| live.kept.is_asked = true);
        let after = self.live.with_value(|live| live.kept.rows.last().map_or(0, |row| row.at_ms.0));
        let index = net::past::json(&format!("history?after_ms={after}")).await;
        self.live.update_value(|live| live.kept.is_asked = false);
        // The link says that the server does not answer; what was known of the past stays.
        let Ok(index) = index else { return };
        self.live.update_value(|live| live.kept.take(&index));
        let replayed = field(&index, "replay").is_truthy();
        if self.replayed.get_untracked() != replayed {
            self.replayed.set(replayed);
        }
        self.kept_version.update(|n| *n += 1);
    }

    /// From when to when one can go back; `None`: nowhere. Not tracked.
    pub fn kept_span(self) -> Option<TimeSpan> {
        self.live.with_value(|live| {
            let until = live.present.now_ms.max(live.kept.to_ms);
            (live.kept.from_ms.0 > 0).then_some(TimeSpan { from: live.kept.from_ms, until })
        })
    }

    /// Looks at what each second brought.
    pub fn with_rows<T>(self, look: impl FnOnce(&[TimelineRow]) -> T) -> T {
        self.live.with_value(|live| look(&live.kept.rows))
    }

    /// What the newest moment is called. Tracked.
    pub fn newest_name(self) -> &'static str {
        if self.replayed.get() { "End of recording" } else { "Live" }
    }

    /// Why nothing is kept; empty while that is not known. Tracked.
    pub fn why_nothing_is_kept(self) -> &'static str {
        self.kept_version.track();
        self.live.with_value(|live| live.kept.none)
    }
}

impl RetainedHistory {
    /// A segment begins there.
    pub(super) fn begins(&mut self, from: Millis) {
        let at = self.segments.partition_point(|begin| *begin < from);
        if self.segments.get(at) != Some(&from) {
            self.segments.insert(at, from);
        }
    }

    /// Where the segment of a moment stands in the list.
    pub(super) fn place(&self, at: Millis) -> Option<usize> {
        self.segments.partition_point(|begin| *begin <= at).checked_sub(1)
    }

    fn take(&mut self, index: &JsValue) {
        let epoch = field(index, "epoch").as_string().unwrap_or_default();
        if epoch != self.epoch {
            *self = Self { epoch, ..Self::default() };
        }
        let kept = field(index, "kept");
        self.from_ms = millis(&kept, "from_ms");
        self.to_ms = millis(index, "at_ms");
        self.none = match self.from_ms.0 {
            0 if kept.is_null() => "Nothing is kept to go back to (--history 0)",
            0 => "Nothing is kept to go back to: the state is larger than --history-mib",
            _ => "",
        };
        self.segments = list(index, "segments").iter().map(|segment| millis(&segment, "from_ms")).collect();
        let from_ms = self.from_ms;
        self.rows.retain(|row| row.at_ms >= from_ms);
        self.rows.extend(list(index, "rows").iter().map(|row| read_row(&row)));
    }
}

fn list(of: &JsValue, name: &str) -> Array {
    field(of, name).dyn_into().unwrap_or_default()
}

fn number(of: &JsValue, name: &str) -> Option<f64> {
    field(of, name).as_f64()
}

fn millis(of: &JsValue, name: &str) -> Millis {
    Millis(number(of, name).unwrap_or_default() as u64)
}

fn text(of: &JsValue, name: &str) -> String {
    field(of, name).as_string().unwrap_or_default()
}

fn read_row(row: &JsValue) -> TimelineRow {
    let number_of = |name| number(row, name).unwrap_or_default();
    let findings = list(row, "findings");
    let workers = list(row, "workers");
    let marks = findings.iter().map(|mark| finding(&mark)).chain(workers.iter().map(|mark| worker(&mark)));
    TimelineRow {
        at_ms: millis(row, "at_ms"),
        stored: number_of("stored"),
        removed: number_of("removed"),
        decisions: number_of("decisions"),
        ttft_p95_ms: number(&field(row, "ttft_p95_ms"), "low"),
        marks: marks.collect(),
    }
}

fn finding(mark: &JsValue) -> TimelineMark {
    let opened = field(mark, "opened").is_truthy();
    let severity = text(mark, "severity");
    let code = text(mark, "code");
    // It began earlier: a fault has to hold before it is reported.
    let words = format!("{code}{}{severity}", if opened { ": reported, " } else { ": resolved, " });
    let kind = if opened { severity } else { "resolved".to_owned() };
    TimelineMark { kind, words }
}

fn worker(mark: &JsValue) -> TimelineMark {
    let what = text(mark, "what");
    let id = field(mark, "worker");
    let words = match field(mark, "process").as_string() {
        Some(process) => format!("Process {process} {what}"),
        None => format!("Worker {} {what}", text(&id, "worker_id")),
    };
    TimelineMark { kind: what, words }
}
