//! A frontend routes by another mode than by KV: round-robin, by load, at random. What workers cache plays no part in its choices.

use super::prelude::*;
use crate::check::missing;
use radixscope_model::record::{Counter, HistogramKind, ProcessRole, RoutingMode};
use radixscope_state::cluster::{DecisionEntry, ProcessState};
use std::collections::BTreeMap;

/// Fewest requests for a finding.
const MIN_REQUESTS: u64 = 5;
/// Latest choices that are looked at. They count however old they are: an idle hour changes no mode.
const LATEST: usize = 200;
/// Times that prompts share a block before they can be taken to share prefixes.
const MIN_SHARED: u64 = 5;

pub(in crate::check) const RULE: Rule = Rule::new("not_kv_routing", "Routing by cached blocks", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let modes = modes(view);
    let frontends: Vec<_> = view.scraped(ProcessRole::Frontend).filter(|p| is_other(p)).collect();
    if modes.is_empty() && frontends.is_empty() {
        let is_known = latest(view).any(|decided| !decided.has_other_mode())
            || view.scraped(ProcessRole::Frontend).any(|p| rates(p).is_some_and(|count| count > 0));
        return match is_known {
            true => RuleOutcome::Ok,
            false => RuleOutcome::no_data(missing::of_frontends(
                view,
                "how many requests were routed and with what hit rate",
                "from 1.0 on",
            )),
        };
    }
    found(view, &modes, &frontends).into()
}

/// Whether this fault is there, for rules that see its consequences.
pub(super) fn is_there(view: &View<'_>) -> bool {
    !modes(view).is_empty() || view.scraped(ProcessRole::Frontend).any(is_other)
}

fn latest<'v>(view: &View<'v>) -> impl Iterator<Item = &'v DecisionEntry> + use<'v> {
    view.cluster.decisions().newest_first().take(LATEST)
}

/// Latest choices by other modes than KV, as logs name them.
fn modes(view: &View<'_>) -> BTreeMap<RoutingMode, u64> {
    let mut modes = BTreeMap::new();
    for mode in latest(view).filter(|d| d.has_other_mode()).filter_map(|d| d.decision.mode) {
        *modes.entry(mode).or_default() += 1;
    }
    if modes.values().sum::<u64>() < MIN_REQUESTS { BTreeMap::new() } else { modes }
}

/// Whether a frontend routes requests, and neither their hit rates nor KV events nor workers are known to its router: it has
/// no KV router.
fn is_other(process: &ProcessState) -> bool {
    let routed = process.counted(Counter::RoutedRequests).unwrap_or(0.0);
    let has_registered = process.workers().iter().any(|worker| worker.registered == Some(true));
    routed >= MIN_REQUESTS as f64
        && rates(process) == Some(0)
        && process.counter_value(Counter::StoredOk).is_none()
        && !has_registered
}

/// Hit rates that a frontend counted since it was first scraped; `None`: it has no such metric.
fn rates(process: &ProcessState) -> Option<u64> {
    process.session(HistogramKind::HitRate).map(|rates| rates.count())
}

/// Every request names its worker: whoever named it has routed.
fn routed_before(requests: u64) -> Finding {
    Finding::new(
        Severity::Info,
        "Requests are routed before the frontend, which runs in direct mode",
        "Each request names its worker. Behind an Inference Gateway the endpoint picker (EPP) routes: costs, cached blocks and queues of \
         its choices are in its log and its metrics (port 9090, dynamo_epp_*), not in this frontend's.",
    )
    .evidence(
        format!("Decisions by direct, by the frontend's log, of the last {LATEST}"),
        requests,
        "requests",
    )
    .fixes("not_kv_routing/direct")
    .panel(PanelRef::Decisions)
}

fn found(view: &View<'_>, modes: &BTreeMap<RoutingMode, u64>, frontends: &[&ProcessState]) -> Finding {
    let names: Vec<&str> = modes.keys().map(|mode| mode.as_str()).collect();
    if !modes.is_empty() && modes.keys().all(|mode| *mode == RoutingMode::Direct) {
        return routed_before(modes.values().sum());
    }
    let title = match names.is_empty() {
        true => "Requests are not routed by KV cache; the mode is unknown".to_owned(),
        false => format!("Requests are not routed by KV cache but by {}", names.join(", ")),
    };
    let chains = view.chains();
    // Where prompts share nothing, nothing is lost.
    let severity = if chains.shared >= MIN_SHARED { Severity::Warning } else { Severity::Info };
    let mut found = Finding::new(
        severity,
        title,
        match names.is_empty() {
            false => {
                "The frontend chooses workers without regard to cached blocks, so cache hits are by chance. KV events that \
                 workers publish are not used."
            }
            true => {
                "The frontend looks at no cached blocks, so cache hits are by chance. Behind an Inference Gateway its endpoint picker \
                 (EPP) routes instead, and the frontend's log names the mode direct."
            }
        },
    );
    for (mode, count) in modes {
        let label = format!("Decisions by {}, by the frontend's log, of the last {LATEST}", mode.as_str());
        found = found.evidence(label, count, "requests");
    }
    for process in frontends {
        let routed = process.counted(Counter::RoutedRequests).unwrap_or(0.0);
        found = found
            .evidence(
                format!("Requests routed, by {}'s metrics, since it was first read", process.name),
                routed,
                "requests",
            )
            .evidence(
                format!("Hit rates counted, by {}'s metrics, since it was first read", process.name),
                0,
                "requests",
            );
    }
    found
        .evidence("Times that prompts share a block, by the trees, now", chains.shared, "")
        .fixes("not_kv_routing")
        .panel(PanelRef::Decisions)
}
