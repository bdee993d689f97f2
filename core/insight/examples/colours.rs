//! What colour TTFT has, second by second, against what the simulator itself measured: `colours [--json FILE]`. Ten
//! simulated minutes at each load of the reference scenario, folded as the server folds them: received as `radixscope demo`
//! is, by scraped metrics alone, and with each request in a log (Dynamo ≥ 1.1), all of them or with some lost.
#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use std::error::Error;

use radixscope_captures::Simulated;
use radixscope_insight::latency::{Quantity, Times, TimingSource, figure};
use radixscope_intake::{Intake, Received};
use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
use radixscope_model::range::TargetComparison;
use radixscope_model::record::{Decision, DecisionSource, Entry, Outcome, Progress, Record, SourceKind};
use radixscope_sim::{Channel, Config, RequestRecord, Simulation, WireMessage};
use radixscope_state::cluster::Cluster;
use serde_json::{Value, json};

const LEVELS: [u32; 7] = [60, 80, 100, 120, 140, 160, 180];
const START: Millis = Millis(1_767_225_600_000);
/// How long each level is looked at, seconds.
const SECONDS: u64 = 600;
/// Requests in flight at the end have ended by then, seconds.
const RUN_OUT: u64 = 180;
/// The target that the table is about, and others: a boundary of a bucket, and both sides of the figures.
const TARGETS_MS: [f64; 6] = [600.0, 300.0, 400.0, 500.0, 800.0, 1_000.0];
/// From the engine's first token to the user, in microseconds: the frontend's histogram counts at the engine's.
const FIRST_TOKEN_BACK_US: u64 = 40_000;
/// Of the requests that a log lost, one in so many.
const LOST_ONE_IN: usize = 33;

/// What is received from the cluster.
#[derive(Clone, Copy, PartialEq)]
enum SourceSet {
    /// Events, log and metrics of a 0.9, as the demo.
    Demo,
    /// The metrics alone.
    Metrics,
    /// Metrics, and each request at its end, as the frontends of 1.1 and later log it.
    Requests,
    /// The same, of which some are lost.
    Most,
    /// The same, of which the slowest are lost.
    NotTheSlowest,
}

impl SourceSet {
    const ALL: [Self; 5] = [Self::Demo, Self::Metrics, Self::Requests, Self::Most, Self::NotTheSlowest];

    const fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo (0.9: events, log, metrics)",
            Self::Metrics => "metrics alone",
            Self::Requests => "metrics and each request logged (≥ 1.1)",
            Self::Most => "the same, 3 % of the lines lost",
            Self::NotTheSlowest => "the same, the slowest 3 % lost",
        }
    }
}

/// Seconds of one target.
#[derive(Clone, Copy, Default)]
struct Seconds {
    above: u64,
    within: u64,
    unknown: u64,
    /// Above or within, and the simulator measured otherwise.
    false_above: u64,
    false_within: u64,
}

/// A request as the simulator measured it.
struct Measured {
    /// First token as the frontend's histogram counts it.
    first_ms: u64,
    ended_ms: u64,
    ttft_us: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let file = args.iter().position(|arg| arg == "--json").and_then(|at| args.get(at + 1));
    let mut rows = Vec::new();
    let mut levels = Vec::new();
    println!(
        "| received | users | exact p95 ms, median | above s | within s | unknown s | false above | false within | other targets, false |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for concurrency in LEVELS {
        let requests = requests_of(concurrency)?;
        let measured: Vec<Measured> = requests.iter().map(Measured::of).collect();
        for Watcher { source_set, looks, .. } in watch(concurrency, &requests)? {
            let (all, median) = judge(&looks, &measured);
            let others: u64 = all[1..].iter().map(|seconds| seconds.false_above + seconds.false_within).sum();
            let of = all[0];
            println!(
                "| {} | {concurrency} | {median:.0} | {} | {} | {} | {} | {} | {others} |",
                source_set.name(),
                of.above,
                of.within,
                of.unknown,
                of.false_above,
                of.false_within
            );
            let what =
                |end: &str| format!("colour of TTFT, {}, {concurrency} users: {end}", source_set.name());
            let wrong = of.false_above + of.false_within + others;
            rows.push(json!({"what": what("false"), "value": wrong, "unit": "s", "budget": "0 s", "within": wrong == 0}));
            rows.push(json!({"what": what("unknown"), "value": of.unknown, "unit": "s"}));
            levels.push(json!({"received": source_set.name(), "users": concurrency, "above_s": of.above, "within_s": of.within,
                "unknown_s": of.unknown, "false_above_s": of.false_above, "false_within_s": of.false_within, "false_other_targets_s": others}));
        }
    }
    if let Some(file) = file {
        let report: Value = json!({"rows": rows, "levels": levels});
        std::fs::write(file, format!("{report:#}\n"))?;
    }
    Ok(())
}

/// Every request that ended, until all that began in time have.
fn requests_of(concurrency: u32) -> Result<Vec<RequestRecord>, Box<dyn Error>> {
    let mut simulation = Simulation::new(Config { concurrency, ..Config::default() }, START)?;
    simulation.run_until(Millis(START.0 + (SECONDS + RUN_OUT) * 1_000), &mut |_| {});
    Ok(simulation.report().requests.iter().copied().collect())
}

impl Measured {
    fn of(request: &RequestRecord) -> Self {
        let sent_us = request.sent_at_ms.0 * 1_000;
        Self {
            first_ms: (sent_us + request.ttft_us - FIRST_TOKEN_BACK_US) / 1_000,
            ended_ms: request.finished_at_ms.0,
            ttft_us: request.ttft_us,
        }
    }
}

/// One who hears the cluster in one of the ways.
struct Watcher {
    source_set: SourceSet,
    intake: Intake,
    simulated: Simulated,
    cluster: Cluster,
    source: SourceIx,
    /// Requests that ended so far.
    ended: usize,
    /// The figure, second by second.
    looks: Vec<Times>,
}

impl Watcher {
    fn new(source_set: SourceSet) -> Result<Self, Box<dyn Error>> {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let source =
            intake.source("simulated", SourceKind::Simulator, START, &mut cluster).ok_or("no source")?;
        if !matches!(source_set, SourceSet::Demo | SourceSet::Metrics) {
            let (worker, id) = (WorkerIx(0), Worker::new(1, 0));
            put(&mut cluster, START, Record::new_worker(worker, id, "dynamo", "backend"));
        }
        Ok(Self {
            source_set,
            intake,
            simulated: Simulated::default(),
            cluster,
            source,
            ended: 0,
            looks: Vec::new(),
        })
    }

    fn message(&mut self, m: &WireMessage<'_>) {
        if self.source_set == SourceSet::Demo || m.channel == Channel::Metrics {
            let payload = self.simulated.payload(m);
            let received = Received { source: self.source, at_ms: m.at_ms, payload };
            self.intake.handle(&received, &mut self.cluster);
        }
    }

    /// A second is over.
    fn look(&mut self, now: Millis, requests: &[RequestRecord], slow_us: u64) {
        match self.source_set {
            SourceSet::Demo => self.intake.flush(now, &mut self.cluster),
            SourceSet::Metrics => {}
            SourceSet::Requests | SourceSet::Most | SourceSet::NotTheSlowest => {
                while let Some(request) = requests.get(self.ended).filter(|r| r.finished_at_ms <= now) {
                    let is_lost = match self.source_set {
                        SourceSet::Most => self.ended.is_multiple_of(LOST_ONE_IN),
                        SourceSet::NotTheSlowest => request.ttft_us >= slow_us,
                        _ => false,
                    };
                    if !is_lost {
                        log(&mut self.cluster, self.ended as u64, request);
                    }
                    self.ended += 1;
                }
            }
        }
        self.looks.extend(figure(&self.cluster, Quantity::Ttft, now));
    }
}

/// Lets all watchers hear the same cluster and look at the figure once a second.
fn watch(concurrency: u32, requests: &[RequestRecord]) -> Result<Vec<Watcher>, Box<dyn Error>> {
    let mut simulation = Simulation::new(Config { concurrency, ..Config::default() }, START)?;
    let mut watchers = SourceSet::ALL.into_iter().map(Watcher::new).collect::<Result<Vec<_>, _>>()?;
    let mut slowest: Vec<u64> = requests.iter().map(|request| request.ttft_us).collect();
    slowest.sort_unstable();
    let slow_us = slowest.get(slowest.len() * (LOST_ONE_IN - 1) / LOST_ONE_IN).copied().unwrap_or(u64::MAX);
    for second in 1..=SECONDS {
        let now = Millis(START.0 + second * 1_000);
        simulation.run_until(now, &mut |m| watchers.iter_mut().for_each(|watcher| watcher.message(&m)));
        watchers.iter_mut().for_each(|watcher| watcher.look(now, requests, slow_us));
    }
    Ok(watchers)
}

fn put(cluster: &mut Cluster, at_ms: Millis, record: Record<'_>) {
    cluster.fold(Seq(cluster.seq().0 + 1), &Entry { at_ms, record });
}

/// What a frontend logs when a request has ended.
fn log(cluster: &mut Cluster, id: u64, request: &RequestRecord) {
    let (id, at) = (DecisionId(id + 1), request.finished_at_ms);
    let new = Decision::new(id, WorkerIx(0), DecisionSource::Log);
    put(cluster, at, Record::Decision(Box::new(Decision { decided_ms: Some(request.sent_at_ms), ..new })));
    let progress = Progress {
        ended_ms: Some(at),
        outcome: Some(Outcome::Success),
        ttft_us: Some(request.ttft_us),
        output_tokens: Some(request.osl_tokens.into()),
        ..Progress::default()
    };
    put(cluster, at, Record::Progress { decision: id, progress: Box::new(progress) });
}

/// Each second's colour against the exact percentile of the same requests in the same window; and the median of the latter.
fn judge(looks: &[Times], measured: &[Measured]) -> ([Seconds; TARGETS_MS.len()], f64) {
    let mut all = [Seconds::default(); TARGETS_MS.len()];
    let mut exact = Vec::new();
    for times in looks {
        let (from, until) = times.window;
        let is_by_first_token = !matches!(times.source, TimingSource::Measured);
        let mut values: Vec<u64> = measured
            .iter()
            .filter(|request| {
                let at = if is_by_first_token { request.first_ms } else { request.ended_ms };
                from.0 < at && at <= until.0
            })
            .map(|request| request.ttft_us)
            .collect();
        values.sort_unstable();
        let Some(&p95_us) = values.get((values.len() * 95).div_ceil(100).saturating_sub(1)) else { continue };
        let p95_ms = p95_us as f64 / 1_000.0;
        exact.push(p95_ms);
        for (seconds, target) in all.iter_mut().zip(TARGETS_MS) {
            match times.standing(target) {
                TargetComparison::Above => {
                    seconds.above += 1;
                    seconds.false_above += u64::from(p95_ms <= target);
                }
                TargetComparison::Within => {
                    seconds.within += 1;
                    seconds.false_within += u64::from(p95_ms > target);
                }
                TargetComparison::Unknown => seconds.unknown += 1,
            }
        }
    }
    exact.sort_by(f64::total_cmp);
    (all, exact.get(exact.len() / 2).copied().unwrap_or(f64::NAN))
}
