//! How long to wait before the next attempt: doubling, bounded, spread by chance so that viewers do not come at once.

/// First wait.
const FIRST_MS: f64 = 500.0;
/// Longest wait: an operator who repairs something looks again within that time.
const LONGEST_MS: f64 = 15_000.0;
/// Share of the wait that chance decides.
const JITTER: f64 = 0.4;

/// Attempts that failed in a row.
#[derive(Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next wait in milliseconds; `chance` is in 0 … 1.
    pub fn next_ms(&mut self, chance: f64) -> u32 {
        let full = (FIRST_MS * f64::from(1_u32 << self.attempts.min(16))).min(LONGEST_MS);
        self.attempts += 1;
        (full * (1.0 - JITTER * chance)) as u32
    }

    /// Attempts that failed in a row.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt went well.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut backoff = Backoff::default();
        let waits: Vec<u32> = (0..8).map(|_| backoff.next_ms(0.0)).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
        backoff.reset();
        assert_eq!(backoff.next_ms(0.0), 500);
    }

    #[test]
    fn chance_only_shortens() {
        let mut backoff = Backoff::default();
        assert!((300..=500).contains(&backoff.next_ms(0.999)));
    }
}
