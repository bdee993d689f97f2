//! KV events of engines without Dynamo: what their genuine publishers sent, of every encoding, against the count of who made the blocks.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use radixscope_captures::EngineRecording;
use radixscope_dynamo::{DecodeError, Reason};
use radixscope_intake::{Break, EngineInput, EnginePublisher, Intake, Payload, Received};
use radixscope_model::id::{Millis, PoolIx, SourceIx, WorkerIx};
use radixscope_model::record::{
    DepartureCause, Engine, EventForm, EventTransport, HashForm, KnowledgeWhy, LinkState, MissedCause,
    QueryState, Replay, SourceKind, Tier, TreeKnowledge,
};
use radixscope_router::hash::chain_hash;
use radixscope_state::cluster::{BlockSizeSource, Cluster};
use radixscope_state::tree::NodeId;

use crate::publisher;

/// Some time after the recordings' batches.
const NOW_MS: u64 = 1_800_000_100_000;

struct Stage {
    intake: Intake,
    cluster: Cluster,
    at_ms: u64,
}

impl Stage {
    fn new() -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        intake.source("engines", SourceKind::Engines, Millis(NOW_MS), &mut cluster).unwrap();
        Self { intake, cluster, at_ms: NOW_MS }
    }

    fn give(&mut self, publisher: &Arc<EnginePublisher>, input: EngineInput) {
        let payload = Payload::Engine { publisher: Arc::clone(publisher), input };
        let received = Received { source: SourceIx(0), at_ms: Millis(self.at_ms), payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    fn batch(&mut self, publisher: &Arc<EnginePublisher>, run: u32, sequence: u64, body: &Bytes) {
        let body = body.clone();
        self.give(publisher, EngineInput::Batch { run, sequence, is_replayed: false, body });
    }

    /// Everything that a recording has, from one batch on and up to but not including another.
    fn play(
        &mut self,
        publisher: &Arc<EnginePublisher>,
        recorded: &EngineRecording,
        (run, from, to): (u32, usize, usize),
    ) {
        for (at, frames) in recorded.live.iter().enumerate().take(to).skip(from) {
            self.batch(publisher, run, at as u64, &frames[2]);
        }
    }

    fn flush(&mut self) {
        for _ in 0..2 {
            self.at_ms += 1_000;
            self.intake.flush(Millis(self.at_ms), &mut self.cluster);
        }
    }

    fn knowledge(&self, worker: WorkerIx) -> (TreeKnowledge, KnowledgeWhy) {
        let knowledge = &self.cluster.worker(worker).unwrap().knowledge;
        assert_eq!(knowledge.asking, QueryState::No, "engines answer no query");
        (knowledge.state, knowledge.why)
    }
}

fn publisher(key: u64, engine: Engine) -> Arc<EnginePublisher> {
    Arc::new(publisher::publisher(&format!("tcp://e{key}:5557"), key, engine, "chat"))
}

fn engine_of(name: &str) -> Engine {
    if name.starts_with("vllm") { Engine::Vllm } else { Engine::Sglang }
}

const FIRST: WorkerIx = WorkerIx(0);
const ALL: usize = usize::MAX;

#[test]
fn every_encoding_leads_to_the_same_tree() {
    for name in EngineRecording::ALL {
        let recorded = EngineRecording::of(name);
        let expected = &recorded.expected;
        let mut stage = Stage::new();
        let engine = publisher(7, engine_of(name));
        stage.play(&engine, &recorded, (0, 0, ALL));
        stage.flush();
        let cluster = &stage.cluster;
        assert_eq!((cluster.rejected_total(), cluster.missed_total()), (0, 0), "{name}");
        assert_eq!(cluster.blocks(FIRST), Some(expected.held as u64), "{name}");
        let hashes: Vec<u64> = expected.hashes.iter().map(|hash| hash.parse().unwrap()).collect();
        assert!(
            hashes.iter().all(|&hash| cluster.find(FIRST, radixscope_model::id::BlockHash(hash)).is_some())
        );
        let worker = cluster.worker(FIRST).unwrap();
        assert_eq!(
            (worker.stored_total, worker.removed_total),
            (expected.stored, expected.removed),
            "{name}"
        );
        assert_eq!((worker.cleared_total, worker.unknown_parents_total), (expected.cleared, 0), "{name}");
        assert_eq!((worker.unknown_removed_total, cluster.holdings(FIRST).unattached), (0, 0), "{name}");
        assert_eq!(worker.lines[0].line, EventTransport::Engine);
        // One worker holds each of its paths once.
        assert_eq!(expected.paths.iter().collect::<BTreeSet<_>>().len(), expected.held);
        assert_eq!(cluster.tree(PoolIx(0)).totals().nodes, expected.held as u64, "{name}");
        let copies = cluster.tier_tree(PoolIx(0), Tier::Host).holdings(FIRST.slot()).resident;
        assert_eq!(copies, expected.host as u64, "{name}");
        let size = cluster.block_size(FIRST).unwrap();
        assert_eq!((size.value, size.source), (16, BlockSizeSource::Events));
        assert_eq!(stage.knowledge(FIRST), (TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent));
        let feed = &stage.cluster.engines()[0];
        let events =
            if matches!(name, "vllm-0.23.0" | "sglang-0.5.18") { EventForm::Array } else { EventForm::Map };
        let hashes = if name.ends_with("bytes") { HashForm::Bytes } else { HashForm::Integer };
        assert_eq!((feed.event_form, feed.hash_form), (Some(events), Some(hashes)), "{name}");
        assert_eq!(
            (feed.received, feed.last_sequence),
            (expected.batches as u64, Some(expected.batches as u64 - 1))
        );
        assert!(stage.cluster.is_without_router(PoolIx(0)));
    }
}

#[test]
fn blocks_of_the_mocker_are_named_by_the_hashes_that_are_computed_here() {
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    for (at, frames) in EngineRecording::of_mocker().iter().enumerate() {
        stage.batch(&engine, 0, at as u64, &frames[2]);
    }
    stage.flush();
    let cluster = &stage.cluster;
    assert_eq!((cluster.rejected_total(), cluster.missed_total()), (0, 0));
    // Counted from the recording by other means.
    let worker = cluster.worker(FIRST).unwrap();
    assert_eq!((worker.stored_total, worker.removed_total, cluster.blocks(FIRST)), (2_076, 1_778, Some(298)));
    let tree = cluster.tree(PoolIx(0));
    let mut compared = 0;
    for name in tree.names_of(FIRST.slot()) {
        let node = tree.find(FIRST.slot(), name).unwrap();
        let above = tree.parent(node).filter(|&above| above != NodeId::ROOT);
        let parent = above.map(|above| tree.block_hash_by(above, FIRST.slot()));
        // The mocker names blocks as Dynamo's router does, by the chain of tokens hashes.
        assert_eq!(chain_hash(parent, tree.tokens_hash(node)), name);
        compared += 1;
    }
    assert_eq!(compared, 298);
}

#[test]
fn what_two_engines_hold_of_a_prompt_is_one_path() {
    for (one, other) in [("vllm-0.23.0", "vllm-0.32.0-bytes"), ("vllm-0.32.0", "sglang-0.5.23")] {
        let mut stage = Stage::new();
        let (mut paths, mut all) = (Vec::new(), BTreeSet::new());
        for (key, name) in [(7, one), (8, other)] {
            let recorded = EngineRecording::of(name);
            stage.play(&publisher(key, engine_of(name)), &recorded, (0, 0, ALL));
            all.extend(recorded.expected.paths.iter().cloned());
            paths.push(recorded.expected.paths.into_iter().collect::<BTreeSet<_>>());
        }
        let shared = paths[0].intersection(&paths[1]).count();
        assert!(shared > 20, "{one} and {other} share {shared}");
        let totals = stage.cluster.tree(PoolIx(0)).totals();
        // SGLang salts every block of a run, vLLM the first of a prompt: those paths alone differ.
        let salted = |name: &str| name.starts_with("sglang");
        let expected = (all.len() as u64, shared as u64);
        if salted(other) {
            assert!(totals.nodes >= expected.0 && totals.shared <= expected.1 && totals.shared > 20);
        } else {
            assert_eq!((totals.nodes, totals.shared), expected, "{one} and {other}");
        }
    }
}

#[test]
fn an_engine_that_is_met_late_is_partial_until_it_clears() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    stage.play(&engine, &recorded, (0, 10, 20));
    stage.flush();
    assert_eq!(stage.knowledge(FIRST), (TreeKnowledge::Partial, KnowledgeWhy::JoinedLate));
    assert_eq!(stage.cluster.missed_total(), 0, "what came before is not lost, but not known");
    stage.play(&engine, &recorded, (0, 20, ALL));
    stage.flush();
    assert_eq!(stage.knowledge(FIRST), (TreeKnowledge::Complete, KnowledgeWhy::Cleared));
    assert_eq!(stage.cluster.blocks(FIRST), Some(recorded.expected.held as u64));
}

#[test]
fn batches_that_did_not_come_are_counted_as_the_engines() {
    let recorded = EngineRecording::of("sglang-0.5.23");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Sglang);
    stage.play(&engine, &recorded, (0, 0, 5));
    stage.play(&engine, &recorded, (0, 9, 12));
    stage.flush();
    stage.flush();
    assert_eq!(stage.cluster.missed_total(), 4);
    assert_eq!(stage.cluster.worker(FIRST).unwrap().missed_total, 4);
    assert_eq!(stage.cluster.sources()[0].missed[0].cause, MissedCause::EnvelopeGap);
    assert_eq!(stage.knowledge(FIRST), (TreeKnowledge::Partial, KnowledgeWhy::EventsLost));
}

#[test]
fn an_engine_that_begins_anew_holds_nothing_of_before() {
    let recorded = EngineRecording::of("vllm-0.25.0");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    for (run, from) in [(1, 0), (2, 3)] {
        stage.play(&engine, &recorded, (run - 1, 0, 12));
        let before = stage.cluster.blocks(FIRST).unwrap();
        // The first number may be the one that would have come next.
        stage.play(&engine, &recorded, (run, from, from + 1));
        stage.flush();
        let now = stage.cluster.blocks(FIRST).unwrap();
        assert!(before > 50 && (1..30).contains(&now), "{before}, {now}");
    }
    assert_eq!(stage.knowledge(FIRST).0, TreeKnowledge::Partial, "its first three batches were not received");
    assert_eq!(stage.cluster.engines()[0].restarts, 2);
    assert_eq!(stage.cluster.missed_total(), 0);
}

#[test]
fn a_publisher_that_is_gone_for_good_takes_its_worker_with_it() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let (gone, stays) = (publisher(1, Engine::Vllm), publisher(2, Engine::Vllm));
    for engine in [&gone, &stays] {
        stage.play(engine, &recorded, (0, 0, ALL));
    }
    stage.flush();
    let ended = || EngineInput::Link { state: LinkState::Ended, detail: "".into() };
    // Once more changes nothing, nor does one that never was.
    for engine in [&gone, &gone, &publisher(3, Engine::Vllm)] {
        stage.give(engine, ended());
    }
    stage.flush();
    let names: Vec<_> = stage.cluster.engines().iter().map(|feed| feed.name.clone()).collect();
    assert_eq!(names, ["tcp://e2:5557"]);
    let held = |ix| (stage.cluster.blocks(ix), stage.cluster.worker(ix).unwrap().departure.map(|of| of.why));
    let all = Some(recorded.expected.held as u64);
    assert_eq!((held(FIRST), held(WorkerIx(1))), ((Some(0), Some(DepartureCause::Discovery)), (all, None)));
    assert_eq!((stage.cluster.missed_total(), stage.cluster.rejected_total()), (0, 0));
}

#[test]
fn engines_that_are_not_listened_to_after_a_restart_have_left() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let engines = [publisher(1, Engine::Vllm), publisher(2, Engine::Vllm)];
    for engine in &engines {
        stage.play(engine, &recorded, (0, 0, ALL));
    }
    stage.flush();
    stage.intake = Intake::default();
    let away = Break { since_ms: Millis(stage.at_ms), until_ms: Millis(stage.at_ms + 5_000) };
    stage.intake.resume(away, &mut stage.cluster);
    stage.intake.source("engines", SourceKind::Engines, away.until_ms, &mut stage.cluster).unwrap();
    stage.at_ms += 6_000;
    stage.give(&engines[1], EngineInput::Link { state: LinkState::Connecting, detail: "".into() });
    stage.flush();
    assert_eq!(stage.cluster.engines().len(), 2, "it may still be announced");
    stage.at_ms += 40_000;
    stage.flush();
    let names: Vec<_> = stage.cluster.engines().iter().map(|feed| feed.name.clone()).collect();
    assert_eq!(names, ["tcp://e2:5557"]);
    let departed = |ix| stage.cluster.worker(WorkerIx(ix)).unwrap().departure.is_some();
    assert_eq!((departed(0), departed(1)), (true, false));
}

#[test]
fn what_is_sent_again_happened_when_it_was_made() {
    let recorded = EngineRecording::of("vllm-0.28.0");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    stage.give(&engine, EngineInput::Replay(Replay::From(0)));
    for (at, frames) in recorded.live.iter().enumerate() {
        let body = frames[2].clone();
        stage.give(&engine, EngineInput::Batch { run: 0, sequence: at as u64, is_replayed: true, body });
    }
    let worker = stage.cluster.worker(FIRST).unwrap();
    assert_eq!(worker.first_ms, Millis(1_800_000_000_000));
    assert_eq!(worker.last_event_ms, Some(Millis(1_800_000_056_000)));
    stage.flush();
    let feed = &stage.cluster.engines()[0];
    assert_eq!((feed.replayed, feed.replay), (57, Replay::From(0)));
    assert!(stage.cluster.sources()[0].lag_ms.unwrap() <= 0, "it is not late");
}

#[test]
fn an_engines_own_metrics_are_its_workers() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    stage.play(&engine, &recorded, (0, 0, ALL));
    // As vLLM 0.32 writes it, shortened.
    let text = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\nvllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 5.0\n\
                vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n\
                vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"200\"} 1.0\n";
    let payload =
        Payload::Scrape { process: "tcp://e7:5557".into(), text: Bytes::from_static(text.as_bytes()) };
    let received = Received { source: SourceIx(0), at_ms: Millis(stage.at_ms), payload };
    stage.intake.handle(&received, &mut stage.cluster);
    let (_, rank) = stage.cluster.rank_of(FIRST).expect("metrics of the worker");
    assert_eq!((rank.kv_usage, rank.total_blocks), (Some(0.25), Some(200)));
    assert_eq!(stage.cluster.capacity(FIRST).unwrap().value, 200);
}

#[test]
fn a_batch_of_another_rank_is_refused_and_named() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let engine = Arc::new(EnginePublisher { rank: Some(3), ..(*publisher(7, Engine::Vllm)).clone() });
    stage.play(&engine, &recorded, (0, 0, 5));
    stage.flush();
    assert_eq!(stage.cluster.blocks(FIRST), None);
    let feed = &stage.cluster.engines()[0];
    assert_eq!(feed.rejected, 5);
    assert!(feed.rejected_sample.contains("batch of rank 0 from the publisher of rank 3"), "{feed:?}");
    assert_eq!(stage.cluster.missed_total(), 0, "they came");
}

#[test]
fn nonsense_is_counted_and_leaves_the_tree_alone() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let mut stage = Stage::new();
    let engine = publisher(7, Engine::Vllm);
    stage.play(&engine, &recorded, (0, 0, 5));
    let before = stage.cluster.blocks(FIRST);
    stage.batch(&engine, 0, 5, &Bytes::from_static(b"\xc1garbage"));
    stage.batch(&engine, 0, 6, &Bytes::from_static(b"\x92\xc0\xdd\xff\xff\xff\xff"));
    stage.batch(&engine, 0, u64::MAX, &Bytes::new());
    let error = Box::new(DecodeError::new(Reason::Malformed, "engine message of 1 frames instead of 3"));
    stage.give(&engine, EngineInput::Unreadable { error, size_bytes: 1 << 20 });
    stage.give(&engine, EngineInput::Link { state: LinkState::Refused, detail: "broke the protocol".into() });
    stage.flush();
    assert_eq!(stage.cluster.blocks(FIRST), before);
    let feed = &stage.cluster.engines()[0];
    assert_eq!((feed.rejected, feed.link, &*feed.detail), (4, LinkState::Refused, "broke the protocol"));
    assert!(stage.cluster.rejected_total() >= 4);
}
