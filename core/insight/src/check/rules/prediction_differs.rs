//! What the router predicts to be cached differs from what engines find in their caches.

use super::prelude::*;
use crate::check::missing;
use radixscope_model::record::{Counter, HistogramKind, LogSignal, ProcessRole};
use radixscope_state::cluster::{ProcessState, SCRAPE_WINDOW_MS};

/// Requests that a comparison needs, on either side.
const MIN_REQUESTS: u64 = 50;
/// Delivered over predicted: outside of this it differs.
const NEAR: std::ops::RangeInclusive<f64> = 0.7..=1.3;
/// Cached tokens of a request that either side has to have: of less, a block makes the difference.
const MIN_TOKENS: f64 = 64.0;
/// Faults that make the router's prediction wrong by themselves, and name the cause: of the event path, or of memory, where
/// blocks are evicted while the request that counts on them waits.
const EXPLAINED_BY: [&str; 13] = [
    "block_size_mismatch",
    "no_events",
    "nothing_received",
    "event_planes_mixed",
    "router_receives_no_events",
    "approximate_mode",
    "zero_overlap",
    "cold_tree",
    "unknown_parents",
    "event_gaps",
    "router_restarted",
    "memory_full",
    "churn",
];

/// Both sides over the same scrapes.
struct HitRatePair {
    /// Cached tokens of a request, or share of its prompt; the same for both.
    predicted: f64,
    delivered: f64,
    unit: &'static str,
    predicted_by: String,
    delivered_by: String,
    /// Whether one of them is large enough to compare.
    is_enough: bool,
}

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 30_000,
    ..Rule::new("prediction_differs", "Cached tokens: router's prediction vs engines", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some(interval) = Interval::of(view) else {
        return RuleOutcome::no_data(missing::of_frontends(view, "what engines found cached", ""));
    };
    let compared = by_router_counters(view, &interval)
        .or_else(|| by_requests(view, &interval))
        .or_else(|| by_engine_counters(view, &interval));
    let Some(compared) = compared else {
        return RuleOutcome::no_data(format!(
            "{MIN_REQUESTS} requests within 5 minutes are needed of which router and engine both report what was \
                 cached; vLLM does with --enable-prompt-tokens-details or its metrics"
        ));
    };
    let ratio = compared.delivered / compared.predicted;
    if !compared.is_enough || NEAR.contains(&ratio) {
        return RuleOutcome::Ok;
    }
    if let Some(code) = EXPLAINED_BY.into_iter().find(|code| view.is_active(code)) {
        return RuleOutcome::Explained(code);
    }
    let (title, explanation) = if ratio < 1.0 {
        (
            "Engines find fewer cached tokens than the router predicts",
            "The router sends requests for blocks that are no longer there, so it credits overlap that does not \
             exist. Removals were lost, or blocks were evicted between decision and prefill.",
        )
    } else {
        (
            "Engines find more cached tokens than the router predicts",
            "The router does not know of blocks that are there, so requests go elsewhere and are recomputed. Stored \
             events were lost, or have hashes that the router cannot match.",
        )
    };
    let predicts = view.cluster.sign(|sign| matches!(sign, LogSignal::PredictsOnRoute { .. })).is_some();
    let window = format!("the {} s of the last scrapes", interval.seconds());
    Finding::new(Severity::Warning, title, explanation)
        .evidence(
            format!("Predicted by the router, {}, {window}", compared.predicted_by),
            number(compared.predicted),
            compared.unit,
        )
        .evidence(
            format!("Found by engines, {}, {window}", compared.delivered_by),
            number(compared.delivered),
            compared.unit,
        )
        .evidence(
            "Found ÷ predicted",
            if ratio.is_finite() { format!("{ratio:.2}") } else { "nothing was predicted".to_owned() },
            "",
        )
        .evidence_if(
            "The router counts blocks that it expects (--router-predicted-ttl-secs), by its log: until they are stored, engines find fewer",
            (predicts && ratio < 1.0).then_some("yes"),
            "",
        )
        .fixes("prediction_differs")
        .panel(PanelRef::Decisions)
        .into()
}

fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { count(value.round() as u64) }
}

/// The time that all scraped frontends' steps cover.
struct Interval {
    after: Millis,
    until: Millis,
}

impl Interval {
    fn of(view: &View<'_>) -> Option<Self> {
        let oldest = view.ago(SCRAPE_WINDOW_MS);
        let mut interval: Option<Self> = None;
        for process in view.scraped(ProcessRole::Frontend) {
            let in_window = |&at: &Millis| at >= oldest;
            let first =
                Some(process.first_ms).filter(in_window).or_else(|| process.scraped_ms().find(in_window));
            let first = first.unwrap_or(process.last_ms);
            let known = interval.get_or_insert(Self { after: first, until: process.last_ms });
            known.after = known.after.max(first);
            known.until = known.until.min(process.last_ms);
        }
        interval
    }

    fn seconds(&self) -> u64 {
        self.until.since(self.after) / 1_000
    }
}

/// Router and engine, both by the frontends' counters (1.6).
fn by_router_counters(view: &View<'_>, interval: &Interval) -> Option<HitRatePair> {
    let sum = |counter| {
        let rise = |p: &ProcessState| p.counted_since(counter, interval.after);
        view.scraped(ProcessRole::Frontend).filter_map(rise).reduce(|a, b| a + b)
    };
    let selected = sum(Counter::SelectedPrefixTokens)?;
    let (cached, requests) = cached(view, interval).unwrap_or_default();
    // The counter stays 0 where workers do not report what they re-used.
    let reused = sum(Counter::ReusedTokens).filter(|&tokens| tokens > 0.0);
    let answered = sum(Counter::RequestsOk).unwrap_or(0.0) as u64;
    let (delivered, delivered_by, count) = match reused {
        Some(tokens) => (tokens, "re-used tokens in the frontends' metrics", answered),
        None if requests >= MIN_REQUESTS => (cached, "cached tokens in the frontends' metrics", requests),
        None => return None,
    };
    if count < MIN_REQUESTS {
        return None;
    }
    let (predicted, delivered) = (selected / count as f64, delivered / count as f64);
    Some(HitRatePair {
        predicted,
        delivered,
        unit: "tokens a request",
        predicted_by: "prefix tokens of the chosen workers in the frontends' metrics".to_owned(),
        delivered_by: format!("{delivered_by}, {count} requests"),
        is_enough: predicted.max(delivered) >= MIN_TOKENS,
    })
}

/// The router by its decisions, engines by the cached tokens that frontends count.
fn by_requests(view: &View<'_>, interval: &Interval) -> Option<HitRatePair> {
    let (cached, requests) = cached(view, interval).filter(|&(_, requests)| requests >= MIN_REQUESTS)?;
    let overlap = Overlap::of(view, interval).filter(|overlap| overlap.decisions >= MIN_REQUESTS)?;
    let (predicted, delivered) = (overlap.tokens / overlap.decisions as f64, cached / requests as f64);
    Some(HitRatePair {
        predicted,
        delivered,
        unit: "tokens a request",
        predicted_by: format!("overlap × block size of {} decisions", overlap.decisions),
        delivered_by: format!("cached tokens in the frontends' metrics, {requests} requests"),
        is_enough: predicted.max(delivered) >= MIN_TOKENS,
    })
}

/// The router by its decisions, engines by their prefix cache's own counters: shares of the prompts.
fn by_engine_counters(view: &View<'_>, interval: &Interval) -> Option<HitRatePair> {
    let overlap = Overlap::of(view, interval).filter(|overlap| overlap.decisions >= MIN_REQUESTS)?;
    let sum = |counter| -> f64 {
        let of = |p: &ProcessState| p.counted_since(counter, interval.after);
        view.scraped(ProcessRole::Worker).filter(|p| !is_of_decode(view, p)).filter_map(of).sum()
    };
    let queries = sum(Counter::EnginePrefixQueries);
    if queries <= 0.0 || overlap.prompt_tokens <= 0.0 {
        return None;
    }
    let (predicted, delivered) =
        (overlap.tokens / overlap.prompt_tokens, sum(Counter::EnginePrefixHits) / queries);
    let mean_prompt = overlap.prompt_tokens / overlap.decisions as f64;
    Some(HitRatePair {
        predicted,
        delivered,
        unit: "of the prompts' tokens, 0 to 1",
        predicted_by: format!("overlap of {} decisions", overlap.decisions),
        delivered_by: "prefix cache hits of queries in the engines' metrics".to_owned(),
        is_enough: predicted.max(delivered) * mean_prompt >= MIN_TOKENS,
    })
}

/// Cached tokens by the frontends' histogram, and of how many requests. Where prefill and decode are apart the response, and
/// its cache metric, comes from the decode worker, while routers predict for the prefill worker.
fn cached(view: &View<'_>, interval: &Interval) -> Option<(f64, u64)> {
    if view.cluster.pools_in_use().into_iter().any(|pool| view.decodes(pool)) {
        return None;
    }
    let of = |p: &ProcessState| p.distribution(HistogramKind::CachedTokens, interval.after, interval.until);
    let each = view.scraped(ProcessRole::Frontend).filter_map(of);
    each.map(|tokens| (tokens.sum(), tokens.count())).reduce(|a, b| (a.0 + b.0, a.1 + b.1))
}

fn is_of_decode(view: &View<'_>, process: &ProcessState) -> bool {
    let rank = process.ranks().first().map_or(0, |rank| rank.dp_rank);
    let pool = view.worker_of(process, rank).and_then(|worker| view.cluster.pool_of(worker));
    pool.is_some_and(|pool| view.decodes(pool))
}

/// What routers themselves report that the chosen workers held.
struct Overlap {
    decisions: u64,
    tokens: f64,
    prompt_tokens: f64,
}

impl Overlap {
    fn of(view: &View<'_>, interval: &Interval) -> Option<Self> {
        let mut sum = Self { decisions: 0, tokens: 0.0, prompt_tokens: 0.0 };
        let window = view.now.since(interval.after);
        for decided in
            view.decisions(window).filter(|d| d.at_ms > interval.after && d.at_ms <= interval.until)
        {
            let decision = &decided.decision;
            if decided.ignores_cache {
                continue;
            }
            let size = view.cluster.block_size_of(decision).map(|size| size.value);
            let Some((overlap, size)) = decision.overlap_blocks.zip(size) else { continue };
            let Some(prompt) = decision.isl_blocks else { continue };
            sum.decisions += 1;
            sum.tokens += overlap as f64 * f64::from(size);
            sum.prompt_tokens += prompt as f64 * f64::from(size);
        }
        (sum.decisions > 0).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};

    /// 60 requests of 100 blocks of 16 tokens, of which the router found 50 blocks.
    fn stage_of(first: &Process, then: &Process) -> Stage {
        let mut stage = Stage::new(2);
        stage.scrape(first);
        stage.pass(5_000);
        stage.scrape(first);
        for _ in 0..6 {
            stage.pass(5_000);
            stage.choose(&[5, 5], 50);
        }
        stage.scrape(then);
        stage
    }

    fn cached(tokens: f64, requests: u64) -> Process {
        Process::frontend().histogram(HistogramKind::CachedTokens, &[1e3], &[requests, 0], tokens)
    }

    #[test]
    fn overlap_that_engines_do_not_find_is_found() {
        let finding = stage_of(&cached(0.0, 0), &cached(500.0 * 60.0, 60)).found(&RULE).unwrap();
        assert_eq!((&*finding.evidence[0].value, &*finding.evidence[1].value), ("800", "500"));
        assert!(stage_of(&cached(0.0, 0), &cached(1_100.0 * 60.0, 60)).found(&RULE).is_some());
    }

    #[test]
    fn near_figures_are_well_and_few_requests_unknown() {
        assert!(stage_of(&cached(0.0, 0), &cached(600.0 * 60.0, 60)).is_ok(&RULE));
        assert!(stage_of(&cached(0.0, 0), &cached(1_000.0 * 60.0, 60)).is_ok(&RULE));
        assert!(stage_of(&cached(0.0, 0), &cached(500.0 * 40.0, 40)).is_unknown(&RULE));
        assert!(Stage::new(2).is_unknown(&RULE));
    }

    #[test]
    fn a_frontends_own_counters_come_first() {
        let of = |selected, reused, requests| {
            Process::frontend()
                .counter(Counter::SelectedPrefixTokens, selected)
                .counter(Counter::ReusedTokens, reused)
                .counter(Counter::RequestsOk, requests)
                .histogram(HistogramKind::CachedTokens, &[1e3], &[0, 0], 0.0)
        };
        let none = of(0.0, 0.0, 0.0);
        let finding = stage_of(&none, &of(60_000.0, 30_000.0, 60.0)).found(&RULE).unwrap();
        assert_eq!(finding.evidence[2].value, "0.50");
        let blind = stage_of(&none, &of(0.0, 30_000.0, 60.0)).found(&RULE).unwrap();
        assert_eq!(blind.evidence[2].value, "nothing was predicted");
        assert!(stage_of(&none, &of(60_000.0, 55_000.0, 60.0)).is_ok(&RULE));
        let silent = stage_of(&none, &of(60_000.0, 0.0, 60.0));
        assert!(silent.is_unknown(&RULE), "workers that do not report re-use");
    }

    #[test]
    fn engines_own_counters_are_compared_by_share() {
        let frontend = Process::frontend().histogram(HistogramKind::Ttft, &[1.0], &[0, 0], 0.0);
        let engine = |queries, hits| {
            Process::of_worker(0)
                .counter(Counter::EnginePrefixQueries, queries)
                .counter(Counter::EnginePrefixHits, hits)
        };
        let stage_of = |hits| {
            let mut stage = Stage::new(2);
            for process in [&frontend, &engine(0.0, 0.0)] {
                stage.scrape(process);
            }
            stage.pass(5_000);
            stage.scrape(&frontend);
            stage.pass(5_000);
            stage.choose(&[30, 30], 50);
            stage.scrape(&frontend);
            stage.scrape(&engine(100_000.0, hits));
            stage
        };
        assert!(stage_of(20_000.0).found(&RULE).is_some());
        assert!(stage_of(45_000.0).is_ok(&RULE));
    }

    #[test]
    fn differing_block_sizes_explain_it() {
        let mut stage = stage_of(&cached(0.0, 0), &cached(0.0, 60));
        assert!(stage.found(&RULE).is_some());
        stage.holds("block_size_mismatch");
        assert_eq!(stage.explained_by(&RULE), Some("block_size_mismatch"));
    }
}
