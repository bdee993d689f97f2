//! Recorded metrics against the client's own clock, simulated ones against the simulator's.

use radixscope_captures::{Recording, Scrape, Simulated};
use radixscope_insight::baseline::Figure;
use radixscope_insight::recent_window::{ConcurrencySource, FigureSource, live};
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::range::Range;
use radixscope_model::record::SourceKind;
use radixscope_sim::{Config, RequestRecord, Simulation};
use radixscope_state::cluster::Cluster;

/// A request as its client measured it; times are Unix seconds.
#[derive(serde::Deserialize)]
struct ClientRequest {
    t0: f64,
    t_first: Option<f64>,
    t1: Option<f64>,
}

fn folded(name: &str) -> (Cluster, Vec<f64>) {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("capture", SourceKind::Prometheus, Millis(1), &mut cluster).unwrap();
    let mut scrapes: Vec<Scrape> = Recording::fixture(name).scrapes().collect();
    scrapes.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut frontend = Vec::new();
    for scrape in scrapes {
        if scrape.process.starts_with("frontend") {
            frontend.push(scrape.at_s);
        }
        let at_ms = Millis(scrape.at_ms());
        let payload = Payload::Scrape { process: scrape.process.into(), text: scrape.text.into() };
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
    }
    (cluster, frontend)
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1]
}

#[test]
fn a_window_of_recorded_metrics_agrees_with_the_clients_clock() {
    for name in ["0.9.1-healthy", "1.6.1-healthy"] {
        let (cluster, at) = folded(name);
        let (first, last) = (at[0], *at.last().unwrap());
        let now = Millis((last * 1e3) as u64);
        let live = live(&cluster, now, ((last - first) * 1e3) as u64 + 1);
        let asked: Vec<ClientRequest> = Recording::fixture(name).traffic().collect();
        let within = |at: Option<f64>| at.filter(|at| (first..=last).contains(at));
        let mut ttft: Vec<f64> =
            asked.iter().filter_map(|a| Some((within(a.t_first)? - a.t0) * 1e3)).collect();
        let spent: f64 = asked.iter().filter_map(|a| Some(within(a.t1)? - a.t0)).sum();
        let ended = asked.iter().filter(|a| within(a.t1).is_some()).count() as f64;

        let of = |figure| live.window.figures.get(figure).unwrap_or_else(|| panic!("{name}: {figure:?}"));
        assert_eq!(live.sources.get(Figure::TtftP50), Some(FigureSource::Scraped), "{name}");
        // Of Dynamo's histograms a bucket is known: the client's own figure lies in it.
        for (figure, q) in [(Figure::TtftP50, 0.5), (Figure::TtftP95, 0.95)] {
            let (findings, true_ms) = (of(figure), quantile(&mut ttft, q));
            assert!(
                findings.overlaps(&Range::exact(true_ms)),
                "{name} {figure:?}: {findings:?} against {true_ms}"
            );
        }
        let seconds = last - first;
        let rate = ended / seconds;
        let requests = of(Figure::Requests).value().unwrap();
        assert!((requests / rate - 1.0).abs() < 0.15, "{name}: {requests} against {rate}");
        let (mean, _) = live.concurrency.unwrap();
        assert!((mean / (spent / seconds) - 1.0).abs() < 0.2, "{name}: {mean} against {}", spent / seconds);
        assert!(of(Figure::OutputTokens).low() > 0.0, "{name}");
        assert!(of(Figure::E2eP95).low() >= of(Figure::E2eP50).low(), "{name}");
    }
}

#[test]
fn the_mean_in_flight_is_the_simulators() {
    const START: Millis = Millis(1_767_225_600_000);
    const WINDOW_MS: u64 = 60_000;
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let source = intake.source("simulated", SourceKind::Simulator, START, &mut cluster).unwrap();
    let mut simulated = Simulated::default();
    let mut simulation = Simulation::new(Config { concurrency: 120, ..Config::default() }, START).unwrap();
    let mut looks = Vec::new();
    for second in 1..=180 {
        let now = Millis(START.0 + second * 1_000);
        simulation.run_until(now, &mut |message| {
            let payload = simulated.payload(&message);
            intake.handle(&Received { source, at_ms: message.at_ms, payload }, &mut cluster);
        });
        intake.flush(now, &mut cluster);
        if now.since(START) >= 2 * WINDOW_MS {
            looks.push((now, live(&cluster, now, WINDOW_MS).concurrency.unwrap()));
        }
    }
    // What was in flight at the last look has ended by then.
    simulation.run_until(Millis(START.0 + 360_000), &mut |_| {});
    let requests: Vec<_> = simulation.report().requests.iter().copied().collect();
    let ratio = |&(now, (mean, source)): &(Millis, (f64, ConcurrencySource))| {
        assert_eq!(source, ConcurrencySource::Durations);
        let from = Millis(now.0 - WINDOW_MS);
        let within =
            |request: &RequestRecord| request.finished_at_ms.min(now).since(request.sent_at_ms.max(from));
        mean / (requests.iter().map(within).sum::<u64>() as f64 / WINDOW_MS as f64)
    };
    let ratios: Vec<f64> = looks.iter().map(ratio).collect();
    // What began before a window or ends after it makes single windows differ, by a request's duration over the window's.
    assert!(ratios.iter().all(|ratio| (0.85..=1.15).contains(ratio)), "{ratios:?}");
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
}
