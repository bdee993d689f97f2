//! Premature eviction: blocks are evicted before they are used again, and prompts are computed anew for it.

use super::memory_full;
use super::prelude::*;
use crate::capacity::RemedyKind;
use crate::check::causes::{Cause, code};
use radixscope_model::id::PoolIx;
use radixscope_model::record::BlockResidency;

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

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 10_000, ..Rule::new("churn", "Premature eviction", evaluate) };

const NOT_FOLLOWED: &str = "No block was sampled yet; blocks are once KV events are received";

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use().into_iter();
    RuleOutcome::of_pools(pools.map(|pool| evaluate_pool(view, pool)), NOT_FOLLOWED)
}

fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let lifetimes = |ix: WorkerIx| Some((ix, view.worker(ix)?.lifetimes?));
    let followed: Vec<(WorkerIx, BlockResidency)> = view.present_in(pool).filter_map(lifetimes).collect();
    if followed.is_empty() {
        return RuleOutcome::no_data(NOT_FOLLOWED);
    }
    let sum = |of: fn(&BlockResidency) -> u64| followed.iter().map(|(_, ages)| of(ages)).sum::<u64>();
    let removed = sum(|ages| u64::from(ages.removed));
    let scaled = sum(|ages| u64::from(ages.removed) * u64::from(ages.one_in.max(1)));
    let came_back = sum(|ages| u64::from(ages.came_back));
    let share = came_back as f64 / removed.max(1) as f64;
    if removed < MIN_SAMPLE || scaled < MIN_REMOVED || share < CAME_BACK_SHARE {
        return RuleOutcome::Ok;
    }
    let window = view.cluster.decisions().window_in(Some(pool), view.now, WINDOW_MS);
    let Some(overlap) = window.overlap_share().filter(|_| window.count >= MIN_DECISIONS) else {
        return RuleOutcome::no_data(format!(
            "{MIN_DECISIONS} decisions with their cached blocks within 60 s are needed to judge the effect"
        ));
    };
    if overlap >= LOW_OVERLAP {
        return RuleOutcome::Ok;
    }
    // Overlap means nothing while block sizes disagree.
    if view.is_active("block_size_mismatch") {
        return RuleOutcome::Explained("block_size_mismatch");
    }
    let is_memory_full = memory_full::RULE.shows(view);
    let mut found = Finding::new(
        Severity::Warning,
        "Premature eviction: prefixes are recomputed",
        "The KV cache is too small for what the traffic re-uses, so prefixes are recomputed shortly after they were \
         evicted. Raise the KV memory fraction, or keep evicted blocks in host memory.",
    )
    // Running requests that fill the memory push out what was cached.
    .cause(code(is_memory_full.then_some(Cause::Memory)))
    .evidence(
        "Evicted blocks that the same worker stored again, sampled, last 60 s",
        part(came_back, removed),
        "blocks",
    )
    .evidence(
        "Overlap, decisions of the last 60 s",
        part(window.overlap_blocks, window.isl_blocks),
        "blocks",
    );
    found = view.with_lost_reuse(found, Some(pool));
    let mut workers = followed;
    workers.retain(|(_, ages)| f64::from(ages.came_back) >= CAME_BACK_SHARE * f64::from(ages.removed.max(1)));
    for (worker, ages) in workers.iter().take(4) {
        if let Some((lived, back)) = ages.lifetime_p50_ms.zip(ages.came_back_p50_ms) {
            let label =
                format!("{}: from stored to evicted, then to stored again, medians", view.name(*worker));
            let value = format!("{:.1}, then {:.1}", lived as f64 / 1e3, back as f64 / 1e3);
            found = found.evidence(label, value, "s");
        }
    }
    found
        .workers(workers.iter().map(|&(worker, _)| worker))
        .remedy(RemedyKind::RaiseFraction, None)
        .remedy(RemedyKind::Retention, None)
        .fixes("churn")
        .panel_of_worker(PanelRef::Memory)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::Stage;
    use radixscope_model::record::Record;

    fn with(removed: u32, came_back: u32, overlap_blocks: u64) -> Stage {
        let mut stage = Stage::new(1);
        let ages = BlockResidency {
            one_in: 8,
            removed,
            lifetime_p50_ms: Some(4_000),
            came_back,
            came_back_p50_ms: Some(2_500),
            ..BlockResidency::default()
        };
        stage.record(Record::BlockResidency { worker: WorkerIx(0), lifetimes: Box::new(ages) });
        stage.choose(&[30], overlap_blocks);
        stage
    }

    #[test]
    fn blocks_that_come_back_while_overlap_is_low_are_found() {
        let finding = with(100, 35, 30).found(&RULE).unwrap();
        assert_eq!(finding.evidence[0].value, "35 of 100 (35 %)");
        assert_eq!(finding.evidence[2].value, "4.0, then 2.5");
        assert!(finding.fix.iter().any(|fix| fix.setting.contains("enable_block_reuse")));
    }

    #[test]
    fn what_does_not_hurt_or_does_not_come_back_is_well() {
        assert!(with(100, 35, 80).is_ok(&RULE), "enough is re-used all the same");
        assert!(with(100, 29, 30).is_ok(&RULE), "eviction takes what is not wanted");
        assert!(with(24, 20, 30).is_ok(&RULE), "too few");
    }

    #[test]
    fn it_is_unknown_without_ages_or_overlap_or_while_block_sizes_disagree() {
        assert!(Stage::new(1).is_unknown(&RULE));
        let mut stage = with(100, 35, 30);
        stage.holds("block_size_mismatch");
        assert_eq!(stage.explained_by(&RULE), Some("block_size_mismatch"));
        stage = with(100, 35, 30);
        stage.pass(61_000);
        assert!(stage.is_unknown(&RULE));
    }
}
