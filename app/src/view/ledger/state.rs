//! What the ledger shows: the live decisions or those held since Pause, filtered and in order, and where in them the reader is.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_export::panel::session;
use radixscope_model::id::{DecisionId, Slot};
use radixscope_state::cluster::{Cluster, Column, DecisionEntry, Filter, Picked, Sort};

use super::search::Search;
use crate::store::{Store, ViewContext};
use crate::url::Address;
use crate::view::latency::goals::{LatencyTarget, TTFT};

/// What is shown while paused: a copy, because the state forgets.
pub(super) struct PausedDecisions {
    /// Newest first.
    decisions: Vec<DecisionEntry>,
    /// Decisions received so far, then.
    ever: u64,
}

/// What the filter picks out of what is shown now.
#[derive(Clone, PartialEq, Default)]
pub(super) struct View {
    pub picked: Picked,
    /// Decisions that were looked through.
    pub retained: u64,
    /// Decisions received so far.
    pub ever: u64,
    /// Sessions with colours.
    pub sessions: Vec<(Box<str>, Slot)>,
    /// Record that the state was at: equal views show the same.
    seq: u64,
    /// What was requested: filter, session, text.
    query: (Filter, String, String),
}

/// Since Pause.
#[derive(Clone, Copy, PartialEq, Default)]
pub(super) struct Since {
    /// Decisions received.
    pub newer: u64,
    /// Decisions shown that the state no longer has.
    pub dropped: u64,
}

/// Handle to the ledger's state; copied freely.
#[derive(Clone, Copy)]
pub(super) struct Ledger {
    pub store: Store,
    held: RwSignal<Option<Arc<PausedDecisions>>>,
    /// Whether the pointer, and whether the keyboard, is in the list.
    visited: RwSignal<(bool, bool)>,
    pub view: Memo<View>,
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
            let ttft_target_us = (ttft_target.ms.get() * 1_000.0).round() as u64;
            store.address.with(|address| {
                let Address { outcome: kind, by, client, sort, .. } = *address;
                let filter = Filter { pool, worker, kind, by, client, ttft_target_us, sort };
                (filter, address.session.clone(), address.find.clone())
            })
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
        let view = Memo::new(move |before: Option<&View>| {
            let query = query.get();
            let held = held.get();
            let look = |shown: &ViewContext<'_>| {
                let coloured = session::coloured(shown.cluster).into_iter();
                let sessions = coloured.map(|(name, slot)| (name.into(), slot)).collect();
                let mut view = View { query: query.clone(), sessions, ..View::default() };
                search.update_value(|search| {
                    let (filter, session, text) = &query;
                    let is_of_session = |decided: &DecisionEntry| {
                        session.is_empty() || decided.decision.session.as_ref() == Some(session)
                    };
                    let mut pass = search.pass(shown, text, filter);
                    let is_found = |decided: &DecisionEntry| is_of_session(decided) && pass.is_found(decided);
                    if let Some(held) = &held {
                        view.picked = Picked::of(filter, held.decisions.iter(), is_found);
                        (view.retained, view.ever) = (held.decisions.len() as u64, held.ever);
                    } else {
                        let decisions = shown.decisions();
                        view.picked = Picked::of(filter, decisions.newest_first(), is_found);
                        (view.retained, view.ever) =
                            (decisions.newest_first().len() as u64, decisions.totals().count);
                        view.seq = shown.seq().0;
                    }
                });
                view
            };
            // What is shown of the past holds still by itself.
            let stays = held.is_none() && is_visited.get() && store.at.get() == 0;
            match before.filter(|before| stays && before.query == query && before.seq > 0) {
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
        let ever = self.view.with(|view| view.ever);
        let newer = self.store.on_beat(|shown| shown.decisions().totals().count.checked_sub(ever));
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
        let held = self.store.peek(|cluster| PausedDecisions {
            decisions: cluster.decisions().newest_first().cloned().collect(),
            ever: cluster.decisions().totals().count,
        });
        self.held.set(Some(Arc::new(held)));
        self.status_text.set("Paused. New decisions are counted, and shown when you resume.".to_owned());
    }

    /// What happened since Pause. Tracked.
    pub(super) fn since(self) -> Option<Since> {
        let held = self.held.get()?;
        Some(self.store.on_beat(|cluster| {
            let oldest = cluster.decisions().newest_first().next_back().map(|d| d.decision.id);
            let still =
                held.decisions.partition_point(|d| oldest.is_some_and(|oldest| d.decision.id >= oldest));
            Since {
                newer: cluster.decisions().totals().count.saturating_sub(held.ever),
                dropped: (held.decisions.len() - still) as u64,
            }
        }))
    }

    /// Looks at what is shown. Not tracked.
    pub(super) fn look<T>(self, look: impl FnOnce(&ViewContext<'_>, Listed<'_>) -> T) -> T {
        let held = self.held.get_untracked();
        self.store.peek(|cluster| {
            look(
                cluster,
                match &held {
                    Some(held) => Listed::PausedDecisions(&held.decisions),
                    None => {
                        let ever = self.view.with_untracked(|view| view.ever);
                        let newer = cluster.decisions().totals().count.saturating_sub(ever);
                        Listed::Live(cluster.cluster, usize::try_from(newer).unwrap_or(usize::MAX))
                    }
                },
            )
        })
    }

    /// One decision, if it is shown or still known; a copy.
    pub(super) fn decided(self, id: DecisionId) -> Option<DecisionEntry> {
        self.look(|cluster, shown| shown.find(id).or_else(|| cluster.decisions().get(id)).cloned())
    }

    /// Line of a decision among those picked out. In order of time, that of the next older one if it is not among them.
    pub(super) fn line_of(self, id: DecisionId) -> Option<usize> {
        self.look(|_, shown| {
            self.view.with_untracked(|view| {
                if view.query.0.sort == Sort::default() {
                    let is_newer = |&place: &u32| shown.at(place).is_some_and(|d| d.decision.id > id);
                    return Some(view.picked.at.partition_point(is_newer));
                }
                let place = shown.place_of(id)?;
                view.picked.at.iter().position(|&at| at as usize == place)
            })
        })
    }

    /// The decision in a line.
    pub(super) fn id_at(self, line: usize) -> Option<DecisionId> {
        let place = self.view.with_untracked(|view| view.picked.at.get(line).copied())?;
        self.look(|_, shown| shown.at(place).map(|d| d.decision.id))
    }

    /// Opens the details of a decision, or closes them.
    pub(super) fn open(self, id: Option<DecisionId>) {
        if id.is_some() {
            self.cursor.set(id);
        }
        self.store.address.update(|address| address.decision = id);
    }
}

/// The decisions that are shown, newest first.
#[derive(Clone, Copy)]
pub(super) enum Listed<'a> {
    /// Those of the state, and how many came since they were looked through.
    Live(&'a Cluster, usize),
    PausedDecisions(&'a [DecisionEntry]),
}

impl<'a> Listed<'a> {
    /// The one so many places behind the newest.
    pub(super) fn at(self, place: u32) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster, newer) => cluster.decisions().newest((place as usize).checked_add(newer)?),
            Listed::PausedDecisions(decisions) => decisions.get(place as usize),
        }
    }

    fn find(self, id: DecisionId) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster, _) => cluster.decisions().get(id),
            Listed::PausedDecisions(decisions) => decisions.get(self.place_of(id)?),
        }
    }

    /// How many places behind the newest a decision is.
    fn place_of(self, id: DecisionId) -> Option<usize> {
        match self {
            Listed::Live(cluster, newer) => cluster.decisions().newer_than(id)?.checked_sub(newer),
            Listed::PausedDecisions(decisions) => decisions.binary_search_by(|d| id.cmp(&d.decision.id)).ok(),
        }
    }
}
