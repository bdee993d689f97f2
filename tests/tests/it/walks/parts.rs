//! A part of the program that did not arrive is reported and requested again.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::paused_demo;
use radixscope_tests::wait;
use serde_json::json;

#[tokio::test]
async fn a_part_that_did_not_come_is_reported_and_requested_again() {
    let server = paused_demo(&["--warm-up", "60", "--base-path", "/tools/radix"]).await;
    with_page(async |page| {
        page.expect_complaints();
        page.devtools("Network.enable", json!({})).await;
        page.devtools("Network.setBlockedURLs", json!({"urls": ["*/split_memory-*", "*/shared-*"]})).await;
        page.open(&server.url("/?view=memory&theme=light")).await;
        page.until_true("it is shown", "!!document.querySelector('[data-testid=part-failed] [role=alert]')")
            .await;
        page.until("what was not loaded is named", async |page| {
            let text = page.text("part-failed").await.unwrap_or_default();
            wait::expect(text.contains("Memory was not loaded"), || text)
        })
        .await;
        page.screenshot("part-failed").await;
        page.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
        page.click("part-again").await;
        page.until_true(
            "it is shown",
            "!!document.getElementById('memory-title') && !document.querySelector('.part')",
        )
        .await;
        page.click("nav-overview").await;
        page.until_true("the rest works", "!!document.querySelector('[data-testid=worker]')").await;
    })
    .await;
}
