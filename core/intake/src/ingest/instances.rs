//! The lists of workers that frontends give, one after the other: who is no longer on any, and who is there again.
//!
//! A wrong departure costs the picture of a whole cache, a late one a few seconds. So a worker has left only if a
//! frontend that had it on its list leaves it out twice in a row, and no other frontend has it. Where a frontend gives its
//! list of instances, what its router's gauges list is not asked: they drop a worker for a while that could not be reached.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_dynamo::discovery::Instance;
use radixscope_dynamo::health::{Health, MAX_INSTANCES};
use radixscope_model::id::{Millis, WorkerId};

/// Most frontends whose lists are kept apart.
const MAX_FRONTENDS: usize = 64;
/// Lists in a row without a worker before that counts.
const MISSING_LISTS: u8 = 2;
/// After this time a list no longer counts: its frontend may have left.
const LIST_HOLDS_MS: u64 = 30_000;

/// Time that a router's gauges have to be without a worker: scrapes may be as frequent as one likes.
const STATES_MISSING_MS: u64 = 2_000;
/// The same of the gauge of registered workers alone, which a worker leaves while it cannot be reached.
const REGISTERED_MISSING_MS: u64 = 10_000;

/// Whose list it is, and what kind of list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'f> {
    /// The frontend, as the operator named it.
    pub(super) frontend: &'f str,
    pub(super) kind: ListKind,
    /// Times that the frontend was seen to have restarted: a new process begins with an empty list.
    pub(super) run: u32,
}

/// How a frontend lists its workers, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ListKind {
    /// `/health` (0.8 to 1.6).
    Instances,
    /// `router_worker_state` (≥ 1.7): all that the router knows, whatever their state.
    RouterStates,
    /// `router_worker_registered` (≥ 1.3).
    Registered,
}

impl ListKind {
    /// Time that a worker has to be missing.
    const fn missing_ms(self) -> u64 {
        match self {
            Self::Instances => 0,
            Self::RouterStates => STATES_MISSING_MS,
            Self::Registered => REGISTERED_MISSING_MS,
        }
    }
}

/// What frontends list.
#[derive(Default)]
pub(super) struct Instances {
    frontends: Vec<Frontend>,
    /// Workers that are recorded as gone.
    left: BTreeSet<WorkerId>,
}

struct Frontend {
    name: String,
    kind: ListKind,
    run: u32,
    at_ms: Millis,
    /// Workers it listed, and in how many of its lists since they were missing, since when.
    workers: BTreeMap<WorkerId, (u8, Millis)>,
}

/// The changes in a list.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct InstanceChanges<'h> {
    /// On this frontend's list for the first time.
    pub(super) new: Vec<&'h Instance>,
    /// On no list any more.
    pub(super) departed: Vec<WorkerId>,
    /// Had left, and are listed again.
    pub(super) returned: Vec<WorkerId>,
}

impl Instances {
    /// Takes a frontend's list. `None`: it gives a better one, or there are more frontends than are kept apart.
    pub(super) fn listed<'h>(
        &mut self,
        list: List<'_>,
        at: Millis,
        health: &'h Health,
    ) -> Option<InstanceChanges<'h>> {
        let List { frontend, kind, run } = list;
        let ix = match self.frontends.iter().position(|known| known.name == frontend) {
            Some(ix) => ix,
            None if self.frontends.len() == MAX_FRONTENDS => return None,
            None => {
                let (name, workers) = (frontend.to_owned(), BTreeMap::new());
                self.frontends.push(Frontend { name, kind, run, at_ms: at, workers });
                self.frontends.len() - 1
            }
        };
        let known = &mut self.frontends[ix];
        if known.kind != kind {
            if known.kind < kind && at.since(known.at_ms) <= LIST_HOLDS_MS {
                return None;
            }
            // What another kind of list had is not missing in this one.
            (known.kind, known.run) = (kind, run);
            known.workers.clear();
        } else if known.run != run {
            known.run = run;
            known.workers.clear();
        }
        let mut changes = InstanceChanges::default();
        let known = &mut self.frontends[ix];
        known.at_ms = at;
        let mut missing = BTreeSet::new();
        if health.is_ready {
            let listed: BTreeSet<WorkerId> = health.workers.iter().map(|worker| worker.instance_id).collect();
            known.workers.retain(|id, (lists, since)| {
                if listed.contains(id) {
                    (*lists, *since) = (0, at);
                    return true;
                }
                if *lists == 0 {
                    *since = at;
                }
                *lists = lists.saturating_add(1);
                let is_missing = *lists >= MISSING_LISTS && at.since(*since) >= kind.missing_ms();
                if is_missing {
                    missing.insert(*id);
                }
                !is_missing
            });
        }
        for worker in &health.workers {
            if !known.workers.contains_key(&worker.instance_id) && known.workers.len() < MAX_INSTANCES {
                known.workers.insert(worker.instance_id, (0, at));
                changes.new.push(worker);
                if self.left.remove(&worker.instance_id) {
                    changes.returned.push(worker.instance_id);
                }
            }
        }
        for id in missing {
            let is_listed = |f: &Frontend| at.since(f.at_ms) <= LIST_HOLDS_MS && f.workers.contains_key(&id);
            if !self.frontends.iter().any(is_listed) {
                changes.departed.push(id);
                self.remember_left(id);
            }
        }
        Some(changes)
    }

    /// Whether no frontend lists a worker.
    pub(super) fn is_empty(&self) -> bool {
        self.frontends.iter().all(|frontend| frontend.workers.is_empty())
    }

    fn remember_left(&mut self, id: WorkerId) {
        self.left.insert(id);
        if self.left.len() > MAX_INSTANCES {
            // Ids are drawn at random: any of them will do.
            self.left.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(ids: &[u64]) -> Health {
        let worker = |&id: &u64| Instance::worker(WorkerId(id), "dynamo", "backend");
        Health { is_ready: true, workers: ids.iter().map(worker).collect(), query_endpoints: vec![] }
    }

    /// Who came, left and returned, by list.
    fn changes_of(lists: &[(&str, u64, Health)]) -> Vec<(Vec<u64>, Vec<u64>, Vec<u64>)> {
        let mut instances = Instances::default();
        let ids = |ids: &[WorkerId]| ids.iter().map(|id| id.0).collect();
        let tell = |(frontend, at, health): &(&str, u64, Health)| {
            let list = List { frontend, kind: ListKind::Instances, run: 0 };
            let changes = instances.listed(list, Millis(*at), health).expect("few frontends");
            let new = changes.new.iter().map(|worker| worker.instance_id.0).collect();
            (new, ids(&changes.departed), ids(&changes.returned))
        };
        lists.iter().map(tell).collect()
    }

    #[test]
    fn a_worker_has_left_once_two_lists_in_a_row_do_without_it() {
        let lists = [
            ("a", 0, health(&[1, 2])),
            ("a", 5_000, health(&[1])),
            ("a", 10_000, health(&[1, 2])),
            ("a", 15_000, health(&[1])),
            ("a", 20_000, health(&[1])),
            ("a", 25_000, health(&[1])),
            ("a", 30_000, health(&[1, 2])),
        ];
        let none = || (vec![], vec![], vec![]);
        assert_eq!(
            changes_of(&lists),
            [
                (vec![1, 2], vec![], vec![]),
                none(),
                none(),
                none(),
                (vec![], vec![2], vec![]),
                none(),
                (vec![2], vec![], vec![2]),
            ]
        );
    }

    #[test]
    fn a_worker_on_another_frontends_list_has_not_left() {
        let mut lists = vec![("a", 0, health(&[1])), ("b", 0, health(&[1]))];
        lists.extend((1..5).flat_map(|i| [("a", i * 5_000, health(&[])), ("b", i * 5_000, health(&[1]))]));
        assert!(changes_of(&lists).iter().all(|(_, departed, _)| departed.is_empty()));
        // The second frontend is silent for long: its list says nothing any more.
        lists.extend([("a", 50_000, health(&[1])), ("a", 55_000, health(&[])), ("a", 60_000, health(&[]))]);
        assert_eq!(changes_of(&lists).last().map(|(_, departed, _)| departed.clone()), Some(vec![1]));
    }

    #[test]
    fn a_frontend_that_just_started_does_not_make_anybody_leave() {
        let unready = || Health { is_ready: false, ..health(&[]) };
        let lists = [("a", 0, health(&[1])), ("a", 5, unready()), ("a", 10, unready()), ("a", 15, unready())];
        assert!(changes_of(&lists).iter().all(|(_, departed, _)| departed.is_empty()));
    }

    #[test]
    fn more_frontends_than_are_kept_apart_are_refused() {
        let mut instances = Instances::default();
        let is_kept = |i: usize| {
            let list = List { frontend: &i.to_string(), kind: ListKind::Instances, run: 0 };
            instances.listed(list, Millis(0), &health(&[1])).is_some()
        };
        assert_eq!((0..MAX_FRONTENDS + 3).map(is_kept).filter(|&is_kept| is_kept).count(), MAX_FRONTENDS);
    }

    fn gauges(lists: &[(ListKind, u32, u64, Health)]) -> Vec<Option<Vec<u64>>> {
        let mut instances = Instances::default();
        let tell = |&(kind, run, at, ref health): &(ListKind, u32, u64, Health)| {
            let list = List { frontend: "a", kind, run };
            let changes = instances.listed(list, Millis(at), health)?;
            Some(changes.departed.iter().map(|id| id.0).collect())
        };
        lists.iter().map(tell).collect()
    }

    #[test]
    fn what_a_routers_gauges_leave_out_has_to_be_away_for_a_while() {
        use ListKind::{Registered, RouterStates};
        for (kind, missing_ms) in [(RouterStates, STATES_MISSING_MS), (Registered, REGISTERED_MISSING_MS)] {
            let lists = [
                (kind, 0, 0, health(&[1, 2])),
                (kind, 0, 500, health(&[1])),
                (kind, 0, 1_000, health(&[1])),
                (kind, 0, 500 + missing_ms, health(&[1])),
            ];
            assert_eq!(gauges(&lists), [Some(vec![]), Some(vec![]), Some(vec![]), Some(vec![2])], "{kind:?}");
        }
    }

    #[test]
    fn a_restarted_router_marks_no_worker_as_left() {
        let list = |run, at, ids: &[u64]| (ListKind::RouterStates, run, at, health(ids));
        let lists =
            [list(0, 0, &[1, 2, 3]), list(1, 5_000, &[1]), list(1, 10_000, &[1]), list(1, 15_000, &[1, 2])];
        assert!(gauges(&lists).iter().all(|departed| departed.as_ref().is_some_and(Vec::is_empty)));
    }

    #[test]
    fn gauges_are_not_asked_while_the_list_of_instances_is_given() {
        use ListKind::{Instances, Registered};
        let lists = [
            (Instances, 0, 0, health(&[1, 2])),
            (Registered, 0, 1_000, health(&[1])),
            (Registered, 0, 20_000, health(&[1])),
            (Instances, 0, 21_000, health(&[1, 2])),
            (Registered, 0, 60_000, health(&[1])),
            (Registered, 0, 80_000, health(&[1])),
        ];
        assert_eq!(gauges(&lists), [Some(vec![]), None, None, Some(vec![]), Some(vec![]), Some(vec![])]);
    }
}
