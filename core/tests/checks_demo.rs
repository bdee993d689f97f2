//! What the checks say of the simulated cluster: nothing at a load it can take, the crowding above its knee, and each
//! fault of load by its own name.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use radixscope_core::cluster::Cluster;
use radixscope_core::id::Millis;
use radixscope_core::ingest::Message;
use radixscope_core::listen::{Journal, Listener};
use radixscope_core::record::{Entry, Finding, LinkState, Record, Severity, SourceKind};
use radixscope_core::sim::{Config, Fault, FaultPlan, Simulation};

const START: Millis = Millis(1_767_225_600_000);

/// A live cluster is looked at for so long after a warm-up, seconds.
const LIVE_S: u64 = 120;

#[derive(Default)]
struct Watched {
    cluster: Cluster,
    /// Every finding as it was said, with the second.
    said: Vec<(u64, Finding<'static>)>,
}

impl Journal for Watched {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn accept(&mut self, entry: &Entry<'_>) {
        if let Record::Finding { finding, .. } = &entry.record {
            self.said.push((entry.at_ms.since(START) / 1_000, finding.open().unwrap()));
        }
        self.cluster.accept(entry);
    }
}

impl Watched {
    /// Codes that were of these severities at any time.
    fn codes(&self, which: impl Fn(Severity) -> bool) -> BTreeSet<&str> {
        self.said.iter().filter(|(_, f)| which(f.severity)).map(|(_, f)| f.code.as_ref()).collect()
    }

    /// Codes that were a warning or worse at any time.
    fn grave(&self) -> Vec<&str> {
        self.codes(|severity| severity >= Severity::Warning).into_iter().collect()
    }

    /// Every code and severity, with the second when it was first said.
    fn told(&self) -> String {
        let mut firsts: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for (second, finding) in &self.said {
            if seen.insert((&finding.code, finding.severity)) {
                firsts.push(format!("{} {:?} at {second} s", finding.code, finding.severity));
            }
        }
        firsts.join(", ")
    }
}

/// What the checks say of a simulation: nothing while the first seconds are history, then once a second.
fn watch(config: Config, warm_up_s: u64, seconds: u64) -> Watched {
    let mut simulation = Simulation::new(config, START).unwrap();
    let (mut listener, mut watched) = (Listener::default(), Watched::default());
    let source = listener.source("simulated", SourceKind::Simulator, START, &mut watched).unwrap();
    let becomes = |state, at_ms, watched: &mut Watched| {
        let record = Record::SourceState { source, state, detail: "".into() };
        watched.accept(&Entry { at_ms, record });
    };
    becomes(LinkState::CatchingUp, START, &mut watched);
    for second in 0..=warm_up_s + seconds {
        let until = Millis(START.0 + second * 1_000);
        simulation.run_until(until, &mut |m| {
            let message =
                Message { source, at_ms: m.at_ms, subject: m.subject, reply: None, payload: m.payload };
            listener.message(message, &mut watched);
        });
        if second == warm_up_s {
            becomes(LinkState::Live, until, &mut watched);
        }
        listener.flush(until, &mut watched);
    }
    assert!(!watched.cluster.checked().is_empty());
    watched
}

/// Looked at from the beginning.
fn from_the_beginning(fault: Fault, seconds: u64) -> Watched {
    let after_ms = if fault.is_set_up() { 0 } else { 60_000 };
    watch(Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() }, 0, seconds)
}

/// Looked at after a warm-up, as `radixscope demo` does.
fn as_the_demo(fault: Fault) -> Watched {
    let warm_up_s = if fault.shows_in_evictions() { 300 } else { 120 };
    let after_ms = if fault.ends_something() { (warm_up_s - 30) * 1_000 } else { 0 };
    let config = Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() };
    watch(config, warm_up_s, LIVE_S)
}

#[test]
fn a_healthy_cluster_at_a_load_it_can_take_raises_nothing() {
    assert_eq!(watch(Config::default(), 0, 200).grave(), [""; 0]);
}

#[test]
fn above_the_knee_requests_crowd_and_answers_are_late() {
    let watched = watch(Config { concurrency: 180, ..Config::default() }, 0, 180);
    let codes = watched.grave();
    assert!(codes.contains(&"spread") && codes.contains(&"slo_breach"), "{codes:?}");
}

#[test]
#[ignore = "prints"]
fn table() {
    for fault in Fault::ALL {
        println!("{:20} {}", fault.name(), from_the_beginning(fault, 260).told());
        println!("{:20} {}", "", as_the_demo(fault).told());
    }
    println!("{:20} {}", "healthy", watch(Config::default(), 120, LIVE_S).told());
}

#[test]
#[ignore = "prints"]
fn dbg_parents() {
    let w = from_the_beginning(Fault::UnknownParents, 200);
    for x in w.cluster.workers() {
        println!(
            "{} {} {} {:?} {:?}",
            x.unknown_parents_total, x.store_events_total, x.empty_stores_total, x.lines, x.returned_ms
        );
    }
    for s in w.cluster.sources() {
        println!("{:?}", s.missed);
    }
    println!("{:?}", w.cluster.tree().totals());
    let w = as_the_demo(Fault::MemoryFull);
    for (t, f) in &w.said {
        if f.code == "prediction_differs" {
            println!("{t} {f:#?}");
            break;
        }
    }
}
