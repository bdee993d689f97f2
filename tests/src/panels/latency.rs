//! The latency panel over a demo in which hardly any time passes.

use crate::browser::Page;
use crate::radixscope::Radixscope;

/// A demo of Dynamo 0.9 in which hardly any time passes any more: it reports no times of single requests.
pub async fn standing() -> Radixscope {
    standing_of("aggregated-0.9").await
}

/// The same of another topology.
pub async fn standing_of(topology: &str) -> Radixscope {
    Radixscope::standing(topology).await
}

/// Opens the panel with `more` in its address, and waits for its figures.
pub async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=latency{more}"))).await;
    page.until_true("figures are there", "!!document.querySelector('[data-testid=ttft-p95] dd')").await;
}
