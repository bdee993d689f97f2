//! Plays a capture second by second, as the server would hear it, and keeps what the checks say.

use radixscope_captures::Recording;
use radixscope_dynamo::log_line;
use radixscope_insight::check::Checks;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Entry, Finding, LinkState, Phase, Record, Severity, SourceKind};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

use crate::captures::replay::publications;

/// What is listened to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) nats: bool,
    pub(crate) frontend_log: bool,
    pub(crate) worker_logs: bool,
    /// Of frontends.
    pub(crate) metrics: bool,
    pub(crate) worker_metrics: bool,
    /// Model cards of the discovery store.
    pub(crate) cards: bool,
}

pub(crate) const NATS: Sources = Sources {
    nats: true,
    frontend_log: false,
    worker_logs: false,
    metrics: false,
    worker_metrics: false,
    cards: false,
};
pub(crate) const NATS_AND_FRONTEND: Sources = Sources { metrics: true, ..NATS };
pub(crate) const NATS_AND_METRICS: Sources = Sources { worker_metrics: true, ..NATS_AND_FRONTEND };
pub(crate) const NATS_AND_LOG: Sources = Sources { frontend_log: true, ..NATS };
pub(crate) const ALL: Sources =
    Sources { worker_logs: true, metrics: true, worker_metrics: true, ..NATS_AND_LOG };

pub(crate) const ALL_AND_CARDS: Sources = Sources { cards: true, ..ALL };

/// A capture in order of time, in Unix seconds.
pub(crate) struct Tape {
    received: Vec<(f64, Payload)>,
}

/// The findings of a capture.
pub(crate) struct Watched {
    pub(crate) cluster: Cluster,
    /// Every change of a finding, with its Unix time in seconds.
    pub(crate) findings: Vec<(f64, Finding)>,
}

impl Watched {
    /// Each finding's first time.
    pub(crate) fn first(&self, code: &str) -> Option<(f64, &Finding)> {
        self.findings.iter().find(|(_, finding)| finding.code == code).map(|(t, finding)| (*t, finding))
    }

    /// Codes of at least this severity that were ever active, without those that name another finding as their cause.
    pub(crate) fn codes(&self, least: Severity) -> Vec<String> {
        let is_grave = |f: &Finding| f.severity >= least && f.cause.is_empty();
        let grave = self.findings.iter().filter(|(_, finding)| is_grave(finding));
        let mut codes: Vec<_> = grave.map(|(_, finding)| finding.code.to_string()).collect();
        codes.sort();
        codes.dedup();
        codes
    }

    /// All findings, one per line, for the message of a failing test.
    pub(crate) fn summary(&self) -> String {
        let first = self.findings.first().map_or(0.0, |(t, _)| *t);
        let line = |(t, f): &(f64, Finding)| {
            format!(
                "{:7.1} {} {} {} | {}\n",
                t - first,
                f.code,
                f.severity.as_str(),
                f.phase.as_str(),
                f.title
            )
        };
        self.findings.iter().map(line).collect()
    }

    /// Whether it is active.
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

    fn follow_blocks(&mut self, follow: Follow) {
        self.watched.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        if let Record::Finding(finding) = &entry.record {
            self.watched.findings.push((entry.at_ms.0 as f64 / 1_000.0, Finding::clone(finding)));
        }
        self.watched.cluster.append(entry);
    }
}

impl Tape {
    pub(crate) fn of(name: &str) -> Self {
        Self::of_recording(&Recording::fixture(name))
    }

    pub(crate) fn of_recording(recording: &Recording) -> Self {
        let mut received: Vec<(f64, Payload)> = publications(recording).collect();
        received.extend(cards(recording));
        for log in recording.logs() {
            for line in recording.log(&log) {
                let Ok(Some(read)) = log_line::decode(line.as_bytes()) else { continue };
                let Some(at_us) = read.at_us else { continue };
                let payload = Payload::LogLine { log: log.as_str().into(), line: line.into() };
                received.push((at_us as f64 / 1e6, payload));
            }
        }
        received.extend(recording.scrapes().map(|scrape| {
            let process = scrape.process.into();
            (scrape.at_s, Payload::Scrape { process, text: scrape.text.into() })
        }));
        received.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { received }
    }

    /// The same with payloads changed; those for which `change` says no are left out.
    pub(crate) fn changed(mut self, mut change: impl FnMut(&mut Payload) -> bool) -> Self {
        self.received.retain_mut(|(_, payload)| change(payload));
        self
    }

    /// When traffic is half over.
    pub(crate) fn middle(&self) -> f64 {
        let first = self.received.first().unwrap().0;
        first + (self.received.last().unwrap().0 - first) / 2.0
    }

    /// Plays it to some sources from a time on, and `idle_s` silent seconds behind it.
    pub(crate) fn play(&self, sources: Sources, from: f64, idle_s: u64) -> Watched {
        let (mut intake, mut checks) = (Intake::default(), Checks::default());
        let mut keeps = Keeps { watched: Watched { cluster: Cluster::default(), findings: Vec::new() } };
        let begin = Millis((from.max(self.received[0].0) * 1_000.0) as u64);
        let mut connect = |name: &str, kind, wanted: bool| -> Option<SourceIx> {
            let source = wanted.then(|| intake.source(name, kind, begin, &mut keeps).unwrap())?;
            let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
            keeps.append(&Entry { at_ms: begin, record });
            Some(source)
        };
        let nats = connect("nats", SourceKind::Nats, sources.nats);
        let logs = connect("logs", SourceKind::Logs, sources.frontend_log || sources.worker_logs);
        let metrics = connect("metrics", SourceKind::Prometheus, sources.metrics);
        let mut next = begin.0 + 1_000;
        for (at_s, payload) in self.received.iter().filter(|(at_s, _)| *at_s >= from) {
            let at_ms = Millis((at_s * 1_000.0) as u64);
            while next <= at_ms.0 {
                intake.flush(Millis(next), &mut keeps);
                checks.run(Millis(next), &mut keeps);
                next += 1_000;
            }
            let source = match payload {
                Payload::LogLine { log, .. } if log.starts_with("frontend") => {
                    logs.filter(|_| sources.frontend_log)
                }
                Payload::LogLine { .. } => logs.filter(|_| sources.worker_logs),
                Payload::Scrape { process, .. } if process.starts_with("frontend") => metrics,
                Payload::Scrape { .. } => metrics.filter(|_| sources.worker_metrics),
                Payload::Discovery { .. } => nats.filter(|_| sources.cards),
                _ => nats,
            };
            let Some(source) = source else { continue };
            intake.handle(&Received { source, at_ms, payload: payload.clone() }, &mut keeps);
        }
        for _ in 0..idle_s {
            intake.flush(Millis(next), &mut keeps);
            checks.run(Millis(next), &mut keeps);
            next += 1_000;
        }
        keeps.watched
    }
}

/// The model cards of the discovery store, whenever it was read.
fn cards(recording: &Recording) -> impl Iterator<Item = (f64, Payload)> + use<> {
    let cards = recording.discovery_entries().filter(|(_, key, _)| key.starts_with("v1/mdc/"));
    cards.map(|(t, key, value)| {
        (t, Payload::Discovery { key: key.into(), value: Some(value.into()), lease: None })
    })
}
