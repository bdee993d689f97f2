//! Where round-robin would have sent one request, and what that would have changed for it.
//!
//! The worker is the one that the counterfactual's replay of round-robin gives the request ([`round_robin`]); what it held is recorded
//! with the decision. What follows for the time to first token is the difference in uncached blocks at the pace of the latest
//! requests: a regression, not a measurement, so it has an interval and is left out where the requests show no clear pace.
//! Must not know how workers are shown: their names are given.

#[cfg(test)]
mod tests;
mod text;

use radixscope_model::id::{DecisionId, WorkerIx};
use radixscope_router::pick::round_robin;
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::counterfactual::{Interval, LEAST_REQUESTS, LeftOut, RecordedDecision, slope};

pub use text::not_known;

/// Latest decisions of the pool that a pace is taken from: enough for its interval, few enough for the page to sort eleven times.
pub const WINDOW: usize = 2_000;
/// Consecutive parts of the window, each of which is left out once.
const PARTS: usize = 10;
/// 95 of 100 estimates from ten parts lie within so many standard errors: Student's t with nine degrees of freedom.
const T_95: f64 = 2.262;

/// What round-robin would have done with one request.
#[derive(Clone, PartialEq, Debug)]
pub struct RoundRobin {
    /// Whom it would have sent the request to.
    pub worker: WorkerIx,
    /// Who was chosen.
    pub chosen: WorkerIx,
    /// Decisions taken before it in its pool: its turn.
    pub turn: u64,
    /// Candidates at that time.
    pub candidates: usize,
    /// Blocks of the prompt that its worker held beyond the chosen one's; below 0: fewer.
    pub more_cached_blocks: i64,
    /// Blocks in use at its worker beyond those at the chosen one, this prompt included; below 0: fewer.
    pub more_decode_blocks: f64,
    /// What the pace of the latest requests makes of the blocks; `None` where choices look at no cache.
    pub pace: Option<Result<Pace, NoPace>>,
}

/// How much longer the first token takes for each block of a prompt that is not cached.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// Milliseconds a block, with the interval that 95 of 100 estimates lie in.
    pub ms_per_block: Interval,
    /// Requests that it is taken from.
    pub requests: usize,
}

/// Why there is no pace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPace {
    /// So many requests whose time to first token and uncached blocks are known are too few.
    TooFew(usize),
    /// The times of so many requests do not clearly rise with their uncached blocks.
    Unclear(usize),
}

impl RoundRobin {
    /// What it would have done with the request of `decided`.
    ///
    /// # Errors
    /// What is not known of the decision.
    pub fn of(cluster: &Cluster, decided: &DecisionEntry) -> Result<Self, LeftOut> {
        let recorded = RecordedDecision::of(decided)?;
        let candidates = recorded.candidates;
        let chosen = &candidates[recorded.chosen()?];
        let turn = turn(cluster, decided.decision.id).ok_or(LeftOut::Forgotten)?;
        let place = round_robin(candidates.iter().map(|candidate| candidate.worker), turn);
        let sent = place.map_or(chosen, |place| &candidates[place]);
        let more_cached_blocks = i64::from(sent.overlap_blocks) - i64::from(chosen.overlap_blocks);
        let needs_pace = !decided.ignores_cache;
        Ok(Self {
            worker: sent.worker,
            chosen: chosen.worker,
            turn,
            candidates: candidates.len(),
            more_cached_blocks,
            more_decode_blocks: sent.decode_blocks - chosen.decode_blocks,
            pace: needs_pace.then(|| Pace::of(cluster, decided)),
        })
    }

    /// By how much later the first token would have come, in milliseconds; below 0: earlier.
    pub fn ttft_change_ms(&self) -> Option<Interval> {
        let Interval { value, low, high } = self.pace?.ok()?.ms_per_block;
        let blocks = -self.more_cached_blocks as f64;
        let (low, high) = if blocks < 0.0 { (high, low) } else { (low, high) };
        Some(Interval { value: value * blocks, low: low * blocks, high: high * blocks })
    }
}

/// How many decisions were taken before this one in its pool; `None` if it is not retained any more.
fn turn(cluster: &Cluster, id: DecisionId) -> Option<u64> {
    let mut turns = cluster.decisions().with_turns();
    turns.find(|(_, decided)| decided.decision.id == id).map(|(turn, _)| turn)
}

impl Pace {
    /// Of the latest decisions in the pool of `decided`.
    fn of(cluster: &Cluster, decided: &DecisionEntry) -> Result<Self, NoPace> {
        let latest = cluster.decisions().newest_first().filter(|other| other.pool == decided.pool);
        let known = latest.take(WINDOW).filter_map(|other| {
            let uncached = other.decision.isl_blocks?.saturating_sub(other.overlap_blocks()?);
            Some((uncached as f64, time_to_first_token_ms(cluster, other)?))
        });
        Self::of_requests(&known.collect::<Vec<_>>())
    }

    /// Of uncached blocks and milliseconds to the first token, in order of time.
    fn of_requests(known: &[(f64, f64)]) -> Result<Self, NoPace> {
        let requests = known.len();
        if requests < LEAST_REQUESTS {
            return Err(NoPace::TooFew(requests));
        }
        let unclear = NoPace::Unclear(requests);
        let value = slope(&mut known.to_vec()).ok_or(unclear)?;
        let mut without = [0.0; PARTS];
        for (part, estimate) in without.iter_mut().enumerate() {
            let (from, to) = (requests * part / PARTS, requests * (part + 1) / PARTS);
            *estimate = slope(&mut [&known[..from], &known[to..]].concat()).ok_or(unclear)?;
        }
        let mean = without.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = without.iter().map(|estimate| (estimate - mean).powi(2)).sum();
        let error = T_95 * (squares * (PARTS - 1) as f64 / PARTS as f64).sqrt();
        let ms_per_block = Interval { value, low: value - error, high: value + error };
        (ms_per_block.low > 0.0).then_some(Self { ms_per_block, requests }).ok_or(unclear)
    }
}

/// From the decision to the first token. Where prefill and decode are apart, the first token is reported of the other choice.
fn time_to_first_token_ms(cluster: &Cluster, decided: &DecisionEntry) -> Option<f64> {
    let own = decided.time_to_first_token_ms().map(|(ms, _)| ms);
    own.or_else(|| {
        let other = cluster.decisions().get(decided.decision.other_part?)?.progress;
        let measured = other.ttft_us.map(|us| us as f64 / 1_000.0);
        measured.or_else(|| Some(other.first_token_ms?.since(decided.decided_ms()) as f64))
    })
}
