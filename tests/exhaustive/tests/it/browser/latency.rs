//! Latency and spread as a person reads them: figures are the API's, targets live in the address, what is not reported is
//! absent.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::latency::{open, standing, standing_of};
use radixscope_tests::wait;
use serde_json::Value;

/// A time as the page writes it: `612 ms`, `1.24 s`.
fn formatted(seconds: &Value) -> Option<String> {
    seconds.as_f64().map(|seconds| radixscope_model::number_format::duration(seconds * 1_000.0))
}

#[tokio::test]
async fn percentiles_are_the_apis_and_stand_against_their_targets_as_it_says() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "&theme=dark").await;
        let p95 = page
            .until("both say the same", async |page| {
                let figure = server.json("/api/v1/latency").await["ttft"]["figure"].clone();
                let (low, high) = (formatted(&figure["p95"]["low"]), formatted(&figure["p95"]["high"]));
                let (low, high) = low.zip(high).ok_or_else(|| figure.to_string())?;
                let wanted = if low == high { low } else { format!("{low}–{high}") };
                let shown = page.texts("[data-testid=ttft-p95] dd b").await.concat();
                wait::expect(shown == wanted, || format!("{shown}, not {wanted}"))
                    .map(|()| figure["p95"].clone())
            })
            .await;
        let [low, high] = ["low", "high"].map(|end| (p95[end].as_f64().unwrap() * 1_000.0).round() as u64);
        assert!(low < high, "a simulated 0.9 tells TTFT by histogram alone: {p95}");
        let targets = [
            (high, "within", "within target"),
            (low, "above", "above target"),
            ((low + high) / 2, "unknown", "above or within is unknown"),
        ];
        for (target, state, announced) in targets {
            open(page, &server, &format!("&ttft_slo={target}")).await;
            page.until("page and API agree", async |page| {
                let response = server.json(&format!("/api/v1/latency?ttft_slo={target}")).await;
                let standing = &response["ttft"]["figure"]["standing"];
                let class = page.attribute("[data-testid=ttft-p95] dd", "class").await.unwrap_or_default();
                let shown = page.texts("[data-testid=ttft-p95] .standing").await.concat();
                let agree =
                    *standing == state && class == format!("reading {state}") && shown.contains(announced);
                wait::expect(agree, || format!("{standing}, {class}, {shown}"))
            })
            .await;
            page.screenshot(&format!("latency-{state}")).await;
        }
        page.until_true(
            "the chart is drawn",
            "document.querySelector('[data-testid=ttft-trend]').dataset.ready === 'true'",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn where_requests_are_known_one_by_one_figures_are_exact_and_say_of_how_many() {
    let server = standing_of("aggregated").await;
    with_page(async |page| {
        open(page, &server, "").await;
        page.until("both say the same exact figure", async |page| {
            let figure = server.json("/api/v1/latency").await["ttft"]["figure"].clone();
            let (low, high) = (&figure["p95"]["low"], &figure["p95"]["high"]);
            let wanted = formatted(low).filter(|_| low == high).ok_or_else(|| figure.to_string())?;
            let shown = page.texts("[data-testid=ttft-p95] dd b").await.concat();
            wait::expect(shown == wanted, || format!("{shown}, not {wanted}"))
        })
        .await;
        page.open(&server.url("/")).await;
        page.until("the overview names its requests", async |page| {
            let tile = page.texts(".summary .tile").await.into_iter().next().unwrap_or_default();
            let is_exact = tile.contains("requests") && !tile.contains('–');
            wait::expect(is_exact, || tile)
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn every_worker_has_a_strip_and_the_gap_fits_them() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "").await;
        page.until("strips and gap agree", async |page| {
            let now: Vec<u32> =
                page.texts("[data-testid=spread-now]").await.iter().filter_map(|n| n.parse().ok()).collect();
            let gap = page.text("gap-now").await.and_then(|gap| gap.parse::<u32>().ok());
            let wanted = now.iter().max().zip(now.iter().min()).map(|(most, least)| most - least);
            wait::expect(now.len() == 3 && gap == wanted, || format!("{gap:?} of {now:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_no_source_reports_names_what_would_report_it() {
    let server = standing().await;
    with_page(async |page| {
        for (theme, width, height) in [("dark", 1280, 720), ("light", 1920, 1080)] {
            page.size(width, height).await;
            open(page, &server, &format!("&theme={theme}")).await;
            // The simulated cluster is a 0.9: its router counts no events where a frontend's metrics show them.
            page.eval("document.querySelector('[data-testid=counts-absent] summary').click()").await;
            let text = page.text("counts-absent").await.unwrap_or_default();
            let named = ["--prometheus frontend=", "KV events in the router", "Router overhead p50 / p95"];
            assert!(named.iter().all(|part| text.contains(part)), "{text}");
            page.screenshot(&format!("latency-{theme}-{width}x{height}")).await;
        }
    })
    .await;
}
