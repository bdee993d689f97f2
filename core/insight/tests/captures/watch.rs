//! Plays a capture second by second, as the server would hear it, and keeps what the checks say.

use std::path::PathBuf;

use radixscope_dynamo::log_line;
use radixscope_insight::check::Checks;
use radixscope_intake::ingest::Message;
use radixscope_intake::listen::Listener;
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Entry, Finding, LinkState, Phase, Record, Severity, SourceKind};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink;

use crate::replay::{lines, messages};

/// What is listened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) nats: bool,
    pub(crate) frontend_log: bool,
    pub(crate) worker_logs: bool,
    /// Of frontends.
    pub(crate) metrics: bool,
    pub(crate) worker_metrics: bool,
}

pub(crate) const NATS: Sources =
    Sources { nats: true, frontend_log: false, worker_logs: false, metrics: false, worker_metrics: false };
pub(crate) const NATS_AND_FRONTEND: Sources = Sources { metrics: true, ..NATS };
pub(crate) const NATS_AND_METRICS: Sources = Sources { worker_metrics: true, ..NATS_AND_FRONTEND };
pub(crate) const NATS_AND_LOG: Sources = Sources { frontend_log: true, ..NATS };
pub(crate) const ALL: Sources =
    Sources { worker_logs: true, metrics: true, worker_metrics: true, ..NATS_AND_LOG };

/// One thing heard.
struct Heard {
    t: f64,
    kind: SourceKind,
    subject: String,
    reply: Option<String>,
    payload: Vec<u8>,
}

/// A scrape of a capture.
#[derive(serde::Deserialize)]
struct Scraped {
    t: f64,
    src: String,
    text: String,
}

/// A capture in order of time.
pub(crate) struct Tape {
    heard: Vec<Heard>,
}

/// What was said of a capture.
pub(crate) struct Watched {
    pub(crate) cluster: Cluster,
    /// Every change of a finding, with its Unix time in seconds.
    pub(crate) said: Vec<(f64, Finding<'static>)>,
}

impl Watched {
    /// The first time that a finding was said, with it.
    pub(crate) fn first(&self, code: &str) -> Option<(f64, &Finding<'static>)> {
        self.said.iter().find(|(_, finding)| finding.code == code).map(|(t, finding)| (*t, finding))
    }

    /// Codes of at least this severity that were ever said, without those that name another finding as their cause.
    pub(crate) fn codes(&self, least: Severity) -> Vec<String> {
        let is_grave = |f: &Finding<'_>| f.severity >= least && f.cause.is_empty();
        let grave = self.said.iter().filter(|(_, finding)| is_grave(finding));
        let mut codes: Vec<_> = grave.map(|(_, finding)| finding.code.to_string()).collect();
        codes.sort();
        codes.dedup();
        codes
    }

    /// Everything said, a line each, for a test that fails.
    pub(crate) fn told(&self) -> String {
        let first = self.said.first().map_or(0.0, |(t, _)| *t);
        let line = |(t, f): &(f64, Finding<'static>)| {
            format!(
                "{:7.1} {} {} {} | {}\n",
                t - first,
                f.code,
                f.severity.as_str(),
                f.phase.as_str(),
                f.title
            )
        };
        self.said.iter().map(line).collect()
    }

    /// Whether it was said and is not over.
    pub(crate) fn holds(&self, code: &str) -> bool {
        self.cluster.findings().iter().any(|f| f.code == code && f.phase != Phase::Cleared)
    }
}

struct Keeps {
    watched: Watched,
}

impl RecordSink for Keeps {
    fn cluster(&self) -> &Cluster {
        &self.watched.cluster
    }

    fn append(&mut self, entry: &Entry<'_>) {
        if let Record::Finding(finding) = &entry.record {
            self.watched.said.push((entry.at_ms.0 as f64 / 1_000.0, finding.to_static()));
        }
        self.watched.cluster.append(entry);
    }
}

fn log_names(name: &str) -> Vec<String> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/captures").join(name);
    let entries =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.filter(|file| file.ends_with(".log.gz")).collect();
    names.sort();
    names
}

impl Tape {
    pub(crate) fn of(name: &str) -> Self {
        let mut heard: Vec<Heard> = messages(name)
            .into_iter()
            .map(|m| Heard { t: m.t, kind: SourceKind::Nats, payload: m.payload(), subject: m.s, reply: m.r })
            .collect();
        for file in log_names(name) {
            let subject = format!("log/{}", file.trim_end_matches(".log.gz"));
            for line in lines(name, &file) {
                let Ok(Some(read)) = log_line::decode(line.as_bytes()) else { continue };
                let Some(at_us) = read.at_us else { continue };
                let (t, kind) = (at_us as f64 / 1e6, SourceKind::Logs);
                heard.push(Heard { t, kind, subject: subject.clone(), reply: None, payload: line.into() });
            }
        }
        for line in lines(name, "metrics.jsonl.gz") {
            let Scraped { t, src, text } = serde_json::from_str(&line).unwrap();
            let (subject, kind) = (format!("metrics/{src}"), SourceKind::Prometheus);
            heard.push(Heard { t, kind, subject, reply: None, payload: text.into() });
        }
        heard.sort_by(|a, b| a.t.total_cmp(&b.t));
        Self { heard }
    }

    /// When traffic is half over.
    pub(crate) fn middle(&self) -> f64 {
        let first = self.heard.first().unwrap().t;
        first + (self.heard.last().unwrap().t - first) / 2.0
    }

    /// Plays it to some sources from a time on, and `idle_s` silent seconds behind it.
    pub(crate) fn play(&self, sources: Sources, from: f64, idle_s: u64) -> Watched {
        let (mut listener, mut checks) = (Listener::default(), Checks::default());
        let mut keeps = Keeps { watched: Watched { cluster: Cluster::default(), said: Vec::new() } };
        let begin = Millis((from.max(self.heard[0].t) * 1_000.0) as u64);
        let mut connect = |name: &str, kind, wanted: bool| -> Option<SourceIx> {
            let source = wanted.then(|| listener.source(name, kind, begin, &mut keeps).unwrap())?;
            let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
            keeps.append(&Entry { at_ms: begin, record });
            Some(source)
        };
        let nats = connect("nats", SourceKind::Nats, sources.nats);
        let logs = connect("logs", SourceKind::Logs, sources.frontend_log || sources.worker_logs);
        let metrics = connect("metrics", SourceKind::Prometheus, sources.metrics);
        let mut next = begin.0 + 1_000;
        for heard in self.heard.iter().filter(|heard| heard.t >= from) {
            let at_ms = Millis((heard.t * 1_000.0) as u64);
            while next <= at_ms.0 {
                listener.flush(Millis(next), &mut keeps);
                checks.run(Millis(next), &mut keeps);
                next += 1_000;
            }
            let of_frontend = heard.subject.contains("/frontend");
            let source = match heard.kind {
                SourceKind::Logs if of_frontend && !sources.frontend_log => None,
                SourceKind::Logs if !of_frontend && !sources.worker_logs => None,
                SourceKind::Logs => logs,
                SourceKind::Prometheus if !of_frontend && !sources.worker_metrics => None,
                SourceKind::Prometheus => metrics,
                _ => nats,
            };
            let Some(source) = source else { continue };
            let (subject, reply, payload) = (&heard.subject, heard.reply.as_deref(), &heard.payload);
            listener.message(Message { source, at_ms, subject, reply, payload }, &mut keeps);
        }
        for _ in 0..idle_s {
            listener.flush(Millis(next), &mut keeps);
            checks.run(Millis(next), &mut keeps);
            next += 1_000;
        }
        keeps.watched
    }
}
