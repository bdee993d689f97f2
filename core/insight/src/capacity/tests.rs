//! The arithmetic held against figures worked out by hand, and against hostile input.

use proptest::prelude::*;

use super::*;

fn whole(inputs: Inputs) -> Capacity {
    inputs.capacity().unwrap()
}

#[test]
fn the_reference_scenario_holds_10738_blocks_of_32_tokens() {
    let capacity = whole(REFERENCE);
    assert_eq!(capacity.kv_bytes_per_token, 163_840);
    assert_eq!(capacity.bytes_per_block, 5_242_880);
    assert_eq!(capacity.tokens_per_worker, 343_627);
    assert_eq!(capacity.blocks_per_worker, 10_738);
    assert_eq!(capacity.blocks, 32_214);
    assert!((capacity.kv_gib_per_worker() - 52.43).abs() < 0.01);
    assert_eq!(reference_blocks_per_worker(32), 10_738);
    assert_eq!(reference_blocks_per_worker(32), radixscope_sim::REFERENCE_BLOCKS_PER_WORKER);
    assert_eq!(reference_blocks_per_worker(16), 21_476);
    assert_eq!([0, 343_627, 343_628, u32::MAX].map(reference_blocks_per_worker), [0, 1, 0, 0]);
}

#[test]
fn of_the_free_memory_the_same_fraction_leaves_more() {
    let inputs = Inputs { convention: Convention::FreeMemory, ..REFERENCE };
    // (141 GB - 70.6 GB) x 0.90 = 63.36 GB
    assert_eq!(whole(inputs).tokens_per_worker, 386_718);
    assert_eq!(whole(inputs).blocks_per_worker, 12_084);
}

#[test]
fn a_full_reference_batch_of_p95_sequences_does_not_fit() {
    let capacity = whole(REFERENCE);
    let p95 = capacity.p95.unwrap();
    assert_eq!((p95.tokens, p95.blocks, p95.per_worker, p95.in_all), (13_530, 423, 25, 75));
    assert_eq!((p95.shared_per_worker, capacity.p50), (None, None));
    let batch = capacity.max_batch.unwrap();
    assert_eq!(batch.p95_blocks, Some(27_072));
    // 10,738 / 64 = 167 blocks each.
    assert_eq!((batch.longest_tokens, batch.longest_shared_tokens), (5_344, None));
}

#[test]
fn a_shared_prefix_is_counted_once_and_only_in_full_blocks() {
    // 3,519 tokens are 109 full blocks and 31 tokens more, which every sequence keeps for itself.
    let capacity = whole(Inputs { shared_prefix_tokens: Some(3_519), ..REFERENCE });
    assert_eq!(capacity.p95.unwrap().shared_per_worker, Some((10_738 - 109) / (423 - 109)));
    let batch = capacity.max_batch.unwrap();
    assert_eq!(batch.longest_shared_tokens, Some((109 + (10_738 - 109) / 64) * 32));
    let capacity = whole(Inputs { shared_prefix_tokens: Some(12_800), ..REFERENCE });
    assert_eq!(
        capacity.p95.unwrap().shared_per_worker,
        Some((10_738 - 400) / 23),
        "the batch of 64 and more"
    );
}

#[test]
fn a_sequence_no_longer_than_the_prefix_shares_nothing_that_could_be_counted() {
    let capacity = whole(Inputs { shared_prefix_tokens: Some(13_530), ..REFERENCE });
    assert_eq!(capacity.p95.unwrap().shared_per_worker, None);
    let capacity = whole(Inputs { shared_prefix_tokens: Some(1_000_000), ..REFERENCE });
    assert_eq!(capacity.max_batch.unwrap().longest_shared_tokens, Some(0));
}

#[test]
fn more_gpus_than_kv_heads_keep_a_head_each() {
    let kv = KvBytes::Model { layers: 80, kv_heads: 8, head_dim: 128, bytes_per_element: 2 };
    let per_token = |gpus_per_worker| whole(Inputs { kv, gpus_per_worker, ..REFERENCE }).kv_bytes_per_token;
    assert_eq!([1, 8, 16].map(per_token), [327_680, 327_680, 655_360]);
}

#[test]
fn every_preset_fits_and_the_first_is_the_reference() {
    assert_eq!(PRESETS[0].inputs, Inputs { convention: Convention::FreeMemory, ..REFERENCE });
    // (141 - 70.6) GB x 0.9 / 163,840 B, (80 x 0.9 - 16.06) GB / 131,072 B, (48 x 0.9 - 16.06) GB / 131,072 B, (160 x 0.9 - 70.6) GB / 327,680 B,
    // (320 x 0.9 - 141.2) GB / 327,680 B
    let tokens = PRESETS.map(|preset| whole(preset.inputs).tokens_per_worker);
    assert_eq!(tokens, [386_718, 426_788, 207_061, 223_999, 447_998]);
}

#[test]
fn what_is_impossible_names_the_input_in_a_sentence() {
    let error = |inputs: Inputs| {
        let error = inputs.capacity().unwrap_err();
        (error.input(), error.to_string())
    };
    let cases = [
        (
            Inputs { fraction: 0.4, ..REFERENCE },
            Input::Weights,
            "Weights per worker are 70.6 GB, but memory fraction 0.4 of 141.0 GB HBM is 56.4 GB: none is left for KV",
        ),
        (
            Inputs { weight_bytes: 141 * GB, convention: Convention::FreeMemory, ..REFERENCE },
            Input::Weights,
            "Weights per worker are 141.0 GB, but there are 141.0 GB HBM: none is left for KV",
        ),
        (
            Inputs { fraction: 90.0, ..REFERENCE },
            Input::Fraction,
            "Memory fraction is 90; it must be between 0.01 and 1",
        ),
        (
            Inputs { fraction: f64::NAN, ..REFERENCE },
            Input::Fraction,
            "Memory fraction is NaN; it must be between 0.01 and 1",
        ),
        (
            Inputs { hbm_bytes_per_gpu: 0, ..REFERENCE },
            Input::HbmPerGpu,
            "HBM per GPU is 0; it must be between 1 and 4000 GB",
        ),
        (
            Inputs { block_size_tokens: 400_000, ..REFERENCE },
            Input::BlockSize,
            "Block size: one block takes 65,536,000,000 bytes of KV, but only 56,300,000,000 bytes are left beside the weights",
        ),
        (
            Inputs { p50_tokens: Some(20_000), ..REFERENCE },
            Input::P50,
            "Sequence length p50 is 20,000 tokens, above p95 of 13,530; it must not be the longer one",
        ),
    ];
    for (inputs, input, sentence) in cases {
        assert_eq!(error(inputs), (input, sentence.to_owned()));
    }
}

#[test]
fn sizes_typed_in_gb_become_bytes_or_an_error() {
    assert_eq!(Input::HbmPerGpu.bytes(141.0), Ok(141 * GB));
    assert_eq!(Input::Weights.bytes(70.6), Ok(REFERENCE.weight_bytes));
    for typed in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        assert!(Input::HbmPerGpu.bytes(typed).is_err(), "{typed}");
    }
}

fn advice(live: CurrentUsage) -> [Advice; 4] {
    let all = remedies(&live);
    std::array::from_fn(|at| all[at].advice)
}

#[test]
fn remedies_follow_from_what_fills_the_memory() {
    use Advice::{NotIndicated, Suggested, Unknown};
    let live = |used, retained, waiting| CurrentUsage {
        used_blocks: Some(used),
        retained_blocks: retained,
        capacity_blocks: Some(10_738),
        waiting_sequences: Some(waiting),
        is_short: true,
    };
    assert_eq!(advice(CurrentUsage::default()), [Unknown; 4]);
    assert_eq!(advice(live(10_300, Some(400), 12)), [Suggested, Suggested, Unknown, Suggested]);
    assert_eq!(advice(live(10_300, None, 0)), [Suggested, Suggested, Unknown, Suggested]);
    assert_eq!(advice(live(3_000, Some(7_600), 0)), [NotIndicated, Suggested, Unknown, Suggested]);
    assert_eq!(advice(live(3_000, Some(100), 4)), [NotIndicated, NotIndicated, Unknown, NotIndicated]);
    let without_finding = CurrentUsage { is_short: false, ..live(10_300, Some(400), 12) };
    assert_eq!(advice(without_finding), [NotIndicated, NotIndicated, Unknown, NotIndicated]);
    assert_eq!(
        remedies(&live(10_300, None, 12))[0].why,
        "Running sequences use 95 % of 10,738 blocks, and 12 sequences are queued."
    );
}

#[test]
fn every_remedy_has_a_setting_for_every_engine() {
    for kind in RemedyKind::ALL {
        for engine in Engine::ALL {
            assert!(kind.settings().iter().any(|setting| setting.engine == engine), "{kind:?} {engine:?}");
        }
    }
    for engine in Engine::ALL {
        let raise = RemedyKind::RaiseFraction.settings().iter().find(|setting| setting.engine == engine);
        assert!(raise.unwrap().text.starts_with(fraction_setting(engine)));
    }
}

/// Plausible as well as hostile: small, at the bounds, beyond them.
fn number(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![4 => 1..=most, 1 => Just(most), 1 => 0..=64_u64, 1 => any::<u64>()]
}

fn limit(most: u32) -> impl Strategy<Value = u32> {
    number(u64::from(most)).prop_map(|value| u32::try_from(value).unwrap_or(u32::MAX))
}

fn kv() -> impl Strategy<Value = KvBytes> {
    let model = (limit(10_000), limit(10_000), limit(10_000), limit(8)).prop_map(
        |(layers, kv_heads, head_dim, bytes_per_element)| KvBytes::Model {
            layers,
            kv_heads,
            head_dim,
            bytes_per_element,
        },
    );
    prop_oneof![number(1_000_000_000).prop_map(KvBytes::PerToken), model]
}

prop_compose! {
    fn inputs()(
        hbm_bytes_per_gpu in number(4_000 * GB),
        gpus_per_worker in limit(256),
        weight_bytes in prop_oneof![number(1_000_000 * GB), number(GB)],
        fraction in prop_oneof![4 => 0.01..=1.0, 1 => any::<f64>()],
        convention in prop::sample::select(&Convention::ALL[..]),
        kv in kv(),
        block_size_tokens in limit(1_000_000),
        workers in limit(10_000),
        lengths in (number(1_000_000_000), number(1_000_000_000)),
        max_num_seqs in prop::option::of(limit(1_000_000)),
        shared_prefix_tokens in prop::option::of(number(1_000_000_000)),
    ) -> Inputs {
        Inputs {
            hbm_bytes_per_gpu, gpus_per_worker, weight_bytes, fraction, convention, kv, block_size_tokens, workers,
            blocks_per_worker: None,
            max_num_seqs, p50_tokens: Some(lengths.0.min(lengths.1)), p95_tokens: Some(lengths.0.max(lengths.1)),
            shared_prefix_tokens,
        }
    }
}

prop_compose! {
    fn possible()(
        hbm_gb in 1..=4_000_u64,
        gpus_per_worker in 1..=256_u32,
        weight_gb in 1..=500_u64,
        fraction in 0.01..=1.0,
        convention in prop::sample::select(&Convention::ALL[..]),
        per_token in 1..=10_000_000_u64,
        block_size_tokens in 1..=512_u32,
    ) -> Inputs {
        Inputs {
            hbm_bytes_per_gpu: hbm_gb * GB, gpus_per_worker, weight_bytes: weight_gb * GB, fraction, convention,
            kv: KvBytes::PerToken(per_token), block_size_tokens, ..REFERENCE
        }
    }
}

fn blocks(inputs: &Inputs) -> u64 {
    inputs.capacity().map_or(0, |capacity| capacity.blocks_per_worker)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_typed_panics_and_errors_can_be_read(inputs in inputs()) {
        match inputs.capacity() {
            Ok(capacity) => prop_assert!(capacity.blocks_per_worker > 0),
            Err(error) => prop_assert!(error.to_string().contains(error.input().label())),
        }
    }

    #[test]
    fn what_fits_stays_within_the_memory(inputs in possible()) {
        let Ok(capacity) = inputs.capacity() else { return Ok(()) };
        let size = u64::from(inputs.block_size_tokens);
        prop_assert!(capacity.blocks_per_worker * size <= capacity.tokens_per_worker);
        prop_assert!((capacity.blocks_per_worker + 1) * size > capacity.tokens_per_worker);
        let hbm = inputs.hbm_bytes_per_gpu * u64::from(inputs.gpus_per_worker);
        prop_assert!(capacity.blocks_per_worker * capacity.bytes_per_block + inputs.weight_bytes <= hbm);
        let batch = capacity.max_batch.unwrap();
        prop_assert!(batch.longest_tokens * batch.max_num_seqs <= capacity.tokens_per_worker);
        let p95 = capacity.p95.unwrap();
        prop_assert!(p95.per_worker * p95.blocks <= capacity.blocks_per_worker);
        prop_assert_eq!(batch.p95_blocks.unwrap() <= capacity.blocks_per_worker, p95.per_worker >= batch.max_num_seqs);
    }

    #[test]
    fn more_memory_or_a_greater_fraction_never_holds_less(inputs in possible(), more_gb in 0..100_u64, to in 0.0..=1.0) {
        let larger = Inputs { hbm_bytes_per_gpu: (inputs.hbm_bytes_per_gpu + more_gb * GB).min(4_000 * GB), ..inputs };
        prop_assert!(blocks(&larger) >= blocks(&inputs));
        let fuller = Inputs { fraction: inputs.fraction + (1.0 - inputs.fraction) * to, ..inputs };
        prop_assert!(blocks(&fuller) >= blocks(&inputs));
    }

    #[test]
    fn a_shared_prefix_never_makes_fewer_sequences_fit(inputs in possible(), prefix in 1..13_530_u64) {
        let Ok(capacity) = Inputs { shared_prefix_tokens: Some(prefix), ..inputs }.capacity() else { return Ok(()) };
        let p95 = capacity.p95.unwrap();
        prop_assert!(p95.shared_per_worker.unwrap() >= p95.per_worker);
    }

    #[test]
    fn live_figures_of_any_size_are_judged(used: Option<u64>, retained: Option<u64>, capacity: Option<u64>, waiting: Option<u64>) {
        let live = CurrentUsage {
            used_blocks: used, retained_blocks: retained, capacity_blocks: capacity, waiting_sequences: waiting,
            is_short: true,
        };
        prop_assert_eq!(remedies(&live).len(), 4);
    }
}
