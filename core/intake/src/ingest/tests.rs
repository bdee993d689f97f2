//! Behaviour of ingest, one message at a time: what Dynamo says, in which version's shape, and what becomes of it.

use bytes::Bytes;
use radixscope_model::id::PoolIx;
use serde_json::json;

use super::*;
use crate::{Intake, NatsSubjects};
use radixscope_model::record::{DepartureCause, LogSignal, Tier};
use radixscope_state::cluster::Cluster;

const WORKER: u64 = 7_668_682_361_150_630_931;
const CORE: &str = "namespace.dynamo.component.backend.kv-events";
const ENDPOINT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
const JETSTREAM: &str = "namespace-dynamo-component-backend-kv-events.kv-events";
const LOADS: &str = "namespace.dynamo.kv_metrics";

/// Ingest and fold together, as the server runs them.
struct Observer {
    intake: Intake,
    subjects: NatsSubjects,
    cluster: Cluster,
    source: SourceIx,
    now: u64,
}

impl Observer {
    fn component(&self, worker: u16) -> &str {
        let pool = self.cluster.pool_of(radixscope_model::id::WorkerIx(worker.into())).expect("known");
        &self.cluster.pool(pool).expect("known").component
    }

    fn new() -> Self {
        let mut observer = Self {
            intake: Intake::default(),
            subjects: NatsSubjects::default(),
            cluster: Cluster::default(),
            source: SourceIx(0),
            now: 1_800_000_000_000,
        };
        let at = Millis(observer.now);
        let Self { intake, cluster, .. } = &mut observer;
        intake.source("test", SourceKind::Nats, at, cluster).expect("room for a source");
        observer
    }

    /// Takes a payload and flushes.
    fn handle(&mut self, payload: Payload) -> &mut Self {
        let Self { intake, cluster, source, now, .. } = self;
        let at_ms = Millis(*now);
        intake.handle(&Received { source: *source, at_ms, payload }, cluster);
        intake.flush(at_ms, cluster);
        self
    }

    fn nats(&mut self, subject: &str, message: &[u8]) -> &mut Self {
        self.nats_replying(subject, None, message)
    }

    fn nats_replying(&mut self, subject: &str, reply: Option<&str>, message: &[u8]) -> &mut Self {
        let message = Bytes::copy_from_slice(message);
        match self.subjects.publication(subject, reply, message) {
            Some(payload) => self.handle(payload),
            None => self,
        }
    }

    fn nats_json(&mut self, subject: &str, message: serde_json::Value) -> &mut Self {
        self.nats(subject, message.to_string().as_bytes())
    }

    fn log(&mut self, log: &str, line: Vec<u8>) -> &mut Self {
        self.handle(Payload::LogLine { log: log.into(), line: line.into() })
    }

    fn scrape(&mut self, process: &str, text: &[u8]) -> &mut Self {
        self.handle(Payload::Scrape { process: process.into(), text: Bytes::copy_from_slice(text) })
    }

    fn health(&mut self, response: serde_json::Value) -> &mut Self {
        self.handle(Payload::Health { frontend: "fe".into(), response: response.to_string().into() })
    }

    fn source(&self) -> &radixscope_state::cluster::SourceState {
        &self.cluster.sources()[0]
    }
}

#[derive(serde::Serialize)]
struct Enveloped<'a> {
    publisher_id: u64,
    sequence: u64,
    published_at: u64,
    topic: &'a str,
    #[serde(with = "as_bin")]
    payload: Vec<u8>,
}

mod as_bin {
    pub(super) fn serialize<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }
}

fn enveloped(publisher_id: u64, sequence: u64, payload: &serde_json::Value) -> Vec<u8> {
    enveloped_at(1_799_999_999_990, publisher_id, sequence, payload)
}

fn enveloped_at(published_at: u64, publisher_id: u64, sequence: u64, payload: &serde_json::Value) -> Vec<u8> {
    let payload = rmp_serde::to_vec_named(payload).expect("encodes");
    rmp_serde::to_vec_named(&Enveloped { publisher_id, sequence, published_at, topic: "any", payload })
        .expect("encodes")
}

fn stored(worker: u64, event_id: u64, parent: Option<u64>, blocks: &[u64]) -> serde_json::Value {
    let blocks: Vec<_> =
        blocks.iter().map(|b| json!({"block_hash": b, "tokens_hash": b, "mm_extra_info": null})).collect();
    let data = json!({"stored": {"parent_hash": parent, "blocks": blocks}});
    json!({"worker_id": worker, "event": {"event_id": event_id, "data": data, "dp_rank": 0}})
}

fn cleared(worker: u64, rank: u32) -> serde_json::Value {
    json!({"worker_id": worker, "event": {"event_id": 9, "data": "cleared", "dp_rank": rank}})
}

#[test]
fn copies_delivered_to_routers_are_not_counted_again() {
    let mut observer = Observer::new();
    let payload = stored(WORKER, 0, None, &[1]).to_string();
    for reply in [Some("_INBOX.a.b"), Some("$JS.ACK.stream.consumer.1.1.1.1.0")] {
        observer.nats_replying(JETSTREAM, reply, payload.as_bytes());
    }
    assert_eq!(observer.cluster.workers()[0].stored_total, 1);
    assert_eq!(observer.source().received, 1);
}

#[test]
fn a_worker_first_heard_of_through_its_load_gets_its_component_from_its_events() {
    let mut observer = Observer::new();
    let load =
        json!({"worker_id": WORKER, "dp_rank": 0, "active_decode_blocks": 8, "active_prefill_tokens": null});
    observer.nats(LOADS, &enveloped(WORKER, 0, &load));
    assert_eq!(observer.component(0), "");
    observer.nats_json(JETSTREAM, stored(WORKER, 0, None, &[1]));
    assert_eq!(observer.cluster.workers().len(), 1);
    assert_eq!(observer.component(0), "backend");
    assert_eq!(observer.cluster.workers()[0].engine_used_blocks, Some(8));
}

#[test]
fn what_a_router_says_of_a_load_is_not_what_the_engine_says() {
    let mut observer = Observer::new();
    let load =
        json!({"worker_id": WORKER, "dp_rank": 0, "active_decode_blocks": 7, "active_prefill_tokens": 122});
    observer.nats(LOADS, &enveloped(99, 0, &load));
    let worker = &observer.cluster.workers()[0];
    assert_eq!(worker.engine_used_blocks, None);
    assert_eq!(worker.router_loads[0].router, Some(99));
    assert_eq!(worker.router_loads[0].prefill_tokens, Some(122));
}

#[test]
fn a_router_that_its_messages_do_not_name_is_no_router_0() {
    let mut observer = Observer::new();
    // Without an envelope, as 0.8 sends it.
    let load =
        json!({"worker_id": WORKER, "dp_rank": 0, "active_decode_blocks": 7, "active_prefill_tokens": 122});
    observer.nats(LOADS, load.to_string().as_bytes());
    assert_eq!(observer.cluster.workers()[0].router_loads[0].router, None);
    assert!(observer.cluster.routers().is_empty());
}

#[test]
fn a_gap_in_a_workers_own_envelopes_is_counted_for_that_worker() {
    let mut observer = Observer::new();
    for (sequence, block) in [(0, 1), (1, 2), (4, 3)] {
        observer.nats(CORE, &enveloped(WORKER, sequence, &stored(WORKER, sequence, None, &[block])));
    }
    let Observer { intake, cluster, now, .. } = &mut observer;
    intake.flush(Millis(*now), cluster);
    intake.flush(Millis(*now), cluster);
    assert_eq!(observer.cluster.missed_total(), 2);
    assert_eq!(observer.cluster.workers()[0].missed_total, 2);
}

#[test]
fn event_ids_show_loss_only_where_they_are_contiguous() {
    let mut observer = Observer::new();
    // A relay of 0.9: ids with holes and repeats, one event a message.
    for id in [3, 3, 9] {
        observer.nats_json(JETSTREAM, stored(WORKER, id, None, &[id]));
    }
    assert_eq!(observer.cluster.missed_total(), 0);
    // 1.6: batches.
    for (sequence, id) in [(0, 1), (1, 2), (2, 7)] {
        let batch = json!([stored(WORKER + 1, id, None, &[id])]);
        observer.nats(ENDPOINT, &enveloped(5, sequence, &batch));
    }
    assert_eq!(observer.cluster.workers()[1].missed_total, 4);
}

#[test]
fn clearing_means_all_ranks_up_to_1_3_and_one_rank_from_1_4() {
    let mut observer = Observer::new();
    for rank in [0, 1] {
        let mut event = stored(WORKER, 0, None, &[1]);
        event["event"]["dp_rank"] = json!(rank);
        observer.nats_json(JETSTREAM, event);
    }
    observer.nats(ENDPOINT, &enveloped(5, 0, &json!([cleared(WORKER, 1)])));
    let blocks = |observer: &Observer| -> Vec<_> {
        observer.cluster.workers_by_id().iter().map(|&w| observer.cluster.blocks(w)).collect()
    };
    assert_eq!(blocks(&observer), [Some(1), Some(0)]);
    observer.nats_json(JETSTREAM, cleared(WORKER, 1));
    assert_eq!(blocks(&observer), [Some(0), Some(0)]);
}

#[test]
fn blocks_on_disk_are_not_on_the_device() {
    let mut observer = Observer::new();
    let mut event = stored(WORKER, 1, None, &[1, 2]);
    event["storage_tier"] = json!("disk");
    observer.nats(ENDPOINT, &enveloped(5, 0, &json!([event])));
    let worker = observer.cluster.worker_ix(radixscope_model::id::Worker::new(WORKER, 0)).expect("known");
    let blocks = |tier| observer.cluster.tier_blocks(worker, tier);
    assert_eq!((blocks(Tier::Disk), blocks(Tier::Host)), (Some(2), None));
    assert_eq!((observer.cluster.blocks(worker), observer.cluster.totals().resident), (Some(0), 0));
}

#[test]
fn a_bad_message_is_counted_by_topic_and_reason_and_costs_no_good_one() {
    let mut observer = Observer::new();
    observer.nats_json(JETSTREAM, stored(WORKER, 0, None, &[1]));
    observer.nats(JETSTREAM, b"{\"worker_id\":");
    let mut nameless = stored(WORKER, 0, None, &[9]);
    nameless["worker_id"] = json!("x");
    observer.nats_json(JETSTREAM, nameless);
    observer.nats("strange.kv-events", b"{}");
    observer.nats(CORE, &vec![b'{'; MAX_PAYLOAD_BYTES + 1]);
    observer.nats_json(JETSTREAM, stored(WORKER, 1, Some(1), &[2]));
    let mut reasons: Vec<_> =
        observer.source().rejected.iter().map(|r| (r.topic, r.reason, r.count)).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        [
            (Topic::KvEvents, Reason::Truncated, 1),
            (Topic::KvEvents, Reason::WrongType, 1),
            (Topic::KvEvents, Reason::TooLarge, 1),
            (Topic::Other, Reason::UnknownKind, 1),
        ]
    );
    assert_eq!(observer.cluster.totals().resident, 2);
    assert_eq!(observer.source().received, 6);
}

#[test]
fn ids_beyond_what_javascript_can_count_stay_exact() {
    let mut observer = Observer::new();
    observer.nats_json(JETSTREAM, stored(u64::MAX, 0, None, &[u64::MAX, u64::MAX - 1]));
    let worker = observer.cluster.worker_ix(Worker::new(u64::MAX, 0)).expect("known");
    let node = observer
        .cluster
        .tree(PoolIx(0))
        .find(worker.slot(), radixscope_model::id::BlockHash(u64::MAX - 1))
        .expect("held");
    assert_eq!(observer.cluster.tree(PoolIx(0)).tokens_hash(node).0, u64::MAX - 1);
}

#[test]
fn more_workers_than_are_kept_apart_are_counted_as_missed() {
    let mut observer = Observer::new();
    let Observer { intake, subjects, cluster, source, now } = &mut observer;
    let (source, at_ms) = (*source, Millis(*now));
    for id in 0..radixscope_state::cluster::MAX_WORKERS as u64 + 3 {
        let message = stored(id, 0, None, &[1]).to_string().into();
        let payload = subjects.publication(JETSTREAM, None, message).expect("no copy");
        intake.handle(&Received { source, at_ms, payload }, cluster);
    }
    intake.flush(at_ms, cluster);
    assert_eq!(observer.cluster.workers().len(), radixscope_state::cluster::MAX_WORKERS);
    let missed = &observer.source().missed;
    assert_eq!((missed[0].cause, missed[0].count), (MissedCause::TooManyWorkers, 3));
}

#[test]
fn delay_is_the_largest_since_the_last_flush_and_unknown_without_a_publication_time() {
    let mut observer = Observer::new();
    observer.nats_json(JETSTREAM, stored(WORKER, 0, None, &[1]));
    assert_eq!(observer.source().lag_ms, None);
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 1, None, &[2])));
    assert_eq!(observer.source().lag_ms, Some(10));
}

#[test]
fn a_decision_that_comes_twice_through_replica_sync_counts_once() {
    let mut observer = Observer::new();
    let hit = json!({"worker_id": WORKER, "dp_rank": 0, "isl_blocks": 10, "overlap_blocks": 4});
    let add = json!({"request_id": "r", "worker": {"worker_id": WORKER, "dp_rank": 0}, "router_id": 99,
        "data": {"AddRequest": {"token_sequence": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "isl": 160, "overlap": 4, "expected_output_tokens": null}}});
    observer.nats("namespace.dynamo.kv-hit-rate", &enveloped(99, 0, &hit));
    observer.nats("namespace.dynamo.component.backend.active_sequences_events", &enveloped(99, 0, &add));
    assert_eq!(observer.cluster.decisions().totals().count, 1);
    assert_eq!(observer.cluster.workers()[0].sequences.added, 1);
}

#[test]
fn with_replica_sync_alone_decisions_come_from_added_requests() {
    let mut observer = Observer::new();
    let add = json!({"request_id": "r", "worker": {"worker_id": WORKER, "dp_rank": 0}, "router_id": 99,
        "data": {"AddRequest": {"token_sequence": [1, 2, 3], "track_prefill_tokens": true}}});
    let subject = "namespace.dynamo.component.backend.endpoint.generate.active_sequences_events";
    observer.nats(subject, &enveloped(99, 0, &add));
    let decided = observer.cluster.decisions().newest_first().next().expect("one decision");
    assert_eq!(decided.decision.isl_blocks, None, "three full ones, and perhaps one that is begun");
    assert_eq!(decided.decision.overlap_blocks, None);
    assert_eq!(decided.overlap_share(), None);
}

#[test]
fn a_model_card_has_the_capacity_of_every_rank() {
    let mut observer = Observer::new();
    let card = json!({"type": "Model", "namespace": "dynamo", "component": "backend", "endpoint": "generate",
        "instance_id": WORKER, "card_json": {"display_name": "m", "kv_cache_block_size": 16,
        "runtime_config": {"total_kv_blocks": 1600, "data_parallel_size": 2}}});
    observer.handle(Payload::Discovery {
        key: "v1/mdc/dynamo/backend/generate/1".into(),
        value: Some(card.to_string().into()),
        lease: None,
    });
    let capacities: Vec<_> =
        observer.cluster.workers().iter().map(|w| (w.id.dp_rank, w.capacity_blocks)).collect();
    assert_eq!(capacities, [(0, Some(1600)), (1, Some(1600))]);
    assert_eq!(observer.cluster.workers()[0].block_size_tokens, Some(16));
}

/// A line written so long after eight o'clock, when these tests play.
fn line(clock: &str, message: &str) -> Vec<u8> {
    format!("2027-01-15T{clock}Z  WARN dynamo_llm::kv_router::x: {message}").into_bytes()
}

const PARENT: &str = "Failed to find parent block; skipping store operation worker_id=\"7\" dp_rank=0 id=9";
const SIZE: &str = "Block not published. Block size must be 16 tokens to be published. Block size is: 32";

#[test]
fn a_sign_in_a_log_is_summed_with_the_worker_that_it_names() {
    let mut observer = Observer::new();
    let at_ms = Millis(observer.now);
    let Observer { intake, cluster, source, .. } = &mut observer;
    for clock in ["07:59:58.000000", "07:59:59.000000", "07:59:59.500000"] {
        let payload = Payload::LogLine { log: "a".into(), line: line(clock, PARENT).into() };
        intake.handle(&Received { source: *source, at_ms, payload }, cluster);
    }
    assert!(cluster.signs().is_empty(), "reported at the flush");
    intake.flush(at_ms, cluster);
    let [sign] = cluster.signs() else { panic!("one sign: {:?}", cluster.signs()) };
    assert_eq!((sign.sign, sign.count, &sign.workers[..]), (LogSignal::ParentUnknown, 3, &[WorkerIx(0)][..]));
    assert_eq!(cluster.workers()[0].id, Worker::new(7, 0), "introduced by the line");
}

#[test]
fn old_lines_are_no_signs_of_the_present_but_sizes_stay_true() {
    let mut observer = Observer::new();
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 1, None, &[2])));
    observer.log("a", line("07:00:00.000000", PARENT)).log("a", line("07:00:00.000000", SIZE));
    let signs: Vec<_> = observer.cluster.signs().iter().map(|state| state.sign).collect();
    assert_eq!(signs, [LogSignal::PublisherSize { publisher: 16, engine: 32 }]);
    observer.log("a", line("07:59:30.000000", PARENT));
    assert_eq!(observer.cluster.signs().len(), 2);
}

#[test]
fn what_a_source_that_catches_up_reports_is_of_the_past_however_late_the_flush_is() {
    let mut observer = Observer::new();
    let received = Millis(observer.now);
    let Observer { intake, cluster, source, .. } = &mut observer;
    let payload = Payload::LogLine { log: "a".into(), line: line("08:00:00.000000", PARENT).into() };
    intake.handle(&Received { source: *source, at_ms: received, payload }, cluster);
    intake.flush(Millis(received.0 + 200_000), cluster);
    assert_eq!(cluster.signs()[0].last_ms, received);
}

#[test]
fn a_log_that_is_read_long_after_it_was_written_is_judged_by_its_own_present() {
    let mut observer = Observer::new();
    observer.now += 86_400_000;
    observer.log("a", line("07:59:30.000000", PARENT)).log("a", line("08:00:00.000000", PARENT));
    assert_eq!(observer.cluster.signs()[0].count, 2);
}

#[test]
fn a_clock_that_is_ahead_makes_no_line_old() {
    let mut observer = Observer::new();
    observer.log("a", line("09:00:00.000000", PARENT)).log("a", line("08:00:00.000000", PARENT));
    assert_eq!(observer.cluster.signs()[0].count, 2);
}

#[test]
fn a_worker_whose_events_come_both_ways_says_each_way_once() {
    let mut observer = Observer::new();
    for event_id in 4..7 {
        observer.nats_json(JETSTREAM, stored(WORKER, event_id, None, &[1]));
        observer.nats(CORE, &enveloped(WORKER, event_id, &stored(WORKER, event_id + 10, None, &[2])));
    }
    let lines: Vec<_> =
        observer.cluster.workers()[0].lines.iter().map(|line| (line.line, line.first_event_id)).collect();
    assert_eq!(lines, [(EventTransport::JetStream, 4), (EventTransport::Core, 14)]);
}

const REMOVED: &str = "Removing worker WorkerWithDpRank { worker_id: 7668682361150630931, dp_rank: 0 }";
const ADDED: &str = "Adding worker WorkerWithDpRank { worker_id: 7668682361150630931, dp_rank: 0 }";
const INSTANCE: &str = "DISCOVERY: Generate endpoint instance removed, removing worker 7668682361150630931";

/// A worker that holds two blocks, and left by the word of `message`.
fn left(message: &str) -> Observer {
    let mut observer = Observer::new();
    observer.nats_json(JETSTREAM, stored(WORKER, 0, None, &[1, 2]));
    observer.log("a", line("08:00:00.000000", message));
    observer
}

impl Observer {
    fn has_left(&self) -> bool {
        self.cluster.workers()[0].departure.is_some()
    }

    fn blocks(&self) -> Option<u64> {
        self.cluster.blocks(WorkerIx(0))
    }
}

#[test]
fn a_worker_that_a_router_removed_leaves_with_its_blocks() {
    for message in [REMOVED, INSTANCE] {
        let observer = left(message);
        assert_eq!((observer.has_left(), observer.blocks()), (true, Some(0)), "{message}");
        assert_eq!(
            observer.cluster.workers()[0].departure.map(|departure| departure.why),
            Some(DepartureCause::Log)
        );
    }
}

#[test]
fn a_removal_of_another_day_is_none_of_today() {
    let mut observer = Observer::new();
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 0, None, &[1, 2])));
    observer.log("a", line("07:00:00.000000", REMOVED));
    assert_eq!((observer.has_left(), observer.blocks()), (false, Some(2)));
}

#[test]
fn what_a_worker_says_right_after_it_left_is_late_and_later_it_is_back() {
    let mut observer = left(REMOVED);
    observer.now += 1_500;
    observer.nats_json(JETSTREAM, stored(WORKER, 1, None, &[3]));
    assert_eq!((observer.has_left(), observer.blocks()), (true, Some(0)), "late");
    assert_eq!(observer.cluster.workers()[0].events_after_departure, 1);
    assert_eq!(observer.cluster.workers()[0].unknown_removed_total, 0);
    observer.now += 1_500;
    observer.nats_json(JETSTREAM, stored(WORKER, 2, None, &[4]));
    assert_eq!((observer.has_left(), observer.blocks()), (false, Some(1)), "back");
}

#[test]
fn a_worker_that_a_router_adds_again_is_back_and_an_older_line_changes_nothing() {
    let mut observer = left(REMOVED);
    observer.log("b", line("07:59:50.000000", ADDED));
    assert!(observer.has_left(), "added before it was removed");
    observer.now += 1_000;
    observer.log("b", line("08:00:01.000000", ADDED));
    assert!(!observer.has_left());
}

#[test]
fn of_a_log_that_is_read_at_once_the_last_word_about_a_worker_counts() {
    let mut observer = Observer::new();
    observer.nats_json(JETSTREAM, stored(WORKER, 0, None, &[1, 2]));
    let at_ms = Millis(observer.now);
    let Observer { intake, cluster, source, .. } = &mut observer;
    for (clock, message) in [("07:59:30.000000", REMOVED), ("07:59:40.000000", ADDED)] {
        let payload = Payload::LogLine { log: "a".into(), line: line(clock, message).into() };
        intake.handle(&Received { source: *source, at_ms, payload }, cluster);
    }
    intake.flush(at_ms, cluster);
    assert_eq!((observer.has_left(), observer.blocks()), (false, Some(2)), "it never seemed gone");
}

/// A frontend's list of workers that take requests.
fn listed(workers: &[u64]) -> serde_json::Value {
    let instance = |id: &u64| json!({"component": "backend", "endpoint": "generate", "namespace": "dynamo", "instance_id": id});
    json!({"status": "healthy", "instances": workers.iter().map(instance).collect::<Vec<_>>()})
}

#[test]
fn workers_received_through_a_stream_and_otherwise_are_of_one_pool() {
    let mut observer = Observer::new();
    let stream = "namespace-my-ns-component-backend-kv-events.kv-events";
    observer.nats_json(stream, stored(WORKER, 0, None, &[1]));
    assert_eq!(observer.cluster.pool(PoolIx(0)).map(|pool| pool.name()).as_deref(), Some("my-ns/backend"));
    // Now the namespace is named, and another worker is seen.
    let load =
        json!({"worker_id": 7, "dp_rank": 0, "active_decode_blocks": 8, "active_prefill_tokens": null});
    observer.nats("namespace.my_ns.kv_metrics", &enveloped(7, 0, &load));
    observer.nats_json(stream, stored(7, 0, None, &[1]));
    observer.nats_json(stream, stored(WORKER, 1, None, &[2]));
    let in_use = observer.cluster.pools_in_use();
    assert_eq!(in_use.len(), 1, "the slug and the name are one pool");
    assert_eq!(observer.cluster.pool(in_use[0]).map(|pool| pool.name()).as_deref(), Some("my_ns/backend"));
    assert_eq!(observer.cluster.tree(in_use[0]).totals().shared, 1, "its blocks came along");
}

#[test]
fn a_frontends_list_introduces_unseen_workers() {
    let mut observer = Observer::new();
    observer.health(listed(&[WORKER]));
    let worker = &observer.cluster.workers()[0];
    assert_eq!((worker.id, observer.component(0)), (Worker::new(WORKER, 0), "backend"));
    // One known by another rank is the same worker.
    let load =
        json!({"worker_id": 7, "dp_rank": 1, "active_decode_blocks": 8, "active_prefill_tokens": null});
    observer.nats(LOADS, &enveloped(7, 0, &load));
    observer.health(listed(&[WORKER, 7]));
    assert_eq!(observer.cluster.workers().len(), 2);
    assert_eq!(observer.component(1), "backend");
}

#[test]
fn a_worker_that_is_on_no_list_leaves_with_all_its_ranks_and_rejoins_with_them() {
    let mut observer = Observer::new();
    for rank in [0, 1] {
        let mut event = stored(WORKER, 0, None, &[1]);
        event["event"]["dp_rank"] = json!(rank);
        observer.nats_json(JETSTREAM, event);
    }
    observer.health(listed(&[WORKER]));
    observer.health(listed(&[]));
    assert!(
        observer.cluster.workers().iter().all(|worker| worker.departure.is_none()),
        "once may be a mistake"
    );
    observer.health(listed(&[]));
    assert!(observer.cluster.workers().iter().all(|worker| worker.departure.is_some()));
    assert_eq!(observer.cluster.totals().resident, 0);
    observer.health(listed(&[WORKER]));
    assert!(observer.cluster.workers().iter().all(|worker| worker.departure.is_none()));
}

#[test]
fn a_scrape_introduces_the_workers_it_speaks_of_and_is_kept_by_process() {
    let mut observer = Observer::new();
    let text =
        format!("dynamo_frontend_worker_active_decode_blocks{{dp_rank=\"0\",worker_id=\"{WORKER}\"}} 12\n");
    observer.scrape("fe", text.as_bytes()).scrape("other", b"up 1\n").scrape("fe", b"<html>\n");
    assert_eq!(observer.cluster.workers()[0].id, Worker::new(WORKER, 0));
    let processes = observer.cluster.processes();
    assert_eq!(processes.iter().map(|process| process.name.as_str()).collect::<Vec<_>>(), ["fe", "other"]);
    assert_eq!(processes[0].workers()[0].decode_blocks, Some(12));
    let rejected: Vec<_> = observer.source().rejected.iter().map(|r| (r.topic, r.reason, r.count)).collect();
    assert_eq!(rejected, [(Topic::Metrics, Reason::Malformed, 1)]);
    observer.scrape("fe", &vec![b'#'; MAX_PAYLOAD_BYTES + 1]);
    assert!(observer.source().rejected.iter().any(|r| r.reason == Reason::TooLarge));
}

/// Messages that had no room, and then one that had.
fn refuse(observer: &mut Observer, subject: &str, payloads: &[Vec<u8>]) {
    let mut missing = Missing::default();
    for message in payloads {
        let message = Bytes::copy_from_slice(message);
        missing.refuse(&observer.subjects.publication(subject, None, message).expect("no copy"));
    }
    observer.intake.missing(observer.source, &missing);
}

/// What is counted as lost, by cause, once nothing can come late any more.
fn lost(observer: &mut Observer) -> Vec<(MissedCause, u64)> {
    let Observer { intake, cluster, now, .. } = observer;
    (0..2).for_each(|_| intake.flush(Millis(*now), cluster));
    observer.source().missed.iter().map(|m| (m.cause, m.count)).collect()
}

fn broke(observer: &mut Observer) {
    let mut missing = Missing::default();
    missing.broke(Break { since_ms: Millis(observer.now - 5_000), until_ms: Millis(observer.now) });
    observer.intake.missing(observer.source, &missing);
    observer.intake.flush(Millis(observer.now), &mut observer.cluster);
}

#[test]
fn what_was_dropped_here_is_counted_once_though_numbers_jump_over_it() {
    let mut observer = Observer::new();
    let batch = |event: u64| json!([stored(WORKER, event, None, &[event])]);
    observer.nats(ENDPOINT, &enveloped(9, 0, &batch(1)));
    let dropped: Vec<_> = (1..51).map(|n| enveloped(9, n, &batch(n + 1))).collect();
    refuse(&mut observer, ENDPOINT, &dropped);
    observer.nats(ENDPOINT, &enveloped(9, 51, &batch(52)));
    assert_eq!(lost(&mut observer), [(MissedCause::QueueFull, 50), (MissedCause::EventsInLost, 50)]);
    assert_eq!(observer.cluster.missed_total(), 50);
    assert_eq!(observer.cluster.workers()[0].missed_total, 50, "the worker's own count is of events");
}

#[test]
fn events_in_messages_lost_on_the_way_count_once() {
    let mut observer = Observer::new();
    let batch = |event: u64| {
        json!([stored(WORKER, event, None, &[event]), stored(WORKER, event + 1, None, &[event + 1])])
    };
    observer.nats(ENDPOINT, &enveloped(9, 0, &batch(1)));
    observer.nats(ENDPOINT, &enveloped(9, 11, &batch(23)));
    // And one that the engine lost before it was published.
    observer.nats(ENDPOINT, &enveloped(9, 12, &batch(26)));
    let missed = lost(&mut observer);
    assert_eq!(missed.len(), 3, "{missed:?}");
    assert!(missed.contains(&(MissedCause::EnvelopeGap, 10)), "{missed:?}");
    assert!(missed.contains(&(MissedCause::EventsInLost, 20)), "{missed:?}");
    assert!(missed.contains(&(MissedCause::EventIdGap, 1)), "{missed:?}");
    assert_eq!(observer.cluster.missed_total(), 11);
}

#[test]
fn what_the_client_dropped_counts_only_where_no_number_tells() {
    let mut observer = Observer::new();
    observer.nats_json(CORE, stored(WORKER, 0, None, &[1]));
    let load =
        json!({"worker_id": WORKER, "dp_rank": 0, "active_decode_blocks": 8, "active_prefill_tokens": null});
    observer.nats(LOADS, &enveloped(WORKER, 0, &load));
    let mut missing = Missing::default();
    missing.count(Topic::KvEvents, MissedCause::SlowConsumer, 7);
    missing.count(Topic::KvMetrics, MissedCause::SlowConsumer, 8);
    observer.intake.missing(observer.source, &missing);
    assert_eq!(lost(&mut observer), [(MissedCause::SlowConsumer, 7)]);
    assert!(observer.source().is_missed_at_least());
}

/// Breaks of unknown size.
fn gaps(observer: &Observer) -> u64 {
    observer.source().unknown_gaps().map(|gap| gap.count).sum()
}

#[test]
fn a_break_is_a_gap_of_unknown_size_until_every_publisher_has_spoken() {
    let mut observer = Observer::new();
    let open = |observer: &Observer| {
        observer.source().unknown_gaps().map(|g| (g.topic, g.count)).collect::<Vec<_>>()
    };
    for publisher in [WORKER, WORKER + 1] {
        observer.nats(CORE, &enveloped(publisher, 3, &stored(publisher, 0, None, &[1])));
    }
    broke(&mut observer);
    assert_eq!(open(&observer), [(Topic::KvEvents, 1)]);
    observer.nats(CORE, &enveloped(WORKER, 9, &stored(WORKER, 1, None, &[2])));
    assert_eq!(open(&observer), [(Topic::KvEvents, 1)], "one is still awaited");
    observer.nats(CORE, &enveloped(WORKER + 1, 4, &stored(WORKER + 1, 1, None, &[2])));
    assert_eq!(open(&observer), []);
    assert_eq!(lost(&mut observer), [(MissedCause::EnvelopeGap, 5)]);
}

#[test]
fn what_came_and_left_during_a_break_leaves_a_lower_bound() {
    let mut observer = Observer::new();
    observer.nats(CORE, &enveloped(WORKER, 3, &stored(WORKER, 0, None, &[1])));
    assert!(!observer.source().is_missed_at_least());
    broke(&mut observer);
    // Another worker began and ended meanwhile: no number shows what it published.
    observer.nats(CORE, &enveloped(WORKER, 9, &stored(WORKER, 1, None, &[2])));
    assert_eq!(lost(&mut observer), [(MissedCause::EnvelopeGap, 5)]);
    assert_eq!(gaps(&observer), 0, "all that are known have spoken");
    let source = observer.source();
    assert!(source.is_missed_at_least() && source.is_at_least(&source.missed[0]));
    assert!(observer.cluster.is_missed_at_least(WorkerIx(0)), "it may have begun anew meanwhile");
    observer.now += 60_000;
    observer.nats(CORE, &enveloped(WORKER + 1, 0, &stored(WORKER + 1, 1, None, &[2])));
    assert!(
        !observer.cluster.is_missed_at_least(WorkerIx(1)),
        "it came after the break, with its first event"
    );
}

#[test]
fn what_was_dropped_here_without_a_break_is_exact() {
    let mut observer = Observer::new();
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 0, None, &[1])));
    observer.nats(CORE, &enveloped(WORKER, 4, &stored(WORKER, 1, None, &[2])));
    assert_eq!(lost(&mut observer), [(MissedCause::EnvelopeGap, 3)]);
    assert!(!observer.source().is_missed_at_least());
    assert!(!observer.cluster.is_missed_at_least(WorkerIx(0)));
}

#[test]
fn a_break_does_not_wait_for_a_worker_that_left_before_it() {
    let mut observer = Observer::new();
    discovered(&mut observer, "endpoint", endpoint());
    for publisher in [WORKER, WORKER + 1] {
        observer.nats(CORE, &enveloped(publisher, 0, &stored(publisher, 0, None, &[1])));
    }
    discovered(&mut observer, "endpoint", None);
    broke(&mut observer);
    observer.nats(CORE, &enveloped(WORKER + 1, 1, &stored(WORKER + 1, 1, None, &[2])));
    assert_eq!(gaps(&observer), 0);
}

#[test]
fn a_worker_that_began_during_a_break_lost_all_before_its_first_message() {
    let mut observer = Observer::new();
    let other = json!({"type": "EventSource", "topic": "kv-events", "publisher_id": 8,
        "metadata": {"worker": {"worker_id": WORKER + 1, "dp_rank": 0}}});
    discovered(&mut observer, "source", Some(other));
    observer.nats(CORE, &enveloped(WORKER + 1, 0, &stored(WORKER + 1, 0, None, &[1])));
    observer.now += 60_000;
    discovered(&mut observer, "endpoint", endpoint());
    broke(&mut observer);
    observer.nats(CORE, &enveloped(WORKER, 7, &stored(WORKER, 7, None, &[1])));
    assert_eq!(lost(&mut observer), [(MissedCause::EnvelopeGap, 7)]);
    assert_eq!(observer.cluster.worker(WorkerIx(1)).map(|worker| worker.missed_total), Some(7));
    observer.nats(CORE, &enveloped(WORKER + 1, 1, &stored(WORKER + 1, 1, None, &[2])));
    assert_eq!(gaps(&observer), 0, "nothing is unknown of either");
    assert!(observer.source().is_missed_at_least());
    // Of one that discovery does not name it is not known when it began.
    observer.nats(CORE, &enveloped(WORKER + 2, 7, &stored(WORKER + 2, 7, None, &[1])));
    assert_eq!((gaps(&observer), lost(&mut observer)), (1, vec![(MissedCause::EnvelopeGap, 7)]));
}

#[test]
fn dropped_messages_whose_numbers_find_no_room_leave_a_lower_bound() {
    let mut observer = Observer::new();
    let message = |n: u64| enveloped(n, 2, &stored(n, 2, None, &[n]));
    let dropped: Vec<_> = (0..17_000).map(message).collect();
    refuse(&mut observer, CORE, &dropped);
    observer.nats(CORE, &message(17_000));
    assert!(observer.source().is_missed_at_least());
}

#[test]
fn a_break_without_numbers_stays_of_unknown_size() {
    let mut observer = Observer::new();
    observer.nats_json(CORE, stored(WORKER, 0, None, &[1]));
    broke(&mut observer);
    broke(&mut observer);
    observer.nats_json(CORE, stored(WORKER, 1, None, &[2]));
    let [gap] = observer.source().all_gaps() else { panic!("{:?}", observer.source().all_gaps()) };
    assert_eq!((gap.topic, gap.count, gap.until_ms), (Topic::KvEvents, 2, Millis(observer.now)));
    assert_eq!(observer.cluster.missed_total(), 0, "unknown is not a number");
    assert_eq!(observer.cluster.gaps_total(), 2);
}

#[test]
fn a_publisher_that_begins_in_the_middle_after_a_break_may_have_been_missed() {
    let mut observer = Observer::new();
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 0, None, &[1])));
    broke(&mut observer);
    observer.nats(CORE, &enveloped(WORKER, 1, &stored(WORKER, 1, None, &[2])));
    assert_eq!(gaps(&observer), 0);
    observer.nats(CORE, &enveloped(WORKER + 1, 0, &stored(WORKER + 1, 0, None, &[1])));
    assert_eq!(gaps(&observer), 0, "from its beginning");
    observer.nats(CORE, &enveloped(WORKER + 2, 40, &stored(WORKER + 2, 40, None, &[1])));
    assert_eq!(gaps(&observer), 1);
}

/// Entries of discovery of one worker of 1.6 with a publisher of its own.
fn entries_of(id: u64) -> [(String, serde_json::Value); 4] {
    let events = "namespace/dynamo/component/backend/endpoint/generate/topic/kv-events";
    let scope = json!({"kind": "endpoint",
        "endpoint": {"namespace": "dynamo", "component": "backend", "name": "generate"}});
    let query = format!("worker_kv_query_source_{id:x}");
    let instance = |name: &str| {
        json!({"type": "Endpoint", "namespace": "dynamo", "component": "backend", "endpoint": name,
            "instance_id": id, "transport": {"tcp": format!("10.0.0.1:1/{id:x}/{name}")}})
    };
    let channel = json!({"type": "EventChannel", "scope": scope, "topic": "kv-events", "instance_id": id,
        "transport": {"kind": "Zmq", "config": {"endpoint": format!("tcp://10.0.0.1:{}", id % 60_000)}}});
    let source = json!({"type": "EventSource", "scope": scope, "topic": "kv-events", "publisher_id": id,
        "metadata": {"worker": {"worker_id": id, "dp_rank": 0}, "publisher_id": id}});
    [
        (format!("v1/event_channels/{events}/{id:x}"), channel),
        (format!("v1/event_sources/{events}/{id:x}"), source),
        (format!("v1/instances/dynamo/backend/generate/{id:x}"), instance("generate")),
        (format!("v1/instances/dynamo/backend/{query}/{id:x}"), instance(&query)),
    ]
}

#[test]
fn stores_do_not_grow_with_workers_that_left() {
    /// Workers at a time.
    const PRESENT: u64 = 8;
    /// Those, the ones that left last, and the places of others before they are taken again.
    const MOST: usize = 256;
    let mut observer = Observer::new();
    for id in 1..=3_000_u64 {
        observer.now += 1_000;
        for (key, value) in entries_of(id) {
            let value = Some(value.to_string().into());
            observer.handle(Payload::Discovery { key: key.into(), value, lease: Some(id) });
        }
        let batch = json!([stored(id, 1, None, &[id])]);
        observer.nats(ENDPOINT, &enveloped(id, 0, &batch));
        if id % 100 == 0 {
            broke(&mut observer);
        }
        if let Some(left) = id.checked_sub(PRESENT).filter(|left| *left > 0) {
            for (key, _) in entries_of(left) {
                observer.handle(Payload::Discovery { key: key.into(), value: None, lease: Some(left) });
            }
        }
    }
    let mut sizes = observer.intake.ingest().sizes();
    sizes.push(("workers of the state", observer.cluster.workers().len()));
    let grown: Vec<_> = sizes.iter().filter(|(_, size)| *size > MOST).collect();
    assert!(grown.is_empty(), "{grown:?}");
    assert_eq!(observer.cluster.tree(PoolIx(0)).totals().resident, PRESENT, "their blocks are gone");
    assert!(observer.intake.ingest().publishers() <= 3_000, "one each, bounded by a number of its own");
}

/// An entry of discovery of the worker, or its end.
fn discovered(observer: &mut Observer, kind: &str, value: Option<serde_json::Value>) {
    let key = match kind {
        "card" => format!("v1/mdc/dynamo/backend/generate/{WORKER:x}"),
        "endpoint" => format!("v1/instances/dynamo/backend/generate/{WORKER:x}"),
        _ => "v1/event_sources/namespace/dynamo/component/backend/endpoint/generate/topic/kv-events/7".into(),
    };
    let value = value.map(|value| value.to_string().into());
    observer.handle(Payload::Discovery { key: key.into(), value, lease: Some(WORKER) });
}

fn endpoint() -> Option<serde_json::Value> {
    Some(json!({"type": "Endpoint", "namespace": "dynamo", "component": "backend", "endpoint": "generate",
        "instance_id": WORKER, "transport": {"tcp": "10.0.0.1:1/x/generate"}}))
}

#[test]
fn a_worker_that_discovery_names_is_there_before_it_says_anything() {
    let mut observer = Observer::new();
    let source = json!({"type": "EventSource", "topic": "kv-events", "publisher_id": 7,
        "metadata": {"worker": {"worker_id": WORKER, "dp_rank": 1}}});
    discovered(&mut observer, "source", Some(source));
    discovered(&mut observer, "endpoint", endpoint());
    assert_eq!(observer.cluster.workers().len(), 1, "one worker, of rank 1");
    let worker = &observer.cluster.workers()[0];
    assert_eq!((worker.id, observer.component(0)), (Worker::new(WORKER, 1), "backend"));
    assert_eq!(observer.source().received, 2);
}

#[test]
fn a_worker_leaves_when_discovery_says_so_and_returns_with_its_entry() {
    let mut observer = Observer::new();
    let card = || {
        Some(json!({"type": "Model", "namespace": "dynamo", "component": "backend", "endpoint": "generate",
            "instance_id": WORKER, "card_json": {"runtime_config": {"data_parallel_size": 2}}}))
    };
    let departed = |observer: &Observer| -> Vec<_> {
        observer
            .cluster
            .workers()
            .iter()
            .map(|worker| worker.departure.map(|departure| departure.why))
            .collect()
    };
    discovered(&mut observer, "endpoint", endpoint());
    discovered(&mut observer, "card", card());
    observer.nats(ENDPOINT, &enveloped(WORKER, 0, &stored(WORKER, 1, None, &[2])));
    assert_eq!(departed(&observer), [None, None]);
    discovered(&mut observer, "endpoint", None);
    assert_eq!(departed(&observer), [Some(DepartureCause::Discovery); 2], "all its ranks");
    // It still finishes what it has begun, and the rest of its entries ends after that.
    observer.now += 10_000;
    observer.nats(ENDPOINT, &enveloped(WORKER, 1, &stored(WORKER, 2, None, &[3])));
    assert_eq!(departed(&observer)[0], Some(DepartureCause::Discovery), "said before it left");
    let said = enveloped_at(observer.now, WORKER, 2, &stored(WORKER, 3, None, &[4]));
    observer.nats(ENDPOINT, &said);
    assert_eq!(departed(&observer)[0], None);
    discovered(&mut observer, "card", None);
    assert_eq!(departed(&observer), [Some(DepartureCause::Discovery); 2]);
    discovered(&mut observer, "endpoint", endpoint());
    assert_eq!(departed(&observer), [None, None]);
}

#[test]
fn a_frontends_list_does_not_contradict_discovery() {
    let mut observer = Observer::new();
    let list = |there: bool| {
        let instance = json!({"component": "backend", "endpoint": "generate", "namespace": "dynamo",
            "instance_id": WORKER, "transport": {"tcp": "10.0.0.1:1/x/generate"}});
        let instances = if there { vec![instance] } else { vec![] };
        json!({"status": "healthy", "instances": instances})
    };
    let has_left = |observer: &Observer| observer.cluster.workers()[0].departure.is_some();
    discovered(&mut observer, "endpoint", endpoint());
    observer.health(list(true));
    for _ in 0..3 {
        observer.health(list(false));
    }
    assert!(!has_left(&observer), "discovery has it");
    let source = json!({"type": "EventSource", "topic": "kv-events", "publisher_id": 7,
        "metadata": {"worker": {"worker_id": WORKER, "dp_rank": 0}}});
    discovered(&mut observer, "source", Some(source));
    discovered(&mut observer, "endpoint", None);
    observer.health(list(true));
    assert!(has_left(&observer), "discovery ended it");
}

fn broke_of(observer: &mut Observer, publisher_id: u64) {
    let mut missing = Missing::default();
    let at = Break { since_ms: Millis(observer.now - 5_000), until_ms: Millis(observer.now) };
    missing.broke_of(Topic::KvEvents, publisher_id, at);
    observer.intake.missing(observer.source, &missing);
    observer.intake.flush(Millis(observer.now), &mut observer.cluster);
}

#[test]
fn a_break_of_one_publisher_waits_for_that_one_only() {
    let mut observer = Observer::new();
    for publisher in [WORKER, WORKER + 1] {
        observer.nats(CORE, &enveloped(publisher, 3, &stored(publisher, 0, None, &[1])));
    }
    broke_of(&mut observer, WORKER);
    broke_of(&mut observer, WORKER);
    assert_eq!(gaps(&observer), 1, "one gap until it speaks, however often it broke");
    observer.nats(CORE, &enveloped(WORKER + 1, 4, &stored(WORKER + 1, 1, None, &[2])));
    assert_eq!(gaps(&observer), 1, "another one says nothing of it");
    observer.nats(CORE, &enveloped(WORKER, 9, &stored(WORKER, 1, None, &[2])));
    assert_eq!(gaps(&observer), 0, "its number tells");
    assert_eq!(lost(&mut observer), [(MissedCause::EnvelopeGap, 5)]);
    broke_of(&mut observer, WORKER);
    assert_eq!(gaps(&observer), 1, "a later break is another gap");
}

#[test]
fn a_break_of_a_publisher_that_had_not_spoken_is_a_gap_only_if_it_spoke_meanwhile() {
    let mut observer = Observer::new();
    broke_of(&mut observer, WORKER);
    broke_of(&mut observer, WORKER + 1);
    assert_eq!(gaps(&observer), 0);
    observer.nats(CORE, &enveloped(WORKER, 0, &stored(WORKER, 0, None, &[1])));
    assert_eq!(gaps(&observer), 0, "from its beginning");
    observer.nats(CORE, &enveloped(WORKER + 1, 6, &stored(WORKER + 1, 6, None, &[1])));
    assert_eq!(gaps(&observer), 1);
    observer.nats(CORE, &enveloped(WORKER + 2, 6, &stored(WORKER + 2, 6, None, &[1])));
    assert_eq!(gaps(&observer), 1, "who never broke only joined late");
}

#[test]
fn more_breaks_than_are_kept_apart_are_one_of_all() {
    let mut missing = Missing::default();
    let at = Break { since_ms: Millis(1), until_ms: Millis(2) };
    (0..20_000).for_each(|publisher| missing.broke_of(Topic::KvEvents, publisher, at));
    assert!(missing.of_publishers.len() < 20_000 && !missing.breaks.is_empty());
}

fn router_policy(routers: &[(&str, f64)]) -> String {
    let router = |&(id, scale): &(&str, f64)| {
        json!({"router_id": id, "model": "m", "namespace": "dynamo", "component": "backend", "endpoint": "generate",
            "worker_type": "aggregated",
            "configuration": {"revision": 0, "parameters": {"prefill_load_scale": scale, "router_temperature": 0.0}}})
    };
    json!({"routers": routers.iter().map(router).collect::<Vec<_>>()}).to_string()
}

#[test]
fn what_routers_run_with_is_recorded_when_it_is_news() {
    let mut observer = Observer::new();
    let read = |observer: &mut Observer, after_ms: u64, frontend: &str, routers: &[(&str, f64)]| {
        observer.now += after_ms;
        let before = observer.cluster.settings().to_vec();
        let response = router_policy(routers).into();
        observer.handle(Payload::RouterPolicy { frontend: frontend.into(), response });
        before != observer.cluster.settings()
    };
    let begin = Millis(observer.now);
    assert!(read(&mut observer, 0, "a", &[("1", 1.0)]));
    assert!(read(&mut observer, 0, "b", &[("9", 1.0)]), "another frontend has its own");
    for _ in 0..3 {
        assert!(!read(&mut observer, 5_000, "a", &[("1", 1.0)]));
    }
    assert!(read(&mut observer, 5_000, "a", &[("1", 2.0)]));
    let state = &observer.cluster.settings()[0];
    assert_eq!((state.of.router.as_str(), state.of.role), ("1", Some(Role::Aggregated)));
    assert_eq!(
        state.earlier.iter().map(|step| (step.after_ms, step.by_ms)).collect::<Vec<_>>(),
        [(None, begin)]
    );
    assert_eq!(state.latest.numbers.prefill_load_scale, Some(2.0));
    let since = |ms| Millis(begin.0 + ms);
    assert_eq!((state.latest.after_ms, state.latest.by_ms), (Some(since(15_000)), since(20_000)));
    // It starts again, with another id; the other frontend is not concerned.
    assert!(read(&mut observer, 5_000, "a", &[("2", 1.0)]));
    let all: Vec<_> =
        observer.cluster.settings().iter().map(|of| (of.of.router.as_str(), of.left_ms)).collect();
    assert_eq!(all, [("1", Some(since(25_000))), ("9", None), ("2", None)]);
    assert!(!read(&mut observer, 5_000, "a", &[("2", 1.0)]), "it left once only");
}

#[test]
fn a_router_policy_that_is_not_understood_says_nothing_of_routers() {
    let mut observer = Observer::new();
    let whole = router_policy(&[("1", 1.0), ("2", 1.0)]);
    let handle = |observer: &mut Observer, response: &str| {
        let response = Bytes::copy_from_slice(response.as_bytes());
        observer.handle(Payload::RouterPolicy { frontend: "a".into(), response });
    };
    handle(&mut observer, &whole);
    handle(&mut observer, &whole[..whole.len() - 2]);
    let left: Vec<_> = observer.cluster.settings().iter().map(|state| state.left_ms).collect();
    assert_eq!(left, [None, None]);
    let [rejected] = &observer.source().rejected[..] else { panic!("one: {:?}", observer.source().rejected) };
    assert_eq!((rejected.topic, rejected.count), (Topic::RouterPolicy, 1));
    // Of many routers and long names only so much is kept.
    let long = "x".repeat(4_096);
    for n in 0..20 {
        let ids: Vec<String> = (0..64).map(|router| format!("{n} {router} {long}")).collect();
        let routers: Vec<(&str, f64)> = ids.iter().map(|id| (id.as_str(), 1.0)).collect();
        handle(&mut observer, &router_policy(&routers));
    }
    let settings = observer.cluster.settings();
    assert!(settings.len() <= radixscope_state::cluster::MAX_SETTINGS);
    assert!(settings.iter().all(|state| state.of.router.chars().count() <= 128));
}
