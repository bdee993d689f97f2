//! Re-simulation of the simulated cluster's requests, received as by a hub: from `active_sequences_events`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use proptest::prelude::*;

use radixscope_dynamo::active_sequence::{self, SequenceChange};
use radixscope_dynamo::envelope;
use radixscope_model::id::Millis;
use radixscope_router::{Formula, RouterSettings};
use radixscope_sim::resimulation::{
    Arrival, Progress, ResimulationError, ResimulationSettings, SimulatedOutcome, run,
};
use radixscope_sim::{Config, ConfigError, Simulation};

use crate::observed::START;

const KV: RouterSettings = RouterSettings::new(Formula::A);
/// The recording begins when the users are there, and the first of it only warms the caches.
const FROM: Millis = Millis(START.0 + 30_000);
const WARM: Millis = Millis(START.0 + 180_000);
const UNTIL: Millis = Millis(START.0 + 600_000);

struct Recorded {
    at_ms: Millis,
    worker: u64,
    isl_tokens: u32,
    osl_tokens: Option<u32>,
    overlap_blocks: u64,
    blocks: Vec<u64>,
}

/// What a replica of the router hears of the reference scenario.
fn record(router: RouterSettings) -> (Vec<Recorded>, Simulation) {
    let config = Config { router, ..Config::default() };
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut recorded: Vec<Recorded> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut freed = Vec::new();
    simulation.run_until(UNTIL, &mut |m| {
        if !m.name.ends_with(".active_sequences_events") {
            return;
        }
        let body = envelope::open(m.payload).expect("an envelope");
        let (payload, format) = body.payload();
        let mut steps = Vec::new();
        active_sequence::decode(payload, format, &mut steps).expect("understood");
        for report in steps {
            match report.step {
                SequenceChange::Added(request) => {
                    places.insert(report.request_id.into_owned(), recorded.len());
                    recorded.push(Recorded {
                        at_ms: m.at_ms,
                        worker: report.worker.id.0,
                        isl_tokens: request.isl.expect("in the message") as u32,
                        osl_tokens: None,
                        overlap_blocks: request.overlap.expect("in the message"),
                        blocks: request.token_sequence.expect("in the message"),
                    });
                }
                SequenceChange::PrefillCompleted => {}
                SequenceChange::Freed => freed.push(places[&*report.request_id]),
            }
        }
    });
    // Requests are reported in the order in which they end.
    for (place, request) in freed.into_iter().zip(&simulation.report().requests) {
        assert_eq!(recorded[place].isl_tokens, request.isl_tokens);
        recorded[place].osl_tokens = Some(request.osl_tokens);
    }
    recorded.retain(|r| r.at_ms >= FROM);
    (recorded, simulation)
}

static RECORDED: LazyLock<(Vec<Recorded>, Simulation)> = LazyLock::new(|| record(KV));

fn arrivals(recorded: &[Recorded]) -> impl Iterator<Item = Arrival<'_>> {
    recorded.iter().map(|r| Arrival {
        at_ms: r.at_ms,
        isl_tokens: r.isl_tokens,
        osl_tokens: r.osl_tokens,
        blocks: &r.blocks,
    })
}

fn settings(router: RouterSettings) -> ResimulationSettings {
    let recorded = &RECORDED.0;
    let warm = recorded.iter().filter(|r| r.at_ms < WARM).count();
    let warm_up_percent = (warm * 100 / recorded.len()) as u32;
    ResimulationSettings {
        router,
        warm_up_percent,
        mean_output_tokens: 830,
        ..ResimulationSettings::default()
    }
}

fn outcome(settings: &ResimulationSettings) -> SimulatedOutcome {
    run(arrivals(&RECORDED.0), settings, &mut |_| ControlFlow::Continue(())).expect("an outcome")
}

#[test]
fn the_recorded_settings_reproduce_what_was_recorded() {
    let (recorded, simulation) = &*RECORDED;
    let settings = settings(KV);
    let outcome = outcome(&settings);
    let warm_up = recorded.len() * settings.warm_up_percent as usize / 100;
    let counted = &recorded[warm_up..];
    assert_eq!((outcome.requests, outcome.warm_up_requests), (counted.len() as u64, warm_up as u64));
    assert_eq!(outcome.refused_requests, 0);
    let (overlap, blocks) = counted.iter().fold((0, 0), |(overlap, blocks), r| {
        (overlap + r.overlap_blocks, blocks + u64::from(r.isl_tokens.div_ceil(32)))
    });
    let was = simulation.report().summary(counted[0].at_ms, UNTIL);
    let overlap_was = overlap as f64 / blocks as f64;
    let (overlap_is, hits_are) = (outcome.overlap_share.expect("known"), outcome.hit_rate.expect("known"));
    println!(
        "overlap {overlap_was:.4} recorded, {overlap_is:.4} again; hits {:.4}, {hits_are:.4}",
        was.hit_rate
    );
    assert!((overlap_is - overlap_was).abs() < 0.02);
    assert!((hits_are - was.hit_rate).abs() < 0.02);
    for worker in 0..3 {
        let id = simulation.worker_id(worker);
        let here = counted.iter().filter(|r| r.worker == id).count();
        let (share_was, share_is) =
            (here as f64 / counted.len() as f64, outcome.share(worker).expect("known"));
        println!("share of worker {worker}: {share_was:.4} recorded, {share_is:.4} again");
        assert!((share_is - share_was).abs() < 0.03);
    }
    let (ttft, e2e) = (outcome.ttft_ms.expect("known"), outcome.e2e_ms.expect("known"));
    let spread = outcome.spread.expect("known").requests;
    println!(
        "TTFT p50 {:.0}, {:.0} ms, p95 {:.0}, {:.0} ms; E2E p50 {:.0}, {:.0} ms; spread p95 {}, {}",
        was.ttft_ms.p50,
        ttft.p50,
        was.ttft_ms.p95,
        ttft.p95,
        was.e2e_ms.p50,
        e2e.p50,
        was.spread.p95,
        spread.p95
    );
    assert!((ttft.p50 / was.ttft_ms.p50 - 1.0).abs() < 0.1);
    assert!((e2e.p50 / was.e2e_ms.p50 - 1.0).abs() < 0.1);
    let computed = outcome.prefill_tokens as f64 / outcome.prompt_tokens as f64;
    assert!((computed + hits_are - 1.0).abs() < 0.001, "what is not cached is computed");
}

#[test]
fn round_robin_spreads_evenly_and_finds_less_in_the_caches() {
    let (kv, turns) = (outcome(&settings(KV)), outcome(&settings(RouterSettings::round_robin())));
    let of = |outcome: &SimulatedOutcome| -> Vec<u64> { outcome.requests_by_worker.clone() };
    let counts = of(&turns);
    assert!(counts.iter().max().expect("workers") - counts.iter().min().expect("workers") <= 1);
    assert_eq!(turns.overlap_share, None, "no index, so nothing is known of overlap");
    assert!(turns.hit_rate < kv.hit_rate && turns.prefill_tokens > kv.prefill_tokens);
    let spread = |outcome: &SimulatedOutcome| outcome.spread.expect("sampled").requests.p95;
    assert!(spread(&turns) < spread(&kv));
    assert!(turns.choices.windows(2).all(|two| two[0] != two[1]), "and never the same worker twice");
}

#[test]
fn weight_0_goes_by_load_alone() {
    let by_load = RouterSettings { overlap_score_weight: 0.0, ..RouterSettings::new(Formula::A) };
    let (kv, load) = (outcome(&settings(KV)), outcome(&settings(by_load)));
    assert_eq!(load.overlap_share, None);
    assert!(load.hit_rate < kv.hit_rate);
    let strangers: Vec<Recorded> = (0..60)
        .map(|n| Recorded {
            at_ms: Millis(START.0 + n * 100),
            worker: 0,
            isl_tokens: 640,
            osl_tokens: Some(2_000),
            overlap_blocks: 0,
            // All begin alike: a router that sees caches would keep them together.
            blocks: (0..20).map(|at| if at < 15 { at } else { n * 100 + at }).collect(),
        })
        .collect();
    let settings = ResimulationSettings {
        router: by_load,
        workers: 6,
        warm_up_percent: 0,
        ..ResimulationSettings::default()
    };
    let outcome = run(arrivals(&strangers), &settings, &mut |_| ControlFlow::Continue(())).expect("runs");
    // What differs is the prompts already active there: a worker with the common beginning needs 15 blocks less.
    let spread = outcome.spread.expect("sampled").requests;
    assert!(spread.max <= 12.0, "no worker is far ahead: {spread:?}");
    assert!(outcome.requests_by_worker.iter().all(|&n| n > 0));
}

#[test]
fn fewer_workers_make_requests_wait() {
    let two = outcome(&ResimulationSettings { workers: 2, ..settings(KV) });
    let three = outcome(&settings(KV));
    let queued = |outcome: &SimulatedOutcome| outcome.queued_ms.expect("counted").mean;
    assert!(queued(&two) > 1_000.0 + queued(&three));
    assert_eq!(two.requests, three.requests, "an open loop sends all the same");
}

#[test]
fn the_same_recording_and_seed_give_the_same_outcome() {
    let hot = RouterSettings { router_temperature: 0.5, ..RouterSettings::new(Formula::A) };
    let first = outcome(&settings(hot));
    assert_eq!(first, outcome(&settings(hot)));
    assert_ne!(first.choices, outcome(&ResimulationSettings { seed: 2, ..settings(hot) }).choices);
}

#[test]
fn a_caller_gets_the_progress_and_can_cancel() {
    let mut reports: Vec<Progress> = Vec::new();
    let mut listen = |progress| {
        reports.push(progress);
        if reports.len() == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let broken_off = run(arrivals(&RECORDED.0), &settings(KV), &mut listen);
    assert_eq!(broken_off, Err(ResimulationError::Cancelled));
    assert_eq!(reports.len(), 5);
    assert!(reports.is_sorted_by_key(|p| (p.arrived, p.done)) && reports[4].done > 0);
    assert!(reports.iter().all(|p| p.done <= p.arrived && p.arrivals == RECORDED.0.len()));
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    let mut go = |_| ControlFlow::Continue(());
    let one = |at, isl_tokens| Arrival { at_ms: Millis(at), isl_tokens, osl_tokens: None, blocks: &[] };
    let refused =
        |settings: ResimulationSettings| run([one(0, 9)], &settings, &mut |_| ControlFlow::Continue(()));
    let error = refused(ResimulationSettings { workers: 0, ..ResimulationSettings::default() });
    assert_eq!(error, Err(ResimulationError::Settings(ConfigError::Workers(0))));
    let error = refused(ResimulationSettings { warm_up_percent: 100, ..ResimulationSettings::default() })
        .expect_err("refused");
    assert_eq!(error.to_string(), "warm_up_percent is 100; it must be between 0 and 99");
    assert_eq!(run([], &ResimulationSettings::default(), &mut go), Err(ResimulationError::Arrivals(0)));
    let backwards = run([one(5, 9), one(4, 9)], &ResimulationSettings::default(), &mut go);
    assert_eq!(backwards, Err(ResimulationError::Order(1)));
    let far = run([one(0, 9), one(u64::MAX, 9)], &ResimulationSettings::default(), &mut go);
    assert_eq!(far, Err(ResimulationError::Span(u64::MAX)));
}

#[test]
fn requests_no_worker_can_run_are_counted_and_block_no_others() {
    let one = |at, isl_tokens| Arrival { at_ms: Millis(at), isl_tokens, osl_tokens: Some(3), blocks: &[] };
    let all = [one(0, 0), one(0, u32::MAX), one(1, 4_000_000), one(1, 100)];
    let settings = ResimulationSettings { warm_up_percent: 0, ..ResimulationSettings::default() };
    let outcome = run(all, &settings, &mut |_| ControlFlow::Continue(())).expect("an outcome");
    assert_eq!((outcome.requests, outcome.refused_requests), (1, 3));
    assert_eq!(outcome.choices[..3], [None; 3]);
    assert_eq!((outcome.prompt_tokens, outcome.prefill_tokens), (100, 100));
    assert_eq!(outcome.hit_rate, Some(0.0));
}

#[test]
fn the_assumptions_carry_the_numbers_of_the_settings() {
    let settings = ResimulationSettings {
        blocks_per_worker: 777,
        mean_output_tokens: 333,
        ..ResimulationSettings::default()
    };
    let report = settings.assumptions();
    for text in ["open loop", "14.7 ms", "777 blocks of 32", "333 tokens", "first 20 %", "temperature 0."] {
        assert!(report.iter().any(|sentence| sentence.contains(text)), "{text} in {report:#?}");
    }
    assert!(report.iter().all(|sentence| sentence.ends_with('.')));
}

proptest! {
    /// Hashes that repeat, contradict each other or lack, lengths that do not fit them, bursts, tiny caches.
    #[test]
    fn any_recording_is_run_to_its_end_and_every_request_accounted_for(
        recorded in prop::collection::vec(
            (0_u64..500, 0_u32..400, prop::option::of(0_u32..200), prop::collection::vec(0_u64..12, 0..20)),
            1..60,
        ),
        workers in prop::sample::select(vec![1_u16, 3, 70]),
        blocks_per_worker in 8_u32..60,
        max_batch in 1_u32..8,
        weight in prop::sample::select(vec![None, Some(0.0), Some(1.0)]),
    ) {
        let mut at_ms = 0;
        let arrivals: Vec<Arrival<'_>> = recorded.iter().map(|(gap_ms, isl_tokens, osl_tokens, blocks)| {
            at_ms += gap_ms;
            Arrival { at_ms: Millis(at_ms), isl_tokens: *isl_tokens, osl_tokens: *osl_tokens, blocks }
        }).collect();
        let router = weight.map_or(RouterSettings::round_robin(), |overlap_score_weight| {
            RouterSettings { overlap_score_weight, ..RouterSettings::new(Formula::A) }
        });
        let settings = ResimulationSettings {
            workers, blocks_per_worker, max_batch, router,
            block_size_tokens: 16, max_num_tokens: 64, mean_output_tokens: 40,
            ..ResimulationSettings::default()
        };
        let outcome = run(arrivals, &settings, &mut |_| ControlFlow::Continue(())).expect("an outcome");
        let served = outcome.requests + outcome.warm_up_requests;
        prop_assert_eq!(served + outcome.refused_requests, recorded.len() as u64);
        prop_assert_eq!(outcome.choices.iter().flatten().count() as u64, served);
        prop_assert_eq!(outcome.requests_by_worker.iter().sum::<u64>(), outcome.requests);
        prop_assert_eq!(outcome.ttft_ms.is_some(), outcome.requests > 0);
        prop_assert!(outcome.prefill_tokens <= outcome.prompt_tokens);
        prop_assert!(outcome.hit_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
        prop_assert!(outcome.overlap_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
