//! Reports in words: the same on the page, in the API and in a ticket.

use super::frozen::{About, FrozenReport, SweepReport};
use radixscope_model::number_format::count;

/// What a frozen report leaves aside, as whole sentences.
pub const FROZEN_LIMITS: [&str; 4] = [
    "Each decision is judged on the very state it saw. What would follow from another choice is not followed up: no \
     cache warms elsewhere, no load moves, no later decision sees another state.",
    "So the number of changed workers is exact for the next decision after a change of settings and an estimate for many; shares \
     and spreads tell a direction, not what the cluster would come to.",
    "Requests in flight before the first decision are not counted, and a request keeps the end that it really had.",
    "Credits for tiers below device memory, taints and decays count as recorded; a credit other than 1 is not \
     reported.",
];

/// Which setting gives decisions with all candidates, where there are none.
pub const NO_CANDIDATES_HINT: &str = "A decision can be judged once all workers' costs are known. Give Radixscope the \
    frontend's log at INFO (its lines \"Formula for worker …\" name every candidate), or start the frontends with \
    --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true) and DYN_EVENT_PLANE=nats: candidates are then computed from \
    the tree and the requests in flight.";

/// Which setting gives prompts to play, where there are none.
pub const NO_ARRIVALS_HINT: &str = "Prompts can be played again once their block hashes are known. Start the frontends \
    with --router-replica-sync (DYN_ROUTER_REPLICA_SYNC=true) and DYN_EVENT_PLANE=nats; or from Dynamo 1.4 on with \
    DYN_REQUEST_TRACE=1 and DYN_REQUEST_TRACE_SINKS=nats; or log DYN_LOG=debug, whose [ROUTING_INPUT] lines have them.";

/// The report in one sentence: `With overlap_score_weight 1.5, router_temperature 0.2: 37 of 1,000
/// decisions flip.`
pub fn headline(report: &FrozenReport) -> String {
    let Some(settings) = report.settings else {
        return format!("None of {} decisions can be judged.", count(report.about.considered));
    };
    let tried = &report.tried;
    let expected = tried.flips_expected;
    let whole = expected.round() as u64;
    // At temperature 0 without ties nothing is left to chance.
    let flips = if expected == tried.flips_certain as f64 {
        count(whole)
    } else if whole == 0 {
        "fewer than one".to_owned()
    } else {
        format!("about {}", count(whole))
    };
    let verb = if flips == "1" || whole == 0 && flips.starts_with("fewer") { "changes" } else { "change" };
    format!("With {settings}: {flips} of {} decisions {verb} worker.", count(tried.decisions))
}

/// Decisions that were left out, in words; `None` where all were judged.
pub fn not_judged(about: &About) -> Option<String> {
    let all: Vec<String> = about
        .left_out
        .iter()
        .map(|(reason, decisions)| format!("{} {}", count(*decisions), reason.as_str()))
        .collect();
    (!all.is_empty()).then(|| format!("Left out: {}.", all.join(", ")))
}

/// What is known of the present setting, which a sweep marks: the weight is reported, the temperature only shows.
pub fn present_setting(report: &SweepReport) -> Option<String> {
    let grid = report.grid.as_ref()?;
    let recorded = grid.recorded;
    let weight = recorded.prefill_factor();
    let name = recorded.prefill_factor_number().option();
    let at = grid.prefill_factors.iter().position(|&factor| factor == weight)?;
    let cold = grid.temperatures.iter().position(|&temperature| temperature == 0.0)?;
    let outcome = grid.outcome(at, cold)?;
    Some(if outcome.flips_certain == 0 {
        format!("Present: {name} {weight}. Every decision took a lowest cost, as at temperature 0.")
    } else {
        format!(
            "Present: {name} {weight}. {} of {} decisions did not take the lowest cost, so the temperature may be \
             above 0; no source tells it.",
            count(outcome.flips_certain),
            count(outcome.decisions)
        )
    })
}
