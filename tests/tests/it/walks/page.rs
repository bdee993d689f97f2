//! The page as a whole: the figures of a recorded capture, the keyboard, and the address.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::figures::{self, by_id, number};
use radixscope_tests::panels::digits;
use radixscope_tests::replay::replayed;

async fn counted(page: &Page, id: &str) -> u64 {
    digits(&page.text(id).await.unwrap_or_else(|| panic!("nothing is {id}")))
}

#[tokio::test]
async fn the_page_of_a_capture_shows_the_figures_counted_from_it() {
    let name = "0.9.1-worker-restart";
    let (_nats, server, cluster) = replayed(name, &[]).await;
    let figures = figures::of(name);
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        assert_eq!(
            page.blocks_of_workers(&server).await.len(),
            figures.blocks.len(),
            "a row for each worker"
        );
        for (worker, blocks) in by_id(cluster["workers"].as_array().unwrap()).iter().zip(figures.blocks) {
            let id = format!("{}/0", worker["worker_id"].as_str().unwrap());
            let held = page.texts(&format!("[data-worker='{id}'] [data-testid=held]")).await;
            assert_eq!(Some(digits(&held[0])), *blocks, "worker {id}");
        }
        assert_eq!(counted(page, "resident").await, figures.blocks.iter().flatten().sum::<u64>());
        assert_eq!(counted(page, "nodes").await, figures.nodes);
        let shared = 100.0 * figures.shared as f64 / figures.nodes as f64;
        assert_eq!(page.text("shared").await.unwrap(), format!("{shared:.0} %"));
        let (count, isl, overlap) = figures.decisions;
        let hit_rate = 100.0 * overlap as f64 / isl as f64;
        assert_eq!(page.text("overlap-all").await.unwrap(), format!("{hit_rate:.0} %"));
        let caption = page.text("decisions-caption").await.unwrap();
        assert!(caption.contains(&format!("{count} since start")), "{caption}");
        assert_eq!(page.text("coverage").await.unwrap(), "4 of 4 workers");
        assert_eq!(page.text("drops").await.unwrap(), "0");
        assert_eq!(page.text("connection").await.unwrap(), "Live");
        // Findings are still announced.
        let (seq, now) = (counted(page, "seq").await, server.cluster().await);
        assert!((number(&cluster, "seq")..=number(&now, "seq")).contains(&seq), "{seq}");
        let latest = server.json("/api/v1/decisions?limit=1").await;
        let first = page.attribute("[data-testid=decision]", "data-seq").await;
        assert_eq!(first.unwrap(), number(&latest["decisions"][0], "seq").to_string(), "newest first");
        page.screenshot("capture-0.9.1-worker-restart").await;
        let own = [server.origin(), server.origin().replacen("http", "ws", 1)];
        for request in page.requests().await {
            let is_inside = request.starts_with("data:") || request.starts_with("blob:");
            assert!(is_inside || own.iter().any(|own| request.starts_with(own)), "asked for {request}");
        }
    })
    .await;
}

#[tokio::test]
async fn everything_can_be_reached_with_the_keyboard() {
    let (_nats, server, cluster) = replayed("0.9.1-healthy", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.press("Tab").await;
        let first = page.eval("document.activeElement.innerText").await;
        assert_eq!(first, "Skip to the tree");
        page.press("Enter").await;
        page.until_true("the tree has the focus", "document.activeElement.id === 'tree'").await;
        let focused = async || page.attribute("#tree", "data-focus-hash").await;
        page.press("ArrowDown").await;
        let first = page
            .until("a box has the focus", async |_| focused().await.ok_or_else(|| "none".to_owned()))
            .await;
        server.block(&first).await;
        page.press("ArrowDown").await;
        let second = page
            .until("the focus moves down", async |_| {
                focused().await.filter(|now| *now != first).ok_or_else(|| "still there".to_owned())
            })
            .await;
        let announced = page.eval("document.querySelector('[data-testid=tree-status]').textContent").await;
        assert!(announced.as_str().unwrap().contains(&second), "it is announced: {announced}");
        page.press("Enter").await;
        page.until_true("Enter zooms", "document.querySelector('#tree').dataset.zoom !== 'all'").await;
        page.press("Home").await;
        page.until_true("Home shows everything", "document.querySelector('#tree').dataset.zoom === 'all'")
            .await;
        page.press("?").await;
        page.until_true("the help is open", "document.querySelector('[data-testid=help]').open").await;
        page.press("Escape").await;
        page.until_true("Escape closes it", "!document.querySelector('[data-testid=help]').open").await;
        page.press("1").await;
        page.until_true("a worker is picked", "new URL(location).searchParams.has('worker')").await;
        page.press("0").await;
        page.until_true("and let go", "!new URL(location).searchParams.has('worker')").await;
        page.press("v").await;
        page.until_true(
            "one panel fills the page",
            "new URL(location).searchParams.get('view') === 'findings'",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_address_says_what_is_shown_keeps_foreign_keys_and_names_what_it_does_not_understand() {
    let (_nats, server, cluster) = replayed("0.9.1-healthy", &[]).await;
    let id = cluster["workers"][1]["worker_id"].as_str().unwrap().to_owned();
    with_page(async |page| {
        let path = format!("/?worker={id}&chrome=0&var-cluster=a&theme=pink");
        page.open_at(&server, &path, &cluster).await;
        let notice = page.text("notice-address").await.unwrap();
        assert!(notice.contains("pink"), "{notice}");
        page.until_true(
            "the worker is picked",
            &format!("document.querySelector(\"[data-worker='{id}/0']\").classList.contains('picked')"),
        )
        .await;
        assert_eq!(page.text("connection").await, None, "no status bar in a frame");
        page.press("0").await;
        page.until_true("the worker is let go", "!new URL(location).searchParams.has('worker')").await;
        let query = page.address().await.query().unwrap_or_default().to_owned();
        assert!(query.contains("var-cluster=a") && query.contains("chrome=0"), "{query}");
    })
    .await;
}
