//! The memory in sentences: what engine and KV events say of each other, what lifetimes mean, what would make the unknown known.

use super::{CHURN_S, EstimateStatus, Memory};
use radixscope_model::number_format::{count, plural};

/// What to do for the engine's own figures.
const ENABLE_ENGINE: &str = "blocks in use: the worker's kv_metrics over NATS, or --prometheus worker=http://HOST:PORT/metrics with its system port";
const ENABLE_EVENTS: &str =
    "what is cached: its KV events (vLLM --kv-events-config, TensorRT-LLM --publish-events-and-metrics)";
const ENABLE_CAPACITY: &str =
    "capacity: its model card from discovery, or --prometheus frontend=http://HOST:8000/metrics";
const ENABLE_AGES: &str = "lifetimes: KV events over some time; none of the sampled blocks was removed yet";

impl Memory {
    /// How the count by KV events compares with the engine.
    pub fn estimate_status_text(&self) -> String {
        match self.belief() {
            EstimateStatus::Left => "It left the deployment.".to_owned(),
            EstimateStatus::Nothing => "Neither its engine nor its KV events report its blocks.".to_owned(),
            EstimateStatus::NoEngine => "Its engine did not report what running requests use.".to_owned(),
            EstimateStatus::NoEvents => {
                "No KV event of it was received, so what is cached is unknown.".to_owned()
            }
            EstimateStatus::Partial => {
                "The tree lacks blocks of it, so how many are cached and how many are free is unknown."
                    .to_owned()
            }
            EstimateStatus::Plausible(0) => {
                "Radixscope and the engine agree: nothing is cached beside running requests.".to_owned()
            }
            EstimateStatus::Plausible(more) => {
                format!(
                    "Radixscope counts {} more than the engine uses: estimated cached, evictable.",
                    blocks(more)
                )
            }
            EstimateStatus::EngineAbove(more) => format!(
                "The engine uses {} more than Radixscope counts: blocks being filled are not published yet, or stores were missed.",
                blocks(more)
            ),
            EstimateStatus::AboveCapacity(more) => {
                format!("Radixscope counts {} more than the capacity: removals were missed.", blocks(more))
            }
        }
    }

    /// Whether the capacity's sources contradict each other; the sentence names them.
    pub fn capacity_text(&self) -> Option<String> {
        let best = self.capacity?;
        let other = self.capacities.iter().find(|other| other.value != best.value)?;
        Some(format!(
            "Capacity is {} by the {}, but {} by the {}.",
            blocks(best.value),
            best.source.label(),
            blocks(other.value),
            other.source.label()
        ))
    }

    /// What lifetimes and gaps say together; `None` where they say nothing.
    pub fn lifetime_text(&self) -> Option<String> {
        let ages = self.ages.as_ref()?;
        let life = ages.lifetime_p50_ms?;
        let sample = format!(
            "sampled: one block in {}, {} removed in the last minute",
            ages.one_in,
            count(u64::from(ages.removed))
        );
        if let Some(gap) = ages.came_back_p50_ms.filter(|_| ages.came_back > 0) {
            let share = u64::from(ages.came_back) * 100 / u64::from(ages.removed.max(1));
            return Some(format!(
                "Blocks are evicted after {} (median); {share} % of as many come back, {} after they were evicted: evicted too early ({sample}).",
                seconds(life),
                seconds(gap)
            ));
        }
        let comparison = match ages.reuse_p50_ms {
            Some(reuse) if reuse > life => "shorter than the gap between two uses: much is computed again",
            Some(_) => "longer than the gap between two uses: what is re-used is still there",
            None => "the gap between two uses is unknown; prompts not visible",
        };
        Some(format!("Blocks are evicted after {} (median), {comparison} ({sample}).", seconds(life)))
    }

    /// Removed against stored, as text.
    pub fn eviction_ratio_text(&self) -> Option<String> {
        let churn = self.churn?;
        Some(format!(
            "{} removed ÷ {} stored blocks in the last {CHURN_S} s",
            count(churn.removed),
            count(churn.stored)
        ))
    }

    /// What is not known, each with what would make it known; nothing makes it of a worker that left.
    pub fn missing(&self) -> Vec<&'static str> {
        if self.has_left {
            return Vec::new();
        }
        let checks = [
            (self.used.is_none(), ENABLE_ENGINE),
            (self.mirror.is_none(), ENABLE_EVENTS),
            (self.capacity.is_none(), ENABLE_CAPACITY),
            (self.ages.is_none_or(|ages| ages.lifetime_p50_ms.is_none()), ENABLE_AGES),
        ];
        checks.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, enable)| enable).collect()
    }
}

fn blocks(n: u64) -> String {
    plural(n, "block", "blocks")
}

/// `0.4 s`, `12 s`, `3.5 min`.
pub fn seconds(ms: u64) -> String {
    match ms {
        0..=9_999 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..=119_999 => format!("{} s", ms / 1_000),
        _ => format!("{}.{} min", ms / 60_000, ms % 60_000 / 6_000),
    }
}
