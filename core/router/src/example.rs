//! The router's arithmetic as everybody explains it: three workers, 100 blocks asked for, weight 1, lower wins.

use super::cost::{Load, Overlap, RoutedRequest, WorkerInput};
use super::settings::{Formula, RouterSettings};

/// Block size of the example, in tokens; its costs are in blocks and the same at any size.
pub const BLOCK_SIZE_TOKENS: u32 = 16;
/// Blocks asked for.
pub const ISL_BLOCKS: u64 = 100;
/// Place of the worker that is chosen among [`workers`].
pub const CHOSEN: usize = 1;
/// The costs of the three workers.
pub const COSTS: [f64; 3] = [90.0, 30.0, 99.0];

/// The options: formula A with its defaults.
pub const SETTINGS: RouterSettings = RouterSettings::new(Formula::A);

/// What is asked for.
pub const REQUEST: RoutedRequest =
    RoutedRequest::new(ISL_BLOCKS * BLOCK_SIZE_TOKENS as u64, BLOCK_SIZE_TOKENS);

/// The three workers: 20, 75 and 10 blocks cached; 10, 5 and 9 decode blocks.
pub fn workers() -> [WorkerInput; 3] {
    [(20, 10), (75, 5), (10, 9)].map(|(cached_blocks, decode_blocks)| WorkerInput {
        load: Some(Load { active_prefill_tokens: 0, decode_blocks, active_requests: 0 }),
        overlap: Overlap::device(cached_blocks),
        ..WorkerInput::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scores, score};

    #[test]
    fn the_example_everybody_knows_comes_out() {
        let mut scores = Scores::default();
        score(&SETTINGS, &REQUEST, &workers(), &mut scores);
        assert_eq!(scores.costs(), COSTS);
        assert_eq!(scores.choices().collect::<Vec<_>>(), [CHOSEN]);
        let mut ranking = Vec::new();
        scores.rank(&mut ranking);
        assert_eq!(ranking, [1, 0, 2]);
        assert_eq!(scores.cost_gap_blocks(), Some(60.0));
        let sums = workers().map(|worker| scores.terms_of(&worker).sum().to_string());
        let want = [
            "90 = 1.0 × 80 prefill + 10 decode",
            "30 = 1.0 × 25 prefill + 5 decode",
            "99 = 1.0 × 90 prefill + 9 decode",
        ];
        assert_eq!(sums, want);
    }

    /// `Formula for worker_1: 125.3 = 1.0 * 100.5 + 25.0 (cached_blocks: 15)` is often quoted, but 100.5 and 25 are
    /// 125.5. A line can look so where the weight is not exactly 1: at one decimal 0.998 prints as 1.0. So printed
    /// parts are never summed up to check or replace a printed cost.
    #[test]
    fn a_printed_line_need_not_add_up() {
        let request = RoutedRequest::new(1848, 16);
        let worker = WorkerInput {
            load: Some(Load { active_prefill_tokens: 0, decode_blocks: 25, active_requests: 0 }),
            overlap: Overlap::device(15),
            ..WorkerInput::default()
        };
        let line = |weight: f64| {
            let options = RouterSettings { overlap_score_weight: weight, ..SETTINGS };
            let mut scores = Scores::default();
            score(&options, &request, &[worker], &mut scores);
            crate::cost::tests::log_line(&scores.terms_of(&worker))
        };
        assert_eq!(line(1.0), "125.500 = 1.0 * 100.500 + 25.000");
        assert_eq!(line(0.998), "125.299 = 1.0 * 100.500 + 25.000");
    }
}
