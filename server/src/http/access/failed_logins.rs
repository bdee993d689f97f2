//! Failed logins: counts them, says how long each response waits, and logs sums. It never sees a request with the right
//! token, so those are answered at once whatever others try, also from the same address.
//!
//! That also bounds what delays can do: whoever stops waiting for late responses and connects anew can still guess. Only a
//! long random token is safe from that.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::shutdown::{Shutdown, over};

/// Failures of an address that are answered at once: typing errors, and the requests of a page with an old cookie.
const FREE_FAILURES: f64 = 10.0;
/// Failures of an address that are forgiven each second.
const DECAY_PER_S: f64 = 0.2;
/// The first delay; each further failure doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Longest delay: beyond it people take the server for dead.
const MAX_DELAY: Duration = Duration::from_secs(2);
/// Failures of an address are counted up to here, so that it is forgiven within 100 s.
const MAX_FAILURES: f64 = 20.0;
/// Responses to one address that wait at a time, be its clients gone or not; further requests get none and their connections are
/// closed.
const MAX_WAITING: usize = 16;
/// Failures of all addresses together from which each response waits at least [`GLOBAL_DELAY`]: many addresses with few failures
/// each.
const GLOBAL_LIMIT: f64 = 100.0;
/// How many of those are forgiven each second.
const GLOBAL_DECAY_PER_S: f64 = 10.0;
/// Shortest delay then.
const GLOBAL_DELAY: Duration = Duration::from_secs(1);
/// Addresses whose failures are counted, at most 2 MiB; beyond it the one with the fewest is forgotten.
const MAX_ADDRESSES: usize = 4096;
/// Time between two lines of the log.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The failed logins of a server.
#[derive(Debug, Default)]
pub(in crate::http) struct FailedLogins {
    failures: Mutex<Failures>,
    /// Requests with a wrong token or cookie.
    pub(in crate::http) total: AtomicU64,
    /// Those of them that got no response.
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
    /// When the responses are due that wait, also those whose clients have left.
    due: Vec<Instant>,
}

/// What the next line of the log says.
#[derive(Debug, Default)]
struct Unlogged {
    count: u64,
    latest: Option<IpAddr>,
    /// Whether somebody waits to log it.
    is_due: bool,
}

/// A count that falls with time.
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
    /// Counts a failure. How long its response waits; `None`: too many responses to this address wait already.
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

    /// Logs the first failure at once and the sum of those that follow every [`LOG_EVERY`], until there are none.
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
    tracing::warn!(count, address, "requests with a wrong access token; the address is that of the latest");
}

impl Unlogged {
    /// Whether nothing was due before, so that this failure is logged at once.
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
    /// Counts a failure of `address`, whose response waits, `least` at least. `None`: there are too many.
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

    /// Forgets the addresses that are forgiven, or at least one.
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

/// An IPv4 address, or the first half of an IPv6 address: whoever has one has 2^64 of the other half.
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
