//! Recorded traffic and the frontend's log of the same minutes together: every decision is one, with all that either
//! tells, and what is computed from the tree is what the router computed.

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Candidate, Completeness, DecisionSource, Outcome, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::captures::replay::received;

/// Plays a capture. `sources`: the messages, the log, or both.
pub(crate) fn play(name: &str, with_messages: bool, with_log: bool) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let nats = intake.source("nats", SourceKind::Nats, Millis(1), &mut cluster).unwrap();
    let log = intake.source("log", SourceKind::Logs, Millis(1), &mut cluster).unwrap();
    let mut flushed = 0;
    for (at_ms, payload) in received(name, &["frontend"]) {
        if at_ms.0 / 1_000 > flushed {
            flushed = at_ms.0 / 1_000;
            intake.flush(at_ms, &mut cluster);
        }
        let is_line = matches!(payload, Payload::LogLine { .. });
        if if is_line { with_log } else { with_messages } {
            let source = if is_line { log } else { nats };
            intake.handle(&Received { source, at_ms, payload }, &mut cluster);
        }
    }
    intake.flush(Millis(2_000_000_000_000), &mut cluster);
    assert_eq!(cluster.rejected_total(), 0, "{name}: {:?}", cluster.sources());
    cluster
}

fn oldest_first(cluster: &Cluster) -> impl Iterator<Item = &DecisionEntry> {
    cluster.decisions().newest_first().rev()
}

/// What the test itself finds in the log.
fn count(name: &str, text: &str) -> usize {
    Recording::fixture(name).log("frontend").filter(|line| line.contains(text)).count()
}

const OLD: [&str; 7] = [
    "0.9.1-healthy",
    "0.9.1-healthy-vllm",
    "0.9.1-localindexer",
    "0.9.1-log-jsonl-info",
    "0.9.1-mismatch",
    "0.9.1-no-events",
    "0.9.1-worker-restart",
];

#[test]
fn with_0_9_the_log_and_the_hit_rate_of_a_decision_are_one_decision() {
    for name in OLD {
        let cluster = play(name, true, true);
        let selected = count(name, "Selected worker");
        let both =
            |d: &&DecisionEntry| d.is_from(DecisionSource::KvHitRate) && d.is_from(DecisionSource::Log);
        assert_eq!(oldest_first(&cluster).filter(both).count(), selected, "{name}: joined");
        assert_eq!(cluster.decisions().totals().count, selected as u64, "{name}: nothing twice");
        let candidates: usize = oldest_first(&cluster).map(|d| d.decision.candidates.len()).sum();
        assert_eq!(
            candidates,
            count(name, "Formula for worker_id="),
            "{name}: every formula has its decision"
        );
        assert!(
            oldest_first(&cluster).all(|d| d.decision.completeness == Completeness::AllCandidates),
            "{name}"
        );
        let ties = oldest_first(&cluster).filter(|d| d.decision.tied).count();
        assert_eq!(ties, count(name, "Multiple workers tied"), "{name}: ties");
    }
}

#[test]
fn with_0_9_the_choice_is_the_lowest_cost_and_its_overlap_what_both_sources_say() {
    for name in OLD {
        let by_messages = play(name, true, false);
        let by_log = play(name, false, true);
        let agree = oldest_first(&by_messages)
            .zip(oldest_first(&by_log))
            .filter(|(a, b)| a.overlap_blocks() == b.overlap_blocks() && a.overlap_blocks().is_some());
        let decisions = count(name, "Selected worker");
        assert_eq!(
            agree.count(),
            decisions,
            "{name}: overlap from messages alone against the log's cached blocks"
        );
        for decided in oldest_first(&by_log) {
            let chosen =
                decided.chosen().unwrap_or_else(|| panic!("{name}: not among the candidates: {decided:?}"));
            let least = decided.decision.candidates.iter().map(|c| c.cost).fold(f64::INFINITY, f64::min);
            assert_eq!(chosen.cost, least, "{name}: {decided:?}");
            assert_eq!(decided.decision.logit, Some(chosen.cost));
        }
    }
}

/// Of the dispatched requests of the recording with hashes: joined, with our overlap as logged, with our cost as logged.
fn recomputed(cluster: &Cluster) -> (usize, usize, usize, Vec<String>) {
    let (mut joined, mut overlaps, mut costs, mut others) = (0, 0, 0, Vec::new());
    for decided in oldest_first(cluster) {
        let (Some(logged), Some(chosen)) = (decided.decision.overlap_blocks, decided.chosen()) else {
            continue;
        };
        if decided.progress.outcome.is_none() || decided.progress.output_tokens.is_none() {
            continue;
        }
        joined += 1;
        let same_overlap = u64::from(chosen.overlap_blocks) == logged;
        let same_cost = decided.decision.logit == Some(chosen.cost);
        overlaps += usize::from(same_overlap);
        costs += usize::from(same_cost);
        if !same_overlap || !same_cost {
            others.push(format!(
                "{}: overlap {} of {logged}, cost {} of {:?}",
                decided.decision.id, chosen.overlap_blocks, chosen.cost, decided.decision.logit
            ));
        }
    }
    (joined, overlaps, costs, others)
}

#[test]
fn with_1_6_every_dispatched_request_is_joined_and_recomputed_as_the_router_computed_it() {
    let name = "1.6.1-log-jsonl-debug";
    let cluster = play(name, true, true);
    let dispatched = count(name, "route request completed");
    let (joined, overlaps, costs, others) = recomputed(&cluster);
    println!(
        "{joined} joined of {dispatched}, {overlaps} overlaps and {costs} costs equal; not: {others:#?}"
    );
    assert_eq!(joined, dispatched);
    assert_eq!((overlaps, costs), (joined, joined), "{others:#?}");
    let succeeded = |d: &&DecisionEntry| d.progress.outcome == Some(Outcome::Success);
    assert_eq!(oldest_first(&cluster).filter(succeeded).count(), dispatched);
    assert!(oldest_first(&cluster).all(|d| d.decision.completeness == Completeness::Reconstructed));
}

#[test]
fn with_1_6_at_info_the_three_lines_of_a_request_are_one_decision() {
    for name in ["1.6.1-healthy", "1.6.1-mismatch", "1.6.1-router-restart"] {
        let cluster = play(name, true, true);
        assert_eq!(
            cluster.decisions().totals().count,
            count(name, "Selected worker router_mode") as u64,
            "{name}"
        );
        let whole = |d: &&DecisionEntry| {
            d.decision.logit.is_some()
                && d.decision.overlap_blocks.is_some()
                && d.progress.outcome.is_some()
                && d.progress.ttft_us.is_some()
        };
        let dispatched = count(name, "route request completed");
        assert_eq!(oldest_first(&cluster).filter(whole).count(), dispatched, "{name}");
    }
}

/// Two recordings with `--router-replica-sync`; of the second's log only the lines
/// about routing, because at DEBUG it is large.
const OLD_SYNC: &str = "../routing/0.9.1-replica-sync";
const NEW_SYNC: &str = "../routing/1.6.1-replica-sync-trace";

#[test]
fn with_0_9_and_replica_sync_every_candidate_costs_what_the_router_logged() {
    let by_messages = play(OLD_SYNC, true, false);
    let by_both = play(OLD_SYNC, true, true);
    let selected = count(OLD_SYNC, "Selected worker") as u64;
    assert_eq!(
        (by_messages.decisions().totals().count, by_both.decisions().totals().count),
        (selected, selected)
    );
    let (mut logged, mut overlaps, mut costs) = (0, 0, 0);
    for decided in oldest_first(&by_both).filter(|d| d.decision.request_id.is_some()) {
        let same = |d: &&DecisionEntry| d.decision.request_id == decided.decision.request_id;
        let ours = oldest_first(&by_messages).find(same).expect("known from messages alone");
        assert_eq!(ours.decision.completeness, Completeness::Reconstructed);
        for theirs in decided.decision.candidates.iter() {
            logged += 1;
            let id = |cluster: &Cluster, worker| cluster.worker(worker).unwrap().id;
            let is_same = |c: &&Candidate| id(&by_messages, c.worker) == id(&by_both, theirs.worker);
            let Some(ours) = ours.decision.candidates.iter().find(is_same) else { continue };
            overlaps += usize::from(ours.overlap_blocks == theirs.overlap_blocks);
            // The log has three decimals.
            costs += usize::from((ours.cost - theirs.cost).abs() <= 0.000_501);
        }
    }
    println!("{overlaps} overlaps and {costs} costs of {logged} logged candidates equal");
    // The others lie between two states that agree on the chosen worker.
    assert!(
        logged >= 390 && overlaps * 1_000 >= logged * 995 && costs * 100 >= logged * 99,
        "{overlaps} {costs} {logged}"
    );
}

#[test]
fn with_1_6_sequences_log_and_trace_of_a_request_are_one_decision_recomputed_exactly() {
    let cluster = play(NEW_SYNC, true, true);
    let selected = count(NEW_SYNC, "Selected worker");
    assert_eq!(cluster.decisions().totals().count, selected as u64);
    let (joined, overlaps, costs, others) = recomputed(&cluster);
    assert_eq!((joined, overlaps, costs), (153, 153, 153), "{others:#?}");
    let sources = |d: &&DecisionEntry| d.sources().count() == 3;
    assert_eq!(oldest_first(&cluster).filter(sources).count(), 153);
    assert!(oldest_first(&cluster).filter(sources).all(|d| d.progress.cached_tokens.is_some()));
}

#[test]
fn with_1_6_messages_alone_give_the_routers_own_overlap() {
    let cluster = play(NEW_SYNC, true, false);
    let summary = |d: &&DecisionEntry| d.is_from(DecisionSource::ActiveSequences);
    let (mut all, mut same) = (0, 0);
    for decided in oldest_first(&cluster).filter(summary) {
        all += 1;
        let ours = decided.chosen().map(|c| u64::from(c.overlap_blocks));
        same += usize::from(ours.is_some() && ours == decided.decision.overlap_blocks);
    }
    assert_eq!((all, same), (153, 153));
}
