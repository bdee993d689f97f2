//! Looking back: another moment is shown in the place of the present, which goes on beside it. Knows no widget.
//!
//! What the server keeps comes in segments, fetched when a moment of them is requested, up to that moment. The latest moment
//! requested wins; until it is there the one before stays. Play is nothing but asking for later and later moments. While the
//! pointer moves along the timeline keyframes alone are fetched, and the one that came last is shown; the moment itself once
//! the pointer rests.

use std::time::Duration;

use leptos::prelude::*;
use radixscope_model::id::{Millis, Seq};
use radixscope_panels::timeline::{nearest, next_mark, nothing_retained, played, stepped};

use super::{Live, MomentState, Store, now_ms, zone};
use crate::format;
use crate::net;
use crate::past::{HistorySegment, StepTarget};

/// Most bytes of segments that are cached here; the one shown always is.
const MOST_BYTES: usize = 64 << 20;
/// Shortest time between two moments while it plays: more cannot be distinguished.
const PLAY_EVERY_MS: f64 = 60.0;
/// A moment that stands so long is what address and digest speak of.
const DEBOUNCE: Duration = Duration::from_millis(250);
/// Up to here a segment is its keyframe …
const KEYFRAME_ALONE: Millis = Millis(0);
/// … and up to here all of it.
const TO_ITS_END: Millis = Millis(u64::MAX);

/// Segments that were fetched, the one used last at the end.
#[derive(Default)]
pub(super) struct SegmentCache {
    segments: Vec<HistorySegment>,
    is_fetching: bool,
    /// Whether the next frame looks which moment is requested.
    is_due: bool,
    is_debouncing: bool,
    /// The pointer moves along the timeline: a moment nearby is shown at once.
    is_dragged: bool,
    /// The keyframe that came last, where it was not shown yet.
    come: Option<Millis>,
    /// When the page played last.
    played_at_ms: f64,
}

impl SegmentCache {
    /// Whether the state shown is of the segment used last.
    fn is_shown(&self) -> bool {
        self.segments.last().is_some_and(HistorySegment::is_shown)
    }

    fn add(&mut self, new: HistorySegment) {
        let known = self.segments.iter().position(|known| known.from_ms == new.from_ms);
        if new.is_whole() {
            known.map(|at| self.segments.remove(at));
            // The state shown becomes the new one's.
            if let Some(last) = self.segments.last_mut() {
                last.detach();
            }
            self.segments.push(new);
        } else if let Some(at) = known
            && self.segments[at].extend(&new).is_err()
        {
            // It is fetched as a whole.
            self.segments.remove(at);
        }
        while self.segments.len() > 1
            && self.segments.iter().map(HistorySegment::len_bytes).sum::<usize>() > MOST_BYTES
        {
            self.segments.remove(0);
        }
    }
}

/// What is missing to show a moment.
enum Missing {
    /// Everything behind this record; `None`: the whole segment.
    After(Option<Seq>),
    /// It cannot be shown, as text.
    Unreadable(String),
}

impl Live {
    /// The segment of `at`, which has all that led to it, made the one used last.
    fn segment(&mut self, at: Millis) -> Result<&mut HistorySegment, Missing> {
        let begin = self.history.place(at).and_then(|place| self.history.segments.get(place)).copied();
        let segments = &mut self.fetched.segments;
        let Some(known) = segments.iter().position(|known| Some(known.from_ms) == begin) else {
            return Err(Missing::After(None));
        };
        if known + 1 < segments.len() {
            if let Some(last) = segments.last_mut() {
                last.detach();
            }
            let segment = segments.remove(known);
            segments.push(segment);
        }
        match segments.last_mut() {
            Some(segment) if segment.known_to_ms >= at => Ok(segment),
            segment => Err(Missing::After(segment.map(|segment| segment.last_seq()))),
        }
    }

    /// What is here and nearest to a moment that is not.
    fn near(&mut self, at: Millis) -> Option<Millis> {
        match self.segment(at) {
            Err(Missing::After(Some(_))) => self.fetched.segments.last().map(|segment| segment.known_to_ms),
            _ => self.fetched.come.take(),
        }
    }

    /// What is to be fetched of the segment of a moment: behind a record, where one is given, and up to a time. `None`: nothing.
    fn wanted(&mut self, at: Millis, is_playing: bool) -> Option<(Option<Seq>, Millis)> {
        // Who went back to the present meanwhile needs nothing.
        self.past.as_ref()?;
        let Err(Missing::After(after)) = self.segment(at) else { return None };
        match after {
            None if self.fetched.is_dragged => Some((None, KEYFRAME_ALONE)),
            // Who plays on needs the rest at once.
            None if !is_playing => Some((None, at)),
            // A pointer that moves within the segment shown comes to its moments too.
            Some(_) if self.fetched.is_dragged && !self.fetched.is_shown() => None,
            after => Some((after, TO_ITS_END)),
        }
    }

    fn seek(&mut self, at: Millis) -> Result<(), Missing> {
        let mut past = self.past.take().unwrap_or_default();
        let done = match self.segment(at) {
            Ok(segment) => segment.seek(&mut past.cluster, at).map_err(Missing::Unreadable),
            Err(missing) => Err(missing),
        };
        if let Ok(is_replaced) = done {
            past.now_ms = at;
            past.digest = None;
            if is_replaced {
                self.paused_tree.renew();
            }
        }
        self.past = Some(past);
        done.map(drop)
    }
}

impl Store {
    /// Shows the moment `at`, or the nearest one that is retained.
    pub fn go(self, at: Millis) {
        self.ask_for(at, false);
    }

    /// The same while the pointer moves: what is nearby is shown until it rests.
    pub fn drag(self, at: Millis) {
        self.ask_for(at, true);
    }

    /// The pointer rests, or is gone.
    pub fn rest(self) {
        let was_dragged =
            self.live.try_update_value(|live| std::mem::take(&mut live.fetched.is_dragged)) == Some(true);
        if was_dragged {
            self.seek();
        }
    }

    fn ask_for(self, at: Millis, is_dragged: bool) {
        let Some(span) = self.history_span() else { return };
        let (shown, fault) = nearest(at, span, zone());
        self.set_fault(fault);
        self.hold();
        self.live.update_value(|live| live.fetched.is_dragged = is_dragged);
        self.at.set(shown.0);
        self.seek_soon();
    }

    /// Time of the past state that is shown, Unix milliseconds; 0: the present is. It follows [`Store::at`] as soon as what it
    /// needs is here. Not tracked.
    pub fn past_ms(self) -> u64 {
        self.live.with_value(|live| live.past.as_ref().map_or(0, |past| past.now_ms.0))
    }

    /// Holds the moment that is shown, live or not.
    pub fn pause(self) {
        self.speed.set(0);
        if self.at.get_untracked() == 0 {
            let now = self.received_ms();
            self.hold();
            self.at.set(now.0);
        }
        self.debounce();
    }

    /// Plays on from the moment shown, or stops; what is live stops.
    pub fn play_or_pause(self, speed: u32) {
        if self.at.get_untracked() == 0 || self.speed.get_untracked() != 0 {
            self.pause();
        } else {
            self.play(speed);
        }
    }

    /// Plays on at `speed` quarters of real time.
    pub fn play(self, speed: u32) {
        let was = self.speed.get_untracked();
        self.speed.set(speed);
        if was == 0 && self.at.get_untracked() != 0 {
            self.live.update_value(|live| live.fetched.played_at_ms = now_ms());
            request_animation_frame(move || self.play_on());
        }
    }

    fn play_on(self) {
        let (at, speed) = (self.at.get_untracked(), self.speed.get_untracked());
        if at == 0 || speed == 0 {
            return;
        }
        request_animation_frame(move || self.play_on());
        let now = now_ms();
        let passed = self.live.with_value(|live| now - live.fetched.played_at_ms);
        if passed < PLAY_EVERY_MS {
            return;
        }
        self.live.update_value(|live| live.fetched.played_at_ms = now);
        if self.past_waits.get_untracked() {
            return;
        }
        match played(Millis(at), passed, speed, self.history_span()) {
            Some(at) => {
                self.at.set(at.0);
                self.seek();
            }
            None => self.back_to_live(),
        }
    }

    /// Shows the present again.
    pub fn back_to_live(self) {
        self.live.update_value(|live| {
            live.past = None;
            live.paused_tree.end();
            live.fetched.segments.clear();
            live.fetched.is_dragged = false;
        });
        self.speed.set(0);
        self.past_waits.set(false);
        self.set_fault(String::new());
        self.at.set(0);
        self.debounced_at.set(0);
        self.beat_now();
        self.changed();
    }

    /// The present goes on beside what is shown.
    fn hold(self) {
        self.live.update_value(|live| {
            if live.past.is_none() {
                let MomentState { cluster, now_ms, digest } = &mut live.present;
                cluster.drop_forest();
                let now_ms = (*now_ms).max(cluster.now_ms());
                live.past =
                    Some(MomentState { cluster: cluster.copy_without_forests(), now_ms, digest: *digest });
                live.paused_tree.end();
            }
        });
    }

    fn set_fault(self, fault: String) {
        if self.past_fault.with_untracked(|before| *before != fault) {
            self.past_fault.set(fault);
        }
    }

    fn seek_soon(self) {
        let was_requested =
            self.live.try_update_value(|live| std::mem::replace(&mut live.fetched.is_due, true));
        if was_requested == Some(false) {
            request_animation_frame(move || self.seek());
        }
    }

    /// Shows the moment that is requested, if it is here; else fetches it.
    fn seek(self) {
        let at = Millis(self.at.get_untracked());
        let done = self.live.try_update_value(|live| {
            live.fetched.is_due = false;
            (at.0 != 0).then(|| live.seek(at))
        });
        let waits = match done.flatten() {
            None => return,
            Some(Ok(())) => {
                self.changed();
                if self.speed.get_untracked() == 0 {
                    self.debounce();
                }
                false
            }
            Some(Err(Missing::Unreadable(why))) => {
                self.fail(&why);
                false
            }
            Some(Err(Missing::After(_))) => {
                let (is_fetching, is_dragged) =
                    self.live.with_value(|live| (live.fetched.is_fetching, live.fetched.is_dragged));
                if !is_fetching {
                    leptos::task::spawn_local(async move {
                        match self.fetch_requested().await {
                            Ok(()) => self.seek(),
                            Err(why) => self.fail(&why),
                        }
                    });
                }
                if is_dragged {
                    let near = |live: &mut Live| live.near(at).is_some_and(|near| live.seek(near).is_ok());
                    if self.live.try_update_value(near) == Some(true) {
                        self.changed();
                    }
                    self.debounce();
                }
                true
            }
        };
        if self.past_waits.get_untracked() != waits {
            self.past_waits.set(waits);
        }
    }

    /// The moment that is shown stays; not reported if the reader went back to the present meanwhile.
    fn fail(self, why: &str) {
        let shown = self.past_ms();
        if shown == 0 {
            return;
        }
        self.speed.set(0);
        self.past_waits.set(false);
        self.set_fault(format!("That moment cannot be shown: {why}"));
        self.at.set(shown);
    }

    /// Fetches what the moment requested needs, whichever that is meanwhile.
    async fn fetch_requested(self) -> Result<(), String> {
        loop {
            let (at, is_playing) = (Millis(self.at.get_untracked()), self.speed.get_untracked() != 0);
            let wanted = self.live.try_update_value(|live| live.wanted(at, is_playing));
            let Some((after, until)) = wanted.flatten() else { return Ok(()) };
            self.fetch(at, after, until).await?;
            if self.live.with_value(|live| live.fetched.is_dragged) {
                // In the next frame, once the next one is requested.
                self.seek_soon();
            }
        }
    }

    /// Fetches the segment of `at`, or what is behind a record of it, up to a time.
    async fn fetch(self, at: Millis, after: Option<Seq>, until: Millis) -> Result<(), String> {
        let known_to = self.history_span().map_or(at, |span| span.until.max(at)).min(until);
        let after = after.map_or(String::new(), |after| format!("&after={}", after.0));
        let [time, end] = [at, until].map(|at| at.0.to_string());
        let address = format!("history/segment?at_ms={time}&until_ms={end}{after}");
        self.live.update_value(|live| live.fetched.is_fetching = true);
        let come = net::past::bytes(&address).await;
        self.live.update_value(|live| live.fetched.is_fetching = false);
        let new = HistorySegment::open(come?, known_to)?;
        self.live.update_value(|live| {
            live.history.begins(new.from_ms);
            live.fetched.come = live.fetched.is_dragged.then_some(new.from_ms);
            live.fetched.add(new);
        });
        Ok(())
    }

    /// Steps to the next moment on one side that brought what is looked for; segments are fetched until it is found.
    pub fn step(self, is_forward: bool, step: StepTarget) {
        self.pause();
        leptos::task::spawn_local(async move {
            let at = Millis(self.at.get_untracked());
            let found = self.find(at, is_forward, step).await;
            // Another moment may have been requested meanwhile.
            if self.at.get_untracked() != at.0 {
                return;
            }
            self.past_waits.set(false);
            match found {
                Ok(Some(found)) => self.go(found),
                Ok(None) => self.set_fault(nothing(is_forward, step)),
                Err(why) => self.fail(&why),
            }
        });
    }

    async fn find(self, at: Millis, is_forward: bool, step: StepTarget) -> Result<Option<Millis>, String> {
        // Forward, to its end.
        let mut looked_at = if is_forward { self.end_of_segment(at) } else { at };
        loop {
            let found = self.live.try_update_value(|live| {
                live.segment(looked_at).map(|segment| segment.find(at, is_forward, step))
            });
            match found {
                None => return Ok(None),
                Some(Err(Missing::Unreadable(why))) => return Err(why),
                Some(Err(Missing::After(after))) => {
                    self.past_waits.set(true);
                    self.fetch(looked_at, after, TO_ITS_END).await?;
                }
                Some(Ok(Some(found))) => return Ok(Some(found)),
                Some(Ok(None)) => {
                    let Some(next) = self.beside(looked_at, is_forward) else { return Ok(None) };
                    looked_at = next;
                }
            }
        }
    }

    /// The last moment of the segment before that of `at`, or of the one after it.
    fn beside(self, at: Millis, is_forward: bool) -> Option<Millis> {
        let until = self.history_span()?.until;
        self.live.with_value(|live| {
            let begins = &live.history.segments;
            let place = live.history.place(at)?;
            if !is_forward {
                place.checked_sub(1)?;
                return Some(Millis(begins.get(place)?.0 - 1));
            }
            begins.get(place + 1)?;
            Some(begins.get(place + 2).map_or(until, |end| Millis(end.0 - 1)))
        })
    }

    /// The last moment of the segment of `at`.
    fn end_of_segment(self, at: Millis) -> Millis {
        let until = self.history_span().map_or(at, |span| span.until);
        self.live.with_value(|live| {
            let next = live.history.place(at).and_then(|place| live.history.segments.get(place + 1));
            next.map_or(until, |next| Millis(next.0 - 1))
        })
    }

    /// Steps to the next second on one side in which a finding began or ended, or a worker came or went.
    pub fn step_to_mark(self, is_forward: bool) {
        self.pause();
        let at = Millis(self.at.get_untracked());
        match self.with_rows(|rows| next_mark(rows, at, is_forward)) {
            Some(found) => self.go(found),
            None => self.set_fault(nothing_retained(is_forward, 1)),
        }
    }

    /// Steps by so many milliseconds.
    pub fn step_by(self, ms: i64) {
        self.pause();
        let at = Millis(self.at.get_untracked());
        if let Some(span) = self.history_span() {
            self.go(stepped(at, ms, span));
        }
    }

    /// Once seeking has paused, writes the time to the address and computes the digest.
    fn debounce(self) {
        let at = self.at.get_untracked();
        let was_requested =
            self.live.try_update_value(|live| std::mem::replace(&mut live.fetched.is_debouncing, true));
        if was_requested == Some(false) {
            set_timeout(move || self.finish_seek(at), DEBOUNCE);
        }
    }

    fn finish_seek(self, requested: u64) {
        let at = self.at.get_untracked();
        let is_dragged = self.live.try_update_value(|live| {
            live.fetched.is_debouncing = false;
            live.fetched.is_dragged
        });
        if at != requested {
            return self.debounce();
        }
        if is_dragged == Some(true) {
            return self.rest();
        }
        self.live.try_update_value(|live| {
            if let Some(past) = &mut live.past {
                past.digest = Some((past.cluster.seq(), past.cluster.digest()));
            }
        });
        if self.debounced_at.get_untracked() != at {
            self.debounced_at.set(at);
        }
        if at != 0 {
            self.changed();
        }
    }

    /// How long ago the moment shown was, as text.
    pub fn age_of_past(self) -> String {
        let now = self.live.with_value(|live| live.present.now_ms);
        format::ago(now.since(Millis(self.at.get())))
    }
}

fn nothing(is_forward: bool, step: StepTarget) -> String {
    nothing_retained(is_forward, if matches!(step, StepTarget::Decision) { 0 } else { 2 })
}
