//! Limits for reading discovery, the same for every store. They hold whatever a store sends.

use std::time::Duration;

pub(super) use radixscope_dynamo::discovery::MAX_ENTRIES;
use radixscope_model::number_format::digits;
use tokio::time::Instant;

/// Most bytes of their keys and values together. An entry has 660 on average: these are 38,000.
pub(super) const MAX_HELD_BYTES: usize = 24 * 1024 * 1024;
/// Longest value. The longest of Dynamo's are model cards, of 2 kB.
pub(super) const MAX_VALUE_BYTES: usize = 64 * 1024;
/// Longest key. Dynamo's have about a hundred bytes.
pub(super) const MAX_KEY_BYTES: usize = 1024;
/// Most skipped keys that are held, as sums, so that each is counted once.
pub(super) const MAX_SKIPPED: usize = 100_000;
/// Largest object of Kubernetes: its API takes none of more than 1.5 MiB.
#[cfg(feature = "kubernetes")]
pub(super) const MAX_OBJECT_BYTES: usize = 2 * 1024 * 1024;
/// Most that is read for one list of everything: ten times what may be held, Base64 and the store's own fields included, so that
/// what others keep under the same keys is passed over and not in the way.
const MAX_PASS_BYTES: u64 = 256 * 1024 * 1024;
/// Timeout of such a list.
const PASS_WITHIN: Duration = Duration::from_secs(60);

/// The remaining budget of one list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    left_bytes: u64,
    until: Instant,
}

impl Pass {
    pub(super) fn begin() -> Self {
        Self { left_bytes: MAX_PASS_BYTES, until: Instant::now() + PASS_WITHIN }
    }

    pub(super) fn took(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
    }

    /// Cuts the list.
    pub(super) fn end(&mut self) {
        if Instant::now() < self.until {
            self.left_bytes = 0;
        }
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    pub(super) fn is_over(&self) -> bool {
        self.left_bytes == 0 || Instant::now() >= self.until
    }

    /// Describes why a list was cut.
    pub(super) fn to_text(self) -> String {
        let by = match self.left_bytes {
            0 => "256 MiB".to_owned(),
            _ => format!("{} s", PASS_WITHIN.as_secs()),
        };
        format!("The list was cut after {by}: entries may be missing")
    }
}

/// A number of bytes as text.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", digits(bytes as f64 / 1e3)),
        _ => format!("{} MB", digits((bytes as f64 / 1e5).round() / 10.0)),
    }
}

/// A limit in bytes as text.
pub(super) fn bound(bytes: usize) -> String {
    const MIB: usize = 1024 * 1024;
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / 1024) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(
            [17, 1_500, 99_300, 1_400_321, 40_000_000].map(size),
            ["17 B", "1.5 kB", "99.3 kB", "1.4 MB", "40 MB"]
        );
        assert_eq!(
            [MAX_KEY_BYTES, MAX_VALUE_BYTES, MAX_HELD_BYTES].map(bound),
            ["1 KiB", "64 KiB", "24 MiB"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_over_by_bytes_or_by_time() {
        let mut pass = Pass::begin();
        pass.took(MAX_PASS_BYTES - 1);
        assert!(!pass.is_over());
        tokio::time::advance(PASS_WITHIN).await;
        assert!(pass.is_over() && pass.to_text().contains("after 60 s"), "{}", pass.to_text());
        pass.took(5);
        assert!(pass.to_text().contains("after 256 MiB"), "{}", pass.to_text());
    }
}
