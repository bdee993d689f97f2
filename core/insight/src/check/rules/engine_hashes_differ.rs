//! Engines name the same tokens differently: harmless while a router runs, harmful when it restores a tree.

use super::event_path::part;
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{LogSign, Severity};

/// Blocks, or lines of a log, that are more than a coincidence.
const MIN_BLOCKS: u64 = 10;
/// What a log says is believed for this long.
const SIGN_MS: u64 = 300_000;

/// See the module.
pub(in crate::check) struct EngineHashesDiffer;

impl Rule for EngineHashesDiffer {
    fn code(&self) -> &'static str {
        "engine_hashes_differ"
    }

    fn subject(&self) -> &'static str {
        "One hash for the same tokens on all engines"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let totals = view.cluster.tree().totals();
        let sign = view.cluster.sign(|sign| *sign == LogSign::HashMismatch);
        let logged = sign.filter(|sign| view.now.since(sign.last_ms) <= SIGN_MS).map_or(0, |sign| sign.count);
        let differing = view.cluster.tree().differing_names();
        if differing < MIN_BLOCKS && logged < MIN_BLOCKS {
            let unknown = totals.shared == 0;
            return if unknown {
                RuleOutcome::Unknown("No block was stored by two workers yet.".into())
            } else {
                RuleOutcome::Ok
            };
        }
        let mut found = Finding::new(
            Severity::Warning,
            "Engines hash the same tokens differently",
            "The running router copes, because it keeps each worker's names apart. A tree dump or snapshot keeps only the \
             first worker's names, so after a restore the removals of the others miss and their blocks stay for ever.",
        )
        .evidence("Blocks that a second worker names otherwise, by KV events, of those that several hold", part(differing, totals.shared.max(differing)), "blocks")
        .link("view=tree");
        if logged > 0 {
            found = found.evidence(
                "Lines \"block_hash mismatch\", by the router's log, since we listen",
                logged,
                "lines",
            );
        }
        RuleOutcome::Found(
            found
                .fix(
                    "vLLM and SGLang up to 0.8 (from 0.9 on Dynamo sets it itself): the same on every worker",
                    "PYTHONHASHSEED",
                    "0",
                )
                .fix(
                    "TensorRT-LLM: the same version and the same tokens_per_block on every worker",
                    "kv_cache_config.tokens_per_block",
                    "one value",
                ),
        )
    }
}
