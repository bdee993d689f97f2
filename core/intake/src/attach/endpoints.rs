//! Where workers are queried for their blocks, by what discovery and frontends say. Knows nothing of queries.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_dynamo::discovery::MAX_ENTRIES;
use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_model::id::{Worker, WorkerId};

use crate::command::NamedBy;

/// Most frontends whose lists are kept.
const MAX_FRONTENDS: usize = 64;
/// The endpoint of 0.9: it is answered inside the loop in which the worker keeps its index.
const IN_THE_LOOP: &str = "worker_kv_indexer_query";

/// The kind of entry that names it; the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum EndpointPriority {
    /// An event source: it names publisher, worker and rank.
    Source,
    /// An instance.
    Instance,
    /// A frontend's list.
    Frontend,
}

/// An endpoint that an entry of discovery leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Registered {
    pub(super) priority: EndpointPriority,
    pub(super) endpoint: QueryEndpoint,
    /// The lease that the entry lives by.
    pub(super) lease: Option<u64>,
}

/// An endpoint, and what names it.
#[derive(Clone, Debug)]
pub(super) struct NamedEndpoint {
    priority: EndpointPriority,
    pub(super) endpoint: QueryEndpoint,
    pub(super) by: NamedBy,
}

/// See the module.
#[derive(Default)]
pub(super) struct Endpoints {
    entries: BTreeMap<Box<str>, Registered>,
    frontends: BTreeMap<Box<str>, Vec<QueryEndpoint>>,
    by_worker: BTreeMap<WorkerId, Vec<NamedEndpoint>>,
    /// Ranks that endpoints turned out to have, by worker and name of the endpoint.
    ranks: BTreeMap<(WorkerId, String), u32>,
    is_changed: bool,
}

impl Endpoints {
    /// An entry of discovery leads to this endpoint, or to none any more.
    pub(super) fn entry(&mut self, key: &str, endpoint: Option<Registered>) {
        let Some(endpoint) = endpoint else {
            self.is_changed |= self.entries.remove(key).is_some();
            return;
        };
        if self.entries.len() < MAX_ENTRIES || self.entries.contains_key(key) {
            let before = self.entries.insert(key.into(), endpoint.clone());
            self.is_changed |= before.as_ref() != Some(&endpoint);
        }
    }

    /// A frontend lists these.
    pub(super) fn listed(&mut self, frontend: &str, endpoints: &[QueryEndpoint]) {
        if self.frontends.get(frontend).is_some_and(|known| known == endpoints) {
            return;
        }
        if self.frontends.len() < MAX_FRONTENDS || self.frontends.contains_key(frontend) {
            self.frontends.insert(frontend.into(), endpoints.to_vec());
            self.is_changed = true;
        }
    }

    /// An endpoint answered that it has this rank.
    pub(super) fn has_rank(&mut self, endpoint: &QueryEndpoint, rank: u32) {
        if self.ranks.len() < MAX_ENTRIES {
            self.ranks.insert((endpoint.worker.id, endpoint.endpoint.clone()), rank);
            self.is_changed = true;
        }
    }

    /// Updates the table; returns whether it changed.
    pub(super) fn refresh(&mut self) -> bool {
        if !std::mem::take(&mut self.is_changed) {
            return false;
        }
        self.by_worker.clear();
        let mut named_ranks = BTreeSet::new();
        let listed = self.frontends.iter().flat_map(|(name, listed)| {
            let by = NamedBy::Frontend { name: name.clone() };
            listed.iter().map(move |endpoint| (EndpointPriority::Frontend, endpoint, by.clone()))
        });
        let entries = self.entries.iter().map(|(key, Registered { priority, endpoint, lease })| {
            (*priority, endpoint, NamedBy::Entry { key: key.clone(), lease: *lease })
        });
        for (priority, endpoint, by) in entries.chain(listed) {
            let mut endpoint = endpoint.clone();
            let name = (endpoint.worker.id, endpoint.endpoint.clone());
            if let Some(&rank) = self.ranks.get(&name)
                && !endpoint.is_rank_known
            {
                endpoint.worker.dp_rank = rank;
                endpoint.is_rank_known = true;
            }
            named_ranks.insert(name);
            let known = self.by_worker.entry(endpoint.worker.id).or_default();
            if !known.iter().any(|same| same.endpoint == endpoint) {
                known.push(NamedEndpoint { priority, endpoint, by });
            }
        }
        // An endpoint that nothing names any more is queried no more.
        self.ranks.retain(|name, _| named_ranks.contains(name));
        self.by_worker.values_mut().for_each(|known| known.sort_by_key(|named| named.priority));
        true
    }

    #[cfg(test)]
    pub(super) fn sizes(&self) -> [(&'static str, usize); 3] {
        let Self { entries, by_worker, ranks, .. } = self;
        [("endpoints", entries.len()), ("endpoints by worker", by_worker.len()), ("ranks", ranks.len())]
    }

    /// Workers that can be queried, with the rank that is likely where none is known.
    pub(super) fn workers(&self) -> impl Iterator<Item = Worker> + '_ {
        self.by_worker.values().flatten().map(|named| named.endpoint.worker)
    }

    /// Where a worker is queried whose events come from this publisher.
    pub(super) fn of(&self, worker: Worker, publisher_id: Option<u64>) -> Option<NamedEndpoint> {
        let fits = |endpoint: &QueryEndpoint| match (endpoint.publisher_id, publisher_id) {
            (Some(its), Some(ours)) => its == ours,
            _ => endpoint.worker == worker,
        };
        let known = self.by_worker.get(&worker.id)?;
        let fitting = known.iter().find(|NamedEndpoint { endpoint, .. }| {
            fits(endpoint) && (!endpoint.is_rank_known || endpoint.worker == worker)
        })?;
        let its = &fitting.endpoint;
        let is_rank_known = its.is_rank_known || its.publisher_id.is_some() && publisher_id.is_some();
        let endpoint = QueryEndpoint { worker, is_rank_known, ..its.clone() };
        Some(NamedEndpoint { endpoint, ..fitting.clone() })
    }
}

/// Whether an endpoint is queried only on request.
pub(super) fn is_in_the_loop(endpoint: &QueryEndpoint) -> bool {
    endpoint.endpoint == IN_THE_LOOP
}
