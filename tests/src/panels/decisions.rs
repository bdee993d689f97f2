//! The rows of the decisions panel, and what kinds they are by the numbers of the API.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;

/// Opens the ledger and waits for its lines.
pub async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=decisions{more}"))).await;
    page.until("there are lines", async |page| {
        let rows = rows(page).await;
        wait::expect(!rows.is_empty(), || format!("{rows:?}"))
    })
    .await;
}

/// Decisions of the lines in the document.
pub async fn rows(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=ledger-row][data-decision]')].map(r => r.dataset.decision)";
    serde_json::from_value(page.eval(all).await).unwrap()
}

/// The kinds of a decision, worked out from the API's numbers alone.
pub fn kinds(decision: &Value) -> Vec<&'static str> {
    let number = |field: &str| decision[field].as_f64();
    let full = number("isl_tokens")
        .zip(number("block_size_tokens"))
        .map(|(tokens, size)| (tokens / size).floor())
        .or(number("isl_blocks"));
    let mut kinds = vec![match (number("overlap_blocks"), full) {
        (Some(0.0), _) => "miss",
        (Some(held), Some(full)) if held >= 0.9 * full => "hit",
        (Some(_), Some(_)) => "partial",
        _ => "unknown",
    }];
    let candidates: Vec<&Value> = decision["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| !c["prefill_blocks"].is_null())
        .collect();
    let costs: Vec<f64> = candidates.iter().map(|c| c["cost"].as_f64().unwrap()).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    if decision["tied"] == true || costs.iter().filter(|&&cost| cost == least).count() > 1 {
        kinds.push("tie");
    }
    let held = |c: &&Value| c["overlap_blocks"].as_u64().unwrap();
    let chosen = candidates.iter().find(|c| c["selected"] == true).map(held);
    if chosen.is_some_and(|chosen| candidates.iter().map(held).max() > Some(chosen)) {
        kinds.push("lost-affinity");
    }
    kinds
}

/// How many decisions the filter says are of a kind.
pub async fn count(page: &Page, kind: &str) -> usize {
    let text = page.text(&format!("kind-{kind}")).await.unwrap();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// What only the ledger shows.
pub const LEDGER: &str = "document.getElementById('decisions-title')?.innerText === 'Decisions'";

/// Waits until the ledger is open, live, and where the server is.
pub async fn is_in_the_ledger(page: &Page, server: &Radixscope) {
    page.until_true("the ledger is open", LEDGER).await;
    page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
    page.agrees_with(server).await;
    assert_eq!(page.eval("document.querySelectorAll('.page').length").await, 1);
}
