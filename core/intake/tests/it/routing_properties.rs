//! Any messages about requests, in any order: nothing panics, ids ascend, and a restored state goes on alike.

use proptest::prelude::*;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Entry, SourceKind};
use radixscope_state::cluster::{Cluster, Follow, SnapshotReader};
use radixscope_state::sink::RecordSink;
use serde_json::{Value, json};

const SEQUENCES: &str = "namespace.dynamo.component.backend.active_sequences_events";

/// A subject and a message.
fn payload() -> impl Strategy<Value = Payload> {
    let request = || (0..4_u8).prop_map(|n| format!("request-{n}"));
    let worker = || (0..3_u64).prop_map(|id| json!({"worker_id": id, "dp_rank": 0}));
    // Few hashes, so that prompts meet each other and the tree; some absurd.
    let hash = || prop_oneof![4 => 1..6_u64, 1 => any::<u64>()];
    let number = || prop_oneof![4 => 0..200_u64, 1 => any::<u64>()];
    let step = |(request, worker, data): (String, Value, Value)| json!({"request_id": request, "worker": worker, "router_id": 9, "data": data});
    let added = (proptest::collection::vec(hash(), 0..6), number(), number(), any::<bool>());
    let added = added.prop_map(|(chain, isl, overlap, is_old)| {
        if is_old {
            json!({"AddRequest": {"token_sequence": chain, "isl": isl, "overlap": overlap}})
        } else {
            let hint = json!({"initial_effective_prefill_tokens": isl, "expected_prefill_duration": null});
            json!({"AddRequest": {"token_sequence": chain, "prefill_load_hint": hint}})
        }
    });
    let data = prop_oneof![2 => added, 1 => Just(json!("Free")), 1 => Just(json!("MarkPrefillCompleted"))];
    let sequence = (request(), worker(), data).prop_map(move |parts| (SEQUENCES, step(parts)));
    let hit = (0..3_u64, number(), number()).prop_map(|(worker, isl, overlap)| {
        let hit = json!({"worker_id": worker, "isl_blocks": isl, "overlap_blocks": overlap});
        ("namespace.dynamo.kv-hit-rate", hit)
    });
    let stored = (0..3_u64, proptest::collection::vec(hash(), 1..5)).prop_map(|(worker, blocks)| {
        let blocks: Vec<_> = blocks.iter().map(|b| json!({"block_hash": b, "tokens_hash": b})).collect();
        let event = json!({"event_id": 0, "data": {"stored": {"parent_hash": null, "blocks": blocks}}});
        ("namespace.dynamo.component.backend.kv-events", json!({"worker_id": worker, "event": event}))
    });
    let trace = (request(), number(), proptest::collection::vec(hash(), 0..5), any::<f64>()).prop_map(
        |(request, isl, chain, ms)| {
            let replay =
                json!({"trace_block_size": isl % 40, "input_length": isl, "input_sequence_hashes": chain});
            let worker = json!({"prefill_worker_id": isl % 3, "decode_worker_id": 1});
            let request = json!({"request_id": request, "input_tokens": isl, "ttft_ms": ms, "kv_hit_rate": ms,
                "worker": worker, "replay": replay});
            let trace = json!({"schema": "dynamo.request.trace.v1", "event_type": "request_end",
                "event_time_unix_ms": isl, "request": request});
            ("dynamo.request_trace.v1", trace)
        },
    );
    let line = (0..3_u64, number(), 0..6_u8, request()).prop_map(|(worker, n, kind, request)| {
        let at = format!("2026-11-20T18:06:54.42{kind}962Z  INFO target: ");
        let text = match kind {
            0 | 1 => format!(
                "Formula for worker_id={worker} dp_rank=0 with {n} cached blocks: 4.625 = 1.0 * prefill_blocks + \
                 decode_blocks = 1.0 * 2.625 + 2.000"
            ),
            2 => "Multiple workers tied with same logit, using tree size as tie-breaker".to_owned(),
            3 => format!("Selected worker: worker_id={worker} dp_rank=0, logit: 4.625, cached blocks: {n}, tree size: 0"),
            4 => format!(
                "[ROUTING_INPUT] request local hashes request_id=\"{request}\" isl_tokens={n} block_size={worker} \
                 num_blocks=2 local_hashes=[1, {n}]"
            ),
            _ => format!(
                "Selected worker router_mode=\"kv\" request_id=\"{request}\" worker_id={worker} worker_type=decode \
                 dp_rank=0 logit=4.625 host_pinned_blocks=0 disk_blocks=0"
            ),
        };
        Payload::LogLine { log: "frontend".into(), line: (at + &text).into() }
    });
    let nats = |(subject, value): (&'static str, Value)| {
        NatsSubjects::default().publication(subject, None, value.to_string().into()).unwrap()
    };
    prop_oneof![
        4 => sequence.prop_map(nats),
        2 => hit.prop_map(nats),
        2 => stored.prop_map(nats),
        1 => trace.prop_map(nats),
        4 => line,
    ]
}

/// A state and one that was restored from it on the way.
struct Twice {
    near: Cluster,
    far: Option<Cluster>,
}

impl RecordSink for Twice {
    fn cluster(&self) -> &Cluster {
        &self.near
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.near.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.near.append(entry);
        if let Some(far) = &mut self.far {
            far.append(entry);
        }
    }
}

fn restored(cluster: &Cluster) -> Cluster {
    let (mut parts, mut reader) = (Vec::new(), SnapshotReader::default());
    cluster.snapshot(|part| parts.push(part)).unwrap();
    parts.iter().find_map(|part| reader.part(part).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn any_talk_of_requests_gives_ascending_decisions_and_equal_states(
        talk in proptest::collection::vec((payload(), 0..900_u64), 0..60),
        restore_at in 0..60_usize,
    ) {
        let mut intake = Intake::default();
        let mut twice = Twice { near: Cluster::default(), far: None };
        let mut now = 1_795_000_000_000;
        let source = intake.source("any", SourceKind::Nats, Millis(now), &mut twice).unwrap();
        for (i, (payload, later_ms)) in talk.iter().enumerate() {
            if i == restore_at {
                twice.far = Some(restored(&twice.near));
            }
            now += later_ms;
            let received = Received { source, at_ms: Millis(now), payload: payload.clone() };
            intake.handle(&received, &mut twice);
        }
        let ids: Vec<_> = twice.near.decisions().newest_first().map(|d| d.decision.id).collect();
        prop_assert!(ids.is_sorted_by(|a, b| a > b));
        // A trace tells of two choices where prefill and decode are apart.
        prop_assert!(ids.len() <= 2 * talk.len());
        prop_assert_eq!(twice.near.decisions().totals().count, ids.len() as u64);
        for decided in twice.near.decisions().newest_first() {
            prop_assert!(decided.overlap_share().is_none_or(f64::is_finite));
            prop_assert!(decided.decision.candidates.iter().all(|c| c.cost.is_finite() && c.cost >= 0.0));
        }
        if let Some(far) = &twice.far {
            prop_assert_eq!(far.digest(), twice.near.digest());
        }
    }
}
