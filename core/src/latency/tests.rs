//! Figures over hand-made scrapes and decisions, against what a person works out.

use super::*;
use crate::cluster::Cluster;
use crate::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
use crate::record::{
    Counter, Decision, DecisionSource, Entry, Gauge, Histogram, HistogramKind, Outcome, ProcessRole,
    Progress, Record, Scrape, SourceKind,
};

const NOW: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at), record });
}

fn scrape(name: &'static str, ttft: [u64; 4], counters: Vec<(Counter, f64)>) -> Record<'static> {
    let histogram = Histogram {
        kind: HistogramKind::Ttft,
        bounds: vec![0.1, 0.47, 1.0].into(),
        counts: ttft.to_vec().into(),
        sum: 1.0,
    };
    Record::scrape(&Scrape {
        process: name.into(),
        is_whole: true,
        role: ProcessRole::Frontend,
        instance: None,
        gauges: vec![(Gauge::InFlightRequests, 7.0)].into(),
        counters: counters.into(),
        histograms: vec![histogram],
        models: Vec::new(),
        workers: Vec::new().into(),
        ranks: Vec::new().into(),
    })
}

fn decided(cluster: &mut Cluster, id: u64, at: u64, ttft_ms: u64, outcome: Outcome) {
    let new = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
    let decision = Decision { decided_ms: Some(Millis(at)), isl_tokens: Some(1_000), ..new };
    fold(cluster, at, Record::Decision(decision));
    let progress = Progress {
        ended_ms: Some(Millis(at + 2_000)),
        outcome: Some(outcome),
        ttft_us: Some(ttft_ms * 1_000),
        output_tokens: Some(100),
        ..Progress::default()
    };
    fold(cluster, at + 2_000, Record::Progress { decision: DecisionId(id), progress });
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let source = Record::Source { source: SourceIx(0), name: "n".into(), kind: SourceKind::Nats };
    fold(&mut cluster, NOW, source);
    let id = Worker::new(1, 0);
    let worker = Record::Worker { worker: WorkerIx(0), id, namespace: "".into(), component: "".into() };
    fold(&mut cluster, NOW, worker);
    cluster
}

#[test]
fn what_nobody_tells_is_not_there() {
    let cluster = cluster();
    for quantity in Quantity::ALL {
        assert!(latest(&cluster, quantity, Millis(NOW)).is_empty());
        assert_eq!(trend(&cluster, quantity, Millis(NOW)), None);
        assert_eq!(burn(&cluster, quantity, 600.0), None);
    }
    assert_eq!(counts(&cluster, Millis(NOW)), Counts::default());
    assert!(loads(&cluster).iter().all(|load| load.requests.is_none() && load.source.contains("absent")));
}

#[test]
fn histograms_of_frontends_add_up_and_a_quantile_names_its_bucket() {
    let mut cluster = cluster();
    for name in ["a", "b"] {
        fold(&mut cluster, NOW, scrape(name, [0, 0, 0, 0], Vec::new()));
    }
    fold(&mut cluster, NOW + 5_000, scrape("a", [10, 0, 0, 0], Vec::new()));
    fold(&mut cluster, NOW + 5_000, scrape("b", [0, 0, 10, 0], Vec::new()));
    let all = latest(&cluster, Quantity::Ttft, Millis(NOW + 6_000));
    assert_eq!((all.len(), all[0].samples), (1, 20));
    let [p50, p95, _] = all[0].quantiles.unwrap();
    assert_eq!(p50.words(Quantity::Ttft), "≈ 100 ms (0 ms–100 ms)");
    assert_eq!(p95.words(Quantity::Ttft), "≈ 947 ms (470 ms–1 s)");
    assert_eq!((p95.standing(600.0), p95.is_unsure(600.0)), (Standing::Over, true));
    assert_eq!((p95.standing(1_000.0), p95.is_unsure(1_000.0)), (Standing::Close, false));
    assert_eq!(p50.standing(600.0), Standing::Inside);
    let burn = burn(&cluster, Quantity::Ttft, 470.0).unwrap();
    assert_eq!((burn.over, burn.samples), (10, 20));
}

#[test]
fn requests_one_by_one_are_exact_and_come_first() {
    let mut cluster = cluster();
    for id in 1..=100 {
        decided(&mut cluster, id, NOW, id * 10, Outcome::Success);
    }
    let now = Millis(NOW + 5_000);
    let all = latest(&cluster, Quantity::Ttft, now);
    assert_eq!((all[0].source.clone(), all[0].samples), (Source::Measured, 100));
    let values = all[0].quantiles.unwrap().map(|reading| reading.value);
    assert_eq!(values, [500.0, 950.0, 990.0]);
    assert_eq!(all[0].quantiles.unwrap()[1].words(Quantity::Ttft), "950 ms");
    let burn = burn(&cluster, Quantity::Ttft, 600.0).unwrap();
    assert_eq!((burn.over, burn.samples, burn.is_exact), (40, 100, true));
    let line = trend(&cluster, Quantity::Ttft, now).unwrap();
    assert_eq!(line.p95.last(), Some(&Some(950.0)));
    assert_eq!(line.p95.first(), Some(&None));
    // A minute later the window is empty: known to be told, but without a sample.
    let later = latest(&cluster, Quantity::Ttft, Millis(NOW + 62_000));
    assert_eq!((later[0].samples, later[0].quantiles), (0, None));
}

#[test]
fn histograms_come_first_where_logs_tell_of_few() {
    let mut cluster = cluster();
    fold(&mut cluster, NOW, scrape("a", [0, 0, 0, 0], Vec::new()));
    decided(&mut cluster, 1, NOW, 50, Outcome::Success);
    fold(&mut cluster, NOW + 3_000, scrape("a", [10, 0, 0, 0], Vec::new()));
    let all = latest(&cluster, Quantity::Ttft, Millis(NOW + 5_000));
    assert!(matches!(all[0].source, Source::Histograms { .. }));
    assert_eq!(all[1].samples, 1);
}

#[test]
fn rates_are_over_the_time_that_was_scraped() {
    let mut cluster = cluster();
    let counters = |ok: f64, tokens: f64| vec![(Counter::RequestsOk, ok), (Counter::OutputTokens, tokens)];
    fold(&mut cluster, NOW, scrape("a", [0; 4], counters(100.0, 1_000.0)));
    fold(&mut cluster, NOW + 5_000, scrape("a", [0; 4], counters(110.0, 2_000.0)));
    fold(&mut cluster, NOW + 10_000, scrape("a", [0; 4], counters(120.0, 3_000.0)));
    let counts = counts(&cluster, Millis(NOW + 11_000));
    let throughput = counts.throughput.unwrap();
    assert_eq!((throughput.requests_per_s, throughput.output_tokens_per_s), (2.0, Some(200.0)));
    assert_eq!(counts.errors, Some(Errors { failed: 0, of: 20 }));
    assert_eq!(loads(&cluster)[0].requests, Some(7.0));
}

#[test]
fn without_metrics_requests_that_ended_are_counted() {
    let mut cluster = cluster();
    for id in 1..=10 {
        let outcome = if id == 1 { Outcome::Failed } else { Outcome::Success };
        decided(&mut cluster, id, NOW, 50, outcome);
    }
    let counts = counts(&cluster, Millis(NOW + 10_000));
    assert_eq!(counts.errors, Some(Errors { failed: 1, of: 10 }));
    assert_eq!(counts.throughput.unwrap().output_tokens_per_s, Some(100.0));
}
