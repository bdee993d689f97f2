//! Figures over hand-made scrapes and decisions, against what a person works out.

use super::*;
use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
use radixscope_model::range::{Range, TargetComparison};
use radixscope_model::record::{
    ClientMeasured, ClientResult, Counter, Decision, DecisionSource, Entry, Gauge, Histogram, HistogramKind,
    Outcome, ProcessRole, Progress, Record, Scrape, SourceKind,
};
use radixscope_state::cluster::Cluster;

const NOW: u64 = 1_800_000_000_000;

fn fold(cluster: &mut Cluster, at: u64, record: Record<'_>) {
    let seq = Seq(cluster.seq().0 + 1);
    cluster.fold(seq, &Entry { at_ms: Millis(at), record });
}

fn scrape(name: &'static str, ttft: [u64; 4], counters: Vec<(Counter, f64)>) -> Record<'static> {
    let histogram = Histogram {
        kind: HistogramKind::Ttft,
        bounds: vec![0.1, 0.47, 1.0],
        counts: ttft.to_vec(),
        sum: 1.0,
    };
    Record::Scrape(Box::new(Scrape {
        gauges: vec![(Gauge::InFlightRequests, 7.0)],
        counters,
        histograms: vec![histogram],
        ..Scrape::new(name, ProcessRole::Frontend)
    }))
}

fn decided(cluster: &mut Cluster, id: u64, at: u64, ttft_ms: u64, outcome: Outcome) {
    let new = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
    let decision = Decision { decided_ms: Some(Millis(at)), isl_tokens: Some(1_000), ..new };
    fold(cluster, at, Record::Decision(Box::new(decision)));
    let progress = Progress {
        ended_ms: Some(Millis(at + 2_000)),
        outcome: Some(outcome),
        ttft_us: Some(ttft_ms * 1_000),
        output_tokens: Some(100),
        ..Progress::default()
    };
    fold(cluster, at + 2_000, Record::Progress { decision: DecisionId(id), progress: Box::new(progress) });
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let source = Record::Source { source: SourceIx(0), name: "n".into(), kind: SourceKind::Nats };
    fold(&mut cluster, NOW, source);
    let id = Worker::new(1, 0);
    let worker = Record::new_worker(WorkerIx(0), id, "", "");
    fold(&mut cluster, NOW, worker);
    cluster
}

#[test]
fn unreported_fields_are_absent() {
    let cluster = cluster();
    for quantity in Quantity::ALL {
        assert!(latest(&cluster, quantity, Millis(NOW)).is_empty());
        assert_eq!(
            trend(&cluster, quantity, Side::Frontend, (Millis(NOW - 300_000), Millis(NOW)), Millis(NOW)),
            None
        );
        assert_eq!(burn(&cluster, quantity, 600.0), None);
    }
    assert_eq!(counts(&cluster, Millis(NOW)), Counts::default());
    let names_what_is_missing =
        |source: &str| source.contains("--prometheus") || source.starts_with("no log, trace");
    assert!(
        request_gauges(&cluster)
            .iter()
            .all(|gauge| gauge.requests.is_none() && names_what_is_missing(&gauge.source))
    );
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
    assert_eq!(Quantity::Ttft.range_text(&p50), "0 ms–100 ms");
    assert_eq!(Quantity::Ttft.range_text(&p95), "470 ms–1 s");
    assert_eq!(
        [600.0, 1_000.0, 470.0].map(|target| p95.against(target)),
        [TargetComparison::Unknown, TargetComparison::Within, TargetComparison::Above,]
    );
    assert_eq!(p50.against(600.0), TargetComparison::Within);
    assert_eq!(all[0].window, (Millis(NOW), Millis(NOW + 5_000)), "from scrape to scrape");
    let over = |target| burn(&cluster, Quantity::Ttft, target).unwrap().over;
    assert_eq!((over(470.0), over(600.0)), ((10, 10), (0, 10)));
}

/// A frontend that answered 100 requests in the last minute, 90 below 470 ms and 10 between 470 ms and 1 s.
fn straddling() -> Cluster {
    let mut cluster = cluster();
    fold(&mut cluster, NOW, scrape("a", [0; 4], vec![(Counter::RequestsOk, 0.0)]));
    fold(&mut cluster, NOW + 10_000, scrape("a", [0, 90, 10, 0], vec![(Counter::RequestsOk, 100.0)]));
    cluster
}

#[test]
fn a_bucket_on_both_sides_of_the_target_is_no_data_and_says_so() {
    let times = figure(&straddling(), Quantity::Ttft, Millis(NOW + 11_000)).unwrap();
    assert_eq!(times.standing(600.0), TargetComparison::Unknown);
    let why = times.why_unknown(Quantity::Ttft, 600.0).unwrap();
    assert_eq!(why, "470 ms–1 s, target 600 ms lies within this range: above or within is unknown");
    assert_eq!(
        (times.standing(1_000.0), times.standing(400.0)),
        (TargetComparison::Within, TargetComparison::Above)
    );
    assert_eq!(times.why_unknown(Quantity::Ttft, 400.0), None);
    let share = share_above(&straddling(), Quantity::Ttft, Millis(NOW + 11_000), 600.0, &times.source);
    assert_eq!(share, Some(Range::between(0.0, Some(0.1))));
}

#[test]
fn single_requests_are_the_figure_where_they_are_nearly_all_that_the_frontend_counts() {
    let reported = |requests: u64| {
        let mut cluster = straddling();
        for id in 1..=requests {
            decided(&mut cluster, id, NOW + 1_000, 300 + id, Outcome::Success);
        }
        figure(&cluster, Quantity::Ttft, Millis(NOW + 11_000)).unwrap()
    };
    let all = reported(100);
    assert_eq!((all.source.clone(), all.samples, all.of), (TimingSource::Measured, 100, 100));
    assert_eq!(
        (all.quantiles.unwrap()[1], all.standing(600.0)),
        (Range::exact(395.0), TargetComparison::Within)
    );
    let nearly = reported(96);
    assert_eq!((nearly.source.clone(), nearly.of), (TimingSource::Measured, 100));
    assert_eq!(
        (nearly.quantiles.unwrap()[1], nearly.share_text()),
        (Range::exact(392.0), "96 of 100 requests".into())
    );
    assert!(matches!(reported(94).source, TimingSource::Histograms { .. }));
}

#[test]
fn requests_that_ended_after_the_last_scrape_wait_for_the_next_one() {
    let mut cluster = straddling();
    for id in 1..=150 {
        let at = if id <= 100 { NOW + 1_000 } else { NOW + 9_000 };
        decided(&mut cluster, id, at, 300 + id, Outcome::Success);
    }
    let times = figure(&cluster, Quantity::Ttft, Millis(NOW + 12_000)).unwrap();
    assert_eq!((times.samples, times.of, times.window), (100, 100, (Millis(NOW), Millis(NOW + 10_000))));
}

#[test]
fn from_the_decision_to_the_first_token_is_a_lower_bound_and_never_within() {
    let mut cluster = cluster();
    for id in 1..=100 {
        let new = Decision::new(DecisionId(id), WorkerIx(0), DecisionSource::Log);
        fold(
            &mut cluster,
            NOW,
            Record::Decision(Box::new(Decision { decided_ms: Some(Millis(NOW)), ..new })),
        );
        let progress = Progress { first_token_ms: Some(Millis(NOW + 300 + id)), ..Progress::default() };
        fold(
            &mut cluster,
            NOW + 1_000,
            Record::Progress { decision: DecisionId(id), progress: Box::new(progress) },
        );
    }
    let times = figure(&cluster, Quantity::Ttft, Millis(NOW + 5_000)).unwrap();
    assert_eq!(times.source, TimingSource::Derived);
    assert_eq!(Quantity::Ttft.range_text(&times.quantiles.unwrap()[1]), "at least 395 ms");
    assert_eq!(
        (times.standing(600.0), times.standing(390.0)),
        (TargetComparison::Unknown, TargetComparison::Above)
    );
}

#[test]
fn a_range_that_takes_in_every_time_is_unknown() {
    let text = |low, high| Quantity::Ttft.range_text(&Range::between(low, high));
    assert_eq!([text(0.0, None), text(0.0, Some(100.0))], ["unknown", "0 ms–100 ms"]);
}

#[test]
fn few_samples_have_no_95th_percentile_to_judge() {
    let mut cluster = cluster();
    for id in 1..MIN_SAMPLES {
        decided(&mut cluster, id, NOW, 50, Outcome::Success);
    }
    let times = figure(&cluster, Quantity::Ttft, Millis(NOW + 5_000)).unwrap();
    assert_eq!(times.standing(600.0), TargetComparison::Unknown);
    assert_eq!(times.why_unknown(Quantity::Ttft, 600.0).unwrap(), "no data: 49 of at least 50 samples");
}

#[test]
fn requests_one_by_one_are_exact_and_come_first() {
    let mut cluster = cluster();
    for id in 1..=100 {
        decided(&mut cluster, id, NOW, id * 10, Outcome::Success);
    }
    let now = Millis(NOW + 5_000);
    let all = latest(&cluster, Quantity::Ttft, now);
    assert_eq!((all[0].source.clone(), all[0].samples), (TimingSource::Measured, 100));
    assert_eq!(all[0].quantiles, Some([500.0, 950.0, 990.0].map(Range::exact)));
    assert_eq!(Quantity::Ttft.range_text(&all[0].quantiles.unwrap()[1]), "950 ms");
    let burn = burn(&cluster, Quantity::Ttft, 600.0).unwrap();
    assert_eq!((burn.over, burn.samples), ((40, 40), 100));
    let line = trend(&cluster, Quantity::Ttft, Side::Frontend, (Millis(now.0 - 300_000), now), now).unwrap();
    assert_eq!(line.p95.last(), Some(&Some(Range::exact(950.0))));
    assert_eq!((line.p95.first(), line.step_ms), (Some(&None), TREND_STEP_MS));
    // A minute later the window is empty: known to be reported, but without a sample.
    let later = latest(&cluster, Quantity::Ttft, Millis(NOW + 62_000));
    assert_eq!((later[0].samples, later[0].quantiles), (0, None));
}

#[test]
fn histograms_come_first_where_logs_report_few() {
    let mut cluster = cluster();
    fold(&mut cluster, NOW, scrape("a", [0, 0, 0, 0], Vec::new()));
    decided(&mut cluster, 1, NOW, 50, Outcome::Success);
    fold(&mut cluster, NOW + 3_000, scrape("a", [10, 0, 0, 0], Vec::new()));
    let all = latest(&cluster, Quantity::Ttft, Millis(NOW + 5_000));
    assert!(matches!(all[0].source, TimingSource::Histograms { .. }));
    assert_eq!(all[1].samples, 1);
}

#[test]
fn an_hour_of_scrapes_gives_a_line_and_the_thinned_ones_give_it_too() {
    let mut cluster = cluster();
    // Ten samples a scrape, each 5 s: below 100 ms until half an hour ago, then below 1 s.
    let (mut fast, mut slow) = (0, 0);
    for step in 0..=800_u64 {
        let at = NOW + step * 5_000;
        if at < NOW + 2_200_000 {
            fast += 10
        } else {
            slow += 10
        }
        fold(&mut cluster, at, scrape("a", [fast, 0, slow, 0], Vec::new()));
    }
    let now = Millis(NOW + 4_000_000);
    let ago = |seconds: u64| Millis(now.0 - seconds * 1_000);
    let line = trend(&cluster, Quantity::Ttft, Side::Frontend, (ago(7_200), now), now).unwrap();
    assert_eq!((line.step_ms, line.from_ms), (15_000, Millis(ago(3_600).0.div_ceil(15_000) * 15_000)));
    let text = |(at, p95): (Millis, Option<Range>)| {
        let p95 = Quantity::Ttft.range_text(&p95.unwrap_or_else(|| panic!("nothing at {}", at.0)));
        // The windows round the change hold some of both.
        (at.0.abs_diff(NOW + 2_200_000) > 120_000).then_some((at.0 < NOW + 2_200_000, p95))
    };
    // Of the first point nothing older is retained.
    let found: std::collections::BTreeSet<_> = line.points().skip(3).filter_map(text).collect();
    let wanted = [(false, "470 ms–1 s".to_owned()), (true, "0 ms–100 ms".to_owned())];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), wanted);
    let steps = cluster.processes()[0].scraped_ms().count();
    assert!(steps <= 61, "{steps} scrapes of the last five minutes");
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
    assert_eq!(request_gauges(&cluster)[0].requests, Some(7.0));
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

/// What a client measured of a request that ended at `at`; with `None` of a request that is not known.
fn measured(cluster: &mut Cluster, decision: Option<u64>, at: u64, ttft_ms: Option<u64>) {
    let measured = ClientMeasured {
        sent_ms: Millis(at - 1_000),
        ended_ms: Millis(at),
        ttft_us: ttft_ms.map(|ms| ms * 1_000),
        itl_us: None,
        duration_us: Some(1_000_000),
        outcome: Outcome::Success,
        status: None,
        output_tokens: None,
    };
    let decision = decision.map(DecisionId);
    fold(cluster, at, Record::ClientResult(Box::new(ClientResult { decision, measured })));
}

#[test]
fn percentiles_of_clients_are_over_all_their_requests_that_ended_in_the_window() {
    let mut cluster = cluster();
    assert_eq!(client(&cluster, Quantity::Ttft, Millis(NOW), 60_000), None);
    for id in 1..=20 {
        decided(&mut cluster, id, NOW + id, 50, Outcome::Success);
        measured(&mut cluster, Some(id), NOW + 10_000 + id, Some(100 + id));
    }
    // Of a request that nothing else tells of, one without a first token, and one that ended later.
    measured(&mut cluster, None, NOW + 11_000, Some(400));
    measured(&mut cluster, None, NOW + 12_000, None);
    measured(&mut cluster, None, NOW + 70_001, Some(900));
    let at = Range::exact;
    let of = |quantity, until| client(&cluster, quantity, Millis(until), 60_000);
    let times = of(Quantity::Ttft, NOW + 60_000).expect("clients measured it");
    assert_eq!((times.samples, times.quantiles), (21, Some([at(111.0), at(120.0), at(400.0)])));
    assert_eq!(of(Quantity::EndToEnd, NOW + 60_000).map(|of| of.samples), Some(22));
    assert_eq!(of(Quantity::Tpot, NOW + 60_000), None, "no client measured it");
    let later = of(Quantity::Ttft, NOW + 200_000).expect("it was measured once");
    assert_eq!((later.samples, later.quantiles), (0, None));
}

#[test]
fn the_difference_is_explained_as_far_as_both_sides_are_known() {
    let mut cluster = cluster();
    let text = |cluster: &Cluster, id: u64| {
        ttft_difference(cluster.decisions().get(DecisionId(id)).expect("a decision"))
    };
    decided(&mut cluster, 1, NOW, 50, Outcome::Success);
    assert_eq!(text(&cluster, 1), None);
    measured(&mut cluster, Some(1), NOW + 3_000, Some(80));
    let both = "80 ms at the client, 50 ms at the frontend: 30 ms are the network, the client and what waits before the frontend";
    assert_eq!(text(&cluster, 1).as_deref(), Some(both));
    // A frontend that counts tokens which its client does not see.
    measured(&mut cluster, Some(1), NOW + 3_000, Some(40));
    assert!(
        text(&cluster, 1).is_some_and(|text| text.ends_with("the two do not measure the same first token"))
    );
    let new = Decision::new(DecisionId(2), WorkerIx(0), DecisionSource::Log);
    fold(&mut cluster, NOW, Record::Decision(Box::new(new)));
    measured(&mut cluster, Some(2), NOW + 3_000, Some(80));
    assert!(text(&cluster, 2).is_some_and(|text| text.contains("so the difference is unknown")));
}

#[test]
fn what_lies_between_client_and_frontend_is_subtracted_request_by_request() {
    let mut cluster = cluster();
    assert_eq!(ttft_before_frontend(&cluster, Millis(NOW), 60_000), None);
    for id in 1..=20 {
        decided(&mut cluster, id, NOW + id, 50, Outcome::Success);
        measured(&mut cluster, Some(id), NOW + 10_000 + id, Some(50 + id));
    }
    // Its frontend's time is not known, and a request that nothing else tells of.
    let new = Decision::new(DecisionId(21), WorkerIx(0), DecisionSource::Log);
    fold(&mut cluster, NOW, Record::Decision(Box::new(new)));
    measured(&mut cluster, Some(21), NOW + 11_000, Some(900));
    measured(&mut cluster, None, NOW + 11_000, Some(900));
    let times = ttft_before_frontend(&cluster, Millis(NOW + 60_000), 60_000).expect("known");
    let at = Range::exact;
    assert_eq!((times.samples, times.quantiles), (20, Some([at(10.0), at(19.0), at(20.0)])));
}

#[test]
fn each_side_has_a_line_of_its_own_where_it_is_measured() {
    let mut cluster = cluster();
    let line = |cluster: &Cluster, side| {
        let span = (Millis(NOW), Millis(NOW + 60_000));
        trend(cluster, Quantity::Ttft, side, span, span.1)?.p95.last().copied().flatten()
    };
    decided(&mut cluster, 1, NOW + 1_000, 50, Outcome::Success);
    assert_eq!(
        [Side::Client, Side::Frontend, Side::Engine].map(|side| line(&cluster, side)),
        [None, Some(Range::exact(50.0)), None]
    );
    measured(&mut cluster, Some(1), NOW + 4_000, Some(80));
    let engine = |at: u64, ttft: [u64; 4]| {
        let Record::Scrape(scrape) = scrape("engine", ttft, Vec::new()) else { unreachable!() };
        (at, Record::Scrape(Box::new(Scrape { role: ProcessRole::Worker, ..*scrape })))
    };
    for (at, record) in [engine(NOW + 2_000, [0; 4]), engine(NOW + 8_000, [10, 0, 0, 0])] {
        fold(&mut cluster, at, record);
    }
    assert_eq!(line(&cluster, Side::Client), Some(Range::exact(80.0)));
    assert_eq!(line(&cluster, Side::Frontend), Some(Range::exact(50.0)), "an engine is no frontend");
    assert_eq!(line(&cluster, Side::Engine), Some(Range::in_bucket(0.0, Some(100.0))));
    let engines = engines(&cluster, Quantity::Ttft, Millis(NOW + 60_000), 60_000).expect("scraped");
    assert_eq!(engines.samples, 10);
}
