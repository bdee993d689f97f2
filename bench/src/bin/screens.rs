//! Pictures of the app for people to look at, in `target/screens`: the demo in the dark and in the light, at two sizes, and its
//! tree of few and of many workers. `cargo xtask screens` runs it.
#![forbid(unsafe_code)]

use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::main]
async fn main() {
    demo().await;
    trees().await;
}

/// The whole page and some of its panels.
async fn demo() {
    let server = Radixscope::start(["demo", "--warm-up", "120"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        for theme in ["dark", "light"] {
            for (width, height) in [(1280, 720), (1920, 1080)] {
                page.size(width, height).await;
                page.open(&server.url(&format!("/?theme={theme}"))).await;
                page.until("the tree is drawn in many colours", async |page| {
                    let colours = page.colours("#tree canvas.picture").await;
                    wait::expect(colours > 4, || format!("{colours} colours"))
                })
                .await;
                assert_eq!(page.text("tree-empty").await, None, "no panel denies what another shows");
                assert_eq!(page.text("workers-empty").await, None, "no panel denies what another shows");
                let ready = "document.querySelector('[data-testid=rates-chart]')?.dataset.ready === 'true'";
                page.until_true("the chart is there", ready).await;
                page.until_true(
                    "a comparison was made",
                    "/record/.test(document.querySelector('[data-testid=verified]').innerText)",
                )
                .await;
                page.screenshot(&format!("demo-{theme}-{width}x{height}")).await;
            }
        }
        for view in ["tree", "workers", "rates", "decisions"] {
            page.size(1280, 720).await;
            page.open(&server.url(&format!("/?theme=dark&view={view}"))).await;
            page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
            page.until_true(
                "it shows something",
                "document.querySelector('main .panel').innerText.length > 20",
            )
            .await;
            page.screenshot(&format!("demo-view-{view}")).await;
        }
    })
    .await;
}

/// Views of the tree's panel: what the address says, how the picture is called.
const TREES: [(&str, &str); 5] = [
    ("", "icicle"),
    ("&tree.heat=recency", "recency"),
    ("&tree.heat=hits&tree.width=hits", "hits"),
    ("&tree.lanes=1", "lanes"),
    ("&tree.table=1", "table"),
];

/// Thirty pictures of the tree's panel.
async fn trees() {
    for workers in ["3", "8", "20"] {
        let server = Radixscope::start(["demo", "--warm-up", "150", "--workers", workers]).await;
        server.until_source_is("live").await;
        with_page(async |page| {
            page.size(1920, 1080).await;
            for theme in ["dark", "light"] {
                for (more, name) in TREES {
                    page.open(&server.url(&format!("/?view=tree&theme={theme}{more}"))).await;
                    page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
                    if name == "table" {
                        let lines =
                            "document.querySelectorAll('[data-testid=tree-line][data-hash]').length > 5";
                        page.until_true("there are lines", lines).await;
                    } else {
                        page.until("the tree is drawn in many colours", async |page| {
                            let colours = page.colours("#tree canvas.picture").await;
                            wait::expect(colours > 4, || format!("{colours} colours"))
                        })
                        .await;
                    }
                    page.screenshot(&format!("tree-{name}-{workers}-{theme}")).await;
                }
            }
        })
        .await;
    }
}
