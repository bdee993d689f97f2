//! Decisions of real routers that something else than the cost decided: each names what it was. The recordings are of eight
//! conversations of four requests with three workers; six of them name their session. What the router did is what the test itself
//! finds in the log.

use std::collections::BTreeMap;

use radixscope_captures::Recording;
use radixscope_insight::counterfactual::{DecisionRange, LeftOut, Sample, Selection};
use radixscope_model::record::{Completeness, DecidedBy, DecisionSource};
use radixscope_router::RouterOverrides;
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::captures::routing::play;

/// 1.6.1 with hard affinity, replica sync, traces and the log at INFO.
const HARD: &str = "../routing/1.6.1-session-affinity";
/// 1.7 with soft affinity, replica sync, traces and the log at DEBUG.
const SOFT: &str = "../routing/1.7.0.dev20261026-session-affinity-soft";
/// 1.7 with the policy `dynamo-two-tier-cost-fn`, replica sync, traces and the log at DEBUG.
const TWO_TIER: &str = "../routing/1.7.0.dev20261026-two-tier";
/// 1.6.1 with keyed tracking hashes, replica sync, traces and the log at INFO.
const KEYED: &str = "../routing/1.6.1-keyed-hash";
/// Requests of a session behind its first, and all.
const BOUND: usize = 18;
const OF_SESSIONS: usize = 24;

fn all(cluster: &Cluster) -> impl Iterator<Item = &DecisionEntry> {
    cluster.decisions().newest_first()
}

/// How many decisions each decided. Queries after the traffic, which no message and no trace reports, are left out.
fn by(cluster: &Cluster) -> BTreeMap<Option<DecidedBy>, usize> {
    let mut by = BTreeMap::new();
    for decided in all(cluster).filter(|of| of.decision.dispatched != Some(false)) {
        *by.entry(decided.decision.decided_by).or_insert(0) += 1;
    }
    by
}

fn of(cluster: &Cluster, decided_by: Option<DecidedBy>) -> usize {
    by(cluster).get(&decided_by).copied().unwrap_or(0)
}

fn count(name: &str, text: &str) -> usize {
    Recording::fixture(name).log("frontend").filter(|line| line.contains(text)).count()
}

#[test]
fn requests_of_a_bound_session_are_decided_by_it_and_by_nothing_else() {
    for name in [HARD, SOFT] {
        let cluster = play(name, true, true);
        assert_eq!(of(&cluster, Some(DecidedBy::SessionAffinity)), BOUND, "{name}: {:?}", by(&cluster));
        let with_session = all(&cluster).filter(|of| of.decision.session.is_some()).count();
        assert_eq!(with_session, OF_SESSIONS, "{name}");
        // Each is on the worker of its session before it, which is what binds them.
        let mut workers = BTreeMap::new();
        for decided in all(&cluster).filter(|of| of.decision.session.is_some()) {
            let session = decided.decision.session.clone();
            assert_eq!(*workers.entry(session).or_insert(decided.decision.worker), decided.decision.worker);
        }
        // Costs are computed all the same, and agree with the router's where it wrote one.
        let bound = || all(&cluster).filter(|of| of.decision.decided_by == Some(DecidedBy::SessionAffinity));
        assert!(bound().all(|of| of.decision.completeness == Completeness::Reconstructed));
        let dearer = bound().filter(|of| of.cost_gap_blocks().is_ok_and(|gap| gap < 0.0)).count();
        assert!(dearer > 5, "{name}: {dearer} cost more than another worker");
        assert!(bound().all(|of| of.lost_affinity().is_none() && !of.is_tie()));
        assert!(bound().all(|of| of.why(|_| "W".into()).contains("session affinity")));
    }
    // The log says so too: hard bindings in the line of the choice, soft ones in that of the look-up.
    assert_eq!((count(HARD, "Selected pinned worker"), count(SOFT, "Session affinity hit")), (BOUND, BOUND));
}

#[test]
fn messages_and_traces_alone_show_what_was_bound_and_leave_open_what_was_not() {
    for name in [HARD, SOFT] {
        let cluster = play(name, true, false);
        let expected = BTreeMap::from([(Some(DecidedBy::SessionAffinity), BOUND)]);
        let known: BTreeMap<_, _> = by(&cluster).into_iter().filter(|(by, _)| by.is_some()).collect();
        assert_eq!(known, expected, "{name}");
        let from_messages = |of: &&DecisionEntry| of.is_from(DecisionSource::SessionAffinity);
        assert_eq!(all(&cluster).filter(from_messages).count(), BOUND);
    }
}

#[test]
fn a_log_alone_shows_that_a_choice_was_bound() {
    let cluster = play(HARD, false, true);
    assert_eq!(of(&cluster, Some(DecidedBy::Pinned)), BOUND, "{:?}", by(&cluster));
    let cluster = play(SOFT, false, true);
    assert_eq!(of(&cluster, Some(DecidedBy::SessionAffinity)), BOUND, "{:?}", by(&cluster));
}

#[test]
fn what_the_cost_did_not_decide_is_left_out_of_the_counterfactual_and_counted() {
    let cluster = play(HARD, true, true);
    let report = Sample::of(&cluster, Selection::of(DecisionRange::ALL)).evaluate(RouterOverrides::default());
    let left_out: BTreeMap<LeftOut, u64> = report.about.left_out.iter().copied().collect();
    assert_eq!(left_out.get(&LeftOut::NotByCost), Some(&(BOUND as u64)), "{left_out:?}");
}

#[test]
fn another_policy_is_named_and_its_score_is_no_cost() {
    let cluster = play(TWO_TIER, true, true);
    let by_policy = all(&cluster).filter(|of| of.decision.decided_by == Some(DecidedBy::Policy)).count();
    // One of the queries after the traffic runs nothing, and is decided all the same.
    assert_eq!(
        (by_policy, by(&cluster).len()),
        (count(TWO_TIER, "Selected worker"), 1),
        "{:?}",
        by(&cluster)
    );
    assert!(all(&cluster).all(|of| of.decision.logit.is_none() && of.lost_affinity().is_none()));
    // Without its log nothing shows it, and nothing is claimed.
    let cluster = play(TWO_TIER, true, false);
    assert!(by(&cluster).keys().all(Option::is_none), "{:?}", by(&cluster));
}

#[test]
fn keyed_hashes_are_recognised_by_the_traces_and_costs_are_those_of_the_blocks() {
    for with_log in [true, false] {
        let cluster = play(KEYED, true, with_log);
        let traced = |of: &&DecisionEntry| of.is_from(DecisionSource::RequestTrace);
        let (mut all_traced, mut same, mut cached) = (0, 0, 0);
        for decided in all(&cluster).filter(traced) {
            all_traced += 1;
            let ours = decided.chosen().map(|chosen| u64::from(chosen.overlap_blocks));
            same += usize::from(ours.is_some() && ours == decided.decision.overlap_blocks);
            cached += usize::from(ours.is_some_and(|blocks| blocks > 0));
            let costs = decided.decision.logit.zip(decided.chosen().map(|chosen| chosen.cost));
            assert!(costs.is_none_or(|(theirs, ours)| (theirs - ours).abs() <= 0.000_501));
        }
        assert!(
            all_traced >= 32 && same + 1 >= all_traced && cached > 20,
            "{same} of {all_traced}, {cached} cached"
        );
    }
}
