//! What the server keeps to go back to, and what each second brought: requested again and again while the page is seen. Knows
//! no widget.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_model::id::Millis;
use radixscope_panels::timeline::{TimelineMark, TimelineRow, newest_name, why_none};
use serde::Deserialize;

use super::Store;
use crate::net;
use crate::time_range::TimeSpan;

/// How often.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// What is retained.
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
    /// Why nothing is retained.
    none: &'static str,
    is_loading: bool,
}

impl Store {
    /// Asks for what is retained, as long as the page is there.
    pub(crate) fn keep_timeline(self) {
        let ask = move || {
            let is_busy = self.live.with_value(|live| live.history.is_loading);
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
        self.live.update_value(|live| live.history.is_loading = true);
        let after = self.live.with_value(|live| live.history.rows.last().map_or(0, |row| row.at_ms.0));
        let index = net::past::json::<HistoryIndex>(&format!("history?after_ms={after}")).await;
        self.live.update_value(|live| live.history.is_loading = false);
        // The link says that the server does not respond; what was known of the past stays.
        let Ok(index) = index else { return };
        let replayed = index.replay;
        self.live.update_value(|live| live.history.update(index));
        if self.replayed.get_untracked() != replayed {
            self.replayed.set(replayed);
        }
        self.history_version.update(|n| *n += 1);
    }

    /// From when to when one can go back; `None`: nowhere. Not tracked.
    pub fn history_span(self) -> Option<TimeSpan> {
        self.live.with_value(|live| {
            let until = live.present.now_ms.max(live.history.to_ms);
            (live.history.from_ms.0 > 0).then_some(TimeSpan { from: live.history.from_ms, until })
        })
    }

    /// Looks at what each second brought.
    pub fn with_rows<T>(self, look: impl FnOnce(&[TimelineRow]) -> T) -> T {
        self.live.with_value(|live| look(&live.history.rows))
    }

    /// What the newest moment is called. Tracked.
    pub fn newest_name(self) -> &'static str {
        newest_name(self.replayed.get())
    }

    /// Why nothing is retained; empty while that is not known. Tracked.
    pub fn why_no_history(self) -> &'static str {
        self.history_version.track();
        self.live.with_value(|live| live.history.none)
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

    fn update(&mut self, index: HistoryIndex) {
        if index.epoch != self.epoch {
            *self = Self { epoch: index.epoch, ..Self::default() };
        }
        let is_on = index.retained.is_some();
        self.from_ms = index.retained.and_then(|retained| retained.from_ms).unwrap_or_default();
        self.to_ms = index.at_ms;
        self.none = why_none(self.from_ms, is_on);
        self.segments = index.segments.iter().map(|segment| segment.from_ms).collect();
        let from_ms = self.from_ms;
        self.rows.retain(|row| row.at_ms >= from_ms);
        self.rows.extend(index.rows.into_iter().map(TimelineRow::from));
    }
}

/// What is retained, as the API gives it.
#[derive(Deserialize)]
struct HistoryIndex {
    epoch: String,
    at_ms: Millis,
    replay: bool,
    #[serde(rename = "kept")]
    retained: Option<Retention>,
    segments: Vec<Segment>,
    rows: Vec<HistoryRow>,
}

#[derive(Deserialize)]
struct Retention {
    /// `None`: nothing is retained yet.
    from_ms: Option<Millis>,
}

#[derive(Deserialize)]
struct Segment {
    from_ms: Millis,
}

#[derive(Deserialize)]
struct HistoryRow {
    at_ms: Millis,
    stored: f64,
    removed: f64,
    decisions: f64,
    ttft_p95_ms: Option<LowerBound>,
    findings: Vec<FindingMark>,
    workers: Vec<WorkerMark>,
}

#[derive(Deserialize)]
struct LowerBound {
    low: f64,
}

#[derive(Deserialize)]
struct FindingMark {
    code: String,
    severity: String,
    opened: bool,
}

#[derive(Deserialize)]
struct WorkerMark {
    what: String,
    worker: Option<WorkerRef>,
    process: Option<String>,
}

#[derive(Deserialize)]
struct WorkerRef {
    worker_id: String,
}

impl From<HistoryRow> for TimelineRow {
    fn from(row: HistoryRow) -> Self {
        let findings = row
            .findings
            .into_iter()
            .map(|FindingMark { code, severity, opened }| TimelineMark::of_finding(&code, severity, opened));
        let workers = row.workers.into_iter().map(|WorkerMark { what, worker, process }| {
            let worker = worker.map(|worker| worker.worker_id);
            TimelineMark::of_member(what, worker.as_deref(), process.as_deref())
        });
        Self {
            at_ms: row.at_ms,
            stored: row.stored,
            removed: row.removed,
            decisions: row.decisions,
            ttft_p95_ms: row.ttft_p95_ms.map(|p95| p95.low),
            marks: findings.chain(workers).collect(),
        }
    }
}
