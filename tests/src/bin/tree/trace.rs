//! What the page's main thread did, from Chromium's own trace: its tasks, and the marks that our hooks set.

use radixscope_tests::devtools::Devtools;
use serde_json::{Value, json};

/// Marks of a frame's begin and of a picture put on the tree's canvas.
const FRAME: &str = "radixscope-frame";
const DRAW: &str = "radixscope-draw";
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
}

/// Records while `work` runs.
pub(crate) async fn record<T>(devtools: &Devtools, work: impl AsyncFnOnce() -> T) -> (T, Trace) {
    let config = json!({
        "recordMode": "recordUntilFull", "traceBufferSizeInKb": 400_000,
        "includedCategories": ["toplevel", "blink.user_timing"], "excludedCategories": ["*"],
    });
    let start = json!({"transferMode": "ReportEvents", "traceConfig": config});
    devtools.call("Tracing.start", start).await.expect("a trace");
    mark(devtools, BEGIN).await;
    let done = work().await;
    mark(devtools, END).await;
    devtools.call("Tracing.end", json!({})).await.expect("the trace ends");
    let events = devtools.until("Tracing.tracingComplete").await;
    let lost = &events.last().expect("its end")["params"]["dataLossOccurred"];
    assert_eq!(lost, &json!(false), "the trace is whole");
    let pieces = events.iter().filter_map(|event| event["params"]["value"].as_array());
    (done, Trace::of(pieces.flatten()))
}

async fn mark(devtools: &Devtools, name: &str) {
    devtools.eval(&format!("void performance.mark({})", json!(name)), 10_000).await.expect("a mark");
}

impl Trace {
    pub(crate) fn of<'a>(events: impl Iterator<Item = &'a Value> + Clone) -> Self {
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
        let times = |name| {
            let mut times: Vec<f64> = marks(name).map(time).collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let end = marks(END).next().map(time).expect("the end is marked");
        Self { tasks, frames: times(FRAME), draws: times(DRAW), begin: time(begin), end }
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
            mark(FRAME, 1_500),
            mark(DRAW, 2_500),
            mark(FRAME, 20_000), // outside of any task
            task(7, 30_000, 4_000),
            mark(FRAME, 31_000),
            mark(DRAW, 31_500),
            // Held up by others most of the time.
            json!({"name": TASK, "ph": "X", "pid": 1, "tid": 7, "ts": 60_000, "dur": 1_000, "tdur": 250}),
            mark(FRAME, 60_500),
            mark(END, 201_000),
        ];
        let trace = Trace::of(events.iter());
        let wall: Vec<f64> = trace.drawn_frames_ms().into_iter().map(|(wall, _)| wall).collect();
        assert_eq!(wall, [5.0, 4.0]);
        let windows: Vec<f64> = trace.windows_ms().into_iter().map(|(wall, _)| wall).collect();
        assert_eq!(windows, [10.0, 0.0]);
        assert_eq!((trace.all_ms(), trace.seconds()), ((10.0, 9.25), 0.2));
    }
}
