//! Which worker Dynamo's router takes at given costs, and how likely each is (reference §5.8). Must not know where the
//! costs come from.

use super::settings::TieBreak;
use radixscope_model::id::WorkerIx;

/// Writes the chance of each candidate to be chosen into `out`, which is as long as `costs` (what one is longer by is
/// left alone), and returns how many can be chosen.
///
/// `tree_size(i)` is called only where tree sizes break ties. A cost that is not a number is never chosen at
/// temperature 0 and makes a draw meaningless above it: all chances are 0 then, as with no candidate.
pub fn probabilities(
    costs: &[f64],
    temperature: f64,
    tie_break: TieBreak,
    tree_size: impl Fn(usize) -> u64,
    out: &mut [f64],
) -> usize {
    let len = costs.len().min(out.len());
    let (costs, out) = (&costs[..len], &mut out[..len]);
    if temperature > 0.0 {
        softmax(costs, temperature, out)
    } else {
        lowest(costs, tie_break, tree_size, out)
    }
}

fn lowest(costs: &[f64], tie_break: TieBreak, tree_size: impl Fn(usize) -> u64, out: &mut [f64]) -> usize {
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let mut smallest = u64::MAX;
    let mut tied = 0_usize;
    for (at, (&cost, chance)) in costs.iter().zip(out.iter_mut()).enumerate() {
        *chance = 0.0;
        if cost != least {
            continue;
        }
        let size = if tie_break == TieBreak::Random { 0 } else { tree_size(at) };
        if size < smallest {
            (smallest, tied) = (size, 0);
        }
        tied += usize::from(size == smallest);
        // For the second pass, which gives the chance to those of the smallest tree.
        *chance = 1.0;
    }
    if tied == 0 {
        return 0;
    }
    let each = 1.0 / tied as f64;
    for (at, chance) in out.iter_mut().enumerate().filter(|(_, chance)| **chance > 0.0) {
        let wins = tie_break == TieBreak::Random || tree_size(at) == smallest;
        *chance = if wins { each } else { 0.0 };
    }
    tied
}

/// The softmax over costs divided by their range, operation for operation that of 1.6.1: for a range that is not
/// finite, costs are scaled down first.
fn softmax(costs: &[f64], temperature: f64, out: &mut [f64]) -> usize {
    let (least, most) =
        costs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), &c| (l.min(c), m.max(c)));
    if least == most {
        out.fill(1.0 / costs.len() as f64);
    } else {
        let range = most - least;
        let magnitude = if range.is_finite() { 1.0 } else { least.abs().max(most.abs()) };
        let least = least / magnitude;
        let scale = -1.0 / ((most / magnitude - least) * temperature);
        let shift = least * scale;
        for (chance, &cost) in out.iter_mut().zip(costs) {
            *chance = (cost / magnitude * scale - shift).exp();
        }
    }
    let sum: f64 = out.iter().sum();
    if !(sum.is_finite() && sum > 0.0) {
        out.fill(0.0);
        return 0;
    }
    out.iter_mut().for_each(|chance| *chance /= sum);
    out.iter().filter(|chance| **chance > 0.0).count()
}

/// The candidate that a draw `u` in `[0, 1)` takes: the first at which the summed chances reach it, the last one if
/// rounding keeps the sum below; `None` without any chance.
///
/// Dynamo's own walk, but that a candidate without any chance is never taken, not even by a draw of exactly 0.
pub fn draw(probabilities: &[f64], u: f64) -> Option<usize> {
    let mut sum = 0.0;
    let mut last = None;
    for (at, &chance) in probabilities.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
        sum += chance;
        last = Some(at);
        if u <= sum {
            break;
        }
    }
    last
}

/// Whose turn it is among `workers` by round-robin, as a place among them; `None` where there is none. As Dynamo's: the number
/// of the request modulo the number of workers, here by worker index. So it depends on no earlier choice.
pub fn round_robin(workers: impl Iterator<Item = WorkerIx>, turn: u64) -> Option<usize> {
    let mut by_index: Vec<(WorkerIx, usize)> = workers.enumerate().map(|(at, worker)| (worker, at)).collect();
    let nth = turn.checked_rem(by_index.len() as u64)? as usize;
    Some(by_index.select_nth_unstable(nth).1.1)
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
