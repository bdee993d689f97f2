//! Waits as people say them.

use std::time::Duration;

/// A wait, to half a second.
pub(super) fn seconds(wait: Duration) -> String {
    let halves = (wait.as_secs_f64() * 2.0).round();
    if halves < 2.0 { "less than 1 s".to_owned() } else { format!("{} s", halves / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_reads_well() {
        assert_eq!(seconds(Duration::from_millis(300)), "less than 1 s");
        assert_eq!(seconds(Duration::from_millis(3_700)), "3.5 s");
    }
}
