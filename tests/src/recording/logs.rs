//! Recorded logs, written line by line at the time that each line names, with that time moved to today.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use radixscope_captures::Recording;

use super::Clock;

/// Length of a time as Dynamo writes it: `2026-11-20T18:02:26.952715Z`.
const TIME_LEN: usize = 27;
/// What comes before it in a line of JSON.
const JSON_TIME: &str = "{\"time\":\"";

/// A log that is written again.
pub(super) struct Log {
    pub(super) path: PathBuf,
    lines: Vec<Line>,
}

struct Line {
    at_s: f64,
    /// Where in `text` the time stands, if it does.
    time_at: Option<usize>,
    text: String,
}

/// The logs of a capture, each to be written to a file of its name in `folder`.
pub(super) fn load(capture: &str, folder: &Path) -> Vec<Log> {
    let recording = Recording::fixture(capture);
    let log = |process: String| Log {
        path: folder.join(format!("{process}.log")),
        lines: timed(recording.log(&process)),
    };
    recording.logs().into_iter().map(log).collect()
}

fn timed(lines: impl Iterator<Item = String>) -> Vec<Line> {
    let mut at_s = 0.0;
    let line = |text: String| {
        let time = time(&text);
        if let Some((_, written_s)) = time {
            at_s = written_s;
        }
        Line { at_s, time_at: time.map(|(at, _)| at), text }
    };
    lines.map(line).collect()
}

/// Where a line's time stands, and the time in Unix seconds.
fn time(text: &str) -> Option<(usize, f64)> {
    let at = if text.starts_with(JSON_TIME) { JSON_TIME.len() } else { 0 };
    let time = humantime::parse_rfc3339(text.get(at..at + TIME_LEN)?).ok()?;
    Some((at, time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64()))
}

impl Log {
    /// Writes all lines. The file is there at once, as that of a process that runs.
    pub(super) fn write(&mut self, clock: Clock) -> impl Future<Output = ()> + use<> {
        let (path, lines) = (self.path.clone(), std::mem::take(&mut self.lines));
        async move {
            let mut file =
                OpenOptions::new().create(true).append(true).open(&path).expect("a writable folder");
            for line in lines {
                clock.until(line.at_s).await;
                writeln!(file, "{}", line.today(clock)).expect("a writable file");
            }
        }
    }
}

impl Line {
    fn today(mut self, clock: Clock) -> String {
        if let Some(at) = self.time_at {
            let today: SystemTime = UNIX_EPOCH + Duration::from_secs_f64(clock.today_s(self.at_s));
            let time = humantime::format_rfc3339_micros(today).to_string();
            self.text.replace_range(at..at + TIME_LEN, &time);
        }
        self.text
    }
}
