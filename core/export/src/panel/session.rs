//! The requests of one session in their order: on which worker each ran, what moving to another one cost, and why.

use std::cmp::Reverse;
use std::collections::HashMap;

use radixscope_insight::reuse::{LossCause, PromptReuse};
use radixscope_model::id::{DecisionId, Millis, Slot, WorkerIx};
use radixscope_model::number_format::{duration, percent, plural};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use super::not_reused;

/// Requests that are listed of a session: the latest.
pub const MAX_TURNS: usize = 200;

/// Heading of the list.
pub const TITLE: &str = "Request by request";

/// One request of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Turn {
    /// Its decision.
    pub id: DecisionId,
    /// Its place among the session's retained requests, from 1.
    pub number: usize,
    /// When its worker was chosen.
    pub at_ms: Millis,
    /// On which worker it ran.
    pub worker: WorkerIx,
    /// On which worker the one before it ran, if that is another one.
    pub moved_from: Option<WorkerIx>,
    /// Tokens of its prompt that were computed though their blocks were seen before, and the largest cause among them.
    pub lost: Option<(u64, LossCause)>,
    /// Share of the prompt that was cached on its worker; `None`: not known.
    pub cached: Option<f64>,
    /// Time to first token, milliseconds.
    pub ttft_ms: Option<f64>,
    /// Whether its first token took longest of all, where two or more report it.
    pub is_slowest: bool,
    /// What happened, in a sentence.
    pub sentence: String,
}

/// The retained decisions of a session, the first of them first: of a request whose response comes from another worker, the choice that
/// looked at caches.
pub fn requests<'a>(cluster: &'a Cluster, session: &str) -> Vec<&'a DecisionEntry> {
    let is_turn = |decided: &&DecisionEntry| {
        decided.decision.session.as_deref() == Some(session)
            && !decided.ignores_cache
            && decided.decision.dispatched != Some(false)
    };
    let mut all: Vec<&DecisionEntry> = cluster.decisions().newest_first().filter(is_turn).collect();
    all.sort_by_key(|decided| (decided.decided_ms(), decided.decision.id));
    all
}

/// Sessions that have colours at most.
pub const COLOURED: usize = 8;

/// The sessions with most retained decisions, each with its colour, by name. A session keeps its colour for as long as the same ones
/// are among them.
pub fn coloured(cluster: &Cluster) -> Vec<(&str, Slot)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in cluster.decisions().newest_first().filter_map(|decided| decided.decision.session.as_deref()) {
        *counts.entry(name).or_default() += 1;
    }
    let mut all: Vec<(&str, usize)> = counts.into_iter().collect();
    all.sort_unstable_by_key(|&(name, count)| (Reverse(count), name));
    all.truncate(COLOURED);
    all.sort_unstable_by_key(|&(name, _)| name);
    let mut taken = [false; COLOURED];
    let mut coloured = Vec::with_capacity(all.len());
    for (name, _) in all {
        // By the name, so that most keep theirs when another session takes a place.
        let wanted = name.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31) ^ usize::from(byte));
        let free = (0..COLOURED).map(|n| wanted.wrapping_add(n) % COLOURED).find(|&slot| !taken[slot]);
        if let Some(slot) = free {
            taken[slot] = true;
            coloured.push((name, Slot(slot as u16)));
        }
    }
    coloured
}

/// The latest requests of a session, the first of them first.
pub fn turns(cluster: &Cluster, session: &str, name: impl Fn(WorkerIx) -> String) -> Vec<Turn> {
    let all = requests(cluster, session);
    let ttft_of = |decided: &DecisionEntry| decided.time_to_first_token_ms().map(|(ms, _)| ms);
    let left_out = all.len().saturating_sub(MAX_TURNS);
    let reported = all.iter().filter(|decided| ttft_of(decided).is_some()).count();
    let slowest = all
        .iter()
        .filter_map(|decided| Some((ttft_of(decided)?, decided.decision.id)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|_| reported > 1);
    let mut before = left_out.checked_sub(1).map(|last| all[last].decision.worker);
    let turn = |(at, decided): (usize, &&DecisionEntry)| {
        let (id, worker) = (decided.decision.id, decided.decision.worker);
        let moved_from = before.replace(worker).filter(|former| *former != worker);
        let (ttft_ms, number) = (ttft_of(decided), at + 1);
        let reuse = PromptReuse::of(decided).ok();
        let lost = reuse.as_ref().and_then(PromptReuse::avoidable);
        Turn {
            id,
            number,
            at_ms: decided.decided_ms(),
            worker,
            moved_from,
            lost,
            cached: reuse.as_ref().and_then(PromptReuse::cached_share).or(decided.overlap_share()),
            ttft_ms,
            is_slowest: slowest.is_some_and(|(_, slowest)| slowest == id),
            sentence: sentence(cluster, decided, (moved_from, lost), &name),
        }
    };
    all.iter().enumerate().skip(left_out).map(turn).collect()
}

/// `moved from W1 to W3: 212 blocks (3,392 tokens) computed anew, worker was busier. …`
fn sentence(
    cluster: &Cluster,
    decided: &DecisionEntry,
    (moved_from, lost): (Option<WorkerIx>, Option<(u64, LossCause)>),
    name: &impl Fn(WorkerIx) -> String,
) -> String {
    let worker = name(decided.decision.worker);
    let place = match moved_from {
        Some(former) => format!("Moved from {} to {worker}", name(former)),
        None => format!("On {worker}"),
    };
    let cost = match (lost, decided.decision.block_size_tokens.filter(|size| *size > 0)) {
        (Some((tokens, cause)), Some(size)) => {
            let blocks = plural(tokens.div_ceil(size.into()), "block", "blocks");
            format!(": {blocks} computed anew that had been cached, {}", cause.label())
        }
        _ => String::new(),
    };
    let why = not_reused::sentence(cluster, decided, name).map_or(String::new(), |why| format!(" {why}"));
    format!("{place}{cost}.{why}")
}

impl Turn {
    /// How much was cached and how long the first token took.
    pub fn figures(&self) -> String {
        let cached =
            self.cached.map_or("cached: unknown".to_owned(), |share| format!("{} cached", percent(share)));
        let ttft = self.ttft_ms.map_or("TTFT not reported".to_owned(), |ms| format!("TTFT {}", duration(ms)));
        format!("{cached}, {ttft}")
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
