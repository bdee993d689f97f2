//! Figures over several pools, whose blocks may be of different size: those are never added, tokens are.

use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count, percent, plural};
use radixscope_model::record::DecisionSource;
use radixscope_state::cluster::{DecisionEntry, DecisionTotals};
use radixscope_state::tree::Totals;

use super::ViewContext;

/// In what figures over several pools are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// All pools have blocks of one size.
    Blocks,
    /// They have not.
    Tokens,
}

impl Unit {
    /// Name on screen.
    pub const fn to_text(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Tokens => "tokens",
        }
    }
}

/// Decisions of some pools, summed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sums {
    /// Decisions.
    pub count: u64,
    /// What the prompts were, what of them the chosen workers held, and in what that is counted. `None`: blocks are of
    /// different size, and of some it is not known.
    pub prompts: Option<(u64, u64, Unit)>,
    /// Hit rates of the pools, where they cannot be summed.
    pub apart: Vec<(String, f64)>,
}

impl Sums {
    /// KV hit rate, 0 … 1; `None` where nothing or not enough is known.
    pub fn hit_rate(&self) -> Option<f64> {
        let (prompts, cached, _) = self.prompts.filter(|(prompts, ..)| *prompts > 0)?;
        Some(cached as f64 / prompts as f64)
    }

    /// The same as text; of pools that cannot be summed side by side.
    pub fn rate_text(&self) -> String {
        if self.apart.is_empty() {
            return self.hit_rate().map_or(UNKNOWN.to_owned(), percent);
        }
        let one = |(pool, share): &(String, f64)| format!("{pool} {}", percent(*share));
        self.apart.iter().map(one).collect::<Vec<_>>().join(" · ")
    }

    /// What the rate is of, and over what.
    pub fn explain(&self, when: &str) -> String {
        let over = plural(self.count, "decision", "decisions");
        match self.prompts {
            Some((prompts, cached, unit)) => format!(
                "{} of {} prompt {} were cached on the chosen worker, as the router counted them, over {over} {when}",
                count(cached),
                count(prompts),
                unit.to_text(),
            ),
            None => {
                format!(
                    "By pool: their blocks are of different size. As the router counted them, over {over} {when}"
                )
            }
        }
    }
}

/// What both figures of decisions are taken over.
pub fn caption(recent: &Sums, all: &Sums) -> String {
    format!(
        "Prompt blocks as the router counted them: {} in 60 s, {} since start",
        plural(recent.count, "decision", "decisions"),
        count(all.count)
    )
}

/// The first source of a decision, as one word for a narrow column.
pub const fn source_name(source: DecisionSource) -> &'static str {
    match source {
        DecisionSource::KvHitRate => "hit rate",
        DecisionSource::ActiveSequences => "sequences",
        DecisionSource::Log => "log",
        DecisionSource::RequestTrace => "trace",
        DecisionSource::SessionAffinity => "affinity",
    }
}

/// Window of the latest hit rate.
const WINDOW_MS: u64 = 60_000;

impl<'a> ViewContext<'a> {
    /// The decisions of the pools shown, for one worker if one is picked, newest first.
    pub fn decisions_on(
        &self,
        picked: Option<WorkerIx>,
    ) -> impl Iterator<Item = &'a DecisionEntry> + use<'a> {
        let shown = *self;
        let all = shown.cluster.decisions().newest_first();
        all.filter(move |d| shown.has(d.pool) && picked.is_none_or(|picked| d.decision.worker == picked))
    }
}

impl ViewContext<'_> {
    /// Sums over the decisions of the last minute, and over all of them.
    pub fn decision_figures(&self, picked: Option<WorkerIx>, now: Millis) -> (Sums, Sums) {
        let Some(worker) = picked else { return (self.recent_sums(now, WINDOW_MS), self.decision_sums()) };
        let decisions = self.decisions();
        let mut recent = DecisionTotals::default();
        for d in decisions.newest_first().take_while(|d| now.since(d.at_ms) <= WINDOW_MS) {
            if d.decision.worker == worker {
                recent.add(d);
            }
        }
        let pool = self.pool_of(worker).unwrap_or_default();
        (self.sums(&[(pool, recent)]), self.sums(&[(pool, decisions.totals_of(worker))]))
    }

    /// In what blocks of these pools can be added; `None`: their sizes differ or may differ, and one is unknown.
    pub fn unit(&self, pools: &[PoolIx]) -> Option<Unit> {
        if pools.len() < 2 {
            return Some(Unit::Blocks);
        }
        let sizes: Option<Vec<u32>> = pools.iter().map(|&pool| self.cluster.block_tokens(pool)).collect();
        let sizes = sizes?;
        Some(if sizes.windows(2).all(|pair| pair[0] == pair[1]) { Unit::Blocks } else { Unit::Tokens })
    }

    /// So many blocks of a pool in `unit`.
    fn in_unit(&self, pool: PoolIx, blocks: u64, unit: Unit) -> u64 {
        match unit {
            Unit::Blocks => blocks,
            Unit::Tokens => blocks.saturating_mul(self.cluster.block_tokens(pool).map_or(0, u64::from)),
        }
    }

    /// Blocks that workers of the pools shown hold, and how many of them are in the trees; what they are counted in.
    /// `None`: they cannot be added.
    pub fn held(&self) -> Option<(u64, u64, Unit)> {
        let trees = self.cluster.trees().filter(|(pool, tree)| self.has(*pool) && tree.totals().resident > 0);
        let totals: Vec<_> = trees.map(|(pool, tree)| (pool, tree.totals())).collect();
        let unit = self.unit(&totals.iter().map(|(pool, _)| *pool).collect::<Vec<_>>())?;
        let sum = |of: fn(&Totals) -> u64| {
            totals.iter().map(|(pool, totals)| self.in_unit(*pool, of(totals), unit)).sum()
        };
        Some((sum(|totals| totals.resident), sum(|totals| totals.resident - totals.hidden), unit))
    }

    /// Sums over decisions of several pools.
    pub fn sums(&self, of_pool: &[(PoolIx, DecisionTotals)]) -> Sums {
        let count = of_pool.iter().map(|(_, totals)| totals.count).sum();
        let known: Vec<_> = of_pool.iter().filter(|(_, totals)| totals.isl_blocks > 0).collect();
        let Some(unit) = self.unit(&known.iter().map(|(pool, _)| *pool).collect::<Vec<_>>()) else {
            let rate = |(pool, totals): &&(PoolIx, DecisionTotals)| {
                Some((self.cluster.pool(*pool)?.name(), totals.overlap_share()?))
            };
            return Sums { count, prompts: None, apart: known.iter().filter_map(rate).collect() };
        };
        let sum = |of: fn(&DecisionTotals) -> u64| {
            known.iter().map(|(pool, totals)| self.in_unit(*pool, of(totals), unit)).sum()
        };
        let prompts = Some((sum(|totals| totals.isl_blocks), sum(|totals| totals.overlap_blocks), unit));
        Sums { count, prompts, apart: Vec::new() }
    }

    /// Sums over all decisions ever received in the pools shown.
    pub fn decision_sums(&self) -> Sums {
        let pools = (0..self.cluster.pools().len() as u16).map(PoolIx).filter(|pool| self.has(*pool));
        let totals: Vec<_> = pools.map(|pool| (pool, self.cluster.decisions().totals_in(pool))).collect();
        self.sums(&totals)
    }

    /// The same over those of the `window_ms` before `now`, as far as they are retained one by one.
    pub fn recent_sums(&self, now: Millis, window_ms: u64) -> Sums {
        let decisions = self.cluster.decisions().newest_first();
        let mut totals: Vec<(PoolIx, DecisionTotals)> = Vec::new();
        for decided in decisions.take_while(|decided| now.since(decided.at_ms) <= window_ms) {
            if !self.has(decided.pool) {
                continue;
            }
            match totals.iter_mut().find(|(pool, _)| *pool == decided.pool) {
                Some((_, totals)) => totals.add(decided),
                None => {
                    let mut first = DecisionTotals::default();
                    first.add(decided);
                    totals.push((decided.pool, first));
                }
            }
        }
        self.sums(&totals)
    }
}
