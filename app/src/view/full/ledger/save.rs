//! What is shown as a file, saved by the browser without leaving the page.

use std::time::Duration;

use js_sys::Array;
use leptos::prelude::*;
use radixscope_core::cluster::Decided;
use radixscope_core::export::{DecisionsDto, csv};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Blob, BlobPropertyBag, HtmlAnchorElement, Url};

use super::state::{Ledger, Shown};
use crate::format;

/// How long the file stays with the page for the browser to take it.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// All lines as CSV.
pub(super) fn csv(ledger: Ledger) {
    let text =
        ledger.look(|cluster, shown| with_lines(ledger, shown, |lines| csv::decisions(cluster, lines)));
    save(ledger, "decisions.csv", "text/csv;charset=utf-8", &text);
}

/// All lines as the API gives them.
pub(super) fn json(ledger: Ledger) {
    let worker = ledger.store.address.with_untracked(|address| address.worker);
    let text = ledger.look(|cluster, shown| {
        let worker = worker.and_then(|id| cluster.worker_ix(id));
        let dto = with_lines(ledger, shown, |lines| {
            DecisionsDto::of(cluster, lines, worker.as_ref().map(std::slice::from_ref))
        });
        // Plain data always encodes.
        serde_json::to_string(&dto).unwrap_or_default()
    });
    save(ledger, "decisions.json", "application/json", &text);
}

fn with_lines<T>(
    ledger: Ledger,
    shown: Shown<'_>,
    make: impl FnOnce(&mut dyn Iterator<Item = &Decided>) -> T,
) -> T {
    ledger.view.with_untracked(|view| make(&mut view.picked.at.iter().filter_map(|&place| shown.at(place))))
}

fn save(ledger: Ledger, name: &str, kind: &str, text: &str) {
    let lines = ledger.view.with_untracked(|view| view.picked.at.len() as u64);
    let said = match offer(name, kind, text) {
        Ok(()) => format!("{name} saved with {}", format::plural(lines, "decision", "decisions")),
        Err(_) => format!("{name} could not be saved: the browser refused"),
    };
    ledger.said.set(said);
}

fn offer(name: &str, kind: &str, text: &str) -> Result<(), JsValue> {
    let bag = BlobPropertyBag::new();
    bag.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&Array::of1(&text.into()), &bag)?;
    let url = Url::create_object_url_with_blob(&blob)?;
    let link: HtmlAnchorElement = document().create_element("a")?.unchecked_into();
    link.set_href(&url);
    link.set_download(name);
    link.click();
    // Some browsers read the address only after the click.
    set_timeout(move || drop(Url::revoke_object_url(&url)), KEPT_FOR);
    Ok(())
}
