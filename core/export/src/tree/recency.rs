//! The scale of last use: from a second to the age of the oldest blocks there are, so that its whole length is in use.
//! Page and picture share it.

use radixscope_state::cluster::TOUCH_MS;
use radixscope_state::tree::forest::Forest;

/// Ages up to here are the bright end.
pub const NEWEST_MS: u64 = 1_000;
/// Where the scale may end. Steps, so that colours change rarely; ages beyond the last one are at the dark end too.
const ENDS_S: [u64; 12] = [10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400];

/// Where the scale ends for blocks that were last used so long ago at most, in milliseconds.
pub fn end_ms(oldest_age_ms: u64) -> u64 {
    let seconds = oldest_age_ms.div_ceil(1_000);
    let [.., last] = ENDS_S;
    ENDS_S.into_iter().find(|&end| end >= seconds).unwrap_or(last) * 1_000
}

/// Age of the box that was not used for the longest time, in milliseconds; `now` as the tree keeps times.
pub fn oldest_age_ms(forest: &Forest, now: u32) -> u64 {
    // A box was used when anything below it was: the oldest one has nothing below.
    let mut open = forest.children(None).to_vec();
    let mut oldest = now;
    while let Some(id) = open.pop() {
        match forest.children(Some(id)) {
            [] => oldest = oldest.min(forest.chain(id).sums.touched),
            below => open.extend_from_slice(below),
        }
    }
    u64::from(now - oldest) * TOUCH_MS
}

/// Where an age stands, 0: `end_ms` or older, 1: newest; equal ratios are equally far apart.
pub fn share(age_ms: u64, end_ms: u64) -> f64 {
    let ratio = |ms: u64| (ms.max(NEWEST_MS) as f64 / NEWEST_MS as f64).ln();
    1.0 - (ratio(age_ms) / ratio(end_ms).max(f64::MIN_POSITIVE)).min(1.0)
}

/// The dark end in words.
pub fn end_to_text(end_ms: u64) -> String {
    match end_ms / 1_000 {
        s @ ..60 => format!("{s} s ago"),
        s @ 60..3_600 => format!("{} min ago", s / 60),
        s => format!("{} h ago", s / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{BlockHash, Slot, TokensHash};
    use radixscope_model::record::Block;
    use radixscope_state::tree::Tree;
    use radixscope_state::tree::forest::Arrangement;

    #[test]
    fn the_scale_ends_at_the_step_above_the_oldest_block() {
        assert_eq!(
            [0, 10_000, 10_001, 290_000, u64::MAX].map(end_ms),
            [10_000, 10_000, 30_000, 300_000, 86_400_000]
        );
        assert_eq!([10_000, 300_000, 7_200_000].map(end_to_text), ["10 s ago", "5 min ago", "2 h ago"]);
    }

    #[test]
    fn a_second_is_bright_and_the_end_is_dark() {
        assert_eq!([share(0, 300_000), share(NEWEST_MS, 300_000)], [1.0, 1.0]);
        assert_eq!([share(300_000, 300_000), share(9_000_000, 300_000)], [0.0, 0.0]);
        assert!((share(60_000, 3_600_000) - 0.5).abs() < 1e-9, "a minute is half way to an hour");
    }

    #[test]
    fn the_oldest_box_is_found_below_one_that_was_used_since() {
        let mut tree = Tree::default();
        let blocks = |tokens: &[u64]| -> Vec<Block> {
            tokens.iter().map(|&t| Block { block_hash: BlockHash(t), tokens_hash: TokensHash(t) }).collect()
        };
        tree.store(Slot(0), None, &blocks(&[1, 2]), 50);
        tree.store(Slot(0), None, &blocks(&[1, 3]), 90);
        let forest = Forest::of(&tree, Arrangement::default());
        assert_eq!(oldest_age_ms(&forest, 100), 50 * TOUCH_MS);
    }
}
