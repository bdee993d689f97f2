//! Recorded traffic of real Dynamo deployments. Opens no message.

use std::fs::File;
use std::io::{BufRead, BufReader};

use base64::Engine;
use bytes::Bytes;
use flate2::read::GzDecoder;
use serde::Deserialize;

use crate::paths;

/// Names of all captures.
pub const ALL: [&str; 11] = [
    "0.9.1-healthy",
    "0.9.1-healthy-vllm",
    "0.9.1-localindexer",
    "0.9.1-log-jsonl-info",
    "0.9.1-mismatch",
    "0.9.1-no-events",
    "0.9.1-worker-restart",
    "1.6.1-healthy",
    "1.6.1-log-jsonl-debug",
    "1.6.1-mismatch",
    "1.6.1-router-restart",
];
/// Those whose KV events travelled through JetStream.
pub const JETSTREAM: [&str; 5] =
    ["0.9.1-healthy", "0.9.1-healthy-vllm", "0.9.1-log-jsonl-info", "0.9.1-mismatch", "0.9.1-worker-restart"];

/// One message as it was heard on the wire.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When it was heard, Unix seconds.
    pub at_s: f64,
    /// Subject.
    pub subject: String,
    /// Reply subject.
    pub reply: Option<String>,
    /// Payload.
    pub payload: Bytes,
}

impl Captured {
    /// Whether this is not the publication but a copy that JetStream delivered to a router.
    pub fn is_delivery_copy(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.starts_with("$JS.ACK."))
    }

    /// Name of the stream that keeps it, if one does.
    pub fn stream(&self) -> Option<&str> {
        let (stream, topic) = self.subject.split_once('.')?;
        (topic == "kv-events" && stream.ends_with("-kv-events")).then_some(stream)
    }
}

/// Recorded traffic, in order.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its name.
    pub name: &'static str,
    /// The messages, without the topic that `serve` never subscribes to.
    pub messages: Vec<Captured>,
}

impl Capture {
    /// Reads a capture of [`ALL`].
    pub fn load(name: &'static str) -> Self {
        #[derive(Deserialize)]
        struct Line {
            t: f64,
            s: String,
            r: Option<String>,
            p: String,
        }
        let path = paths::fixture("captures").join(name).join("nats.jsonl.gz");
        let file = File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        let messages = lines.map(|line| {
            let line: Line = serde_json::from_str(&line.expect("a complete file")).expect("a message a line");
            let payload = base64::engine::general_purpose::STANDARD.decode(line.p).expect("base64");
            Captured { at_s: line.t, subject: line.s, reply: line.r, payload: payload.into() }
        });
        let messages = messages.filter(|m| !m.subject.ends_with(".forward-pass-metrics")).collect();
        Self { name, messages }
    }

    /// Messages that are not copies: what `serve` should say it received.
    pub fn publications(&self) -> usize {
        self.messages.iter().filter(|m| !m.is_delivery_copy()).count()
    }

    /// Whether some of the messages go through a stream.
    pub fn has_stream(&self) -> bool {
        self.messages.iter().any(|m| m.stream().is_some())
    }

    /// The messages in two: those that a stream keeps (copies left out), and the rest.
    pub fn split_by_stream(&self) -> (Vec<Captured>, Vec<Captured>) {
        let publications = self.messages.iter().filter(|m| !m.is_delivery_copy()).cloned();
        publications.partition(|m| m.stream().is_some())
    }
}
