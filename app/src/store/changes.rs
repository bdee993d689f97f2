//! Two moments, A and B, held beside what is shown: their states, what changed between them, and the tree of that. B may be the
//! present. Knows no widget.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_insight::changes::{BlockChange, ChangeTree, Changes, ComparedState};
use radixscope_model::id::{Millis, Worker};
use radixscope_panels::changes::{five_minutes_before, not_retained};
use radixscope_state::cluster::{Cluster, PoolState};

use super::{Live, Store, now_ms, zone};
use crate::net;
use crate::net::source::SECOND;
use crate::past::HistorySegment;
use crate::url::Marks;
use crate::view_context::{DrawnTree, ShownPools};

/// With the present, changes are counted anew this often at most, milliseconds.
const EVERY_MS: f64 = 1_000.0;
/// And they take no more than one part in so many of the time.
const PART_OF_TIME: f64 = 20.0;

/// A marked moment: whether it is one of the second recording, and which.
type Marked = (bool, Millis);

/// The state of a marked moment.
struct Fixed {
    of: Marked,
    epoch: u64,
    cluster: Cluster,
}

/// What is known of the moments compared.
#[derive(Default)]
pub(super) struct Compared {
    /// Of marked moments, in no order.
    states: Vec<Fixed>,
    /// Moments that cannot be had, and why, as text.
    missing: Vec<(Marked, String)>,
    is_fetching: bool,
    tree: Option<ChangeTree>,
    /// Whose tree it is.
    of: Option<(DrawnTree, [Option<Marked>; 2], Option<Worker>)>,
    /// Trees made so far.
    version: u64,
    /// When changes were counted last, and how long that took.
    counted_ms: f64,
    took_ms: f64,
}

impl Compared {
    pub(super) fn tree(&self) -> Option<&ChangeTree> {
        self.tree.as_ref()
    }

    pub(super) fn tree_mut(&mut self) -> Option<&mut ChangeTree> {
        self.tree.as_mut()
    }

    fn state(&self, of: Marked) -> Option<ComparedState<'_>> {
        let state = self.states.iter().find(|state| state.of == of)?;
        Some(ComparedState { cluster: &state.cluster, at: of.1, epoch: state.epoch })
    }
}

impl Live {
    /// What changed, and brings the tree of it up to date.
    fn count_changes(
        &mut self,
        marks: [Option<Marked>; 2],
        pools: ShownPools,
        picked: Option<Worker>,
    ) -> Option<Changes> {
        let begun_ms = now_ms();
        let pool = self.shown().cluster.pool(pools.pool).map(PoolState::name).unwrap_or_default();
        let present = ComparedState {
            cluster: &self.present.cluster,
            at: self.present.now_ms,
            epoch: self.epoch.unwrap_or_default(),
        };
        let a = self.compared.state(marks[0]?)?;
        let b = match marks[1] {
            Some(of) => self.compared.state(of)?,
            None => present,
        };
        let is_across = matches!(marks[1], Some((true, _)));
        let changes = Changes::between(a, b, is_across);
        // While somebody points at the tree it stays as it is.
        let of = Some((pools.drawn(), marks, picked));
        if self.compared.of != of || !self.paused_tree.is_paused() {
            let mut tree = ChangeTree::of(a.cluster, b.cluster, &pool, pools.tier, picked);
            self.compared.version += 1;
            tree.version = self.compared.version;
            self.compared.tree = Some(tree);
            self.compared.of = of;
        }
        self.compared.counted_ms = now_ms();
        self.compared.took_ms = self.compared.counted_ms - begun_ms;
        Some(changes)
    }
}

impl Store {
    /// The moment that is shown, Unix milliseconds. Not tracked.
    pub fn moment_ms(self) -> Millis {
        match self.at.get_untracked() {
            0 => self.received_ms(),
            at => Millis(at),
        }
    }

    /// Marks the moment shown as A (0) or B (1).
    pub fn mark(self, side: usize) {
        // Without a past there is nothing to fetch it from.
        if self.history_span().is_none() {
            let why = untrack(|| self.why_no_history());
            self.past_fault.set(why.to_owned());
            return;
        }
        let at = self.moment_ms();
        if side == 1 {
            self.close_second();
        }
        self.address.update(|address| address.marks[side] = Some(at));
    }

    /// Marks as A what was five minutes before the moment shown. Where less is retained, the middle of it: at its beginning there may
    /// have been nothing yet.
    pub fn mark_five_minutes_ago(self) {
        if let Some(span) = self.history_span() {
            let before = five_minutes_before(self.moment_ms(), span.from);
            self.address.update(|address| address.marks[0] = Some(before));
        }
    }

    /// A becomes B, and B, or the present, becomes A.
    pub fn swap_marks(self) {
        let now = self.received_ms();
        self.address.update(|address| {
            let [a, b] = address.marks;
            address.marks = [b.or(Some(now)), a];
        });
    }

    /// Forgets the states that were compared, and has them fetched again.
    pub(super) fn compare_anew(self) {
        self.end_comparison();
        self.changes_fetched.update(|n| *n += 1);
    }

    /// Which moments are marked.
    fn marked(self, [a, b]: Marks) -> [Option<Marked>; 2] {
        let is_second = self.second.with_untracked(Option::is_some);
        [a.map(|at| (false, at)), b.map(|at| (is_second, at))]
    }

    /// Has the states of marked moments fetched, and lets go of others. What cannot be had says
    /// [`Store::changes_fault`].
    pub fn fetch_marks(self, marks: Marks) {
        if untrack(|| self.history_version.get()) == 0 {
            // What is retained is known a little after the page is open.
            return;
        }
        let marks = self.marked(marks);
        let wanted = self.live.try_update_value(|live| {
            let compared = &mut live.compared;
            compared.states.retain(|state| marks.contains(&Some(state.of)));
            compared.missing.retain(|(of, _)| marks.contains(&Some(*of)));
            let is_wanted = |of: &Marked| {
                compared.state(*of).is_none() && compared.missing.iter().all(|(missing, _)| missing != of)
            };
            let wanted = marks.into_iter().flatten().find(is_wanted);
            wanted.filter(|_| !std::mem::replace(&mut compared.is_fetching, wanted.is_some()))
        });
        let Some(of) = wanted.flatten() else { return };
        leptos::task::spawn_local(async move {
            let turn = self.changes_fetched.get_untracked();
            let fetched = self.state_at(of).await;
            let is_same = self.changes_fetched.get_untracked() == turn;
            // Else another recording was opened meanwhile, and all is fetched anew.
            if !is_same {
                return;
            }
            self.live.update_value(|live| {
                live.compared.is_fetching = false;
                match fetched {
                    Ok(state) => live.compared.states.push(state),
                    Err(why) => live.compared.missing.push((of, why)),
                }
            });
            self.changes_fetched.update(|n| *n += 1);
        });
    }

    async fn state_at(self, of: Marked) -> Result<Fixed, String> {
        let (is_second, at) = of;
        match self.history_span() {
            // The player says what it has.
            _ if is_second => {}
            None => return Err(untrack(|| self.why_no_history()).to_owned()),
            Some(span) => not_retained(at, span, zone()).map_or(Ok(()), Err)?,
        }
        let whose = if is_second { SECOND } else { "" };
        let time = at.0.to_string();
        let address = format!("{whose}history/segment?at_ms={time}&until_ms={time}");
        let body = net::past::bytes(&address).await?;
        let mut segment = HistorySegment::open(body, at)?;
        let mut cluster = Cluster::default();
        segment.seek(&mut cluster, at)?;
        Ok(Fixed { of, epoch: segment.epoch, cluster })
    }

    /// Why marked moments cannot be compared; empty: they can, or are on their way. Tracked.
    pub fn changes_fault(self) -> String {
        self.changes_fetched.track();
        self.live.with_value(|live| {
            let why: Vec<&str> = live.compared.missing.iter().map(|(_, why)| why.as_str()).collect();
            why.join(". ")
        })
    }

    /// Whether it is time to count anew what changed until the present.
    pub fn changes_are_due(self) -> bool {
        self.live.with_value(|live| {
            let Compared { counted_ms, took_ms, .. } = live.compared;
            now_ms() - counted_ms >= (took_ms * PART_OF_TIME).max(EVERY_MS)
        })
    }

    /// What changed; `None`: a state is missing. Draws the tree of it.
    pub fn count_changes(self, marks: Marks, picked: Option<Worker>) -> Option<Arc<Changes>> {
        let (pools, marks) = (self.pools.get_untracked(), self.marked(marks));
        let changes = self.live.try_update_value(|live| live.count_changes(marks, pools, picked));
        self.changed();
        changes.flatten().map(Arc::new)
    }

    /// Distinct blocks of the tree drawn of which this became. Not tracked.
    pub fn changed_blocks(self, change: BlockChange) -> u64 {
        self.live.with_value(|live| live.compared.tree().map_or(0, |tree| tree.count(change)))
    }

    /// What was compared is let go.
    pub fn end_comparison(self) {
        self.live.try_update_value(|live| live.compared = Compared::default());
    }
}
