//! The entries that discovery holds now, by worker, and so which workers are present. Knows no records.
//!
//! A worker is there while the endpoint at which it takes requests and its model card are: Dynamo's own routers go by both.
//! Other entries of a worker that is going outlive these by half a second.

use hashbrown::HashMap;

use radixscope_dynamo::discovery::{DiscoveryEntry, MAX_ENTRIES};
use radixscope_model::id::{Millis, WorkerId};

/// What an entry, or its deletion, means for a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    /// It is there, and was not before.
    Came(WorkerId),
    /// It left. Reported again with each later deletion of an entry of it.
    Left(WorkerId),
}

/// Entries of discovery and the workers behind them.
#[derive(Default)]
pub(super) struct Discovered {
    entries: HashMap<Box<str>, EntryCounts>,
    workers: HashMap<WorkerId, EntryCounts>,
    /// When the first entry of all came.
    first_ms: Option<Millis>,
}

/// How many entries of each kind a worker has; or what one entry is.
#[derive(Clone, Copy, Default)]
struct EntryCounts {
    worker: Option<WorkerId>,
    requests: u32,
    cards: u32,
    others: u32,
    /// Whether it ever had these: what it never had is not missing.
    had_requests: bool,
    had_cards: bool,
}

impl EntryCounts {
    fn of(entry: &DiscoveryEntry, lease: Option<u64>) -> Self {
        let held = Self::default();
        match entry {
            DiscoveryEntry::Instance(of) if of.is_worker() => {
                Self { worker: Some(of.instance_id), requests: 1, ..held }
            }
            DiscoveryEntry::ModelCard(card) if card.adapter.is_none() => {
                Self { worker: Some(card.instance_id), cards: 1, ..held }
            }
            DiscoveryEntry::Instance(of) => Self { worker: Some(of.instance_id), others: 1, ..held },
            DiscoveryEntry::ModelCard(card) => Self { worker: Some(card.instance_id), others: 1, ..held },
            DiscoveryEntry::EventSource(source) => {
                Self { worker: source.worker.map(|worker| worker.id), others: 1, ..held }
            }
            DiscoveryEntry::EventChannel(_) => Self { worker: lease.map(WorkerId), others: 1, ..held },
            DiscoveryEntry::Other => held,
        }
    }

    fn add(&mut self, entry: &Self) {
        self.requests += entry.requests;
        self.cards += entry.cards;
        self.others += entry.others;
        self.had_requests |= entry.requests > 0;
        self.had_cards |= entry.cards > 0;
    }

    fn remove(&mut self, entry: &Self) {
        self.requests -= entry.requests;
        self.cards -= entry.cards;
        self.others -= entry.others;
    }

    fn is_there(&self) -> bool {
        let is_worker = self.had_requests || self.had_cards;
        is_worker && (self.requests > 0 || !self.had_requests) && (self.cards > 0 || !self.had_cards)
    }
}

impl Discovered {
    /// An entry is as `entry` now. `Err`: there are more than are kept apart.
    pub(super) fn put(
        &mut self,
        key: &str,
        entry: &DiscoveryEntry,
        lease: Option<u64>,
    ) -> Result<Option<Presence>, ()> {
        let held = EntryCounts::of(entry, lease);
        match self.entries.get(key).copied() {
            Some(was) if was.worker == held.worker => {
                self.entries.insert(key.into(), held);
                return Ok(self.of_worker(held.worker, |worker| {
                    worker.remove(&was);
                    worker.add(&held);
                }));
            }
            // Of another worker now, as no entry of Dynamo becomes.
            Some(_) => drop(self.end(key)),
            None if self.entries.len() == MAX_ENTRIES => return Err(()),
            None => {}
        }
        self.entries.insert(key.into(), held);
        Ok(self.of_worker(held.worker, |worker| worker.add(&held)))
    }

    /// An entry is gone.
    pub(super) fn end(&mut self, key: &str) -> Option<Presence> {
        let held = self.entries.remove(key)?;
        let change = self.of_worker(held.worker, |worker| worker.remove(&held));
        let has_none = |worker: &EntryCounts| worker.requests + worker.cards + worker.others == 0;
        if let Some(id) = held.worker.filter(|id| self.workers.get(id).is_some_and(has_none)) {
            self.workers.remove(&id);
        }
        change
    }

    /// An entry came at `at`.
    pub(super) fn came(&mut self, at: Millis) {
        self.first_ms.get_or_insert(at);
    }

    /// When the first entry of all came; `None`: none did.
    pub(super) fn first_ms(&self) -> Option<Millis> {
        self.first_ms
    }

    #[cfg(test)]
    pub(super) fn sizes(&self) -> [(&'static str, usize); 2] {
        [("entries of discovery", self.entries.len()), ("discovered workers", self.workers.len())]
    }

    /// Whether no worker is listed at all.
    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Whether a worker is there. `None`: discovery holds nothing of it.
    pub(super) fn is_there(&self, id: WorkerId) -> Option<bool> {
        let held = self.workers.get(&id).filter(|held| held.had_requests || held.had_cards)?;
        Some(held.is_there())
    }

    fn of_worker(&mut self, id: Option<WorkerId>, change: impl FnOnce(&mut EntryCounts)) -> Option<Presence> {
        let id = id?;
        let worker = self.workers.entry(id).or_default();
        let (was_worker, was_there) = (worker.had_requests || worker.had_cards, worker.is_there());
        let entries = worker.requests + worker.cards + worker.others;
        change(worker);
        match (was_there, worker.is_there()) {
            (false, true) => Some(Presence::Came(id)),
            (true, true) => None,
            (_, false) => {
                let ended = worker.requests + worker.cards + worker.others < entries;
                (was_worker && ended).then_some(Presence::Left(id))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_dynamo::discovery::decode;

    const ID: WorkerId = WorkerId(0x6a6c);

    fn entry(key: &str) -> DiscoveryEntry {
        let value = match key.split('/').nth(1) {
            Some("mdc") => {
                r#"{"type":"Model","namespace":"d","component":"b","endpoint":"generate","instance_id":27244,"model_suffix":SUFFIX,"card_json":{}}"#
            }
            _ => {
                r#"{"type":"Endpoint","namespace":"d","component":"b","endpoint":"NAME","instance_id":27244}"#
            }
        };
        let suffix = if key.ends_with("lora") { "\"lora\"" } else { "null" };
        let name = key.split('/').nth(4).unwrap_or_default();
        decode(key, value.replace("SUFFIX", suffix).replace("NAME", name).as_bytes()).expect("decodes")
    }

    const REQUESTS: &str = "v1/instances/d/b/generate/6a6c";
    const QUERY: &str = "v1/instances/d/b/worker_kv_query_source_1/6a6c";
    const CARD: &str = "v1/mdc/d/b/generate/6a6c";
    const ADAPTER: &str = "v1/mdc/d/b/generate/6a6c/lora";

    /// What a row of `+key` and `-key` says.
    fn apply_keys(row: &[(char, &str)]) -> (Vec<Option<Presence>>, Discovered) {
        let mut all = Discovered::default();
        let presences = row.iter().map(|&(op, key)| match op {
            '+' => all.put(key, &entry(key), None).expect("few entries"),
            _ => all.end(key),
        });
        (presences.collect(), all)
    }

    #[test]
    fn a_worker_that_ends_leaves_with_its_endpoint_and_not_with_its_other_entries() {
        let (presences, all) = apply_keys(&[
            ('+', QUERY),
            ('+', REQUESTS),
            ('+', CARD),
            ('+', CARD),
            ('-', QUERY),
            ('-', REQUESTS),
            ('-', CARD),
        ]);
        let left = Some(Presence::Left(ID));
        assert_eq!(presences, [None, Some(Presence::Came(ID)), None, None, None, left, left]);
        assert_eq!(all.is_there(ID), None);
        assert!(all.entries.is_empty() && all.workers.is_empty());
    }

    #[test]
    fn a_card_that_goes_takes_the_worker_along_and_an_adapter_does_not() {
        let (presences, all) =
            apply_keys(&[('+', REQUESTS), ('+', CARD), ('+', ADAPTER), ('-', ADAPTER), ('-', CARD)]);
        let came = Some(Presence::Came(ID));
        assert_eq!(presences, [came, None, None, None, Some(Presence::Left(ID))]);
        assert_eq!(all.is_there(ID), Some(false));
    }

    #[test]
    fn a_worker_comes_back_once_all_that_it_had_is_there_again() {
        let (presences, all) = apply_keys(&[
            ('+', REQUESTS),
            ('+', CARD),
            ('-', CARD),
            ('-', REQUESTS),
            ('+', REQUESTS),
            ('-', REQUESTS),
            ('+', QUERY),
            ('+', CARD),
        ]);
        let (came, left) = (Some(Presence::Came(ID)), Some(Presence::Left(ID)));
        // With its last entry it is forgotten, so that either alone reports it again.
        assert_eq!(presences, [came, None, left, left, came, left, None, came]);
        assert_eq!(all.is_there(ID), Some(true));
    }

    #[test]
    fn more_entries_than_are_kept_apart_are_refused() {
        let mut all = Discovered::default();
        let card = entry(CARD);
        let put = (0..=MAX_ENTRIES).map(|i| all.put(&format!("v1/mdc/d/b/generate/{i:x}"), &card, None));
        assert_eq!(put.filter(Result::is_err).count(), 1);
        assert!(all.put("v1/mdc/d/b/generate/0", &card, None).is_ok(), "known ones are");
    }
}
