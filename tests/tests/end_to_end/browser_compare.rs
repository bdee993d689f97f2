//! The compare panel: live beside the sample baselines, CSV in and out, windows saved in the browser.

use std::fs;

use radixscope_insight::baseline::{Figure, reference};
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

const VIEW: &str = "/?view=compare";

async fn paused() -> Radixscope {
    let fixed = ["demo", "--warm-up", "300", "--speed", "0.000001", "--concurrency", "120"];
    let server = Radixscope::start(fixed).await;
    server.until_source_is("live").await;
    server
}

async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true(
        "the chart is there",
        "document.querySelector('[data-testid=cmp-chart]')?.dataset.ready === 'true'",
    )
    .await;
    page.until_true(
        "the samples are read",
        "document.querySelectorAll('[data-testid=cmp-baseline]').length >= 2",
    )
    .await;
}

async fn says(page: &Page, id: &str, expected: &str) {
    page.until(expected, async |page| {
        let text = page.text(id).await.unwrap_or_default();
        wait::expect(text.contains(expected), || text.clone())
    })
    .await;
}

#[tokio::test]
async fn live_stands_beside_the_baselines_at_its_own_concurrency() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        says(page, "cmp-source", "simulated cluster, last 60 s, concurrency ").await;
        // By Little's law, from what the frontends' histogram has of the same window, which moves on with the clock between two readings.
        // The panel shows whole requests.
        let (shown, cells) = page
            .until("the concurrency is that of the API", async |page| {
                // In one go, so that all are of one moment.
                let texts = page
                    .eval(
                        "['cmp-source', 'cmp-ttft_p50_ms-kv', 'cmp-ttft_p50_ms-rr']
                            .map(id => document.querySelector(`[data-testid=${id}]`).innerText)",
                    )
                    .await;
                let [source, kv, rr] = [0, 1, 2].map(|n| texts[n].as_str().unwrap_or_default().to_owned());
                let (_, rest) = source.split_once("concurrency ").unwrap_or_default();
                let shown: f64 = rest.split(' ').next().unwrap_or_default().parse().unwrap_or(f64::NAN);
                let duration = &server.json("/api/v1/latency").await["duration"];
                let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{duration}"));
                let ended = &duration["histogram"]["window"];
                let covered_ms =
                    number(&duration["figure"]["until_ms"]) - number(&duration["figure"]["from_ms"]);
                let in_flight = number(&ended["count"]) * number(&ended["mean"]) * 1e3 / covered_ms;
                let is_equal = (shown - in_flight).abs() <= 0.5
                    && source.contains("mean in flight: sum of durations ÷ window");
                is_equal.then_some((shown, [kv, rr])).ok_or(format!("{source}, {in_flight}"))
            })
            .await;
        let samples = reference();
        for (text, baseline) in cells.iter().zip(&samples) {
            // The panel reads at the unrounded concurrency, within half a request of what it shows.
            let at = |c: f64| baseline.interpolate(c, Figure::TtftP50).unwrap().value;
            let value: f64 = text.parse().unwrap_or_else(|_| panic!("{text}"));
            let (low, high) = (at(shown - 0.5).min(at(shown + 0.5)), at(shown - 0.5).max(at(shown + 0.5)));
            assert!(value >= low.floor() && value <= high.ceil(), "{value}, not {low} to {high}");
        }
        let difference = page.text("cmp-ttft_p50_ms-kv-diff").await.unwrap();
        assert!(
            ["better", "worse", "equal", "baseline within range"]
                .iter()
                .any(|word| difference.contains(word)),
            "{difference}"
        );
        says(page, "cmp-crossovers", "KV-aware gets worse").await;
        assert!(page.texts("[data-testid=cmp-baseline]").await[0].contains("your hardware differs"));
        page.eval("(document.querySelector('[data-testid=cmp-figure-hits]').click(), true)").await;
        page.until_true("the address has the figure", "location.search.includes('cmp.figure=hits')").await;
        page.reload().await;
        page.until_true(
            "it is still chosen",
            "!!document.querySelector('[data-testid=cmp-figure-hits]:checked')",
        )
        .await;
        for (theme, width, height) in
            [("dark", 1280, 720), ("light", 1280, 720), ("dark", 1920, 1080), ("light", 1920, 1080)]
        {
            page.size(width, height).await;
            open(page, &server, &format!("{VIEW}&theme={theme}")).await;
            page.screenshot(&format!("compare-{theme}-{width}x{height}")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn files_are_taken_whole_or_refused_with_line_and_column() {
    let server = paused().await;
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("mine.csv"), folder.path().join("bad.csv"));
    fs::write(&good, "router,concurrency,ttft_p50_ms\nkv-aware,60,100\nkv-aware,180,400\n").unwrap();
    fs::write(&bad, "concurrency,ttft_p50_ms\n60,fast\n").unwrap();
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.choose_files("#cmp-file", &[&bad]).await;
        says(page, "cmp-status", "bad.csv was not imported: line 2, column ttft_p50_ms: \"fast\" is not")
            .await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 2);
        page.choose_files("#cmp-file", &[&good]).await;
        says(page, "cmp-status", "mine.csv: 1 baseline with 2 levels imported.").await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 3);
        page.reload().await;
        page.until_true("it is kept", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 3")
            .await;
        page.eval("(document.querySelector('[data-testid=cmp-delete]').click(), true)").await;
        page.until_true("it is gone", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 2")
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_file_is_taken_by_the_panel_and_not_as_a_recording() {
    let server = paused().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dropped.csv");
    fs::write(&path, "router,concurrency,ttft_p50_ms\nkv-aware,60,100\nkv-aware,180,400\n").unwrap();
    let target = "[data-testid=cmp-drop]";
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.drag_file("dragover", &path, target).await;
        page.until_true("the panel is the target", "!!document.querySelector('[data-testid=cmp-drop].over')")
            .await;
        assert_eq!(page.eval("document.body.classList.contains('recording-over')").await, false);
        page.drag_file("drop", &path, target).await;
        says(page, "cmp-status", "dropped.csv: 1 baseline with 2 levels imported.").await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 3);
        assert_eq!(page.eval("!!document.querySelector('[data-testid=cmp-drop].over')").await, false);
        assert_eq!(page.text("notice-file").await, None);
        assert_eq!(page.text("notice-file-words").await, None);
    })
    .await;
}

#[tokio::test]
async fn a_window_is_saved_plays_its_role_and_survives_a_reload() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.eval("(document.querySelector('[data-testid=cmp-save]').click(), true)").await;
        says(page, "cmp-status", "Saved as My sweep, concurrency").await;
        page.eval(
            "(e => { e.value = 'kv-aware:My sweep'; e.dispatchEvent(new Event('change', {bubbles: true})); return true; })\
             (document.querySelector('[data-testid=cmp-kv]'))",
        )
        .await;
        page.until_true("the address says so", "location.search.includes('cmp.kv=kv-aware%3AMy%20sweep')").await;
        page.reload().await;
        page.until_true("it is kept", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 3").await;
        assert_eq!(page.eval("document.querySelector('[data-testid=cmp-kv]').value").await, "kv-aware:My sweep");
    })
    .await;
}
