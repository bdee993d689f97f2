//! A recording handed to the library itself: every message, line and scrape at its own time, or later by so much.

use std::fmt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use radixscope_captures::Recording;
use radixscope_export::Decisions;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Entry, LinkState, Record, SourceKind};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink as _;
use serde_json::Value;

/// How often what was summed up becomes records, as in the server.
const FLUSH_EVERY_MS: u64 = 1_000;
/// Time after the last word, in which what waits for others is given up.
const AFTERWARDS_MS: u64 = 5_000;
/// Length of a time as Dynamo writes it: `2026-11-20T18:02:26.952715Z`.
const TIME_LEN: usize = 27;

/// How much later than their own time sources are received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Late {
    /// Lines of logs, ms.
    pub(crate) log_ms: u64,
    /// Messages, ms.
    pub(crate) nats_ms: u64,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { log_ms: 0, nats_ms: 0 } => Ok(()),
            Self { log_ms, nats_ms: 0 } => write!(f, ", log {log_ms} ms late"),
            Self { log_ms: 0, nats_ms } => write!(f, ", NATS {nats_ms} ms late"),
            Self { log_ms, nats_ms } => write!(f, ", log {log_ms} ms and NATS {nats_ms} ms late"),
        }
    }
}

/// A recording in order of time.
pub(crate) struct Tape {
    /// What sources received, and when, in Unix microseconds.
    received: Vec<(u64, Payload)>,
    logs: Vec<String>,
}

impl Tape {
    /// Reads messages, frontends' logs and metrics.
    pub(crate) fn read(folder: &Path) -> Self {
        let recording = Recording::at(folder);
        let mut logs = recording.logs();
        logs.retain(|name| name.starts_with("frontend"));
        let mut tape = Self { received: Vec::new(), logs };
        tape.messages(&recording);
        tape.metrics(&recording);
        for name in &tape.logs {
            tape.received.extend(log(&recording, name));
        }
        tape
    }

    fn messages(&mut self, recording: &Recording) {
        let mut subjects = NatsSubjects::default();
        self.received.extend(recording.messages().filter_map(|m| {
            let payload = subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?;
            Some(((m.at_s * 1e6) as u64, payload))
        }));
    }

    fn metrics(&mut self, recording: &Recording) {
        self.received.extend(recording.scrapes().map(|scrape| {
            let process = scrape.process.into();
            ((scrape.at_s * 1e6) as u64, Payload::Scrape { process, text: scrape.text.into() })
        }));
    }

    /// What `/api/v1/decisions` answers after all of it.
    pub(crate) fn response(&self, late: Late, without_formulas: bool) -> Value {
        let late_us = |payload: &Payload| {
            1_000
                * match payload {
                    Payload::LogLine { .. } => late.log_ms,
                    Payload::Nats { .. } | Payload::OtherNats { .. } => late.nats_ms,
                    _ => 0,
                }
        };
        let is_kept = |(_, payload): &&(u64, Payload)| {
            let is_formula =
                matches!(payload, Payload::LogLine { line, .. } if contains(line, b"ormula for worker_id="));
            !(without_formulas && is_formula)
        };
        let mut order: Vec<(u64, &Payload)> = self
            .received
            .iter()
            .filter(is_kept)
            .map(|(at_us, payload)| (at_us + late_us(payload), payload))
            .collect();
        order.sort_by_key(|(at_us, _)| *at_us);
        let begin = Millis(order.first().map_or(0, |(at_us, _)| at_us / 1_000));
        let mut library = Library::start(begin, &self.logs);
        for (at_us, payload) in order {
            library.handle(Millis(at_us / 1_000), payload.clone());
        }
        library.finish()
    }
}

/// Lines of a log with their times.
fn log(recording: &Recording, name: &str) -> Vec<(u64, Payload)> {
    let mut at_us = 0;
    let line = |line: String| {
        // A line without a time belongs to the one before.
        at_us = time_us(&line).unwrap_or(at_us);
        (at_us, Payload::LogLine { log: name.into(), line: line.into() })
    };
    recording.log(name).map(line).collect()
}

/// The library, as the server drives it.
struct Library {
    intake: Intake,
    cluster: Cluster,
    nats: SourceIx,
    metrics: SourceIx,
    logs: Vec<(String, SourceIx)>,
    next_flush: u64,
}

impl Library {
    fn start(begin: Millis, logs: &[String]) -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let mut connect = |name: &str, kind| {
            let source = intake.source(name, kind, begin, &mut cluster).expect("room for a source");
            let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
            cluster.append(&Entry { at_ms: begin, record });
            source
        };
        let (nats, metrics) = (connect("nats", SourceKind::Nats), connect("metrics", SourceKind::Prometheus));
        let logs = logs.iter().map(|log| (log.clone(), connect(log, SourceKind::Logs))).collect();
        Self { intake, cluster, nats, metrics, logs, next_flush: begin.0 + FLUSH_EVERY_MS }
    }

    fn handle(&mut self, at_ms: Millis, payload: Payload) {
        self.flush_until(at_ms);
        let source = match &payload {
            Payload::LogLine { log, .. } => self.source_of(log),
            Payload::Scrape { .. } => self.metrics,
            _ => self.nats,
        };
        self.intake.handle(&Received { source, at_ms, payload }, &mut self.cluster);
    }

    fn source_of(&self, log: &str) -> SourceIx {
        let known = self.logs.iter().find(|(name, _)| name == log);
        known.map(|(_, source)| *source).expect("a log that was announced")
    }

    fn flush_until(&mut self, at_ms: Millis) {
        while self.next_flush <= at_ms.0 {
            self.intake.flush(Millis(self.next_flush), &mut self.cluster);
            self.next_flush += FLUSH_EVERY_MS;
        }
    }

    fn finish(mut self) -> Value {
        self.flush_until(Millis(self.next_flush + AFTERWARDS_MS));
        let newest_first = self.cluster.decisions().newest_first();
        serde_json::to_value(Decisions::of(
            &self.cluster,
            newest_first,
            radixscope_export::DecisionsOf::default(),
        ))
        .expect("JSON")
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The time at the beginning of a line, of text or of JSON, coloured or not.
fn time_us(line: &str) -> Option<u64> {
    let at = line.find("20")?;
    let time = humantime::parse_rfc3339(line.get(at..at + TIME_LEN)?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_micros() as u64)
}
