//! What the ledger shows: the live decisions or those held since Pause, filtered, and where in them the reader is.

use std::sync::Arc;

use leptos::prelude::*;
use radixscope_model::id::DecisionId;
use radixscope_state::cluster::{Cluster, DecisionEntry, Filter, Picked};

use crate::store::{Shown, Store};

/// What is shown while paused: a copy, because the state forgets.
pub(super) struct Held {
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
    pub kept: u64,
    /// Decisions received so far.
    pub ever: u64,
    /// Record that the state was at: equal views show the same.
    seq: u64,
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
    held: RwSignal<Option<Arc<Held>>>,
    pub view: Memo<View>,
    /// The row that the keyboard is on.
    pub cursor: RwSignal<Option<DecisionId>>,
    /// What is said aloud.
    pub said: RwSignal<String>,
}

impl Ledger {
    pub(super) fn new(store: Store) -> Self {
        let held = RwSignal::new(None::<Arc<Held>>);
        let cursor = store.address.with_untracked(|address| address.decision);
        let filter = Memo::new(move |_| {
            let (worker, pool) = (store.picked(), store.pools.get().only);
            store.address.with(|address| Filter {
                pool,
                worker,
                kind: address.outcome,
                request: address.request.clone(),
            })
        });
        let view = Memo::new(move |_| match held.get() {
            Some(held) => View {
                picked: filter.with(|filter| Picked::of(filter, held.decisions.iter())),
                kept: held.decisions.len() as u64,
                ever: held.ever,
                seq: 0,
            },
            None => store.on_beat(|cluster| {
                let decisions = cluster.decisions();
                View {
                    picked: filter.with(|filter| Picked::of(filter, decisions.newest_first())),
                    kept: decisions.newest_first().len() as u64,
                    ever: decisions.totals().count,
                    seq: cluster.seq().0,
                }
            }),
        });
        Self { store, held, view, cursor: RwSignal::new(cursor), said: RwSignal::new(String::new()) }
    }

    /// Whether the view stands still. Tracked.
    pub(super) fn is_paused(self) -> bool {
        self.held.with(Option::is_some)
    }

    /// Pauses, or goes on.
    pub(super) fn toggle_pause(self) {
        if self.held.with_untracked(Option::is_some) {
            self.held.set(None);
            self.said.set("Live again".to_owned());
            return;
        }
        let held = self.store.peek(|cluster| Held {
            decisions: cluster.decisions().newest_first().cloned().collect(),
            ever: cluster.decisions().totals().count,
        });
        self.held.set(Some(Arc::new(held)));
        self.said.set("Paused. New decisions are counted, and shown when you resume.".to_owned());
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
    pub(super) fn look<T>(self, look: impl FnOnce(&Shown<'_>, Listed<'_>) -> T) -> T {
        let held = self.held.get_untracked();
        self.store.peek(|cluster| {
            look(
                cluster,
                match &held {
                    Some(held) => Listed::Held(&held.decisions),
                    None => Listed::Live(cluster.cluster),
                },
            )
        })
    }

    /// One decision, if it is shown or still known; a copy.
    pub(super) fn decided(self, id: DecisionId) -> Option<DecisionEntry> {
        self.look(|cluster, shown| shown.find(id).or_else(|| cluster.decisions().get(id)).cloned())
    }

    /// Line of a decision among those picked out: its own, or that of the next older one.
    pub(super) fn line_of(self, id: DecisionId) -> usize {
        self.look(|_, shown| {
            self.view.with_untracked(|view| {
                let is_newer = |&place: &u32| shown.at(place).is_some_and(|d| d.decision.id > id);
                view.picked.at.partition_point(is_newer)
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
    Live(&'a Cluster),
    Held(&'a [DecisionEntry]),
}

impl<'a> Listed<'a> {
    /// The one so many places behind the newest.
    pub(super) fn at(self, place: u32) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster) => cluster.decisions().newest(place as usize),
            Listed::Held(decisions) => decisions.get(place as usize),
        }
    }

    fn find(self, id: DecisionId) -> Option<&'a DecisionEntry> {
        match self {
            Listed::Live(cluster) => cluster.decisions().get(id),
            Listed::Held(decisions) => {
                let at = decisions.binary_search_by(|d| id.cmp(&d.decision.id)).ok()?;
                decisions.get(at)
            }
        }
    }
}
