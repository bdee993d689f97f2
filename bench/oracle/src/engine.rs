//! An engine's prefix cache: blocks by chain hash, bounded, the least recently used evicted. It says what it stored
//! and removed, as engines do. Must not know who listens.

use std::collections::{BTreeSet, HashMap};

use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_router::hash::chain_hash;

use crate::Change;

/// Which of the least recently used blocks goes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eviction {
    /// Only blocks with nothing below them go: a prefix outlives what continues it.
    LeavesFirst,
    /// Blocks go in the order of their last use, the beginning of a prompt before its end, as with Dynamo's mocker
    /// (reference §6.3): chains get holes.
    PrefixesFirst,
}

struct CachedBlock {
    parent: Option<u64>,
    children: u32,
    used: u64,
}

/// The cache of one worker.
pub struct Engine {
    capacity_blocks: usize,
    eviction: Eviction,
    cached: HashMap<u64, CachedBlock>,
    /// Blocks that may be evicted, the least recently used first.
    evictable: BTreeSet<(u64, u64)>,
    clock: u64,
}

impl Engine {
    /// An empty cache.
    pub fn new(capacity_blocks: usize, eviction: Eviction) -> Self {
        Self { capacity_blocks, eviction, cached: HashMap::new(), evictable: BTreeSet::new(), clock: 0 }
    }

    /// Blocks held now.
    pub fn len(&self) -> usize {
        self.cached.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.cached.is_empty()
    }

    /// A request with this prompt ran: what was missing is stored, in runs of at most `run_blocks`, and what had to
    /// go is removed.
    pub fn run(&mut self, prompt: &[u64], run_blocks: usize, say: &mut dyn FnMut(Change)) {
        let mut parent = None;
        let mut missing: Vec<(Option<u64>, u64, u64)> = Vec::new();
        for &tokens in prompt {
            let hash = chain_hash(parent.map(BlockHash), TokensHash(tokens)).0;
            if self.cached.contains_key(&hash) {
                self.touch(hash);
            } else {
                missing.push((parent, hash, tokens));
            }
            parent = Some(hash);
        }
        let removed = self.make_room(missing.len());
        if !removed.is_empty() {
            say(Change::Removed(removed));
        }
        let (mut above, mut run) = (None, Vec::new());
        for (parent, hash, tokens) in missing {
            // What this request itself still needs may have gone to make room: the engine gives up here.
            if parent.is_some_and(|p| !self.cached.contains_key(&p)) {
                break;
            }
            self.insert(parent, hash);
            let goes_on = run.last().is_some_and(|&(last, _)| Some(last) == parent);
            if !run.is_empty() && (!goes_on || run.len() == run_blocks) {
                say(Change::Stored { parent: above, blocks: std::mem::take(&mut run) });
            }
            if run.is_empty() {
                above = parent;
            }
            run.push((hash, tokens));
        }
        if !run.is_empty() {
            say(Change::Stored { parent: above, blocks: run });
        }
    }

    /// The engine drops everything.
    pub fn clear(&mut self, say: &mut dyn FnMut(Change)) {
        self.cached.clear();
        self.evictable.clear();
        say(Change::Cleared);
    }

    fn insert(&mut self, parent: Option<u64>, hash: u64) {
        self.clock += 1;
        self.cached.insert(hash, CachedBlock { parent, children: 0, used: self.clock });
        self.evictable.insert((self.clock, hash));
        if let Some(parent) = parent {
            self.count_child(parent, 1);
        }
    }

    fn touch(&mut self, hash: u64) {
        self.clock += 1;
        if let Some(cached) = self.cached.get_mut(&hash) {
            if self.evictable.remove(&(cached.used, hash)) {
                self.evictable.insert((self.clock, hash));
            }
            cached.used = self.clock;
        }
    }

    /// `parent` has one child more or less.
    fn count_child(&mut self, parent: u64, step: i32) {
        let Some(cached) = self.cached.get_mut(&parent) else { return };
        cached.children = cached.children.saturating_add_signed(step);
        if self.eviction == Eviction::LeavesFirst {
            match cached.children {
                0 => self.evictable.insert((cached.used, parent)),
                _ => self.evictable.remove(&(cached.used, parent)),
            };
        }
    }

    fn make_room(&mut self, blocks: usize) -> Vec<u64> {
        let mut removed = Vec::new();
        while self.cached.len() + blocks > self.capacity_blocks
            && let Some((_, hash)) = self.evictable.pop_first()
        {
            removed.push(hash);
            if let Some(parent) = self.cached.remove(&hash).and_then(|cached| cached.parent) {
                self.count_child(parent, -1);
            }
        }
        removed
    }
}
