//! A cluster's prefix tree of a chosen size, grown as conversations grow it: system prompts that many share, turns below them,
//! answers asked for again. Published as the KV events of its workers, one at a time; deterministic by seed.
//!
//! What is kept is a few numbers for each turn, never its blocks: their hashes are computed when an event is reported.
//!
//! # How it works
//!
//! `cargo xtask bench tree` measures the page that people see: a grown tree is published as a worker's own messages to a real
//! NATS server, received by a real `radixscope serve`, and looked at in a headless Chromium. A tree grows as conversations grow
//! it: forty system prompts that all workers hold, a few of them popular; turns of 5 to 40 blocks below, up to a thousand in a
//! row; answers asked for again; one conversation in ten on a second worker. A seed repeats it, and only a few numbers a turn
//! are kept. *Work* is the time of the main thread's tasks in Chromium's own trace, in the frames in which the tree was put on
//! its canvas; frames themselves come late on a busy machine whatever the page does. Chromium's counters over the same time
//! stand beside it in `target/bench/tree.json`, as a check. A reader's hand is real input, a frame at a time; a page that does
//! not follow it has no figure. The rivals draw the same boxes, which the generator knows by itself, on as many pixels in the
//! same browser, without axis, labels or selection: `fillRect` the same picture, a treemap of ECharts the same hierarchy in its
//! own arrangement. The network is not recorded while the page is measured (`with_unrecorded_page`), because its main thread
//! would copy every frame of the socket for that.

mod boxes;
mod segments;
mod wire;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

use crate::random::Random;
pub use boxes::Drawn;
use segments::Segments;
pub use wire::{RouterEvent, SUBJECT, Wire, worker_id};

/// System prompts that conversations start with.
const STARTERS: usize = 40;
/// Blocks of a system prompt.
const STARTER_BLOCKS: (u64, u64) = (20, 120);
/// Blocks of a turn's question and of its response, 5 to 40 together.
const QUESTION_BLOCKS: (u64, u64) = (2, 12);
const ANSWER_BLOCKS: (u64, u64) = (3, 28);
/// Blocks of a stored event after the tree is grown: engines tell a turn piece by piece.
const PIECE_BLOCKS: (u64, u64) = (1, 16);
/// Blocks at which a conversation ends whatever else.
const LONGEST_BLOCKS: u64 = 1_000;
/// Of a hundred turns, those that are the last; those whose response is asked for once more.
const LAST_PERCENT: u64 = 20;
const AGAIN_PERCENT: u64 = 15;
/// Of a hundred conversations, those that are on a second worker too, and those of agents, which end only when they are
/// as long as can be.
const SECOND_WORKER_PERCENT: u64 = 10;
const AGENT_PERCENT: u64 = 3;
/// Conversations that go on beside each other.
const MOST_OPEN: u64 = 256;

/// What a worker tells of its cache. Workers are numbered from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Who tells.
    pub worker: u16,
    /// What.
    pub change: Change,
}

/// What became of blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Stored in a row below `parent`, or as the first of a prompt.
    Stored {
        /// Engine's hash of the block above.
        parent: Option<BlockHash>,
        /// From the upper to the lower.
        blocks: Vec<Block>,
    },
    /// Evicted.
    Removed(Vec<BlockHash>),
}

/// A conversation that goes on.
struct Conversation {
    /// Its last turn.
    tip: u32,
    owners: u32,
    is_agent: bool,
}

/// The tree. Iterating grows it to its size and ends there; [`SyntheticTree::live`] goes on, at that size.
pub struct SyntheticTree {
    random: Random,
    workers: u16,
    /// Distinct blocks that it grows to.
    size_blocks: u64,
    segments: Segments,
    open: Vec<Conversation>,
    /// Turns without one below, the oldest first; begun when the tree has grown.
    leaves: Option<BinaryHeap<Reverse<u32>>>,
    /// Events to publish next.
    pending: VecDeque<Event>,
}

impl SyntheticTree {
    /// `size_blocks` distinct blocks over `workers`, of which there are 32 at most.
    pub fn new(size_blocks: u64, workers: u16, seed: u64) -> Self {
        assert!((1..=32).contains(&workers), "owners are the bits of a u32");
        Self {
            random: Random::new(seed),
            workers,
            size_blocks,
            segments: Segments::new(seed),
            open: Vec::new(),
            leaves: None,
            pending: VecDeque::new(),
        }
    }

    /// Distinct blocks that some worker holds.
    pub fn distinct_blocks(&self) -> u64 {
        self.segments.distinct_blocks
    }

    /// Blocks that are held, counted once for each worker.
    pub fn held_blocks(&self) -> u64 {
        self.segments.held_blocks
    }

    /// What there is to draw: runs of blocks with the same owners and without a fork, those above before those below.
    pub fn boxes(&self) -> Vec<Drawn> {
        boxes::of(&self.segments)
    }

    /// The next event at the size that was grown to: pieces of turns are stored, the oldest ends are evicted.
    pub fn live(&mut self) -> Event {
        let segments = &self.segments;
        self.leaves.get_or_insert_with(|| segments.leaves().map(Reverse).collect());
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            if self.segments.distinct_blocks > self.size_blocks {
                self.evict();
            } else {
                self.go_on(PIECE_BLOCKS, None);
            }
        }
    }

    /// A conversation goes on by a part of a turn, with a response if there is to be one.
    fn go_on(&mut self, blocks: (u64, u64), response: Option<(u64, u64)>) {
        let enough = (self.size_blocks / 2_000).clamp(8, MOST_OPEN) as usize;
        while self.open.len() < enough {
            let conversation = self.begin();
            self.open.push(conversation);
        }
        let at = self.random.below(self.open.len() as u64) as usize;
        let Conversation { tip, owners, is_agent } = self.open[at];
        // Its end may have been evicted while it waited: then it is over.
        if !self.segments.is_held(tip) {
            self.open[at] = self.begin();
            return;
        }
        let mut new = self.store(Some(tip), blocks, owners);
        if let Some(response) = response {
            let question = new;
            new = self.store(Some(question), response, owners);
            if self.random.percent(AGAIN_PERCENT) {
                new = self.store(Some(question), response, owners);
            }
        } else if self.random.percent(AGAIN_PERCENT) {
            new = self.store(Some(tip), blocks, owners);
        }
        let is_over = self.segments.end_blocks(new) + QUESTION_BLOCKS.1 + ANSWER_BLOCKS.1 > LONGEST_BLOCKS;
        if is_over || !is_agent && self.random.percent(LAST_PERCENT) {
            self.open[at] = self.begin();
        } else {
            self.open[at].tip = new;
        }
    }

    /// A conversation below a system prompt, of which few are popular.
    fn begin(&mut self) -> Conversation {
        let starter = self.random.zipf(self.segments.starters() as usize);
        let worker = |random: &mut Random, workers: u16| 1 << random.below(workers.into());
        let mut owners: u32 = worker(&mut self.random, self.workers);
        if self.random.percent(SECOND_WORKER_PERCENT) {
            owners |= worker(&mut self.random, self.workers);
        }
        let is_agent = self.random.percent(AGENT_PERCENT);
        Conversation { tip: starter as u32, owners, is_agent }
    }

    /// Every worker stores a system prompt.
    fn store_starter(&mut self) {
        self.store(None, STARTER_BLOCKS, u32::MAX >> (32 - u32::from(self.workers)));
    }

    fn store(&mut self, parent: Option<u32>, (least, most): (u64, u64), owners: u32) -> u32 {
        // Never beyond the size while it grows, so that it ends exactly there.
        let room = self.size_blocks.saturating_sub(self.segments.distinct_blocks);
        let len = least + self.random.below(most - least + 1);
        let len = if self.leaves.is_none() { len.min(room) } else { len };
        let (id, parent, blocks) = self.segments.add(parent, len, owners);
        if !blocks.is_empty() {
            self.pending.extend(workers_of(owners).map(|worker| {
                let blocks = blocks.clone();
                Event { worker, change: Change::Stored { parent, blocks } }
            }));
            if let Some(leaves) = &mut self.leaves {
                leaves.push(Reverse(id));
            }
        }
        id
    }

    /// The oldest end goes, some blocks at a time.
    fn evict(&mut self) {
        let segments = &mut self.segments;
        let leaves = self.leaves.as_mut().expect("begun with the first live event");
        let Reverse(id) = leaves.pop().expect("what is beyond the size is below a system prompt");
        if !segments.is_leaf(id) {
            return;
        }
        let (least, most) = PIECE_BLOCKS;
        let (hashes, owners) = segments.cut(id, least + self.random.below(most - least + 1));
        if segments.is_held(id) {
            leaves.push(Reverse(id));
        } else if let Some(above) = segments.parent(id).filter(|&above| segments.is_leaf(above)) {
            leaves.push(Reverse(above));
        }
        self.pending.extend(workers_of(owners).map(|worker| {
            let change = Change::Removed(hashes.clone());
            Event { worker, change }
        }));
    }
}

impl Iterator for SyntheticTree {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.segments.distinct_blocks >= self.size_blocks {
                return None;
            }
            if (self.segments.starters() as usize) < STARTERS {
                self.store_starter();
            } else {
                self.go_on(QUESTION_BLOCKS, Some(ANSWER_BLOCKS));
            }
        }
    }
}

/// The workers of a mask.
fn workers_of(owners: u32) -> impl Iterator<Item = u16> {
    (0..32).filter(move |worker| owners >> worker & 1 == 1)
}

/// Blocks of a tree, as people write its size: `10k`, `1m`, `250000`.
///
/// # Panics
/// When it is none.
///
/// # Errors
/// It is none.
pub fn blocks_of(text: &str) -> Result<u64, String> {
    let text = text.to_lowercase();
    let (digits, times) = match (text.strip_suffix('k'), text.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1_000),
        (_, Some(digits)) => (digits, 1_000_000),
        _ => (text.as_str(), 1),
    };
    let digits: u64 = digits.parse().map_err(|_| format!("{text} is no number of blocks; 10k and 1m are"))?;
    Ok(digits * times)
}

#[cfg(test)]
mod tests;
