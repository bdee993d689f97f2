//! No routed prompt ever meets a cached block: a fault if prompts do share prefixes, a fact worth knowing if not.

use super::block_size;
use super::event_path::{WINDOW, WINDOW_MS, cached_tokens, part};
use super::{cold_tree, event_lines_mixed, no_events, router_hears_no_events};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::Millis;
use radixscope_model::number_format::count;
use radixscope_model::record::{HistogramKind, Severity};

/// Requests that make "never".
const MIN_REQUESTS: u64 = 30;
/// Times that prompts share a block before they can be said to share prefixes.
const MIN_SHARED: u64 = 5;

/// See the module.
pub(in crate::check) struct ZeroOverlap;

impl Rule for ZeroOverlap {
    fn code(&self) -> &'static str {
        "zero_overlap"
    }

    fn subject(&self) -> &'static str {
        "Prefix cache hits"
    }

    /// Silent workers, which would explain it, are told after 15 s of listening.
    fn hold_ms(&self) -> u64 {
        20_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let Some((requests, blocks, value)) = overlap(view) else {
            let text = format!(
                "Fewer than {MIN_REQUESTS} routed requests with their cached blocks were received in the last 60 s."
            );
            return RuleOutcome::Unknown(text.into());
        };
        if blocks > 0.0 {
            return RuleOutcome::Ok;
        }
        if let Some(code) = explained_by(view) {
            return RuleOutcome::Explained(code);
        }
        let chains = view.chains();
        let cached = cached_tokens(view, WINDOW_MS);
        let shares = chains.shared >= MIN_SHARED || cached.is_some_and(|tokens| tokens > 0);
        let found = if shares { fault() } else { fact() };
        let found = found
            .evidence(format!("Overlap of routed prompts, by the router, {WINDOW}"), value, "blocks")
            .evidence(format!("Requests behind it, by the router, {WINDOW}"), requests, "requests")
            .evidence(
                "Times that prompts share a block, by the tree, now",
                format!("{} in {} blocks", count(chains.shared), count(view.cluster.tree().totals().nodes)),
                "",
            );
        let found = match cached {
            Some(tokens) => found.evidence(
                format!("Prompt tokens that engines re-used, by metrics, {WINDOW}"),
                tokens,
                "tokens",
            ),
            None => found,
        };
        RuleOutcome::Found(found.link("view=decisions"))
    }
}

/// Requests lately, their overlap, and its words: by decisions, else by the routers' hit rates.
fn overlap(view: &View<'_>) -> Option<(u64, f64, String)> {
    let sum = block_size::overlap(view);
    if sum.decisions >= MIN_REQUESTS {
        // A prompt below one block has none to share.
        let has_blocks = sum.isl_blocks >= 2 * sum.decisions;
        return has_blocks.then(|| (sum.decisions, sum.blocks as f64, part(sum.blocks, sum.isl_blocks)));
    }
    let since = Millis(view.now.0.saturating_sub(WINDOW_MS));
    let rates = view
        .cluster
        .processes()
        .iter()
        .filter_map(|p| p.distribution(HistogramKind::HitRate, since, view.now));
    let (count, sum) = rates.fold((0, 0.0), |(count, sum), rates| (count + rates.count(), sum + rates.sum()));
    (count >= MIN_REQUESTS).then(|| (count, sum, format!("mean hit rate {:.2}", sum / count as f64)))
}

/// The finding that says why.
fn explained_by(view: &View<'_>) -> Option<&'static str> {
    let faults: [(&'static str, &dyn Fn() -> bool); 5] = [
        ("block_size_mismatch", &|| block_size::is_there(view)),
        ("no_events", &|| !no_events::silent(view).is_empty()),
        ("router_hears_no_events", &|| router_hears_no_events::is_there(view)),
        ("event_lines_mixed", &|| event_lines_mixed::is_mixed(view)),
        ("cold_tree", &|| cold_tree::is_there(view)),
    ];
    faults.into_iter().find(|(_, is_there)| is_there()).map(|(code, _)| code)
}

fn fault() -> Finding {
    Finding::new(
        Severity::Warning,
        "The overlap is always 0 although prompts share prefixes",
        "Prompts repeat what is cached, yet the router never finds a cached block, so it routes as blind as round robin. \
         Its tree is empty or speaks of other blocks than the workers.",
    )
    .fix("Dynamo from 1.3 on: one event plane for frontends and workers", "DYN_EVENT_PLANE", "nats")
    .fix("0.9: the same on all workers or on none, then restart the frontends", "--enable-local-indexer", "")
    .fix("0.9: a weight of 0 turns the router's index off", "--kv-overlap-score-weight", "1.0")
    .fix("1.6: a credit of 0 does the same", "DYN_ROUTER_KV_OVERLAP_SCORE_CREDIT", "1.0")
    .fix("vLLM: LMCache and other connectors serve hits that no KV event tells; compare the engine's own hit rate", "", "")
}

fn fact() -> Finding {
    Finding::new(
        Severity::Info,
        "Prompts share no prefixes, so there is nothing to gain",
        "No routed prompt met a cached block, and the tree shows no prompts that begin alike. KV-aware routing can only \
         help prompts with common beginnings: system prompts, documents, conversations that continue.",
    )
    .fix("Nothing is wrong: put what prompts have in common at their beginning if you can", "", "")
}
