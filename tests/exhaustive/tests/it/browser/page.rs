//! The page as a person sees it: its numbers are the capture's, its tree answers to mouse and keyboard, it is readable
//! in the dark and in the light, and at every size.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::digits;
use radixscope_tests::replay::replayed;
use radixscope_tests::wait;
use serde_json::Value;

#[tokio::test]
async fn unknown_stays_unknown_and_says_which_setting_is_missing() {
    let (_nats, server, cluster) = replayed("0.9.1-no-events", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.until("three workers are shown as unknown", async |page| {
            let held = page.texts("[data-testid=held]").await;
            wait::expect(held == ["–", "–", "–"], || format!("{held:?}"))
        })
        .await;
        assert_eq!(page.text("coverage").await.unwrap(), "0 of 3 workers");
        assert!(page.text("tree-empty").await.unwrap().contains("--kv-events-config"));
        page.screenshot("capture-0.9.1-no-events").await;
    })
    .await;
}

#[tokio::test]
async fn what_points_at_a_block_size_mismatch_is_on_the_first_screen() {
    let (_nats, server, cluster) = replayed("1.6.1-mismatch", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        let empty = page
            .until("empty stores are named", async |page| {
                let facts = page.texts("[data-testid=fact-empty-stores]").await;
                wait::expect(facts.len() == 3, || format!("{facts:?}")).map(|()| facts)
            })
            .await;
        assert_eq!(empty.iter().map(|text| digits(text)).sum::<u64>(), 762);
        let unknown = page.texts("[data-testid=fact-unknown-removals]").await;
        assert_eq!(unknown.iter().map(|text| digits(text)).sum::<u64>(), 7013);
        let decisions = page.text("decisions-missing").await.unwrap_or_default();
        assert!(decisions.contains("--router-replica-sync"), "{decisions}");
    })
    .await;
}

/// A point on the tree, as shares of its width and height.
async fn on_tree(page: &Page, across: f64, down: f64) -> (f64, f64) {
    let (x, y, width, height) = page.rectangle("#tree").await;
    (x + width * across, y + height * down)
}

#[tokio::test]
async fn the_tree_is_drawn_and_describes_the_block_under_the_mouse() {
    let (_nats, server, cluster) = replayed("0.9.1-healthy", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.until("the tree is drawn in more than a handful of colours", async |page| {
            let colours = page.colours("#tree canvas.picture").await;
            wait::expect(colours > 4, || format!("{colours} colours"))
        })
        .await;
        let mut hashes = std::collections::BTreeSet::new();
        for across in [0.1, 0.35, 0.6, 0.85] {
            for down in [0.05, 0.2, 0.5] {
                let (x, y) = on_tree(page, across, down).await;
                page.hover(x, y).await;
                let Some(hash) = page.attribute("#tree", "data-hover-hash").await else { continue };
                page.until("the bar tells of the same block", async |page| {
                    let detail = page.text("detail-hash").await;
                    let now = page.attribute("#tree", "data-hover-hash").await;
                    wait::expect(detail == now && now.as_ref() == Some(&hash), || {
                        format!("{detail:?} {now:?}")
                    })
                })
                .await;
                let known = server.block(&hash).await;
                let detail = page.text("tree-detail").await.unwrap();
                assert!(detail.contains(known["tokens_hash"].as_str().unwrap()), "{detail}: {known}");
                hashes.insert(hash);
            }
        }
        assert!(hashes.len() >= 4, "different places, different blocks: {hashes:?}");
    })
    .await;
}

#[tokio::test]
async fn a_click_zooms_and_the_path_leads_back() {
    let (_nats, server, cluster) = replayed("0.9.1-healthy", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.until("the tree is drawn", async |page| {
            let colours = page.colours("#tree canvas.picture").await;
            wait::expect(colours > 4, || format!("{colours} colours"))
        })
        .await;
        let (x, y) = on_tree(page, 0.25, 0.02).await;
        page.click_at(x, y).await;
        let zoom = page
            .until("it is zoomed", async |page| {
                let zoom = page.attribute("#tree", "data-zoom").await.filter(|zoom| zoom != "all");
                zoom.ok_or_else(|| "not zoomed".to_owned())
            })
            .await;
        server.block(&zoom).await;
        page.until("the path shows where we are", async |page| {
            let path = page.texts("[data-testid=path] button").await;
            wait::expect(path.len() >= 2, || format!("{path:?}"))
        })
        .await;
        let (x, y) = page.centre("[data-testid=path] li:first-child button").await;
        page.click_at(x, y).await;
        page.until_true(
            "everything is shown again",
            "document.querySelector('#tree').dataset.zoom === 'all'",
        )
        .await;
        page.until("the path is empty again", async |page| {
            let path = page.texts("[data-testid=path] button").await;
            wait::expect(path.len() == 1, || format!("{path:?}"))
        })
        .await;
    })
    .await;
}

/// Colours of the page's ground and of its text.
async fn look(page: &Page) -> (Value, Value) {
    let style = "getComputedStyle(document.body)";
    (page.eval(&format!("{style}.backgroundColor")).await, page.eval(&format!("{style}.color")).await)
}

#[tokio::test]
async fn dark_and_light_follow_the_address_or_the_reader() {
    let (_nats, server, cluster) = replayed("0.9.1-healthy", &[]).await;
    with_page(async |page| {
        let theme = async |wanted: &str| {
            let now = format!("document.documentElement.dataset.theme === '{wanted}'");
            page.until_true(&format!("the page is {wanted}"), &now).await;
        };
        let mut looks = Vec::new();
        for wanted in ["dark", "light"] {
            page.open_at(&server, &format!("/?theme={wanted}"), &cluster).await;
            theme(wanted).await;
            looks.push(look(page).await);
            page.screenshot(&format!("capture-{wanted}")).await;
        }
        assert!(looks[0].0 != looks[1].0 && looks[0].1 != looks[1].1, "{looks:?}");
        for (prefers, look_wanted) in ["dark", "light"].into_iter().zip(&looks) {
            page.prefer(&[("prefers-color-scheme", prefers)]).await;
            page.open_at(&server, "/", &cluster).await;
            theme(prefers).await;
            assert_eq!(&look(page).await, look_wanted, "as the reader prefers: {prefers}");
        }
        page.press("t").await;
        theme("dark").await;
        assert!(
            page.address().await.query().unwrap_or_default().contains("theme=dark"),
            "it is in the address"
        );
    })
    .await;
}

#[tokio::test]
async fn it_fits_every_window() {
    let (_nats, server, cluster) = replayed("0.9.1-worker-restart", &[]).await;
    with_page(async |page| {
        for (width, height) in [(360, 740), (768, 1024), (1024, 640), (1280, 720), (1920, 1080), (3440, 1440)]
        {
            page.size(width, height).await;
            page.open_at(&server, "/", &cluster).await;
            page.until("the tree is drawn", async |page| {
                let colours = page.colours("#tree canvas.picture").await;
                wait::expect(colours > 4, || format!("{colours} colours"))
            })
            .await;
            let size = page
                .eval("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                .await;
            let size: (u32, u32) = serde_json::from_value(size).unwrap();
            assert!(size.0 <= width, "{width}×{height}: no scrolling sideways, but it is {size:?}");
            if width >= 1280 {
                assert!(
                    size.1 <= height,
                    "{width}×{height}: the first view needs no scrolling, but it is {size:?}"
                );
            }
            let (_, _, tree_width, tree_height) = page.rectangle("#tree").await;
            assert!(
                tree_width >= 250.0 && tree_height >= 150.0,
                "{width}×{height}: a tree of {tree_width}×{tree_height}"
            );
            page.screenshot(&format!("capture-{width}x{height}")).await;
        }
    })
    .await;
}
