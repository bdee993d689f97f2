//! Panels open by their address alone, and in a narrow window from a menu.

use radixscope_model::frame::Frame;
use radixscope_tests::browser::with_page;
use radixscope_tests::panels::decisions::is_in_the_ledger;
use radixscope_tests::replay::replayed;
use serde_json::json;

const CAPTURE: &str = "0.9.1-healthy";

/// Parts of snapshots that came over a socket.
fn snapshot_parts(frames: &[Vec<u8>]) -> usize {
    frames.iter().filter(|frame| matches!(Frame::decode(frame), Ok(Frame::Snapshot { .. }))).count()
}

#[tokio::test]
async fn an_address_of_a_panel_opens_it_without_a_flash_of_the_overview() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let watch = "new MutationObserver(() => { if (document.querySelector('[data-testid=tree-panel]')) window.flashed = true; })
            .observe(document, {subtree: true, childList: true});";
        page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": watch})).await;
        page.open_at(&server, "/?view=decisions&theme=dark", &cluster).await;
        is_in_the_ledger(page, &server).await;
        assert_eq!(page.eval("window.flashed ?? false").await, false);
        assert_eq!(page.address().await.query(), Some("view=decisions&theme=dark"));
        let sockets = page.sockets().await;
        assert_eq!(sockets.len(), 1, "one socket");
        // The state is fetched compressed, once, and the socket goes on from there.
        assert_eq!(snapshot_parts(&sockets[0].1), 0);
        let fetched = "performance.getEntriesByType('resource').filter(e => new URL(e.name).pathname.endsWith('/snapshot')).length";
        assert_eq!(page.eval(fetched).await, 1);
    })
    .await;
}

#[tokio::test]
async fn in_a_narrow_window_the_panels_are_in_a_menu() {
    let (_nats, server, cluster) = replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        page.size(400, 800).await;
        page.open_at(&server, "/", &cluster).await;
        let is_open = "document.getElementById('nav').checkVisibility()";
        assert_eq!(page.eval(is_open).await, false);
        assert_eq!(page.text("menu").await.as_deref(), Some("Overview"));
        page.click("menu").await;
        page.until_true("the menu opens", is_open).await;
        page.screenshot("menu").await;
        page.click("nav-workers").await;
        page.until_true("the menu closes", &format!("!{is_open}")).await;
        assert_eq!(page.text("menu").await.as_deref(), Some("Workers"));
        assert_eq!(page.address().await.query(), Some("view=workers"));
    })
    .await;
}
