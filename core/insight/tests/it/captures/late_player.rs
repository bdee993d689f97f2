//! Plays the recording of a deployment that ran already as one would hear it who attaches to it: messages from then on, and
//! what its workers answered.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use radixscope_captures::Recording;
use radixscope_dynamo::envelope;
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_dynamo::request_plane::Codec;
use radixscope_dynamo::subject::Subject;
use radixscope_dynamo::tree_query::{TreeResponse, decode_response};
use radixscope_insight::check::Checks;
use radixscope_intake::command::TreeQuery;
use radixscope_intake::{Command, Intake, Payload, Received};
use radixscope_model::id::{BlockHash, SourceIx, TokensHash, Worker};
use radixscope_model::record::{Entry, LinkState, Phase, Record, SourceKind, Topic};
use radixscope_state::cluster::Cluster;
use radixscope_state::sink::RecordSink as _;

use crate::captures::replay::{millis, publications};

/// A block with the one before it and its tokens.
pub(crate) type HeldBlock = (BlockHash, Option<BlockHash>, TokensHash);

/// What a worker held at the end.
pub(crate) struct Final {
    pub(crate) last_event_id: u64,
    pub(crate) blocks: Vec<HeldBlock>,
}

enum Observed {
    Payload(Payload),
    /// Of the ZeroMQ publisher at this address.
    Zmq(String, Bytes),
}

/// A response that was recorded, and when it came.
struct Recorded {
    from: f64,
    at: f64,
    response: TreeResponse,
}

/// See the module.
pub(crate) struct Player {
    tape: Vec<(f64, Observed)>,
    health: Payload,
    /// All answers with all blocks, by worker, oldest first.
    dumps: HashMap<Worker, Vec<Recorded>>,
    truth: BTreeMap<Worker, Final>,
    pub(crate) intake: Intake,
    pub(crate) cluster: Cluster,
    checks: Checks,
    /// Codes of all findings that were ever active.
    pub(crate) found: BTreeSet<String>,
    source: SourceIx,
    /// Publishers at their addresses.
    channels: HashMap<String, Arc<Subject>>,
    /// Everything that workers sent so far, received or not.
    findings: HashMap<Worker, Vec<KvEvents>>,
    /// Queries that wait for their recorded time.
    waiting: Vec<(f64, TreeQuery)>,
    /// Whether a message is lost on its way, by the number of messages with KV events before it.
    pub(crate) loses: fn(usize) -> bool,
    pub(crate) queries: Vec<Option<u64>>,
    pub(crate) lost: usize,
}

impl Player {
    /// Of one who attaches at the recording's beginning, or so long before the first of the queries named so.
    pub(crate) fn new(name: &str, tag: &str, attaches_before: Option<f64>) -> Self {
        let recording = Recording::late(name);
        let mut dumps: HashMap<Worker, Vec<Recorded>> = HashMap::new();
        let mut instances = Vec::new();
        let mut first_dump = f64::MAX;
        for dump in recording.queries().filter(|query| query.kind == "dump") {
            let codec = if dump.is_json { Codec::Json } else { Codec::MsgPack };
            let worker = Worker::new(dump.worker_id, 0);
            let mut items =
                dump.items().filter_map(|item| decode_response(&item, codec, worker).expect("a response"));
            let response = items.next().expect("one item");
            drop(items);
            if dump.tag == tag {
                first_dump = first_dump.min(dump.asked_s);
            }
            instances.push(dump.instance);
            let recorded = Recorded { from: dump.asked_s, at: dump.answered_s, response };
            dumps.entry(worker).or_default().push(recorded);
        }
        let starts = attaches_before.map_or(0.0, |before| first_dump - before);
        let mut tape: Vec<(f64, Observed)> = Vec::new();
        if recording.folder().join("nats.jsonl.gz").is_file() {
            tape.extend(publications(&recording).map(|(at, payload)| (at, Observed::Payload(payload))));
        }
        // Who attaches late finds what is there then, and nothing of what was before.
        let mut there: BTreeMap<String, Bytes> = BTreeMap::new();
        let entry = |at: f64, key: &str, value: Option<Bytes>| {
            (at, Observed::Payload(Payload::Discovery { key: key.into(), value, lease: None }))
        };
        for change in recording.discovery_changes() {
            let value = change.value.map(|value| Bytes::from(value.to_string()));
            match value {
                value if change.at_s >= starts => tape.push(entry(change.at_s, &change.key, value)),
                Some(value) => drop(there.insert(change.key, value)),
                None => drop(there.remove(&change.key)),
            }
        }
        tape.extend(there.into_iter().map(|(key, value)| entry(starts, &key, Some(value))));
        for message in recording.zmq_messages() {
            let envelope = message.envelope();
            tape.push((message.at_s, Observed::Zmq(message.endpoint, envelope)));
        }
        tape.retain(|(at, _)| *at >= starts);
        tape.sort_by(|a, b| a.0.total_cmp(&b.0));
        let health = serde_json::json!({"status": "healthy", "instances": instances}).to_string();
        let health = Payload::Health { frontend: "f".into(), response: health.into() };
        let mut intake = Intake::default();
        let mut cluster = Cluster::default();
        let source = intake.source("capture", SourceKind::Nats, millis(starts), &mut cluster).unwrap();
        intake.set_verify_every(None);
        let live = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
        cluster.append(&Entry { at_ms: millis(starts), record: live });
        Self {
            tape,
            health,
            dumps,
            truth: truth(&recording),
            intake,
            cluster,
            checks: Checks::default(),
            found: BTreeSet::new(),
            source,
            channels: HashMap::new(),
            findings: HashMap::new(),
            waiting: Vec::new(),
            loses: |_| false,
            queries: Vec::new(),
            lost: 0,
        }
    }

    /// What workers held at the end.
    pub(crate) fn truth(&self) -> &BTreeMap<Worker, Final> {
        &self.truth
    }

    /// What the state says that a worker holds, in order.
    pub(crate) fn held(&self, worker: Worker) -> Vec<HeldBlock> {
        let ix = self.cluster.worker_ix(worker).expect("a worker");
        let held = self.cluster.tree_of(ix).held_by(ix.slot()).into_iter();
        let mut held: Vec<HeldBlock> =
            held.map(|(parent, block, _)| (block.block_hash, parent, block.tokens_hash)).collect();
        held.sort_unstable();
        held
    }

    /// Plays everything. `meanwhile` sees the intake before each message.
    pub(crate) fn play(&mut self, mut meanwhile: impl FnMut(&mut Intake, &Cluster, f64)) {
        let tape = std::mem::take(&mut self.tape);
        let first = tape.first().map_or(0.0, |(at, _)| *at);
        let last = tape.last().map_or(0.0, |(at, _)| *at);
        self.handle(first, self.health.clone());
        self.handle(first, Payload::Subscribed { publisher_id: None });
        let mut flushed = first;
        let mut kv_messages = 0;
        for (at, observed) in tape {
            while flushed + 1.0 < at {
                flushed += 1.0;
                self.answer_until(flushed);
                self.flush(flushed);
                self.obey(flushed);
            }
            self.answer_until(at);
            meanwhile(&mut self.intake, &self.cluster, at);
            self.obey(at);
            let payload = match observed {
                Observed::Payload(payload) => payload,
                Observed::Zmq(address, message) => match self.channels.get(&address) {
                    Some(subject) => Payload::Nats { subject: Arc::clone(subject), message },
                    None => continue,
                },
            };
            if self.note(&payload) {
                kv_messages += 1;
                if (self.loses)(kv_messages) {
                    self.lost += 1;
                    continue;
                }
            }
            self.handle(at, payload);
        }
        for second in 0..15 {
            let at = last + f64::from(second);
            self.answer_until(at);
            self.flush(at);
            self.obey(at);
        }
    }

    fn flush(&mut self, at: f64) {
        self.intake.flush(millis(at), &mut self.cluster);
        self.checks.run(millis(at), &mut self.cluster);
        let active = self.cluster.findings().iter().filter(|finding| finding.phase != Phase::Cleared);
        self.found.extend(active.map(|finding| finding.code.to_string()));
    }

    fn handle(&mut self, at: f64, payload: Payload) {
        let Self { intake, cluster, source, .. } = self;
        intake.handle(&Received { source: *source, at_ms: millis(at), payload }, cluster);
        self.obey(at);
    }

    fn obey(&mut self, at: f64) {
        for command in self.intake.commands() {
            match command {
                Command::Query(query) => {
                    self.queries.push(query.start_event_id);
                    // A recorded response is one to a query that was asked at its time.
                    let recorded = self.dumps.get(&query.endpoint.worker);
                    let next = recorded.and_then(|dumps| dumps.iter().find(|dump| dump.from >= at));
                    let due = match query.start_event_id {
                        Some(_) => at + 0.003,
                        None => next.map_or(f64::MAX, |dump| dump.at),
                    };
                    self.waiting.push((due, query));
                }
                Command::CancelQuery { id } => self.waiting.retain(|(_, query)| query.id != id),
                Command::Listen(channel) => {
                    self.channels.insert(channel.endpoint, channel.subject);
                    let publisher_id = Some(channel.publisher_id);
                    self.handle(at, Payload::Subscribed { publisher_id });
                }
                Command::Subscribe(_) => {}
                Command::ListenToBroker { .. } | Command::LeaveBroker { .. } => {}
                Command::Unlisten { endpoint, .. } => {
                    self.channels.remove(&endpoint);
                }
            }
        }
    }

    fn answer_until(&mut self, at: f64) {
        while let Some(ix) = self.waiting.iter().position(|(due, _)| *due <= at) {
            let (due, query) = self.waiting.swap_remove(ix);
            let worker = query.endpoint.worker;
            let response = match query.start_event_id {
                Some(start) => self.range(worker, start),
                None => {
                    let recorded = self.dumps[&worker].iter().find(|dump| dump.at == due);
                    recorded.expect("it was chosen").response.clone()
                }
            };
            let payload =
                Payload::TreeResponse { query: query.id, outcome: Arc::new(Ok(response)), size_bytes: 0 };
            self.handle(due, payload);
        }
    }

    /// What the worker answers who is asked for its events from one on.
    fn range(&self, worker: Worker, start: u64) -> TreeResponse {
        let mut all = KvEvents::default();
        all.batch = true;
        let mut newest = 0;
        for findings in self.findings.get(&worker).into_iter().flatten() {
            for event in &findings.events {
                newest = newest.max(event.event_id);
                if event.event_id < start {
                    continue;
                }
                let mut event = event.clone();
                match &mut event.data {
                    KvData::Stored { blocks, .. } => {
                        let from = all.blocks.len() as u32;
                        all.blocks.extend_from_slice(findings.blocks_of(blocks));
                        *blocks = from..all.blocks.len() as u32;
                    }
                    KvData::Removed { hashes } => {
                        let from = all.removed.len() as u32;
                        all.removed.extend_from_slice(findings.removed_of(hashes));
                        *hashes = from..all.removed.len() as u32;
                    }
                    KvData::Cleared => {}
                }
                all.events.push(event);
            }
        }
        match all.events.is_empty() {
            true => TreeResponse::TooNew { newest_available: newest },
            false => TreeResponse::Events { events: all, last_event_id: Some(newest) },
        }
    }

    /// Keeps what a worker says. Whether the message holds KV events.
    fn note(&mut self, payload: &Payload) -> bool {
        let Payload::Nats { subject, message } = payload else { return false };
        if subject.topic != Topic::KvEvents {
            return false;
        }
        let body = envelope::open(message).unwrap();
        let (payload, format) = body.payload();
        let mut events = KvEvents::default();
        events.decode(payload, format).unwrap();
        if let Some(worker) = events.events.first().map(|event| event.worker) {
            self.findings.entry(worker).or_default().push(events);
        }
        true
    }
}

fn truth(recording: &Recording) -> BTreeMap<Worker, Final> {
    let of = |held: radixscope_captures::HeldBlocks| {
        let blocks = held.blocks.into_iter();
        let blocks = blocks
            .map(|(hash, parent, tokens)| (BlockHash(hash), parent.map(BlockHash), TokensHash(tokens)))
            .collect();
        Final { last_event_id: held.last_event_id, blocks }
    };
    recording.truth().into_iter().map(|(worker, held)| (Worker::new(worker, 0), of(held))).collect()
}
