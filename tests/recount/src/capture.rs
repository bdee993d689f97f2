//! What the messages of a recording report: blocks of every worker, and what routers and workers publish of requests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::{Worker, files};

/// Figures of one worker.
#[derive(Default)]
pub struct WorkerFigures {
    /// Blocks in its stored events.
    pub stored_total: u64,
    /// Hashes in its removed events.
    pub removed_total: u64,
    /// The node of each block it holds whose place in the tree is known.
    attached: HashMap<u64, usize>,
    /// Blocks it holds whose parent was never stored.
    unattached: BTreeSet<u64>,
}

impl WorkerFigures {
    /// Blocks it holds, their place known or not.
    pub fn blocks(&self) -> u64 {
        (self.attached.len() + self.unattached.len()) as u64
    }
}

/// A router's `kv-hit-rate` (0.8, 0.9).
#[derive(Clone, Copy, Debug)]
pub struct HitRate {
    /// When it was published, Unix seconds; when it was received, where there is no envelope.
    pub at_s: f64,
    /// The chosen worker.
    pub worker: Worker,
    /// Blocks of the prompt, rounded up.
    pub isl_blocks: u64,
    /// Blocks of it that the worker held.
    pub overlap_blocks: u64,
}

/// A router's `AddRequest` (replica sync).
#[derive(Clone, Debug)]
pub struct Added {
    /// When it was published, Unix seconds; when it was received, where there is no envelope.
    pub at_s: f64,
    /// The router's id of the request.
    pub request_id: String,
    /// The chosen worker.
    pub worker: Worker,
    /// Full blocks of the prompt, if their hashes are there.
    pub full_blocks: Option<u64>,
    /// Tokens of the prompt (0.8 to 1.1).
    pub isl_tokens: Option<u64>,
    /// Blocks that the worker held (0.8 to 1.1).
    pub overlap_blocks: Option<u64>,
    /// Tokens the worker had to prefill (from 1.2).
    pub prefill_tokens: Option<u64>,
}

/// When a request's first token came.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FirstToken {
    /// When that was published, Unix seconds; when it was received, where there is no envelope.
    pub at_s: f64,
    /// Whether it is the time of publication.
    pub is_published: bool,
}

/// Everything a recording holds.
#[derive(Default)]
pub struct Capture {
    /// By worker.
    pub workers: BTreeMap<Worker, WorkerFigures>,
    /// In order.
    pub hit_rates: Vec<HitRate>,
    /// In order.
    pub added: Vec<Added>,
    /// `MarkPrefillCompleted` by the worker itself: the request's id and its worker.
    pub prefilled: BTreeMap<String, Worker>,
    /// The first `MarkPrefillCompleted` of each request.
    pub first_tokens: BTreeMap<String, FirstToken>,
    /// Node of the union tree by its parent and its block's tokens; the root is node 0.
    nodes: HashMap<(usize, u64), usize>,
}

impl Capture {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file cannot be read or holds something that is no message.
    pub fn read(path: &Path) -> Result<Self> {
        let mut capture = Self::default();
        for line in files::lines(path)? {
            let message: Value = serde_json::from_str(&line).context("a line of the recording")?;
            capture.message(&message).with_context(|| format!("the message {message}"))?;
        }
        Ok(capture)
    }

    /// Nodes of the union tree that at least `owners` workers hold.
    pub fn nodes_held_by(&self, owners: usize) -> u64 {
        let mut held: HashMap<usize, usize> = HashMap::new();
        for node in self.workers.values().flat_map(|worker| worker.attached.values().collect::<BTreeSet<_>>())
        {
            *held.entry(*node).or_default() += 1;
        }
        held.values().filter(|&&count| count >= owners).count() as u64
    }

    fn message(&mut self, message: &Value) -> Result<()> {
        let subject = message["s"].as_str().unwrap_or_default();
        // JetStream hands each message on to its consumers: the same bytes a second time.
        if message["r"].as_str().is_some_and(|reply| reply.starts_with("$JS.ACK.")) {
            return Ok(());
        }
        let Some(topic) = ["kv-events", "kv-hit-rate", "active_sequences_events"]
            .into_iter()
            .find(|topic| subject.strip_suffix(topic).is_some_and(|rest| rest.ends_with('.')))
        else {
            return Ok(());
        };
        let bytes = BASE64_STANDARD.decode(message["p"].as_str().context("no payload")?)?;
        let (mut at_s, mut is_published) = (message["t"].as_f64().unwrap_or(0.0), false);
        let payload = if bytes.first() == Some(&b'{') {
            serde_json::from_slice(&bytes)?
        } else {
            let envelope = rmpv::decode::read_value(&mut bytes.as_slice())?;
            let of_envelope = |wanted: &str| {
                let map = envelope.as_map()?;
                map.iter().find(|(key, _)| key.as_str() == Some(wanted)).map(|(_, value)| value)
            };
            if let Some(published_ms) = of_envelope("published_at").and_then(rmpv::Value::as_u64) {
                (at_s, is_published) = (published_ms as f64 / 1_000.0, true);
            }
            let inner = of_envelope("payload")
                .and_then(rmpv::Value::as_slice)
                .context("an envelope without payload")?;
            as_json(&rmpv::decode::read_value(&mut &inner[..])?)
        };
        match (topic, &payload) {
            ("kv-events", Value::Array(events)) => events.iter().try_for_each(|event| self.kv_event(event)),
            ("kv-events", event) => self.kv_event(event),
            ("kv-hit-rate", hit) => {
                self.hit_rates.push(HitRate {
                    at_s,
                    worker: (number(hit, "worker_id")?, hit["dp_rank"].as_u64().unwrap_or(0)),
                    isl_blocks: number(hit, "isl_blocks")?,
                    overlap_blocks: number(hit, "overlap_blocks")?,
                });
                Ok(())
            }
            (_, Value::Array(steps)) => {
                steps.iter().try_for_each(|step| self.sequence(step, at_s, is_published))
            }
            (_, step) => self.sequence(step, at_s, is_published),
        }
    }

    fn sequence(&mut self, step: &Value, at_s: f64, is_published: bool) -> Result<()> {
        let worker = &step["worker"];
        let is_by_worker = step["router_id"] == worker["worker_id"];
        let worker = (number(worker, "worker_id")?, worker["dp_rank"].as_u64().unwrap_or(0));
        let request_id = step["request_id"].as_str().context("no request_id")?.to_owned();
        if step["data"] == "MarkPrefillCompleted" {
            self.first_tokens.entry(request_id.clone()).or_insert(FirstToken { at_s, is_published });
            if is_by_worker {
                self.prefilled.insert(request_id, worker);
            }
        } else if let Some(request) = step["data"].get("AddRequest") {
            self.added.push(Added {
                at_s,
                request_id,
                worker,
                full_blocks: request["token_sequence"].as_array().map(|chain| chain.len() as u64),
                isl_tokens: request["isl"].as_u64(),
                overlap_blocks: request["overlap"].as_u64(),
                prefill_tokens: request["prefill_load_hint"]["initial_effective_prefill_tokens"].as_u64(),
            });
        }
        Ok(())
    }

    fn kv_event(&mut self, message: &Value) -> Result<()> {
        if !matches!(message["storage_tier"].as_str(), None | Some("device")) {
            return Ok(());
        }
        let event = &message["event"];
        let id = (number(message, "worker_id")?, event["dp_rank"].as_u64().unwrap_or(0));
        let data = &event["data"];
        let worker = self.workers.entry(id).or_default();
        if let Some(stored) = data.get("stored") {
            let mut parent = match stored["parent_hash"].as_u64() {
                None => Some(0),
                Some(hash) => worker.attached.get(&hash).copied(),
            };
            for block in stored["blocks"].as_array().context("stored without blocks")? {
                let hash = number(block, "block_hash")?;
                worker.stored_total += 1;
                let Some(above) = parent else {
                    worker.unattached.insert(hash);
                    continue;
                };
                let next = self.nodes.len() + 1;
                let node = *self.nodes.entry((above, number(block, "tokens_hash")?)).or_insert(next);
                worker.attached.insert(hash, node);
                parent = Some(node);
            }
        } else if let Some(removed) = data.get("removed") {
            for hash in removed["block_hashes"].as_array().context("removed without hashes")? {
                let hash = hash.as_u64().context("a hash")?;
                worker.removed_total += 1;
                worker.attached.remove(&hash);
                worker.unattached.remove(&hash);
            }
        } else if data == "cleared" {
            worker.attached.clear();
            worker.unattached.clear();
        }
        Ok(())
    }
}

fn number(value: &Value, key: &str) -> Result<u64> {
    value[key].as_u64().ok_or_else(|| anyhow!("no number {key}"))
}

fn as_json(value: &rmpv::Value) -> Value {
    match value {
        rmpv::Value::Nil | rmpv::Value::Binary(_) | rmpv::Value::Ext(..) => Value::Null,
        rmpv::Value::Boolean(flag) => Value::Bool(*flag),
        rmpv::Value::Integer(number) => {
            number.as_u64().map_or_else(|| number.as_i64().map_or(Value::Null, Value::from), Value::from)
        }
        rmpv::Value::F32(number) => Value::from(f64::from(*number)),
        rmpv::Value::F64(number) => Value::from(*number),
        rmpv::Value::String(text) => text.as_str().map_or(Value::Null, Value::from),
        rmpv::Value::Array(values) => values.iter().map(as_json).collect(),
        rmpv::Value::Map(entries) => Value::Object(
            entries
                .iter()
                .filter_map(|(key, value)| Some((key.as_str()?.to_owned(), as_json(value))))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(event: Value) -> Value {
        let event = json!({"worker_id": 7, "event": {"event_id": 0, "data": event, "dp_rank": 0}});
        json!({"s": "x-kv-events.kv-events", "p": BASE64_STANDARD.encode(event.to_string())})
    }

    fn stored(parent: Option<u64>, hashes: &[u64]) -> Value {
        let blocks: Vec<Value> =
            hashes.iter().map(|hash| json!({"block_hash": hash, "tokens_hash": hash % 100})).collect();
        message(json!({"stored": {"parent_hash": parent, "blocks": blocks}}))
    }

    #[test]
    fn a_removed_block_is_counted_and_no_longer_held() {
        let mut capture = Capture::default();
        capture.message(&stored(None, &[101, 102])).unwrap();
        capture.message(&stored(Some(102), &[103])).unwrap();
        capture.message(&stored(Some(999), &[104])).unwrap();
        capture.message(&message(json!({"removed": {"block_hashes": [103, 555]}}))).unwrap();
        let worker = &capture.workers[&(7, 0)];
        assert_eq!((worker.stored_total, worker.removed_total, worker.blocks()), (4, 2, 3));
        assert_eq!((capture.nodes_held_by(1), capture.nodes_held_by(2)), (2, 0));
    }

    #[test]
    fn a_copy_on_its_way_to_a_consumer_counts_once() {
        let mut capture = Capture::default();
        let mut copy = stored(None, &[101]);
        capture.message(&copy).unwrap();
        copy["r"] = "$JS.ACK.stream.consumer.1.1.1.1.0".into();
        capture.message(&copy).unwrap();
        assert_eq!(capture.workers[&(7, 0)].stored_total, 1);
    }
}
