//! Percentiles by nearest rank: the smallest value that at least so many of 100 do not exceed.

/// Index of a percentile among `len` values that ascend; `None` of none.
pub fn index(len: usize, percent: usize) -> Option<usize> {
    let last = len.checked_sub(1)?;
    Some((len * percent).div_ceil(100).saturating_sub(1).min(last))
}

/// A percentile of values that ascend; `None` of none.
pub fn nearest_rank<T: Copy>(ascending: &[T], percent: usize) -> Option<T> {
    ascending.get(index(ascending.len(), percent)?).copied()
}

#[cfg(test)]
mod tests {
    use super::nearest_rank;

    #[test]
    fn the_nearest_rank_is_a_value_of_the_sample() {
        let values: Vec<u32> = (1..=20).collect();
        assert_eq!(
            [0, 50, 95, 96, 100].map(|percent| nearest_rank(&values, percent)),
            [1, 10, 19, 20, 20].map(Some)
        );
        assert_eq!(nearest_rank(&[3], 50), Some(3));
        assert_eq!(nearest_rank::<u32>(&[], 50), None);
    }
}
