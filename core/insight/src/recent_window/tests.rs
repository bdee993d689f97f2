//! Windows of live traffic: from scrapes, from single requests, from a recording, and from nothing.

use super::*;
use radixscope_model::id::{DecisionId, Seq, Worker, WorkerIx};
use radixscope_model::record::{
    Counter, Decision, DecisionSource, Entry, Histogram, ProcessRole, Progress, Record, Scrape,
};

const NOW: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at), record });
}

fn with_worker() -> Cluster {
    let mut cluster = Cluster::default();
    let (worker, id) = (WorkerIx(0), Worker::new(7, 0));
    fold(&mut cluster, NOW, Record::new_worker(worker, id, "", ""));
    cluster
}

fn histogram(kind: HistogramKind, bounds: &'static [f64], counts: Vec<u64>, sum: f64) -> Histogram {
    Histogram { kind, bounds: bounds.to_vec(), counts, sum }
}

/// What a frontend has counted after `n` requests: 2 s each, 0.5 s to the first token, 1,000 prompt tokens of which 750
/// were cached, 100 output tokens.
fn scrape(n: u64, role: ProcessRole, process: &'static str) -> Record<'static> {
    let all = n as f64;
    Record::Scrape(Box::new(Scrape {
        gauges: vec![(Gauge::InFlightRequests, 4.0)],
        counters: vec![(Counter::RequestsOk, all), (Counter::OutputTokens, all * 100.0)],
        histograms: vec![
            histogram(HistogramKind::Ttft, &[0.4, 0.6], vec![0, n, 0], all * 0.5),
            histogram(HistogramKind::Duration, &[1.0, 3.0], vec![0, n, 0], all * 2.0),
            histogram(HistogramKind::InputTokens, &[900.0, 1_100.0], vec![0, n, 0], all * 1_000.0),
            histogram(HistogramKind::OutputTokens, &[90.0, 110.0], vec![0, n, 0], all * 100.0),
            histogram(HistogramKind::CachedTokens, &[700.0, 800.0], vec![0, n, 0], all * 750.0),
        ],
        ..Scrape::new(process, role)
    }))
}

fn decide(cluster: &mut Cluster, id: u64, at: u64, progress: Progress) {
    let decision = Decision {
        isl_tokens: Some(1_000),
        isl_blocks: Some(100),
        overlap_blocks: Some(60),
        ..Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log)
    };
    fold(cluster, at, Record::Decision(Box::new(decision)));
    fold(cluster, at, Record::Progress { decision: DecisionId(id), progress: Box::new(progress) });
}

#[test]
fn scrapes_report_every_figure_of_the_window_with_its_samples() {
    let mut cluster = with_worker();
    fold(&mut cluster, NOW, scrape(10, ProcessRole::Frontend, "frontend"));
    fold(&mut cluster, NOW + 30_000, scrape(70, ProcessRole::Frontend, "frontend"));
    let live = live(&cluster, Millis(NOW + 30_000), 60_000);
    let of = |figure| live.window.figures.get(figure).unwrap();
    assert_eq!(live.window.samples.get(Figure::TtftP50), 60, "not the ten before the first scrape");
    assert_eq!(of(Figure::TtftP50), Range::in_bucket(400.0, Some(600.0)), "no better than its bucket");
    assert_eq!(of(Figure::E2eP95), Range::in_bucket(1.0, Some(3.0)));
    let of = |figure| of(figure).value().unwrap();
    assert!((of(Figure::HitRate) - 75.0).abs() < 1e-9);
    // Over the 30 s that were scraped, not the 60 asked for.
    assert!((of(Figure::Requests) - 2.0).abs() < 1e-9 && (of(Figure::OutputTokens) - 200.0).abs() < 1e-9);
    // 2 requests a second, 2 s each.
    let (mean, how) = live.concurrency.unwrap();
    assert!((mean - 4.0).abs() < 1e-9 && how == ConcurrencySource::Durations, "{mean}");
    assert_eq!(live.sources.get(Figure::HitRate), Some(FigureSource::Scraped));
    assert_eq!(live.window.figures.get(Figure::ItlP50), None, "not reported");
}

#[test]
fn what_a_worker_measures_of_its_part_is_not_a_request() {
    let mut cluster = with_worker();
    for (at, n) in [(NOW, 10), (NOW + 30_000, 70)] {
        fold(&mut cluster, at, scrape(n, ProcessRole::Worker, "worker"));
    }
    let live = live(&cluster, Millis(NOW + 30_000), 60_000);
    assert!(Figure::ALL.iter().all(|&figure| live.window.figures.get(figure).is_none()));
    assert_eq!(live.concurrency, None);
}

#[test]
fn single_requests_are_exact_and_older_ones_are_outside() {
    let mut cluster = with_worker();
    for id in 0..20u64 {
        let at = NOW + id * 10_000;
        let progress = Progress {
            ended_ms: Some(Millis(at + 3_000)),
            ttft_us: Some(100_000 * (id + 1)),
            output_tokens: Some(50),
            ..Progress::default()
        };
        decide(&mut cluster, id, at, progress);
    }
    let live = live(&cluster, Millis(NOW + 200_000), 60_000);
    let range = |figure| live.window.figures.get(figure).unwrap();
    let of = |figure| (range(figure).value().unwrap(), live.window.samples.get(figure));
    assert_eq!(
        range(Figure::E2eP50),
        Range::between(3.0, None),
        "what a frontend does before its decision is not in it"
    );
    assert_eq!(live.sources.get(Figure::TtftP50), Some(FigureSource::Requests));
    assert_eq!(of(Figure::TtftP95), (2_000.0, 6));
    assert_eq!(of(Figure::Requests), (0.1, 6));
    assert_eq!(of(Figure::OutputTokens), (5.0, 6));
    assert!((of(Figure::HitRate).0 - 60.0).abs() < 1e-9);
    let known = lengths(&cluster, Millis(NOW + 200_000)).unwrap();
    assert_eq!(
        (known.p50, known.p95, known.samples, known.source),
        (1_050, 1_050, 20, FigureSource::Requests)
    );
}

#[test]
fn a_mean_of_durations_comes_before_what_workers_had_at_most() {
    let mut cluster = with_worker();
    fold(&mut cluster, NOW, scrape(10, ProcessRole::Frontend, "frontend"));
    let (worker, id) = (WorkerIx(1), Worker::new(8, 0));
    fold(&mut cluster, NOW, Record::new_worker(worker, id, "", ""));
    for second in 0..30 {
        for (worker, now, most) in [(WorkerIx(0), 7, 8), (WorkerIx(1), 5, 9)] {
            fold(&mut cluster, NOW + second * 1_000, Record::InFlight { worker, now, most });
        }
    }
    let now = Millis(NOW + 30_000);
    let bound = live(&cluster, now, 60_000);
    assert_eq!(bound.concurrency, Some((17.0, ConcurrencySource::WorkersMax)));
    assert_eq!(bound.window.row().concurrency, 17.0);
    fold(&mut cluster, now.0, scrape(70, ProcessRole::Frontend, "frontend"));
    // 2 requests a second, 2 s each.
    assert_eq!(live(&cluster, now, 60_000).concurrency, Some((4.0, ConcurrencySource::Durations)));
}

/// Two workers with at most 17 requests together, and a frontend whose requests take 2 s, scraped with `before` and, `ms`
/// later, with `after` requests.
fn bounded(before: u64, after: u64, ms: u64) -> RecentFigures {
    let mut cluster = with_worker();
    for at in (0..ms).step_by(1_000) {
        fold(&mut cluster, NOW + at, Record::InFlight { worker: WorkerIx(0), now: 15, most: 17 });
    }
    for (at, n) in [(NOW, before), (NOW + ms, after)] {
        fold(&mut cluster, at, scrape(n, ProcessRole::Frontend, "frontend"));
    }
    live(&cluster, Millis(NOW + ms), 60_000)
}

#[test]
fn few_ended_requests_do_not_show_how_many_are_in_flight() {
    let bound = Some((17.0, ConcurrencySource::WorkersMax));
    assert_eq!(bounded(10, 39, 30_000).concurrency, bound, "29 ended");
    assert_eq!(bounded(10, 40, 30_000).concurrency, Some((2.0, ConcurrencySource::Durations)), "30 ended");
}

#[test]
fn requests_must_be_short_beside_what_scrapes_cover() {
    let bound = Some((17.0, ConcurrencySource::WorkersMax));
    assert_eq!(bounded(10, 70, 5_000).concurrency, bound, "two and a half mean durations");
    assert_eq!(bounded(10, 70, 6_000).concurrency, Some((20.0, ConcurrencySource::Durations)), "three");
}

#[test]
fn a_frontend_that_has_just_come_counts_when_it_is_covered_too() {
    let mut cluster = with_worker();
    for (at, n) in [(NOW, 10), (NOW + 30_000, 70)] {
        fold(&mut cluster, at, scrape(n, ProcessRole::Frontend, "first"));
    }
    for (at, n) in [(NOW + 26_000, 0), (NOW + 30_000, 1)] {
        fold(&mut cluster, at, scrape(n, ProcessRole::Frontend, "second"));
    }
    let concurrency = |cluster: &Cluster, at| live(cluster, Millis(at), 60_000).concurrency.unwrap();
    assert_eq!(concurrency(&cluster, NOW + 30_000), (8.0, ConcurrencySource::Gauges), "4 on each");
    for (process, n) in [("first", 110), ("second", 12)] {
        fold(&mut cluster, NOW + 50_000, scrape(n, ProcessRole::Frontend, process));
    }
    // 100 of 2 s in 50 s and 12 in 24 s.
    assert_eq!(concurrency(&cluster, NOW + 50_000), (5.0, ConcurrencySource::Durations));
}

#[test]
fn lengths_of_histograms_are_named_so_and_nothing_is_made_up() {
    let mut cluster = with_worker();
    assert_eq!(lengths(&cluster, Millis(NOW)), None);
    for (at, n) in [(NOW, 10), (NOW + 30_000, 70)] {
        fold(&mut cluster, at, scrape(n, ProcessRole::Frontend, "frontend"));
    }
    let known = lengths(&cluster, Millis(NOW + 30_000)).unwrap();
    assert_eq!((known.source, known.samples), (FigureSource::Scraped, 60));
    assert!((990..=1_210).contains(&known.p50) && known.p95 >= known.p50, "{known:?}");
}
