//! How fast KV events go in and overlap comes out, ours and Dynamo's in turns within one process.

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::{KvCacheEventData, LocalBlockHash, RouterEvent};
use radixscope_captures::{Message, Recording};
use radixscope_intake::{Intake, NatsSubjects, Received};
use radixscope_model::id::{Millis, Seq, TokensHash};
use radixscope_model::record::{Entry, SourceKind};
use radixscope_oracle::capture;
use radixscope_oracle::ours;
use radixscope_oracle::theirs::{self, Wire};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;
use radixscope_state::tree::{NodeId, OverlapRule, Step, Tree};
use serde::Serialize;

/// Rounds in which both are timed once.
const ROUNDS: usize = 31;
/// A capture is run so often within a round that it takes about so long.
const ROUND: Duration = Duration::from_millis(60);

/// One kind of work, timed both ways.
#[derive(Serialize)]
pub(crate) struct Comparison {
    /// What a second counts.
    pub(crate) unit: &'static str,
    pub(crate) ours_per_s: f64,
    pub(crate) theirs_per_s: f64,
    /// Median of the rounds' ratios.
    pub(crate) ratio: f64,
    /// Smallest and largest ratio between the quartiles.
    pub(crate) ratio_quartiles: [f64; 2],
}

/// What decoding and applying costs on average, so that both sides of the ratio are known.
#[derive(Serialize)]
pub(crate) struct Costs {
    pub(crate) ours_ns_per_event: f64,
    pub(crate) theirs_ns_per_event: f64,
    pub(crate) ours_ns_per_block: f64,
    pub(crate) theirs_ns_per_block: f64,
}

/// Everything timed on one capture.
#[derive(Serialize)]
pub(crate) struct Throughput {
    pub(crate) capture: String,
    pub(crate) wire: String,
    pub(crate) messages: usize,
    pub(crate) events: usize,
    /// Blocks stored and hashes removed.
    pub(crate) blocks: usize,
    /// Message bytes to state, in blocks.
    pub(crate) decode_and_apply: Comparison,
    /// The same work in events.
    pub(crate) decode_and_apply_events: Comparison,
    /// The same in nanoseconds an event and a block.
    pub(crate) costs: Costs,
    /// Decoded events to state, in blocks.
    pub(crate) apply: Comparison,
    /// Overlap of every path of the end state with every worker, in blocks of the paths.
    pub(crate) overlap: Comparison,
}

/// A router's message of a request with its prompt, after which prompts are visible: what becomes of blocks is remembered.
fn routed() -> anyhow::Result<Message> {
    let messages = Recording::fixture("1.4.2-replicas").messages();
    let mut routed = messages.filter(|message| message.subject.ends_with("active_sequences_events"));
    routed.next().context("no message of a router")
}

/// What it costs that prompts are visible, in one line: ours without beside ours with.
pub(crate) fn visible(name: &str) -> anyhow::Result<Option<String>> {
    let messages = capture::kv_events(name);
    let Some(wire) = theirs::wire_of(&messages) else { return Ok(None) };
    let mut events = 0;
    for message in &messages {
        theirs::decode(wire, &message.payload, |_| events += 1)?;
    }
    let routed = routed()?;
    let (cluster, _) = fold_messages(&messages, Some(&routed));
    let tree = cluster.tree(cluster.default_pool());
    let first = tree.walk(NodeId::ROOT).find_map(|step| match step {
        Step::Enter { node, depth: 1 } => Some(node),
        _ => None,
    });
    // Where block sizes do not match no block is in the tree.
    anyhow::ensure!(
        first.is_none_or(|node| tree.chain_hash(node).is_some()),
        "{name}: prompts are not visible"
    );
    let it = compare(
        "events",
        events,
        || fold_messages(&messages, None).1,
        || fold_messages(&messages, Some(&routed)).1,
    );
    let [low, high] = it.ratio_quartiles;
    Ok(Some(format!(
        "{:<40} ns an event {:>7.1}, with prompts visible {:>7.1}; {:.3} ({low:.3} – {high:.3})",
        name.rsplit('/').next().unwrap_or(name),
        1e9 / it.ours_per_s,
        1e9 / it.theirs_per_s,
        it.ratio,
    )))
}

/// Decoding and applying alone, in one line: for a look at one change.
pub(crate) fn brief(name: &str) -> anyhow::Result<Option<String>> {
    let messages = capture::kv_events(name);
    let Some(wire) = theirs::wire_of(&messages) else { return Ok(None) };
    let (mut events, mut blocks) = (0, 0);
    for message in &messages {
        theirs::decode(wire, &message.payload, |event| {
            events += 1;
            blocks += blocks_of(&event);
        })?;
    }
    if blocks == 0 {
        return Ok(None);
    }
    let it =
        compare("blocks", blocks, || fold_messages(&messages, None).1, || apply_messages(wire, &messages).1);
    let [low, high] = it.ratio_quartiles;
    let ns_per_event = |per_s: f64| blocks as f64 / events as f64 * 1e9 / per_s;
    Ok(Some(format!(
        "{:<40} {:<10} {:>5.1} blocks an event; ns an event {:>7.1} {:>7.1}; a block {:>6.1} {:>6.1}; {:.2} ({low:.2} – {high:.2})",
        name.rsplit('/').next().unwrap_or(name),
        format!("{wire:?}"),
        blocks as f64 / events as f64,
        ns_per_event(it.ours_per_s),
        ns_per_event(it.theirs_per_s),
        1e9 / it.ours_per_s,
        1e9 / it.theirs_per_s,
        it.ratio,
    )))
}

pub(crate) fn measure(name: &str) -> anyhow::Result<Option<Throughput>> {
    let messages = capture::kv_events(name);
    let Some(wire) = theirs::wire_of(&messages) else { return Ok(None) };
    let mut events = Vec::new();
    for message in &messages {
        theirs::decode(wire, &message.payload, |event| events.push(event))?;
    }
    let blocks: usize = events.iter().map(blocks_of).sum();
    if blocks == 0 {
        return Ok(None);
    }
    let whole =
        compare("blocks", blocks, || fold_messages(&messages, None).1, || apply_messages(wire, &messages).1);
    let per_event = events.len() as f64 / blocks as f64;
    let decode_and_apply_events = Comparison {
        unit: "events",
        ours_per_s: whole.ours_per_s * per_event,
        theirs_per_s: whole.theirs_per_s * per_event,
        ..whole
    };
    let costs = Costs {
        ours_ns_per_event: 1e9 / decode_and_apply_events.ours_per_s,
        theirs_ns_per_event: 1e9 / decode_and_apply_events.theirs_per_s,
        ours_ns_per_block: 1e9 / whole.ours_per_s,
        theirs_ns_per_block: 1e9 / whole.theirs_per_s,
    };
    let entries = entries(&messages);
    let apply = compare("blocks", blocks, || fold_entries(&entries), || apply_events(events.clone()));
    let overlap = overlap(wire, &messages);
    Ok(Some(Throughput {
        capture: name.trim_end_matches('/').rsplit('/').next().unwrap_or(name).to_owned(),
        wire: format!("{wire:?}"),
        messages: messages.len(),
        events: events.len(),
        blocks,
        decode_and_apply: whole,
        decode_and_apply_events,
        costs,
        apply,
        overlap,
    }))
}

/// What decodes and applies a capture again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    /// Ours with prompts visible.
    Visible,
    Theirs,
}

impl std::str::FromStr for Side {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        match name {
            "ours" => Ok(Self::Ours),
            "visible" => Ok(Self::Visible),
            "theirs" => Ok(Self::Theirs),
            _ => anyhow::bail!("--side is ours, visible or theirs, not {name}"),
        }
    }
}

/// Decodes and applies a capture `rounds` times, one side alone: for a profiler.
pub(crate) fn repeat(name: &str, side: Side, rounds: u32) -> anyhow::Result<()> {
    let messages = capture::kv_events(name);
    let wire = theirs::wire_of(&messages).context("no KV events")?;
    let routed = if side == Side::Visible { Some(routed()?) } else { None };
    for _ in 0..rounds {
        match side {
            Side::Ours | Side::Visible => {
                std::hint::black_box(fold_messages(&messages, routed.as_ref()));
            }
            Side::Theirs => {
                std::hint::black_box(apply_messages(wire, &messages));
            }
        }
    }
    Ok(())
}

fn blocks_of(event: &RouterEvent) -> usize {
    match &event.event.data {
        KvCacheEventData::Stored(stored) => stored.blocks.len(),
        KvCacheEventData::Removed(removed) => removed.block_hashes.len(),
        KvCacheEventData::Cleared => 0,
    }
}

/// Times both in turns; each closure does the whole work once on a fresh tree and says how long it took.
pub(crate) fn compare(
    unit: &'static str,
    units: usize,
    mut ours: impl FnMut() -> Duration,
    mut theirs: impl FnMut() -> Duration,
) -> Comparison {
    let once = ours().max(theirs()).max(Duration::from_micros(1));
    let times = (ROUND.as_secs_f64() / once.as_secs_f64()).ceil().max(1.0) as u32;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // The fastest of both: whatever else the machine does only makes some slower.
        let (mut us, mut them) = (Duration::MAX, Duration::MAX);
        for _ in 0..times {
            us = us.min(ours());
            them = them.min(theirs());
        }
        a.push(us.as_secs_f64());
        b.push(them.as_secs_f64());
    }
    let ratios: Vec<f64> = a.iter().zip(&b).map(|(us, them)| them / us).collect();
    Comparison {
        unit,
        ours_per_s: units as f64 / quantile(&a, 0.5),
        theirs_per_s: units as f64 / quantile(&b, 0.5),
        ratio: quantile(&ratios, 0.5),
        ratio_quartiles: [quantile(&ratios, 0.25), quantile(&ratios, 0.75)],
    }
}

pub(crate) fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * at).round() as usize]
}

/// The server's own path: message, intake, fold. `before`: received before it is timed.
fn fold_messages(messages: &[Message], before: Option<&Message>) -> (Cluster, Duration) {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let mut subjects = NatsSubjects::default();
    let Some(source) = intake.source("capture", SourceKind::Nats, Millis(1), &mut cluster) else {
        unreachable!("the first source is never one too many");
    };
    let begin = messages.first().map_or(Millis(1), |message| Millis(message.at_ms()));
    let routed = before.and_then(|m| subjects.publication(&m.subject, None, m.payload.clone()));
    if let Some(payload) = routed {
        intake.handle(&Received { source, at_ms: begin, payload }, &mut cluster);
    }
    // A source owns what it received.
    let payloads: Vec<Bytes> = messages.iter().map(|m| m.payload.clone()).collect();
    let start = Instant::now();
    for (m, payload) in messages.iter().zip(payloads) {
        let Some(payload) = subjects.publication(&m.subject, m.reply.as_deref(), payload) else { continue };
        intake.handle(&Received { source, at_ms: Millis(m.at_ms()), payload }, &mut cluster);
    }
    let took = start.elapsed();
    (cluster, took)
}

fn apply_messages(wire: Wire, messages: &[Message]) -> (RadixTree, Duration) {
    let mut tree = RadixTree::new();
    let start = Instant::now();
    for m in messages {
        // Refusals are part of the work; the messages themselves were all decoded before.
        let _ = theirs::decode(wire, &m.payload, |event| {
            let _ = tree.apply_event(event);
        });
    }
    let took = start.elapsed();
    (tree, took)
}

/// Keeps the records as bytes beside the state that they make.
#[derive(Default)]
struct Retained {
    cluster: Cluster,
    entries: Vec<Vec<u8>>,
}

impl RecordSink for Retained {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.cluster.append(entry);
        self.entries.push(postcard::to_allocvec(entry).unwrap_or_default());
    }
}

fn entries(messages: &[Message]) -> Vec<Vec<u8>> {
    let (mut intake, mut retained) = (Intake::default(), Retained::default());
    let mut subjects = NatsSubjects::default();
    let Some(source) = intake.source("capture", SourceKind::Nats, Millis(1), &mut retained) else {
        unreachable!("the first source is never one too many");
    };
    for m in messages {
        let Some(payload) = subjects.publication(&m.subject, None, m.payload.clone()) else { continue };
        intake.handle(&Received { source, at_ms: Millis(m.at_ms()), payload }, &mut retained);
    }
    retained.entries
}

fn fold_entries(bytes: &[Vec<u8>]) -> Duration {
    let entries: Vec<Entry<'_>> = bytes.iter().filter_map(|b| postcard::from_bytes(b).ok()).collect();
    let mut cluster = Cluster::default();
    let start = Instant::now();
    for (seq, entry) in (1..).zip(&entries) {
        cluster.fold(Seq(seq), entry);
    }
    start.elapsed()
}

fn apply_events(events: Vec<RouterEvent>) -> Duration {
    let mut tree = RadixTree::new();
    let start = Instant::now();
    for event in events {
        let _ = tree.apply_event(event);
    }
    start.elapsed()
}

fn overlap(wire: Wire, messages: &[Message]) -> Comparison {
    let (cluster, _) = fold_messages(messages, None);
    let (tree, _) = apply_messages(wire, messages);
    let paths = ours::paths(cluster.tree(cluster.default_pool()));
    let blocks = paths.iter().map(Vec::len).sum();
    let their_paths: Vec<Vec<LocalBlockHash>> =
        paths.iter().map(|path| path.iter().copied().map(LocalBlockHash).collect()).collect();
    compare(
        "blocks",
        blocks,
        || our_queries(cluster.tree(cluster.default_pool()), &paths),
        || their_queries(&tree, their_paths.clone()),
    )
}

fn our_queries(tree: &Tree, paths: &[Vec<u64>]) -> Duration {
    let mut scores = Vec::new();
    let start = Instant::now();
    for path in paths {
        tree.overlap(OverlapRule::Prefix, path.iter().map(|&t| TokensHash(t)), &mut scores);
        std::hint::black_box(&scores);
    }
    start.elapsed()
}

fn their_queries(tree: &RadixTree, paths: Vec<Vec<LocalBlockHash>>) -> Duration {
    let start = Instant::now();
    for path in paths {
        std::hint::black_box(tree.find_matches(path, false));
    }
    start.elapsed()
}
