//! Going back in time by a person's means: the moment that is shown is the one that there was, by its digest; every panel is
//! of it; the present goes on beside it and is there at once.

use radixscope_model::frame::Frame;
use radixscope_model::id::Millis;
use radixscope_state::cluster::{Cluster, SnapshotReader};
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::figures::number;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

use crate::stage::Stage;

/// The worker that stores and evicts.
const WORKER: u64 = 1;

/// Blocks are stored; waits until the tree has `nodes`, and gives the server's time then.
async fn store(stage: &mut Stage, blocks: impl IntoIterator<Item = u64>, nodes: u64) -> u64 {
    stage.store(WORKER, blocks).await;
    time_of(stage, nodes).await
}

/// The same of blocks that are evicted.
async fn remove(stage: &mut Stage, blocks: impl IntoIterator<Item = u64>, nodes: u64) -> u64 {
    stage.remove(WORKER, blocks).await;
    time_of(stage, nodes).await
}

async fn time_of(stage: &Stage, nodes: u64) -> u64 {
    let at = number(&stage.until_nodes(nodes).await, "at_ms");
    // Published it is at the latest when a row of the timeline later says what its second brought.
    wait::until("the second is over", async || {
        let rows = stage.server.json(&format!("/history?after_ms={at}")).await;
        rows["rows"].get(1).map(|row| number(row, "at_ms")).ok_or_else(|| "not yet".to_owned())
    })
    .await
}

/// The state at a moment: what the server keeps, folded here. `None`: that moment is not kept.
async fn state_at(server: &Radixscope, at: u64) -> Cluster {
    let response = server.get(&format!("/history/segment?at_ms={at}")).await;
    assert_eq!(response.status, 200, "{:?}", response.body);
    let (mut rest, mut reader, mut cluster) =
        (&response.body[..], SnapshotReader::default(), Cluster::default());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (frame, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        match Frame::decode(frame).expect("a frame of ours") {
            Frame::Snapshot { bytes, .. } => {
                cluster = reader.part(bytes.0).expect("a sound keyframe").unwrap_or(cluster);
            }
            Frame::Batch(batch) if batch.at_ms <= Millis(at) => {
                for entry in batch.entries() {
                    let (seq, entry) = entry.expect("a record of ours");
                    cluster.fold(seq, &entry);
                }
            }
            _ => {}
        }
    }
    cluster
}

/// Waits until a moment stands, and checks that page and history agree on it; gives the moment.
async fn agrees_on_the_past(page: &Page, server: &Radixscope) -> u64 {
    let (at, shown) = page
        .until("a moment stands", async |page| {
            let shown = page.eval("({...document.body.dataset})").await;
            let at = page.address().await.fragment().and_then(|f| f.strip_prefix("t=")?.parse::<u64>().ok());
            let is_standing = shown["moment"] == "paused" && shown["seq"] == shown["digestSeq"];
            at.filter(|at| is_standing && shown["at"].as_str() == Some(&at.to_string()))
                .map(|at| (at, shown.clone()))
                .ok_or_else(|| shown.to_string())
        })
        .await;
    let past = state_at(server, at).await;
    assert_eq!(shown["seq"], past.seq().to_string(), "at {at}");
    assert_eq!(shown["digest"], past.digest().to_string(), "at {at}");
    at
}

async fn is_live(page: &Page, server: &Radixscope) {
    page.until_true("it is live", "document.body.dataset.moment === 'live'").await;
    page.agrees_with(server).await;
    assert_eq!(page.text("connection").await.as_deref(), Some("Live"));
    assert_eq!(page.address().await.fragment().filter(|fragment| !fragment.is_empty()), None);
}

async fn until_nodes(page: &Page, nodes: u64) {
    page.until("the tree has so many blocks", async |page| {
        let text = page.text("nodes").await.unwrap_or_default();
        wait::expect(text == nodes.to_string(), || format!("{text}, not {nodes}"))
    })
    .await;
}

/// Opens the page and waits until it knows what is kept.
async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true(
        "the timeline is there",
        "!!document.querySelector('[data-testid=timeline-says]')?.textContent",
    )
    .await;
}

/// Chooses from a list.
async fn choose(page: &Page, id: &str, value: &str) {
    let set =
        format!("s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change', {{bubbles: true}})); }}");
    page.eval(&format!("({set})(document.querySelector('[data-testid={id}]'))")).await;
}

/// Where a moment lies on the timeline, in the window.
async fn place(page: &Page, at: u64) -> (f64, f64) {
    let (x, y, width, height) = page.rectangle("[data-testid=timeline-field]").await;
    let bound = async |name| {
        let text = page.attribute("[data-testid=timeline-field]", name).await.expect("a bound");
        text.parse::<f64>().expect("a number")
    };
    let (from, until) = (bound("aria-valuemin").await, bound("aria-valuemax").await);
    (x + width * (at as f64 - from) / (until - from), y + height / 3.0)
}

#[tokio::test]
async fn keys_lead_back_and_to_live_and_nothing_is_lost_meanwhile() {
    let mut stage = Stage::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        page.agrees_with(&stage.server).await;
        until_nodes(page, 160).await;
        page.press(" ").await;
        let paused = agrees_on_the_past(page, &stage.server).await;
        let shown_text = page.text("connection").await.unwrap_or_default();
        assert!(shown_text.starts_with("Paused at ") && shown_text.contains(", "), "{shown_text}");
        remove(&mut stage, 1_050..1_100, 110).await;
        until_nodes(page, 160).await;
        page.until("back by keys to before the second prompt", async |page| {
            page.press("ArrowLeft").await;
            agrees_on_the_past(page, &stage.server).await;
            let text = page.text("nodes").await.unwrap_or_default();
            wait::expect(text == "100", || text)
        })
        .await;
        let earlier = agrees_on_the_past(page, &stage.server).await;
        assert!(earlier < paused && (paused - earlier) % 1_000 == 0, "{earlier}, {paused}");
        page.press("l").await;
        until_nodes(page, 110).await;
        is_live(page, &stage.server).await;
    })
    .await;
}

#[tokio::test]
async fn the_mouse_scrubs_and_a_second_tab_shows_the_same_moment() {
    let mut stage = Stage::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    let many = store(&mut stage, 2_000..2_060, 160).await;
    let less = remove(&mut stage, 1_050..1_100, 110).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        // Nothing moves under the pointer.
        let (x, y, width, height) = page.rectangle("[data-testid=timeline-field]").await;
        page.hover(x + width / 2.0, y + height / 2.0).await;
        let places = [place(page, less).await, place(page, many).await, place(page, few).await];
        page.drag(&places).await;
        until_nodes(page, 100).await;
        let at = agrees_on_the_past(page, &stage.server).await;
        assert!(at.abs_diff(few) < 500, "{at} is not under the pointer, {few}");
        let digest = page.attribute("body", "data-digest").await;
        // Whoever holds the pointer still sees its moment too.
        let (held, (x, y)) = (place(page, less).await, place(page, many).await);
        page.press_at(x, y).await;
        page.hover(held.0, held.1).await;
        let asked = "document.querySelector('[data-testid=timeline-field]').ariaValueNow";
        page.until_true("the moment itself is shown", &format!("document.body.dataset.at === {asked}")).await;
        until_nodes(page, 110).await;
        agrees_on_the_past(page, &stage.server).await;
        page.release().await;
        page.click_at(x, y).await;
        until_nodes(page, 160).await;
        agrees_on_the_past(page, &stage.server).await;
        // Another view, so that it is loaded anew.
        page.open(&stage.server.url(&format!("/?view=workers#t={at}"))).await;
        assert_eq!(agrees_on_the_past(page, &stage.server).await, at);
        assert_eq!(page.attribute("body", "data-digest").await, digest);
        assert_eq!(page.texts("[data-testid=worker] [data-testid=held]").await, ["100"]);
        page.click("timeline-live").await;
        is_live(page, &stage.server).await;
    })
    .await;
}

#[tokio::test]
async fn a_moment_requested_by_address_outlives_one_that_comes_to_stand_meanwhile() {
    let mut stage = Stage::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    let many = store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, &format!("/#t={many}")).await;
        until_nodes(page, 160).await;
        agrees_on_the_past(page, &stage.server).await;
        // The address is changed, and the browser says so later.
        page.eval(&format!(
            "(document.body.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowLeft', bubbles: true}})),
              history.replaceState(null, '', location.pathname + location.search + '#t={few}'))"
        ))
        .await;
        let stands = "document.querySelector('nav a').hash === `#t=${document.body.dataset.at}`
                      && document.body.dataset.at !== ";
        page.until_true("the other moment stands", &format!("{stands} '{many}'")).await;
        assert_eq!(page.address().await.fragment(), Some(format!("t={few}").as_str()));
        page.eval("dispatchEvent(new HashChangeEvent('hashchange'))").await;
        until_nodes(page, 100).await;
        assert_eq!(agrees_on_the_past(page, &stage.server).await, few);
    })
    .await;
}

#[tokio::test]
async fn it_plays_on_and_ends_live() {
    let mut stage = Stage::start().await;
    let few = store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    with_page(async |page| {
        open(page, &stage.server, &format!("/#t={few}")).await;
        until_nodes(page, 100).await;
        agrees_on_the_past(page, &stage.server).await;
        // Every state that it shows until the end.
        page.eval(
            "(() => { window.nodes = new Set(); window.moments = new Set();
              const look = () => {
                nodes.add(document.querySelector('[data-testid=nodes]').innerText);
                moments.add(document.body.dataset.moment);
                requestAnimationFrame(look);
              };
              look(); })()",
        )
        .await;
        choose(page, "timeline-speed", "16").await;
        page.click("timeline-play").await;
        is_live(page, &stage.server).await;
        let seen = page.eval("[[...nodes], [...moments]]").await;
        assert_eq!(seen, json!([["100", "160"], ["paused", "replay", "live"]]));
    })
    .await;
}

#[tokio::test]
async fn the_selected_workers_blocks_are_stepped_to() {
    let mut stage = Stage::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    store(&mut stage, 2_000..2_060, 160).await;
    remove(&mut stage, 1_050..1_100, 110).await;
    with_page(async |page| {
        open(page, &stage.server, "/").await;
        page.agrees_with(&stage.server).await;
        choose(page, "timeline-step", "2").await;
        page.click("timeline-back").await;
        page.until("it says what is missing", async |page| {
            let announced = page.text("timeline-fault").await.unwrap_or_default();
            wait::expect(announced.contains("Select a worker first"), || announced)
        })
        .await;
        page.press("1").await;
        for nodes in [110, 160, 100] {
            page.click("timeline-back").await;
            until_nodes(page, nodes).await;
            agrees_on_the_past(page, &stage.server).await;
        }
        page.click("timeline-forward").await;
        until_nodes(page, 160).await;
    })
    .await;
}

#[tokio::test]
async fn a_time_that_is_not_retained_is_refused_with_a_reason() {
    let mut stage = Stage::start().await;
    store(&mut stage, 1_000..1_100, 100).await;
    with_page(async |page| {
        let announced = async |page: &Page, wanted: &str| {
            page.until("it is shown", async |page| {
                let announced = page.text("timeline-fault").await.unwrap_or_default();
                wait::expect(announced.contains(wanted), || announced)
            })
            .await;
        };
        open(page, &stage.server, "/#t=1000").await;
        announced(page, "no longer retained: the first that is retained is shown").await;
        agrees_on_the_past(page, &stage.server).await;
        open(page, &stage.server, "/?view=tree#t=soon").await;
        announced(page, "t=soon in the address is invalid").await;
        assert_eq!(page.attribute("body", "data-moment").await.as_deref(), Some("live"));
    })
    .await;
}
