//! Plays a recording to Radixscope's own library, as a server would receive it.

use radixscope_captures::Recording;
use radixscope_dynamo::log_line;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Entry, LinkState, Record, SourceKind};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink as _;

/// How often what was summed up becomes records, as in the server.
const FLUSH_EVERY_MS: u64 = 1_000;
/// Time after the last message, in which what waits for others is given up.
const AFTERWARDS_MS: u64 = 12_000;

/// The state after every message, log line, scrape and model card of a recording, each at its own time.
pub(crate) fn cluster_of(recording: &Recording) -> Cluster {
    let mut received: Vec<(f64, Payload)> = messages(recording).collect();
    received.extend(cards(recording));
    received.extend(log_lines(recording));
    received.extend(recording.scrapes().map(|scrape| {
        let process = scrape.process.into();
        (scrape.at_s, Payload::Scrape { process, text: scrape.text.into() })
    }));
    received.sort_by(|a, b| a.0.total_cmp(&b.0));
    let begin = received.first().map_or(Millis(0), |(at_s, _)| millis(*at_s));
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let mut connect = |name: &str, kind| -> SourceIx {
        let source = intake.source(name, kind, begin, &mut cluster).unwrap();
        let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
        cluster.append(&Entry { at_ms: begin, record });
        source
    };
    let nats = connect("nats", SourceKind::Nats);
    let logs = connect("logs", SourceKind::Logs);
    let metrics = connect("metrics", SourceKind::Prometheus);
    let mut next_ms = begin.0 + FLUSH_EVERY_MS;
    for (at_s, payload) in received {
        let at_ms = millis(at_s);
        while next_ms <= at_ms.0 {
            intake.flush(Millis(next_ms), &mut cluster);
            next_ms += FLUSH_EVERY_MS;
        }
        let source = match payload {
            Payload::LogLine { .. } => logs,
            Payload::Scrape { .. } => metrics,
            _ => nats,
        };
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
    }
    let until_ms = next_ms + AFTERWARDS_MS;
    while next_ms < until_ms {
        intake.flush(Millis(next_ms), &mut cluster);
        next_ms += FLUSH_EVERY_MS;
    }
    cluster
}

/// The messages as they were published, with their Unix times in seconds.
fn messages(recording: &Recording) -> impl Iterator<Item = (f64, Payload)> + use<> {
    let mut subjects = NatsSubjects::default();
    recording
        .subscribed()
        .filter_map(move |m| Some((m.at_s, subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?)))
}

/// The lines of all logs that have a time.
fn log_lines(recording: &Recording) -> Vec<(f64, Payload)> {
    let mut lines = Vec::new();
    for log in recording.logs() {
        for line in recording.log(&log) {
            let read = log_line::decode(line.as_bytes()).ok().flatten();
            let Some(at_us) = read.and_then(|read| read.at_us) else { continue };
            let payload = Payload::LogLine { log: log.as_str().into(), line: line.into() };
            lines.push((at_us as f64 / 1e6, payload));
        }
    }
    lines
}

/// The model cards of the discovery store, whenever it was read.
fn cards(recording: &Recording) -> impl Iterator<Item = (f64, Payload)> + use<> {
    let cards = recording.discovery_entries().filter(|(_, key, _)| key.starts_with("v1/mdc/"));
    cards.map(|(t, key, value)| {
        (t, Payload::Discovery { key: key.into(), value: Some(value.into()), lease: None })
    })
}

/// Unix time in milliseconds.
fn millis(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as u64)
}
