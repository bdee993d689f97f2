//! The picture is the API's tree: whatever box is under the pointer, its hash, its owners and the size of its subtree
//! are those that `/api/v1/tree` gives.

use std::collections::BTreeSet;

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Points that are tried for each box that is looked at: some lie beside every box.
const POINTS_PER_BOX: usize = 6;
/// From so many places they are looked at, each a step further into the tree.
const VIEWS: usize = 4;

/// What the page says of the box under the pointer.
#[derive(Debug, PartialEq)]
struct Pointed {
    hash: String,
    workers: BTreeSet<String>,
    blocks: u64,
}

/// Points of the unit square, spread evenly and the same every time.
fn points() -> impl Iterator<Item = (f64, f64)> {
    // Shares of the plastic number: a sequence that leaves no gaps.
    (1..).map(|n| {
        ((f64::from(n) * 0.754_877_666_246_693).fract(), (f64::from(n) * 0.569_840_290_998_053).fract())
    })
}

async fn under_the_pointer(page: &Page) -> Option<Pointed> {
    // Hovering is drawn with the next frame.
    let detail = page
        .eval(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
                const tree = document.getElementById('tree').dataset;
                done([tree.hoverHash ?? null, tree.hoverWorkers ?? null, tree.hoverBlocks ?? null]);
            }))))",
        )
        .await;
    let hash = detail[0].as_str()?.to_owned();
    let workers = detail[1].as_str()?.split_whitespace().map(str::to_owned).collect();
    Some(Pointed { hash, workers, blocks: detail[2].as_str()?.parse().ok()? })
}

async fn of_the_api(server: &Radixscope, hash: &str) -> Pointed {
    let tree = server.json(&format!("/api/v1/tree?root={hash}&depth=1&limit=1")).await;
    let element = &tree["rows"][0];
    let name = |w: &Value| format!("{}/{}", w["worker_id"].as_str().unwrap(), w["dp_rank"]);
    Pointed {
        hash: element["block_hash"].as_str().unwrap().to_owned(),
        workers: element["workers"].as_array().unwrap().iter().map(name).collect(),
        blocks: element["subtree_blocks"].as_u64().unwrap(),
    }
}

#[tokio::test]
async fn sixty_boxes_are_the_apis() {
    boxes_are_the_apis(60).await;
}

#[tokio::test]
async fn two_hundred_boxes_are_the_apis() {
    boxes_are_the_apis(200).await;
}

async fn boxes_are_the_apis(boxes: usize) {
    let flags = ["demo", "--workers", "8", "--warm-up", "200", "--speed", "0.000001"];
    let server = Radixscope::start(flags).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.size(1600, 1000).await;
        page.open(&server.url("/?view=tree")).await;
        page.until_true("the tree is drawn", "document.getElementById('tree')?.dataset.region !== undefined")
            .await;
        page.agrees_with(&server).await;
        page.eval("document.getElementById('tree').focus()").await;
        let (left, top, width, height) = page.rectangle("[data-testid=tree]").await;
        let (mut seen, mut different) = (0, BTreeSet::new());
        for (x, y) in points().take(POINTS_PER_BOX * boxes) {
            page.hover(left + 50.0 + x * (width - 52.0), top + y * (height - 2.0)).await;
            let Some(shown) = under_the_pointer(page).await else { continue };
            assert_eq!(shown, of_the_api(&server, &shown.hash).await);
            seen += 1;
            different.insert(shown.hash);
            if seen == boxes {
                break;
            }
            if seen % (boxes / VIEWS) == 0 {
                // From here on closer, where other boxes are wide enough to be pointed at.
                let before = page.attribute("#tree", "data-region").await;
                page.press("+").await;
                page.until("the camera came closer", async |page| {
                    let now = page.attribute("#tree", "data-region").await;
                    wait::expect(now != before, || format!("{now:?}"))
                })
                .await;
            }
        }
        assert_eq!(seen, boxes, "enough points lie on a box");
        assert!(different.len() > boxes / 4, "they are not always the same: {}", different.len());
    })
    .await;
}
