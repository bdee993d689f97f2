//! The what-if panel over a demo, and the same question asked over HTTP.

use crate::browser::Page;
use crate::http::Http;
use crate::radixscope::Radixscope;
use crate::wait;
use hyper::Method;
use serde_json::Value;

/// A demo in which hardly any time passes, so that page and API speak of one state.
pub async fn demo() -> Radixscope {
    // Whose router has the fewest settings.
    Radixscope::standing("aggregated-0.9").await
}

/// Costs as the panel shows them, by rank.
pub async fn costs(page: &Page) -> Vec<f64> {
    let shown =
        "[...document.querySelectorAll('[data-testid=cost-row]')].map(row => row.dataset.cost).join(' ')";
    let shown = page.eval(shown).await;
    shown
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .map(|cost| cost.parse().expect("a number"))
        .collect()
}

/// Waits until the panel shows these costs.
pub async fn until_costs(page: &Page, what: &str, expected: &[f64]) {
    page.until(what, async |page| {
        let costs = costs(page).await;
        wait::expect(costs == expected, || format!("{costs:?}, not {expected:?}"))
    })
    .await;
}

/// Costs by rank as the API has them.
pub async fn asked(server: &Radixscope, question: Value) -> Vec<f64> {
    let url = server.url("/api/v1/score");
    let response = Http::default().send(Method::POST, &url, &[], question.to_string().into()).await;
    let response = response.expect("the server answers").json();
    let candidates = response["candidates"].as_array().unwrap_or_else(|| panic!("{response}")).iter();
    candidates.map(|candidate| candidate["cost"].as_f64().expect("a cost")).collect()
}
