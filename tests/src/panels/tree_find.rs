//! The tree panel with its search and its details.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::{Value, json};

/// A decision whose prompt was held and of which all candidates are known.
pub fn explained(decisions: &[Value]) -> &Value {
    let found = decisions.iter().find(|d| {
        !d["path"].is_null()
            && d["candidates"].as_array().unwrap().len() == 3
            && d["margin_blocks"].is_number()
    });
    found.expect("a decision whose prompt was held")
}

/// Opens the panel with `more` in its address, and waits for its lists.
pub async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=tree{more}"))).await;
    page.until_true(
        "the lists are there",
        "!!document.querySelector('[data-testid=list-largest] [data-testid=prefix]')",
    )
    .await;
}

/// Puts a text into the search, as pasting does, and waits for what it says.
pub async fn search(page: &Page, text: &str, summary: &str) -> String {
    let paste = format!(
        "(e => (e.focus(), e.value = {}, e.dispatchEvent(new Event('input', {{bubbles: true}})), true))(document.getElementById('tree-search'))",
        json!(text)
    );
    page.eval(&paste).await;
    page.until(summary, async |page| {
        let expected = page.text("found-summary").await.unwrap_or_default();
        wait::expect(expected.contains(summary), || format!("{text}: {expected}")).map(|()| expected)
    })
    .await
}

/// Waits until the details are those of a block.
pub async fn is_selected(page: &Page, hash: &str) {
    page.until("the block is selected", async |page| {
        let now = page.attribute("[data-testid=block-details]", "data-hash").await;
        wait::expect(now.as_deref() == Some(hash), || format!("{now:?}, not {hash}"))
    })
    .await;
}
