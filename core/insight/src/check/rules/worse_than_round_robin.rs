//! KV-aware routing is slower than round-robin was at the same load: it is above its knee.

use super::prelude::*;
use crate::baseline::{Baseline, Direction, Figure, Router, crossover};
use crate::check::causes::{Cause, code};
use crate::check::latency::Latency;
use crate::check::missing;
use crate::latency::Quantity;
use radixscope_model::range::TargetComparison;
use radixscope_model::record::{Gauge, ProcessRole};

/// So much slower than the baseline: sweeps differ by a few per cent among themselves.
const MARGIN: f64 = 1.2;

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 30_000,
    clear_ms: 60_000,
    ..Rule::new("worse_than_round_robin", "KV-aware routing vs a round-robin baseline", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let by_router =
        |router| view.criteria.baselines.iter().filter(move |baseline| baseline.router() == router);
    let Some(round_robin) = by_router(Router::RoundRobin).next() else {
        return RuleOutcome::no_data("No round-robin baseline; set one with --baseline");
    };
    let Some(concurrency) = concurrency(view) else {
        return RuleOutcome::no_data(missing::of_frontends(view, "the number of requests in flight", ""));
    };
    let pairs = [(Quantity::Ttft, Figure::TtftP95), (Quantity::Tpot, Figure::ItlP95)];
    let baseline_at = |figure| round_robin.interpolate(concurrency, figure).map(|at| at.value);
    let mut is_judged = false;
    for (quantity, figure) in pairs {
        let Some(then_ms) = baseline_at(figure) else { continue };
        let Some((latency, standing)) = Latency::judged(view, quantity, MARGIN * then_ms) else {
            continue;
        };
        is_judged |= standing != TargetComparison::Unknown;
        if standing == TargetComparison::Above {
            let kv_aware = by_router(Router::KvAware).find(|other| other.name() == round_robin.name());
            return found(view, &latency, concurrency, figure, (round_robin, then_ms), kv_aware).into();
        }
    }
    if is_judged {
        return RuleOutcome::Ok;
    }
    RuleOutcome::no_data(format!(
        "No latency of {} can be compared at {concurrency:.0} requests in flight: the baseline does not reach \
             there, or too few requests report theirs",
        round_robin.name()
    ))
}

fn found(
    view: &View<'_>,
    latency: &Latency,
    concurrency: f64,
    figure: Figure,
    (round_robin, then_ms): (&Baseline, f64),
    kv_aware: Option<&Baseline>,
) -> Finding {
    let name = figure.label();
    let mut found = Finding::new(
        Severity::Warning,
        format!("{name} is worse than round-robin's at the same load"),
        "Above some load, KV-aware routing costs more by queueing on one worker than it saves in prefill. \
         Averages look balanced then, because each imbalance lasts seconds and moves from worker to worker.",
    )
    .cause(code(Cause::of(view)))
    .evidence(
        format!("{name} now, {}, last 60 s, {} samples", latency.source.to_text(), latency.samples),
        latency.to_text(&latency.p95),
        "",
    )
    .evidence(
        format!("{name} of round-robin, baseline {}, at {concurrency:.0} in flight", round_robin.name()),
        format!("{then_ms:.0}"),
        "ms",
    )
    .evidence("In flight now, all workers", format!("{concurrency:.0}"), "requests");
    let knee = kv_aware.and_then(|kv_aware| {
        let crossings = crossover(kv_aware, round_robin, figure);
        crossings.into_iter().find(|crossing| crossing.direction == Direction::FirstGetsWorse)
    });
    if let Some(knee) = knee {
        let label = format!("In the baseline, KV-aware is worse above, {name}");
        found = found.evidence(label, format!("{:.0}", knee.concurrency), "requests in flight");
    }
    found = view.with_lost_reuse(found, None);
    found.spread_out(view).fixes("any/less_load").panel(PanelRef::Compare)
}

/// Requests in flight, in all: by the frontends, else by the workers.
fn concurrency(view: &View<'_>) -> Option<f64> {
    let by_workers = || {
        let each = view.present().filter_map(|ix| view.worker(ix)?.in_flight.now());
        each.fold(None, |sum: Option<f64>, n| Some(sum.unwrap_or(0.0) + f64::from(n)))
    };
    view.gauge(ProcessRole::Frontend, Gauge::InFlightRequests).or_else(by_workers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::SweepLevel;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::record::HistogramKind;

    fn baseline(router: Router, p95: [f64; 2]) -> Baseline {
        let mut baseline = Baseline::new("ours", "", router);
        for (concurrency, ms) in [100.0, 200.0].into_iter().zip(p95) {
            let mut row = SweepLevel::new(concurrency);
            row.figures.set(Figure::TtftP95, Some(ms));
            baseline.set_row(row);
        }
        baseline
    }

    /// With the live p95 in the second bucket, above 1 s, at so many requests in flight.
    fn stage_of(in_flight: f64, counts: [u64; 3], baselines: Vec<Baseline>) -> Stage {
        let mut stage = Stage::new(2);
        stage.criteria.baselines = baselines;
        let frontend = |counts: &[u64]| {
            Process::frontend().gauge(Gauge::InFlightRequests, in_flight).histogram(
                HistogramKind::Ttft,
                &[1.0, 2.2],
                counts,
                1.0,
            )
        };
        stage.scrape(&frontend(&[0, 0, 0]));
        stage.pass(5_000);
        stage.scrape(&frontend(&counts));
        stage
    }

    fn both() -> Vec<Baseline> {
        vec![baseline(Router::KvAware, [500.0, 3_000.0]), baseline(Router::RoundRobin, [600.0, 800.0])]
    }

    #[test]
    fn slower_than_round_robin_is_found_with_the_knee() {
        let finding = stage_of(180.0, [80, 20, 0], both()).found(&RULE).unwrap();
        assert_eq!(finding.evidence[1].value, "760");
        assert_eq!(finding.evidence[3].value, "104");
        assert_eq!(finding.panel, PanelRef::Compare);
    }

    #[test]
    fn not_slower_is_well() {
        let stage = stage_of(180.0, [80, 20, 0], vec![baseline(Router::RoundRobin, [1_900.0, 1_900.0])]);
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn without_a_baseline_beyond_its_levels_or_within_a_bucket_it_is_unknown() {
        assert!(stage_of(180.0, [80, 20, 0], Vec::new()).is_unknown(&RULE));
        assert!(stage_of(300.0, [80, 20, 0], both()).is_unknown(&RULE));
        assert!(stage_of(180.0, [98, 2, 0], both()).is_unknown(&RULE), "below 1 s, the limit too");
    }
}
