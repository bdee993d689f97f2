//! Latency is above its target.

use super::prelude::*;
use super::queueing::WARMING_UP;
use crate::capacity::RemedyKind;
use crate::check::causes::Cause;
use crate::check::latency::Latency;
use crate::check::missing::{self, has_logs};
use crate::check::spikes::harmful;
use crate::latency::{MIN_SAMPLES, Quantity, latest};
use radixscope_model::range::{Range, TargetComparison};

/// How far back a spike counts as the cause, seconds.
const SPIKE_S: u64 = 90;
/// Decisions that an overlap needs.
const MIN_DECISIONS: u64 = 50;
/// Below it nothing is re-used.
const NO_OVERLAP: f64 = 0.05;
/// From this multiple of its target on a percentile is critical: users wait.
const FAR_ABOVE: f64 = 3.0;

/// What most likely makes requests slow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LikelyCause {
    /// Another fault.
    Other(Cause),
    /// Requests crowd on one worker for seconds.
    Spread,
    /// More requests come than run at once.
    Queue,
    /// None of these.
    Load,
}

pub(in crate::check) const RULE: Rule = Rule {
    // Faults that explain it are found over longer windows: they come first.
    hold_ms: 45_000,
    clear_ms: 60_000,
    ..Rule::new("slo_breach", "TTFT and ITL against their targets", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let targets = view.criteria.targets;
    let targets = [(Quantity::Ttft, targets.ttft_ms), (Quantity::Tpot, targets.itl_ms)];
    let judge = |(quantity, target_ms)| {
        let (latency, standing) = Latency::judged(view, quantity, target_ms)?;
        Some((latency, standing, target_ms))
    };
    let judged: Vec<_> = targets.into_iter().filter_map(judge).collect();
    let above: Vec<_> =
        judged.iter().filter(|(_, standing, _)| *standing == TargetComparison::Above).collect();
    if above.is_empty() {
        return no_breach(view, &judged);
    }
    if view.is_warming_up() {
        return RuleOutcome::no_data(WARMING_UP);
    }
    let names: Vec<&str> = above.iter().map(|(latency, ..)| label(latency.quantity)).collect();
    let why = LikelyCause::of(view);
    let tpot_alone = above.iter().all(|(latency, ..)| latency.quantity == Quantity::Tpot);
    let is_far = |(latency, _, target_ms): &&(Latency, TargetComparison, f64)| {
        latency.p95_at_least() >= FAR_ABOVE * target_ms
    };
    let severity = if above.iter().any(is_far) { Severity::Critical } else { Severity::Warning };
    let mut found = Finding::new(
        severity,
        format!("{} p95 above target", names.join(" and ")),
        format!("{} {}", shares_above(view, &above), why.to_text(tpot_alone)),
    )
    .cause(why.code(view));
    for (latency, _, target_ms) in &judged {
        let what = label(latency.quantity);
        let from = format!("{}, last 60 s, {} samples", latency.source.to_text(), count(latency.samples));
        let p95 = format!("{}; target {target_ms} ms", latency.to_text(&latency.p95));
        let percent = |share: Range| share.to_text(|share| format!("{:.1}", share * 100.0));
        let above = latency.share_above(view, *target_ms);
        let above = above.map(|share| format!("{} % of the samples", percent(share)));
        found = found
            .evidence(format!("{what} p95, {from}"), p95, "")
            .evidence(format!("{what} p50, {from}"), latency.to_text(&latency.p50), "")
            .evidence_if(format!("{what} above its target, {from}"), above, "");
    }
    if let Some((requests, source)) = view.waiting() {
        found = found.evidence(format!("Queued now, {source}"), count(requests), "requests");
    }
    let window = view.cluster.decisions().window(view.now, WINDOW_MS);
    let overlap = window.overlap_share().map(|overlap| format!("{:.0} %", overlap * 100.0));
    let label = format!("Overlap of the prompts' blocks, {} decisions, last 60 s", count(window.count));
    found = found.evidence_if(label, overlap, "");
    if why == LikelyCause::Load
        && let Some((pace, prompts)) = view.history.pace().now(view.now, WINDOW_MS)
    {
        let label = format!(
            "TTFT per 1,000 uncached prompt tokens, fastest quarter of {} prompts with at least 384, last 60 s",
            count(prompts as u64)
        );
        found = found.evidence(label, format!("{pace:.0}"), "ms");
    }
    why.remedy(found, view, tpot_alone).panel(why.panel()).into()
}

/// How much is above its target, in one sentence: at least a twentieth, but often far more.
fn shares_above(view: &View<'_>, above: &[&(Latency, TargetComparison, f64)]) -> String {
    let of = |(latency, _, target_ms): &&(Latency, TargetComparison, f64)| {
        let share = latency.share_above(view, *target_ms)?;
        let percent = share.to_text(|share| format!("{:.0}", share * 100.0));
        Some(format!("{} of {percent} % of the samples", label(latency.quantity)))
    };
    let shares: Vec<String> = above.iter().filter_map(of).collect();
    match shares.is_empty() {
        true => "The 95th percentile is above its target.".to_owned(),
        false => format!("In the last 60 s {} was above its target.", shares.join(" and ")),
    }
}

/// Why there is no percentile.
fn too_few(view: &View<'_>) -> String {
    let samples = |quantity| {
        let times = latest(view.cluster, quantity, view.now);
        times.iter().map(|times| times.samples).max().unwrap_or(0)
    };
    match samples(Quantity::Ttft).max(samples(Quantity::Tpot)) {
        0 if has_logs(view) => {
            format!("No request with its latency was received in the last 60 s; {MIN_SAMPLES} are needed.")
        }
        0 => missing::of_frontends(view, "latencies of requests in the last 60 s", ""),
        n => format!(
            "{n} requests with their latency were received in the last 60 s; {MIN_SAMPLES} are needed."
        ),
    }
}

fn no_breach(view: &View<'_>, judged: &[(Latency, TargetComparison, f64)]) -> RuleOutcome {
    if judged.is_empty() {
        return RuleOutcome::no_data(too_few(view));
    }
    let unclear = judged.iter().find(|(_, standing, _)| *standing == TargetComparison::Unknown);
    let Some((latency, _, target_ms)) = unclear else { return RuleOutcome::Ok };
    RuleOutcome::no_data(format!(
        "{} p95 is {}: the target of {target_ms} ms lies within this range, so above or within is unknown; a frontend's log \
             (Dynamo ≥ 1.1) or request traces (≥ 1.4) report each request",
        label(latency.quantity),
        latency.to_text(&latency.p95)
    ))
}

const fn label(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Tpot => "ITL",
        _ => "TTFT",
    }
}

impl LikelyCause {
    fn of(view: &View<'_>) -> Self {
        if let Some(cause) = Cause::of(view) {
            return Self::Other(cause);
        }
        let window = view.cluster.decisions().window(view.now, WINDOW_MS);
        let overlap = window.overlap_share().filter(|_| window.count >= MIN_DECISIONS);
        if overlap.is_some_and(|overlap| overlap < NO_OVERLAP) {
            Self::Other(Cause::NoReuse(""))
        } else if harmful(view, SPIKE_S).is_some_and(|spikes| !spikes.is_empty()) {
            Self::Spread
        } else if view.waiting().is_some_and(|(requests, _)| requests > 0) {
            Self::Queue
        } else {
            Self::Load
        }
    }

    /// Code of the finding with details; empty: none.
    fn code(self, view: &View<'_>) -> &'static str {
        let if_it_holds = |code| if view.is_active(code) { code } else { "" };
        match self {
            Self::Other(cause) => cause.code(),
            Self::Spread => if_it_holds("in_flight_imbalance"),
            Self::Queue => if_it_holds("queueing"),
            Self::Load => "",
        }
    }

    const fn to_text(self, tpot_alone: bool) -> &'static str {
        match self {
            Self::Other(cause) => cause.to_text(),
            Self::Spread => {
                "The likeliest cause is in-flight imbalance: one worker is full while another one has room."
            }
            Self::Queue => "The likeliest cause is queueing: more requests arrive than run at once.",
            Self::Load if tpot_alone => {
                "Nothing queues and no other fault is known, so too many requests share a step, or its prompts are too long."
            }
            Self::Load => {
                "Nothing queues and no other fault is known, so it is computing the prompts that takes this long."
            }
        }
    }

    const fn panel(self) -> PanelRef {
        match self {
            Self::Other(Cause::Memory | Cause::Churn) => PanelRef::Memory,
            Self::Other(Cause::NoReuse(_) | Cause::CachesFill | Cause::PrefillSlower) => PanelRef::Findings,
            Self::Other(Cause::HotWorker | Cause::StarvedWorker) => PanelRef::Decisions,
            Self::Spread | Self::Queue | Self::Load => PanelRef::Latency,
        }
    }

    fn remedy(self, found: Finding, view: &View<'_>, tpot_alone: bool) -> Finding {
        match self {
            Self::Other(Cause::Memory) => {
                found.remedy(RemedyKind::LowerBatch, None).remedy(RemedyKind::RaiseFraction, None)
            }
            Self::Other(Cause::NoReuse(_)) => found.fixes("slo_breach/no_reuse"),
            Self::Spread | Self::Other(Cause::HotWorker | Cause::StarvedWorker) => {
                found.spread_out(view).fixes("any/less_load")
            }
            Self::Other(Cause::Churn) => {
                found.remedy(RemedyKind::RaiseFraction, None).remedy(RemedyKind::Retention, None)
            }
            Self::Other(Cause::PrefillSlower) => found.fixes("prefill_slower"),
            Self::Other(Cause::CachesFill) => found.fixes("slo_breach/caches_fill"),
            Self::Queue => found.larger_batch(view).fixes("any/less_load"),
            Self::Load if tpot_alone => found.smaller_steps(view).fixes("any/less_load"),
            Self::Load => found.fixes("prefill_slower").fixes("any/less_load"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::id::WorkerIx;
    use radixscope_model::record::{EventTransport, Gauge, HistogramKind, Progress, Record};

    const BOUNDS: [f64; 4] = [0.22, 0.47, 1.0, 2.2];

    /// Samples per bucket within the last minute.
    fn stage_of(counts: [u64; 5]) -> Stage {
        let mut stage = Stage::new(2);
        let frontend =
            |counts: &[u64]| Process::frontend().histogram(HistogramKind::Ttft, &BOUNDS, counts, 1.0);
        stage.scrape(&frontend(&[7, 7, 7, 7, 7]));
        stage.pass(5_000);
        stage.scrape(&frontend(&counts.map(|count| count + 7)));
        stage
    }

    #[test]
    fn a_percentile_that_is_certainly_above_its_target_is_found() {
        let finding = stage_of([50, 20, 20, 10, 0]).found(&RULE).unwrap();
        assert_eq!(finding.title, "TTFT p95 above target");
        assert!(finding.evidence[0].value.contains("1 s–2.2 s"), "{}", finding.evidence[0].value);
        assert!(finding.evidence[2].value.starts_with("10.0–30.0 %"), "{}", finding.evidence[2].value);
    }

    #[test]
    fn below_it_is_well_and_within_the_same_bucket_unknown() {
        assert!(stage_of([50, 46, 4, 0, 0]).is_ok(&RULE));
        assert!(stage_of([50, 40, 10, 0, 0]).is_unknown(&RULE), "between 470 ms and 1 s");
    }

    #[test]
    fn few_samples_or_none_are_unknown() {
        assert!(stage_of([0, 0, 0, 40, 9]).is_unknown(&RULE));
        assert!(Stage::new(2).is_unknown(&RULE));
    }

    #[test]
    fn requests_one_by_one_report_what_a_bucket_does_not() {
        let with_ttft = |ttft_us| {
            let mut stage = stage_of([50, 0, 10, 0, 0]);
            for _ in 0..60 {
                let id = stage.decide(0, 100, 50);
                stage.progress(id, Progress { ttft_us: Some(ttft_us), ..Progress::default() });
            }
            stage.pass(1_000);
            stage
        };
        assert!(with_ttft(640_000).found(&RULE).is_some());
        assert!(with_ttft(590_000).is_ok(&RULE));
    }

    #[test]
    fn targets_are_the_operators() {
        let mut stage = stage_of([50, 46, 4, 0, 0]);
        stage.criteria.targets.ttft_ms = 200.0;
        assert!(stage.found(&RULE).is_some());
    }

    #[test]
    fn a_percentile_far_above_its_target_is_critical_whatever_causes_it() {
        for (counts, severity) in
            [([50, 20, 20, 10, 0], Severity::Warning), ([40, 10, 10, 10, 30], Severity::Critical)]
        {
            let mut stage = stage_of(counts);
            assert_eq!(stage.found(&RULE).unwrap().severity, severity, "{counts:?}");
            stage.holds("block_size_mismatch");
            let finding = stage.found(&RULE).unwrap();
            assert_eq!((finding.severity, &*finding.cause), (severity, "block_size_mismatch"), "{counts:?}");
        }
    }

    #[test]
    fn while_a_worker_warms_up_it_is_unknown() {
        let mut stage = stage_of([50, 20, 20, 10, 0]);
        let (worker, line) = (WorkerIx(0), EventTransport::JetStream);
        stage.record(Record::EventTransport { worker, line, first_event_id: 0 });
        assert!(stage.is_unknown(&RULE));
        let mut stage = stage_of([50, 20, 20, 10, 0]);
        stage.record(Record::EventTransport { worker, line, first_event_id: 7_000 });
        assert!(stage.found(&RULE).is_some(), "it is only us who came late");
    }

    #[test]
    fn the_likeliest_cause_is_named() {
        let slow = || stage_of([50, 20, 20, 10, 0]);
        let explained = |stage: &Stage| stage.found(&RULE).unwrap().explanation.into_owned();
        assert!(explained(&slow()).contains("computing the prompts"));
        let mut stage = slow();
        stage.scrape(&Process::of_worker(0).gauge(Gauge::EngineWaitingRequests, 4.0));
        assert!(explained(&stage).contains("queueing"));
        stage.used(0, 99, 100);
        assert!(explained(&stage).contains("KV cache"));
        stage.used(0, 9, 100);
        stage.choose(&[30, 30], 0);
        assert!(explained(&stage).contains("whole prompts"));
    }
}
