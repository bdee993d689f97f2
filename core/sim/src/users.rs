//! The users: a closed loop of multi-turn conversations over a few shared starters, begun in waves.
//!
//! A user always has one request in flight or is about to send one. New conversations begin in waves, and most of a
//! wave is about the same starter, as when a class begins or a document is passed round.
//! Must not know workers, the router or the wire.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::config::{Config, Workload};
use super::engine::{Job, RequestTexts};
use super::tokens::{BlockHasher, token_id};
use radixscope_model::record::Block;

/// A text that conversations begin with.
#[derive(Debug)]
struct SharedPrefix {
    name: u64,
    len_tokens: u32,
    blocks: Vec<Block>,
    routed: Vec<Block>,
}

/// One user and the conversation under way.
#[derive(Debug, Default)]
struct User {
    /// Whether the user sends messages: those who left do not.
    is_there: bool,
    starter: u32,
    name: u64,
    turns_left: u32,
    isl_tokens: u32,
    osl_tokens: u32,
    blocks: Vec<Block>,
    /// The text in blocks of the router's size, where that is another.
    routed: Vec<Block>,
}

/// All users.
#[derive(Debug)]
pub(super) struct Users {
    workload: Workload,
    starters: Vec<SharedPrefix>,
    users: Vec<User>,
    /// Users below this number stay; the others leave when their request is over.
    concurrency: u32,
    /// Users that join the next wave.
    waiting: Vec<u32>,
    /// What the wave is about.
    topic: u32,
    hasher: BlockHasher,
    /// Makes the blocks that the router sees, where its size is another.
    router_hasher: Option<BlockHasher>,
    rng: Pcg64Mcg,
}

impl User {
    fn joined() -> Self {
        Self { is_there: true, ..Self::default() }
    }
}

impl RequestTexts for Users {
    /// A user has one request at a time, known by the user's number.
    fn blocks(&self, user: u32) -> &[Block] {
        &self.users[user as usize].blocks
    }
}

impl Users {
    pub(super) fn new(config: &Config) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(config.seed);
        let engine_size = config.engine_block_size_tokens();
        let mut hasher = BlockHasher::new(engine_size);
        let mut router_hasher =
            (engine_size != config.block_size_tokens).then(|| BlockHasher::new(config.block_size_tokens));
        let starter = |_| {
            let (name, len_tokens) = (rng.random(), between(&mut rng, config.workload.starter_tokens));
            let (mut blocks, mut routed) = (Vec::new(), Vec::new());
            hasher.extend(&mut blocks, len_tokens, |at| token_id(name, at));
            if let Some(hasher) = &mut router_hasher {
                hasher.extend(&mut routed, len_tokens, |at| token_id(name, at));
            }
            SharedPrefix { name, len_tokens, blocks, routed }
        };
        Self {
            starters: (0..config.workload.starters).map(starter).collect(),
            users: (0..config.concurrency).map(|_| User::joined()).collect(),
            concurrency: config.concurrency,
            waiting: Vec::new(),
            topic: 0,
            workload: config.workload.clone(),
            hasher,
            router_hasher,
            rng,
        }
    }

    /// Full blocks of a request's prompt and output, of the size that the router assumes for every pool.
    pub(super) fn routed_blocks(&self, request: u32) -> &[Block] {
        let user = &self.users[request as usize];
        if self.router_hasher.is_some() { &user.routed } else { &user.blocks }
    }

    /// The conversation of a request.
    pub(super) fn conversation(&self, request: u32) -> u64 {
        self.users[request as usize].name
    }

    /// From now on there are so many users. Calls `joined` with each that comes; those with higher numbers leave by
    /// [`Users::leaves`].
    pub(super) fn set_concurrency(&mut self, concurrency: u32, mut joined: impl FnMut(u32)) {
        self.concurrency = concurrency;
        for user in 0..concurrency {
            match self.users.get_mut(user as usize) {
                // One that has not left yet stays.
                Some(user) if user.is_there => continue,
                Some(user) => user.is_there = true,
                None => self.users.push(User::joined()),
            }
            joined(user);
        }
    }

    /// Whether a user without a request in flight leaves now.
    pub(super) fn leaves(&mut self, user: u32) -> bool {
        let leaves = user >= self.concurrency;
        if leaves {
            self.users[user as usize].is_there = false;
        }
        leaves
    }

    /// The prompt and output of a user's current request.
    pub(super) fn job(&self, request: u32) -> Job {
        let User { isl_tokens, osl_tokens, .. } = self.users[request as usize];
        let max_output_tokens = self.workload.longest_output();
        Job { request, isl_tokens, osl_tokens, max_output_tokens, ..Job::default() }
    }

    /// A user wants a new conversation and waits for the next wave.
    pub(super) fn wait(&mut self, user: u32) {
        self.waiting.push(user);
    }

    /// A wave begins: everybody waiting starts a conversation; `begun` is called with each. Returns milliseconds to the next.
    pub(super) fn wave(&mut self, mut begun: impl FnMut(u32)) -> u32 {
        self.topic = self.popular_starter();
        let mut waiting = std::mem::take(&mut self.waiting);
        for user in waiting.drain(..) {
            if self.leaves(user) {
                continue;
            }
            self.begin_conversation(user);
            begun(user);
        }
        self.waiting = waiting;
        between(&mut self.rng, self.workload.wave_ms)
    }

    /// A user has read the response. Returns the milliseconds to the next message, or `None` if the conversation is
    /// over.
    pub(super) fn receive_response(&mut self, user: u32) -> Option<u32> {
        let ended = &mut self.users[user as usize];
        ended.turns_left -= 1;
        if ended.turns_left == 0 {
            return None;
        }
        let history = ended.isl_tokens + ended.osl_tokens;
        self.next_turn(user, history);
        Some(between(&mut self.rng, self.workload.think_ms))
    }

    fn begin_conversation(&mut self, at: u32) {
        let topical = self.percent(self.workload.wave_percent);
        let starter = if topical { self.topic } else { self.popular_starter() };
        let user = &mut self.users[at as usize];
        user.starter = starter;
        user.name = self.rng.random();
        user.turns_left = between(&mut self.rng, self.workload.turns);
        let starter = &self.starters[starter as usize];
        user.blocks.clear();
        user.blocks.extend_from_slice(&starter.blocks);
        user.routed.clear();
        user.routed.extend_from_slice(&starter.routed);
        let history = starter.len_tokens;
        self.next_turn(at, history);
    }

    /// The user writes below `history_tokens` of conversation. The model's output is known here already, so
    /// its blocks are too.
    fn next_turn(&mut self, at: u32, history_tokens: u32) {
        let pasted = self.percent(self.workload.pasted_percent);
        let Workload { message_tokens, pasted_tokens, output_tokens, short_output_tokens, .. } =
            self.workload;
        let message = between(&mut self.rng, if pasted { pasted_tokens } else { message_tokens });
        let short = self.percent(self.workload.short_output_percent);
        let output = between(&mut self.rng, if short { short_output_tokens } else { output_tokens });
        let user = &mut self.users[at as usize];
        user.isl_tokens = history_tokens + message;
        user.osl_tokens = output;
        let starter = &self.starters[user.starter as usize];
        let (starter_name, starter_len, name) = (starter.name, starter.len_tokens, user.name);
        let token = |position| token_id(if position < starter_len { starter_name } else { name }, position);
        self.hasher.extend(&mut user.blocks, user.isl_tokens + output, token);
        if let Some(hasher) = &mut self.router_hasher {
            hasher.extend(&mut user.routed, user.isl_tokens + output, token);
        }
    }

    /// Popularity falls with rank as in Zipf's law: the n-th starter is chosen 1/n as often as the first.
    fn popular_starter(&mut self) -> u32 {
        const SCALE: u64 = 1 << 32;
        let starters = self.workload.starters;
        let mut draw = self.rng.random_range(0..(1..=u64::from(starters)).map(|rank| SCALE / rank).sum());
        for rank in 1..=u64::from(starters) {
            let weight = SCALE / rank;
            if draw < weight {
                return rank as u32 - 1;
            }
            draw -= weight;
        }
        starters - 1
    }

    fn percent(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }
}

fn between(rng: &mut Pcg64Mcg, (least, most): (u32, u32)) -> u32 {
    rng.random_range(least..=most)
}
