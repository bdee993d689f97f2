use std::ops::ControlFlow;

use proptest::prelude::*;

use radixscope_model::id::{DecisionId, Millis, WorkerIx};
use radixscope_model::record::Candidate;
use radixscope_router::{Formula, RouterSettings, TieBreak, pick};

use super::super::sample::{LeftOut, MAX_CANDIDATES, Sample, SampleBuilder, SampledDecision, whole_tokens};
use super::*;

const SIZE: u32 = 16;

fn candidate(worker: u16, overlap_blocks: u32, prefill_blocks: f64, decode_blocks: f64) -> Candidate {
    Candidate {
        worker: WorkerIx(worker),
        overlap_blocks,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks,
        decode_blocks,
        cost: prefill_blocks + decode_blocks,
        tree_size: Some(0),
    }
}

const RECORDED: RouterSettings = RouterSettings::new(Formula::A);

fn decision(at_ms: u64, ended_ms: Option<u64>, chosen: u16) -> SampledDecision {
    SampledDecision {
        id: DecisionId(at_ms),
        at_ms: Millis(at_ms),
        turn: at_ms / 10,
        ended_ms: ended_ms.map(Millis),
        isl_tokens: Some(1600),
        block_size_tokens: Some(SIZE),
        ttft_ms: None,
        chosen,
    }
}

/// The example everybody knows: costs 90, 30, 99; 100 blocks.
fn example() -> [Candidate; 3] {
    [candidate(1, 20, 80.0, 10.0), candidate(2, 75, 25.0, 5.0), candidate(3, 10, 90.0, 9.0)]
}

fn weight(overlap_score_weight: f64) -> RouterSettings {
    RouterSettings { overlap_score_weight, ..RouterSettings::new(Formula::A) }
}

fn sample(decisions: &[(SampledDecision, &[Candidate])]) -> Sample {
    let mut builder = SampleBuilder::default();
    for (decision, candidates) in decisions {
        builder.push(decision, &RECORDED, candidates).unwrap();
    }
    builder.finish()
}

#[test]
fn at_the_recorded_setting_nothing_changes() {
    let sample = sample(&[(decision(1, None, 1), &example())]);
    let outcome = sample.outcome(&sample.recorded().unwrap());
    assert_eq!((outcome.certain_changes, outcome.expected_changes, outcome.ties), (0, 0.0, 0));
    assert_eq!(outcome.overlap_share, Some(0.75));
    assert_eq!(outcome.prefill_saved_tokens, Some(0.0));
    let shares: Vec<f64> = outcome.shares.iter().map(|s| s.share).collect();
    assert_eq!(shares, [0.0, 1.0, 0.0]);
}

#[test]
fn a_weight_of_0_follows_load_alone_and_costs_prefill() {
    let mut candidates = example();
    candidates[2].decode_blocks = 4.0;
    let sample = sample(&[(decision(1, None, 1), &candidates)]);
    let outcome = sample.outcome(&weight(0.0));
    assert_eq!((outcome.certain_changes, outcome.expected_changes), (1, 1.0));
    let changed = ChangedDecision {
        decision: DecisionId(1),
        from: WorkerIx(2),
        to: WorkerIx(3),
        actual_probability: 0.0,
        from_cost: 5.0,
        to_cost: 4.0,
    };
    assert_eq!(outcome.changed, [changed]);
    assert_eq!(outcome.overlap_share, Some(0.1));
    assert_eq!(outcome.prefill_saved_tokens, Some(-65.0 * 16.0));
}

#[test]
fn another_credit_changes_what_overlap_is_worth() {
    let recorded = RouterSettings::new(Formula::E);
    let candidates = [candidate(0, 40, 60.0, 90.0), candidate(1, 0, 100.0, 0.0)];
    let mut builder = SampleBuilder::default();
    builder.push(&decision(1, None, 1), &recorded, &candidates).unwrap();
    let sample = builder.finish();
    let with_credit = |overlap_score_credit| {
        sample.outcome(&RouterSettings { overlap_score_credit, ..recorded }).certain_changes
    };
    // 60 + 90 against 100; with credit 2.3 it is 100 − 92 + 90 against 100.
    assert_eq!((with_credit(1.0), with_credit(2.3)), (0, 1));
}

#[test]
fn with_temperature_changes_and_shares_are_expected_values() {
    let candidates = [candidate(0, 0, 1.0, 0.0), candidate(1, 50, 3.0, 0.0)];
    let sample = sample(&[(decision(1, None, 0), &candidates)]);
    let settings = RouterSettings { router_temperature: 1.0, ..RouterSettings::new(Formula::A) };
    let outcome = sample.outcome(&settings);
    assert_eq!(outcome.certain_changes, 0);
    assert_eq!(format!("{:.4}", outcome.expected_changes), "0.2689");
    assert_eq!(format!("{:.4}", outcome.overlap_share.unwrap()), "0.1345");
    assert_eq!(format!("{:.4}", outcome.shares[1].share), "0.2689");
    assert_eq!(format!("{:.1}", outcome.prefill_saved_tokens.unwrap()), "215.2");
    assert!(outcome.changed.is_empty(), "the actual worker is still the likeliest");
}

#[test]
fn round_robin_goes_by_the_number_of_the_decision_whatever_was_chosen() {
    let candidates = example();
    let turn = |turn| SampledDecision { turn, ..decision(turn, None, 1) };
    let decisions: Vec<_> = (1..5).map(|at| (turn(at), &candidates[..])).collect();
    let outcome = sample(&decisions).outcome(&RouterSettings::round_robin());
    let later = sample(&decisions[2..]).outcome(&RouterSettings::round_robin());
    assert_eq!(
        later.changed.iter().map(|changed| changed.to).collect::<Vec<_>>(),
        [outcome.changed[1].to],
        "the window does not matter"
    );
    let to: Vec<_> = outcome.changed.iter().map(|changed| (changed.decision, changed.to.0)).collect();
    assert_eq!(to, [(DecisionId(2), 3), (DecisionId(3), 1)]);
    assert_eq!(outcome.certain_changes, 2);
}

#[test]
fn the_imbalance_is_what_is_in_flight_at_each_decision() {
    let candidates = [candidate(0, 0, 1.0, 0.0), candidate(1, 0, 2.0, 0.0)];
    let all = &candidates[..];
    // Worker 0 gets three requests before the first ends; pushed out of order on purpose.
    let sample = sample(&[
        (decision(30, Some(90), 0), all),
        (decision(10, Some(35), 0), all),
        (decision(20, Some(40), 0), all),
        (decision(40, Some(50), 1), all),
        (decision(60, None, 1), all),
    ]);
    let actual = sample.actual().imbalance.unwrap();
    // 1, 2, 3 in flight on worker 0; then one each; then only the one that runs to 90.
    assert_eq!((actual.mean, actual.p95, actual.most), (7.0 / 5.0, 3, 3));
    assert_eq!(actual.ended_decisions, 4);
    let turns = sample.outcome(&RouterSettings::round_robin()).imbalance.unwrap();
    assert!(turns.mean < actual.mean);
}

#[test]
fn without_a_known_end_the_imbalance_is_unknown() {
    let sample = sample(&[(decision(1, None, 1), &example())]);
    assert_eq!(sample.actual().imbalance, None);
}

#[test]
fn requests_that_took_no_time_are_never_in_flight() {
    let candidates = example();
    let all = &candidates[..];
    let sample = sample(&[
        (decision(5, Some(5), 1), all),
        (decision(5, Some(4), 1), all),
        (decision(5, Some(9), 1), all),
    ]);
    let imbalance = sample.actual().imbalance.unwrap();
    assert_eq!((imbalance.most, imbalance.ended_decisions), (1, 1));
}

#[test]
fn unknown_lengths_and_sizes_stay_unknown() {
    let unknown = SampledDecision { isl_tokens: None, block_size_tokens: None, ..decision(1, None, 1) };
    let outcome = sample(&[(unknown, &example())]).outcome(&weight(1.0));
    assert_eq!((outcome.overlap_share, outcome.overlap_decisions), (None, 0));
    assert_eq!((outcome.prefill_saved_tokens, outcome.prefill_decisions), (None, 0));
}

#[test]
fn a_decision_that_cannot_be_judged_is_counted_with_its_reason() {
    let mut builder = SampleBuilder::default();
    let mut nan = example();
    nan[0].decode_blocks = f64::NAN;
    let many = vec![candidate(0, 0, 1.0, 1.0); MAX_CANDIDATES + 1];
    let mut push = |chosen, candidates: &[Candidate]| {
        builder.push(&decision(1, None, chosen), &RECORDED, candidates).unwrap_err()
    };
    assert_eq!(push(0, &[]), LeftOut::ChosenOnly);
    assert_eq!(push(3, &example()), LeftOut::ChosenNotAmong);
    assert_eq!(push(0, &nan), LeftOut::BadNumber);
    assert_eq!(push(0, &many), LeftOut::TooMany);
    builder.leave_out(LeftOut::ChosenOnly);
    let sample = builder.finish();
    assert!(sample.is_empty());
    let left_out = [
        (LeftOut::ChosenOnly, 2),
        (LeftOut::ChosenNotAmong, 1),
        (LeftOut::BadNumber, 1),
        (LeftOut::TooMany, 1),
    ];
    assert_eq!(sample.about().left_out, left_out);
    assert_eq!(sample.outcome(&RouterSettings::round_robin()).decisions, 0);
}

#[test]
fn terms_rounded_by_the_log_still_tie() {
    // 33 tokens in blocks of 16 are 2.0625, logged as 2.062; the other worker has 1.0625 and one decode block more.
    let candidates = [candidate(0, 0, 2.062, 3.0), candidate(1, 1, 1.062, 4.0)];
    let outcome = sample(&[(decision(1, None, 0), &candidates)]).outcome(&weight(1.0));
    assert_eq!((outcome.ties, outcome.expected_changes), (1, 0.5));
    assert_eq!(whole_tokens(2.062, 16), 2.0625);
    assert_eq!(whole_tokens(2.1, 16), 2.1, "no whole number of tokens");
    assert_eq!(whole_tokens(2.062, 2048), 2.062, "three decimals do not identify the number");
}

/// Worker 0 is warm and more or less busy, worker 1 cold and idle: weight 1 gives each half of the requests, a higher
/// one gives all to the warm worker.
fn contended() -> Sample {
    let mut builder = SampleBuilder::default();
    for at in 0..200 {
        let busy = f64::from((at * 17 % 20) as u16);
        let candidates = [candidate(0, 20, 80.0, 30.0 + busy), candidate(1, 0, 100.0, 20.0)];
        let actual = u16::from(80.0 + 30.0 + busy > 120.0);
        builder.push(&decision(at * 10, Some(at * 10 + 95), actual), &RECORDED, &candidates).unwrap();
    }
    builder.finish()
}

#[test]
fn a_grid_has_an_outcome_for_every_pair_and_can_be_stopped() {
    let sample = contended();
    let mut progress = Vec::new();
    let grid = sample.grid(&[0.5, 1.0, 2.0], &[0.0, 0.5], |done, total| {
        progress.push((done, total));
        ControlFlow::Continue(())
    });
    let grid = grid.unwrap();
    assert_eq!(progress.last(), Some(&(6, 6)));
    let settings = grid.outcome(2, 1).unwrap().settings.unwrap();
    assert_eq!((settings.overlap_score_weight, settings.router_temperature), (2.0, 0.5));
    assert!(grid.outcome(3, 0).is_none() && grid.outcome(0, 2).is_none());
    assert_eq!(grid.outcome(1, 0).unwrap().certain_changes, 0);
    assert!(sample.grid(&[1.0, 2.0], &[0.0], |_, _| ControlFlow::Break(())).is_none());
    assert!(Sample::default().grid(&[1.0], &[0.0], |_, _| ControlFlow::Continue(())).is_none());
}

#[test]
fn more_overlap_is_not_recommended_at_the_price_of_an_uneven_load() {
    let grid = contended().grid(&[1.0, 4.0], &[0.0], |_, _| ControlFlow::Continue(())).unwrap();
    let (now, heavy) = (&grid.outcomes[0], &grid.outcomes[1]);
    assert!(heavy.overlap_share > now.overlap_share);
    assert!(heavy.imbalance.unwrap().p95 > now.imbalance.unwrap().p95 + 2);
    assert_ne!(recommend(&grid, None).outcome, Some(1), "{}", recommend(&grid, None).why);
}

#[test]
fn overlap_that_costs_no_evenness_is_recommended() {
    // Half of the requests went to the cold worker though the warm one was as idle.
    let mut builder = SampleBuilder::default();
    for at in 0..100 {
        let warm = (at % 2) as u16;
        let mut candidates = [candidate(0, 0, 100.0, 50.0), candidate(1, 0, 100.0, 50.0)];
        candidates[usize::from(warm)] = candidate(warm, 30, 70.0, 85.0);
        builder.push(&decision(at * 10, Some(at * 10 + 25), 1 - warm), &RECORDED, &candidates).unwrap();
    }
    let grid = builder.finish().grid(&[1.0, 1.5], &[0.0], |_, _| ControlFlow::Continue(())).unwrap();
    let advice = recommend(&grid, None);
    assert_eq!((advice.verdict, advice.outcome), (Suggestion::MoreOverlap, Some(1)), "{}", advice.why);
    assert!(
        advice.why.starts_with(
            "overlap_score_weight 1.5, router_temperature 0: KV hit rate 30.0 % instead of 0.0 %"
        ),
        "{}",
        advice.why
    );
}

/// Requests of which those at `warms` go to a cold worker though a warm one is as idle; the others have no choice to make.
fn sometimes(warms: impl Fn(u64) -> bool) -> Sample {
    let mut builder = SampleBuilder::default();
    for at in 0..200 {
        let warm = (at % 2) as u16;
        let mut candidates = [candidate(0, 0, 100.0, 50.0), candidate(1, 0, 100.0, 50.0)];
        let chosen = if warms(at) {
            candidates[usize::from(warm)] = candidate(warm, 30, 70.0, 85.0 + (at % 50) as f64);
            1 - warm
        } else {
            candidates[usize::from(1 - warm)].decode_blocks = 60.0;
            warm
        };
        builder.push(&decision(at * 10, Some(at * 10 + 25), chosen), &RECORDED, &candidates).unwrap();
    }
    builder.finish()
}

fn recommended(sample: &Sample, previous: Option<(f64, f64)>) -> Recommendation {
    let grid = sample.grid(&[1.0, 1.5, 2.0, 3.0, 4.0], &[0.0], |_, _| ControlFlow::Continue(())).unwrap();
    recommend(&grid, previous)
}

#[test]
fn a_gain_in_one_stretch_of_the_window_alone_is_noise() {
    let always = recommended(&sometimes(|at| at % 10 < 4), None);
    assert_eq!(always.verdict, Suggestion::MoreOverlap, "{}", always.why);
    let once = recommended(&sometimes(|at| at < 9), None);
    assert_eq!((once.verdict, once.outcome), (Suggestion::Keep, None), "{}", once.why);
    assert!(once.why.starts_with("No clear winner: no setting is better beyond noise"), "{}", once.why);
}

#[test]
fn the_smallest_change_with_most_of_the_gain_is_recommended_and_stays() {
    let sample = sometimes(|at| at % 10 < 8);
    let fresh = recommended(&sample, None);
    let most = recommended(&sample, Some((4.0, 0.0)));
    assert_eq!(fresh.verdict, Suggestion::MoreOverlap, "{}", fresh.why);
    assert!(fresh.outcome < Some(4) && !fresh.is_repeated, "{}", fresh.why);
    assert_eq!(
        (most.outcome, most.is_repeated),
        (Some(4), true),
        "what was recommended before stays: {}",
        most.why
    );
    // What was recommended before no longer counts, and nothing is better than that beyond noise.
    let grid = sample.grid(&[1.0, 1.5, 2.0, 3.0, 4.0], &[0.0], |_, _| ControlFlow::Continue(())).unwrap();
    let mut uneven = grid.clone();
    if let Some(imbalance) = &mut uneven.outcomes[4].imbalance {
        (imbalance.p95, imbalance.p95_halves) = (900, [900, 900]);
    }
    let unclear = recommend(&uneven, Some((4.0, 0.0)));
    assert_eq!((unclear.verdict, unclear.outcome), (Suggestion::Keep, None), "{}", unclear.why);
    assert_eq!(recommend(&uneven, None).verdict, Suggestion::MoreOverlap, "without it one is recommended");
    let gone = recommended(&sample, Some((7.0, 0.0)));
    assert_eq!(gone.outcome, fresh.outcome, "what is no longer tried does not");
}

#[test]
fn the_expected_times_follow_from_the_tokens_that_are_saved() {
    let mut builder = SampleBuilder::default();
    for at in 0..200_u64 {
        // Half find nothing and take 110 ms; the others find 80 of 100 blocks and take 30 ms.
        let held = if at % 2 == 0 { 0 } else { 80 };
        let other = 80 - held;
        let candidates = [
            candidate(0, held, f64::from(100 - held), 0.0),
            candidate(1, other, f64::from(100 - other), if held == 0 { 100.0 } else { 0.0 }),
        ];
        let ttft_ms = Some(if held == 0 { 110.0 } else { 30.0 });
        builder
            .push(
                &SampledDecision { ttft_ms, ..decision(at * 10, Some(at * 10 + 5), 0) },
                &RECORDED,
                &candidates,
            )
            .unwrap();
    }
    let sample = builder.finish();
    let heavy = weight(10.0);
    let expected = sample.expected(&heavy, &sample.outcome(&heavy), &sample.actual()).unwrap();
    assert_eq!(expected.measured_ttft_ms, Some((30.0, 110.0)));
    assert_eq!(expected.hit_rate_gain.value, 0.4);
    assert_eq!(
        expected.ttft_p95_ms.map(|ms| (ms.value, ms.high)),
        Some((30.0, 30.0)),
        "80 blocks fewer to compute"
    );
    let same = sample.recorded().unwrap();
    let same = sample.expected(&same, &sample.actual(), &sample.actual()).unwrap();
    assert_eq!((same.hit_rate_gain.low, same.hit_rate_gain.high), (0.0, 0.0));
}

#[test]
fn nothing_is_recommended_where_the_imbalance_is_unknown() {
    let sample = sample(&[(decision(1, None, 1), &example())]);
    let grid = sample.grid(&[0.0, 1.0], &[0.0], |_, _| ControlFlow::Continue(())).unwrap();
    let advice = recommend(&grid, None);
    assert_eq!((advice.verdict, advice.outcome), (Suggestion::Unknown, None));
    assert!(advice.why.contains("No request's end is known"), "{}", advice.why);
}

proptest! {
    #[test]
    fn a_decision_that_took_the_lowest_cost_does_not_change_at_its_own_setting(
        decisions in proptest::collection::vec(
            (proptest::collection::vec((0u32..50, 0u32..900, 0u32..60, 0u64..3), 1..9), any::<u64>()),
            1..40,
        ),
        factor in 0.0..4.0,
        formula in proptest::sample::select(Formula::ALL.to_vec()),
    ) {
        let mut recorded = RouterSettings::new(formula);
        recorded.set_prefill_factor(factor);
        let tie_break = TieBreak::of_formula(formula);
        let mut builder = SampleBuilder::default();
        for (at, (workers, pick)) in decisions.iter().enumerate() {
            let candidates: Vec<_> = (0..).zip(workers).map(|(ix, &(overlap, tokens, decode, tree_size))| {
                let prefill = f64::from(tokens) / f64::from(SIZE);
                let candidate = candidate(ix, overlap, prefill, f64::from(decode));
                Candidate { tree_size: Some(tree_size), ..candidate }
            }).collect();
            let costs: Vec<f64> = candidates.iter().map(|c| factor * c.prefill_blocks + c.decode_blocks).collect();
            let mut chances = vec![0.0; costs.len()];
            let tree_size = |at: usize| candidates[at].tree_size.unwrap();
            let choices = pick::probabilities(&costs, 0.0, tie_break, tree_size, &mut chances);
            let nth = (*pick as usize) % choices;
            let actual = (0..costs.len()).filter(|&at| chances[at] > 0.0).nth(nth).unwrap() as u16;
            let decision = decision(at as u64, Some(at as u64 + 7), actual);
            builder.push(&decision, &recorded, &candidates).unwrap();
        }
        let outcome = builder.finish().outcome(&recorded);
        prop_assert_eq!(outcome.certain_changes, 0);
        prop_assert!(outcome.changed.is_empty());
        let sum: f64 = outcome.shares.iter().map(|s| s.share).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }
}
