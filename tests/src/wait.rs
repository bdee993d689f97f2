//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: far above what a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until `look` gives a value; panics with its last answer when it takes too long.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let since = Instant::now();
    loop {
        match look().await {
            Ok(value) => return value,
            Err(now) => {
                assert!(since.elapsed() < PATIENCE, "gave up waiting until {what}; at last: {now}")
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// `Ok` if `is`, else the words for it: for use with [`until`].
pub fn expect(is: bool, else_say: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(else_say()) }
}

/// Waits for something that says itself when it is there.
pub async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, happens).await.unwrap_or_else(|_| panic!("gave up waiting until {what}"))
}
