//! Ten consecutive windows of recorded and simulated traffic: what is recommended in each, and what the model gives for
//! the setting that ran beside what was measured: `windows [RECORDING | USERS] …`.
#![expect(clippy::print_stdout, reason = "its table is what it is for")]

use std::error::Error;
use std::ops::ControlFlow;

use radixscope_captures::{Recording, Simulated};
use radixscope_dynamo::log_line;
use radixscope_insight::counterfactual::{
    Facts, Sample, Selection, Span, TEMPERATURES, Times, resimulate, weights_with,
};
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_router::RouterOverrides;
use radixscope_sim::{Config, Simulation};
use radixscope_state::cluster::Cluster;

const WINDOWS: u64 = 10;
const START: Millis = Millis(1_767_225_600_000);

struct Heard {
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
fn window(at: u64, heard: &Heard, last: u32) {
    let selection = Selection::of(Span::Last(last));
    let sample = Sample::of(&heard.cluster, selection);
    let weights = weights_with(sample.latest_weight());
    let sweep = sample.sweep(&weights, &TEMPERATURES, go);
    let advice = sweep.and_then(|sweep| {
        let settings = sweep.recommendation.as_ref()?.outcome.and_then(|at| sweep.grid.as_ref()?.outcomes[at].settings);
        Some(settings.map_or("none".to_owned(), |s| format!("{}/{}", s.prefill_factor(), s.router_temperature)))
    });
    let facts = Facts::of(&heard.cluster, selection);
    let model = resimulate(heard.intake.routing().arrivals(), &facts, selection.span, RouterOverrides::default(), go);
    let advice = advice.unwrap_or("–".to_owned());
    match model {
        Ok(model) => { println!(
            "| {at} | {} | {advice} | {} | {} | {} | {} | {:.1} |",
            model.recorded.requests,
            two(model.recorded.ttft_ms),
            two(model.measured.ttft_ms),
            two(model.recorded.e2e_ms),
            two(model.measured.e2e_ms),
            model.recorded.hit_rate.unwrap_or(f64::NAN) * 100.0,
        );
            println!("{:?}", model.calibration);
            println!("{} {:?} {}", model.calibration.fits(), model.calibration.misfits(), model.assumptions[1]);
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
    all.retain(|(at, _)| *at > 0.0);
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut heard = Heard { cluster: Cluster::default(), intake: Intake::default() };
    let Heard { cluster, intake } = &mut heard;
    let source = intake.source("recording", SourceKind::Nats, START, cluster).expect("a source");
    // The last window ends with the traffic.
    let (first, end) = (all[0].0, all[all.len() - 1].0);
    let mut windows = 1..=WINDOWS;
    let from = 0.4 * (end - first);
    let mut next = windows.next();
    let ends = |window: u64| first + from + (end - first - from) * window as f64 / WINDOWS as f64;
    for (at, payload) in all {
        while let Some(now) = next.filter(|&now| at > ends(now)) {
            window(now, &heard, 100);
            next = windows.next();
        }
        let Heard { cluster, intake } = &mut heard;
        intake.take(&Received { source, at_ms: Millis((at * 1e3) as u64), payload }, cluster);
    }
    if let Some(now) = next {
        window(now, &heard, 100);
    }
}

fn simulated(users: u32) -> Result<(), Box<dyn Error>> {
    let mut heard = Heard { cluster: Cluster::default(), intake: Intake::default() };
    let Heard { cluster, intake } = &mut heard;
    let source = intake.source("simulated", SourceKind::Simulator, START, cluster).expect("a source");
    let config = Config { concurrency: users, ..Config::default() };
    let (mut simulation, mut simulated) = (Simulation::new(config, START)?, Simulated::default());
    for now in 0..=WINDOWS {
        // Five minutes to begin with, then a window every three.
        let until = Millis(START.0 + 300_000 + now * 180_000);
        let Heard { cluster, intake } = &mut heard;
        simulation.run_until(until, &mut |m| {
            let received = Received { source, at_ms: m.at_ms, payload: simulated.payload(&m) };
            intake.take(&received, cluster);
        });
        if now > 0 {
            window(now, &heard, 1_000);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    for name in std::env::args().skip(1) {
        println!("\n{name}\n| window | requests | advice | TTFT sim | TTFT measured | E2E sim | E2E measured | hit rate sim |");
        match name.parse() {
            Ok(users) => simulated(users)?,
            Err(_) => recorded(&name),
        }
    }
    Ok(())
}
