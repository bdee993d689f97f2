//! Blocks are evicted before they are wanted again, and prompts are computed anew for it.

use super::memory_full::MemoryFull;
use crate::capacity::RemedyKind;
use crate::check::causes::{Cause, code};
use crate::check::engine::EngineSettings as _;
use crate::check::peers::{holding, name};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::number_format;
use radixscope_model::record::{LifetimeSums, Severity};

/// Window of the overlap, milliseconds; the ages' is the same.
const WINDOW_MS: u64 = 60_000;
/// Removed blocks, scaled up from the sample, that a share needs.
const MIN_REMOVED: u64 = 200;
/// Removed blocks of the sample itself.
const MIN_SAMPLE: u64 = 30;
/// Decisions that an overlap needs.
const MIN_DECISIONS: u64 = 20;
/// Healthy deployments store 8 to 20 % of evicted blocks again. Far from all do even under heavy churn: a prompt whose
/// blocks are gone everywhere may be computed on another worker.
const CAME_BACK_SHARE: f64 = 0.3;
/// Above it enough is re-used all the same: healthy deployments reach 0.8.
const LOW_OVERLAP: f64 = 0.5;

/// See the module.
pub(in crate::check) struct Churn;

impl Rule for Churn {
    fn code(&self) -> &'static str {
        "churn"
    }

    fn subject(&self) -> &'static str {
        "Premature eviction"
    }

    fn hold_ms(&self) -> u64 {
        10_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let ages = |ix: WorkerIx| view.cluster.worker(ix)?.lifetimes;
        let followed: Vec<(WorkerIx, LifetimeSums)> =
            view.present().filter_map(|ix| Some((ix, ages(ix)?))).collect();
        if followed.is_empty() {
            return RuleOutcome::Unknown(
                "No worker's blocks were followed yet; they are where its KV events are heard".into(),
            );
        }
        let sum = |of: fn(&LifetimeSums) -> u64| followed.iter().map(|(_, ages)| of(ages)).sum::<u64>();
        let removed = sum(|ages| u64::from(ages.removed));
        let scaled = sum(|ages| u64::from(ages.removed) * u64::from(ages.one_in.max(1)));
        let came_back = sum(|ages| u64::from(ages.came_back));
        let share = came_back as f64 / removed.max(1) as f64;
        if removed < MIN_SAMPLE || scaled < MIN_REMOVED || share < CAME_BACK_SHARE {
            return RuleOutcome::Ok;
        }
        let window = view.cluster.decisions().window(view.now, WINDOW_MS);
        let Some(overlap) = window.overlap_share().filter(|_| window.count >= MIN_DECISIONS) else {
            return RuleOutcome::Unknown(
                format!("{MIN_DECISIONS} decisions with their overlap within 60 s are needed to judge whether it hurts").into(),
            );
        };
        if overlap >= LOW_OVERLAP {
            return RuleOutcome::Ok;
        }
        // Overlap means nothing while block sizes disagree.
        if holding(view, "block_size_mismatch").is_some() {
            return RuleOutcome::Explained("block_size_mismatch");
        }
        let is_memory_full =
            holding(view, "memory_full").is_some() || matches!(MemoryFull.look(view), RuleOutcome::Found(_));
        let mut found = Finding::new(
            Severity::Warning,
            "Blocks are evicted before they are wanted again",
            "The KV cache is too small for what the traffic re-uses, so prefixes are computed again shortly after they \
             were evicted. Give KV more memory, run fewer sequences at once, or keep evicted blocks in host memory.",
        )
        // Running requests that fill the memory push out what was cached.
        .cause(code(is_memory_full.then_some(Cause::Memory)))
        .evidence(
            "Evicted blocks that the same worker stored again, followed sample, last 60 s",
            format!("{} of {} ({:.0} %)", number_format::count(came_back), number_format::count(removed), share * 100.0),
            "blocks",
        )
        .evidence(
            "Overlap, decisions of the last 60 s",
            format!("{} of {} ({:.0} %)", number_format::count(window.overlap_blocks), number_format::count(window.isl_blocks), overlap * 100.0),
            "blocks",
        );
        let mut workers = followed;
        workers.retain(|(_, ages)| {
            f64::from(ages.came_back) >= CAME_BACK_SHARE * f64::from(ages.removed.max(1))
        });
        for (worker, ages) in workers.iter().take(4) {
            if let Some((lived, back)) = ages.lifetime_p50_ms.zip(ages.came_back_p50_ms) {
                let label =
                    format!("{}: from stored to evicted, then to stored again, medians", name(view, *worker));
                let value = format!("{:.1}, then {:.1}", lived as f64 / 1e3, back as f64 / 1e3);
                found = found.evidence(label, value, "s");
            }
        }
        let first = workers.first().and_then(|&(ix, _)| view.cluster.worker(ix));
        let link = first.map(|w| format!("view=memory&worker={}", w.id));
        found
            .workers(workers.iter().map(|&(worker, _)| worker))
            .remedy(RemedyKind::RaiseFraction, None)
            .remedy(RemedyKind::LowerBatch, None)
            .remedy(RemedyKind::Retention, None)
            .fix(
                "TensorRT-LLM: blocks must be kept for re-use at all",
                "kv_cache_config:\n  enable_block_reuse:",
                "true",
            )
            .link(link.unwrap_or_else(|| "view=memory".to_owned()))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::Stage;
    use radixscope_model::record::Record;

    fn with(removed: u32, came_back: u32, overlap_blocks: u64) -> Stage {
        let mut stage = Stage::new(1);
        let ages = LifetimeSums {
            one_in: 8,
            removed,
            lifetime_p50_ms: Some(4_000),
            came_back,
            came_back_p50_ms: Some(2_500),
            ..LifetimeSums::default()
        };
        stage.tell(Record::LifetimeSums { worker: WorkerIx(0), lifetimes: ages });
        stage.choose(&[30], overlap_blocks);
        stage
    }

    #[test]
    fn blocks_that_come_back_while_overlap_is_low_are_found() {
        let finding = with(100, 35, 30).found(&Churn).unwrap();
        assert_eq!(finding.evidence[0].value, "35 of 100 (35 %)");
        assert_eq!(finding.evidence[2].value, "4.0, then 2.5");
        assert!(finding.fix.iter().any(|fix| fix.setting.contains("enable_block_reuse")));
    }

    #[test]
    fn what_does_not_hurt_or_does_not_come_back_is_well() {
        assert!(with(100, 35, 80).is_ok(&Churn), "enough is re-used all the same");
        assert!(with(100, 29, 30).is_ok(&Churn), "eviction takes what is not wanted");
        assert!(with(24, 20, 30).is_ok(&Churn), "too few");
    }

    #[test]
    fn it_is_unknown_without_ages_or_overlap_or_while_block_sizes_disagree() {
        assert!(Stage::new(1).is_unknown(&Churn));
        let mut stage = with(100, 35, 30);
        stage.holds("block_size_mismatch");
        assert_eq!(stage.explained_by(&Churn), Some("block_size_mismatch"));
        stage = with(100, 35, 30);
        stage.pass(61_000);
        assert!(stage.is_unknown(&Churn));
    }
}
