//! What was found, as text: each file with what it was taken for, the clocks, the runs, and what is absent.

use std::fmt;

use radixscope_model::id::Millis;
use radixscope_model::number_format::{count, duration, percent, plural};
use radixscope_model::record::Phase;
use radixscope_state::cluster::Cluster;
use time::OffsetDateTime;

use super::clock_words;
use super::clocks::Clock;
use super::file::FileReport;
use super::kind::Kind;
use super::runs::Stretch;

/// Runs that are listed, the last ones.
const MAX_RUNS_LISTED: usize = 50;

/// See the module.
pub(crate) struct Report {
    files: Vec<FileReport>,
    clocks: Vec<Clock>,
    runs: Vec<Stretch>,
    run: Stretch,
    /// Records of other runs.
    elsewhere: u64,
    decisions: u64,
    hit_rate: Option<f64>,
    clients: (u64, u64),
    findings: Vec<String>,
    /// Whether most decisions have the costs of several candidates.
    has_costs: bool,
}

impl Report {
    pub(super) fn new(
        files: Vec<FileReport>,
        clocks: Vec<Clock>,
        (runs, run): (Vec<Stretch>, Stretch),
        elsewhere: u64,
        cluster: &Cluster,
    ) -> Self {
        let totals = cluster.decisions().totals();
        let active = cluster.findings().iter().filter(|finding| finding.phase != Phase::Cleared);
        let all = cluster.decisions().newest_first();
        let with_costs = all.filter(|entry| entry.decision.candidates.len() > 1).count();
        Self {
            files,
            clocks,
            runs,
            run,
            elsewhere,
            decisions: totals.count,
            hit_rate: totals.overlap_share(),
            clients: (cluster.clients().joined(), cluster.clients().unknown()),
            findings: active.map(|finding| finding.title.clone().into_owned()).collect(),
            has_costs: with_costs * 2 > cluster.decisions().newest_first().len(),
        }
    }

    /// The files alone, a line each.
    pub(super) fn listed(files: &[FileReport]) -> String {
        files.iter().map(|file| format!("{}\n", FileLine(file, Clock::Unchecked))).collect()
    }

    fn has(&self, kind: Kind) -> bool {
        self.files.iter().any(|file| file.kind == kind && file.records > 0)
    }

    /// What is not there, and what would bring it.
    fn absent(&self) -> Vec<&'static str> {
        if self.files.iter().any(|file| file.kind == Kind::Recording && file.range.is_some()) {
            return Vec::new();
        }
        let rows = [
            (
                self.has(Kind::RequestTraces),
                "times, hit rate and prompt length of each request as the frontend traced them: request traces (DYN_REQUEST_TRACE=1; \
                 files at DYN_REQUEST_TRACE_FILE_PATH)",
            ),
            (
                self.has(Kind::Log),
                "which worker was chosen and why, how requests ended, and the ids that join clients' results: the frontends' logs",
            ),
            (
                self.has_costs || !self.has(Kind::Log),
                "costs of the candidates that were not chosen: frontends' logs at DEBUG (DYN_LOG=debug) up to Dynamo 1.5, records \
                 router_selection of request traces (DYN_REQUEST_TRACE_RECORDS) from 1.7 on; of 1.6 only KV events",
            ),
            (
                self.has(Kind::ClientResults),
                "what clients waited for, with the network and queues before the frontend: aiperf's profile_export.jsonl",
            ),
            (
                self.has(Kind::Metrics) || self.has(Kind::Tachometer),
                "queues, load and KV memory of workers, settings: responses of /metrics as text, one file each, every few seconds, \
                 with the time in their names",
            ),
            (
                false,
                "which blocks each worker had cached (the tree, evictions): KV events are in no file of Dynamo; run radixscope record \
                 beside it",
            ),
        ];
        rows.into_iter().filter(|(is_there, _)| !is_there).map(|(_, what)| what).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (file, clock) in self.files.iter().zip(&self.clocks) {
            writeln!(f, "{}", FileLine(file, *clock))?;
        }
        writeln!(f)?;
        if self.runs.len() > 1 {
            writeln!(f, "{} runs, with pauses of more than 10 min between; one is shown:", self.runs.len())?;
            let more = self.runs.len().saturating_sub(MAX_RUNS_LISTED);
            if more > 0 {
                writeln!(f, "  … {} before", plural(more as u64, "run", "runs"))?;
            }
            for (at, run) in self.runs.iter().enumerate().skip(more) {
                let shown = if *run == self.run { "shown".to_owned() } else { format!("--run {}", at + 1) };
                writeln!(f, "  {} ({shown})", span(run.from, run.to))?;
            }
            writeln!(f, "  {} of other runs left out", plural(self.elsewhere, "record", "records"))?;
        } else {
            writeln!(f, "Run: {}", span(self.run.from, self.run.to))?;
            if self.elsewhere > 0 {
                let records = plural(self.elsewhere, "record", "records");
                writeln!(f, "  {records} more than 10 min before it or 30 s after it left out")?;
            }
        }
        write!(f, "Decisions: {}", count(self.decisions))?;
        if let Some(hit_rate) = self.hit_rate {
            write!(f, ", hit rate {}", percent(hit_rate))?;
        }
        writeln!(f)?;
        if self.has(Kind::ClientResults) {
            let (joined, unknown) = self.clients;
            let unknown = if unknown > 0 {
                format!(", {} of requests that are not known", count(unknown))
            } else {
                String::new()
            };
            writeln!(f, "Client results: {} joined{unknown}", count(joined))?;
        }
        let findings = &self.findings;
        writeln!(
            f,
            "Findings active at the end: {}{}{}",
            findings.len(),
            if findings.is_empty() { "" } else { ": " },
            findings.join("; ")
        )?;
        let absent = self.absent();
        if !absent.is_empty() {
            writeln!(f, "Absent:")?;
            absent.iter().try_for_each(|what| writeln!(f, "  {what}"))?;
        }
        Ok(())
    }
}

/// A file in one line.
struct FileLine<'f>(&'f FileReport, Clock);

impl fmt::Display for FileLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(file, clock) = self;
        write!(f, "{}: ", file.name)?;
        if file.kind == Kind::Log && file.records + file.bad == 0 {
            let lines = plural(file.passed_over, "line", "lines");
            write!(f, "text, {lines} of which none is about routing")?;
            return file.notes.iter().try_for_each(|note| write!(f, "; {note}"));
        }
        write!(f, "{}", file.kind.as_str())?;
        match file.kind {
            Kind::RequestTraces | Kind::Log | Kind::ClientResults => {
                write!(f, ", {} read", plural(file.records, "record", "records"))?;
                if file.passed_over > 0 {
                    write!(f, ", {} about other things", count(file.passed_over))?;
                }
                if file.bad > 0 {
                    write!(f, ", {} not understood", count(file.bad))?;
                }
            }
            Kind::Tachometer => {
                write!(f, ", {} read", plural(file.records, "sample", "samples"))?;
                if file.bad > 0 {
                    write!(f, ", {} not understood", count(file.bad))?;
                }
            }
            Kind::Metrics | Kind::Summary | Kind::Recording | Kind::Other => {}
        }
        if let Some((from, to)) = file.range {
            write!(f, "; {}", span(from, to))?;
        }
        write!(f, "{}", clock_of(file, *clock))?;
        file.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

fn clock_of(file: &FileReport, clock: Clock) -> String {
    let is_of_requests = matches!(file.kind, Kind::RequestTraces | Kind::Log | Kind::ClientResults);
    if !is_of_requests || file.records == 0 {
        return String::new();
    }
    match clock {
        Clock::Unchecked => "; clock not compared: no other file has three of its requests".to_owned(),
        Clock::Reference => "; its clock is that of the page".to_owned(),
        Clock::Compared { requests, ahead_ms, within_ms } => {
            let by = format!("by {} in common", plural(requests as u64, "request", "requests"));
            let within = duration(within_ms as f64);
            match clock_words(clock.ahead_ms()) {
                Some(put_right) => format!("; clock {put_right} (± {within}, {by})"),
                None => {
                    let sign = if ahead_ms < 0 { "−" } else { "+" };
                    let about = duration(ahead_ms.unsigned_abs() as f64);
                    format!("; clock agrees ({sign}{about} ± {within}, {by})")
                }
            }
        }
    }
}

/// Two times as text, UTC: the day once if it is the same, and one time if both are of the same second.
fn span(from: Millis, to: Millis) -> String {
    let ((day, begin), (last_day, end)) = (moment(from), moment(to));
    match (day == last_day, begin == end) {
        (true, true) => format!("{day} {begin} UTC"),
        (true, false) => format!("{day} {begin} to {end} UTC"),
        (false, _) => format!("{day} {begin} to {last_day} {end} UTC"),
    }
}

/// Day and time of day.
fn moment(at: Millis) -> (String, String) {
    let unix_s = i64::try_from(at.0 / 1_000).ok();
    let Some(at) = unix_s.and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok()) else {
        return ("in Unix ms".to_owned(), at.0.to_string());
    };
    let (date, time) = (at.date(), at.time());
    let day = format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day());
    (day, format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second()))
}
