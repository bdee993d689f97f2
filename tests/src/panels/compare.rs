//! The compare panel, opened over a demo that stands still.

use crate::browser::Page;
use crate::radixscope::Radixscope;

/// Address of the panel.
pub const VIEW: &str = "/?view=compare";

/// Opens an address of the panel, and waits for its chart and the sample baselines.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true(
        "the chart is there",
        "document.querySelector('[data-testid=cmp-chart]')?.dataset.ready === 'true'",
    )
    .await;
    page.until_true(
        "the samples are read",
        "document.querySelectorAll('[data-testid=cmp-baseline]').length >= 2",
    )
    .await;
}
