//! Between the levels of baselines: straight lines, and where two of them cross. Nothing is guessed beyond the levels.

use super::{Baseline, Bounds, Figure, Stretch, standing};
use radixscope_model::range::Range;

/// Differences below this share count as none: sweeps differ by as much among themselves.
const EQUAL_SHARE: f64 = 0.01;

/// A figure between two levels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interpolated {
    /// The value, in the figure's unit.
    pub value: f64,
    /// The concurrencies between which it was read; twice the same on a level.
    pub between: (f64, f64),
}

/// Where two baselines change places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Crossover {
    /// At this concurrency they are equal.
    pub concurrency: f64,
    /// What happens to the first of the two above it.
    pub direction: Direction,
}

/// Which way a crossover goes with rising concurrency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The first was better and becomes worse.
    FirstGetsWorse,
    /// The first was worse and becomes better.
    FirstGetsBetter,
}

/// How a live figure compares to a baseline's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Difference {
    /// Live minus baseline as a share of the baseline; a range where live is one.
    pub share: Range,
    /// What that means.
    pub verdict: AgainstBaseline,
}

/// What a difference means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgainstBaseline {
    /// Live is certainly better.
    Better,
    /// Live is certainly worse.
    Worse,
    /// They differ by less than one in a hundred.
    Equal,
    /// The baseline lies between the bounds of live: no data on which is better.
    Unknown,
    /// Live lies within what the baseline's own runs differ by.
    WithinSpread,
}

/// How `live` compares to `base`, whose runs lie between `bounds` if that is known; `None` where nothing is known of `live`, and
/// where `base` is 0, of which nothing is a share.
pub fn difference(figure: Figure, live: Range, base: f64, bounds: Option<Bounds>) -> Option<Difference> {
    let share = |value: f64| (value - base) / base;
    let shares = (base > 0.0 && !live.is_unbounded()).then(|| (share(live.low()), live.high().map(share)))?;
    let range =
        if live.value().is_some() { Range::exact(shares.0) } else { Range::between(shares.0, shares.1) };
    let is_within =
        |bounds: Bounds| live.low() <= bounds.high && live.high().is_none_or(|high| high >= bounds.low);
    let verdict = match shares {
        _ if bounds.is_some_and(is_within) => AgainstBaseline::WithinSpread,
        (low, Some(high)) if low > -EQUAL_SHARE && high < EQUAL_SHARE => AgainstBaseline::Equal,
        (low, _) if low > 0.0 && figure.lower_is_better() => AgainstBaseline::Worse,
        (low, _) if low > 0.0 => AgainstBaseline::Better,
        (_, Some(high)) if high < 0.0 && figure.lower_is_better() => AgainstBaseline::Better,
        (_, Some(high)) if high < 0.0 => AgainstBaseline::Worse,
        _ => AgainstBaseline::Unknown,
    };
    Some(Difference { share: range, verdict })
}

impl Baseline {
    /// The levels at which `figure` is known, by rising concurrency.
    fn levels(&self, figure: Figure) -> impl DoubleEndedIterator<Item = (f64, f64)> {
        self.rows().iter().filter_map(move |row| Some((row.concurrency, row.figures.get(figure)?)))
    }

    /// Lowest and highest concurrency at which `figure` is known; outside of them nothing is interpolated.
    pub fn range(&self, figure: Figure) -> Option<(f64, f64)> {
        let mut levels = self.levels(figure);
        let (least, _) = levels.next()?;
        Some((least, levels.next_back().map_or(least, |(most, _)| most)))
    }

    /// `figure` at `concurrency`, on the straight line between the neighbouring levels; `None` outside of
    /// [`range`](Self::range).
    pub fn interpolate(&self, concurrency: f64, figure: Figure) -> Option<Interpolated> {
        let mut below = None;
        for (level, value) in self.levels(figure) {
            if level == concurrency {
                return Some(Interpolated { value, between: (level, level) });
            }
            if level > concurrency {
                let (from, start): (f64, f64) = below?;
                let share = (concurrency - from) / (level - from);
                return Some(Interpolated { value: start + (value - start) * share, between: (from, level) });
            }
            below = Some((level, value));
        }
        None
    }
}

/// The concurrencies at which `first` becomes worse or better than `second`, by rising concurrency, where both are known.
/// Where they meet and part again in the same order, nothing crosses. Where repeated runs are known, only what they bear out: they lie
/// apart on both sides of it. Directions take turns: what crosses back within the spread of the runs is left out together with its
/// return.
pub fn crossover(first: &Baseline, second: &Baseline, figure: Figure) -> Vec<Crossover> {
    // Both are straight between neighbouring levels of either, and so is their difference.
    let mut levels: Vec<f64> =
        first.levels(figure).chain(second.levels(figure)).map(|(level, _)| level).collect();
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    let mut crossings = Vec::new();
    // The last level at which they differed, and the first after it at which they did not.
    let mut differed: Option<(f64, f64)> = None;
    let mut equal = None;
    for level in levels {
        let at = |baseline: &Baseline| Some(baseline.interpolate(level, figure)?.value);
        let (Some(a), Some(b)) = (at(first), at(second)) else { continue };
        // How much worse the first is.
        let worse = if figure.lower_is_better() { a - b } else { b - a };
        if worse == 0.0 {
            equal = equal.or(Some(level));
            continue;
        }
        if let Some((from, before)) = differed
            && (before > 0.0) != (worse > 0.0)
        {
            // Rounding must not carry it over the level.
            let between = (from + (level - from) * (before / (before - worse))).min(level);
            crossings.push(Crossover {
                concurrency: equal.unwrap_or(between),
                direction: if worse > 0.0 { Direction::FirstGetsWorse } else { Direction::FirstGetsBetter },
            });
        }
        differed = Some((level, worse));
        equal = None;
    }
    let stretches = standing(first, second, figure);
    crossings.retain(|crossing| is_borne_out(&stretches, crossing.concurrency));
    crossings.dedup_by(|next, last| next.direction == last.direction);
    crossings
}

/// Whether the runs say something other before this concurrency than after it, or nothing at it.
fn is_borne_out(stretches: &[Stretch], concurrency: f64) -> bool {
    let within = |stretch: &Stretch| (stretch.from..=stretch.to).contains(&concurrency);
    // Where the means cross, the runs overlap.
    stretches.iter().position(within).is_none_or(|at| at > 0 && at + 1 < stretches.len())
}
