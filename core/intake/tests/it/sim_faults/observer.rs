//! Runs a cluster with a fault and keeps what is seen of it.

use std::collections::HashMap;

use radixscope_model::id::{Millis, Worker};
use radixscope_sim::{Channel, Config, Fault, FaultPlan, Simulation, Workload};
use radixscope_state::cluster::{Cluster, WorkerState};

use crate::simulated::Observer;
pub(crate) use crate::simulated::START;

/// A cluster small enough for every test, whose caches are full after a few seconds.
pub(crate) fn small(fault: Option<FaultPlan>) -> Config {
    Config {
        blocks_per_worker: 1_200,
        block_size_tokens: 16,
        concurrency: 24,
        max_batch: 16,
        max_num_tokens: 1_024,
        workload: Workload::short(),
        fault,
        ..Config::default()
    }
}

/// What was seen of a run.
pub(crate) struct Seen {
    pub(crate) simulation: Simulation,
    pub(crate) cluster: Cluster,
    /// Lines of logs, by whose log it is.
    pub(crate) lines: Vec<(String, String)>,
    /// Messages on each NATS subject.
    pub(crate) subjects: HashMap<String, usize>,
    /// Last answer to a scrape, and when, by process.
    pub(crate) scraped: HashMap<String, (u64, String)>,
}

pub(crate) fn run(config: Config, seconds: u64) -> Seen {
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut observer = Observer::new();
    let (mut lines, mut subjects, mut scraped) = (Vec::new(), HashMap::new(), HashMap::new());
    for second in 1..=seconds {
        let until = Millis(START.0 + second * 1_000);
        simulation.run_until(until, &mut |m| {
            let (name, text) = (m.name.to_owned(), || String::from_utf8(m.payload.to_vec()).expect("text"));
            match m.channel {
                Channel::Nats => *subjects.entry(name).or_default() += 1,
                Channel::Log => lines.push((name, text())),
                Channel::Metrics => _ = scraped.insert(name, (m.at_ms.since(START), text())),
                Channel::Discovery | Channel::Deletion => {}
            }
            observer.handle(&m);
        });
        observer.flush(until);
    }
    Seen { simulation, cluster: observer.cluster, lines, subjects, scraped }
}

/// A run of the small cluster with `fault` from the beginning.
pub(crate) fn with(fault: Fault, seconds: u64) -> Seen {
    run(small(Some(FaultPlan { fault, after_ms: 0 })), seconds)
}

/// A run of the small cluster with `fault` after a while.
pub(crate) fn later(fault: Fault, after_s: u64, seconds: u64) -> Seen {
    run(small(Some(FaultPlan { fault, after_ms: after_s * 1_000 })), seconds)
}

impl Seen {
    /// How many lines of logs have `words` in them.
    pub(crate) fn count_lines(&self, text: &str) -> usize {
        self.lines.iter().filter(|(_, line)| line.contains(text)).count()
    }

    /// Whether a line of the log of `who` has `text` in it.
    pub(crate) fn count_lines_of(&self, who: &str, text: &str) -> usize {
        self.lines.iter().filter(|(log, line)| log == who && line.contains(text)).count()
    }

    /// Lines that are no decision's.
    pub(crate) fn complaints(&self) -> usize {
        self.lines.iter().filter(|(_, line)| !line.contains(" INFO ")).count()
    }

    pub(crate) fn worker(&self, number: u16) -> &WorkerState {
        let id = Worker::new(self.simulation.worker_id(number), 0);
        let ix = self.cluster.worker_ix(id).expect("a known worker");
        self.cluster.worker(ix).expect("a known worker")
    }

    /// Sum over all workers.
    pub(crate) fn sum(&self, of: impl Fn(&WorkerState) -> u64) -> u64 {
        self.cluster.workers().iter().map(of).sum()
    }

    /// Blocks held by each worker, as far as its events tell.
    pub(crate) fn held(&self) -> Vec<u64> {
        let id = |number| Worker::new(self.simulation.worker_id(number), 0);
        let ix = |number| self.cluster.worker_ix(id(number)).expect("a known worker");
        (0..self.simulation.config().workers).map(|n| self.cluster.blocks(ix(n)).unwrap_or(0)).collect()
    }

    /// Share of the prompts' blocks that the router found.
    pub(crate) fn overlap(&self) -> f64 {
        let totals = self.cluster.decisions().totals();
        totals.overlap_blocks as f64 / (totals.isl_blocks as f64).max(1.0)
    }

    /// Share of the prompts' tokens that the engines found.
    pub(crate) fn engine_hits(&self) -> f64 {
        self.simulation.report().summary(START, Millis(u64::MAX)).hit_rate
    }

    /// Value of a series in the last response of a process; 0 if there is none.
    pub(crate) fn value(&self, process: &str, series: &str) -> f64 {
        let (_, text) = &self.scraped[process];
        let line = text.lines().find(|line| line.starts_with(series));
        line.map_or(0.0, |line| line.rsplit(' ').next().and_then(|v| v.parse().ok()).expect("a number"))
    }
}
