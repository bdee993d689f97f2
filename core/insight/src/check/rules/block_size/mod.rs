//! Engine, publisher and router count in blocks of different sizes: the fault everybody meets first, and the one that no
//! version of Dynamo reports (reference §9.1). `evidence` distinguishes the kinds, this file has their texts.

mod form;
mod sizes;

use super::prelude::*;
use radixscope_model::id::PoolIx;
use radixscope_model::record::Counter;

pub(super) use form::overlap;
use form::{Diagnosis, MismatchKind, diagnose};
use sizes::Sizes;

/// Whether this fault is there, so that rules which see its consequences leave them to it.
pub(super) fn is_there(view: &View<'_>) -> bool {
    diagnose(view).is_some()
}

/// The same in one pool.
pub(super) fn is_in(view: &View<'_>, pool: PoolIx) -> bool {
    let is_its = |&worker: &WorkerIx| view.cluster.pool_of(worker) == Some(pool);
    diagnose(view).is_some_and(|diagnosis| diagnosis.workers.iter().any(is_its))
}

pub(in crate::check) const RULE: Rule =
    Rule::new("block_size_mismatch", "Block sizes of engine, publisher and router", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    if view.cluster.workers().is_empty() {
        return RuleOutcome::no_data(
            "No worker is known yet; sizes are compared once KV events or logs are received.",
        );
    }
    diagnose(view).map_or(RuleOutcome::Ok, |diagnosis| found(view, &diagnosis).into())
}

fn found(view: &View<'_>, diagnosis: &Diagnosis) -> Finding {
    let sizes = Sizes::of(view, diagnosis);
    let sides = sizes.sides();
    let (severity, title, explanation) = match diagnosis.form {
        MismatchKind::Oversize => (
            Severity::Critical,
            format!("Block size mismatch: {sides}: all stored events dropped"),
            "The publisher drops each stored event because its block has another size, and publishes only removals, so \
             the router's tree stays empty and every overlap is 0. Requests succeed, but routing ignores what is cached.",
        ),
        MismatchKind::Partial => (
            Severity::Critical,
            format!("Block size mismatch: {sides}: all stored events empty"),
            "The publisher treats each first block as incomplete and publishes stored events without a block, so \
             the router's tree stays empty and every overlap is 0. Requests succeed, but routing ignores what is cached.",
        ),
        MismatchKind::Relay => (
            Severity::Critical,
            format!("Block size mismatch: {sides}: all KV events dropped"),
            "The publisher drops each block whose size is not its own and publishes stored events without a block, \
             so the router's tree stays empty and every overlap is 0. Requests succeed, but routing ignores what is cached.",
        ),
        MismatchKind::Emptied => (
            Severity::Critical,
            format!("Block size mismatch: {sides}: all stored events empty"),
            "Stored events come without a block, so the router's tree stays empty and every overlap is 0. Whether the \
             engine's blocks are smaller (TensorRT-LLM) or just different (vLLM, SGLang) shows with the first removals \
             or in the worker's log.",
        ),
        MismatchKind::Router => (
            Severity::Critical,
            "Block size mismatch: the router uses other blocks than engine and publisher".to_owned(),
            "The trees fill, but the router cuts prompts into blocks of another size, so their hashes never match and the \
             overlap is always 0. Requests succeed, but routing ignores what is cached.",
        ),
        MismatchKind::Cards => (
            Severity::Warning,
            "Block size mismatch: workers of one component register different block sizes".to_owned(),
            "A router uses one size for a model, so the caches of the workers with another size are never matched. Such \
             a worker can still get requests.",
        ),
    };
    let overlap = diagnosis.overlap.as_ref();
    let chains = diagnosis.chains.as_ref();
    let found = Finding::new(severity, title, explanation)
        .about(PanelRef::Tree, &diagnosis.workers)
        .evidence(
            "Form of the fault (engine E, publisher P, router C), by the signature of KV events",
            diagnosis.form.to_text(),
            "",
        )
        .evidence(
            "Workers with it, by their KV events and cards",
            part(diagnosis.workers.len() as u64, view.present().count() as u64),
            "workers",
        );
    let found = sizes
        .evidence(found)
        .each(view, &diagnosis.workers, |found, worker, who| shares(found, view, worker, who))
        .evidence_if(
            "Overlap of routed prompts, by the router, of their blocks, last 60 s",
            overlap.map(|overlap| part(overlap.blocks, overlap.isl_blocks)),
            "blocks",
        )
        .evidence_if("Decisions behind it, last 60 s", overlap.map(|overlap| overlap.decisions), "decisions")
        .evidence_if(
            "Longest chain stored lately, by KV events, last 60 s",
            chains.map(|chains| chains.longest_blocks),
            "blocks of E",
        )
        .evidence_if(
            "Times that prompts share a block, by the tree, now",
            chains.map(|chains| chains.shared),
            "times",
        );
    let named = [("engine", sizes.engine), ("publisher", sizes.publisher)];
    let known: Vec<(&str, String)> =
        named.into_iter().filter_map(|(name, size)| Some((name, size?.to_string()))).collect();
    let values: Vec<(&str, &str)> = known.iter().map(|(name, size)| (*name, size.as_str())).collect();
    let engines: &[&str] = match diagnosis.form {
        MismatchKind::Oversize | MismatchKind::Partial => &["block_size_mismatch/trtllm"],
        MismatchKind::Relay => &["block_size_mismatch/relay"],
        MismatchKind::Emptied | MismatchKind::Router | MismatchKind::Cards => {
            &["block_size_mismatch/trtllm", "block_size_mismatch/relay"]
        }
    };
    let found = engines.iter().fold(found, |found, engine| found.fixes_with(engine, &values));
    found.fixes("block_size_mismatch")
}

/// What a worker's events look like.
fn shares(found: Finding, view: &View<'_>, worker: WorkerIx, who: &str) -> Finding {
    let (totals, window) = view.lately(worker);
    let process = view.known_process_of(worker);
    let suspicious = process.and_then(|process| process.counter_value(Counter::PublisherSuspicious));
    found
        .evidence(
            format!("Stored events without a block, {who}, by KV events, {window}"),
            part(totals.empty_stores, totals.store_events),
            "events",
        )
        .evidence(
            format!("Removed blocks that it never stored, {who}, by KV events, {window}"),
            part(totals.unknown_removed, totals.removed),
            "blocks",
        )
        .evidence_if(
            format!("Stores without a block, {who}, by its own metrics, since it started"),
            suspicious.map(|count| count as u64),
            "events",
        )
}
