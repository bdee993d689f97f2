//! What the checks say of recorded deployments of more than one aggregated pool, of other modes of routing, and of workers
//! that come and go.

use bytes::Bytes;
use radixscope_captures::Recording;
use radixscope_dynamo::subject::Subject;
use radixscope_intake::Payload;
use radixscope_model::record::{CheckStatus, DepartureCause, Finding, RoutingMode, Severity, Topic};
use radixscope_state::cluster::CacheOutcome;

use crate::captures::watch::{
    ALL_AND_CARDS, NATS, NATS_AND_FRONTEND, NATS_AND_LOG, NATS_AND_METRICS, Sources, Tape, Watched,
};

/// Decisions whose costs are known, and those of them in which another candidate would have been cheaper.
fn weighed(watched: &Watched) -> (usize, usize) {
    let decisions = watched.cluster.decisions().newest_first();
    let cost_gaps: Vec<f64> = decisions.filter_map(|decided| decided.cost_gap_blocks().ok()).collect();
    (cost_gaps.len(), cost_gaps.iter().filter(|&&cost_gap| cost_gap < 0.0).count())
}

const NATS_AND_CARDS: Sources = Sources { cards: true, ..NATS };

fn play(name: &str, sources: Sources, idle_s: u64) -> Watched {
    Tape::of_recording(&Recording::topology(name)).play(sources, 0.0, idle_s)
}

/// The last word of a finding.
fn last<'w>(watched: &'w Watched, code: &str) -> &'w Finding {
    let last = watched.findings.iter().rfind(|(_, finding)| finding.code == code);
    &last.unwrap_or_else(|| panic!("no {code}: {}", watched.summary())).1
}

fn ids(watched: &Watched, finding: &Finding) -> Vec<u64> {
    let id = |&worker| watched.cluster.worker(worker).unwrap().id.id.0;
    let mut ids: Vec<u64> = finding.workers.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn workers_that_are_stopped_are_noted_and_the_killed_one_is_a_warning() {
    let killed = [7_668_682_385_939_503_622];
    let stopped = [7_668_682_385_939_503_630, 7_668_682_385_939_503_649, 7_668_682_385_939_503_697];
    for sources in [NATS_AND_LOG, NATS_AND_FRONTEND, ALL_AND_CARDS] {
        let watched = play("1.6.1-scale", sources, 10);
        let findings =
            |code: &'static str| watched.findings.iter().filter(move |(_, finding)| finding.code == code);
        for (_, finding) in findings("worker_gone") {
            let severity = (finding.severity, ids(&watched, finding));
            assert_eq!(severity, (Severity::Warning, killed.to_vec()), "{sources:?}");
        }
        for (_, finding) in findings("worker_stopped") {
            let severity = (finding.severity, ids(&watched, finding));
            assert_eq!(severity, (Severity::Info, stopped.to_vec()), "{sources:?}");
        }
        assert_eq!(last(&watched, "errors").cause, "worker_gone", "{sources:?}: {}", watched.summary());
        let others = |code: &String| !["errors", "worker_gone"].contains(&&**code);
        let grave = watched.codes(Severity::Warning).into_iter().filter(others).collect::<Vec<_>>();
        assert_eq!(grave, [""; 0], "{sources:?}: {}", watched.summary());
        assert!(findings("worker_gone").count() > 0 && findings("worker_stopped").count() > 0, "{sources:?}");
        let totals = watched.cluster.trees().map(|(_, tree)| tree.totals());
        let all: Vec<_> = totals.map(|of| (of.nodes, of.shared, of.resident)).filter(|of| of.2 > 0).collect();
        assert_eq!(all, [(2_465, 733, 3_198)], "{sources:?}");
    }
}

#[test]
fn a_departure_counts_as_it_was_found_out_first() {
    let watched = play("1.6.1-scale", ALL_AND_CARDS, 10);
    let departed: Vec<_> =
        watched.cluster.workers().iter().filter_map(|worker| worker.last_departure).collect();
    assert_eq!(departed.len(), 4);
    // The router's gauges miss them ten seconds later.
    assert!(departed.iter().all(|departure| departure.why == DepartureCause::Log), "{departed:?}");
    let late: u64 = watched.cluster.workers().iter().map(|worker| worker.events_after_departure).sum();
    assert!(late > 0, "two of them finish what they have, and that stays known");
}

#[test]
fn a_worker_that_died_is_no_candidate_while_its_router_leaves_it_out() {
    for sources in [NATS_AND_LOG, ALL_AND_CARDS] {
        let watched = play("1.6.1-scale", sources, 5);
        assert_eq!(weighed(&watched), (171, 0), "{sources:?}: of 171, none passed a cheaper one over");
    }
}
#[test]
fn a_frontend_that_does_not_route_by_kv_is_found_and_its_mode_named() {
    let name = "1.6.1-mode-round-robin";
    for sources in [NATS_AND_LOG, NATS_AND_FRONTEND, ALL_AND_CARDS] {
        let watched = play(name, sources, 10);
        let finding = last(&watched, "not_kv_routing");
        assert_eq!(
            watched.codes(Severity::Warning),
            ["not_kv_routing"],
            "{sources:?}: {}",
            watched.summary()
        );
        let by = if sources.frontend_log { "but by round-robin" } else { "the mode is unknown" };
        assert!(finding.title.ends_with(by), "{sources:?}: {}", finding.title);
        let status = |code: &str| {
            let checked = watched.cluster.checked().iter().find(|status| status.code == code).unwrap();
            (checked.status, &*checked.explained_by)
        };
        let explained = (CheckStatus::Explained, "not_kv_routing");
        assert_eq!(status("router_receives_no_events"), explained, "{sources:?}");
        if !sources.frontend_log {
            continue;
        }
        assert_eq!(status("zero_overlap"), explained, "{sources:?}");
        let choices: Vec<_> = watched.cluster.decisions().newest_first().collect();
        assert_eq!(choices.len(), 46, "as many as the log has");
        for decided in choices {
            assert_eq!(decided.decision.mode, Some(RoutingMode::RoundRobin));
            assert_eq!((decided.cache_outcome(), decided.overlap_share()), (CacheOutcome::Ignored, None));
            assert!(decided.progress.ended_ms.is_some() || decided.decision.isl_tokens.is_none());
        }
        assert_eq!(watched.cluster.decisions().totals().overlap_share(), None, "no hit rate is claimed");
    }
    assert!(play(name, NATS, 10).findings.is_empty(), "messages alone do not tell");
}

#[test]
fn a_router_that_goes_by_its_own_guesses_is_named() {
    for sources in [NATS_AND_LOG, NATS_AND_FRONTEND, ALL_AND_CARDS] {
        let watched = play("1.6.1-approx", sources, 10);
        assert_eq!(watched.codes(Severity::Info), ["approximate_mode"], "{sources:?}: {}", watched.summary());
        let deaf = watched
            .cluster
            .checked()
            .iter()
            .find(|status| status.code == "router_receives_no_events")
            .unwrap();
        assert_eq!((deaf.status, &*deaf.explained_by), (CheckStatus::Explained, "approximate_mode"));
    }
}

fn healthy(name: &str) {
    let tape = Tape::of_recording(&Recording::topology(name));
    for sources in [NATS, NATS_AND_LOG, NATS_AND_METRICS, ALL_AND_CARDS] {
        let watched = tape.play(sources, 0.0, 60);
        assert_eq!(watched.codes(Severity::Info), [""; 0], "{name}, {sources:?}: {}", watched.summary());
    }
    let watched = tape.play(ALL_AND_CARDS, tape.middle(), 60);
    assert_eq!(
        watched.codes(Severity::Info),
        ["tree_partial"],
        "{name}, from the middle: {}",
        watched.summary()
    );
}

macro_rules! healthy {
    ($($test:ident $capture:literal)*) => {$(
        #[test]
        fn $test() {
            healthy($capture);
        }
    )*};
}

healthy! {
    disaggregated_1_6_1_raises_nothing "1.6.1-disagg"
    disaggregated_1_6_1_without_replica_sync_raises_nothing "1.6.1-disagg-default"
    disaggregated_0_9_1_raises_nothing "0.9.1-disagg"
    disaggregated_0_9_1_with_replica_sync_raises_nothing "0.9.1-disagg-sync"
    two_models_raise_nothing "1.6.1-two-models"
    two_models_of_0_9_1_raise_nothing "0.9.1-two-models"
    two_block_sizes_raise_nothing "1.6.1-two-sizes"
    two_namespaces_raise_nothing "1.6.1-two-namespaces"
    ranks_raise_nothing "1.6.1-dp2"
    host_memory_raises_nothing "1.6.1-host"
    salts_and_adapters_raise_nothing "1.6.1-inject"
}

/// The ids of the workers of a component.
fn workers_of(watched: &Watched, component: &str) -> Vec<u64> {
    let cluster = &watched.cluster;
    let is_in = |pool| cluster.pool(pool).is_some_and(|pool| pool.component == component);
    let mut ids: Vec<u64> =
        cluster.workers().iter().filter(|worker| is_in(worker.pool)).map(|worker| worker.id.id.0).collect();
    ids.sort_unstable();
    ids
}

/// Whether a payload is a message of KV events of a component.
fn is_events_of(payload: &Payload, of: &str) -> bool {
    matches!(payload, Payload::Nats { subject, .. } if subject.topic == Topic::KvEvents && &*subject.component == of)
}

fn assert_names(watched: &Watched, code: &str, component: &str) {
    let wanted = workers_of(watched, component);
    assert!(wanted.len() >= 2, "{component}: {wanted:?}");
    for (_, finding) in watched.findings.iter().filter(|(_, finding)| finding.code == code) {
        let named = ids(watched, finding);
        assert!(named.iter().all(|id| wanted.contains(id)), "{code}: {}", finding.title);
    }
    assert_eq!(ids(watched, last(watched, code)), wanted, "{}", watched.summary());
    assert_eq!(watched.codes(Severity::Warning), [code], "{}", watched.summary());
}

/// Where the value of a field of a MessagePack map begins.
fn value_at(message: &[u8], field: &str) -> usize {
    message.windows(field.len()).position(|bytes| bytes == field.as_bytes()).unwrap() + field.len()
}

/// The same `kv-hit-rate`, in which the router found nothing, if it is of one of these workers.
fn without_overlap(message: &Bytes, of: &[u64]) -> Bytes {
    let mut changed = message.to_vec();
    // Behind the byte that says that eight follow.
    let id = value_at(message, "worker_id") + 1;
    if of.contains(&u64::from_be_bytes(message[id..id + 8].try_into().unwrap())) {
        let overlap = value_at(message, "overlap_blocks");
        // A number below 128 is its own byte; a larger one follows the byte that says how long it is.
        let from = overlap + usize::from(changed[overlap] >= 128);
        changed[from..].fill(0);
    }
    changed.into()
}

/// A pool whose engines publish nothing: no events, and a router that finds nothing there.
fn without_events(name: &str, component: &str) -> Watched {
    let tape = Tape::of_recording(&Recording::topology(name));
    let silent = workers_of(&tape.play(NATS_AND_CARDS, 0.0, 0), component);
    let change = |payload: &mut Payload| {
        match payload {
            Payload::Nats { subject, message } if subject.topic == Topic::KvHitRate => {
                *message = without_overlap(message, &silent);
            }
            _ => {}
        }
        !is_events_of(payload, component)
    };
    tape.changed(change).play(NATS_AND_CARDS, 0.0, 10)
}

#[test]
fn a_pool_without_kv_events_is_named_and_no_other() {
    for (name, component) in [("0.9.1-two-models", "backend2"), ("0.9.1-disagg", "prefill")] {
        let watched = without_events(name, component);
        assert_names(&watched, "no_events", component);
    }
    let watched = without_events("0.9.1-two-models", "backend2");
    let finding = last(&watched, "no_events");
    assert_eq!(
        (finding.severity, &*finding.title),
        (Severity::Critical, "No KV events from any worker of dynamo/backend2")
    );
}

/// As an engine's blocks of half the size come out of a publisher (reference §9.1): stored events without a block.
#[test]
fn a_pool_of_another_block_size_is_named_and_no_other() {
    let emptied = |payload: &mut Payload| {
        if !is_events_of(payload, "backend2") {
            return true;
        }
        let Payload::Nats { message, .. } = payload else { return true };
        let mut event: serde_json::Value = serde_json::from_slice(message).unwrap();
        if let Some(blocks) = event.pointer_mut("/event/data/stored/blocks") {
            *blocks = serde_json::json!([]);
        }
        *message = event.to_string().into();
        true
    };
    let tape = Tape::of_recording(&Recording::topology("0.9.1-two-models"));
    let watched = tape.changed(emptied).play(ALL_AND_CARDS, 0.0, 10);
    assert_names(&watched, "block_size_mismatch", "backend2");
    assert_eq!(last(&watched, "block_size_mismatch").severity, Severity::Critical);
}

#[test]
fn models_that_share_a_component_are_found() {
    let one_component = |payload: &mut Payload| {
        match payload {
            Payload::Nats { subject, .. } if &*subject.component == "backend2" => {
                *subject = Subject { component: "backend".into(), ..(**subject).clone() }.into();
            }
            Payload::Discovery { value: Some(value), .. } => {
                let text = String::from_utf8(value.to_vec()).unwrap();
                *value = text.replace("\"backend2\"", "\"backend\"").into();
            }
            _ => {}
        }
        true
    };
    let tape = Tape::of_recording(&Recording::topology("0.9.1-two-models"));
    let watched = tape.changed(one_component).play(ALL_AND_CARDS, 0.0, 10);
    let finding = last(&watched, "models_share_a_pool");
    assert_eq!(
        (finding.severity, &*finding.title),
        (Severity::Critical, "2 models share one component: dynamo/backend")
    );
    let labels: Vec<_> = finding.evidence.iter().map(|row| (&*row.label, &*row.value)).collect();
    assert_eq!(
        labels,
        [
            ("Workers of dynamo/backend that serve models/tiny-llama, by their model cards", "2"),
            ("Workers of dynamo/backend that serve models/tiny-two, by their model cards", "2"),
        ]
    );
}

#[test]
fn models_and_their_sizes_are_known_from_logs_and_metrics_alone() {
    let sources = Sources { worker_logs: false, worker_metrics: false, cards: false, ..ALL_AND_CARDS };
    let watched = play("1.6.1-two-sizes", sources, 5);
    for (pool, model, tokens) in [("backend", "tiny-llama", 16), ("backend2", "tiny-two", 32)] {
        let ix = watched.cluster.pool_by_name(&format!("dynamo/{pool}")).unwrap();
        assert_eq!(watched.cluster.models_in(ix), [format!("models/{model}")]);
        assert_eq!(watched.cluster.block_tokens(ix), Some(tokens), "{pool}");
        for worker in watched.cluster.workers_in(ix) {
            let capacity = watched.cluster.capacity(worker).map(|capacity| capacity.value);
            assert_eq!(capacity, Some(if tokens == 16 { 1_600 } else { 900 }), "{pool}");
        }
    }
}
