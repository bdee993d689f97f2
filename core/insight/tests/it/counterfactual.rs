//! The counterfactual of a simulated cluster's decisions, received as by a hub.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use radixscope_insight::counterfactual::{
    DecisionRange, Facts, LeftOut, ModelError, Sample, Selection, TEMPERATURES, headline, hint, not_judged,
    present_setting, resimulate, validate_axes, weights_with,
};
use radixscope_router::{RouterMode, RouterOverrides};
use radixscope_sim::Config;
use radixscope_state::requests::Arrivals;

use crate::simulated::{Observed, observe};

/// A minute of the reference scenario.
static ALL: LazyLock<Observed> = LazyLock::new(|| observe(60_000, Config::default(), |_| true));

fn select(last: u32) -> Selection {
    Selection::of(DecisionRange::Last(last))
}

fn go(_: usize, _: usize) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn weight(overlap_score_weight: f64, router_temperature: f64) -> RouterOverrides {
    RouterOverrides {
        overlap_score_weight: Some(overlap_score_weight),
        router_temperature: Some(router_temperature),
        ..RouterOverrides::default()
    }
}

#[test]
fn at_the_recorded_setting_nothing_changes_but_for_ties() {
    let report = Sample::of(&ALL.cluster, select(10_000)).evaluate(RouterOverrides::default());
    let about = &report.about;
    assert!(about.judged > 100, "{about:?}");
    assert_eq!((about.considered, about.recorded_settings), (about.judged, 1), "{about:?}");
    assert_eq!(report.tried.certain_changes, 0, "{:?}", report.tried.changed);
    assert!(report.tried.expected_changes <= report.tried.ties as f64);
    assert_eq!(report.actual.overlap_share.map(|share| share > 0.3), Some(true));
    assert!(about.running > 0 && about.running < about.judged, "{about:?}");
    assert_eq!(not_judged(about), None);
}

#[test]
fn round_robin_spreads_requests_and_finds_less() {
    let report = Sample::of(&ALL.cluster, select(200)).evaluate(RouterOverrides::round_robin());
    assert_eq!(report.about.considered, 200);
    assert_eq!(report.settings.map(|settings| settings.router_mode), Some(RouterMode::RoundRobin));
    assert!(report.tried.overlap_share < report.actual.overlap_share);
    assert!(report.tried.prefill_saved_tokens.unwrap() < 0.0);
    let shares: Vec<f64> = report.tried.shares.iter().map(|of| of.share).collect();
    assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{shares:?}");
    assert_eq!(
        headline(&report),
        format!("With round-robin: {} of 200 decisions change worker.", report.tried.certain_changes)
    );
    assert_eq!(report.tried.changed.len() as u64, report.tried.certain_changes);
    for changed in &report.tried.changed {
        let decided = ALL.cluster.decisions().get(changed.decision).unwrap();
        assert_eq!(decided.decision.worker, changed.from);
        let cost = |worker| decided.decision.candidates.iter().find(|c| c.worker == worker).unwrap().cost;
        assert!((cost(changed.from) - changed.from_cost).abs() < 0.001, "as recorded");
        assert!((cost(changed.to) - changed.to_cost).abs() < 0.001 && changed.to_cost >= changed.from_cost);
    }
}

#[test]
fn a_changed_decision_names_what_both_workers_cost_under_the_setting_tried() {
    let trial = weight(0.25, 0.0);
    let report = Sample::of(&ALL.cluster, Selection::of(DecisionRange::ALL)).evaluate(trial);
    assert!(!report.tried.changed.is_empty());
    assert!(
        report
            .tried
            .changed
            .iter()
            .all(|changed| changed.to_cost < changed.from_cost && changed.actual_probability == 0.0)
    );
}

#[test]
fn with_temperature_the_headline_says_about() {
    let trial = weight(1.5, 0.2);
    let headline_text = headline(&Sample::of(&ALL.cluster, select(100)).evaluate(trial));
    assert!(
        headline_text.starts_with("With overlap_score_weight 1.5, router_temperature 0.2: about "),
        "{headline_text}"
    );
    assert!(headline_text.ends_with(" of 100 decisions change worker."), "{headline_text}");
}

#[test]
fn decisions_without_candidates_are_counted_and_the_missing_setting_named() {
    let observed = observe(60_000, Config::default(), |m| m.name.contains("kv-hit-rate"));
    let sample = Sample::of(&observed.cluster, select(50));
    assert!(sample.is_empty());
    let report = sample.evaluate(RouterOverrides::default());
    assert_eq!(report.about.left_out, [(LeftOut::ChosenOnly, 50)]);
    assert_eq!((report.settings, report.about.recorded, report.tried.decisions), (None, None, 0));
    assert_eq!(headline(&report), "None of 50 decisions can be judged.");
    assert!(not_judged(&report.about).unwrap().contains("50 of which only the chosen worker is known"));
    assert!(hint(&report.about).is_some_and(|hint| hint.contains("--router-replica-sync")));
    let sweep = sample.sweep(&[1.0], &[0.0], None, go).unwrap();
    assert!(sweep.grid.is_none() && sweep.recommendation.is_none());
    let played = resimulate(
        observed.intake.routing().arrivals(),
        &Facts::of(&observed.cluster, select(50)),
        DecisionRange::Last(50),
        RouterOverrides::default(),
        go,
    );
    assert_eq!(played, Err(ModelError::NoArrivals));
}

#[test]
fn of_one_worker_alone_the_imbalance_is_unknown() {
    let worker = ALL.cluster.decisions().newest_first().next().unwrap().decision.worker;
    let report = Sample::of(&ALL.cluster, Selection { worker: Some(worker), ..select(50) })
        .evaluate(RouterOverrides::default());
    assert_eq!((report.about.considered, report.actual.imbalance, report.tried.imbalance), (50, None, None));
    assert_eq!(report.actual.shares.iter().find(|of| of.worker == worker).map(|of| of.share), Some(1.0));
}

#[test]
fn a_window_in_time_takes_the_decisions_in_it() {
    let now = ALL.cluster.now_ms();
    let expected =
        ALL.cluster.decisions().newest_first().filter(|d| now.since(d.at_ms) <= 20_000).count() as u64;
    let sample = Sample::of(&ALL.cluster, Selection::of(DecisionRange::Ms(20_000)));
    assert_eq!(sample.about().considered, expected);
    assert!(expected > 10);
}

#[test]
fn a_sample_travels_and_gives_the_same_report() {
    let sample = Sample::of(&ALL.cluster, select(100));
    let travelled: Sample = postcard::from_bytes(&postcard::to_allocvec(&sample).unwrap()).unwrap();
    assert_eq!(
        sample.evaluate(RouterOverrides::round_robin()),
        travelled.evaluate(RouterOverrides::round_robin())
    );
}

#[test]
fn a_sweep_marks_the_present_setting_and_can_be_stopped() {
    let sample = Sample::of(&ALL.cluster, select(100));
    let weights = weights_with(Some(1.1));
    assert_eq!(weights.windows(2).filter(|two| two[0] >= two[1]).count(), 0);
    let report = sample.sweep(&weights, &TEMPERATURES, None, go).unwrap();
    let headline_text = present_setting(&report).unwrap();
    assert_eq!(
        headline_text,
        "Present: --kv-overlap-score-weight 1. Every decision took a lowest cost, as at temperature 0."
    );
    assert!(report.recommendation.is_some());
    assert!(sample.sweep(&weights, &TEMPERATURES, None, |_, _| ControlFlow::Break(())).is_none());
}

#[test]
fn what_dynamo_would_refuse_is_not_tried() {
    assert!(weight(1.0, 0.0).validate().is_ok());
    for bad in [weight(-1.0, 0.0), weight(f64::NAN, 0.0), weight(1.0, f64::INFINITY)] {
        assert!(bad.validate().is_err(), "{bad:?}");
    }
    assert!(validate_axes(&[], &[0.0]).is_err());
    assert!(validate_axes(&[1.0; 22], &[0.0]).is_err());
    assert!(validate_axes(&[1.0; 21], &[0.1; 16]).is_err());
    assert!(validate_axes(&[1.0; 21], &[0.1; 15]).is_ok());
}

#[test]
fn the_model_is_compared_with_itself_and_says_what_it_knows_from_where() {
    let arrivals = ALL.intake.routing().arrivals();
    let facts = Facts::of(&ALL.cluster, select(100));
    let same =
        resimulate(arrivals, &facts, DecisionRange::Last(100), RouterOverrides::default(), go).unwrap();
    assert_eq!(same.recorded, same.tried);
    assert_eq!((same.arrivals, same.recorded.requests, same.prefill_saved_tokens()), (200, 100, 0));
    let from: Vec<String> = same
        .facts
        .iter()
        .map(|fact| format!("{} {} {}", fact.name, fact.value, fact.from.as_str()))
        .collect();
    assert!(from.contains(&"workers 3 from the recorded decisions".to_owned()), "{from:?}");
    assert!(from.contains(&"KV capacity a worker 10738 from the model cards".to_owned()), "{from:?}");
    assert!(from.contains(&"router_temperature 0 assumed".to_owned()), "{from:?}");
    assert!(same.measured.ttft_ms.is_some());
    let turns =
        resimulate(arrivals, &facts, DecisionRange::Last(100), RouterOverrides::round_robin(), go).unwrap();
    assert_eq!(turns.recorded, same.recorded, "the same baseline");
    assert_eq!(turns.tried.overlap_share, None, "round-robin keeps no index");
    assert!(turns.tried.hit_rate < turns.recorded.hit_rate);
    assert!(turns.tried_router.contains("round-robin"), "{}", turns.tried_router);
}

#[test]
fn a_model_with_fewer_arrivals_or_a_credit_is_the_same_or_refused() {
    let arrivals = ALL.intake.routing().arrivals();
    let facts = Facts::of(&ALL.cluster, select(100));
    let whole =
        resimulate(arrivals, &facts, DecisionRange::Last(60), RouterOverrides::default(), go).unwrap();
    let sent =
        resimulate(&arrivals.latest(120), &facts, DecisionRange::Last(60), RouterOverrides::default(), go)
            .unwrap();
    assert_eq!(whole.recorded.requests, sent.recorded.requests);
    assert_eq!(whole, sent);
    let credit = RouterOverrides { overlap_score_credit: Some(0.5), ..RouterOverrides::default() };
    assert_eq!(resimulate(arrivals, &facts, DecisionRange::Last(60), credit, go), Err(ModelError::Credit));
    let stopped =
        resimulate(arrivals, &facts, DecisionRange::Last(60), RouterOverrides::default(), |_, _| {
            ControlFlow::Break(())
        });
    assert!(matches!(stopped, Err(ModelError::Run(_))), "{stopped:?}");
    assert_eq!(
        resimulate(&Arrivals::default(), &facts, DecisionRange::ALL, RouterOverrides::default(), go),
        Err(ModelError::NoArrivals)
    );
}

/// Four minutes of the reference scenario: the caches are as full as they will be.
static STEADY: LazyLock<Observed> = LazyLock::new(|| observe(240_000, Config::default(), |_| true));

#[test]
fn the_model_fits_what_it_was_not_fitted_to() {
    let arrivals = STEADY.intake.routing().arrivals();
    let facts = Facts::of(&STEADY.cluster, select(300));
    let report =
        resimulate(arrivals, &facts, DecisionRange::Last(300), RouterOverrides::default(), go).unwrap();
    let found = &report.calibration;
    assert!(found.fits(), "{:?} {:?}", found.misfits(), found);
    assert_eq!(report.ttft_rank.better + report.ttft_rank.worse, 0, "one setting is as good as itself");
    let turns =
        resimulate(arrivals, &facts, DecisionRange::Last(300), RouterOverrides::round_robin(), go).unwrap();
    assert!(turns.ttft_rank.worse >= 15, "{:?}", turns.ttft_rank);
    assert!(turns.hit_rate_rank.in_text().starts_with("worse in"), "{:?}", turns.hit_rate_rank);
}

#[test]
fn a_cluster_that_is_not_like_the_model_is_reported_not_to_fit() {
    // Half of the decisions find nothing where the model finds nearly all: prompts of no worker's tree.
    let facts = Facts::of(&STEADY.cluster, select(300));
    let mut strange = Arrivals::default();
    for arrival in STEADY.intake.routing().arrivals().iter() {
        strange.push(arrival.decision, arrival.at_ms, arrival.isl_tokens, &[]);
    }
    let report =
        resimulate(&strange, &facts, DecisionRange::Last(300), RouterOverrides::default(), go).unwrap();
    let misfits = report.calibration.misfits();
    assert!(
        !report.calibration.fits() && misfits.iter().any(|off| off.contains("KV hit rate −")),
        "{misfits:?}"
    );
    let few = resimulate(
        &strange,
        &Facts::of(&STEADY.cluster, select(20)),
        DecisionRange::Last(20),
        RouterOverrides::default(),
        go,
    );
    assert!(few.unwrap().calibration.misfits()[0].contains("40 are needed"));
}
