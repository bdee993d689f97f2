//! What the messages of a recording report: blocks of every worker, and what routers and workers publish of requests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::LazyLock,
};

use anyhow::{Context, Result, anyhow};
use base64::{Engine, prelude::BASE64_STANDARD};
use regex::Regex;
use serde_json::Value;

use crate::loads::Loads;
use crate::log::pattern;
use crate::{Worker, files};

/// Where blocks are unless an event names another tier.
const DEVICE: &str = "device";

/// Figures of one worker.
#[derive(Default)]
pub struct WorkerFigures {
    /// The pool on whose subject its events are.
    pub pool: String,
    /// Blocks in its stored events.
    pub stored_total: u64,
    /// Hashes in its removed events.
    pub removed_total: u64,
    /// By name, those below the device.
    pub tiers: BTreeMap<String, TierFigures>,
    /// The node of each block it holds whose place in the tree is known.
    attached: HashMap<u64, usize>,
    /// Blocks it holds whose parent was never stored.
    unattached: BTreeSet<u64>,
}

/// Figures of one worker below its device.
#[derive(Default)]
pub struct TierFigures {
    /// Blocks in stored events.
    pub stored_total: u64,
    /// Hashes in removed events.
    pub removed_total: u64,
    held: BTreeSet<u64>,
}

impl TierFigures {
    /// Blocks that are there.
    pub fn blocks(&self) -> u64 {
        self.held.len() as u64
    }
}

impl WorkerFigures {
    /// Blocks it holds, their place known or not.
    pub fn blocks(&self) -> u64 {
        (self.attached.len() + self.unattached.len()) as u64
    }

    /// It holds nothing any more.
    fn clear(&mut self) {
        self.attached.clear();
        self.unattached.clear();
        self.tiers.values_mut().for_each(|tier| tier.held.clear());
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
    /// The pool on whose subject it is.
    pub pool: String,
    /// Hashes of the prompt's full blocks, if they are there.
    pub chain: Option<Vec<u64>>,
    /// Full blocks of the prompt, if this message or the one about the other choice for the request has their hashes.
    pub full_blocks: Option<u64>,
    /// Prompt tokens of earlier requests on this worker that no message says are computed.
    pub waiting_tokens: u64,
    /// Different blocks of the requests that run on this worker, this one among them.
    pub running_blocks: u64,
    /// Tokens of the prompt (0.8 to 1.1).
    pub isl_tokens: Option<u64>,
    /// Blocks that the worker held (0.8 to 1.1).
    pub overlap_blocks: Option<u64>,
    /// Tokens the worker had to prefill (from 1.2).
    pub prefill_tokens: Option<u64>,
}

/// When something happened to a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Happened {
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
    /// The first `MarkPrefillCompleted` of each request on each worker.
    pub first_tokens: BTreeMap<(String, Worker), Happened>,
    /// The first `Free` of each request on each worker.
    pub ends: BTreeMap<(String, Worker), Happened>,
    /// The pool of each worker that any message names.
    pub pools: BTreeMap<Worker, String>,
    /// Node of the tree of a pool by its parent and its block's tokens; the root is node 0.
    nodes: HashMap<(String, usize, u64), usize>,
    loads: Loads,
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
        capture.join_parts();
        Ok(capture)
    }

    /// Nodes of the trees of all pools that at least `owners` workers hold.
    pub fn nodes_held_by(&self, owners: usize) -> u64 {
        held_by(self.workers.values(), owners)
    }

    /// Nodes of the tree of a pool that at least `owners` workers hold.
    pub fn nodes_of(&self, pool: &str, owners: usize) -> u64 {
        held_by(self.of_pool(pool), owners)
    }

    /// Blocks that the workers of a pool hold together.
    pub fn resident_of(&self, pool: &str) -> u64 {
        self.of_pool(pool).map(WorkerFigures::blocks).sum()
    }

    /// Workers that are gone hold nothing.
    pub(crate) fn leave(&mut self, is_there: impl Fn(Worker) -> bool) {
        let gone = self.workers.iter_mut().filter(|(worker, _)| !is_there(**worker));
        gone.for_each(|(_, figures)| figures.clear());
    }

    fn of_pool<'c>(&'c self, pool: &'c str) -> impl Iterator<Item = &'c WorkerFigures> {
        self.workers.values().filter(move |worker| worker.pool == pool)
    }

    /// A message without the prompt's hashes has its number of full blocks from the one about the request's other choice.
    fn join_parts(&mut self) {
        let full: BTreeMap<String, u64> = self
            .added
            .iter()
            .filter_map(|added| Some((added.request_id.clone(), added.chain.as_ref()?.len() as u64)))
            .collect();
        for added in &mut self.added {
            added.full_blocks = added.full_blocks.or_else(|| full.get(&added.request_id).copied());
        }
    }

    fn message(&mut self, message: &Value) -> Result<()> {
        let Some(Message { topic, pool, at_s, is_published, payload }) = Message::open(message)? else {
            return Ok(());
        };
        match (topic, &payload) {
            ("kv-events", Value::Array(events)) => {
                events.iter().try_for_each(|event| self.kv_event(event, &pool))
            }
            ("kv-events", event) => self.kv_event(event, &pool),
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
                steps.iter().try_for_each(|step| self.sequence(step, &pool, Happened { at_s, is_published }))
            }
            (_, step) => self.sequence(step, &pool, Happened { at_s, is_published }),
        }
    }

    fn sequence(&mut self, step: &Value, pool: &str, at: Happened) -> Result<()> {
        let worker = &step["worker"];
        let is_by_worker = step["router_id"] == worker["worker_id"];
        let worker = (number(worker, "worker_id")?, worker["dp_rank"].as_u64().unwrap_or(0));
        let request_id = step["request_id"].as_str().context("no request_id")?.to_owned();
        self.pools.entry(worker).or_insert_with(|| pool.to_owned());
        let key = (request_id, worker);
        if step["data"] == "MarkPrefillCompleted" {
            self.loads.prefilled(&key);
            if is_by_worker {
                self.prefilled.insert(key.0.clone(), worker);
            }
            // Worker and router both report it. The earlier one counts, whichever was received first.
            let first = self.first_tokens.entry(key).or_insert(at);
            if at.at_s < first.at_s {
                *first = at;
            }
        } else if step["data"] == "Free" {
            self.loads.freed(&key);
            self.ends.entry(key).or_insert(at);
        } else if let Some(request) = step["data"].get("AddRequest") {
            let chain = request["token_sequence"].as_array();
            let chain: Option<Vec<u64>> = chain.map(|of| of.iter().filter_map(Value::as_u64).collect());
            let isl_tokens = request["isl"].as_u64();
            let prefill_tokens = request["prefill_load_hint"]["initial_effective_prefill_tokens"].as_u64();
            let waiting_tokens = self.loads.waiting_tokens(worker);
            let running_blocks =
                self.loads.add(&key, chain.as_deref().unwrap_or_default(), prefill_tokens.unwrap_or(0));
            self.added.push(Added {
                at_s: at.at_s,
                request_id: key.0,
                worker,
                pool: pool.to_owned(),
                full_blocks: chain.as_ref().map(|chain| chain.len() as u64),
                chain,
                waiting_tokens,
                running_blocks,
                isl_tokens,
                overlap_blocks: request["overlap"].as_u64(),
                prefill_tokens,
            });
        }
        Ok(())
    }

    fn kv_event(&mut self, message: &Value, pool: &str) -> Result<()> {
        let event = &message["event"];
        let id = (number(message, "worker_id")?, event["dp_rank"].as_u64().unwrap_or(0));
        let data = &event["data"];
        let worker = self.workers.entry(id).or_default();
        pool.clone_into(&mut worker.pool);
        self.pools.insert(id, pool.to_owned());
        if let Some(tier) = message["storage_tier"].as_str().filter(|tier| *tier != DEVICE) {
            return worker.tiers.entry(tier.to_owned()).or_default().event(data);
        }
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
                let key = (pool.to_owned(), above, number(block, "tokens_hash")?);
                let node = *self.nodes.entry(key).or_insert(next);
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
            worker.clear();
        }
        Ok(())
    }
}

/// A message about blocks or requests.
pub(crate) struct Message {
    /// What it is about: the last word of its subject.
    pub(crate) topic: &'static str,
    /// The pool on whose subject it is.
    pub(crate) pool: String,
    /// When it was published, Unix seconds; when it was received, where there is no envelope.
    pub(crate) at_s: f64,
    /// Whether it is the time of publication.
    pub(crate) is_published: bool,
    /// One or several.
    pub(crate) payload: Value,
}

impl Message {
    /// The JSON text that a recorded message carries.
    pub(crate) fn json(message: &Value) -> Result<Value> {
        let bytes = BASE64_STANDARD.decode(message["p"].as_str().context("no payload")?)?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// Opens a recorded message; `None`: it is about something else, or a copy.
    pub(crate) fn open(message: &Value) -> Result<Option<Self>> {
        let subject = message["s"].as_str().unwrap_or_default();
        // JetStream hands each message on to its consumers: the same bytes a second time.
        if message["r"].as_str().is_some_and(|reply| reply.starts_with("$JS.ACK.")) {
            return Ok(None);
        }
        let Some(topic) = ["kv-events", "kv-hit-rate", "active_sequences_events"]
            .into_iter()
            .find(|topic| subject.strip_suffix(topic).is_some_and(|rest| rest.ends_with('.')))
        else {
            return Ok(None);
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
        let pool = pool_of(subject).unwrap_or_default();
        Ok(Some(Self { topic, pool, at_s, is_published, payload }))
    }
}

impl TierFigures {
    fn event(&mut self, data: &Value) -> Result<()> {
        if let Some(stored) = data.get("stored") {
            for block in stored["blocks"].as_array().context("stored without blocks")? {
                self.stored_total += 1;
                self.held.insert(number(block, "block_hash")?);
            }
        } else if let Some(removed) = data.get("removed") {
            for hash in removed["block_hashes"].as_array().context("removed without hashes")? {
                self.removed_total += 1;
                self.held.remove(&hash.as_u64().context("a hash")?);
            }
        } else if data == "cleared" {
            self.held.clear();
        }
        Ok(())
    }
}

fn held_by<'w>(workers: impl Iterator<Item = &'w WorkerFigures>, owners: usize) -> u64 {
    let mut held: HashMap<usize, usize> = HashMap::new();
    for node in workers.flat_map(|worker| worker.attached.values().collect::<BTreeSet<_>>()) {
        *held.entry(*node).or_default() += 1;
    }
    held.values().filter(|&&count| count >= owners).count() as u64
}

/// Namespace and component of a subject, as `NAMESPACE/COMPONENT`; a stream's subject has no dots between them.
fn pool_of(subject: &str) -> Option<String> {
    static OF_STREAM: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^namespace-(.+)-component-(.+)-kv-events\.kv-events$"));
    static OF_SUBJECT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^namespace\.(.+)\.component\.([^.]+)\.(?:endpoint\.[^.]+\.)?[^.]+$"));
    let parts = OF_STREAM.captures(subject).or_else(|| OF_SUBJECT.captures(subject))?;
    Some(format!("{}/{}", &parts[1], &parts[2]))
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
