//! Who may send now. While the target does not answer, one request at a time is tried, after ever longer waits; when one is answered, the
//! users return over a few seconds. So it is neither stormed while it is down nor when it is back. Knows no requests.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::source::{doubled, with_jitter};
use crate::time::random;

/// How long who waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waits {
    /// Before the first try, doubled with each.
    pub(super) first: Duration,
    /// Longest between tries.
    pub(super) longest: Duration,
    /// Over which users return.
    pub(super) return_within: Duration,
    /// How often it is looked whether there is something new to report.
    pub(super) look_every: Duration,
}

impl Waits {
    pub(super) const USUAL: Self = Self {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(10),
        return_within: Duration::from_secs(4),
        look_every: Duration::from_millis(500),
    };

    /// After so many failures in a row.
    pub(super) fn after(self, failures: u32) -> Duration {
        with_jitter(doubled(self.first, failures, self.longest))
    }
}

/// Requests refused one after the other, none answered between: the target is up and takes none.
const REFUSED_IN_A_ROW: u32 = 8;

/// The gate that all users share. At first it is closed: the first request shows whether there is anything.
pub(super) struct Gate {
    waits: Waits,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open { refused: u32 },
    Closed { tries: u32, next: Instant, is_trying: bool },
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It was answered.
    Answered,
    /// The target is there and did not answer it.
    Refused,
    /// The target is not there, or broke off.
    Unreachable,
}

/// Leave to send one request.
pub(super) struct Pass<'g> {
    gate: &'g Gate,
    is_try: bool,
}

impl Gate {
    pub(super) fn new(waits: Waits) -> Self {
        let state = State::Closed { tries: 0, next: Instant::now(), is_trying: false };
        Self { waits, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Whether anyone may send.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.lock(), State::Open { .. })
    }

    /// Waits for leave to send.
    pub(super) async fn pass(&self) -> Pass<'_> {
        let mut has_waited = false;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let seen = {
                let mut state = self.lock();
                match &mut *state {
                    State::Open { .. } if !has_waited => return Pass { gate: self, is_try: false },
                    State::Closed { next, is_trying, .. } if !*is_trying && *next <= Instant::now() => {
                        *is_trying = true;
                        return Pass { gate: self, is_try: true };
                    }
                    state => *state,
                }
            };
            match seen {
                State::Open { .. } => {
                    tokio::time::sleep(self.waits.return_within.mul_f64((random() % 1_000) as f64 / 1_000.0))
                        .await;
                    has_waited = false;
                }
                State::Closed { is_trying: true, .. } => {
                    changed.await;
                    has_waited = true;
                }
                State::Closed { next, .. } => {
                    let _ = tokio::time::timeout_at(next, changed).await;
                    has_waited = true;
                }
            }
        }
    }

    fn change(&self, is_try: bool, verdict: Option<Verdict>) {
        let mut state = self.lock();
        let closed = |tries| {
            let next = Instant::now() + self.waits.after(tries);
            State::Closed { tries, next, is_trying: false }
        };
        let new = match (*state, verdict) {
            (State::Closed { .. }, Some(Verdict::Answered)) if is_try => State::Open { refused: 0 },
            (State::Closed { tries, .. }, Some(_)) if is_try => closed(tries.saturating_add(1)),
            (State::Closed { tries, next, .. }, None) if is_try => {
                State::Closed { tries, next, is_trying: false }
            }
            (State::Open { .. }, Some(Verdict::Answered)) => State::Open { refused: 0 },
            (State::Open { .. }, Some(Verdict::Unreachable)) => closed(0),
            (State::Open { refused }, Some(Verdict::Refused)) => match refused + 1 {
                REFUSED_IN_A_ROW => closed(0),
                refused => State::Open { refused },
            },
            // Those that were under way when it closed say nothing new.
            (same, _) => same,
        };
        *state = new;
        drop(state);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// What became of the request. Dropped without it, a try is another user's.
    pub(super) fn report(mut self, verdict: Verdict) {
        self.gate.change(self.is_try, Some(verdict));
        self.is_try = false;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.is_try {
            self.gate.change(true, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    /// Users who send without rest for `run_for`; `is_up` says what becomes of a request at a time since the start. When each was sent.
    async fn sent(
        users: usize,
        run_for: Duration,
        is_up: impl Fn(Duration) -> bool + Send + Sync + 'static,
    ) -> Vec<Duration> {
        let (gate, is_up) = (Arc::new(Gate::new(Waits::USUAL)), Arc::new(is_up));
        let begin = Instant::now();
        let over = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut all = JoinSet::new();
        for _ in 0..users {
            let (gate, is_up, over, sent) = (gate.clone(), is_up.clone(), over.clone(), sent.clone());
            all.spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let pass = gate.pass().await;
                    let at = begin.elapsed();
                    sent.lock().unwrap().push(at);
                    let verdict = if is_up(at) { Verdict::Answered } else { Verdict::Unreachable };
                    tokio::time::sleep(Duration::from_millis(if verdict == Verdict::Answered {
                        1_000
                    } else {
                        1
                    }))
                    .await;
                    pass.report(verdict);
                }
            });
        }
        tokio::time::sleep(run_for).await;
        over.store(true, Ordering::Relaxed);
        all.shutdown().await;
        Arc::into_inner(sent).unwrap().into_inner().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_is_down_is_tried_once_at_a_time_and_not_stormed_when_it_is_back() {
        let second = Duration::from_secs(1);
        let down = 20 * second..80 * second;
        let is_up = {
            let down = down.clone();
            move |at: Duration| !down.contains(&at)
        };
        let sent = sent(200, 120 * second, is_up).await;
        let between =
            |from: Duration, until: Duration| sent.iter().filter(|at| (from..until).contains(*at)).count();
        assert_eq!(between(Duration::ZERO, second), 1, "the first request goes alone");
        // Users had one request each under way when it went down.
        let when_it_went = between(down.start, down.start + 2 * second);
        assert!(when_it_went <= 205, "{when_it_went}");
        // Waits of 4 and 8 seconds and then 10, each up to a quarter longer or shorter.
        let tries = between(down.start + 2 * second, down.end);
        assert!((4..=11).contains(&tries), "{tries}");
        let answered = *sent.iter().find(|at| **at >= down.end).expect("a try") + second;
        assert!(answered <= down.end + 14 * second, "{answered:?}");
        assert_eq!(between(down.end, answered), 1, "the try goes alone");
        let all_return_within = answered + Waits::USUAL.return_within;
        let first = between(answered, answered + second);
        assert!(first < 100, "returned over some seconds, not at once: {first}");
        let after = between(all_return_within, all_return_within + second);
        assert!((190..=200).contains(&after), "all are back, each with one request a second: {after}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_that_refuses_everything_is_tried_once_at_a_time() {
        let gate = Gate::new(Waits::USUAL);
        gate.pass().await.report(Verdict::Answered);
        for _ in 1..REFUSED_IN_A_ROW {
            gate.pass().await.report(Verdict::Refused);
        }
        assert!(gate.is_open(), "some failures are those of their requests");
        gate.pass().await.report(Verdict::Answered);
        for _ in 0..REFUSED_IN_A_ROW {
            gate.pass().await.report(Verdict::Refused);
        }
        assert!(!gate.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_is_given_up_is_the_next_users() {
        let gate = Gate::new(Waits::USUAL);
        drop(gate.pass().await);
        gate.pass().await.report(Verdict::Answered);
        assert!(gate.is_open());
    }
}
