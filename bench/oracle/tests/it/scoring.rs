//! Our costs, choices and chances equal those of Dynamo's own selector.
//!
//! Dynamo's crate exposes no costs, but its selector logs that of the worker it chose in full. At an endless
//! temperature every worker is equally likely and the generator's seed decides, so each worker's cost is read, among
//! the same candidates, bit for bit. Chances are not exposed either; compared is the worker drawn for known draws. The
//! published selector is the reference of formula D with E's reading of an empty prompt; the other formulas are
//! compared where they must agree with it.

use std::collections::BTreeSet;

use radixscope_oracle::selector::{CostLog, Seeds, Selection, Taints, draw_of};
use radixscope_router::{
    Formula, Load, Overlap, Role, RoutedRequest, RouterSettings, Scores, TieBreak, WorkerInput, score,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const STATES: usize = 100_000;
const MOST_WORKERS: usize = 16;

/// One of a list.
fn one_of<T: Copy>(rng: &mut impl Rng, list: &[T]) -> T {
    list[rng.random_range(0..list.len())]
}

/// A number that options take: exact binary fractions, so that ties are common, or anything.
fn weight(rng: &mut impl Rng, most: f64) -> f64 {
    if rng.random_bool(0.5) { one_of(rng, &[0.0, 0.25, 0.5, 0.75, 1.0]) } else { rng.random::<f64>() * most }
}

struct State {
    options: RouterSettings,
    request: RoutedRequest,
    inputs: Vec<WorkerInput>,
    shared_hits: Vec<bool>,
    taints: Taints,
}

fn options(rng: &mut impl Rng, formula: Formula) -> RouterSettings {
    let mut options = RouterSettings::new(formula);
    options.tie_break = TieBreak::Random;
    if rng.random_bool(0.3) {
        return options;
    }
    options.role = one_of(rng, &[Role::Aggregated, Role::Prefill, Role::Decode]);
    options.set_prefill_factor(weight(rng, 4.0));
    options.host_cache_hit_weight = weight(rng, 1.0);
    options.disk_cache_hit_weight = weight(rng, 1.0);
    options.shared_cache_multiplier = weight(rng, 1.0);
    options.conditional_disaggregation = rng.random_bool(0.5);
    options.track_prefill_tokens = rng.random_bool(0.7);
    options.overlap_score_credit = weight(rng, 2.0);
    if formula >= Formula::C && rng.random_bool(0.5) {
        options.overlap_score_credit_decay = weight(rng, 3.0);
    }
    if formula >= Formula::D && rng.random_bool(0.5) {
        options.decode_active_request_weight = weight(rng, 8.0);
    }
    options
}

fn state(rng: &mut impl Rng, formula: Formula) -> State {
    let mut options = options(rng, formula);
    if formula == Formula::A {
        // What A has not, and where it would take another default than the others.
        options = RouterSettings { tie_break: options.tie_break, ..RouterSettings::new(formula) };
        options.set_prefill_factor(weight(rng, 4.0));
    }
    let block_size_tokens = match formula {
        // A takes overlap off the tokens and then divides, the others divide and take blocks off: equal to the bit
        // only where division is exact.
        Formula::A => one_of(rng, &[1, 2, 16, 32, 64, 128]),
        _ => one_of(rng, &[1, 3, 16, 16, 17, 32, 48, 64, 100, 128]),
    };
    let least = u64::from(formula != Formula::E);
    let longest = one_of(rng, &[40, 4_000, 200_000]);
    let isl_tokens = rng.random_range(least..=longest);
    let full = (isl_tokens / u64::from(block_size_tokens)) as u32;
    let has_tiers = formula != Formula::A && rng.random_bool(0.5);
    let small = rng.random_bool(0.5);
    let count = rng.random_range(1..=MOST_WORKERS);
    let mut inputs: Vec<WorkerInput> = (0..count)
        .map(|_| {
            let mut left = full;
            let mut held = |rng: &mut dyn Rng, wanted: bool| {
                let blocks = if wanted { rng.random_range(0..=left) } else { 0 };
                left -= blocks;
                blocks
            };
            let device = rng.random_bool(0.7);
            let overlap = Overlap {
                device: held(rng, device),
                host: held(rng, has_tiers),
                disk: held(rng, has_tiers),
                external: held(rng, has_tiers && formula != Formula::B),
                shared_beyond_device: 0,
            };
            let most = if small { 3 } else { 100_000 };
            let load = Load {
                active_prefill_tokens: rng.random_range(0..=most) * u64::from(block_size_tokens),
                decode_blocks: rng.random_range(0..=most),
                active_requests: rng.random_range(0..=most.min(70)),
            };
            let is_known = formula == Formula::A || rng.random_bool(0.9);
            WorkerInput { load: is_known.then_some(load), overlap, ..WorkerInput::default() }
        })
        .collect();
    make_ties(rng, full, &mut inputs);
    let shared_hits: Vec<bool> = if formula != Formula::A && full < 5_000 && rng.random_bool(0.3) {
        (0..full).map(|_| rng.random_bool(0.5)).collect()
    } else {
        Vec::new()
    };
    let mut taints = Taints::default();
    if formula >= Formula::C && rng.random_bool(0.3) {
        // Eighths, so that they add up to the same in any order.
        taints.weights =
            (0..rng.random_range(1..=3)).map(|_| rng.random_range(-16_i16..=16) as f32 / 8.0).collect();
        taints.has =
            (0..count).map(|_| taints.weights.iter().map(|_| rng.random_bool(0.5)).collect()).collect();
    }
    for (worker, input) in inputs.iter_mut().enumerate() {
        let beyond = shared_hits.iter().skip(input.overlap.device as usize).filter(|hit| **hit).count();
        input.overlap.shared_beyond_device = beyond as u32;
        if let Some(has) = taints.has.get(worker) {
            let held = taints.weights.iter().zip(has).filter(|(_, has)| **has);
            input.taint_weight = held.map(|(weight, _)| f64::from(*weight)).sum();
        }
    }
    let request = RoutedRequest {
        prefers_taints: !taints.weights.is_empty(),
        ..RoutedRequest::new(isl_tokens, block_size_tokens)
    };
    State { options, request, inputs, shared_hits, taints }
}

/// Makes some workers alike, and some equal in cost though not alike: a block more held, a block more in use.
fn make_ties(rng: &mut impl Rng, full: u32, inputs: &mut [WorkerInput]) {
    if rng.random_bool(0.5) {
        return;
    }
    for _ in 0..rng.random_range(1..=inputs.len()) {
        let (from, to) = (rng.random_range(0..inputs.len()), rng.random_range(0..inputs.len()));
        inputs[to] = inputs[from];
        let overlap = &mut inputs[to].overlap;
        let total = overlap.device + overlap.host + overlap.disk + overlap.external;
        if total < full
            && rng.random_bool(0.5)
            && let Some(load) = &mut inputs[to].load
        {
            overlap.device += 1;
            load.decode_blocks += 1;
        }
    }
}

/// The state as formula D must be asked to give the cost of another formula.
fn as_d(state: &State) -> Selection {
    let State { options, request, inputs, shared_hits, taints } = state;
    let plain = options.role == Role::Decode && !options.conditional_disaggregation;
    match options.formula {
        Formula::E if plain || options.overlap_score_credit == 0.0 => {
            // E asks for no cache input then.
            let bare: Vec<WorkerInput> =
                inputs.iter().map(|w| WorkerInput { overlap: Overlap::default(), ..*w }).collect();
            let untracked = plain && !options.track_prefill_tokens;
            let credit = if untracked { 0.0 } else { options.overlap_score_credit };
            let options = RouterSettings { overlap_score_credit: credit, ..*options };
            Selection::new(&options, request, &bare, &[], taints)
        }
        // Before D there was no rule of its own for decode pools.
        Formula::A | Formula::B | Formula::C => {
            Selection::new(options, request, inputs, shared_hits, taints).with_worker_type("prefill")
        }
        Formula::D | Formula::E => Selection::new(options, request, inputs, shared_hits, taints),
    }
}

struct Compared {
    costs: usize,
    ties: usize,
    draws: usize,
}

fn compare(formula: Formula, states: usize, seed: u64) -> Compared {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let seeds = Seeds::up_to(MOST_WORKERS);
    let mut scores = Scores::default();
    let mut compared = Compared { costs: 0, ties: 0, draws: 0 };
    tracing::subscriber::with_default(CostLog, || {
        for number in 0..states {
            let mut state = state(&mut rng, formula);
            let theirs = as_d(&state);
            let what = |ours: &Scores| {
                format!("{formula:?} {number}: {:?} {:?} {ours:?}", state.options, state.inputs)
            };

            score(&state.options, &state.request, &state.inputs, &mut scores);
            let Some(costs) = theirs.costs(&seeds) else {
                panic!("a worker not drawn by its seed, or its cost not logged: {}", what(&scores));
            };
            let bits = |costs: &[f64]| costs.iter().map(|c| c.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&costs), bits(scores.costs()), "{}", what(&scores));
            compared.costs += costs.len();

            let mut chosen = BTreeSet::new();
            let choices: BTreeSet<usize> = scores.choices().collect();
            for seed in 0..2_000 {
                let Some((worker, cost)) = theirs.choose(0.0, seed) else {
                    panic!("no choice: {}", what(&scores))
                };
                assert!(choices.contains(&worker), "{} chosen of {choices:?}, {}", worker, what(&scores));
                assert_eq!(cost.to_bits(), costs[worker].to_bits());
                chosen.insert(worker);
                if chosen == choices {
                    break;
                }
            }
            assert_eq!(chosen, choices, "{}", what(&scores));
            compared.ties += usize::from(choices.len() > 1);

            state.options.router_temperature = one_of(&mut rng, &[0.01, 0.1, 0.5, 1.0, 2.5]);
            score(&state.options, &state.request, &state.inputs, &mut scores);
            for _ in 0..2 {
                let seed = rng.random();
                let theirs = theirs.choose(state.options.router_temperature, seed).map(|(worker, _)| worker);
                assert_eq!(theirs, scores.draw(draw_of(seed)), "{formula:?} {number}: {scores:?}");
                compared.draws += 1;
            }
        }
    });
    compared
}

/// A test a formula, so that they run side by side.
macro_rules! formulas {
    ($($name:ident: $formula:ident, $share:literal;)*) => {$(
        #[test]
        fn $name() {
            let states = STATES * $share / 100;
            let compared = compare(Formula::$formula, states, $share);
            assert!(compared.costs > states * 4, "{} costs", compared.costs);
            assert!(compared.ties > states / 20, "{} ties", compared.ties);
            assert_eq!(compared.draws, states * 2);
        }
    )*};
}
formulas! {
    formula_a_equals_dynamos_where_they_must_agree: A, 14;
    formula_b_equals_dynamos_where_they_must_agree: B, 15;
    formula_c_equals_dynamos_where_they_must_agree: C, 16;
    formula_d_equals_dynamos_selector: D, 30;
    formula_e_equals_dynamos_selector_given_what_it_asks_for: E, 25;
}
