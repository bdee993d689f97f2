//! A recording handed to the library itself: every message, line and scrape at its own time, or later by so much.

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use flate2::read::GzDecoder;
use radixscope_export::DecisionsDto;
use radixscope_intake::ingest::Message;
use radixscope_intake::listen::Listener;
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

/// What one source delivered, and when.
struct Delivery {
    at_us: u64,
    kind: SourceKind,
    subject: String,
    reply: Option<String>,
    payload: Vec<u8>,
}

/// A recording in order of time.
pub(crate) struct Tape {
    deliveries: Vec<Delivery>,
    logs: Vec<String>,
}

impl Tape {
    /// Reads messages, frontends' logs and metrics.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut tape = Self { deliveries: Vec::new(), logs: Vec::new() };
        tape.messages(folder);
        tape.metrics(folder);
        let names =
            std::fs::read_dir(folder).expect("a recording").map(|entry| entry.expect("an entry").path());
        let mut logs: Vec<_> = names.filter(|path| is_frontend_log(path)).collect();
        logs.sort();
        logs.iter().for_each(|path| tape.log(path));
        tape
    }

    fn messages(&mut self, folder: &Path) {
        for line in lines(&folder.join("nats.jsonl.gz")) {
            let line: Value = serde_json::from_str(&line).expect("a message a line");
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            let payload = base64::engine::general_purpose::STANDARD.decode(text("p").expect("a payload"));
            self.deliveries.push(Delivery {
                at_us: (line["t"].as_f64().expect("a time") * 1e6) as u64,
                kind: SourceKind::Nats,
                subject: text("s").expect("a subject"),
                reply: text("r"),
                payload: payload.expect("base64"),
            });
        }
    }

    fn metrics(&mut self, folder: &Path) {
        let path = folder.join("metrics.jsonl.gz");
        for line in if path.is_file() { lines(&path) } else { Vec::new() } {
            let line: Value = serde_json::from_str(&line).expect("a scrape a line");
            let text = line["text"].as_str().expect("whole texts");
            self.deliveries.push(Delivery {
                at_us: (line["t"].as_f64().expect("a time") * 1e6) as u64,
                kind: SourceKind::Prometheus,
                subject: format!("metrics/{}", line["src"].as_str().expect("a process")),
                reply: None,
                payload: text.into(),
            });
        }
    }

    fn log(&mut self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let subject = format!("log/{}", name.trim_end_matches(".gz").trim_end_matches(".log"));
        let mut at_us = 0;
        for line in lines(path) {
            // A line without a time belongs to the one before.
            at_us = time_us(&line).unwrap_or(at_us);
            let (kind, subject) = (SourceKind::Logs, subject.clone());
            self.deliveries.push(Delivery { at_us, kind, subject, reply: None, payload: line.into() });
        }
        self.logs.push(subject);
    }

    /// What `/api/v1/decisions` answers after all of it.
    pub(crate) fn answer(&self, late: Late, without_formulas: bool) -> Value {
        let late_us = |kind| {
            1_000
                * match kind {
                    SourceKind::Logs => late.log_ms,
                    SourceKind::Nats => late.nats_ms,
                    _ => 0,
                }
        };
        let is_kept = |of: &&Delivery| {
            let is_formula = of.kind == SourceKind::Logs && contains(&of.payload, b"ormula for worker_id=");
            !(without_formulas && is_formula)
        };
        let mut order: Vec<(u64, &Delivery)> =
            self.deliveries.iter().filter(is_kept).map(|of| (of.at_us + late_us(of.kind), of)).collect();
        order.sort_by_key(|(at_us, _)| *at_us);
        let begin = Millis(order.first().map_or(0, |(at_us, _)| at_us / 1_000));
        let mut library = Library::start(begin, &self.logs);
        for (at_us, delivery) in order {
            library.take(Millis(at_us / 1_000), delivery);
        }
        library.finish()
    }
}

/// The library, as the server drives it.
struct Library {
    listener: Listener,
    cluster: Cluster,
    nats: SourceIx,
    metrics: SourceIx,
    logs: Vec<(String, SourceIx)>,
    next_flush: u64,
}

impl Library {
    fn start(begin: Millis, logs: &[String]) -> Self {
        let (mut listener, mut cluster) = (Listener::default(), Cluster::default());
        let mut connect = |name: &str, kind| {
            let source = listener.source(name, kind, begin, &mut cluster).expect("room for a source");
            let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
            cluster.append(&Entry { at_ms: begin, record });
            source
        };
        let (nats, metrics) = (connect("nats", SourceKind::Nats), connect("metrics", SourceKind::Prometheus));
        let logs = logs.iter().map(|log| (log.clone(), connect(log, SourceKind::Logs))).collect();
        Self { listener, cluster, nats, metrics, logs, next_flush: begin.0 + FLUSH_EVERY_MS }
    }

    fn take(&mut self, at_ms: Millis, delivery: &Delivery) {
        self.flush_until(at_ms);
        let of_log = || self.logs.iter().find(|(log, _)| *log == delivery.subject).map(|(_, source)| *source);
        let source = match delivery.kind {
            SourceKind::Logs => of_log().expect("a log that was announced"),
            SourceKind::Prometheus => self.metrics,
            _ => self.nats,
        };
        let (subject, reply, payload) =
            (delivery.subject.as_str(), delivery.reply.as_deref(), delivery.payload.as_slice());
        self.listener.message(Message { source, at_ms, subject, reply, payload }, &mut self.cluster);
    }

    fn flush_until(&mut self, at_ms: Millis) {
        while self.next_flush <= at_ms.0 {
            self.listener.flush(Millis(self.next_flush), &mut self.cluster);
            self.next_flush += FLUSH_EVERY_MS;
        }
    }

    fn finish(mut self) -> Value {
        self.flush_until(Millis(self.next_flush + AFTERWARDS_MS));
        let newest_first = self.cluster.decisions().newest_first();
        serde_json::to_value(DecisionsDto::of(&self.cluster, newest_first, None)).expect("JSON")
    }
}

fn is_frontend_log(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("frontend") && name.ends_with(".log.gz")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn lines(path: &Path) -> Vec<String> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("text")).collect()
}

/// The time at the beginning of a line, of text or of JSON, coloured or not.
fn time_us(line: &str) -> Option<u64> {
    let at = line.find("20")?;
    let time = humantime::parse_rfc3339(line.get(at..at + TIME_LEN)?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_micros() as u64)
}
