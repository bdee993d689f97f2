//! The lines that are shown, as a file.

use leptos::prelude::*;
use radixscope_panels::decisions;

use super::state::Ledger;
use super::trace_link::trace_url;
use crate::view::file::offer;

/// All lines as CSV.
pub(super) fn csv(ledger: Ledger) {
    let text =
        ledger.look(|shown, listed| ledger.view.with_untracked(|list| decisions::csv(shown, list, listed)));
    save(ledger, "decisions.csv", "text/csv;charset=utf-8", &text);
}

/// All lines as the API gives them.
pub(super) fn json(ledger: Ledger) {
    let worker = ledger.store.address.with_untracked(|address| address.worker);
    let template = trace_url();
    let text = ledger.look(|shown, listed| {
        let all = ledger
            .view
            .with_untracked(|list| decisions::json(shown, list, listed, worker, template.as_ref()));
        serde_json::to_string(&all).unwrap_or_default()
    });
    save(ledger, "decisions.json", "application/json", &text);
}

fn save(ledger: Ledger, name: &str, kind: &str, text: &str) {
    let is_saved = offer(name, kind, text).is_ok();
    ledger.status_text.set(ledger.view.with_untracked(|list| decisions::saved_text(name, is_saved, list)));
}
