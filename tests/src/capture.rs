//! Recorded traffic of real Dynamo deployments. Opens no message.

pub use radixscope_captures::Message;
use radixscope_captures::Recording;

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

/// Recorded traffic, in order.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Its name.
    pub name: &'static str,
    /// The messages, without the topic that `serve` never subscribes to.
    pub messages: Vec<Message>,
}

impl Capture {
    /// Reads a capture of [`ALL`], or that of a folder.
    pub fn load(name: &'static str) -> Self {
        Self { name, messages: Recording::fixture(name).subscribed().collect() }
    }

    /// Reads a recording of other than one aggregated pool.
    pub fn topology(name: &'static str) -> Self {
        Self { name, messages: Recording::topology(name).subscribed().collect() }
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
    pub fn split_by_stream(&self) -> (Vec<Message>, Vec<Message>) {
        let publications = self.messages.iter().filter(|m| !m.is_delivery_copy()).cloned();
        publications.partition(|m| m.stream().is_some())
    }
}
