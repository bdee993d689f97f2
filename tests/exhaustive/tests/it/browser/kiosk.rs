//! The kiosk is read from afar and without a pointer: large enough, with the figures that the API gives, nothing to click.
//! Panels alone, for frames, show what is true of them and nothing that leads elsewhere.

use radixscope_panels::url::Panel;
use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::test]
async fn the_kiosk_needs_no_scrolling_on_any_screen() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        let cluster = server.cluster().await;
        for (width, height) in [(1280, 720), (1920, 1080), (3840, 2160)] {
            page.size(width, height).await;
            page.open_at(&server, "/?kiosk", &cluster).await;
            page.until_true("a decision is there", "!!document.querySelector('[data-testid=kiosk-why]')")
                .await;
            let (_, top, _, tall) = page.rectangle(".kiosk-words").await;
            assert!(top + tall <= f64::from(height), "{width}×{height}: ends at {}", top + tall);
            let size = page
                .eval("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                .await;
            assert_eq!(size, serde_json::json!([width, height]), "no scrolling");
        }
    })
    .await;
}

#[tokio::test]
async fn the_kiosk_turns_through_the_pools() {
    let server =
        Radixscope::start(["demo", "--topology", "two-models", "--warm-up", "60", "--speed", "0.000001"])
            .await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.size(1920, 1080).await;
        page.open(&server.url("/?kiosk")).await;
        for pool in ["pool 1 of 2", "pool 2 of 2", "pool 1 of 2"] {
            page.until("the tree of the pool is drawn, and its workers are named", async |page| {
                let name = page.text("kiosk-pool").await.unwrap_or_default();
                wait::expect(name.ends_with(pool), || name)?;
                let (named, colours) =
                    (page.texts(".kiosk-workers li").await, page.colours("#tree canvas.picture").await);
                let first = if pool.starts_with("pool 1") { "W1" } else { "W4" };
                wait::expect(named.first().is_some_and(|worker| worker.starts_with(first)), || {
                    format!("{named:?}")
                })?;
                wait::expect(colours > 4, || format!("{colours} colours"))
            })
            .await;
        }
        page.screenshot("kiosk-two-models").await;
    })
    .await;
}

#[tokio::test]
async fn a_panel_alone_has_its_title_and_no_chrome() {
    let server = Radixscope::standing("aggregated").await;
    with_page(async |page| {
        let cluster = server.cluster().await;
        for (width, height) in [(600, 400), (300, 200)] {
            page.size(width, height).await;
            for switch in ["chrome=0", "kiosk=1"] {
                for panel in Panel::ALL.iter().filter(|panel| **panel != Panel::Overview) {
                    let view = panel.as_str();
                    page.open_at(&server, &format!("/?view={view}&{switch}&theme=light"), &cluster).await;
                    page.until_true("the panel is there", "!!document.querySelector('section.panel h2')")
                        .await;
                    let seen = "[...document.querySelectorAll('.bar, .nav, .skip, .panel-tools, .copy-link')]\
                        .filter((e) => e.checkVisibility()).length";
                    assert_eq!(page.eval(seen).await, 0, "{view}, {switch}: chrome");
                    let theme = page.attribute("html", "data-theme").await;
                    assert_eq!(theme.as_deref(), Some("light"), "as the address says");
                    let size = page
                        .eval("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                        .await;
                    assert_eq!(size, serde_json::json!([width, height]), "{view}: fills its frame");
                }
            }
        }
    })
    .await;
}
