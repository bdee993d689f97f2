//! Prompts as people make them: a few shared beginnings, conversations that grow turn by turn, some of them forked.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::engine::{Engine, Eviction};
use crate::{Change, Event};

/// What the traffic is like.
#[derive(Clone, Copy, Debug)]
pub struct Talk {
    /// Workers.
    pub workers: u16,
    /// Blocks each worker's cache holds.
    pub capacity_blocks: usize,
    /// Shared beginnings (system prompts).
    pub starters: usize,
    /// Blocks of each beginning, at most.
    pub starter_blocks: usize,
    /// Blocks that one turn adds, at most.
    pub turn_blocks: usize,
    /// What goes first when a cache is full.
    pub eviction: Eviction,
    /// One turn in so many is followed by its worker dropping everything; 0: never.
    pub clear_every: u32,
}

impl Talk {
    /// Events after which eight workers hold about `resident` blocks: beginnings that all share, conversations that
    /// grow and fork, full caches that evict.
    pub fn events_until(resident: usize, seed: u64) -> Vec<Event> {
        let workers = 8;
        let talk = Self {
            workers,
            capacity_blocks: resident / usize::from(workers),
            starters: 40,
            starter_blocks: 200,
            turn_blocks: 60,
            eviction: Eviction::LeavesFirst,
            clear_every: 0,
        };
        let mut talks = Talks::new(talk, seed);
        let mut events = Vec::new();
        while talks.resident() < resident * 98 / 100 {
            talks.turn(&mut |event| events.push(event));
        }
        events
    }
}

/// Makes traffic without end.
pub struct Talks {
    talk: Talk,
    rng: Pcg64Mcg,
    engines: Vec<Engine>,
    starters: Vec<Vec<u64>>,
    /// Prompts so far, each with the worker it went to last.
    open: Vec<(u16, Vec<u64>)>,
}

/// Conversations that may go on.
const OPEN: usize = 512;
/// One turn in so many goes to another worker than the one before.
const ELSEWHERE: u32 = 4;
/// Blocks of one stored event, at most.
const RUN_BLOCKS: usize = 64;

impl Talks {
    /// The traffic named `seed`.
    pub fn new(talk: Talk, seed: u64) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let starters = (0..talk.starters)
            .map(|_| words(&mut rng, talk.starter_blocks / 2, talk.starter_blocks))
            .collect();
        let engines = (0..talk.workers).map(|_| Engine::new(talk.capacity_blocks, talk.eviction)).collect();
        Self { talk, rng, engines, starters, open: Vec::new() }
    }

    /// Blocks held by all workers.
    pub fn resident(&self) -> usize {
        self.engines.iter().map(Engine::len).sum()
    }

    /// One more turn. Returns its prompt.
    pub fn turn(&mut self, say: &mut dyn FnMut(Event)) -> Vec<u64> {
        let (mut worker, mut prompt) = self.next_prompt();
        if self.rng.random_ratio(1, ELSEWHERE) {
            worker = self.rng.random_range(0..self.talk.workers);
        }
        prompt.extend(words(&mut self.rng, 1, self.talk.turn_blocks));
        let mut tell = |change: Change| say(Event { worker, change });
        self.engines[usize::from(worker)].run(&prompt, RUN_BLOCKS, &mut tell);
        if self.talk.clear_every > 0 && self.rng.random_ratio(1, self.talk.clear_every) {
            self.engines[usize::from(worker)].clear(&mut tell);
        }
        if self.open.len() < OPEN {
            self.open.push((worker, prompt.clone()));
        } else {
            let at = self.rng.random_range(0..OPEN);
            self.open[at] = (worker, prompt.clone());
        }
        prompt
    }

    /// A new conversation, or one that goes on or forks.
    fn next_prompt(&mut self) -> (u16, Vec<u64>) {
        if self.open.is_empty() || self.rng.random_ratio(1, 3) {
            let starter = self.rng.random_range(0..self.starters.len());
            return (self.rng.random_range(0..self.talk.workers), self.starters[starter].clone());
        }
        let at = self.rng.random_range(0..self.open.len());
        let (worker, mut prompt) = self.open[at].clone();
        if self.rng.random_ratio(1, 4) {
            prompt.truncate(self.rng.random_range(1..=prompt.len()));
        }
        (worker, prompt)
    }
}

fn words(rng: &mut Pcg64Mcg, least: usize, most: usize) -> Vec<u64> {
    let len = rng.random_range(least.max(1)..=most.max(1));
    (0..len).map(|_| rng.next_u64()).collect()
}
