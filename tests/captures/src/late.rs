//! Recordings of deployments that ran already: queries for the blocks of workers with their responses, changes of discovery,
//! and what workers held at the end.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::{Recording, bytes, json};

/// A query as it was recorded.
#[derive(Clone, Debug)]
pub struct RecordedQuery {
    /// When it was asked and when it was answered, Unix seconds.
    pub asked_s: f64,
    /// See [`Self::asked_s`].
    pub answered_s: f64,
    /// At which occasion.
    pub tag: String,
    /// What was asked for: `dump` is all blocks.
    pub kind: String,
    /// Who was asked.
    pub worker_id: u64,
    /// Whether it was in JSON, not MessagePack.
    pub is_json: bool,
    /// The endpoint that was asked, as the frontend lists it at `/health`.
    pub instance: Value,
    /// What the worker sent on the connection that it opened, each with its name: `handshake`, `prologue`, `data`, …
    pub parts: Vec<(String, Bytes)>,
}

impl RecordedQuery {
    /// What is in the parts of the response that are items.
    pub fn items(&self) -> impl Iterator<Item = Bytes> {
        self.parts.iter().filter(|(what, _)| what == "data").map(|(_, part)| {
            let header = u64::from_be_bytes(part[..8].try_into().expect("eight bytes"));
            part.slice(24 + header as usize..)
        })
    }

    /// Everything that the worker sent after it had called back.
    pub fn response(&self) -> Vec<u8> {
        let parts = self.parts.iter().filter(|(what, _)| what != "handshake" && what != "ack");
        parts.flat_map(|(_, part)| part.iter().copied()).collect()
    }
}

/// A change of an entry in discovery.
#[derive(Clone, Debug)]
pub struct DiscoveryChange {
    /// When, in Unix seconds.
    pub at_s: f64,
    /// Of which entry.
    pub key: String,
    /// What it says now. `None`: it is gone.
    pub value: Option<Value>,
    /// The lease that it ends with.
    pub lease: Option<u64>,
}

/// A block with the one before it and its tokens: block hash, parent's, tokens' hash.
pub type TrueBlock = (u64, Option<u64>, u64);

/// What a worker held in truth.
#[derive(Clone, Debug)]
pub struct HeldBlocks {
    /// Number of its last event.
    pub last_event_id: u64,
    /// All its blocks, in order.
    pub blocks: Vec<TrueBlock>,
}

impl Recording {
    /// Queries for the blocks of workers.
    pub fn queries(&self) -> impl Iterator<Item = RecordedQuery> + use<> {
        #[derive(Deserialize)]
        struct Line {
            t: f64,
            t1: f64,
            tag: String,
            kind: String,
            worker_id: String,
            codec: String,
            instance: Value,
            frames: Vec<Frame>,
        }
        #[derive(Deserialize)]
        struct Frame {
            dir: String,
            what: String,
            p: String,
        }
        self.lines_if_any("dumps.jsonl.gz").map(|line| {
            let Line { t, t1, tag, kind, worker_id, codec, instance, frames } = json(&line);
            let sent = frames.into_iter().filter(|frame| frame.dir == "W>C");
            RecordedQuery {
                asked_s: t,
                answered_s: t1,
                tag,
                kind,
                worker_id: number(&worker_id),
                is_json: codec == "json",
                instance,
                parts: sent.map(|frame| (frame.what, bytes(&frame.p))).collect(),
            }
        })
    }

    /// Changes of discovery.
    pub fn discovery_changes(&self) -> impl Iterator<Item = DiscoveryChange> + use<> {
        #[derive(Deserialize)]
        struct Line {
            t: f64,
            op: String,
            k: Option<String>,
            v: Option<Value>,
            lease: Option<u64>,
        }
        self.lines_if_any("zmq-discovery.jsonl.gz").filter_map(|line| {
            let Line { t, op, k, v, lease } = json(&line);
            Some(DiscoveryChange { at_s: t, key: k?, value: v.filter(|_| op == "put"), lease })
        })
    }

    /// What workers held at the end, by every event of the whole run, by their ids; none: it was not received from its beginning.
    pub fn truth(&self) -> BTreeMap<u64, HeldBlocks> {
        #[derive(Deserialize)]
        struct Truth {
            r#final: BTreeMap<String, Final>,
        }
        #[derive(Deserialize)]
        struct Final {
            last_event_id: u64,
            block: Vec<(String, Option<String>, String)>,
        }
        let truth = self.lines_if_any("truth.json.gz").next().map(|line| json::<Truth>(&line));
        let workers = truth.into_iter().flat_map(|truth| truth.r#final);
        workers
            .map(|(worker, of)| {
                let block = |(hash, parent, tokens): &(String, Option<String>, String)| {
                    (number(hash), parent.as_deref().map(number), number(tokens))
                };
                let mut blocks: Vec<TrueBlock> = of.block.iter().map(block).collect();
                blocks.sort_unstable();
                (number(&worker), HeldBlocks { last_event_id: of.last_event_id, blocks })
            })
            .collect()
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a decimal number")
}
