//! Where the reuse of prompts is lost: of each prompt, how much was ever cached, cached somewhere, on a worker that could be chosen, on
//! the chosen one, and really reused; and why each step is smaller than the one before.
//!
//! Steps and causes are of prompt tokens, so that they add up: the tokens of the prompt are those that the engine reused and those
//! lost for each cause. What is not known is a cause of its own, never nothing. Pure; must not know how it is shown.

mod cause;
mod sessions;
mod text;
mod trend;

#[cfg(test)]
mod tests;

use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::record::Reuse;
use radixscope_state::cluster::DecisionEntry;

pub use cause::LossCause;
pub use sessions::{SessionLoss, Sessions};
pub use trend::{Trend, TrendStep};

/// A step of the funnel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Tokens of the prompt.
    Prompt,
    /// In full blocks that are cached or known to have been cached before.
    Seen,
    /// Cached on some worker of the pool.
    Held,
    /// Cached on a worker that the router could choose.
    Eligible,
    /// Cached on the chosen worker.
    Chosen,
    /// Reused by the engine, as a frontend or a trace reports it.
    Reused,
}

impl Step {
    /// All, in their order.
    pub const ALL: [Self; 6] =
        [Self::Prompt, Self::Seen, Self::Held, Self::Eligible, Self::Chosen, Self::Reused];

    /// Name in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Seen => "seen",
            Self::Held => "held",
            Self::Eligible => "eligible",
            Self::Chosen => "chosen",
            Self::Reused => "reused",
        }
    }
}

/// Tokens of one prompt, by step, and those lost between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PromptReuse {
    /// Tokens at each step but the last, in the order of [`Step::ALL`].
    pub steps: [u64; 5],
    /// What the engine reused. `None`: not reported.
    pub reused: Option<u64>,
    /// Tokens lost for each cause, in the order of the steps; none with 0 tokens. Without those between the last two steps where the
    /// last one is unknown.
    pub losses: Vec<(LossCause, u64)>,
    /// Tokens that the engine reused beyond those that the chosen worker held by its events.
    pub surplus_tokens: u64,
}

/// Why nothing is known of where the reuse of a prompt was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum NoReuse {
    /// The router does not look at caches: decode, or another mode.
    Ignored,
    /// A query that ran nothing.
    Query,
    /// No source reports which blocks the prompt has, or what workers held then is not known.
    NotVisible,
    /// The prompt's length or the size of its blocks is unknown.
    Length,
}

impl PromptReuse {
    /// Of one decision.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn of(decided: &DecisionEntry) -> Result<Self, NoReuse> {
        let decision = &decided.decision;
        if decided.ignores_cache {
            return Err(NoReuse::Ignored);
        }
        if decision.dispatched == Some(false) {
            return Err(NoReuse::Query);
        }
        let reuse = decided.reuse.ok_or(NoReuse::NotVisible)?;
        let size = decision.block_size_tokens.map(u64::from).filter(|&size| size > 0);
        let (Some(isl_tokens), Some(size)) = (decision.isl_tokens, size) else { return Err(NoReuse::Length) };
        let tokens = |blocks: u32| (u64::from(blocks) * size).min(isl_tokens);
        let Reuse { prompt_blocks, seen_blocks, held_blocks, eligible_blocks, chosen_blocks, .. } = reuse;
        let full = tokens(prompt_blocks);
        let [seen, held, eligible, chosen] =
            [seen_blocks, held_blocks, eligible_blocks, chosen_blocks].map(|blocks| tokens(blocks).min(full));
        let indexed = tokens(cause::blocks_in_index(decided, &reuse)).clamp(chosen, eligible);
        let reported = decided.progress.cached_tokens.map(|cached| cached.min(isl_tokens));
        let reused = reported.map(|cached| cached.min(chosen));
        // The engine computes at least one token of each prompt, and with it the block that it is in.
        let last = if chosen == isl_tokens { size } else { 0 };
        let unused = reused.map_or(0, |reused| chosen - reused);
        let all = [
            (LossCause::BelowBlock, isl_tokens - full + unused.min(last)),
            (cause::of_unseen(decided, &reuse), full - seen),
            (cause::of_gone(&reuse), seen - held),
            (LossCause::NotEligible, held - eligible),
            (LossCause::RouterIndex, eligible - indexed),
            (cause::of_skipped(decided, &reuse), indexed - chosen),
            (LossCause::EngineHadLess, unused - unused.min(last)),
        ];
        Ok(Self {
            steps: [isl_tokens, seen, held, eligible, chosen],
            reused: reported,
            losses: all.into_iter().filter(|(_, tokens)| *tokens > 0).collect(),
            surplus_tokens: reported.map_or(0, |cached| cached.saturating_sub(chosen)),
        })
    }

    /// The cause that cost most, if any did.
    pub fn worst(&self) -> Option<(LossCause, u64)> {
        self.losses.iter().copied().max_by_key(|&(cause, tokens)| (tokens, std::cmp::Reverse(cause)))
    }

    /// Share of the prompt that the chosen worker held, 0 … 1; `None`: an empty prompt.
    pub fn cached_share(&self) -> Option<f64> {
        let [prompt, .., chosen] = self.steps;
        (prompt > 0).then(|| chosen as f64 / prompt as f64)
    }

    /// Tokens that were computed though their blocks had been seen before, and the cause of most of them, if any were.
    pub fn avoidable(&self) -> Option<(u64, LossCause)> {
        let lost = || self.losses.iter().copied().filter(|(cause, _)| cause.is_avoidable());
        let (cause, _) = lost().max_by_key(|&(cause, tokens)| (tokens, std::cmp::Reverse(cause)))?;
        Some((lost().map(|(_, tokens)| tokens).sum(), cause))
    }
}

/// Tokens lost for one cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Loss {
    /// Why.
    pub cause: LossCause,
    /// How many tokens of prompts.
    pub tokens: u64,
    /// In how many decisions.
    pub decisions: u32,
    /// The decision that lost most for it, the latest of several, and how many tokens.
    pub largest: (DecisionId, u64),
}

/// Where the reuse of the prompts of many decisions was lost.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Funnel {
    /// Decisions that are summed.
    pub decisions: u32,
    /// Decisions that are not, by why, in its order.
    pub left_out: Vec<(NoReuse, u32)>,
    /// Tokens at each step but the last, in the order of [`Step::ALL`].
    pub steps: [u64; 5],
    /// Decisions of which is known what the engine reused, tokens that their chosen workers held, and how many of those were reused.
    pub reported: (u32, u64, u64),
    /// Tokens that engines reused beyond what the chosen workers held by their events.
    pub surplus_tokens: u64,
    /// Losses, the largest first.
    pub losses: Vec<Loss>,
    /// Since when blocks that are gone are known, at the earliest decision summed. `None`: there is none.
    pub known_since_ms: Option<Millis>,
    /// How long prompt tokens take that are not cached.
    pub prefill: Option<PrefillPace>,
}

/// How long frontends report that prompts take to compute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PrefillPace {
    /// Microseconds for each token that was not cached.
    pub us_per_token: f64,
    /// Requests that it is taken from.
    pub requests: u32,
    /// Mean time to first token of the decisions summed that report one, in microseconds, and how many do.
    pub ttft_us: Option<(f64, u32)>,
}

impl Funnel {
    /// Sums decisions.
    pub fn of<'a>(decisions: impl IntoIterator<Item = &'a DecisionEntry>) -> Self {
        let mut sum = Sum::default();
        decisions.into_iter().for_each(|decided| {
            sum.add(decided);
        });
        sum.finish()
    }

    /// The same, and how the steps and the sessions' losses went: in one pass.
    pub fn with_parts<'a>(
        decisions: impl IntoIterator<Item = &'a DecisionEntry>,
        trend: &mut Trend,
        sessions: &mut Sessions<'a>,
    ) -> Self {
        let mut sum = Sum::default();
        for decided in decisions {
            if let Some(reuse) = sum.add(decided) {
                trend.add(decided, &reuse);
                sessions.add(decided, &reuse);
            }
        }
        sum.finish()
    }

    /// Causes that could be avoided, the largest first, of which at least half of all tokens lost to such causes are.
    pub fn half_of_avoidable(&self) -> Vec<Loss> {
        let avoidable = || self.losses.iter().filter(|loss| loss.cause.is_avoidable()).copied();
        let all: u64 = avoidable().map(|loss| loss.tokens).sum();
        let mut before = 0;
        let is_needed = |loss: &Loss| {
            let is_needed = before * 2 < all;
            before += loss.tokens;
            is_needed
        };
        avoidable().take_while(is_needed).collect()
    }

    /// The share of the prompts' tokens at a step, 0 … 1; `None`: no tokens, or not reported of any.
    pub fn share(&self, step: Step) -> Option<f64> {
        let of_all = |tokens: u64| (self.steps[0] > 0).then(|| tokens as f64 / self.steps[0] as f64);
        match step {
            // Known of some decisions: what they reused of what was held, times what all held.
            Step::Reused => {
                let (_, held, reused) = self.reported;
                let of_held = (held > 0).then(|| reused as f64 / held as f64)?;
                Some(of_all(self.steps[4])? * of_held)
            }
            step => of_all(self.steps[step as usize]),
        }
    }

    /// The cause that costs most, without the parts of last blocks, which no setting changes.
    pub fn worst(&self) -> Option<Loss> {
        self.losses.iter().find(|loss| loss.cause != LossCause::BelowBlock).copied()
    }

    /// Estimated time to compute so many tokens, in milliseconds.
    pub fn prefill_ms(&self, tokens: u64) -> Option<f64> {
        self.prefill.map(|pace| pace.us_per_token * tokens as f64 / 1_000.0)
    }
}

#[derive(Default)]
struct Sum {
    funnel: Funnel,
    left_out: [u32; 4],
    losses: [Option<Loss>; LossCause::ALL.len()],
    prefill: (f64, u64, u32),
    ttft: (f64, u32),
}

impl Sum {
    fn add(&mut self, decided: &DecisionEntry) -> Option<PromptReuse> {
        let reuse = match PromptReuse::of(decided) {
            Ok(reuse) => reuse,
            Err(why) => {
                self.left_out[why as usize] += 1;
                return None;
            }
        };
        let funnel = &mut self.funnel;
        funnel.decisions += 1;
        funnel.steps.iter_mut().zip(reuse.steps).for_each(|(sum, of)| *sum += of);
        funnel.surplus_tokens += reuse.surplus_tokens;
        if let Some(reused) = reuse.reused {
            let (count, held, all) = &mut funnel.reported;
            *count += 1;
            *held += reuse.steps[4];
            // What it reused beyond that is counted apart.
            *all += reused.min(reuse.steps[4]);
        }
        for &(cause, tokens) in &reuse.losses {
            let largest = (decided.decision.id, tokens);
            let loss =
                self.losses[cause as usize].get_or_insert(Loss { cause, tokens: 0, decisions: 0, largest });
            loss.tokens += tokens;
            loss.decisions += 1;
            if (tokens, decided.decision.id) > (loss.largest.1, loss.largest.0) {
                loss.largest = largest;
            }
        }
        let since = decided.reuse.map(|reuse| reuse.known_since_ms);
        funnel.known_since_ms = funnel.known_since_ms.max(since);
        let uncached = reuse.steps[0] - reuse.reused.unwrap_or(reuse.steps[4]);
        if let Some(us) = decided.progress.prefill_us.filter(|_| uncached > 0) {
            let (sum, tokens, requests) = &mut self.prefill;
            *sum += us as f64;
            *tokens += uncached;
            *requests += 1;
        }
        if let Some(us) = decided.progress.ttft_us {
            self.ttft.0 += us as f64;
            self.ttft.1 += 1;
        }
        Some(reuse)
    }

    fn finish(self) -> Funnel {
        let Self { mut funnel, left_out, losses, prefill, ttft } = self;
        let all = [NoReuse::Ignored, NoReuse::Query, NoReuse::NotVisible, NoReuse::Length];
        funnel.left_out = all.into_iter().zip(left_out).filter(|(_, count)| *count > 0).collect();
        funnel.losses = losses.into_iter().flatten().collect();
        funnel.losses.sort_by_key(|loss| std::cmp::Reverse(loss.tokens));
        let (us, tokens, requests) = prefill;
        funnel.prefill = (tokens > 0).then(|| PrefillPace {
            us_per_token: us / tokens as f64,
            requests,
            ttft_us: (ttft.1 > 0).then(|| (ttft.0 / f64::from(ttft.1), ttft.1)),
        });
        funnel
    }
}
