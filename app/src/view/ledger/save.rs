//! The lines that are shown, as a file.

use leptos::prelude::*;
use radixscope_export::rows::{Decisions, DecisionsOf, decisions_csv};
use radixscope_state::cluster::DecisionEntry;

use super::state::{Ledger, Listed};
use super::trace_link::trace_url;
use crate::format;
use crate::view::file::offer;

/// All lines as CSV.
pub(super) fn csv(ledger: Ledger) {
    let text = ledger.look(|cluster, shown| with_lines(ledger, shown, |lines| decisions_csv(cluster, lines)));
    save(ledger, "decisions.csv", "text/csv;charset=utf-8", &text);
}

/// All lines as the API gives them.
pub(super) fn json(ledger: Ledger) {
    let worker = ledger.store.address.with_untracked(|address| address.worker);
    let text = ledger.look(|cluster, shown| {
        let worker = worker.and_then(|id| cluster.worker_ix(id));
        let dto = with_lines(ledger, shown, |lines| {
            let workers = worker.as_ref().map(std::slice::from_ref);
            let pools = cluster.only.as_ref().map(std::slice::from_ref);
            let template = trace_url();
            Decisions::of(cluster, lines, DecisionsOf { workers, pools, trace_url: template.as_ref() })
        });
        serde_json::to_string(&dto).unwrap_or_default()
    });
    save(ledger, "decisions.json", "application/json", &text);
}

fn with_lines<T>(
    ledger: Ledger,
    shown: Listed<'_>,
    make: impl FnOnce(&mut dyn Iterator<Item = &DecisionEntry>) -> T,
) -> T {
    ledger.view.with_untracked(|view| make(&mut view.picked.at.iter().filter_map(|&place| shown.at(place))))
}

fn save(ledger: Ledger, name: &str, kind: &str, text: &str) {
    let lines = ledger.view.with_untracked(|view| view.picked.at.len() as u64);
    let status_text = match offer(name, kind, text) {
        Ok(()) => format!("{name} saved with {}", format::plural(lines, "decision", "decisions")),
        Err(_) => format!("{name} could not be saved: the browser refused"),
    };
    ledger.status_text.set(status_text);
}
