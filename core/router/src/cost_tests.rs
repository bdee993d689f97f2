use proptest::prelude::*;

use super::*;

fn idle(device: u32, decode_blocks: u64) -> WorkerInput {
    let load = Load { active_prefill_tokens: 0, decode_blocks, active_requests: 0 };
    WorkerInput { load: Some(load), overlap: Overlap::device(device), ..WorkerInput::default() }
}

fn one(options: &RouterSettings, request: &RoutedRequest, worker: &WorkerInput) -> Terms {
    terms(options, request, Common::of(options.formula, &[*worker]), worker)
}

#[test]
fn costs_equal_those_a_real_dynamo_logged() {
    let logged = [
        (122, 0, 7, 14.625, "14.625 = 1.0 * 7.625 + 7.000"),
        (122, 7, 7, 7.625, "7.625 = 1.0 * 0.625 + 7.000"),
        (42, 0, 2, 4.625, "4.625 = 1.0 * 2.625 + 2.000"),
        (3858, 0, 241, 482.125, "482.125 = 1.0 * 241.125 + 241.000"),
    ];
    for (isl, overlap, decode, cost, line) in logged {
        for formula in Formula::ALL {
            let terms =
                one(&RouterSettings::new(formula), &RoutedRequest::new(isl, 16), &idle(overlap, decode));
            assert_eq!(terms.cost, cost, "{formula:?}, {isl} tokens");
            if formula == Formula::A {
                assert_eq!(log_line(&terms), line);
            }
        }
    }
}

#[test]
fn a_busy_worker_costs_what_0_9_logged() {
    for (prefill_tokens, decode_blocks, cost) in [(168, 797, 807.5), (3928, 539, 784.5)] {
        let load = Load { active_prefill_tokens: prefill_tokens, decode_blocks, active_requests: 3 };
        let worker = WorkerInput { load: Some(load), ..WorkerInput::default() };
        assert_eq!(one(&RouterSettings::new(Formula::A), &RoutedRequest::new(0, 16), &worker).cost, cost);
    }
}

#[test]
fn a_worker_without_load_entry_gets_the_defaults() {
    let unknown = WorkerInput { overlap: Overlap::device(7), ..WorkerInput::default() };
    let cost = |formula, track_prefill_tokens| {
        let options = RouterSettings { track_prefill_tokens, ..RouterSettings::new(formula) };
        one(&options, &RoutedRequest::new(122, 16), &unknown).cost
    };
    // A: all 122 tokens and 7 blocks. B–E: all tokens less the credit, no decode blocks.
    assert_eq!(cost(Formula::A, true), 7.625 + 7.0);
    assert_eq!(cost(Formula::A, false), 0.0);
    for formula in [Formula::B, Formula::C, Formula::D, Formula::E] {
        assert_eq!(cost(formula, true), 0.625);
    }
}

#[test]
fn overlap_beyond_the_prompt_is_credited_as_raw_prefill_first() {
    // 8 blocks held of a prompt of 7.625: formula A counts 0, B to E add the cached tokens before taking them off.
    let request = RoutedRequest::new(122, 16);
    let terms = one(&RouterSettings::new(Formula::D), &request, &idle(8, 7));
    assert_eq!((terms.raw_prefill_blocks, terms.credit_blocks, terms.cost), (8.0, 8.0, 7.0));
    assert_eq!(one(&RouterSettings::new(Formula::A), &request, &idle(8, 7)).cost, 7.0);
}

#[test]
fn lower_tiers_earn_their_share_of_credit() {
    let overlap = Overlap { device: 4, host: 4, disk: 4, external: 4, shared_beyond_device: 2 };
    let worker = WorkerInput { overlap, ..idle(0, 0) };
    let options = RouterSettings { shared_cache_multiplier: 0.5, ..RouterSettings::new(Formula::B) };
    let terms = one(&options, &RoutedRequest::new(320, 16), &worker);
    assert_eq!(terms.credit_blocks, 4.0 + 3.0 + 1.0 + 1.0);
    assert_eq!(terms.raw_prefill_blocks, 20.0);
    assert_eq!(terms.cost, 11.0);
    let c = one(&RouterSettings { formula: Formula::C, ..options }, &RoutedRequest::new(320, 16), &worker);
    assert_eq!((c.credit_blocks, c.cost), (10.0, 10.0), "external storage earns as disk does");
}

#[test]
fn external_blocks_alone_earn_the_same_in_every_formula() {
    let overlap = Overlap { external: 8, ..Overlap::default() };
    let worker = WorkerInput { overlap, ..idle(0, 0) };
    for formula in [Formula::B, Formula::C] {
        assert_eq!(
            one(&RouterSettings::new(formula), &RoutedRequest::new(160, 16), &worker).credit_blocks,
            2.0
        );
    }
}

#[test]
fn credit_decays_with_prefill_load_above_the_least_loaded() {
    let options = RouterSettings { overlap_score_credit_decay: 1.0, ..RouterSettings::new(Formula::C) };
    let request = RoutedRequest::new(160, 16);
    let load = Load { active_prefill_tokens: 160, decode_blocks: 10, active_requests: 1 };
    let busy = WorkerInput { load: Some(load), ..idle(10, 0) };
    let common = Common::of(options.formula, &[busy, idle(0, 10)]);
    let terms = terms(&options, &request, common, &busy);
    assert_eq!((terms.credit_decay, terms.credit_blocks), (0.5, 5.0));
    assert_eq!(one(&options, &request, &busy).credit_decay, 1.0);
}

#[test]
fn preferred_taints_multiply_from_c_on() {
    let request = RoutedRequest { prefers_taints: true, ..RoutedRequest::new(160, 16) };
    let worker = WorkerInput { taint_weight: 100.0, ..idle(0, 10) };
    let cost = |formula| one(&RouterSettings::new(formula), &request, &worker).cost;
    assert_eq!((cost(Formula::A), cost(Formula::B)), (20.0, 20.0));
    assert_eq!(cost(Formula::C), 20.0 * (-1.0_f64).exp());
    let terms = one(&RouterSettings::new(Formula::E), &request, &worker);
    assert_eq!(terms.sum().to_string(), "7.358 = (1.0 × 10 prefill + 10 decode) × 0.368 preferred taints");
    assert_eq!(log_line(&terms), "20.000 = 1.000 * 10.000 + 10.000 + 0.000", "before the multiplier");
}

#[test]
fn a_decode_pool_of_d_takes_the_credit_off_its_decode_blocks() {
    let options = RouterSettings {
        role: Role::Decode,
        track_prefill_tokens: false,
        decode_active_request_weight: 2.0,
        ..RouterSettings::new(Formula::D)
    };
    let load = Load { active_prefill_tokens: 0, decode_blocks: 12, active_requests: 3 };
    let worker = WorkerInput { load: Some(load), ..idle(5, 0) };
    let terms = one(&options, &RoutedRequest::new(160, 16), &worker);
    assert_eq!(terms.cost, 13.0);
    assert_eq!(terms.sum().to_string(), "13 = max(0, 12 decode − 5 credit) + 6 active requests");
    assert_eq!(log_line(&terms), "13.000 = max(0, 12.000 - 5.000) + 6.000");
}

#[test]
fn a_plain_decode_pool_of_e_is_placed_by_load_alone() {
    let plain =
        RouterSettings { role: Role::Decode, track_prefill_tokens: false, ..RouterSettings::new(Formula::E) };
    let request = RoutedRequest::new(160, 16);
    assert_eq!(one(&plain, &request, &idle(5, 12)).cost, 12.0);
    let conditional = RouterSettings { conditional_disaggregation: true, ..plain };
    assert_eq!(one(&conditional, &request, &idle(5, 12)).cost, 7.0);
}

#[test]
fn without_credit_e_asks_for_no_cache_at_all() {
    let options = RouterSettings { overlap_score_credit: 0.0, ..RouterSettings::new(Formula::E) };
    let overlap = Overlap { host: 8, ..Overlap::default() };
    let worker = WorkerInput { overlap, ..idle(0, 10) };
    assert_eq!(one(&options, &RoutedRequest::new(160, 16), &worker).cost, 20.0);
    let d = RouterSettings { formula: Formula::D, ..options };
    assert_eq!(one(&d, &RoutedRequest::new(160, 16), &worker).cost, 14.0, "D still credits host memory");
}

#[test]
fn a_claimed_block_size_of_0_divides_by_nothing() {
    for formula in Formula::ALL {
        assert!(
            one(&RouterSettings::new(formula), &RoutedRequest::new(160, 0), &WorkerInput::default())
                .cost
                .is_finite()
        );
    }
}

fn formula() -> impl Strategy<Value = Formula> {
    proptest::sample::select(Formula::ALL.to_vec())
}

proptest! {
    #[test]
    fn load_never_lowers_a_cost_and_overlap_never_raises_it(
        formula in formula(),
        isl in 0u64..100_000,
        block_size in 1u32..200,
        prefill in 0u64..1_000_000,
        decode in 0u64..10_000,
        device in 0u32..1_000,
        more in 1u32..100,
        decay in prop_oneof![Just(0.0), 0.0..4.0],
    ) {
        let options = RouterSettings {
            overlap_score_credit_decay: decay,
            decode_active_request_weight: 0.5,
            ..RouterSettings::new(formula)
        };
        let request = RoutedRequest::new(isl, block_size);
        // Held blocks are full blocks of the prompt.
        let full = (isl / u64::from(block_size)) as u32;
        let cost = |prefill, decode, requests, device: u32| {
            let load = Load { active_prefill_tokens: prefill, decode_blocks: decode, active_requests: requests };
            let worker = WorkerInput { load: Some(load), ..idle(device.min(full), 0) };
            let common = Common { least_prefill_tokens: 0, has_tier_overlap: true };
            terms(&options, &request, common, &worker).cost
        };
        let base = cost(prefill, decode, 3, device);
        prop_assert!(cost(prefill + u64::from(more), decode, 3, device) >= base);
        prop_assert!(cost(prefill, decode + u64::from(more), 3, device) > base);
        prop_assert!(cost(prefill, decode, 3 + u64::from(more), device) >= base);
        prop_assert!(cost(prefill, decode, 3, device.saturating_add(more)) <= base);
    }
}

/// The sum as the router's own log line has it (reference §7.3): `7.625 = 1.0 * 0.625 + 7.000`. As there, it is the cost
/// before preferred taints, and each number is rounded on its own, so that the parts as printed need not give the sum as
/// printed.
pub(crate) fn log_line(t: &Terms) -> String {
    let (factor, prefill, decode) = (t.prefill_factor, t.prefill_blocks, t.decode_blocks);
    let active = t.active_request_blocks;
    let base = match t.is_decode_only {
        true => (decode - t.credit_blocks).max(0.0) + active,
        false => factor * prefill + decode + active,
    };
    if t.is_decode_only {
        return format!("{base:.3} = max(0, {decode:.3} - {:.3}) + {active:.3}", t.credit_blocks);
    }
    match t.formula {
        Formula::A => format!("{base:.3} = {factor:.1} * {prefill:.3} + {decode:.3}"),
        Formula::B | Formula::C => format!("{base:.3} = {factor:.3} * {prefill:.3} + {decode:.3}"),
        Formula::D | Formula::E => {
            format!("{base:.3} = {factor:.3} * {prefill:.3} + {decode:.3} + {active:.3}")
        }
    }
}

#[test]
fn tokens_are_rounded_as_the_c_library_does() {
    let tokens =
        [0.0, 0.499_999_999_999_999_94, 0.5, 1.5, 2.5, 1e15 + 0.5, 9e15, 1e300, -0.4, -3.0, f64::NAN];
    for tokens in tokens.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]) {
        assert_eq!(rounded(tokens), tokens.round().max(0.0) as u64, "{tokens}");
    }
}
