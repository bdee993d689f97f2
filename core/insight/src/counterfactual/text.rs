//! Reports as text: the same on the page, in the API and in a ticket.

use super::calibration::{Calibration, HIT_RATE_TOLERANCE, P50_TOLERANCE, P95_TOLERANCE};
use super::fixed_state::{Expected, Interval};
use super::report::{About, OfflineReplayReport, SweepReport};
use super::sample::LeftOut;
use radixscope_model::number_format::count;
use radixscope_router::RouterSettings;
use radixscope_router::numbers::TEMPERATURE;
use radixscope_router::policy_file::to_set;

/// What an offline replay leaves aside, as whole sentences.
pub const FIXED_STATE_LIMITS: [&str; 4] = [
    "Each decision is judged on the very state it saw. What would follow from another choice is not simulated: no cache \
     warms elsewhere, no load moves, no later decision sees another state.",
    "So the number of changed workers is exact for the next decision after a change of settings and an estimate for many; shares \
     and imbalance show a direction, not what the cluster would reach.",
    "Requests in flight before the first decision are not counted, and a request keeps the end that it really had.",
    "Credits for tiers below device memory, taints and decays count as recorded; a credit other than 1 is not \
     reported.",
];

/// Which setting gives decisions with all candidates, where there are none.
const NO_CANDIDATES_HINT: &str = "A decision can be judged once all workers' costs are known. Give Radixscope the \
    frontend's log at INFO (its lines \"Formula for worker …\" name every candidate), or start the frontends with \
    --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true): candidates are then computed from \
    the tree and the requests in flight.";

/// Why none is judged where other routers than Dynamo's made them all.
const OTHER_ROUTERS_HINT: &str = "Other routers than Dynamo's made these decisions, by arithmetic of their own. The counterfactual and what-if \
    know Dynamo's cost formula alone.";

/// What would let decisions be judged; `None` where some are.
pub fn hint(about: &About) -> Option<&'static str> {
    let is_other = |(reason, _): &(LeftOut, u64)| *reason == LeftOut::OtherRouter;
    match about.judged {
        0 if !about.left_out.is_empty() && about.left_out.iter().all(is_other) => Some(OTHER_ROUTERS_HINT),
        0 => Some(NO_CANDIDATES_HINT),
        _ => None,
    }
}

/// Which setting gives prompts to play, where there are none.
pub const NO_ARRIVALS_HINT: &str = "Prompts can be played again once their block hashes are known. Start the frontends \
    with --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true); or from Dynamo 1.4 on with \
    DYN_REQUEST_TRACE=1, whose files --request-trace reads, or DYN_REQUEST_TRACE_SINKS=nats; or log DYN_LOG=debug, whose [ROUTING_INPUT] lines have them.";

/// The report in one sentence: `With overlap_score_weight 1.5, router_temperature 0.2: 37 of 1,000
/// decisions change worker.`
pub fn headline(report: &OfflineReplayReport) -> String {
    let Some(settings) = report.settings else {
        return format!("None of {} decisions can be judged.", count(report.about.considered));
    };
    let tried = &report.tried;
    let expected = tried.expected_changes;
    let whole = expected.round() as u64;
    // At temperature 0 without ties nothing is left to chance.
    let changes = if expected == tried.certain_changes as f64 {
        count(whole)
    } else if whole == 0 {
        "fewer than one".to_owned()
    } else {
        format!("about {}", count(whole))
    };
    let verb =
        if changes == "1" || whole == 0 && changes.starts_with("fewer") { "changes" } else { "change" };
    format!("With {settings}: {changes} of {} decisions {verb} worker.", count(tried.decisions))
}

/// Decisions that were left out, as text; `None` where all were judged.
pub fn not_judged(about: &About) -> Option<String> {
    let all: Vec<String> = about
        .left_out
        .iter()
        .map(|(reason, decisions)| format!("{} {}", count(*decisions), reason.as_str()))
        .collect();
    (!all.is_empty()).then(|| format!("Left out: {}.", all.join(", ")))
}

/// What is known of the present setting, which a sweep marks: the weight is reported, and the temperature by some versions; else it
/// only shows.
pub fn present_setting(report: &SweepReport) -> Option<String> {
    let grid = report.grid.as_ref()?;
    let recorded = grid.recorded;
    let weight = recorded.prefill_factor();
    let name = recorded.prefill_factor_number().option(recorded.formula);
    let at = grid.prefill_factors.iter().position(|&factor| factor == weight)?;
    let cold = grid.temperatures.iter().position(|&temperature| temperature == 0.0)?;
    let outcome = grid.outcome(at, cold)?;
    let temperature = recorded.router_temperature;
    Some(if temperature > 0.0 {
        format!(
            "Present: {name} {weight}, router_temperature {temperature}. {} of {} decisions did not take the lowest cost.",
            count(outcome.certain_changes),
            count(outcome.decisions)
        )
    } else if outcome.certain_changes == 0 {
        format!("Present: {name} {weight}. Every decision took a lowest cost, as at temperature 0.")
    } else {
        format!(
            "Present: {name} {weight}. {} of {} decisions did not take the lowest cost, so the temperature may be \
             above 0; no source reports it.",
            count(outcome.certain_changes),
            count(outcome.decisions)
        )
    })
}

/// How well the model fits the cluster, as whole sentences.
pub fn calibration_to_text(calibration: &Calibration) -> Vec<String> {
    let whole = |share: f64| (share * 100.0).round();
    let mut sentences = Vec::new();
    let misfits = calibration.misfits();
    if calibration.fits() {
        sentences.push("The model fits this cluster.".to_owned());
    } else {
        sentences.push(format!(
            "The model does not fit this cluster: {}. Absolute figures are hidden; only which setting is better is \
             shown, and in how many parts of the window.",
            misfits.join("; ")
        ));
    }
    for (name, compared) in [("TTFT", &calibration.ttft_ms), ("End to end", &calibration.e2e_ms)] {
        if let Some(of) = compared {
            sentences.push(format!(
                "{name} p50 / p95: {:.0} / {:.0} ms simulated, {:.0} / {:.0} ms measured, of {} requests.",
                of.simulated.p50_ms,
                of.simulated.p95_ms,
                of.measured.p50_ms,
                of.measured.p95_ms,
                count(of.measured.requests)
            ));
        }
    }
    if let Some((measured, simulated)) = calibration.hit_rate {
        sentences.push(format!(
            "KV hit rate: {:.1} % simulated, {:.1} % measured.",
            simulated * 100.0,
            measured * 100.0
        ));
    }
    sentences.push(format!(
        "It fits where p50 is within {} %, p95 within {} % and the hit rate within {} points. Each half of the window is \
         judged by a model fitted to the other half.",
        whole(P50_TOLERANCE),
        whole(P95_TOLERANCE),
        whole(HIT_RATE_TOLERANCE)
    ));
    if calibration.answers_by_duration > 0 {
        sentences.push(format!(
            "The output tokens of {} requests are unknown: they got as many as last as long as measured, so the end-to-end \
             figures are no test.",
            count(calibration.answers_by_duration)
        ));
    }
    sentences
}

/// What is expected of a recommended setting, in one sentence; intervals hold 95 of 100 draws.
pub fn expected_to_text(expected: &Expected) -> Option<String> {
    let text = |of: Interval| format!("{:.0} ms ({:.0}–{:.0})", of.value, of.low, of.high);
    let (p50, p95) = (expected.ttft_p50_ms?, expected.ttft_p95_ms?);
    let (from_p50, from_p95) = expected.measured_ttft_ms?;
    let certain = |of: Interval, from: f64| !(of.low..=of.high).contains(&from);
    let doubt = match (certain(p50, from_p50), certain(p95, from_p95)) {
        (true, true) => "",
        (true, false) => " The change of p95 is within its uncertainty.",
        (false, true) => " The change of p50 is within its uncertainty.",
        (false, false) => " Both changes are within their uncertainty: TTFT may stay as it is.",
    };
    Some(format!(
        "Expected TTFT p50 {} instead of {from_p50:.0}, p95 {} instead of {from_p95:.0}: each measured time with the prompt \
         tokens saved taken off at the pace of this window; queues are not followed.{doubt}",
        text(p50),
        text(p95)
    ))
}

/// What is to be set for `settings` where `recorded` runs, each to be copied as it stands: flags and variables, from 1.6 a file.
pub fn options_to_set(settings: &RouterSettings, recorded: &RouterSettings) -> Vec<String> {
    let mut set = Vec::new();
    if settings.prefill_factor() != recorded.prefill_factor() {
        set.push((settings.prefill_factor_number(), settings.prefill_factor()));
    }
    if settings.router_temperature != recorded.router_temperature {
        set.push((TEMPERATURE, settings.router_temperature));
    }
    to_set(&set, recorded.formula, recorded.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_within_its_uncertainty_is_called_so() {
        let text = |p50: (f64, f64), p95: (f64, f64)| {
            let interval = |(low, high): (f64, f64)| Interval { value: (low + high) / 2.0, low, high };
            let hit_rate_gain = Interval { value: 0.02, low: 0.01, high: 0.03 };
            let (ttft_p50_ms, ttft_p95_ms) = (Some(interval(p50)), Some(interval(p95)));
            let measured_ttft_ms = Some((269.0, 667.0));
            expected_to_text(&Expected { hit_rate_gain, ttft_p50_ms, ttft_p95_ms, measured_ttft_ms })
                .expect("a text")
        };
        assert!(text((250.0, 260.0), (500.0, 600.0)).ends_with("queues are not followed."));
        assert!(
            text((250.0, 260.0), (438.0, 830.0)).ends_with("The change of p95 is within its uncertainty.")
        );
        assert!(
            text((259.0, 273.0), (500.0, 600.0)).ends_with("The change of p50 is within its uncertainty.")
        );
        assert!(text((259.0, 273.0), (438.0, 830.0)).contains("Both changes are within their uncertainty"));
    }
}
