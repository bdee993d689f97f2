//! Failed logins: counts them, delays their responses, and logs summaries. Requests with the right token never come here, so
//! they are answered at once, also from the same address. Delays have a limit: an attacker can drop delayed responses and
//! reconnect. Only a long random token protects against that.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::shutdown::{Shutdown, over};

/// Failures per address without a delay: typing errors, and requests of a page with an old cookie.
const FREE_FAILURES: f64 = 10.0;
/// Failures per address that expire each second.
const DECAY_PER_S: f64 = 0.2;
/// The first delay; each further failure doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Maximum delay: longer ones look like an unresponsive server.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Maximum count per address, so that it expires within 100 s.
const MAX_FAILURES: f64 = 20.0;
/// Maximum delayed responses per address, including those whose clients have left; further connections are closed without a
/// response.
const MAX_WAITING: usize = 16;
/// Failures over all addresses from which each response is delayed by at least [`GLOBAL_DELAY`], against attacks from many
/// addresses.
const GLOBAL_LIMIT: f64 = 100.0;
/// How many of those expire each second.
const GLOBAL_DECAY_PER_S: f64 = 10.0;
/// Minimum delay then.
const GLOBAL_DELAY: Duration = Duration::from_secs(1);
/// Maximum tracked addresses (2 MiB); beyond it the one with the fewest failures is dropped.
const MAX_ADDRESSES: usize = 4096;
/// Interval of log lines.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The failed logins of a server.
#[derive(Debug, Default)]
pub(in crate::http) struct FailedLogins {
    failures: Mutex<Failures>,
    /// Requests with a wrong token or cookie.
    pub(in crate::http) total: AtomicU64,
    /// Of those, the ones without a response.
    pub(in crate::http) unanswered: AtomicU64,
}

#[derive(Debug, Default)]
struct Failures {
    addresses: HashMap<IpAddr, AddressState>,
    all: Level,
    unlogged: Unlogged,
}

#[derive(Debug, Default)]
struct AddressState {
    level: Level,
    /// When the delayed responses are due, including those whose clients have left.
    due: Vec<Instant>,
}

/// Failures since the last log line.
#[derive(Debug, Default)]
struct Unlogged {
    count: u64,
    latest: Option<IpAddr>,
    /// Whether a log line is scheduled.
    is_due: bool,
}

/// A count that decays with time.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    value: f64,
    since: Option<Instant>,
}

impl Level {
    fn now(&self, decay_per_s: f64) -> f64 {
        let decayed = self.since.map_or(0.0, |since| since.elapsed().as_secs_f64() * decay_per_s);
        (self.value - decayed).max(0.0)
    }

    fn add(&mut self, decay_per_s: f64, most: f64) -> f64 {
        *self = Self { value: (self.now(decay_per_s) + 1.0).min(most), since: Some(Instant::now()) };
        self.value
    }
}

impl FailedLogins {
    /// Counts a failure. Returns the delay of its response; `None`: too many delayed responses to this address.
    pub(super) fn count(self: &Arc<Self>, from: Option<IpAddr>, shutdown: &Shutdown) -> Option<Duration> {
        self.total.fetch_add(1, Ordering::Relaxed);
        let mut failures = self.lock();
        let global = failures.all.add(GLOBAL_DECAY_PER_S, 2.0 * GLOBAL_LIMIT);
        let least = if global > GLOBAL_LIMIT { GLOBAL_DELAY } else { Duration::ZERO };
        let delay = from.map_or(Some(Duration::ZERO), |from| failures.delay(site(from), least));
        let is_first = failures.unlogged.add(from);
        drop(failures);
        if is_first {
            self.log_later(from, shutdown.clone());
        }
        if delay.is_none() {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
        }
        delay
    }

    /// Logs the first failure at once, then a summary every [`LOG_EVERY`] until there are none.
    fn log_later(self: &Arc<Self>, first: Option<IpAddr>, mut shutdown: Shutdown) {
        log(1, first);
        let all = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let is_over = tokio::select! {
                    () = tokio::time::sleep(LOG_EVERY) => false,
                    () = over(&mut shutdown) => true,
                };
                let sum = {
                    let unlogged = &mut all.lock().unlogged;
                    let sum = std::mem::take(unlogged);
                    unlogged.is_due = sum.count > 0;
                    sum
                };
                if sum.count > 0 {
                    log(sum.count, sum.latest);
                }
                if sum.count == 0 || is_over {
                    return;
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log(count: u64, latest: Option<IpAddr>) {
    let address = latest.map(|address| address.to_string()).unwrap_or_default();
    tracing::warn!(count, address, "wrong access token; the address is that of the latest request");
}

impl Unlogged {
    /// Whether this failure is logged at once.
    fn add(&mut self, from: Option<IpAddr>) -> bool {
        if !self.is_due {
            self.is_due = true;
            return true;
        }
        self.count += 1;
        self.latest = from;
        false
    }
}

impl Failures {
    /// Counts a failure of `address`. Returns the delay, at least `least`; `None`: too many delayed responses.
    fn delay(&mut self, address: IpAddr, least: Duration) -> Option<Duration> {
        if !self.addresses.contains_key(&address) {
            self.make_room();
        }
        let of = self.addresses.entry(address).or_default();
        let over = of.level.add(DECAY_PER_S, MAX_FAILURES) - FREE_FAILURES;
        let now = Instant::now();
        of.due.retain(|due| *due > now);
        if of.due.len() >= MAX_WAITING {
            return None;
        }
        // At most 10.
        let doubled = over.ceil().max(0.0) as u32;
        let delay = doubled
            .checked_sub(1)
            .map_or(Duration::ZERO, |times| (FIRST_DELAY * (1 << times)).min(MAX_DELAY));
        let delay = delay.max(least);
        of.due.push(now + delay);
        Some(delay)
    }

    /// Drops expired addresses, at least one.
    fn make_room(&mut self) {
        if self.addresses.len() < MAX_ADDRESSES {
            return;
        }
        self.addresses.retain(|_, one| one.level.now(DECAY_PER_S) > 0.0);
        if self.addresses.len() < MAX_ADDRESSES {
            return;
        }
        let level = |one: &AddressState| one.level.now(DECAY_PER_S);
        let least = self.addresses.iter().min_by(|(_, a), (_, b)| level(a).total_cmp(&level(b)));
        if let Some(least) = least.map(|(address, _)| *address) {
            self.addresses.remove(&least);
        }
    }
}

/// An IPv4 address, or the /64 network of an IPv6 address.
fn site(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    struct Bench {
        logins: Arc<FailedLogins>,
        shutdown: Shutdown,
        _running: watch::Sender<bool>,
    }

    impl Bench {
        fn new() -> Self {
            let (running, shutdown) = watch::channel(false);
            Self { logins: Arc::default(), shutdown, _running: running }
        }

        fn delay(&self, from: &str) -> Option<Duration> {
            self.logins.count(address(from), &self.shutdown)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_failures_are_free_then_delays_double_and_time_forgives() {
        let bench = Bench::new();
        for _ in 0..10 {
            assert_eq!(bench.delay("10.0.0.1"), Some(Duration::ZERO));
        }
        let delays: Vec<u128> = (0..12).map(|_| bench.delay("10.0.0.1").unwrap().as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000, 2000, 2000, 2000]);
        assert_eq!(bench.delay("10.0.0.2"), Some(Duration::ZERO), "another address is not delayed");
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(bench.delay("10.0.0.1"), Some(Duration::ZERO), "forgiven");
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_responses_to_an_address_wait() {
        let bench = Bench::new();
        let mut counted = 0;
        while bench.delay("2001:db8::1").is_some() {
            counted += 1;
        }
        assert_eq!(counted, 10 + MAX_WAITING, "those that are free do not wait");
        assert!(bench.delay("2001:db8::ffff:1").is_none(), "nor another address of the same network");
        assert!(bench.delay("10.0.0.2").is_some());
        assert_eq!(bench.logins.unanswered.load(Ordering::Relaxed), 2);
        tokio::time::advance(MAX_DELAY).await;
        assert!(bench.delay("2001:db8::1").is_some(), "they were sent");
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_with_few_failures_each_wait_too_and_take_bounded_memory() {
        let bench = Bench::new();
        let mut last = Some(Duration::ZERO);
        for number in 0..(MAX_ADDRESSES as u32 + 100) {
            last = bench.delay(&IpAddr::from(std::net::Ipv4Addr::from_bits(number)).to_string());
        }
        assert_eq!(last, Some(GLOBAL_DELAY));
        assert_eq!(bench.logins.lock().addresses.len(), MAX_ADDRESSES);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(bench.delay("99.0.0.1"), Some(Duration::ZERO), "forgiven");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_summed_in_the_log() {
        let bench = Bench::new();
        for _ in 0..1_000 {
            bench.delay("10.0.0.1");
        }
        let unlogged = || {
            let failures = bench.logins.lock();
            (failures.unlogged.is_due, failures.unlogged.count)
        };
        assert_eq!(unlogged(), (true, 999), "the first is logged at once");
        tokio::time::sleep(LOG_EVERY + Duration::from_secs(1)).await;
        assert_eq!(unlogged(), (true, 0), "their sum is logged");
        tokio::time::sleep(LOG_EVERY).await;
        assert_eq!(unlogged(), (false, 0), "the next failure is logged at once again");
    }
}
