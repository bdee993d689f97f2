//! What the ledger shows: the live decisions or those held since Pause, filtered and in order, and where in them the reader is.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_panels::decisions::Search;
use radixscope_panels::decisions::list::{DecisionList, DecisionQuery, Listed, PausedDecisions, SincePause};
use radixscope_state::cluster::{Column, DecisionEntry, Sort};

use crate::store::{Store, ViewContext};
use crate::view::latency::goals::{LatencyTarget, TTFT};

/// Handle to the ledger's state; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Ledger {
    pub store: Store,
    held: RwSignal<Option<Arc<PausedDecisions>>>,
    /// Whether the pointer, and whether the keyboard, is in the list.
    visited: RwSignal<(bool, bool)>,
    pub view: Memo<DecisionList>,
    /// The row that the keyboard is on.
    pub cursor: RwSignal<Option<DecisionId>>,
    /// What screen readers announce.
    pub status_text: RwSignal<String>,
}

impl Ledger {
    pub(super) fn new(store: Store) -> Self {
        let held = RwSignal::new(None::<Arc<PausedDecisions>>);
        let cursor = store.address.with_untracked(|address| address.decision);
        let ttft_target = LatencyTarget::of(store, TTFT);
        let query = Memo::new(move |_| {
            let (worker, pool) = (store.picked(), store.pools.get().only);
            let ttft_target_ms = ttft_target.ms.get();
            store.address.with(|address| DecisionQuery::of(address, worker, pool, ttft_target_ms))
        });
        let visited = RwSignal::new((false, false));
        let is_visited = Memo::new(move |_| visited.get() != (false, false));
        // A list held since Pause is none of the past.
        Effect::new(move |_| {
            if store.at.get() != 0 && held.with_untracked(Option::is_some) {
                held.set(None);
            }
        });
        let search = StoredValue::new_local(Search::default());
        let view = Memo::new(move |before: Option<&DecisionList>| {
            let query = query.get();
            let held = held.get();
            let look = |shown: &ViewContext<'_>| {
                let mut list = None;
                search.update_value(|search| {
                    list = Some(DecisionList::of(shown, held.as_deref(), &query, search));
                });
                list.unwrap_or_default()
            };
            // What is shown of the past holds still by itself.
            let stays = held.is_none() && is_visited.get() && store.at.get() == 0;
            match before.filter(|before| stays && before.is_live_for(&query)) {
                Some(before) => before.clone(),
                None if stays || held.is_some() => store.peek(look),
                None => store.on_beat(look),
            }
        });
        Self {
            store,
            held,
            visited,
            view,
            cursor: RwSignal::new(cursor),
            status_text: RwSignal::new(String::new()),
        }
    }

    /// The pointer or the keyboard came into the list, or left it: meanwhile the list stays as it is.
    pub(super) fn visit(self, change: impl FnOnce(&mut (bool, bool))) {
        let mut visited = self.visited.get_untracked();
        change(&mut visited);
        if visited != self.visited.get_untracked() {
            self.visited.set(visited);
        }
    }

    /// Whether the list stays as it is because the pointer or the keyboard is in it, and how many decisions came since.
    /// Tracked.
    pub(super) fn newer_held_back(self) -> Option<u64> {
        if self.is_paused() || self.visited.get() == (false, false) || self.store.at.get() != 0 {
            return None;
        }
        let newer = self.view.with(|view| self.store.on_beat(|shown| view.newer(shown)));
        if newer.is_none() {
            // Another server, or the same one begun anew: what was held is of no state that there is.
            queue_microtask(move || {
                let _ = self.visited.try_set((false, false));
            });
        }
        newer
    }

    /// What the lines are ordered by. Tracked.
    pub(super) fn sort(self) -> Sort {
        self.store.address.with(|address| address.sort)
    }

    /// Orders the lines by a column, or the other way round.
    pub(super) fn sort_by(self, column: Column) {
        self.store.address.update(|address| address.sort = address.sort.clicked(column));
    }

    /// Whether the view stands still. Tracked.
    pub(super) fn is_paused(self) -> bool {
        self.held.with(Option::is_some)
    }

    /// Pauses, or goes on.
    pub(super) fn toggle_pause(self) {
        if self.store.at.get_untracked() != 0 {
            // The timeline plays and pauses then.
            return;
        }
        if self.held.with_untracked(Option::is_some) {
            self.held.set(None);
            self.status_text.set("Live again".to_owned());
            return;
        }
        let held = self.store.peek(|cluster| PausedDecisions::of(cluster));
        self.held.set(Some(Arc::new(held)));
        self.status_text.set("Paused. New decisions are counted, and shown when you resume.".to_owned());
    }

    /// What happened since Pause. Tracked.
    pub(super) fn since(self) -> Option<SincePause> {
        let held = self.held.get()?;
        Some(self.store.on_beat(|cluster| held.since(cluster)))
    }

    /// Looks at what is shown. Not tracked.
    pub(super) fn look<T>(self, look: impl FnOnce(&ViewContext<'_>, Listed<'_>) -> T) -> T {
        let held = self.held.get_untracked();
        self.store.peek(|cluster| {
            let listed = match &held {
                Some(held) => held.listed(),
                None => self.view.with_untracked(|view| view.live(cluster.cluster)),
            };
            look(cluster, listed)
        })
    }

    /// One decision, if it is shown or still known; a copy.
    pub(super) fn decided(self, id: DecisionId) -> Option<DecisionEntry> {
        self.look(|cluster, shown| shown.find(id).or_else(|| cluster.decisions().get(id)).cloned())
    }

    /// Line of a decision among those picked out. In order of time, that of the next older one if it is not among them.
    pub(super) fn line_of(self, id: DecisionId) -> Option<usize> {
        self.look(|_, listed| self.view.with_untracked(|view| view.line_of(listed, id)))
    }

    /// The decision in a line.
    pub(super) fn id_at(self, line: usize) -> Option<DecisionId> {
        self.look(|_, listed| self.view.with_untracked(|view| view.id_at(listed, line)))
    }

    /// Opens the details of a decision, or closes them.
    pub(super) fn open(self, id: Option<DecisionId>) {
        if id.is_some() {
            self.cursor.set(id);
        }
        self.store.address.update(|address| address.decision = id);
    }
}
