//! The tree holds still while somebody points at it: what is under a resting pointer stays, what was evicted keeps its place,
//! it is shown what waits, and all of it comes in when the pointer leaves.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::figures::number;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::publish;
use radixscope_tests::wait;

use radixscope_tests::panels::tree_find::search;
use radixscope_tests::scripted_workers::ScriptedWorkers;

/// Width of the axis at the left of the picture, CSS pixels.
const AXIS: f64 = 46.0;
/// First hash of each of the prompts that are there from the beginning, with how many blocks they have.
const FIRST: u64 = 1_000_000;
const SECOND: u64 = 2_000_000;

/// Worker 1 holds a prompt of 100 blocks, worker 2 one of 60.
async fn start() -> ScriptedWorkers {
    let mut stage = ScriptedWorkers::start().await;
    stage.store(1, FIRST..FIRST + 100).await;
    stage.store(2, SECOND..SECOND + 60).await;
    stage.until_nodes(160).await;
    stage
}

/// Opens a view with the tree drawn.
async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until("the tree is drawn", async |page| {
        let region = page.attribute("#tree", "data-region").await;
        wait::expect(region.is_some_and(|region| !region.starts_with("0.000 1.000")), || "not yet".to_owned())
    })
    .await;
    page.agrees_with(server).await;
}

/// Rests the pointer at shares of the picture's width and height; gives the hash of the block there.
async fn rest(page: &Page, across: f64, down: f64) -> String {
    let (x, y, width, height) = page.rectangle("#tree").await;
    page.hover(x + AXIS + (width - AXIS) * across, y + height * down).await;
    page.until("a block is under the pointer", async |page| hovered(page).await.ok_or("none".to_owned()))
        .await
}

async fn hovered(page: &Page) -> Option<String> {
    page.attribute("#tree", "data-hover-hash").await
}

async fn note(page: &Page) -> String {
    page.text("tree-still").await.unwrap_or_default().replace('\n', " ")
}

async fn until_note(page: &Page, expected: &str) {
    page.until(expected, async |page| {
        let now = note(page).await;
        wait::expect(now == expected, || now)
    })
    .await;
}

async fn region(page: &Page) -> String {
    page.attribute("#tree", "data-region").await.expect("a picture")
}

/// Waits until a figure of the panel is the API's.
async fn until_figure_is_the_apis(page: &Page, server: &Radixscope) {
    page.until("distinct blocks are the API's", async |page| {
        let nodes = number(&server.cluster().await["tree"], "nodes").to_string();
        let now = page.text("nodes").await.unwrap_or_default().replace(',', "");
        wait::expect(now == nodes, || format!("{now}, not {nodes}"))
    })
    .await;
}

#[tokio::test]
async fn what_is_under_a_resting_pointer_stays_and_comes_up_to_date_when_it_leaves() {
    let mut stage = start().await;
    with_page(async |page| {
        let views = ["/?view=tree", "/?view=overview", "/?view=tree&tree.lanes=1"];
        for (view, larger) in views.into_iter().zip([3_000_000, 4_000_000, 5_000_000]) {
            open(page, &stage.server, view).await;
            let is_lanes = view.contains("lanes");
            // In the lanes the second worker's lies in the lower half.
            let before = rest(page, 0.8, if is_lanes { 0.52 } else { 0.05 }).await;
            let (shown, tip) = (region(page).await, page.text("tree-tip").await);
            until_note(page, "Paused while the pointer is here").await;
            let base = number(&stage.server.cluster().await["tree"], "nodes");
            // A larger prompt would stand left of all others, and the second one loses its end.
            stage.store(1, larger..larger + 200).await;
            stage.remove(2, (SECOND + 50..SECOND + 60).rev()).await;
            stage.until_nodes(base + 190).await;
            page.agrees_with(&stage.server).await;
            until_note(page, "Paused while the pointer is here: +200 blocks stored, −10 evicted since").await;
            until_figure_is_the_apis(page, &stage.server).await;
            assert_eq!(hovered(page).await.as_deref(), Some(before.as_str()), "{view}");
            assert_eq!((region(page).await, page.text("tree-tip").await), (shown.clone(), tip), "{view}");
            page.screenshot(&format!("tree-still-{}", view.len())).await;

            page.hover(2.0, 2.0).await;
            until_note(page, "").await;
            page.until("the larger tree is drawn", async |page| {
                let now = region(page).await;
                wait::expect(now != shown, || now)
            })
            .await;
            let after = rest(page, 0.4, if is_lanes { 0.02 } else { 0.05 }).await;
            assert!(after.parse::<u64>().unwrap() >= 3_000_000, "{view}: {after} is of a new prompt");
            stage.store(2, SECOND..SECOND + 60).await;
            stage.until_nodes(base + 200).await;
            page.hover(2.0, 2.0).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_click_selects_what_was_described_and_evicted_blocks_stay_in_their_place() {
    let mut stage = start().await;
    with_page(async |page| {
        open(page, &stage.server, "/?view=tree").await;
        let before = rest(page, 0.8, 0.05).await;
        let place = {
            let (x, y, width, height) = page.rectangle("#tree").await;
            (x + AXIS + (width - AXIS) * 0.8, y + height * 0.05)
        };
        stage.store(1, 3_000_000..3_000_300).await;
        stage.remove(2, (SECOND + 30..SECOND + 60).rev()).await;
        stage.until_nodes(430).await;
        page.agrees_with(&stage.server).await;
        until_note(page, "Paused while the pointer is here: +300 blocks stored, −30 evicted since").await;
        page.click_at(place.0, place.1).await;
        let focus = format!("document.querySelector('#tree').dataset.focusHash === '{before}'");
        page.until_true("the announced block is selected", &focus).await;
        // The 46th block of the second prompt: 45.5 of 100 positions down.
        let gone = rest(page, 0.8, 0.455).await;
        assert_eq!(gone, (SECOND + 45).to_string(), "where it stood");
        page.until("it is shown that it was evicted", async |page| {
            let tip = page.text("tree-tip").await.unwrap_or_default();
            wait::expect(tip.contains("evicted since"), || tip)
        })
        .await;
        page.screenshot("tree-still-evicted").await;
        page.hover(2.0, 2.0).await;
        until_note(page, "").await;
        let now = rest(page, 0.2, 0.05).await;
        assert!(now.parse::<u64>().unwrap() >= 3_000_000, "{now}");
    })
    .await;
}

#[tokio::test]
async fn a_focused_box_holds_the_tree_until_escape() {
    let mut stage = start().await;
    with_page(async |page| {
        open(page, &stage.server, "/?view=tree").await;
        let shown = region(page).await;
        page.eval("(document.getElementById('tree').focus(), true)").await;
        page.press("ArrowDown").await;
        until_note(page, "Paused while a box has the focus").await;
        let focused = page.attribute("#tree", "data-focus-hash").await;
        stage.store(1, 3_000_000..3_000_200).await;
        stage.until_nodes(360).await;
        page.agrees_with(&stage.server).await;
        until_note(page, "Paused while a box has the focus: +200 blocks stored, −0 evicted since").await;
        assert_eq!(region(page).await, shown);
        // The next box is the neighbour that is seen.
        page.press("ArrowRight").await;
        page.until("the neighbour is selected", async |page| {
            let now = page.attribute("#tree", "data-focus-hash").await;
            wait::expect(now.as_deref() == Some(&SECOND.to_string()), || format!("{now:?} after {focused:?}"))
        })
        .await;
        page.press("Escape").await;
        until_note(page, "").await;
        page.until("all is drawn", async |page| {
            let now = region(page).await;
            wait::expect(now != shown, || now)
        })
        .await;
        page.press("ArrowDown").await;
        until_note(page, "Paused while a box has the focus").await;
        page.eval("(document.activeElement.blur(), true)").await;
        until_note(page, "").await;
    })
    .await;
}

#[tokio::test]
async fn real_traffic_changes_nothing_under_a_resting_pointer() {
    let capture = Capture::load("0.9.1-healthy");
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let client = nats.client().await;
    let (begin, rest_of_it) = capture.messages.split_at(capture.messages.len() / 4);
    publish(&client, begin).await;
    with_page(async |page| {
        open(page, &server, "/?view=overview").await;
        let before = rest(page, 0.1, 0.05).await;
        let bar = page.text("detail-hash").await;
        for some in rest_of_it.chunks(rest_of_it.len() / 10 + 1) {
            publish(&client, some).await;
            page.agrees_with(&server).await;
            assert_eq!(hovered(page).await.as_deref(), Some(before.as_str()));
            assert_eq!(page.text("detail-hash").await, bar);
        }
        let waits = note(page).await;
        assert!(waits.starts_with("Paused while the pointer is here: +"), "{waits}");
        until_figure_is_the_apis(page, &server).await;
        page.hover(2.0, 2.0).await;
        until_note(page, "").await;
        page.agrees_with(&server).await;
        page.until("the picture is as wide as the tree", async |page| {
            let nodes = number(&server.cluster().await["tree"], "nodes");
            let now = region(page).await;
            wait::expect(now.split(' ').nth(1) == Some(&format!("{nodes}.000")), || {
                format!("{now} of {nodes}")
            })
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_part_of_a_hash_is_found_as_logs_print_it() {
    let mut stage = start().await;
    let long = 8_446_744_073_709_551_000;
    stage.store(2, long..long + 30).await;
    stage.until_nodes(190).await;
    with_page(async |page| {
        open(page, &stage.server, "/?view=tree").await;
        // Each block is found by its name and by its tokens, which are one number here.
        search(page, "8446744073709551012…", "2 results").await;
        search(page, "844674…1012", "2 results").await;
        search(page, format!("{:x}", long + 12).get(..15).unwrap(), "results for part of a block hash").await;
        search(page, "4407370955", "60 results").await;
        let shown = async || page.text("found-summary").await.unwrap_or_default();
        assert!(shown().await.contains("1–20 shown"), "{}", shown().await);
        page.click("found-next").await;
        page.until("the next ones are shown", async |_| {
            let now = shown().await;
            wait::expect(now.contains("21–40 shown"), || now)
        })
        .await;
        page.press("PageDown").await;
        page.until("the last ones are shown", async |_| {
            let now = shown().await;
            wait::expect(now.contains("41–60 shown"), || now)
        })
        .await;
        page.screenshot("tree-found-part").await;
        page.press("PageUp").await;
        page.press("PageUp").await;
        page.until("the first ones are shown", async |_| {
            let now = shown().await;
            wait::expect(now.contains("1–20 shown"), || now)
        })
        .await;
        page.press("Enter").await;
        page.until("the block is selected", async |page| {
            let now = page.attribute("#tree", "data-focus-hash").await;
            wait::expect(now.as_deref() == Some(&long.to_string()), || format!("{now:?}"))
        })
        .await;
    })
    .await;
}
