//! Messages of the ZeroMQ event plane as they were recorded.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use crate::{Recording, fixtures, json};

/// A message as it was received.
#[derive(Clone, Debug)]
pub struct ZmqMessage {
    /// When, in Unix seconds.
    pub at_s: f64,
    /// The publisher's socket, or `xpub` of a broker.
    pub endpoint: String,
    /// Its frames.
    pub frames: Vec<Bytes>,
}

impl Recording {
    /// One of the repository's recordings of the ZeroMQ event plane alone, by its name below `fixtures/zmq`.
    pub fn zmq_fixture(name: &str) -> Self {
        Self::at(fixtures().with_file_name("zmq").join(name))
    }

    /// All messages of the ZeroMQ event plane; none if it was not recorded.
    pub fn zmq_messages(&self) -> impl Iterator<Item = ZmqMessage> + use<> {
        #[derive(Deserialize)]
        struct Line {
            t: f64,
            ep: String,
            frames: Vec<String>,
        }
        self.lines_if_any("zmq.jsonl.gz").map(|line| {
            let Line { t, ep, frames } = json(&line);
            let bytes = |frame: String| BASE64_STANDARD.decode(frame).expect("base64").into();
            ZmqMessage { at_s: t, endpoint: ep, frames: frames.into_iter().map(bytes).collect() }
        })
    }
}

impl ZmqMessage {
    /// What the first frame says: a topic or a whole subject.
    pub fn topic(&self) -> &str {
        std::str::from_utf8(&self.frames[0]).expect("topics are text")
    }

    /// A number in eight bytes.
    fn number(&self, frame: usize) -> u64 {
        u64::from_be_bytes(self.frames[frame][..].try_into().expect("eight bytes"))
    }

    /// Who published it.
    pub fn publisher_id(&self) -> u64 {
        self.number(1)
    }

    /// Its number among those of its publisher.
    pub fn sequence(&self) -> u64 {
        self.number(2)
    }

    /// What NATS would have carried.
    pub fn envelope(&self) -> Bytes {
        self.frames[3].slice(5..)
    }
}
