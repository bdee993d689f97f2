//! Engine, publisher and router count in blocks of different sizes: the fault everybody meets first, and the one that no
//! version of Dynamo reports (reference §9.1). `evidence` tells the forms apart, this file words them.

mod form;
mod sizes;

use super::event_path::{each, lately, link, name, part};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::record::{Counter, Severity};

pub(super) use form::overlap;
use form::{Diagnosis, Form, diagnose};
use sizes::Sizes;

/// See the module.
pub(in crate::check) struct BlockSizeMismatch;

/// Whether this fault is there, so that rules which see its consequences leave them to it.
pub(super) fn is_there(view: &View<'_>) -> bool {
    diagnose(view).is_some()
}

impl Rule for BlockSizeMismatch {
    fn code(&self) -> &'static str {
        "block_size_mismatch"
    }

    fn subject(&self) -> &'static str {
        "Block sizes of engine, publisher and router"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        if view.cluster.workers().is_empty() {
            return RuleOutcome::Unknown(
                "No worker is known yet; sizes are compared when KV events or logs come.".into(),
            );
        }
        match diagnose(view) {
            Some(diagnosis) => RuleOutcome::Found(found(view, &diagnosis)),
            None => RuleOutcome::Ok,
        }
    }
}

fn found(view: &View<'_>, diagnosis: &Diagnosis) -> Finding {
    let sizes = Sizes::of(view, diagnosis);
    let (severity, title, explanation) = match diagnosis.form {
        Form::Oversize => (
            Severity::Critical,
            "Block size mismatch: the engine's blocks are larger than the publisher's, which drops every store",
            "The publisher drops each stored event because its block does not fit, and passes only removals on, so \
             the router's tree stays empty and every overlap is 0. Requests succeed, but routing is as blind as round \
             robin.",
        ),
        Form::Partial => (
            Severity::Critical,
            "Block size mismatch: the engine's blocks are smaller than the publisher's, which empties every store",
            "The publisher takes each first block for an unfinished one and publishes stored events without a block, so \
             the router's tree stays empty and every overlap is 0. Requests succeed, but routing is as blind as round \
             robin.",
        ),
        Form::Relay => (
            Severity::Critical,
            "Block size mismatch: the relay empties every store because engine and publisher differ",
            "The publisher leaves out each block whose size is not its own and publishes stored events without a block, \
             so the router's tree stays empty and every overlap is 0. Requests succeed, but routing is as blind as \
             round robin.",
        ),
        Form::Emptied => (
            Severity::Critical,
            "Block size mismatch: every store is empty because engine and publisher differ",
            "Stored events come without a block, so the router's tree stays empty and every overlap is 0. Whether the \
             engine's blocks are smaller (TensorRT-LLM) or just different (vLLM, SGLang) shows with the first removals \
             or in the worker's log.",
        ),
        Form::Router => (
            Severity::Critical,
            "Block size mismatch: the router counts in other blocks than engine and publisher",
            "The trees fill, but the router cuts prompts into blocks of another size, so their hashes never meet and the \
             overlap is always 0. Requests succeed, but routing is as blind as round robin.",
        ),
        Form::Cards => (
            Severity::Warning,
            "Block size mismatch: workers of one component register different block sizes",
            "A router uses one size for a model, so the caches of the workers with another size are never matched. Such \
             a worker can still get requests.",
        ),
    };
    let mut found = Finding::new(severity, title, explanation)
        .workers(diagnosis.workers.iter().copied())
        .link(link(view, "tree", &diagnosis.workers))
        .evidence(
            "Form of the fault (engine E, publisher P, router C), by the signature of KV events",
            diagnosis.form.words(),
            "",
        )
        .evidence(
            "Workers with it, by their KV events and cards",
            part(diagnosis.workers.len() as u64, view.present().count() as u64),
            "workers",
        );
    found = sizes.evidence(found);
    found = each(found, view, &diagnosis.workers, |found, worker| shares(found, view, worker));
    if let Some(overlap) = diagnosis.overlap {
        let label = "Overlap of routed prompts, by the router, of their blocks, last 60 s";
        found = found.evidence(label, part(overlap.blocks, overlap.isl_blocks), "blocks").evidence(
            "Decisions behind it, last 60 s",
            overlap.decisions,
            "decisions",
        );
    }
    if let Some(chains) = diagnosis.chains {
        found = found
            .evidence(
                "Longest chain stored lately, by KV events, last 60 s",
                chains.longest_blocks,
                "blocks of E",
            )
            .evidence("Times that prompts share a block, by the tree, now", chains.shared, "times");
    }
    fixes(found, diagnosis.form, &sizes)
}

/// What a worker's events look like.
fn shares(found: Finding, view: &View<'_>, worker: radixscope_model::id::WorkerIx) -> Finding {
    let (totals, window) = lately(view, worker);
    let who = name(view, worker);
    let mut found = found
        .evidence(
            format!("Stored events without a block, {who}, by KV events, {window}"),
            part(totals.empty_stores, totals.store_events),
            "events",
        )
        .evidence(
            format!("Removed blocks that it never stored, {who}, by KV events, {window}"),
            part(totals.unknown_removed, totals.removed),
            "blocks",
        );
    let own = view.cluster.worker(worker).map(|w| w.id.id.0);
    let process = view.cluster.processes().iter().find(|p| p.instance().is_some() && p.instance() == own);
    if let Some(suspicious) = process.and_then(|p| p.counter_value(Counter::PublisherSuspicious)) {
        let label = format!("Stores without a block, {who}, by its own metrics, since it started");
        found = found.evidence(label, suspicious as u64, "events");
    }
    found
}

fn fixes(found: Finding, form: Form, sizes: &Sizes) -> Finding {
    let engine = sizes.engine.map_or_else(String::new, |tokens| tokens.to_string());
    let value = if engine.is_empty() { "the engine's own block size" } else { engine.as_str() }.to_owned();
    let trt = |found: Finding| {
        found
            .fix(
                "TensorRT-LLM, 0.9 to 1.5: start the worker with the engine's tokens_per_block (kv_cache_config). From \
                 1.6 the worker takes it from the engine itself",
                "--kv-block-size",
                value.clone(),
            )
            .fix(
                "TensorRT-LLM, the other way round: set the engine's block size to the worker's",
                "kv_cache_config.tokens_per_block",
                sizes.publisher.map_or_else(|| "the worker's --kv-block-size".to_owned(), |p| p.to_string()),
            )
    };
    let relay = |found: Finding| {
        found
            .fix("vLLM, 0.9 and 1.x: one size for engine, publisher and card", "--block-size", value.clone())
            .fix("SGLang, 0.9 and 1.x: one size for engine, publisher and card", "--page-size", value.clone())
    };
    let found = match form {
        Form::Oversize | Form::Partial => trt(found),
        Form::Relay => relay(found),
        Form::Emptied | Form::Router | Form::Cards => relay(trt(found)),
    };
    found.fix(
        "The frontend's flag does not help: DYN_KV_CACHE_BLOCK_SIZE and --kv-cache-block-size only feed static model \
         cards and are ignored with discovered workers from 0.9 on. Restart the workers after the change",
        "",
        "",
    )
}
