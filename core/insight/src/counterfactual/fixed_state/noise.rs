//! How much of a figure is chance: the window cut into consecutive parts, and the parts drawn again and again.
//!
//! Consecutive parts and not single requests, because neighbours share prompts and queues. The draws are the same for
//! every setting, so that two settings are compared on the same requests. Must not know settings.

use radixscope_model::percentile;
use serde::{Deserialize, Serialize};

/// Parts that a window is cut into, of equal numbers of decisions.
pub(crate) const PARTS: usize = 20;
/// Times that as many parts are drawn, each possibly several times.
pub(crate) const DRAWS: usize = 400;
/// Percent of the draws below an interval, and as many above it: what is between is an interval of 95 %.
const BEYOND_TENTHS: usize = 25;

/// Sums over one part of a window.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Part {
    /// Expected overlap of the chosen workers, in blocks.
    pub overlap_blocks: f64,
    /// Blocks of the prompts.
    pub isl_blocks: f64,
}

/// A figure and the interval that 95 of 100 draws lie in.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Over the whole window.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The part of the `at`th of `len` decisions.
pub(super) fn part_of(at: usize, len: usize) -> usize {
    (at * PARTS / len.max(1)).min(PARTS - 1)
}

/// The parts of each draw.
pub(super) fn draws() -> impl Iterator<Item = [usize; PARTS]> {
    (0..DRAWS).map(|draw| std::array::from_fn(|at| random(draw * PARTS + at) % PARTS))
}

impl Interval {
    /// `of_draws` is the figure in each draw.
    pub(super) fn of(value: f64, mut of_draws: Vec<f64>) -> Self {
        of_draws.sort_by(f64::total_cmp);
        let at = |tenths: usize| of_draws.get(of_draws.len() * tenths / 1_000).copied().unwrap_or(value);
        Self { value, low: at(BEYOND_TENTHS), high: at(1_000 - BEYOND_TENTHS) }
    }
}

/// By how much more of the prompts `tried` finds than `actual`, as a share of all blocks; `None` where no length is known.
pub(super) fn gain(tried: &[Part], actual: &[Part]) -> Option<Interval> {
    let share = |of: &[Part], parts: &[usize]| {
        let sum = parts
            .iter()
            .filter_map(|&at| of.get(at))
            .fold((0.0, 0.0), |(held, all), part| (held + part.overlap_blocks, all + part.isl_blocks));
        (sum.1 > 0.0).then(|| sum.0 / sum.1)
    };
    let all: Vec<usize> = (0..PARTS).collect();
    let gain = |parts: &[usize]| Some(share(tried, parts)? - share(actual, parts)?);
    Some(Interval::of(gain(&all)?, draws().filter_map(|parts| gain(&parts)).collect()))
}

/// A percentile of `values`, each with its part.
pub(super) fn percentile_of(values: &[(usize, f64)], percent: usize) -> Option<Interval> {
    let of = |times: &[usize; PARTS]| {
        let mut drawn: Vec<f64> = Vec::with_capacity(values.len());
        for &(part, value) in values {
            drawn.extend(std::iter::repeat_n(value, times[part]));
        }
        let at = percentile::index(drawn.len(), percent)?;
        Some(*drawn.select_nth_unstable_by(at, f64::total_cmp).1)
    };
    let counted = |parts: [usize; PARTS]| {
        let mut times = [0; PARTS];
        parts.into_iter().for_each(|part| times[part] += 1);
        times
    };
    Some(Interval::of(of(&[1; PARTS])?, draws().filter_map(|parts| of(&counted(parts))).collect()))
}

/// A number that depends on its place alone (SplitMix64).
fn random(place: usize) -> usize {
    (super::evaluate::mixed(place as u64 + 0x7061_7274) >> 33) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(of: impl Fn(usize) -> f64) -> Vec<Part> {
        (0..PARTS).map(|at| Part { overlap_blocks: of(at), isl_blocks: 100.0 }).collect()
    }

    #[test]
    fn a_gain_in_every_part_is_beyond_noise_and_one_part_alone_is_not() {
        let actual = parts(|at| 50.0 + at as f64);
        let always = gain(&parts(|at| 52.0 + at as f64), &actual).unwrap();
        assert!((always.low - 0.02).abs() < 1e-12 && (always.high - 0.02).abs() < 1e-12, "{always:?}");
        let once = gain(&parts(|at| 50.0 + at as f64 + if at == 3 { 40.0 } else { 0.0 }), &actual).unwrap();
        assert!((once.value - 0.02).abs() < 1e-12 && once.low == 0.0 && once.high > 0.04, "{once:?}");
        assert_eq!(gain(&[], &[]), None);
    }

    #[test]
    fn an_interval_of_a_percentile_is_as_wide_as_parts_differ() {
        let same: Vec<(usize, f64)> = (0..200).map(|at| (part_of(at, 200), 7.0)).collect();
        assert_eq!(percentile_of(&same, 95), Some(Interval { value: 7.0, low: 7.0, high: 7.0 }));
        let rising: Vec<(usize, f64)> = (0..200).map(|at| (part_of(at, 200), at as f64)).collect();
        let median = percentile_of(&rising, 50).unwrap();
        assert!(median.low < 80.0 && median.value == 99.0 && median.high > 120.0, "{median:?}");
        assert_eq!(percentile_of(&[], 50), None);
    }

    #[test]
    fn parts_are_consecutive_and_cover_the_window() {
        assert_eq!([0, 49, 50, 999].map(|at| part_of(at, 1_000)), [0, 0, 1, PARTS - 1]);
        assert_eq!(draws().flatten().collect::<std::collections::BTreeSet<_>>().len(), PARTS);
    }
}
