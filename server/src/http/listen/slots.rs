//! Connection slots: a bounded number; if none is left, the connection that has been idle longest is closed. Knows no sockets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Minimum time for the first request before a connection can be evicted.
const FIRST_REQUEST_WITHIN: Duration = Duration::from_millis(100);
/// With more idle connections than this, the one that is idle longest is evicted at once, so that new connections get a slot
/// during a flood.
const FEW: usize = 8;

/// All slots.
#[derive(Debug)]
pub(in crate::http) struct ConnectionSlots {
    most: usize,
    next: AtomicU64,
    taken: Mutex<HashMap<u64, SlotState>>,
    freed: Notify,
    /// Connections that were evicted.
    pub(in crate::http) evicted: AtomicU64,
    /// Connections rejected for lack of a slot.
    pub(in crate::http) refused: AtomicU64,
    /// Failed accepts.
    pub(in crate::http) not_accepted: AtomicU64,
}

#[derive(Debug)]
struct SlotState {
    /// Requests in progress and open WebSockets.
    busy: usize,
    /// Idle since.
    idle_since: Instant,
    end: Arc<Notify>,
}

/// A connection's slot, released when dropped.
#[derive(Debug)]
pub(in crate::http) struct ConnectionSlot {
    id: u64,
    of: Arc<ConnectionSlots>,
    end: Arc<Notify>,
    has_sent_request: AtomicBool,
}

/// Guard: the connection cannot be evicted.
#[derive(Debug)]
pub(in crate::http) struct Busy(Arc<ConnectionSlot>);

/// Guard: the connection can be evicted although a request is in progress.
#[derive(Debug)]
pub(in crate::http) struct Idle(Arc<ConnectionSlot>);

impl ConnectionSlots {
    pub(in crate::http) fn new(most: usize) -> Self {
        Self {
            most,
            next: AtomicU64::new(0),
            taken: Mutex::default(),
            freed: Notify::new(),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            not_accepted: AtomicU64::new(0),
        }
    }

    /// Open connections.
    pub(in crate::http) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Maximum connections.
    pub(in crate::http) fn most(&self) -> usize {
        self.most
    }

    /// A slot; `None` if all belong to busy connections.
    pub(in crate::http) fn take(self: &Arc<Self>) -> Option<Arc<ConnectionSlot>> {
        let mut taken = self.lock();
        if taken.len() >= self.most && !self.evict_one(&mut taken, FIRST_REQUEST_WITHIN) {
            drop(taken);
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let end = Arc::new(Notify::new());
        taken.insert(id, SlotState { busy: 0, idle_since: Instant::now(), end: Arc::clone(&end) });
        Some(Arc::new(ConnectionSlot {
            id,
            of: Arc::clone(self),
            end,
            has_sent_request: AtomicBool::new(false),
        }))
    }

    /// Closes the connection that is idle longest; false if none is idle.
    pub(super) fn evict_idle(&self) -> bool {
        self.evict_one(&mut self.lock(), Duration::ZERO)
    }

    /// Closes the connection that is idle longest; if there are few, only if it has been idle for `least`.
    fn evict_one(&self, taken: &mut HashMap<u64, SlotState>, least: Duration) -> bool {
        let idle = || taken.iter().filter(|(_, one)| one.busy == 0);
        let Some((&id, longest)) = idle().min_by_key(|(id, one)| (one.idle_since, **id)) else {
            return false;
        };
        if longest.idle_since.elapsed() < least && idle().count() <= FEW {
            return false;
        }
        if let Some(one) = taken.remove(&id) {
            one.end.notify_one();
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Waits until every connection has ended.
    pub(super) async fn all_free(&self) {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if self.lock().is_empty() {
                return;
            }
            freed.await;
        }
    }

    fn more_busy(&self, id: u64) {
        if let Some(taken) = self.lock().get_mut(&id) {
            taken.busy += 1;
        }
    }

    fn less_busy(&self, id: u64) {
        if let Some(taken) = self.lock().get_mut(&id) {
            taken.busy = taken.busy.saturating_sub(1);
            taken.idle_since = Instant::now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, SlotState>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Marks the connection as busy.
    pub(in crate::http) fn busy(self: &Arc<Self>) -> Busy {
        self.has_sent_request.store(true, Ordering::Relaxed);
        self.of.more_busy(self.id);
        Busy(Arc::clone(self))
    }

    /// Until the guard is dropped, the connection counts as idle.
    pub(in crate::http) fn idle(self: &Arc<Self>) -> Idle {
        self.of.less_busy(self.id);
        Idle(Arc::clone(self))
    }

    /// Closes the connection.
    pub(in crate::http) fn close(&self) {
        self.end.notify_one();
    }

    /// Whether it ever sent a request.
    pub(super) fn has_sent_request(&self) -> bool {
        self.has_sent_request.load(Ordering::Relaxed)
    }

    /// Waits until it is to be closed.
    pub(in crate::http) async fn ended(&self) {
        self.end.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.of.lock().remove(&self.id);
        self.of.freed.notify_waiters();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.of.less_busy(self.0.id);
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.of.more_busy(self.0.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_is_evicted_and_a_busy_one_never() {
        let slots = Arc::new(ConnectionSlots::new(2));
        let first = slots.take().unwrap();
        let working = first.busy();
        tokio::time::advance(Duration::from_secs(1)).await;
        let second = slots.take().unwrap();
        assert!(slots.take().is_none(), "the second is too new");
        tokio::time::advance(Duration::from_secs(1)).await;
        let third = slots.take().unwrap();
        second.ended().await;
        assert_eq!((slots.len(), slots.evicted.load(Ordering::Relaxed)), (2, 1));
        let _working_too = third.busy();
        assert!(slots.take().is_none());
        assert_eq!(slots.refused.load(Ordering::Relaxed), 2);
        drop(working);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(slots.take().is_some());
        first.ended().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_held_back_holds_no_place() {
        let slots = Arc::new(ConnectionSlots::new(1));
        let slot = slots.take().unwrap();
        let _answering = slot.busy();
        let idle = slot.idle();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(slots.take().is_some(), "it is evicted");
        slot.ended().await;
        drop(idle);
    }

    #[tokio::test]
    async fn a_place_is_given_back_when_the_last_who_holds_it_goes() {
        let slots = Arc::new(ConnectionSlots::new(1));
        let slot = slots.take().unwrap();
        let busy = slot.busy();
        drop(slot);
        assert_eq!(slots.len(), 1, "an open WebSocket is still a connection");
        let waiting = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.all_free().await }
        });
        tokio::task::yield_now().await;
        drop(busy);
        waiting.await.unwrap();
        assert_eq!(slots.len(), 0);
    }
}
