//! Which of two settings the model puts first, part by part of the window: what is left where its absolute figures mean
//! nothing. Must not know how the model is run.

use radixscope_sim::resimulation::ServedTimes;
use serde::{Deserialize, Serialize};

/// Parts of the window in which two settings are compared.
const RANK_PARTS: usize = 20;
/// Parts in which one must be better for its rank to hold: with as many heads of 20 coins, chance is 2 in 100.
const RANK_HOLDS: u32 = 15;

/// Which of two settings the model puts first, whatever its absolute figures are worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Rank {
    /// Consecutive parts of the window in which the setting tried is better than the recorded one.
    pub better: u32,
    /// Parts in which it is worse.
    pub worse: u32,
}

impl Rank {
    /// As text, with how far it holds.
    pub fn in_text(self) -> String {
        let Self { better, worse } = self;
        let all = better + worse;
        match self {
            _ if all == 0 => "same".to_owned(),
            _ if better >= RANK_HOLDS => format!("better in {better} of {all} parts"),
            _ if worse >= RANK_HOLDS => format!("worse in {worse} of {all} parts"),
            _ => format!("undecided: better in {better} of {all} parts"),
        }
    }

    /// By `figure` of each request, the less the better, in consecutive parts of those after the warm-up.
    pub(super) fn of(
        tried: &[Option<ServedTimes>],
        recorded: &[Option<ServedTimes>],
        figure: impl Fn(&ServedTimes) -> f64,
    ) -> Self {
        let both = tried
            .iter()
            .zip(recorded)
            .filter_map(|(tried, recorded)| Some(figure(tried.as_ref()?) - figure(recorded.as_ref()?)));
        let differences: Vec<f64> = both.collect();
        let mut rank = Self::default();
        for part in differences.chunks(differences.len().div_ceil(RANK_PARTS).max(1)) {
            let sum: f64 = part.iter().sum();
            rank.better += u32::from(sum < 0.0);
            rank.worse += u32::from(sum > 0.0);
        }
        rank
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_holds_where_nearly_all_parts_agree() {
        let times = |ttft_us: fn(u64) -> u64| -> Vec<Option<ServedTimes>> {
            (0..100).map(|at| Some(ServedTimes { ttft_us: ttft_us(at), ..ServedTimes::default() })).collect()
        };
        let rank = |tried, recorded| {
            Rank::of(&times(tried), &times(recorded), |times| times.ttft_us as f64).in_text()
        };
        assert_eq!(rank(|_| 90, |_| 100), "better in 20 of 20 parts");
        assert_eq!(rank(|at| if at < 20 { 90 } else { 110 }, |_| 100), "worse in 16 of 20 parts");
        assert_eq!(rank(|at| if at < 50 { 90 } else { 110 }, |_| 100), "undecided: better in 10 of 20 parts");
        assert_eq!(rank(|_| 100, |_| 100), "same");
    }
}
