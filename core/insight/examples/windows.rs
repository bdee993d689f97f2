//! Ten consecutive windows of recorded and simulated traffic: what is recommended in each, and what the model gives for
//! the setting that ran beside what was measured: `windows [RECORDING | USERS] …`.
#![expect(clippy::print_stdout, reason = "its table is what it is for")]
#![expect(clippy::expect_used, reason = "a recording that cannot be read ends it")]

use std::error::Error;
use std::ops::ControlFlow;

use radixscope_captures::{Recording, Simulated};
use radixscope_dynamo::log_line;
use radixscope_insight::counterfactual::{
    Compared, DecisionRange, Facts, Interval, Sample, Selection, TEMPERATURES, Times, resimulate,
    weights_with,
};
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_router::RouterOverrides;
use radixscope_sim::{Config, Simulation};
use radixscope_state::cluster::Cluster;

const WINDOWS: u64 = 10;
const START: Millis = Millis(1_767_225_600_000);

/// Entries of discovery at a time.
#[derive(serde::Deserialize)]
struct DiscoverySnapshot {
    t: Option<f64>,
    #[serde(default)]
    kvs: Vec<DiscoveryEntry>,
}

#[derive(serde::Deserialize)]
struct DiscoveryEntry {
    key: String,
    value: serde_json::Value,
}

struct Observed {
    cluster: Cluster,
    intake: Intake,
}

fn go(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn two(times: Option<Times>) -> String {
    times.map_or("–".to_owned(), |t| format!("{:.0}/{:.0}", t.p50_ms, t.p95_ms))
}

/// A line of the table.
fn window(at: u64, observed: &Observed, last: u32, recommended: &mut Option<(f64, f64)>) {
    let selection = Selection::of(DecisionRange::Last(last));
    let sample = Sample::of(&observed.cluster, selection);
    let weights = weights_with(sample.latest_weight());
    let sweep = sample.sweep(&weights, &TEMPERATURES, *recommended, go);
    let report = sweep.and_then(|sweep| Some((sweep.recommendation?, sweep.grid?)));
    let advice = report.map_or("–".to_owned(), |(advice, grid)| {
        let settings = advice.settings(&grid);
        *recommended = settings.map(|s| (s.prefill_factor(), s.router_temperature));
        let Some((settings, expected)) = settings.zip(advice.expected) else {
            return format!("{:?}", advice.verdict);
        };
        let Interval { value, low, high } = expected.hit_rate_gain;
        let ms = |of: Option<Interval>| {
            of.map_or("–".to_owned(), |i| format!("{:.0} ({:.0}–{:.0})", i.value, i.low, i.high))
        };
        format!(
            "{}/{} {:+.1} ({:+.1}–{:+.1}) points, TTFT {} / {}",
            settings.prefill_factor(),
            settings.router_temperature,
            value * 100.0,
            low * 100.0,
            high * 100.0,
            ms(expected.ttft_p50_ms),
            ms(expected.ttft_p95_ms),
        )
    });
    let facts = Facts::of(&observed.cluster, selection);
    let model = resimulate(
        observed.intake.routing().arrivals(),
        &facts,
        selection.span,
        RouterOverrides::default(),
        go,
    );
    match model {
        Ok(model) => {
            let found = &model.calibration;
            let both = |of: Option<Compared>| [of.map(|of| of.simulated), of.map(|of| of.measured)].map(two);
            let ([ttft, ttft_measured], [e2e, e2e_measured]) = (both(found.ttft_ms), both(found.e2e_ms));
            let percent = |share: f64| format!("{:.1}", share * 100.0);
            let hit_rate =
                found.hit_rate.map_or("–".to_owned(), |(m, s)| format!("{} | {}", percent(s), percent(m)));
            let verdict = if found.fits() { "yes".to_owned() } else { found.misfits().join("; ") };
            println!(
                "| {at} | {} | {advice} | {ttft} | {ttft_measured} | {e2e} | {e2e_measured} | {hit_rate} | {verdict} |",
                model.recorded.requests,
            );
            if std::env::var_os("FACTS").is_some() {
                println!("{:?}\n{:?}", model.facts, model.assumptions);
            }
        }
        Err(error) => println!("| {at} | {error} | {advice} |"),
    }
}

fn recorded(name: &str) {
    let recording = if name.contains('/') { Recording::at(name) } else { Recording::fixture(name) };
    let mut subjects = NatsSubjects::default();
    let mut all: Vec<(f64, Payload)> = recording
        .subscribed()
        .filter_map(|m| Some((m.at_s, subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?)))
        .collect();
    for log in recording.logs().into_iter().filter(|log| log.starts_with("frontend")) {
        let mut last = 0.0_f64;
        all.extend(recording.log(&log).map(|line| {
            let at_us = log_line::decode(line.as_bytes()).ok().flatten().and_then(|line| line.at_us);
            last = at_us.map_or(last, |us| last.max(us as f64 / 1e6));
            (last, Payload::LogLine { log: log.as_str().into(), line: line.into() })
        }));
    }
    let mut known = std::collections::HashMap::new();
    for line in recording.discovery() {
        let snapshot: DiscoverySnapshot = serde_json::from_str(&line).expect("entries of discovery");
        for DiscoveryEntry { key, value } in snapshot.kvs {
            if known.insert(key.clone(), value.to_string()).as_ref() != Some(&value.to_string()) {
                let value = Some(value.to_string().into());
                all.push((
                    snapshot.t.unwrap_or(1.0),
                    Payload::Discovery { key: key.into(), value, lease: None },
                ));
            }
        }
    }
    all.retain(|(at, _)| *at > 0.0);
    let first = all.iter().map(|(at, _)| *at).filter(|at| *at > 1.0).fold(f64::MAX, f64::min);
    all.iter_mut().for_each(|(at, _)| *at = at.max(first));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut recommended = None;
    let mut observed = Observed { cluster: Cluster::default(), intake: Intake::default() };
    let Observed { cluster, intake } = &mut observed;
    let source = intake.source("recording", SourceKind::Nats, START, cluster).expect("a source");
    // The last window ends with the traffic.
    let (first, end) = (all[0].0, all[all.len() - 1].0);
    let mut windows = 1..=WINDOWS;
    let from = 0.4 * (end - first);
    let mut next = windows.next();
    let ends = |window: u64| first + from + (end - first - from) * window as f64 / WINDOWS as f64;
    for (at, payload) in all {
        while let Some(now) = next.filter(|&now| at > ends(now)) {
            window(now, &observed, 50, &mut recommended);
            next = windows.next();
        }
        let Observed { cluster, intake } = &mut observed;
        intake.handle(&Received { source, at_ms: Millis((at * 1e3) as u64), payload }, cluster);
    }
    if let Some(now) = next {
        window(now, &observed, 50, &mut recommended);
    }
}

fn simulated(users: u32) -> Result<(), Box<dyn Error>> {
    let mut recommended = None;
    let mut observed = Observed { cluster: Cluster::default(), intake: Intake::default() };
    let Observed { cluster, intake } = &mut observed;
    let source = intake.source("simulated", SourceKind::Simulator, START, cluster).expect("a source");
    let config = Config { concurrency: users, ..Config::default() };
    let (mut simulation, mut simulated) = (Simulation::new(config, START)?, Simulated::default());
    for now in 0..=WINDOWS {
        // Five minutes to begin with, then a window every three.
        let until = Millis(START.0 + 300_000 + now * 180_000);
        let Observed { cluster, intake } = &mut observed;
        simulation.run_until(until, &mut |m| {
            let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
            intake.handle(&received, cluster);
        });
        if now > 0 {
            window(now, &observed, 1_000, &mut recommended);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        println!(
            "\n{name}\n| window | requests | advice | TTFT sim | TTFT measured | E2E sim | E2E measured | hit rate sim | measured | fits |"
        );
        match name.parse() {
            Ok(users) => simulated(users)?,
            Err(_) => recorded(&name),
        }
    }
    Ok(())
}
