//! KV events of an engine that is listened to without Dynamo are not understood: their encoding is another one, or damaged. Other consumers
//! drop such events without a word, so that their index stays empty.

use super::prelude::*;
use radixscope_model::record::{Engine, EngineFeed};

/// Events that were not understood count as present for this long after the last one.
const RECENT_MS: u64 = 60_000;
/// Engines that are named one by one.
const SHOWN: usize = 6;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, ..Rule::new("event_encoding_unknown", "Encoding of engines' KV events", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let engines = view.cluster.engines();
    if engines.iter().all(|feed| feed.received == 0 && feed.rejected == 0) {
        return RuleOutcome::no_data(
            "No engine's own KV events were received; name engines with --engine-events.",
        );
    }
    let is_recent = |feed: &&EngineFeed| {
        feed.rejected_ms.is_some_and(|last| feed.rejected > 0 && view.now.since(last) <= RECENT_MS)
    };
    let strange: Vec<&EngineFeed> = engines.iter().filter(is_recent).collect();
    if strange.is_empty() { RuleOutcome::Ok } else { found(&strange).into() }
}

fn found(strange: &[&EngineFeed]) -> Finding {
    // Where nothing else comes, nothing is known of its cache.
    let is_all = |feed: &&EngineFeed| feed.event_form.is_none() || feed.block_size_tokens.is_none();
    let (severity, whose) = match strange {
        [one] => (severity(is_all(one)), one.name.clone()),
        [first, more @ ..] => {
            (severity(strange.iter().any(is_all)), format!("{} and {} more", first.name, more.len()))
        }
        [] => (Severity::Warning, String::new()),
    };
    let workers: Vec<WorkerIx> = strange.iter().filter_map(|feed| feed.worker).collect();
    let mut found = Finding::new(
        severity,
        format!("KV events of {whose} are not understood"),
        "What these events report is missing in the tree. Engines have changed how they write events, and consumers that do not know a form \
         drop it, mostly without an error, so that their index of this engine stays empty and routing ignores what it caches.",
    )
    .about(PanelRef::Workers, &workers);
    for feed in strange.iter().take(SHOWN) {
        let of = format!("Not understood, {}, of the batches received", feed.name);
        found = found
            .evidence(of, part(feed.rejected, feed.received.max(feed.rejected)), "")
            .evidence(format!("The last one, {}", feed.name), feed.rejected_sample.clone(), "")
            .evidence_if(format!("Events otherwise, {}", feed.name), form(feed), "");
    }
    let known = "Known forms, by engine and version";
    found =
        found.evidence(known, KNOWN_FORMS, "").evidence_if("Engines that are meant", engines_of(strange), "");
    found.fixes("event_encoding_unknown")
}

const fn severity(is_all: bool) -> Severity {
    if is_all { Severity::Critical } else { Severity::Warning }
}

const KNOWN_FORMS: &str = "arrays: vLLM to 0.23, SGLang to 0.5.18; maps: vLLM from 0.24, SGLang from 0.5.20; batches: arrays of both";

/// How the events are written that are understood.
fn form(feed: &EngineFeed) -> Option<String> {
    Some(match feed.hash_form {
        Some(hashes) => format!("{}s, hashes: {}", feed.event_form?.as_str(), hashes.as_str()),
        None => format!("{}s", feed.event_form?.as_str()),
    })
}

fn engines_of(feeds: &[&EngineFeed]) -> Option<String> {
    let mut engines: Vec<Engine> = feeds.iter().filter_map(|feed| feed.engine).collect();
    engines.sort();
    engines.dedup();
    let names: Vec<&str> = engines.into_iter().map(Engine::label).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
