//! Which of two baselines is better, as far as their runs bear it: only where the spreads lie apart. Between levels both ends
//! of a spread are straight lines, as the figures are. Nothing is said beyond the levels, or where a level has no spread.

use super::{Baseline, Bounds, Figure};

/// How two baselines compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// All of the first one's spread is better than the second one's.
    FirstBetter,
    /// All of the second one's spread is better.
    SecondBetter,
    /// The spreads overlap.
    Overlap,
}

/// A range of concurrency with one standing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// From this concurrency.
    pub from: f64,
    /// To this one; the same as `from` if only one level is common.
    pub to: f64,
    /// What holds between.
    pub standing: Standing,
}

impl Baseline {
    /// The spread of `figure` at `concurrency`, on straight lines between neighbouring levels that have one; `None` outside
    /// of them, or if a neighbour has none.
    pub fn bounds_at(&self, concurrency: f64, figure: Figure) -> Option<Bounds> {
        let mut below: Option<(f64, Option<Bounds>)> = None;
        for row in self.rows().iter().filter(|row| row.figures.get(figure).is_some()) {
            let bounds = row.bounds.get(figure);
            if row.concurrency == concurrency {
                return bounds;
            }
            if row.concurrency > concurrency {
                let (from, start) = below?;
                let share = (concurrency - from) / (row.concurrency - from);
                return Some(start?.towards(bounds?, share));
            }
            below = Some((row.concurrency, bounds));
        }
        None
    }
}

/// Where `first` is better than `second`, where it is worse, and where their runs overlap, by rising concurrency. Empty where
/// no common concurrency has a spread in both.
pub fn standing(first: &Baseline, second: &Baseline, figure: Figure) -> Vec<Stretch> {
    let levels_of = |baseline: &Baseline| -> Vec<f64> {
        let known = baseline.rows().iter().filter(|row| row.bounds.get(figure).is_some());
        known.map(|row| row.concurrency).collect()
    };
    let mut levels = levels_of(first);
    levels.extend(levels_of(second));
    levels.sort_unstable_by(f64::total_cmp);
    levels.dedup();
    let gaps = |level: f64| {
        let (a, b) = (first.bounds_at(level, figure)?, second.bounds_at(level, figure)?);
        Some(Gaps::between(a, b, figure.lower_is_better()))
    };
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut last: Option<(f64, Gaps)> = None;
    for level in levels {
        let Some(now) = gaps(level) else {
            last = None;
            continue;
        };
        let Some((from, then)) = last.replace((level, now)) else {
            // Alone until a neighbour is known: a level of which no line leads on still says something.
            push(&mut stretches, Stretch { from: level, to: level, standing: now.standing() });
            continue;
        };
        let mut ends: Vec<f64> =
            [root(then.first, now.first), root(then.second, now.second)].into_iter().flatten().collect();
        ends.sort_unstable_by(f64::total_cmp);
        let shares = std::iter::once(0.0).chain(ends.iter().copied());
        for (start, end) in shares.zip(ends.iter().copied().chain(std::iter::once(1.0))) {
            let at = |share: f64| if share >= 1.0 { level } else { from + (level - from) * share };
            let standing = then.towards(now, f64::midpoint(start, end)).standing();
            push(&mut stretches, Stretch { from: at(start), to: at(end), standing });
        }
    }
    stretches
}

/// Adds to the last stretch if it goes on, and takes the place of a level alone from which it leads on.
fn push(stretches: &mut Vec<Stretch>, next: Stretch) {
    match stretches.last_mut() {
        Some(last) if last.standing == next.standing && last.to == next.from => last.to = next.to,
        Some(last) if last.from == last.to && last.to == next.from => *last = next,
        _ => stretches.push(next),
    }
}

/// How far the better end of one spread lies beyond the worse end of the other; above 0 where they lie apart.
#[derive(Clone, Copy)]
struct Gaps {
    first: f64,
    second: f64,
}

impl Gaps {
    fn between(first: Bounds, second: Bounds, lower_is_better: bool) -> Self {
        let (below, above) = (second.low - first.high, first.low - second.high);
        match lower_is_better {
            true => Self { first: below, second: above },
            false => Self { first: above, second: below },
        }
    }

    fn towards(self, other: Self, share: f64) -> Self {
        let at = |from: f64, to: f64| from + (to - from) * share;
        Self { first: at(self.first, other.first), second: at(self.second, other.second) }
    }

    fn standing(self) -> Standing {
        match self {
            Self { first, .. } if first > 0.0 => Standing::FirstBetter,
            Self { second, .. } if second > 0.0 => Standing::SecondBetter,
            _ => Standing::Overlap,
        }
    }
}

/// Where the straight line from `from` to `to` crosses 0, as a share of the way.
fn root(from: f64, to: f64) -> Option<f64> {
    ((from > 0.0) != (to > 0.0)).then(|| from / (from - to)).filter(|share| *share > 0.0 && *share < 1.0)
}

/// `stretches` as a sentence about `first` and `second`: "KV-aware is faster from concurrency 90 on; between 60 and 90 the runs
/// overlap". `None` if there are none.
pub fn standing_text(figure: Figure, [first, second]: [&str; 2], stretches: &[Stretch]) -> Option<String> {
    let better = if figure.lower_is_better() { "faster" } else { "higher" };
    let (least, most) = (stretches.first()?.from, stretches.last()?.to);
    let text = |stretch: &Stretch| {
        let what = match stretch.standing {
            Standing::FirstBetter => format!("{first} is {better}"),
            Standing::SecondBetter => format!("{second} is {better}"),
            Standing::Overlap => "the runs overlap".to_owned(),
        };
        let (from, to) = (stretch.from, stretch.to);
        match (from == least, to == most) {
            (true, true) if least == most => format!("{what} at {from:.0}"),
            (true, true) => format!("{what} from {from:.0} to {to:.0}, all that was measured"),
            (true, false) => format!("{what} up to concurrency {to:.0}"),
            (false, true) => format!("{what} from concurrency {from:.0} on"),
            (false, false) => format!("{what} between {from:.0} and {to:.0}"),
        }
    };
    Some(stretches.iter().map(text).collect::<Vec<_>>().join("; "))
}
