//! The checkpoint file of a soak: a line of JSON for each part, sample, fault and end. Only ever appended to, so that a run that is
//! killed loses one sample, and another part continues it. Knows nothing of what the figures mean.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Time between two samples, seconds.
pub(super) const SAMPLE_EVERY_S: u64 = 10;

/// A line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub(super) enum Line {
    /// A part begins: a server was started for it. What follows up to the next belongs to it.
    Part(Part),
    /// How it was at a moment.
    Sample(Box<Sample>),
    /// A fault began or ended, or something happened that nobody caused.
    Event(Event),
    /// The part ended as it should, and everything published was received or lost.
    End(End),
}

/// How a part is run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    /// What its random choices follow from.
    pub(super) seed: u64,
    /// The server, as it calls itself.
    pub(super) server: String,
    /// Seconds after its start from which memory, descriptors and threads count.
    pub(super) warm_up_s: f64,
    /// KV events a second that are published.
    pub(super) events_per_s: u64,
    /// Faults that cannot be had on this machine.
    pub(super) left_out: Vec<String>,
}

/// How it was at a moment. Counters are those since the part began.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Seconds since the part began.
    pub(super) at_s: f64,
    /// Memory of the server.
    pub(super) rss_bytes: u64,
    /// Of that, what it allocated: the rest are pages of the program, which are read when they are first used.
    pub(super) anonymous_bytes: u64,
    /// Its open descriptors.
    pub(super) descriptors: u64,
    /// Its threads.
    pub(super) threads: u64,
    /// Its processor time, seconds.
    pub(super) cpu_s: f64,
    /// Faults that were in force at some time since the last sample.
    pub(super) faults: Vec<String>,
    /// What viewers saw.
    pub(super) viewers: ViewerFigures,
    /// What came over each event plane.
    pub(super) planes: Vec<Plane>,
    /// The last record, if the server answered.
    pub(super) seq: Option<u64>,
    /// Bytes of the recording's files, if the server answered.
    pub(super) recording_bytes: Option<u64>,
    /// Gaps of the recording, if the server answered.
    pub(super) recording_gaps: Option<u64>,
    /// Why nothing is recorded.
    pub(super) recording_error: Option<String>,
    /// Codes of active findings, in alphabetical order.
    pub(super) findings: Vec<String>,
}

/// What the viewers saw.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct ViewerFigures {
    /// Viewers now.
    pub(super) present: u64,
    /// Viewers that joined, those included that resumed.
    pub(super) joined: u64,
    /// Digests of the server that were compared with a viewer's.
    pub(super) checks: u64,
    /// Of these, those that differed.
    pub(super) differences: u64,
    /// Of these, those after which the same viewer agreed again, with a new snapshot.
    pub(super) healed: u64,
    /// Records that the server skipped for viewers that were too slow.
    pub(super) skipped: u64,
    /// Connections that ended although no viewer wanted to leave, other than by a difference.
    pub(super) broken: u64,
    /// Attempts to join that failed: each viewer tried again.
    #[serde(default)]
    pub(super) not_taken: u64,
    /// Why the last of these ended or failed.
    pub(super) broken_why: Option<String>,
    /// 99 of 100 gaps between two batches at a viewer since the last sample were at most this long; `None`: there was none.
    pub(super) gap_p99_ms: Option<u64>,
    /// The longest of them.
    pub(super) gap_max_ms: Option<u64>,
}

/// What came over an event plane.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Plane {
    /// As the server calls its kind.
    pub(super) kind: String,
    /// Messages to which a publisher gave a number.
    pub(super) published: u64,
    /// Messages that the server received.
    pub(super) received: u64,
    /// Messages that the server says were lost.
    pub(super) missed: u64,
    /// Whether the server says that these may be more.
    pub(super) is_at_least: bool,
}

/// A fault began or ended, or something happened that nobody caused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Event {
    /// Seconds since the part began.
    pub(super) at_s: f64,
    /// What.
    pub(super) what: String,
}

/// The part's accounts, once nothing was on its way any more.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct End {
    /// Seconds since the part began.
    pub(super) at_s: f64,
    /// What came over each event plane.
    pub(super) planes: Vec<Plane>,
    /// The workers that were there at the end.
    pub(super) workers: Vec<WorkerBlocks>,
    /// Lines about routing that were written to the log, over all its rotations.
    pub(super) log_lines: u64,
    /// Of these, those that the server read.
    pub(super) log_lines_read: u64,
    /// How often a full disk stopped the recording.
    pub(super) full_disks: u64,
    /// Gaps that the recording names since the part began.
    pub(super) recording_gaps: u64,
    /// Why nothing was recorded at the end.
    pub(super) recording_error: Option<String>,
    /// Why what is recorded cannot be read, if it cannot.
    pub(super) recording_unreadable: Option<String>,
}

/// What a worker holds, and what is shown of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct WorkerBlocks {
    /// Its id.
    pub(super) worker_id: u64,
    /// Blocks that it holds.
    pub(super) held: u64,
    /// Blocks that the server shows; `None`: it does not list the worker.
    pub(super) shown: Option<u64>,
    /// Whether the server says that it knows all of them.
    pub(super) is_complete: bool,
}

/// A part with its lines.
#[derive(Clone, Debug)]
pub(super) struct PartLines {
    /// How it is run.
    pub(super) part: Part,
    /// Its samples, in order.
    pub(super) samples: Vec<Sample>,
    /// What happened, in order.
    pub(super) events: Vec<Event>,
    /// Its accounts; `None` if it was killed.
    pub(super) end: Option<End>,
}

#[cfg(test)]
impl PartLines {
    /// A part without warm-up and events, for tests.
    pub(super) fn of_samples(samples: Vec<Sample>) -> Self {
        let part =
            Part { seed: 1, server: String::new(), warm_up_s: 0.0, events_per_s: 1, left_out: Vec::new() };
        Self { part, samples, events: Vec::new(), end: None }
    }
}

/// Writes lines.
pub(super) struct Writer(File);

impl Writer {
    /// Appends to the file, or makes it.
    ///
    /// # Panics
    /// If it cannot be written.
    pub(super) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self(file.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    }

    /// Appends a line.
    ///
    /// # Panics
    /// If it cannot be written.
    pub(super) fn write(&mut self, line: &Line) {
        let text = serde_json::to_string(line).expect("plain data");
        writeln!(self.0, "{text}").expect("the checkpoint file can be written");
    }
}

/// The parts in a file. A last line that was cut off by the end of a run is left out.
///
/// # Errors
/// If it cannot be read or is no checkpoint file.
pub(super) fn read(path: &Path) -> Result<Vec<PartLines>, String> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| at(&error))?;
    let lines: Vec<String> =
        BufReader::new(file).lines().collect::<Result<_, _>>().map_err(|error| at(&error))?;
    let mut parts: Vec<PartLines> = Vec::new();
    for (number, text) in lines.iter().enumerate() {
        let line = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(_) if number + 1 == lines.len() => break,
            Err(error) => return Err(at(&format!("line {}: {error}", number + 1))),
        };
        if let Line::Part(part) = line {
            parts.push(PartLines { part, samples: Vec::new(), events: Vec::new(), end: None });
            continue;
        }
        let last = parts.last_mut().ok_or_else(|| at(&"it does not begin with a part"))?;
        match line {
            Line::Part(_) => {}
            Line::Sample(sample) => last.samples.push(*sample),
            Line::Event(event) => last.events.push(event),
            Line::End(end) => last.end = Some(end),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part {
        let server = "radixscope 0.2.0".to_owned();
        Part { seed: 7, server, warm_up_s: 1.0, events_per_s: 1_000, left_out: Vec::new() }
    }

    #[test]
    fn parts_are_read_as_written_and_a_torn_last_line_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.jsonl");
        let sample = Sample { at_s: 10.0, rss_bytes: u64::MAX, seq: None, ..Sample::default() };
        let end = End { log_lines: 3, ..End::default() };
        let mut writer = Writer::open(&path);
        writer.write(&Line::Part(part()));
        writer.write(&Line::Sample(Box::new(sample.clone())));
        writer.write(&Line::End(end.clone()));
        drop(writer);
        let mut writer = Writer::open(&path);
        writer.write(&Line::Part(part()));
        writer.write(&Line::Event(Event { at_s: 1.5, what: "NATS killed".to_owned() }));
        write!(writer.0, "{{\"line\":\"sam").unwrap();
        let parts = read(&path).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!((&parts[0].samples, &parts[0].end), (&vec![sample], &Some(end)));
        assert_eq!((parts[1].events.len(), &parts[1].end), (1, &None));
    }

    #[test]
    fn a_file_of_another_kind_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.jsonl");
        std::fs::write(&path, "{\"line\":\"event\",\"at_s\":1.0,\"what\":\"x\"}\n").unwrap();
        assert!(read(&path).unwrap_err().contains("does not begin with a part"));
        std::fs::write(&path, "no JSON\n{}\n").unwrap();
        assert!(read(&path).unwrap_err().contains("line 1"));
    }
}
