//! Recordings of routers that log each prompt, with the log read late and with messages that arrive late: costs that
//! are called reconstructed are those of the router, whatever the delay.
//!
//! `RADIXSCOPE_CAPTURES`, a list of folders separated by colons, adds recordings that are not in the repository.

use std::collections::BTreeMap;

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Candidate, Completeness, DecisionSource, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::captures::replay::{Delays, received_late};

/// How often a server flushes.
const TICK_MS: u64 = 100;

const DEBUG_LOG: &str = "1.6.1-log-jsonl-debug";
const NEW_SYNC: &str = "../routing/1.6.1-replica-sync-trace";
const OLD_SYNC: &str = "../routing/0.9.1-replica-sync";

fn play(name: &str, logs: &[&str], delays: Delays) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let nats = intake.source("nats", SourceKind::Nats, Millis(1), &mut cluster).unwrap();
    let log = intake.source("log", SourceKind::Logs, Millis(1), &mut cluster).unwrap();
    let (mut last, mut flushed) = (Millis(0), 0);
    for (at_ms, payload) in received_late(name, logs, delays) {
        if at_ms.0 / TICK_MS > flushed {
            flushed = at_ms.0 / TICK_MS;
            intake.flush(at_ms, &mut cluster);
        }
        last = at_ms;
        let source = if matches!(payload, Payload::LogLine { .. }) { log } else { nats };
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
    }
    for tick in 1..=20 {
        intake.flush(Millis(last.0 + tick * TICK_MS), &mut cluster);
    }
    cluster
}

/// What a replay gave, in requests that were dispatched.
#[derive(Default, PartialEq, Debug)]
struct Figures {
    dispatched: usize,
    reconstructed: usize,
    overlaps: usize,
    costs: usize,
    /// Called reconstructed though overlap or cost is not the router's.
    wrong: usize,
    first_tokens: usize,
    others: BTreeMap<String, usize>,
}

fn figures(cluster: &Cluster) -> Figures {
    let mut figures = Figures::default();
    let is_dispatched =
        |d: &&DecisionEntry| d.progress.outcome.is_some() && d.progress.output_tokens.is_some();
    for decided in cluster.decisions().newest_first().filter(is_dispatched) {
        figures.dispatched += 1;
        figures.first_tokens += usize::from(decided.progress.first_token_ms.is_some());
        let decision = &decided.decision;
        let chosen = decided.chosen();
        let same_overlap = chosen.map(|c| u64::from(c.overlap_blocks)) == decision.overlap_blocks;
        let same_cost = chosen
            .is_some_and(|c| decision.logit.is_some_and(|reported| (c.cost - reported).abs() <= 0.000_501));
        if decision.completeness == Completeness::Reconstructed {
            figures.reconstructed += 1;
            figures.overlaps += usize::from(same_overlap);
            figures.costs += usize::from(same_cost);
            figures.wrong += usize::from(!same_overlap || !same_cost);
        } else {
            *figures.others.entry(other(decided)).or_default() += 1;
        }
    }
    figures
}

fn other(decided: &DecisionEntry) -> String {
    decided.known_text()
}

/// Recordings that are not in the repository.
fn others_recorded() -> Vec<String> {
    let more = std::env::var("RADIXSCOPE_CAPTURES").unwrap_or_default();
    more.split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Milliseconds by which a log is read late.
const LOGS_MS: [u64; 5] = [0, 10, 50, 200, 500];
/// Milliseconds by which messages arrive late.
const MESSAGES_MS: [u64; 3] = [10, 50, 200];

fn late_logs() -> impl Iterator<Item = Delays> {
    LOGS_MS.into_iter().map(|logs_ms| Delays { messages_ms: 0, logs_ms })
}

fn late_messages() -> impl Iterator<Item = Delays> {
    MESSAGES_MS.into_iter().map(|messages_ms| Delays { messages_ms, logs_ms: 0 })
}

/// Every request is reconstructed, and as the router reported it.
fn reconstructed_is_reported(name: &str, delays: impl IntoIterator<Item = Delays>) {
    let lines = Recording::fixture(name).log("frontend");
    let dispatched = lines.filter(|line| line.contains("route request completed")).count();
    for delays in delays {
        let figures = figures(&play(name, &["frontend"], delays));
        println!("{name}, {delays:?}: {dispatched} dispatched, {figures:?}");
        assert_eq!(figures.dispatched, dispatched, "{name}, {delays:?}");
        assert_eq!(figures.wrong, 0, "{name}, {delays:?}: {figures:?}");
        assert_eq!(figures.reconstructed, dispatched, "{name}, {delays:?}: {figures:?}");
    }
}

#[test]
fn with_a_debug_log_read_late_reconstructed_is_what_the_router_reported() {
    reconstructed_is_reported(DEBUG_LOG, late_logs());
}

#[test]
fn with_messages_later_than_a_debug_log_reconstructed_is_what_the_router_reported() {
    reconstructed_is_reported(DEBUG_LOG, late_messages());
}

#[test]
fn with_a_replicas_log_read_late_reconstructed_is_what_the_router_reported() {
    reconstructed_is_reported(NEW_SYNC, late_logs());
}

#[test]
fn with_messages_later_than_a_replicas_log_reconstructed_is_what_the_router_reported() {
    reconstructed_is_reported(NEW_SYNC, late_messages());
}

#[test]
fn exhaustive_other_recordings_whatever_is_late_reconstructed_is_what_the_router_reported() {
    for name in others_recorded() {
        reconstructed_is_reported(&name, late_logs().chain(late_messages()));
    }
}

/// Candidates that messages alone gave, compared with those in the log.
#[derive(Default, Debug)]
struct CandidateComparison {
    decisions: usize,
    reconstructed: usize,
    /// Candidates that both have.
    both: usize,
    overlaps: usize,
    costs: usize,
    others: BTreeMap<String, usize>,
}

/// Decisions whose prompts come from messages only. If the log contains only the chosen worker's cost, that is compared.
fn by_messages(name: &str) -> CandidateComparison {
    let alone = play(name, &[], Delays::default());
    let logged = play(name, &["frontend"], Delays::default());
    let mut comparison = CandidateComparison::default();
    let is_by_messages = |d: &&DecisionEntry| d.is_from(DecisionSource::ActiveSequences);
    for ours in alone.decisions().newest_first().filter(is_by_messages) {
        comparison.decisions += 1;
        if ours.decision.completeness != Completeness::Reconstructed {
            *comparison.others.entry(other(ours)).or_default() += 1;
            continue;
        }
        comparison.reconstructed += 1;
        let same = |d: &&DecisionEntry| d.decision.request_id == ours.decision.request_id;
        let Some(theirs) = logged.decisions().newest_first().find(same) else { continue };
        let is_written = theirs.decision.completeness == Completeness::AllCandidates;
        for candidate in ours.decision.candidates.iter() {
            let id = |cluster: &Cluster, worker| cluster.worker(worker).unwrap().id;
            let is_same = |c: &&Candidate| id(&logged, c.worker) == id(&alone, candidate.worker);
            let reported = match theirs.decision.candidates.iter().find(is_same) {
                Some(reported) if is_written => Some((reported.overlap_blocks, reported.cost)),
                _ if candidate.worker != ours.decision.worker => None,
                _ => theirs.decision.logit.map(|cost| (candidate.overlap_blocks, cost)),
            };
            let Some((overlap_blocks, cost)) = reported else { continue };
            comparison.both += 1;
            comparison.overlaps += usize::from(candidate.overlap_blocks == overlap_blocks);
            comparison.costs += usize::from((candidate.cost - cost).abs() <= 0.000_501);
        }
    }
    comparison
}

#[test]
fn messages_alone_give_the_costs_that_the_log_tells() {
    let others = others_recorded().into_iter().filter(|name| name.contains("sync"));
    let all = std::iter::once(NEW_SYNC.to_owned()).chain(others);
    for name in all.chain([OLD_SYNC.to_owned()]) {
        let comparison = by_messages(&name);
        println!("{}: {comparison:?}", name.rsplit('/').next().unwrap());
        if name.starts_with('/') {
            continue;
        }
        assert!(
            comparison.both > 130 && comparison.reconstructed == comparison.decisions,
            "{name}: {comparison:?}"
        );
        // Two states may agree on the chosen worker and differ on another.
        assert!(
            comparison.overlaps * 100 >= comparison.both * 99
                && comparison.costs * 100 >= comparison.both * 99,
            "{name}: {comparison:?}"
        );
    }
}
