//! The overview's first row: its figures are the API's, each leads to the panel that explains it, a row of its decisions
//! opens as a whole, and nothing moves: neither while traffic goes on nor when the program takes the skeleton's place.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

/// Sums up what moved without the reader's doing, from the first picture on.
const WATCH_SHIFTS: &str = "window.shifts = [];
    new PerformanceObserver(list => {
        for (const shift of list.getEntries()) if (!shift.hadRecentInput) {
            const node = shift.sources[0]?.node, part = node?.nodeType === 3 ? node.parentElement : node;
            shifts.push([shift.value, part?.dataset.testid || part?.className || part?.tagName || '']);
        }
    }).observe({type: 'layout-shift', buffered: true});";

/// The most that may move, by the browser's own measure.
const MOST_SHIFT: f64 = 0.02;

#[tokio::test]
async fn a_whole_row_of_decisions_opens_and_is_one_stop_of_the_keyboard() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let is_open = async |page: &Page, at: usize| {
        page.until("its details are open", async |page| {
            let open = page.attribute("[data-testid=ledger-details]", "data-decision").await;
            wait::expect(open.as_deref() == decisions[at]["id"].as_str(), || format!("{open:?}"))
        })
        .await;
    };
    with_page(async |page| {
        let show = async || {
            page.open(&server.url("/")).await;
            page.until_true("decisions are listed", "document.querySelectorAll('[data-testid=decision]').length > 3").await;
        };
        show().await;
        let stops = "Math.max(...[...document.querySelectorAll('[data-testid=decision]')].map(row => row.querySelectorAll('button, a, [tabindex]').length))";
        assert_eq!(page.eval(stops).await, 1);
        // Where the row has neither text nor button.
        let (x, y, width, height) = page.rectangle("[data-testid=decision]:nth-child(3)").await;
        page.click_at(x + width - 3.0, y + height / 2.0).await;
        is_open(page, 2).await;

        show().await;
        page.eval("document.querySelector('[data-testid=decision]:nth-child(2) button').focus()").await;
        page.until_true("rows are held while one has the focus", "document.querySelector('.held-note.on')?.innerText.includes('focus')").await;
        page.press("Enter").await;
        is_open(page, 1).await;
    })
    .await;
}

#[tokio::test]
async fn nothing_moves_while_traffic_goes_on() {
    let server = Radixscope::start(["demo", "--warm-up", "60", "--speed", "4"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH_SHIFTS})).await;
        page.open(&server.url("/")).await;
        page.until_true("it is live", "document.body.dataset.connection === 'live'").await;
        page.until_true("decisions are listed", "!!document.querySelector('[data-testid=decision]')").await;
        let seq = async || {
            page.attribute("body", "data-seq").await.and_then(|seq| seq.parse::<u64>().ok()).unwrap_or(0)
        };
        let newest = async || page.attribute("[data-testid=decision]", "data-seq").await;
        let (first, decision) = (seq().await, newest().await);
        page.until("much has happened", async |_| {
            let now = seq().await;
            wait::expect(now > first + 8_000, || format!("{now} after {first}"))
        })
        .await;
        assert_ne!(newest().await, decision, "the list of decisions went on");
        assert_eq!(page.eval("PerformanceObserver.supportedEntryTypes.includes('layout-shift')").await, true);
        let shifts: Vec<(f64, String)> =
            serde_json::from_value(page.eval("shifts").await).expect("values and parts");
        let sum: f64 = shifts.iter().map(|(value, _)| value).sum();
        assert!(sum <= MOST_SHIFT, "{sum:.4} moved in {} steps: {shifts:?}", shifts.len());
    })
    .await;
}

/// Left, top and width of what `selector` finds first, in whole pixels.
async fn place(page: &Page, selector: &str) -> [i64; 3] {
    let (x, y, width, _) = page.rectangle(selector).await;
    [x, y, width].map(|n| n.round() as i64)
}

#[tokio::test]
async fn a_skeleton_stands_where_the_panels_will_be() {
    let server = Radixscope::standing("aggregated").await;
    let pairs = [
        (".skeleton .tile:nth-child(3)", "[data-testid=summary-hit-rate]"),
        (".skeleton .worst", "[data-testid=notice-findings]"),
        (".skeleton .skeleton-a", "[data-testid=tree-panel]"),
        (".skeleton .skeleton-c", "[data-testid=workers]"),
        (".skeleton .skeleton-rail", "#nav"),
    ];
    with_page(async |page| {
        // Before the program runs: it never comes.
        page.expect_complaints();
        page.devtools("Network.enable", json!({})).await;
        page.devtools("Network.setBlockedURLs", json!({"urls": ["*_bg.wasm"]})).await;
        page.open(&server.url("/?theme=dark")).await;
        let expected = page.eval("document.getElementById('skeleton').innerText.trim()").await;
        assert_eq!(expected, "Radixscope", "nothing that looks like data");
        assert_eq!(
            page.eval("getComputedStyle(document.body).backgroundColor").await,
            "rgb(17, 18, 23)",
            "in the theme asked for"
        );
        let mut places = Vec::new();
        for (skeleton, _) in pairs {
            places.push(place(page, skeleton).await);
        }
        page.screenshot("skeleton").await;
        page.until_true(
            "it is shown that the program did not come",
            "getComputedStyle(document.querySelector('.skeleton-failed[data-why=load]')).display === 'block'",
        )
        .await;
        page.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
        page.open(&server.url("/?theme=dark")).await;
        page.until_true(
            "the program has taken its place",
            "!document.getElementById('skeleton') && !!document.querySelector('[data-testid=worker]')",
        )
        .await;
        for ((skeleton, panel), was) in pairs.iter().zip(places) {
            assert_eq!(place(page, panel).await, was, "{panel} is where {skeleton} was");
        }
    })
    .await;
}

#[tokio::test]
async fn the_worst_finding_has_its_setting_to_copy() {
    let server = Radixscope::start(["demo", "--fault", "no-events"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.eval("(Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}}), true)").await;
        page.until_true("a setting is there to copy", "!!document.querySelector('[data-testid=copy-fix]')").await;
        page.click("copy-fix").await;
        page.until("it is one of the API's", async |page| {
            let copied = page.eval("window.copied ?? ''").await;
            let all = server.json("/api/v1/findings").await;
            let fixes = all["findings"].as_array().unwrap().iter().flat_map(|f| f["fix"].as_array().unwrap().clone());
            let settings: Vec<String> = fixes.filter_map(|fix| fix["setting"].as_str().map(str::to_owned)).collect();
            let copied = copied.as_str().unwrap_or_default().to_owned();
            wait::expect(!copied.is_empty() && settings.iter().any(|s| !s.is_empty() && copied.starts_with(s)), || format!("{copied}: {settings:?}"))
        })
        .await;
    })
    .await;
}
