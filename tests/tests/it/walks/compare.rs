//! The compare panel: live beside the sample baselines.

use radixscope_insight::baseline::{Figure, reference};
use radixscope_tests::browser::with_page;
use radixscope_tests::panels::compare::{VIEW, open};
use radixscope_tests::panels::says;
use radixscope_tests::radixscope::Radixscope;
use serde_json::Value;

#[tokio::test]
async fn live_stands_beside_the_baselines_at_its_own_concurrency() {
    let server = Radixscope::standing("aggregated").await;
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
