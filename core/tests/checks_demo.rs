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

#[derive(Default)]
struct Watched {
    cluster: Cluster,
    /// Codes that were a warning or worse at any time.
    grave: BTreeSet<String>,
}

impl Journal for Watched {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn accept(&mut self, entry: &Entry<'_>) {
        if let Record::Finding { finding, .. } = &entry.record {
            let finding: Finding<'static> = finding.open().unwrap();
            if finding.severity >= Severity::Warning {
                self.grave.insert(finding.code.to_string());
            }
        }
        self.cluster.accept(entry);
    }
}

fn grave(config: Config, seconds: u64) -> Vec<String> {
    let mut simulation = Simulation::new(config, START).unwrap();
    let (mut listener, mut watched) = (Listener::default(), Watched::default());
    let source = listener.source("simulated", SourceKind::Simulator, START, &mut watched).unwrap();
    let record = Record::SourceState { source, state: LinkState::Live, detail: "".into() };
    watched.accept(&Entry { at_ms: START, record });
    for second in 1..=seconds {
        let until = Millis(START.0 + second * 1_000);
        simulation.run_until(until, &mut |m| {
            let message =
                Message { source, at_ms: m.at_ms, subject: m.subject, reply: None, payload: m.payload };
            listener.message(message, &mut watched);
        });
        listener.flush(until, &mut watched);
    }
    assert!(!watched.cluster.checked().is_empty());
    watched.grave.into_iter().collect()
}

fn with(fault: Fault, seconds: u64) -> Vec<String> {
    let after_ms = if fault.is_set_up() { 0 } else { 60_000 };
    grave(Config { fault: Some(FaultPlan { fault, after_ms }), ..Config::default() }, seconds)
}

#[test]
fn a_healthy_cluster_at_a_load_it_can_take_raises_nothing() {
    assert_eq!(grave(Config::default(), 200), [""; 0]);
}

#[test]
fn above_the_knee_requests_crowd_and_answers_are_late() {
    let codes = grave(Config { concurrency: 180, ..Config::default() }, 180);
    assert!(codes.iter().any(|code| code == "spread"), "{codes:?}");
    assert!(codes.iter().any(|code| code == "slo_breach"), "{codes:?}");
}

#[test]
fn faults_of_load_are_called_by_their_name_and_explain_their_symptoms() {
    assert_eq!(with(Fault::HotWorker, 180), ["hot_worker"]);
    assert_eq!(with(Fault::MemoryFull, 150), ["memory_full"]);
    assert_eq!(with(Fault::Replicas, 150), ["replicas_disagree"]);
}

/// What each fault has to be called, and for how many simulated seconds it is looked at.
fn own_finding(fault: Fault) -> (&'static str, u64) {
    match fault {
        Fault::BlockSize => ("block_size_mismatch", 150),
        _ => ("?", 260),
    }
}

#[test]
#[ignore = "prints"]
fn table() {
    for fault in Fault::ALL {
        let (_, seconds) = own_finding(fault);
        let t = std::time::Instant::now();
        println!("{:24} {:?} {:.1}s", fault.name(), with(fault, seconds), t.elapsed().as_secs_f64());
    }
}
