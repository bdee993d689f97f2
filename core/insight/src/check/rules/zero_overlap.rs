//! No routed prompt ever meets a cached block: a fault if prompts do share prefixes, a fact worth knowing if not.

use super::block_size;
use super::prelude::*;
use super::{
    approximate_mode, cold_tree, event_planes_mixed, no_events, not_kv_routing, router_receives_no_events,
};
use radixscope_model::id::PoolIx;
use radixscope_model::record::HistogramKind;

/// Requests that make "never".
const MIN_REQUESTS: u64 = 30;
/// Times that prompts share a block before they can be taken to share prefixes.
const MIN_SHARED: u64 = 5;

pub(in crate::check) const RULE: Rule = Rule {
    // Silent workers, which would explain it, are found after 15 s of listening.
    hold_ms: 20_000,
    ..Rule::new("zero_overlap", "Prefix cache hits", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let met = overlaps(view);
    if met.is_empty() && not_kv_routing::is_there(view) {
        return RuleOutcome::Explained("not_kv_routing");
    }
    let few = "Fewer than 30 routed requests with their cached blocks were received in the last 60 s.";
    RuleOutcome::of_pools(met.iter().map(|met| evaluate_pool(view, met)), few)
}

fn evaluate_pool(view: &View<'_>, met: &PrefixHits) -> RuleOutcome {
    if met.blocks > 0.0 {
        return RuleOutcome::Ok;
    }
    if let Some(code) = explained_by(view, met.pool) {
        return RuleOutcome::Explained(code);
    }
    let chains = met.pool.map_or_else(|| view.chains(), |pool| view.chains_in(pool));
    let nodes = met.pool.map_or_else(|| view.cluster.totals(), |pool| view.cluster.tree(pool).totals()).nodes;
    let cached = view.cached_tokens(WINDOW_MS);
    let shares = chains.shared >= MIN_SHARED || cached.is_some_and(|tokens| tokens > 0);
    let (severity, title, explanation, fixes) = if shares { FAULT } else { FACT };
    let blocks = format!("{} in {} blocks", count(chains.shared), count(nodes));
    let pool = met.pool.map_or_else(String::new, |pool| view.of_pool(pool));
    let workers: Vec<WorkerIx> = match met.pool.filter(|_| !pool.is_empty()) {
        Some(pool) => view.present_in(pool).collect(),
        None => Vec::new(),
    };
    let found = Finding::new(severity, format!("{title}{}", pool.replacen(" of ", ": ", 1)), explanation)
        .workers(workers)
        .evidence(format!("Overlap of routed prompts, by the router, {WINDOW}"), met.value.clone(), "blocks")
        .evidence(format!("Requests behind it, by the router, {WINDOW}"), met.requests, "requests")
        .evidence("Times that prompts share a block, by the tree, now", blocks, "")
        .evidence_if(format!("Prompt tokens that engines re-used, by metrics, {WINDOW}"), cached, "tokens")
        .fixes(fixes)
        .panel(PanelRef::Decisions);
    view.with_lost_reuse(found, met.pool).into()
}

/// What routed prompts met lately.
struct PrefixHits {
    /// Where; `None`: in all pools together.
    pool: Option<PoolIx>,
    requests: u64,
    blocks: f64,
    value: String,
}

/// By decisions, pool by pool, else by the routers' hit rates.
fn overlaps(view: &View<'_>) -> Vec<PrefixHits> {
    let pools = view.cluster.pools_in_use().into_iter();
    let sums: Vec<_> = pools.map(|pool| (pool, block_size::overlap(view, pool))).collect();
    let judged = sums.iter().filter(|(_, sum)| sum.decisions >= MIN_REQUESTS);
    if judged.clone().next().is_some() {
        // A prompt below one block has none to share.
        let has_blocks = judged.filter(|(_, sum)| sum.isl_blocks >= 2 * sum.decisions);
        let met = has_blocks.map(|(pool, sum)| PrefixHits {
            pool: Some(*pool),
            requests: sum.decisions,
            blocks: sum.blocks as f64,
            value: part(sum.blocks, sum.isl_blocks),
        });
        return met.collect();
    }
    let since = view.ago(WINDOW_MS);
    let rates = view.processes().filter_map(|p| p.distribution(HistogramKind::HitRate, since, view.now));
    let (requests, blocks) =
        rates.fold((0, 0.0), |(count, sum), rates| (count + rates.count(), sum + rates.sum()));
    let value = format!("mean hit rate {:.2}", blocks / requests as f64);
    if requests >= MIN_REQUESTS {
        vec![PrefixHits { pool: None, requests, blocks, value }]
    } else {
        Vec::new()
    }
}

/// The finding with the cause.
fn explained_by(view: &View<'_>, pool: Option<PoolIx>) -> Option<&'static str> {
    let is_mismatched =
        || pool.map_or_else(|| block_size::is_there(view), |pool| block_size::is_in(view, pool));
    let is_silent = || {
        let silent = no_events::silent(view);
        silent.iter().any(|&worker| pool.is_none() || view.cluster.pool_of(worker) == pool)
    };
    let faults: [(&'static str, &dyn Fn() -> bool); 7] = [
        ("not_kv_routing", &|| not_kv_routing::is_there(view)),
        ("approximate_mode", &|| approximate_mode::is_there(view)),
        ("block_size_mismatch", &is_mismatched),
        ("no_events", &is_silent),
        ("router_receives_no_events", &|| router_receives_no_events::is_there(view)),
        ("event_planes_mixed", &|| event_planes_mixed::is_mixed(view)),
        ("cold_tree", &|| cold_tree::is_there(view)),
    ];
    faults.into_iter().find(|(_, is_there)| is_there()).map(|(code, _)| code)
}

type Text = (Severity, &'static str, &'static str, &'static str);
const FAULT: Text = (
    Severity::Warning,
    "The overlap is always 0 although prompts share prefixes",
    "Prompts repeat cached prefixes, yet the router never finds a cached block, so routing ignores what is cached. \
     Its tree is empty or has other blocks than the workers.",
    "zero_overlap/fault",
);
const FACT: Text = (
    Severity::Info,
    "Prompts share no prefixes, so there is no cache to hit",
    "No routed prompt had a cached block, and the tree shows no shared prefixes. KV-aware routing can only help prompts \
     with common prefixes: system prompts, documents, conversations that continue.",
    "zero_overlap/fact",
);
