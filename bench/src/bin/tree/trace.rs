//! What the page's main thread did, from Chromium's own trace: its tasks, and between which of them our hooks saw frames begin.

use radixscope_tests::devtools::Devtools;
use serde_json::{Value, json};

/// Marks of the begin and the end of what is measured.
const BEGIN: &str = "radixscope-begin";
const END: &str = "radixscope-end";
/// A task of a thread.
const TASK: &str = "ThreadControllerImpl::RunTask";
/// Window of live updates.
const WINDOW_US: f64 = 100_000.0;

/// The main thread over a span of time, in microseconds.
pub(crate) struct Trace {
    /// Begin, time taken, processor time taken. By begin.
    tasks: Vec<(f64, f64, f64)>,
    frames: Vec<f64>,
    draws: Vec<f64>,
    begin: f64,
    end: f64,
    /// The page's clock at the begin, microseconds.
    page_begin: f64,
}

/// When frames began and when the tree was put on its canvas, milliseconds of the page's clock.
#[derive(Default, serde::Deserialize)]
pub(crate) struct FrameTimes {
    pub(crate) frames: Vec<f64>,
    pub(crate) draws: Vec<f64>,
}

/// Records while `work` runs.
pub(crate) async fn record<T>(devtools: &Devtools, work: impl AsyncFnOnce() -> T) -> (T, Trace) {
    let config = json!({
        "recordMode": "recordUntilFull", "traceBufferSizeInKb": 400_000,
        "includedCategories": ["toplevel", "blink.user_timing"], "excludedCategories": ["*"],
    });
    let start = json!({"transferMode": "ReportEvents", "traceConfig": config});
    devtools.call("Tracing.start", start).await.expect("a trace");
    let page_begin_ms = mark(devtools, BEGIN).await;
    let done = work().await;
    mark(devtools, END).await;
    devtools.call("Tracing.end", json!({})).await.expect("the trace ends");
    let events = devtools.until("Tracing.tracingComplete").await;
    let lost = &events.last().expect("its end")["params"]["dataLossOccurred"];
    assert_eq!(lost, &json!(false), "the trace is whole");
    let pieces = events.iter().filter_map(|event| event["params"]["value"].as_array());
    (done, Trace::of(pieces.flatten(), page_begin_ms))
}

/// Gives when it is by the page's clock, milliseconds.
async fn mark(devtools: &Devtools, name: &str) -> f64 {
    let marked = devtools.eval(&format!("performance.mark({}).startTime", json!(name)), 10_000).await;
    marked.ok().and_then(|at| at.as_f64()).expect("a mark")
}

impl Trace {
    /// Of the events of a trace; `page_begin_ms`: the page's clock at the mark of the begin.
    pub(crate) fn of<'a>(events: impl Iterator<Item = &'a Value> + Clone, page_begin_ms: f64) -> Self {
        let marks = |name: &'static str| {
            events
                .clone()
                .filter(move |event| event["name"] == name && event["ph"] != "E" && event["ts"] != 0)
        };
        let time = |event: &Value| event["ts"].as_f64().expect("a time");
        let begin = marks(BEGIN).next().expect("the begin is marked");
        let is_main = |event: &&Value| event["pid"] == begin["pid"] && event["tid"] == begin["tid"];
        let mut tasks: Vec<(f64, f64, f64)> = events
            .clone()
            .filter(|event| event["name"] == TASK && event["ph"] == "X")
            .filter(is_main)
            .map(|event| {
                let took = |key: &str| event[key].as_f64();
                let wall = took("dur").unwrap_or_default();
                (time(event), wall, took("tdur").unwrap_or(wall))
            })
            .collect();
        tasks.sort_by(|a, b| a.0.total_cmp(&b.0));
        // A task within a task is part of it.
        let mut end = 0.0;
        tasks.retain(|&(at, took, _)| {
            let is_outer = at >= end;
            end = f64::max(end, at + took);
            is_outer
        });
        let end = marks(END).next().map(time).expect("the end is marked");
        let (begin, page_begin) = (time(begin), page_begin_ms * 1e3);
        Self { tasks, frames: Vec::new(), draws: Vec::new(), begin, end, page_begin }
    }

    /// The same with what the page's hooks saw.
    pub(crate) fn with_frames(mut self, times: FrameTimes) -> Self {
        let in_trace = |times: Vec<f64>| {
            let times = times.into_iter().map(|at_ms| at_ms * 1e3 - self.page_begin + self.begin);
            times.filter(|at| (self.begin..=self.end).contains(at)).collect()
        };
        (self.frames, self.draws) = (in_trace(times.frames), in_trace(times.draws));
        self
    }

    /// Milliseconds of work in each frame in which the tree was put on its canvas, by the clock and by the processor.
    pub(crate) fn drawn_frames_ms(&self) -> Vec<(f64, f64)> {
        // A frame begins with the task that the page's own callbacks run in, not with our callback among them.
        let begin = |&mark: &f64| {
            let task =
                self.tasks.partition_point(|task| task.0 <= mark).checked_sub(1).map(|at| self.tasks[at]);
            task.filter(|task| task.0 + task.1 >= mark).map_or(mark, |task| task.0)
        };
        let begins: Vec<f64> = self.frames.iter().map(begin).collect();
        let drawn = |span: &&[f64]| {
            let first = self.draws.partition_point(|&draw| draw < span[0]);
            self.draws.get(first).is_some_and(|&draw| draw < span[1])
        };
        begins.windows(2).filter(drawn).map(|span| self.work_ms(span[0], span[1])).collect()
    }

    /// Milliseconds of work in each tenth of a second.
    pub(crate) fn windows_ms(&self) -> Vec<(f64, f64)> {
        let n = ((self.end - self.begin) / WINDOW_US) as u32;
        let at = |window: u32| self.begin + f64::from(window) * WINDOW_US;
        (0..n).map(|window| self.work_ms(at(window), at(window + 1))).collect()
    }

    /// Milliseconds of work in all, by the clock and by the processor.
    pub(crate) fn all_ms(&self) -> (f64, f64) {
        self.work_ms(self.begin, self.end)
    }

    /// How long it was.
    pub(crate) fn seconds(&self) -> f64 {
        (self.end - self.begin) / 1e6
    }

    /// Per cent of the time that the main thread worked, by the clock and by the processor.
    pub(crate) fn percent(&self) -> (f64, f64) {
        let (wall, processor) = self.all_ms();
        (wall / 10.0 / self.seconds(), processor / 10.0 / self.seconds())
    }

    /// Work between two times, by the clock and by the processor.
    fn work_ms(&self, from: f64, to: f64) -> (f64, f64) {
        let first = self.tasks.partition_point(|&(at, took, _)| at + took <= from);
        let within = self.tasks[first..].iter().take_while(|task| task.0 < to);
        within.fold((0.0, 0.0), |(wall, processor), &(at, took, processor_took)| {
            let part = (at + took).min(to) - at.max(from);
            let share = if took > 0.0 { part / took } else { 0.0 };
            (wall + part / 1000.0, processor + processor_took * share / 1000.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_once_by_frame_and_by_thread() {
        let task = |tid: u32, ts: u32, dur: u32| json!({"name": TASK, "ph": "X", "pid": 1, "tid": tid, "ts": ts, "dur": dur});
        let mark = |name: &str, ts: u32| json!({"name": name, "ph": "I", "pid": 1, "tid": 7, "ts": ts});
        let events = [
            mark(BEGIN, 1_000),
            task(7, 1_000, 5_000),
            task(7, 2_000, 1_000),  // within the one before
            task(8, 1_000, 90_000), // another thread
            task(7, 30_000, 4_000),
            // Held up by others most of the time.
            json!({"name": TASK, "ph": "X", "pid": 1, "tid": 7, "ts": 60_000, "dur": 1_000, "tdur": 250}),
            mark(END, 201_000),
        ];
        // The page's clock was at 5 s. 20 ms are outside of any task.
        let at = |all: &[f64]| all.iter().map(|at_us| 4_999.0 + at_us / 1e3).collect();
        let times = FrameTimes {
            frames: at(&[1_500.0, 20_000.0, 31_000.0, 60_500.0]),
            draws: at(&[2_500.0, 31_500.0]),
        };
        let trace = Trace::of(events.iter(), 5_000.0).with_frames(times);
        let wall: Vec<f64> = trace.drawn_frames_ms().into_iter().map(|(wall, _)| wall).collect();
        assert_eq!(wall, [5.0, 4.0]);
        let windows: Vec<f64> = trace.windows_ms().into_iter().map(|(wall, _)| wall).collect();
        assert_eq!(windows, [10.0, 0.0]);
        assert_eq!((trace.all_ms(), trace.seconds()), ((10.0, 9.25), 0.2));
    }
}
