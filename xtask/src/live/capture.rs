//! What a recording of NATS says of the workers, computed without any of Radixscope's own code: the figures that
//! Radixscope has to show. Slow and plain on purpose.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// A worker and its data-parallel rank.
pub(super) type Worker = (u64, u64);

/// Figures of one worker.
#[derive(Default)]
pub(super) struct WorkerFigures {
    /// Blocks in its stored events.
    pub(super) stored_total: u64,
    /// Hashes in its removed events.
    pub(super) removed_total: u64,
    /// The node of each block it holds whose place in the tree is known.
    attached: HashMap<u64, usize>,
    /// Blocks it holds whose parent was never stored.
    unattached: BTreeSet<u64>,
}

impl WorkerFigures {
    /// Blocks it holds, their place known or not.
    pub(super) fn blocks(&self) -> u64 {
        (self.attached.len() + self.unattached.len()) as u64
    }
}

/// Everything a recording says.
#[derive(Default)]
pub(super) struct Capture {
    /// By worker.
    pub(super) workers: BTreeMap<Worker, WorkerFigures>,
    /// `kv-hit-rate`, in order: worker, prompt blocks, overlap blocks.
    pub(super) hit_rates: Vec<(Worker, u64, u64)>,
    /// `MarkPrefillCompleted` by the worker itself: the request's id and its worker.
    pub(super) prefilled: BTreeMap<String, Worker>,
    /// Node of the union tree by its parent and its block's tokens; the root is node 0.
    nodes: HashMap<(usize, u64), usize>,
}

impl Capture {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file cannot be read or holds something that is no message.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let mut capture = Self::default();
        for line in BufReader::new(MultiGzDecoder::new(file)).lines() {
            let message: Value = serde_json::from_str(&line?).context("a line of the recording")?;
            capture.message(&message).with_context(|| format!("the message {message}"))?;
        }
        Ok(capture)
    }

    /// Nodes of the union tree that at least `owners` workers hold.
    pub(super) fn nodes_held_by(&self, owners: usize) -> u64 {
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
        let payload = if bytes.first() == Some(&b'{') {
            serde_json::from_slice(&bytes)?
        } else {
            let envelope = rmpv::decode::read_value(&mut bytes.as_slice())?;
            let inner = envelope
                .as_map()
                .and_then(|map| map.iter().find(|(key, _)| key.as_str() == Some("payload")))
                .and_then(|(_, payload)| payload.as_slice())
                .context("an envelope without payload")?;
            as_json(&rmpv::decode::read_value(&mut &inner[..])?)
        };
        match (topic, &payload) {
            ("kv-events", Value::Array(events)) => events.iter().try_for_each(|event| self.kv_event(event)),
            ("kv-events", event) => self.kv_event(event),
            ("kv-hit-rate", hit) => {
                self.hit_rates.push((
                    (number(hit, "worker_id")?, hit["dp_rank"].as_u64().unwrap_or(0)),
                    number(hit, "isl_blocks")?,
                    number(hit, "overlap_blocks")?,
                ));
                Ok(())
            }
            (_, sequence) => self.sequence(sequence),
        }
    }

    fn sequence(&mut self, sequence: &Value) -> Result<()> {
        let worker = &sequence["worker"];
        let by_worker = sequence["router_id"] == worker["worker_id"];
        if by_worker && sequence["data"] == "MarkPrefillCompleted" {
            let request = sequence["request_id"].as_str().context("no request_id")?.to_owned();
            self.prefilled
                .insert(request, (number(worker, "worker_id")?, worker["dp_rank"].as_u64().unwrap_or(0)));
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
