//! Numbers that a seed repeats on every machine (SplitMix64).

/// One number made another, without a pattern that is seen.
pub fn mixed(number: u64) -> u64 {
    let z = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A row of numbers.
pub struct Random(u64);

impl Random {
    /// The row of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(mixed(self.0)) * u128::from(end)) >> 64) as u64
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `n`, the second half as often as the first, the third a third as often.
    pub fn zipf(&mut self, n: usize) -> usize {
        let all: f64 = (1..=n).map(|rank| 1.0 / rank as f64).sum();
        let mut left = all * self.below(1 << 32) as f64 / (1u64 << 32) as f64;
        for rank in 1..=n {
            left -= 1.0 / rank as f64;
            if left < 0.0 {
                return rank - 1;
            }
        }
        n - 1
    }
}
