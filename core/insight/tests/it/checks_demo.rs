//! What the checks say of the simulated cluster: nothing at a load it can take, the crowding above its knee, and each
//! fault of load by its own name.

use std::collections::BTreeSet;

use radixscope_captures::{Played, contradictions, is_incomplete, play};
use radixscope_insight::check::Checks;
use radixscope_model::id::Millis;
use radixscope_model::record::{Entry, Finding, Phase, Record, Severity};
use radixscope_sim::{Config, Fault, FaultPlan};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;

use crate::simulated::START;

/// A live cluster is looked at for so long after a warm-up, seconds.
const LIVE_S: u64 = 120;

#[derive(Default)]
struct Watched {
    cluster: Cluster,
    /// Every finding and the second it was raised at.
    findings: Vec<(u64, Finding)>,
}

impl RecordSink for Watched {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        if let Record::Finding(finding) = &entry.record {
            self.findings.push((entry.at_ms.since(START) / 1_000, Finding::clone(finding)));
        }
        self.cluster.append(entry);
    }
}

impl Watched {
    /// Codes that were of these severities at any time.
    fn codes(&self, which: impl Fn(Severity) -> bool) -> BTreeSet<&str> {
        self.findings.iter().filter(|(_, f)| which(f.severity)).map(|(_, f)| f.code.as_ref()).collect()
    }

    /// Codes that were a warning or worse at any time, and did not name another finding as their cause.
    fn grave(&self) -> Vec<&str> {
        let is_grave = |f: &Finding| f.severity >= Severity::Warning && f.cause.is_empty();
        let codes: BTreeSet<&str> =
            self.findings.iter().filter(|(_, f)| is_grave(f)).map(|(_, f)| f.code.as_ref()).collect();
        codes.into_iter().collect()
    }

    /// Every code and severity, with the second of its first finding.
    fn summary(&self) -> String {
        let mut firsts: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for (second, finding) in &self.findings {
            if seen.insert((&finding.code, finding.severity, &finding.cause)) {
                let (code, severity, cause) = (&finding.code, finding.severity, &finding.cause);
                firsts.push(format!("{code} {severity:?} by {cause:?} at {second} s"));
            }
        }
        firsts.join(", ")
    }
}

/// What the checks say of a simulation: nothing while the first seconds are history, then once a second.
fn watch(config: Config, warm_up_s: u64, seconds: u64) -> Watched {
    let (mut checks, mut watched) = (Checks::default(), Watched::default());
    let played = Played { start: START, warm_up_s, live_s: seconds };
    let second = |now: Millis, watched: &mut Watched| {
        checks.run(now, watched);
        let active: Vec<&Finding> =
            watched.cluster.findings().iter().filter(|finding| finding.phase != Phase::Cleared).collect();
        let contradictions = contradictions(active.iter().copied());
        assert!(contradictions.is_empty(), "{contradictions:?} at {now}");
        for finding in active {
            assert!(finding.fix.iter().all(|fix| !is_incomplete(fix)), "{finding:#?}");
            let is_symptom = !finding.cause.is_empty();
            assert_eq!(
                finding.fix.is_empty(),
                is_symptom,
                "a cause has remedies, a symptom none: {finding:#?}"
            );
        }
        true
    };
    play(config, played, &mut watched, second).unwrap();
    assert!(!watched.cluster.checked().is_empty());
    watched
}

/// Looked at from the beginning.
fn from_the_beginning(fault: Fault, seconds: u64) -> Watched {
    let after_ms = match fault {
        // What is usual has to be known first.
        Fault::Slow => 150_000,
        _ if fault.is_set_up() => 0,
        _ => 60_000,
    };
    watch(Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() }, 0, seconds)
}

/// Looked at after a warm-up, as `radixscope demo` does.
fn as_the_demo(fault: Fault) -> Watched {
    let warm_up_s = if fault.shows_in_evictions() { 300 } else { 120 };
    let after_ms = match fault {
        Fault::Slow => warm_up_s * 1_000,
        _ if fault.ends_something() => (warm_up_s - 30) * 1_000,
        _ => 0,
    };
    let config = Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() };
    watch(config, warm_up_s, LIVE_S)
}

#[test]
fn a_healthy_cluster_at_a_load_it_can_take_raises_nothing() {
    for (warm_up_s, seconds) in [(0, 200), (120, LIVE_S)] {
        assert_eq!(watch(Config::default(), warm_up_s, seconds).summary(), "");
    }
}

#[test]
fn above_the_knee_requests_crowd_and_answers_are_late() {
    // Whether one worker is full while another one has room is chance: with this seed it is, once the caches are warm.
    let watched = watch(Config { concurrency: 180, seed: 5, ..Config::default() }, 0, 180);
    assert!(watched.grave().contains(&"in_flight_imbalance"), "{}", watched.summary());
    assert!(watched.codes(|_| true).contains("slo_breach"), "{}", watched.summary());
}

/// What a fault has to be called, and for how many seconds from the beginning on it is looked at.
fn own_finding(fault: Fault) -> (&'static str, u64) {
    match fault {
        Fault::BlockSize | Fault::BlockSizeOversize | Fault::BlockSizePartial | Fault::BlockSizeCard => {
            ("block_size_mismatch", 100)
        }
        Fault::NoEvents | Fault::NoEventsOne => ("no_events", 200),
        Fault::HotWorker => ("hot_worker", 180),
        Fault::StarvedWorker => ("starved_worker", 200),
        Fault::Gap => ("event_gaps", 100),
        Fault::KillWorker => ("worker_gone", 150),
        Fault::GhostWorker => ("ghost_worker", 150),
        Fault::RouterRestart => ("cold_tree", 180),
        Fault::HashSeed => ("engine_hashes_differ", 100),
        Fault::MixedPlanes => ("event_planes_mixed", 150),
        Fault::UnknownParents => ("unknown_parents", 260),
        Fault::UnknownRemovals => ("unknown_removals", 150),
        Fault::Churn => ("churn", 220),
        Fault::MemoryFull => ("memory_full", 180),
        Fault::Slow => ("prefill_slower", 250),
        Fault::Replicas => ("replicas_disagree", 120),
        Fault::Approximate => ("approximate_mode", 200),
    }
}

/// What may show beside it because it follows from the fault, and says so if it is a warning.
fn symptoms(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::BlockSizeOversize | Fault::Churn | Fault::Slow => &["slo_breach"],
        Fault::HotWorker => &["in_flight_imbalance", "queueing", "slo_breach"],
        Fault::StarvedWorker => &["in_flight_imbalance", "cascade", "slo_breach"],
        Fault::KillWorker => &["errors", "queueing", "slo_breach"],
        Fault::GhostWorker | Fault::Gap => &["tree_partial"],
        Fault::RouterRestart => &["router_restarted"],
        Fault::MixedPlanes => &["in_flight_imbalance"],
        Fault::MemoryFull => &["queueing", "slo_breach", "churn"],
        _ => &[],
    }
}

fn assert_own(fault: Fault, watched: &Watched, way: &str) {
    let (own, _) = own_finding(fault);
    let what = format!("{} {way}: {}", fault.name(), watched.summary());
    // A deployment may want to run without events: that is information, not a warning.
    let grave: &[&str] = if fault == Fault::Approximate { &[] } else { &[own] };
    // A tree that lacks blocks is a fault of what is seen, with a finding of its own.
    let mut found = watched.grave();
    found.retain(|code| *code != "tree_partial" || !symptoms(fault).contains(code));
    assert_eq!(found, grave, "{what}");
    assert!(watched.codes(|_| true).contains(own), "{what}");
    let beside = watched.codes(|_| true);
    assert!(beside.iter().all(|code| *code == own || symptoms(fault).contains(code)), "{what}");
}

/// A fault raises its own finding and no other, from whenever on it is looked at.
fn raises_its_own(fault: Fault) {
    let (_, seconds) = own_finding(fault);
    assert_own(fault, &from_the_beginning(fault, seconds), "from the beginning");
    assert_own(fault, &as_the_demo(fault), "as the demo");
}

/// A test for each fault, so that they run side by side.
macro_rules! every_fault_raises_its_own_finding_and_no_other {
    ($($name:ident: $fault:ident,)*) => {
        mod every_fault_raises_its_own_finding_and_no_other {
            use super::{Fault, raises_its_own};

            $(
                #[test]
                fn $name() {
                    raises_its_own(Fault::$fault);
                }
            )*

            #[test]
            fn none_is_left_out() {
                assert_eq!([$(Fault::$fault),*], Fault::ALL);
            }
        }
    };
}

every_fault_raises_its_own_finding_and_no_other! {
    block_size: BlockSize,
    block_size_oversize: BlockSizeOversize,
    block_size_partial: BlockSizePartial,
    block_size_card: BlockSizeCard,
    no_events: NoEvents,
    no_events_one: NoEventsOne,
    hot_worker: HotWorker,
    starved_worker: StarvedWorker,
    gap: Gap,
    kill_worker: KillWorker,
    ghost_worker: GhostWorker,
    router_restart: RouterRestart,
    hash_seed: HashSeed,
    mixed_planes: MixedPlanes,
    unknown_parents: UnknownParents,
    unknown_removals: UnknownRemovals,
    churn: Churn,
    memory_full: MemoryFull,
    slow: Slow,
    replicas: Replicas,
    approximate: Approximate,
}
