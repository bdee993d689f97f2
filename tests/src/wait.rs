//! Waiting for a condition, never for a time. A wait that ends in vain says what was waited for, for how long, and what was there
//! instead.
//!
//! `RADIXSCOPE_TEST_WAITS` names a file that gets a line for each wait of a tenth of a second or longer.

use std::io::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long one thing is waited for: far above what a machine with two cores needs for it beside other tests. What takes longer by
/// its nature names its own bound, with [`until_within`].
static BOUND: LazyLock<Duration> =
    LazyLock::new(|| bound_of(std::env::var("NEXTEST_PROFILE").ok().as_deref()));
/// In the tests that run on each change, so that one that hangs is named soon …
const SOON: Duration = Duration::from_secs(15);
/// … and in what takes long by its nature: the tests of nextest's profile `all`, and programs that no nextest started.
const LATE: Duration = Duration::from_secs(90);
/// Least and most time between two looks …
const LOOK_AFTER: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(150)];
/// … and between them this share of what was waited already: a look costs a server or a browser as much as a person's.
const LOOK_SHARE: u32 = 8;
/// The shortest wait that is written down.
const SHORTEST_WRITTEN: Duration = Duration::from_millis(100);

/// The bound in a profile of nextest, which names it to the tests that it starts.
fn bound_of(profile: Option<&str>) -> Duration {
    match profile {
        None | Some("all") => LATE,
        Some(_) => SOON,
    }
}

/// Looks until `look` gives a value; panics with its last response when it takes longer than [`BOUND`]: 15 s in
/// the default tier, 90 s elsewhere.
pub async fn until<T>(what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
    until_within(*BOUND, what, look).await
}

/// The same for what may take longer than other things do.
pub async fn until_within<T>(
    bound: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let since = Instant::now();
    let mut last = "nothing was seen yet".to_owned();
    let found = tokio::time::timeout(bound, async {
        loop {
            match look().await {
                Ok(value) => return value,
                Err(now) => last = now,
            }
            let [least, most] = LOOK_AFTER;
            tokio::time::sleep((since.elapsed() / LOOK_SHARE).clamp(least, most)).await;
        }
    })
    .await;
    match found {
        Ok(value) => {
            write_down(what, since.elapsed());
            value
        }
        Err(_) => {
            panic!("waited {:.1} s in vain until {what}; last seen: {last}", since.elapsed().as_secs_f64())
        }
    }
}

/// `Ok` if `is`, else the words for it: for use with [`until`].
pub fn expect(is: bool, else_say: impl FnOnce() -> String) -> Result<(), String> {
    if is { Ok(()) } else { Err(else_say()) }
}

/// Waits for something that says itself when it is there.
pub async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let since = Instant::now();
    let value = at_most(happens).await.unwrap_or_else(|in_vain| panic!("{in_vain} until {what}"));
    write_down(what, since.elapsed());
    value
}

/// What happens within [`BOUND`].
///
/// # Errors
/// For how long was waited in vain.
pub async fn at_most<T>(happens: impl Future<Output = T>) -> Result<T, String> {
    let happened = tokio::time::timeout(*BOUND, happens).await;
    happened.map_err(|_| format!("waited {:.1} s in vain", BOUND.as_secs_f64()))
}

/// Notes how long a wait was, for people who look for what tests wait for.
fn write_down(what: &str, took: Duration) {
    static FILE: LazyLock<Option<std::ffi::OsString>> =
        LazyLock::new(|| std::env::var_os("RADIXSCOPE_TEST_WAITS"));
    let Some(file) = FILE.as_ref().filter(|_| took >= SHORTEST_WRITTEN) else { return };
    let thread = std::thread::current();
    let line = format!("{}\t{}\t{what}\n", took.as_millis(), thread.name().unwrap_or_default());
    let file = std::fs::File::options().create(true).append(true).open(file);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("RADIXSCOPE_TEST_WAITS names a writable file");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_tier_gives_up_soon_and_the_exhaustive_one_late() {
        assert_eq!([Some("default"), Some("all"), None].map(bound_of), [SOON, LATE, LATE]);
    }

    #[tokio::test]
    #[should_panic(expected = "in vain until it rains; last seen: sunshine")]
    async fn a_wait_in_vain_says_what_was_waited_for_and_what_was_there() {
        until_within(Duration::from_millis(1), "it rains", async || Err::<(), _>("sunshine".to_owned()))
            .await;
    }

    #[tokio::test]
    #[should_panic(expected = "in vain until it rains; last seen: nothing was seen yet")]
    async fn a_look_that_never_ends_ends_with_the_wait() {
        until_within(Duration::from_millis(1), "it rains", async || {
            std::future::pending::<Result<(), _>>().await
        })
        .await;
    }
}
