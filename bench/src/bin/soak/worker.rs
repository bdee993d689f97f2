//! A worker of a soak as far as its KV events go: what it stores and evicts, and its response to a query for its blocks. Knows
//! neither how events travel nor where it is registered.

use std::collections::VecDeque;

use serde_json::{Value, json};

use radixscope_bench::random::{Random, mixed};
use radixscope_tests::fake_worker::{Call, Script, whole};

/// Blocks that a turn of a conversation adds.
const TURN_BLOCKS: u64 = 4;
/// Turns that a worker's cache takes; then a turn is evicted for each that is stored, as in a warm engine.
const TURNS_HELD: usize = 300;
/// Of 100 turns, those that continue a conversation.
const CONTINUES_PERCENT: u64 = 60;
/// First turns that all workers may share: system prompts.
const STARTERS: u64 = 400;

/// A worker's cache.
pub(super) struct Cache {
    worker_id: u64,
    random: Random,
    /// Oldest first.
    turns: VecDeque<Turn>,
    stored_total: u64,
    last_event_id: u64,
    is_to_evict: bool,
}

struct Turn {
    /// Its first block; the others have the numbers after it.
    first_hash: u64,
    /// The last block of the turn before.
    parent: Option<u64>,
    /// Which system prompt it is, if it is one.
    starter: Option<u64>,
    tokens: [u64; TURN_BLOCKS as usize],
}

impl Turn {
    fn hashes(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.first_hash;
        (0..TURN_BLOCKS).map(move |block| first + block)
    }

    fn last_hash(&self) -> u64 {
        self.first_hash + TURN_BLOCKS - 1
    }

    fn stored(&self) -> Value {
        let blocks = self.hashes().zip(self.tokens);
        let blocks: Vec<Value> =
            blocks.map(|(hash, tokens)| json!({"block_hash": hash, "tokens_hash": tokens})).collect();
        json!({"stored": {"parent_hash": self.parent, "blocks": blocks}})
    }
}

impl Cache {
    /// An empty one.
    pub(super) fn new(worker_id: u64) -> Self {
        let random = Random::new(mixed(worker_id));
        let turns = VecDeque::new();
        Self { worker_id, random, turns, stored_total: 0, last_event_id: 0, is_to_evict: false }
    }

    /// Blocks that it holds.
    pub(super) fn blocks(&self) -> u64 {
        self.turns.len() as u64 * TURN_BLOCKS
    }

    /// The next event: a turn is stored, or one evicted to make room.
    pub(super) fn next_event(&mut self) -> Value {
        let data = if self.is_to_evict { self.evict() } else { self.store() };
        self.is_to_evict = self.turns.len() > TURNS_HELD;
        self.last_event_id += 1;
        self.event(self.last_event_id, &data)
    }

    fn event(&self, event_id: u64, data: &Value) -> Value {
        json!({"worker_id": self.worker_id, "event": {"event_id": event_id, "dp_rank": 0, "data": data}})
    }

    fn store(&mut self) -> Value {
        let starter = self.random.below(STARTERS);
        let is_held = self.turns.iter().any(|turn| turn.starter == Some(starter));
        let continued = (is_held || self.random.percent(CONTINUES_PERCENT)).then(|| {
            let turn = self.random.below(self.turns.len() as u64) as usize;
            self.turns.get(turn).map(Turn::last_hash)
        });
        let parent = continued.flatten();
        let starter = parent.is_none().then_some(starter);
        // What a starter holds is the same on every worker, the rest is this worker's own.
        let of = starter.map_or_else(|| mixed(self.worker_id) ^ mixed(self.stored_total), mixed);
        let tokens = std::array::from_fn(|block| mixed(of + block as u64));
        // An engine gives what it shares with others the same hashes too.
        let (of, number) = starter.map_or((self.worker_id, self.stored_total), |starter| (0, starter));
        let first_hash = mixed(of) << 24 | ((number * TURN_BLOCKS) & 0xff_ffff);
        self.stored_total += 1;
        let turn = Turn { first_hash, parent, starter, tokens };
        let stored = turn.stored();
        self.turns.push_back(turn);
        stored
    }

    /// The oldest turn that none continues.
    fn evict(&mut self) -> Value {
        let is_continued =
            |turn: &Turn| self.turns.iter().any(|other| other.parent == Some(turn.last_hash()));
        let leaf = self.turns.iter().position(|turn| !is_continued(turn));
        let turn = leaf.and_then(|at| self.turns.remove(at)).expect("the newest turn is continued by none");
        json!({"removed": {"block_hashes": turn.hashes().collect::<Vec<_>>()}})
    }

    /// Its response to a query for its blocks, whether for all or from an event on: all of them.
    pub(super) fn respond(&self, call: &Call) -> Script {
        // A parent is before those that continue it.
        let events: Vec<Value> =
            self.turns.iter().zip(0..).map(|(turn, number)| self.event(number, &turn.stored())).collect();
        let dump = json!({"events": events, "last_event_id": self.last_event_id, "reset_scope": "all"});
        let item = json!({"data": {"TreeDump": dump}, "complete_final": false});
        let item = match call.is_msgpack() {
            true => rmp_serde::to_vec_named(&item).expect("plain data"),
            false => item.to_string().into_bytes(),
        };
        Script::response(whole(&item, call.is_msgpack()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn what_is_evicted_is_held_and_continued_by_nothing() {
        let mut cache = Cache::new(7);
        let mut parents: HashMap<u64, Option<u64>> = HashMap::new();
        let mut evicted = 0;
        for _ in 0..3_000 {
            let event = cache.next_event();
            let data = &event["event"]["data"];
            for block in data["stored"]["blocks"].as_array().into_iter().flatten() {
                let hash = block["block_hash"].as_u64().expect("a number");
                let parent = data["stored"]["parent_hash"].as_u64();
                assert!(parents.insert(hash, parent).is_none(), "no block is stored twice");
                assert!(parent.is_none_or(|parent| parents.contains_key(&parent)), "the parent is held");
            }
            for hash in data["removed"]["block_hashes"].as_array().into_iter().flatten() {
                let hash = hash.as_u64().expect("a number");
                assert!(parents.remove(&hash).is_some(), "only what is held is evicted");
                assert!(parents.values().all(|parent| *parent != Some(hash)), "nothing continues it");
                evicted += 1;
            }
        }
        assert!(evicted > 3_000, "{evicted}");
        assert!(parents.len() <= (TURNS_HELD + 1) * TURN_BLOCKS as usize, "{}", parents.len());
    }
}
