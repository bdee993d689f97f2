//! Prompts are computed slower than before: the time to first token rose with the uncached tokens, from a moment on.

use super::prelude::*;
use crate::check::causes::Cause;
use crate::check::pace::PaceChange;
use radixscope_model::id::PoolIx;
use radixscope_model::record::{Counter, ProcessRole};

/// Prompts of like length take this many times as long: a healthy deployment stays below 1.3 from minute to minute, and
/// reaches 1.9 in a burst.
const SLOWER: f64 = 1.6;
/// And so many times as long by their uncached tokens, of all lengths: in a burst that stays as it was.
const SLOWER_BY_TOKENS: f64 = 1.4;
/// What long prompts wait longer is this many times what short ones do; a queue delays both alike.
const GROWS: f64 = 2.0;
/// Steps that compute this many times the prompt tokens take longer for that alone.
const MORE_WORK: f64 = 1.5;
/// Throughput is taken over this time before the change and up to now, milliseconds.
const THROUGHPUT_MS: u64 = 60_000;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 10_000,
    ..Rule::new("prefill_slower", "Prefill time per uncached token against the last hour", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use().into_iter();
    RuleOutcome::of_pools(pools.map(|pool| evaluate_pool(view, pool)), NO_TIMES)
}

const NO_TIMES: &str = "The first tokens of too few prompts with at least 384 uncached tokens were received; they are with \
    --router-replica-sync on the frontends, their logs (--logs), or request traces";

fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let pace = view.history.pace();
    let Some(change) = pace.change(pool) else {
        return match pace.now(view.now, THROUGHPUT_MS) {
            Some(_) => RuleOutcome::Ok,
            None => RuleOutcome::no_data(NO_TIMES),
        };
    };
    if !is_slower(change) {
        return RuleOutcome::Ok;
    }
    // Where whole prompts are computed or memory is short, times rise with the tokens too.
    match Cause::other_than_prefill(view).map(Cause::code) {
        Some("") | None => found(view, pool, change).into(),
        Some(code) => RuleOutcome::Explained(code),
    }
}

fn is_slower(change: &PaceChange) -> bool {
    let grows = change.extra_of_short_ms.is_none_or(|short| change.extra_of_long_ms >= GROWS * short);
    let by_tokens = change.ms_per_1000.1 / change.ms_per_1000.0.max(f64::MIN_POSITIVE);
    let more_work = change.tokens_per_s.1 / change.tokens_per_s.0.max(f64::MIN_POSITIVE);
    more_work < MORE_WORK && change.factor >= SLOWER && by_tokens >= SLOWER_BY_TOKENS && grows
}

fn found(view: &View<'_>, pool: PoolIx, change: &PaceChange) -> Finding {
    let of_pool: Vec<WorkerIx> = view.present_in(pool).collect();
    let who = match change.workers.len() {
        n if n == of_pool.len() => format!("all {n} workers{}", view.of_pool(pool)),
        n => format!("{n} of {} workers{}", of_pool.len(), view.of_pool(pool)),
    };
    let (before, after) = change.ms_per_1000;
    let mut found = Finding::new(
        Severity::Warning,
        format!("Prefill is slower on {who}"),
        "The same number of uncached prompt tokens takes longer than before while short prompts do not wait as much longer, \
         so the GPUs compute prompts slower. Usual reasons are a power or temperature limit, another process on the GPU, or \
         a changed setting.",
    )
    .began(change.at_ms)
    .evidence(
        format!("TTFT per 1,000 uncached prompt tokens, fastest quarter, before {}", time_of_day(change.at_ms)),
        format!("{before:.0}"),
        "ms",
    )
    .evidence(
        format!("TTFT per 1,000 uncached prompt tokens, fastest quarter, since {}", time_of_day(change.at_ms)),
        format!("{after:.0}"),
        "ms",
    )
    .evidence("TTFT of prompts of like length, after ÷ before", format!("{:.1}", change.factor), "times")
    .evidence(
        "Prompts compared, with at least 384 uncached tokens, before and after",
        format!("{} and {}", count(change.prompts.0 as u64), count(change.prompts.1 as u64)),
        "prompts",
    )
    .evidence_if(
        "TTFT of shorter prompts, after less before",
        change.extra_of_short_ms.map(|ms| format!("{ms:+.0}")),
        "ms",
    );
    let (tokens_before, tokens_after) = change.tokens_per_s;
    found = found.evidence(
        "Uncached prompt tokens per second, of the prompts compared, before → after",
        format!("{tokens_before:.0} → {tokens_after:.0}"),
        "tokens/s",
    );
    if let Some((requests, source)) = view.waiting() {
        found = found.evidence(format!("Queued now, {source}"), count(requests), "requests");
    }
    found
        .evidence_if(
            "Output tokens per second, frontends' metrics, before → after",
            throughput(view, change),
            "tokens/s",
        )
        .workers(change.workers.iter().copied())
        .fixes("prefill_slower")
        .panel_of_worker(PanelRef::Latency)
}

/// Tokens to clients a second in the minute before the change and since, as far back as a minute.
fn throughput(view: &View<'_>, change: &PaceChange) -> Option<String> {
    let since = |at: Millis| {
        let each = view
            .scraped(ProcessRole::Frontend)
            .filter_map(|process| process.counted_since(Counter::OutputTokens, at));
        each.reduce(|a, b| a + b)
    };
    let after_ms = view.now.since(change.at_ms).clamp(1, THROUGHPUT_MS);
    let (from, until) = (change.at_ms.0.checked_sub(THROUGHPUT_MS)?, change.at_ms);
    let before = (since(Millis(from))? - since(until)?) / (THROUGHPUT_MS as f64 / 1e3);
    let after = since(view.ago(after_ms))? / (after_ms as f64 / 1e3);
    Some(format!("{before:.0} → {after:.0}"))
}

/// Of a moment, as evidence gives it.
fn time_of_day(at: Millis) -> String {
    let seconds = at.0 / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::Stage;

    /// A prompt a second on each of two workers; those of the last `slow_s` seconds take `factor` times as long to compute,
    /// and all of them wait `wait_ms`.
    fn stage_of(slow_s: u64, factor: u64, wait_ms: u64) -> Stage {
        let mut stage = Stage::new(2);
        for second in 0..90 + slow_s {
            let is_late = second >= 90;
            let new_blocks = [10, 40, 70, 160][(second % 4) as usize];
            for worker in 0..2 {
                let per_block_ms = if is_late { 2 * factor } else { 2 };
                let ttft_ms = 60 + per_block_ms * new_blocks + if is_late { wait_ms } else { 0 };
                stage.prefilled(worker, 200, 200 - new_blocks, ttft_ms);
            }
            stage.pass(1_000);
        }
        stage
    }

    #[test]
    fn slower_prompts_are_found_with_the_pace_before_and_after() {
        let stage = stage_of(30, 4, 0);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.title, "Prefill is slower on all 2 workers");
        assert_eq!(finding.workers, [WorkerIx(0), WorkerIx(1)]);
        assert!(finding.fix[0].setting.starts_with("nvidia-smi"), "{:?}", finding.fix);
        let began_s = stage.view(|view| view.now.0 / 1_000) - 30;
        let at_ms = stage.view(|view| view.history.pace().change(PoolIx(0)).map(|change| change.at_ms));
        let off_s = (at_ms.unwrap().0 / 1_000).abs_diff(began_s);
        assert!(off_s <= 2, "{off_s} s off");
    }

    #[test]
    fn a_queue_is_no_slower_prefill() {
        assert!(stage_of(30, 1, 2_000).is_ok(&RULE));
        assert!(stage_of(30, 1, 0).is_ok(&RULE));
    }

    #[test]
    fn a_fault_that_makes_prompts_wait_explains_it() {
        let mut stage = stage_of(30, 4, 0);
        stage.used(0, 99, 100);
        assert_eq!(stage.explained_by(&RULE), Some("memory_full"));
    }

    #[test]
    fn few_prompts_are_unknown() {
        assert!(Stage::new(2).is_unknown(&RULE));
    }
}
