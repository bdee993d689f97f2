//! No routed prompt ever meets a cached block: a fault if prompts do share prefixes, a fact worth knowing if not.

use super::block_size;
use super::prelude::*;
use super::{
    approximate_mode, cold_tree, event_lines_mixed, no_events, not_kv_routing, router_hears_no_events,
};
use radixscope_model::record::HistogramKind;

/// Requests that make "never".
const MIN_REQUESTS: u64 = 30;
/// Times that prompts share a block before they can be taken to share prefixes.
const MIN_SHARED: u64 = 5;

pub(in crate::check) const RULE: Rule = Rule {
    // Silent workers, which would explain it, are found after 15 s of listening.
    hold_ms: 20_000,
    ..Rule::new("zero_overlap", "Prefix cache hits", look)
};

fn look(view: &View<'_>) -> RuleOutcome {
    let Some((requests, blocks, value)) = overlap(view) else {
        if not_kv_routing::is_there(view) {
            return RuleOutcome::Explained("not_kv_routing");
        }
        return RuleOutcome::no_data(format!(
            "Fewer than {MIN_REQUESTS} routed requests with their cached blocks were received in the last 60 s."
        ));
    };
    if blocks > 0.0 {
        return RuleOutcome::Ok;
    }
    if let Some(code) = explained_by(view) {
        return RuleOutcome::Explained(code);
    }
    let chains = view.chains();
    let cached = view.cached_tokens(WINDOW_MS);
    let shares = chains.shared >= MIN_SHARED || cached.is_some_and(|tokens| tokens > 0);
    let (severity, title, explanation, fixes) = if shares { FAULT } else { FACT };
    let blocks = format!("{} in {} blocks", count(chains.shared), count(view.cluster.totals().nodes));
    Finding::new(severity, title, explanation)
        .evidence(format!("Overlap of routed prompts, by the router, {WINDOW}"), value, "blocks")
        .evidence(format!("Requests behind it, by the router, {WINDOW}"), requests, "requests")
        .evidence("Times that prompts share a block, by the tree, now", blocks, "")
        .evidence_if(format!("Prompt tokens that engines re-used, by metrics, {WINDOW}"), cached, "tokens")
        .fixes(fixes)
        .panel(PanelRef::Decisions)
        .into()
}

/// Requests lately, their overlap, and its words: by decisions, else by the routers' hit rates.
fn overlap(view: &View<'_>) -> Option<(u64, f64, String)> {
    let sum = block_size::overlap(view);
    if sum.decisions >= MIN_REQUESTS {
        // A prompt below one block has none to share.
        let has_blocks = sum.isl_blocks >= 2 * sum.decisions;
        return has_blocks.then(|| (sum.decisions, sum.blocks as f64, part(sum.blocks, sum.isl_blocks)));
    }
    let since = view.ago(WINDOW_MS);
    let rates = view.processes().filter_map(|p| p.distribution(HistogramKind::HitRate, since, view.now));
    let (count, sum) = rates.fold((0, 0.0), |(count, sum), rates| (count + rates.count(), sum + rates.sum()));
    (count >= MIN_REQUESTS).then(|| (count, sum, format!("mean hit rate {:.2}", sum / count as f64)))
}

/// The finding that says why.
fn explained_by(view: &View<'_>) -> Option<&'static str> {
    let faults: [(&'static str, &dyn Fn() -> bool); 7] = [
        ("not_kv_routing", &|| not_kv_routing::is_there(view)),
        ("approximate_mode", &|| approximate_mode::is_there(view)),
        ("block_size_mismatch", &|| block_size::is_there(view)),
        ("no_events", &|| !no_events::silent(view).is_empty()),
        ("router_hears_no_events", &|| router_hears_no_events::is_there(view)),
        ("event_lines_mixed", &|| event_lines_mixed::is_mixed(view)),
        ("cold_tree", &|| cold_tree::is_there(view)),
    ];
    faults.into_iter().find(|(_, is_there)| is_there()).map(|(code, _)| code)
}

type Text = (Severity, &'static str, &'static str, &'static str);
const FAULT: Text = (
    Severity::Warning,
    "The overlap is always 0 although prompts share prefixes",
    "Prompts repeat what is cached, yet the router never finds a cached block, so it routes as blind as round robin. \
     Its tree is empty or speaks of other blocks than the workers.",
    "zero_overlap/fault",
);
const FACT: Text = (
    Severity::Info,
    "Prompts share no prefixes, so there is nothing to gain",
    "No routed prompt met a cached block, and the tree shows no prompts that begin alike. KV-aware routing can only \
     help prompts with common beginnings: system prompts, documents, conversations that continue.",
    "zero_overlap/fact",
);
