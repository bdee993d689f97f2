use proptest::prelude::*;

use super::*;

fn chances(costs: &[f64], temperature: f64) -> Vec<f64> {
    let mut out = vec![f64::NAN; costs.len()];
    probabilities(costs, temperature, TieBreak::Random, |_| 0, &mut out);
    out
}

fn tied(costs: &[f64], tie_break: TieBreak, sizes: &[u64]) -> Vec<f64> {
    let mut out = vec![f64::NAN; costs.len()];
    probabilities(costs, 0.0, tie_break, |at| sizes[at], &mut out);
    out
}

#[test]
fn the_lowest_cost_wins_at_temperature_0() {
    assert_eq!(chances(&[90.0, 30.0, 99.0], 0.0), [0.0, 1.0, 0.0]);
}

#[test]
fn up_to_1_1_the_smallest_tree_breaks_ties() {
    for rule in [TieBreak::SmallestTree, TieBreak::SmallestTreeThenRandom] {
        assert_eq!(tied(&[5.0, 5.0, 7.0], rule, &[9, 3, 0]), [0.0, 1.0, 0.0]);
        // A worker without overlap has no tree size and so beats one that holds something.
        assert_eq!(tied(&[5.0, 5.0], rule, &[9, 0]), [0.0, 1.0]);
        assert_eq!(tied(&[5.0, 5.0, 5.0], rule, &[3, 9, 3]), [0.5, 0.0, 0.5]);
    }
    assert_eq!(tied(&[5.0, 5.0, 7.0], TieBreak::Random, &[9, 3, 0]), [0.5, 0.5, 0.0]);
}

#[test]
fn above_0_chances_do_not_depend_on_the_scale_of_costs() {
    for costs in [[1.0, 3.0], [10.0, 30.0]] {
        let chances = chances(&costs, 1.0);
        assert_eq!(format!("{:.4} {:.4}", chances[0], chances[1]), "0.7311 0.2689");
    }
    assert_eq!(chances(&[4.0, 4.0], 1.0), [0.5, 0.5]);
}

#[test]
fn a_range_that_is_not_finite_is_scaled_down_first() {
    let wide = chances(&[-f64::MAX, f64::MAX], 1.0);
    assert_eq!(format!("{:.4}", wide[0]), "0.7311");
}

#[test]
fn without_a_comparable_cost_no_worker_is_chosen() {
    for temperature in [0.0, 1.0] {
        assert_eq!(chances(&[f64::NAN, f64::NAN], temperature), [0.0, 0.0]);
        assert!(chances(&[], temperature).is_empty());
    }
    assert_eq!(chances(&[f64::NAN, 3.0], 0.0), [0.0, 1.0]);
    assert_eq!(draw(&[0.0, 0.0], 0.5), None);
    assert_eq!(draw(&[], 0.5), None);
}

#[test]
fn a_draw_takes_the_first_whose_summed_chance_reaches_it() {
    let chances = [0.25, 0.0, 0.25, 0.5];
    let taken: Vec<_> = [0.0, 0.25, 0.26, 0.5, 0.51, 0.999].map(|u| draw(&chances, u).unwrap()).into();
    assert_eq!(taken, [0, 0, 2, 2, 3, 3]);
    assert_eq!(draw(&[0.3, 0.3], 0.99), Some(1), "rounding below 1 falls to the last");
}

#[test]
fn a_buffer_of_another_length_is_filled_as_far_as_both_go() {
    let mut out = [9.0; 3];
    assert_eq!(probabilities(&[1.0, 2.0], 0.0, TieBreak::Random, |_| 0, &mut out), 1);
    assert_eq!(out, [1.0, 0.0, 9.0]);
}

fn costs() -> impl Strategy<Value = Vec<f64>> {
    // Few distinct values, so that ties are common.
    proptest::collection::vec(prop_oneof![(0u32..20).prop_map(|n| f64::from(n) / 16.0), 0.0..1e6], 1..20)
}

proptest! {
    #[test]
    fn chances_sum_to_1_and_a_lower_cost_is_never_less_likely(
        costs in costs(),
        temperature in prop_oneof![Just(0.0), 0.001..100.0],
    ) {
        let chances = chances(&costs, temperature);
        prop_assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (a, pa) in costs.iter().zip(&chances) {
            for (b, pb) in costs.iter().zip(&chances) {
                prop_assert!(a >= b || pa >= pb, "{a} {pa} {b} {pb}");
            }
        }
    }

    #[test]
    fn near_temperature_0_the_softmax_is_the_lowest_cost(costs in costs()) {
        let (cold, zero) = (chances(&costs, 1e-12), chances(&costs, 0.0));
        let range = costs.iter().copied().fold(0.0, f64::max);
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        // Costs a rounding step apart stay alike at any temperature that is not 0.
        let next = costs.iter().copied().filter(|&c| c > least).fold(f64::INFINITY, f64::min);
        prop_assume!(next - least > range * 1e-9);
        for (c, z) in cold.iter().zip(&zero) {
            prop_assert!((c - z).abs() < 1e-9, "{cold:?} {zero:?}");
        }
    }
}
