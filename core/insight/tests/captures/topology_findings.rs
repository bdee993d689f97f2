//! What the checks say of recorded deployments of more than one aggregated pool, of other modes of routing, and of workers
//! that come and go.

use radixscope_captures::Recording;
use radixscope_model::record::{Finding, GoneWhy, Severity};

use crate::watch::{ALL_AND_CARDS, NATS, NATS_AND_FRONTEND, NATS_AND_LOG, Sources, Tape, Watched};

/// Decisions whose costs are known, and those of them in which another candidate would have been cheaper.
fn weighed(watched: &Watched) -> (usize, usize) {
    let decisions = watched.cluster.decisions().newest_first();
    let margins: Vec<f64> = decisions.filter_map(|decided| decided.margin_blocks().ok()).collect();
    (margins.len(), margins.iter().filter(|&&margin| margin < 0.0).count())
}

fn play(name: &str, sources: Sources, idle_s: u64) -> Watched {
    Tape::of_recording(&Recording::topology(name)).play(sources, 0.0, idle_s)
}

/// The last word of a finding.
fn last<'w>(watched: &'w Watched, code: &str) -> &'w Finding {
    let last = watched.said.iter().rfind(|(_, finding)| finding.code == code);
    &last.unwrap_or_else(|| panic!("no {code}: {}", watched.told())).1
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
        let said = |code: &'static str| watched.said.iter().filter(move |(_, finding)| finding.code == code);
        for (_, finding) in said("worker_gone") {
            let severity = (finding.severity, ids(&watched, finding));
            assert_eq!(severity, (Severity::Warning, killed.to_vec()), "{sources:?}");
        }
        for (_, finding) in said("worker_stopped") {
            let severity = (finding.severity, ids(&watched, finding));
            assert_eq!(severity, (Severity::Info, stopped.to_vec()), "{sources:?}");
        }
        assert_eq!(last(&watched, "errors").cause, "worker_gone", "{sources:?}: {}", watched.told());
        let others = |code: &String| !["errors", "worker_gone"].contains(&&**code);
        let grave = watched.codes(Severity::Warning).into_iter().filter(others).collect::<Vec<_>>();
        assert_eq!(grave, [""; 0], "{sources:?}: {}", watched.told());
        assert!(said("worker_gone").count() > 0 && said("worker_stopped").count() > 0, "{sources:?}");
        let totals = watched.cluster.trees().map(|(_, tree)| tree.totals());
        let all: Vec<_> = totals.map(|of| (of.nodes, of.shared, of.resident)).filter(|of| of.2 > 0).collect();
        assert_eq!(all, [(2_465, 733, 3_198)], "{sources:?}");
    }
}

#[test]
fn a_departure_counts_as_it_was_found_out_first() {
    let watched = play("1.6.1-scale", ALL_AND_CARDS, 10);
    let gone: Vec<_> = watched.cluster.workers().iter().filter_map(|worker| worker.last_gone).collect();
    assert_eq!(gone.len(), 4);
    // The router's gauges miss them ten seconds later.
    assert!(gone.iter().all(|gone| gone.why == GoneWhy::Log), "{gone:?}");
    let late: u64 = watched.cluster.workers().iter().map(|worker| worker.events_after_gone).sum();
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
#[ignore]
fn explore() {
    for name in std::env::var("RX").unwrap().split(',') {
        let tape = Tape::of_recording(&Recording::topology(name));
        for sources in [NATS, NATS_AND_LOG, NATS_AND_FRONTEND, ALL_AND_CARDS] {
            let watched = tape.play(sources, 0.0, 30);
            println!("== {name} {sources:?}\n{}", watched.told());
            for status in watched.cluster.checked() {
                println!(
                    "   {} {} {} {}",
                    status.code,
                    status.status.as_str(),
                    status.explained_by,
                    status.missing
                );
            }
            for (pool, state) in watched.cluster.pools().iter().enumerate() {
                let ix = radixscope_model::id::PoolIx(pool as u16);
                println!(
                    "   pool {} {:?} {:?}",
                    state.name(),
                    watched.cluster.role(ix),
                    watched.cluster.models_in(ix)
                );
            }
            for w in watched.cluster.workers() {
                println!(
                    "   {} last {:?} ev {:?} gone {:?} used {:?} returned {:?}",
                    w.id, w.last_sign_ms, w.last_event_ms, w.last_gone, w.engine_used_blocks, w.returned_ms
                );
            }
        }
    }
}
