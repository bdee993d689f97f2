//! Blocks that workers hold are missing from the tree: it was joined late, or events were lost and not got back. Whatever is
//! computed from the tree is then of a part.

use super::prelude::*;
use crate::completeness::{Trust, coverage_text, query_text, share_text, used_text, why_text};
use radixscope_model::record::{EventTransport, KnowledgeWhy, MissedCause, QueryState};
use radixscope_state::cluster::WorkerState;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 0, clear_ms: 5_000, ..Rule::new("tree_partial", "Completeness of the tree", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use();
    let lacking: Vec<WorkerIx> = pools.iter().flat_map(|&pool| view.cluster.incomplete_in(pool)).collect();
    if lacking.is_empty() {
        let is_known =
            |worker: WorkerIx| view.worker(worker).is_some_and(|state| state.knowledge.is_complete());
        return match view.present().any(is_known) {
            true => RuleOutcome::Ok,
            false => {
                RuleOutcome::no_data("No KV event was received, and no worker was queried for its blocks.")
            }
        };
    }
    found(view, &lacking).into()
}

fn found(view: &View<'_>, lacking: &[WorkerIx]) -> Finding {
    let pools = view.cluster.pools_in_use();
    let coverage = view.cluster.coverage(pools.iter().copied());
    let is_withheld = |&&pool: &&_| matches!(Trust::of(view.cluster, pool), Trust::Withheld(_));
    let (severity, explanation) = match pools.iter().find(is_withheld) {
        Some(_) => (Severity::Warning, AFFECTED),
        None => (Severity::Info, MARKED),
    };
    let share = match coverage.share() {
        Some(_) => format!("{} of the used blocks are known", share_text(&coverage)),
        None => "how many is unknown".to_owned(),
    };
    let whose = match lacking {
        [_] => view.names(lacking),
        all if all.len() as u32 == coverage.workers => {
            format!("all {} workers", count(coverage.workers.into()))
        }
        some => view.names(some),
    };
    let totals = view.cluster.totals();
    let unattached = (totals.unattached > 0).then(|| part(totals.unattached, totals.resident));
    let mut found = Finding::new(severity, format!("The tree lacks blocks of {whose}: {share}"), explanation)
        .cause(cause(view, lacking))
        .about(PanelRef::Tree, lacking)
        .evidence("Coverage, by KV events and workers' responses", coverage_text(&coverage), "");
    found = found.evidence_if(
        "Blocks whose parent is missing, which are not among the known ones, of all that were received",
        unattached,
        "blocks",
    );
    for source in view.cluster.sources() {
        for missed in source.missed.iter().filter(|missed| missed.cause == MissedCause::HistoryExpired) {
            let label = format!("Messages that the stream had dropped before we read it, by {}", source.name);
            found = found.evidence(label, missed.count, "messages");
        }
    }
    let found = found.each(view, lacking, |found, worker, who| of_worker(view, found, worker, who));
    remedies(view, lacking).into_iter().fold(found, Finding::fixes)
}

/// Code of the finding by which all of these workers lack blocks; empty: there is none.
fn cause(view: &View<'_>, lacking: &[WorkerIx]) -> &'static str {
    let is_lost = |state: &WorkerState| state.knowledge.why == KnowledgeWhy::EventsLost;
    let is_ghost =
        |worker: &WorkerIx| view.active("ghost_worker").is_some_and(|of| of.workers.contains(worker));
    let all = |is: fn(&WorkerState) -> bool| lacking.iter().all(|&ix| view.worker(ix).is_some_and(is));
    if all(is_lost) && view.is_active("event_gaps") {
        "event_gaps"
    } else if lacking.iter().all(is_ghost) {
        "ghost_worker"
    } else {
        ""
    }
}

const AFFECTED: &str = "What workers stored before we listened, or while events were lost, is not in this tree, so shares, duplicates, \
                        overlaps of candidates and what is computed from them are withheld or marked. The router is not \
                        affected.";
const MARKED: &str = "Nearly all blocks are in this tree; shares and what is computed from it are marked as of the known part. \
                      The router is not affected.";

fn of_worker(view: &View<'_>, found: Finding, worker: WorkerIx, who: &str) -> Finding {
    let Some(state) = view.worker(worker) else { return found };
    let knowledge = &state.knowledge;
    let (known, used) = view.cluster.known_of_used(worker);
    let value = used.map_or_else(|| count(known), |used| part(known, used.value));
    let label = format!("Known blocks of {who}, of all ({})", used_text(used));
    let why = format!("{}; known {}", why_text(knowledge.why), since(view.seconds_since(knowledge.since_ms)));
    found
        .evidence(label, value, "blocks")
        .evidence(format!("Reason, {who}"), why, "")
        .evidence_if(format!("Next step for {who}"), query_text(knowledge, view.now), "")
        .evidence_if(
            format!("Number of the first event of {who} that was received"),
            state.lines.last().map(|line| line.first_event_id),
            "",
        )
}

/// In minutes, so that a finding is not news every second.
fn since(seconds: u64) -> String {
    match seconds / 60 {
        0 => "for less than a minute".to_owned(),
        minutes => format!("for {} min", count(minutes)),
    }
}

/// Rows of the table of fixes that help these workers, each once.
fn remedies(view: &View<'_>, lacking: &[WorkerIx]) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for state in lacking.iter().filter_map(|&worker| view.worker(worker)) {
        let row = remedy(state);
        if !all.contains(&row) {
            all.push(row);
        }
    }
    all
}

fn remedy(state: &WorkerState) -> &'static str {
    if state.lines.last().is_some_and(|line| line.line == EventTransport::Engine) {
        return "tree_partial/engine";
    }
    match state.knowledge.asking {
        QueryState::No => "tree_partial/not_asked",
        QueryState::NoEndpoint => "tree_partial/no_endpoint",
        QueryState::OnRequest => "tree_partial/on_request",
        QueryState::Failed { .. } => "tree_partial/failed",
        QueryState::Waiting | QueryState::Dump | QueryState::Range | QueryState::Joining => {
            "tree_partial/asking"
        }
    }
}
