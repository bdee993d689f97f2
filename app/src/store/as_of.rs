//! Whether what is shown is current, and if not, as of when: the one fact that panels, notices and style sheets go by.
//! Knows no panel.
//!
//! # How it works
//!
//! Whether figures are current is one fact of the store, `as_of(feed)`: the server's clock in the last frame while no
//! frame comes, and the last message of the source while the server's link to it is down. Panels' heads, the status
//! bar and the notices read it; an attribute of the page lets the style sheet grey what is old. Ages are counted on
//! by the page's own clock; windows of figures end with the last frame. Rates are known of the seconds in which a
//! source of KV events was connected, and of history from its first event on; of all others they are unknown, not 0.

use leptos::prelude::*;
pub use radixscope_insight::feed::Feed;
use radixscope_model::id::Millis;

use crate::time_zone::TimeZone;

use super::{Link, Store, TrackUntilDropped as _, clock};

/// How often the page looks at its own clock while no frame comes, so that ages count on.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

impl Store {
    /// When figures of `feed` were last current; `None`: they are. Tracked.
    pub fn as_of(self, feed: Feed) -> Option<Millis> {
        if self.is_lost() {
            self.beat.track_until_dropped();
            return Some(self.received_ms());
        }
        self.on_beat(|cluster| feed.down_since(cluster.sources()))
    }

    /// Whether a state is there to which nothing is added now: the server does not respond. Tracked.
    pub fn is_lost(self) -> bool {
        // What was is not changed by who answers now.
        if self.at.get_until_dropped() != 0 {
            return false;
        }
        let is_current = self.link.get_until_dropped() == Link::Live && !self.stale.get_until_dropped();
        self.ready.get_until_dropped() && !is_current
    }

    /// The server's clock in the last frame, or the moment looked back to: the end of every window that figures are taken over.
    pub fn received_ms(self) -> Millis {
        self.live.with_value(|live| live.shown().now_ms.max(live.shown().cluster.now_ms()))
    }

    /// The time that ages are counted to: the server's clock, which the page's own clock continues while no frame comes.
    pub fn now_ms(self) -> Millis {
        let since = untrack(|| self.is_lost()).then(|| self.live.with_value(|live| live.received_at_ms));
        let past = since.map_or(0.0, |since| (clock::now_ms() - since).max(0.0));
        Millis(self.received_ms().0.saturating_add(past as u64))
    }

    /// Lets ages count on while no frame comes, as long as the page is there.
    pub(crate) fn keep_time(self) {
        let tick = move || {
            // Of the past too: what widgets put off until later has to come then.
            if untrack(|| self.is_lost() || self.at.get() != 0) {
                self.changed();
            }
        };
        if let Ok(ticking) = set_interval_with_handle(tick, TICK) {
            on_cleanup(move || ticking.clear());
        }
    }
}

thread_local! {
    /// It does not change while the page is open often enough to matter.
    static ZONE: TimeZone = TimeZone(js_sys::Date::new_0().get_timezone_offset() as i64 * -60_000);
}

/// The page's time zone.
pub fn zone() -> TimeZone {
    ZONE.with(|zone| *zone)
}

/// Time of day of `at` by the page's time zone.
pub fn time_of_day(at: Millis) -> String {
    zone().time_of_day(at)
}
