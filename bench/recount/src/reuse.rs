//! Where each prompt's blocks were cached when a router chose a worker, and what became of those that were gone: replayed change by
//! change from messages and logs, slowly and plainly.
//!
//! A router applies an event some milliseconds after it was published, so that several states around a choice are possible: all that
//! agree with what the router logged of the chosen worker are given. The same where a router may have left a worker out, because it had
//! failed to reach it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::Path,
    sync::LazyLock,
};

use anyhow::{Context as _, Result};
use regex::Regex;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Worker;
use crate::capture::Message;
use crate::discovery::Role;
use crate::files;
use crate::log::{Line, pattern};
use crate::recording::{Recording, frontend_logs};
use crate::router::Fact;

/// The seed of Dynamo's hashes.
const SEED: u64 = 1337;
/// A message from this long before a choice may not have reached the router, microseconds.
const BEFORE_US: u64 = 50_000;
/// One from this long after may have.
const AFTER_US: u64 = 20_000;
/// From the fastest to the slowest; a prompt that goes on in a tier goes on from where the one before ended.
const TIERS: [&str; 4] = ["device", "host_pinned", "disk", "external"];

static REMOVED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Removing worker WorkerWithDpRank \{ worker_id: (\d+), dp_rank: (\d+) \}"));

/// Why a block is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Why {
    /// Its engine removed it.
    Evicted,
    /// Its engine removed all.
    Cleared,
    /// The worker left.
    Left,
}

impl Why {
    /// As Radixscope names the cause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Evicted => "evicted",
            Self::Cleared => "cleared",
            Self::Left => "worker_left",
        }
    }
}

/// Full blocks of a prompt from its beginning without a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Cached, or cached before.
    pub seen: u64,
    /// That one worker held.
    pub held: u64,
    /// That one worker held which the router weighed.
    pub eligible: u64,
    /// That the chosen worker held.
    pub chosen: u64,
    /// Who held the block after those that are held last, and why it is gone.
    pub gone: Option<(Why, Worker)>,
    /// Blocks that this worker stored on its device around then: at least in the nine seconds before, at most from eleven seconds before
    /// until a second after.
    pub stored: (u64, u64),
}

/// One prompt.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The router's id of the request.
    pub request_id: String,
    /// The chosen worker.
    pub worker: Worker,
    /// Full blocks of the prompt.
    pub prompt_blocks: u64,
    /// Of each state that agrees with the router, the one nearest to the choice first; none twice.
    pub states: Vec<Steps>,
    /// The cost of each worker that was weighed, where a log has it.
    pub costs: BTreeMap<Worker, f64>,
    /// What its engine reused, by its trace.
    pub traced_tokens: Option<u64>,
    /// The same by the response to the client.
    pub client_tokens: Option<u64>,
}

/// A worker begins or ceases to hold a block.
#[derive(Clone, Copy)]
struct Change {
    at_us: u64,
    worker: Worker,
    tier: usize,
    is_held: bool,
}

/// The last worker ceased to hold a block.
#[derive(Clone, Copy)]
struct Departure {
    at_us: u64,
    worker: Worker,
    why: Why,
}

/// A block of a pool with everything before it.
type Block = (String, u64);

/// All that changed, in the order in which it was received.
#[derive(Default)]
struct History {
    changes: HashMap<Block, Vec<Change>>,
    departures: HashMap<Block, Vec<Departure>>,
    holders: HashMap<Block, HashSet<(Worker, usize)>>,
    held: HashMap<(Worker, usize), HashMap<u64, u64>>,
    /// What each worker calls a block, and what it is.
    names: HashMap<(Worker, u64), u64>,
    pools: BTreeMap<Worker, String>,
    /// When a router failed to reach a worker that had not left.
    failed: BTreeMap<Worker, u64>,
    /// When each worker stored each block on its device.
    stores: BTreeMap<Worker, Vec<u64>>,
    /// Whether it is remembered what became of blocks: from the first prompt on.
    is_remembered: bool,
}

/// Something that was received.
enum Received {
    Events { pool: String, at_us: u64, payload: Value },
    Prompt,
    Failed(u64),
    Left(Worker),
}

impl History {
    fn hold(&mut self, at_us: u64, (worker, tier): (Worker, usize), hash: u64, chain: u64) {
        if self.held.get(&(worker, tier)).and_then(|held| held.get(&hash)) == Some(&chain) {
            return;
        }
        // A name is of one block.
        self.drop(at_us, (worker, tier), hash, Why::Evicted);
        self.held.entry((worker, tier)).or_default().insert(hash, chain);
        if tier == 0 {
            self.stores.entry(worker).or_default().push(at_us);
        }
        let block = (self.pools[&worker].clone(), chain);
        self.holders.entry(block.clone()).or_default().insert((worker, tier));
        self.changes.entry(block).or_default().push(Change { at_us, worker, tier, is_held: true });
    }

    fn drop(&mut self, at_us: u64, (worker, tier): (Worker, usize), hash: u64, why: Why) {
        let Some(chain) = self.held.get_mut(&(worker, tier)).and_then(|held| held.remove(&hash)) else {
            return;
        };
        let block = (self.pools[&worker].clone(), chain);
        let holders = self.holders.entry(block.clone()).or_default();
        holders.remove(&(worker, tier));
        if holders.is_empty() && self.is_remembered {
            self.departures.entry(block.clone()).or_default().push(Departure { at_us, worker, why });
        }
        self.changes.entry(block).or_default().push(Change { at_us, worker, tier, is_held: false });
    }

    fn drop_all(&mut self, at_us: u64, of: (Worker, usize), why: Why) {
        let hashes: Vec<u64> = self.held.get(&of).into_iter().flat_map(HashMap::keys).copied().collect();
        hashes.into_iter().for_each(|hash| self.drop(at_us, of, hash, why));
    }

    fn receive(&mut self, at_us: u64, received: &Received) -> Result<()> {
        match received {
            Received::Prompt => self.is_remembered = true,
            Received::Failed(id) => {
                let ranks = self.pools.keys().filter(|(of, _)| of == id);
                ranks.for_each(|rank| {
                    self.failed.entry(*rank).or_insert(at_us);
                });
            }
            Received::Left(worker) => {
                (0..TIERS.len()).for_each(|tier| self.drop_all(at_us, (*worker, tier), Why::Left));
            }
            Received::Events { pool, at_us, payload: Value::Array(events) } => {
                events.iter().try_for_each(|event| self.event(pool, *at_us, event))?;
            }
            Received::Events { pool, at_us, payload } => self.event(pool, *at_us, payload)?,
        }
        Ok(())
    }

    fn event(&mut self, pool: &str, at_us: u64, message: &Value) -> Result<()> {
        let event = &message["event"];
        let id = message["worker_id"].as_u64().context("no worker_id")?;
        let worker = (id, event["dp_rank"].as_u64().unwrap_or(0));
        self.pools.insert(worker, pool.to_owned());
        let tier = message["storage_tier"].as_str().unwrap_or(TIERS[0]);
        let Some(tier) = TIERS.iter().position(|name| *name == tier) else { return Ok(()) };
        let data = &event["data"];
        if let Some(stored) = data.get("stored") {
            let parent = stored["parent_hash"].as_u64();
            let mut above = match parent {
                None => None,
                // What hangs below a block that nobody named is on no prompt's way.
                Some(hash) => match self.names.get(&(worker, hash)) {
                    Some(&chain) => Some(chain),
                    None => return Ok(()),
                },
            };
            for block in stored["blocks"].as_array().context("stored without blocks")? {
                let hash = block["block_hash"].as_u64().context("no block_hash")?;
                let tokens = block["tokens_hash"].as_u64().context("no tokens_hash")?;
                let chain = link(above, tokens);
                self.names.insert((worker, hash), chain);
                self.hold(at_us, (worker, tier), hash, chain);
                above = Some(chain);
            }
        } else if let Some(removed) = data.get("removed") {
            for hash in removed["block_hashes"].as_array().context("removed without hashes")? {
                self.drop(at_us, (worker, tier), hash.as_u64().context("a hash")?, Why::Evicted);
            }
        } else if data == "cleared" {
            self.drop_all(at_us, (worker, tier), Why::Cleared);
        }
        Ok(())
    }

    /// Who held a block at a time, and in which tier.
    fn holders_at(&self, block: &Block, at_us: u64) -> BTreeSet<(Worker, usize)> {
        let mut holders = BTreeSet::new();
        let changes = self.changes.get(block).into_iter().flatten();
        for change in changes.filter(|change| change.at_us <= at_us) {
            if change.is_held {
                holders.insert((change.worker, change.tier));
            } else {
                holders.remove(&(change.worker, change.tier));
            }
        }
        holders
    }

    fn departed(&self, block: &Block, at_us: u64) -> Option<Departure> {
        let all = self.departures.get(block).into_iter().flatten();
        all.rev().find(|departure| departure.at_us <= at_us).copied()
    }

    /// What was cached of a prompt at a time, and how much the chosen worker held on its device.
    fn steps(
        &self,
        blocks: &[Block],
        chosen: Worker,
        is_eligible: impl Fn(Worker) -> bool,
        at_us: u64,
    ) -> (Steps, u64) {
        let holders: Vec<_> = blocks.iter().map(|block| self.holders_at(block, at_us)).collect();
        let held_by = |worker: Worker, tiers: usize| {
            (0..tiers).fold(0, |from, tier| {
                from + holders[from..].iter().take_while(|of| of.contains(&(worker, tier))).count()
            })
        };
        let workers: BTreeSet<Worker> = holders.first().into_iter().flatten().map(|(of, _)| *of).collect();
        let most = |is_meant: &dyn Fn(Worker) -> bool| {
            let held = workers.iter().filter(|of| is_meant(**of)).map(|of| held_by(*of, TIERS.len()));
            held.max().unwrap_or(0)
        };
        let held = most(&|_| true);
        let is_seen = |at: &usize| !holders[*at].is_empty() || self.departed(&blocks[*at], at_us).is_some();
        let is_gone = holders.get(held).is_some_and(BTreeSet::is_empty);
        let gone = blocks.get(held).filter(|_| is_gone).and_then(|block| self.departed(block, at_us));
        let steps = Steps {
            seen: (0..blocks.len()).take_while(is_seen).count() as u64,
            held: held as u64,
            eligible: most(&|of| of == chosen || is_eligible(of)) as u64,
            chosen: held_by(chosen, TIERS.len()) as u64,
            gone: gone.map(|gone| (gone.why, gone.worker)),
            stored: gone.map_or((0, 0), |gone| {
                let stores = || self.stores.get(&gone.worker).into_iter().flatten();
                let within = |before_us: u64, after_us: u64| {
                    let near = gone.at_us - before_us..=gone.at_us + after_us;
                    stores().filter(|at_us| near.contains(at_us)).count() as u64
                };
                (within(8_900_000, 0), within(11_100_000, 1_100_000))
            }),
        };
        (steps, held_by(chosen, 1) as u64)
    }
}

/// Counts every prompt of a recording whose blocks are visible.
///
/// # Errors
/// When a file cannot be read or contains something else.
pub fn count(folder: &Path, recording: &Recording) -> Result<Vec<Counted>> {
    let (received, prompts) = received(folder, recording)?;
    let mut history = History { pools: recording.capture.pools.clone(), ..History::default() };
    for (at_us, received) in &received {
        history.receive(*at_us, received)?;
    }
    let choices = recording.decisions.iter().filter(|decision| decision.role != Role::Decode);
    let choices = choices.filter(|decision| decision.is_dispatched != Some(false));
    let mut counted = Vec::new();
    for decision in choices {
        let Fact::Reported(id) = &decision.request_id else { continue };
        let Some(prompt) = prompts.get(id) else { continue };
        let pool = recording.capture.pools.get(&decision.worker).cloned().unwrap_or_default();
        let blocks: Vec<Block> = prompt.chain.iter().map(|&link| (pool.clone(), link)).collect();
        let costs: BTreeMap<Worker, f64> =
            decision.candidates.iter().map(|candidate| (candidate.worker, candidate.cost)).collect();
        let reported = decision.overlap_blocks.reported().copied();
        let mut states: Vec<Steps> = Vec::new();
        for at_us in moments(&history, &blocks, micros(decision.at_s)) {
            let has_failed =
                |worker: &Worker| history.failed.get(worker).is_some_and(|since| *since <= at_us);
            for is_left_out in [false, true] {
                let is_eligible = |worker: Worker| match costs.is_empty() {
                    true => !(is_left_out && has_failed(&worker)),
                    false => costs.contains_key(&worker),
                };
                let (steps, on_device) = history.steps(&blocks, decision.worker, is_eligible, at_us);
                if reported.is_none_or(|reported| reported == on_device) && !states.contains(&steps) {
                    states.push(steps);
                }
            }
        }
        // Decode routers may name blocks at random, so that their message tells nothing of the prompt of a prefill choice that met none.
        let is_of_decode = decision.role == Role::Prefill && !prompt.is_public;
        if is_of_decode && states.iter().all(|steps| steps.held == 0) {
            continue;
        }
        let client = recording.clients.iter().find(|client| client.request_id == *id);
        counted.push(Counted {
            request_id: id.clone(),
            worker: decision.worker,
            prompt_blocks: blocks.len() as u64,
            states,
            costs,
            traced_tokens: prompt.traced_tokens,
            // The response of a decode worker reports what that one reused.
            client_tokens: client
                .filter(|_| decision.role == Role::Aggregated)
                .and_then(|client| client.cached_tokens),
        });
    }
    Ok(counted)
}

/// The time of a choice, and those at which another state could be what the router saw, nearest first.
fn moments(history: &History, blocks: &[Block], at_us: u64) -> Vec<u64> {
    let changes = blocks.iter().flat_map(|block| history.changes.get(block).into_iter().flatten());
    let near = changes.map(|of| of.at_us).filter(|of| (at_us - BEFORE_US..=at_us + AFTER_US).contains(of));
    let mut moments: Vec<u64> = near.map(|of| if of <= at_us { of - 1 } else { of }).collect();
    moments.push(at_us);
    moments.sort_unstable_by_key(|of| (of.abs_diff(at_us), *of));
    moments.dedup();
    moments
}

/// A prompt as it is reported.
#[derive(Default)]
struct Prompt {
    /// Hashes of its full blocks, each with everything before it.
    chain: Vec<u64>,
    /// Whether they are those of its blocks: a router's messages may have others.
    is_public: bool,
    /// Tokens that its engine reused, by its trace.
    traced_tokens: Option<u64>,
}

/// By the request's id.
type Prompts = BTreeMap<String, Prompt>;

/// What was received, in order, and the prompt of each request.
fn received(folder: &Path, recording: &Recording) -> Result<(Vec<(u64, Received)>, Prompts)> {
    let mut received = Vec::new();
    let mut prompts = Prompts::new();
    for added in &recording.capture.added {
        if let Some(chain) = &added.chain {
            prompts.insert(added.request_id.clone(), Prompt { chain: chain.clone(), ..Prompt::default() });
        }
    }
    let mut late_us = 0;
    for line in files::lines(&Recording::messages(folder)?)? {
        let line: Value = serde_json::from_str(&line).context("a line of the recording")?;
        if line["s"].as_str().is_some_and(|subject| subject.starts_with("dynamo.request_trace")) {
            trace(&Message::json(&line)?, &mut prompts);
            continue;
        }
        let received_us = micros(line["t"].as_f64().unwrap_or(0.0));
        let Some(Message { topic, pool, at_s, is_published, payload }) = Message::open(&line)? else {
            continue;
        };
        if is_published {
            late_us = received_us.saturating_sub(micros(at_s));
        }
        if topic == "kv-events" {
            // Without a time of its own it is taken to be as late as the last message that had one.
            let at_us = if is_published { micros(at_s) } else { received_us - late_us };
            received.push((received_us, Received::Events { pool, at_us, payload }));
        } else if payload.to_string().contains("token_sequence\":[") {
            received.push((received_us, Received::Prompt));
        }
    }
    for log in frontend_logs(folder)? {
        for line in files::lines(&log)?.iter().filter_map(|line| Line::read(line)) {
            let at_us = micros(line.at_s);
            if line.message.starts_with("[ROUTING_INPUT]") {
                received.push((at_us, Received::Prompt));
                if let Some((hashes, id)) = line.first("local_hashes").zip(line.first("request_id")) {
                    let tokens = hashes.trim_matches(['[', ']']).split(',');
                    let tokens: Vec<u64> = tokens.filter_map(|hash| hash.trim().parse().ok()).collect();
                    let prompt = prompts.entry(id.to_owned()).or_default();
                    (prompt.chain, prompt.is_public) = (chain(&tokens), true);
                }
            } else if let Some(id) = line.number("migration.from_worker_id") {
                received.push((at_us, Received::Failed(id)));
            } else if let Some(parts) = REMOVED.captures(&line.message)
                && let (Ok(id), Ok(rank)) = (parts[1].parse(), parts[2].parse())
            {
                received.push((at_us, Received::Left((id, rank))));
            }
        }
    }
    received.sort_by_key(|(at_us, _)| *at_us);
    Ok((received, prompts))
}

/// What a request trace reports of a prompt. It is there only behind a message or a line that reports it too.
fn trace(trace: &Value, prompts: &mut Prompts) {
    let request = &trace["request"];
    let Some(prompt) = request["request_id"].as_str().and_then(|id| prompts.get_mut(id)) else { return };
    prompt.traced_tokens = request["cached_tokens"].as_u64();
    let replay = &request["replay"];
    let size = replay["trace_block_size"].as_u64().filter(|&size| size > 0);
    let full = request["input_tokens"].as_u64().zip(size).map(|(tokens, size)| tokens / size);
    let hashes = replay["input_sequence_hashes"].as_array();
    if let (Some(full), Some(hashes), false) = (full, hashes, prompt.is_public) {
        // The last one may be of a part of a block.
        prompt.chain = hashes.iter().filter_map(Value::as_u64).take(full as usize).collect();
        prompt.is_public = true;
    }
}

/// A block with everything before it (the first one is its own tokens).
fn link(above: Option<u64>, tokens: u64) -> u64 {
    let Some(above) = above else { return tokens };
    let mut bytes = above.to_le_bytes().to_vec();
    bytes.extend(tokens.to_le_bytes());
    xxh3_64_with_seed(&bytes, SEED)
}

fn chain(tokens: &[u64]) -> Vec<u64> {
    let mut above = None;
    let link = |&tokens: &u64| {
        above = Some(link(above, tokens));
        above
    };
    tokens.iter().filter_map(link).collect()
}

fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}
