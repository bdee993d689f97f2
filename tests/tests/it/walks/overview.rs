//! The first row of the overview: its figures are those of the API, each leads to its panel, and what is not reported names the
//! option that would report it.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay::replayed;
use radixscope_tests::wait;
use serde_json::Value;

/// What a figure says, in one line.
async fn tile(page: &Page, id: &str) -> String {
    page.text(id).await.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A time as the page writes it: `612 ms`, `1.24 s`.
fn formatted(seconds: &Value) -> Option<String> {
    seconds.as_f64().map(|seconds| radixscope_model::number_format::duration(seconds * 1_000.0))
}

#[tokio::test]
async fn the_figures_are_the_apis_and_lead_to_the_panels_that_explain_them() {
    let (server, decisions) = Radixscope::standing_demo().await;
    with_page(async |page| {
        page.open(&server.url("/?ttft_slo=100000")).await;
        for (id, name, target, expected) in [
            ("summary-ttft", "ttft", "ttft_slo=100000", "✓ within target 100 s"),
            ("summary-itl", "itl", "tpot_slo=60", "target 60 ms"),
        ] {
            page.until("page and API say the same", async |page| {
                let response = server.json(&format!("/api/v1/latency?{target}")).await;
                let p95 = &response[name]["figure"]["p95"];
                let (low, high) = formatted(&p95["low"])
                    .zip(formatted(&p95["high"]))
                    .ok_or_else(|| response.to_string())?;
                let wanted = if low == high { low } else { format!("{low}–{high}") };
                let shown = tile(page, id).await;
                wait::expect(shown.contains(&wanted) && shown.contains(expected), || {
                    format!("{shown}: {wanted}, {expected}")
                })
            })
            .await;
        }
        let in_flight = page.texts("[data-testid=in-flight]").await;
        let sum: u64 = in_flight.iter().map(|n| n.parse::<u64>().expect("a number of requests")).sum();
        let most = in_flight.iter().map(|n| n.parse::<u64>().unwrap()).max().unwrap();
        let shown = tile(page, "summary-in-flight").await;
        assert!(
            sum > 0 && shown.contains(&format!(" {sum}")) && shown.contains(&format!("max {most}")),
            "{shown}: {in_flight:?}"
        );

        // Counted from the API.
        let at_ms = server.json("/api/v1/cluster").await["at_ms"].as_u64().unwrap();
        let recent = decisions.iter().filter(|d| d["at_ms"].as_u64().unwrap() + 55_000 > at_ms);
        let (mut prompts, mut chosen) = (0.0, 0.0);
        for decision in recent {
            prompts += decision["isl_blocks"].as_f64().unwrap();
            chosen += decision["overlap_blocks"].as_f64().unwrap();
        }
        let shown = tile(page, "summary-hit-rate").await;
        let rate = page.texts("[data-testid=summary-hit-rate] b").await.remove(0);
        let rate: f64 = rate.trim_end_matches(" %").parse().unwrap_or_else(|_| panic!("a share: {rate}"));
        // The window of the page is some seconds longer.
        assert!((rate - 100.0 * chosen / prompts).abs() < 4.0, "{shown}: {chosen} of {prompts}");
        assert!(shown.contains("round-robin –"), "no other figure of round-robin: {shown}");

        for (id, panel) in [("summary-itl", "latency"), ("summary-hit-rate", "decisions")] {
            page.open(&server.url("/")).await;
            page.until_true(
                "the figure is there",
                &format!("!!document.querySelector('[data-testid={id}] b')?.innerText"),
            )
            .await;
            page.click(id).await;
            page.until_true(
                "its panel is open",
                &format!("new URL(location).searchParams.get('view') === '{panel}'"),
            )
            .await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_not_reported_names_the_option_that_would_report_it() {
    let (_nats, server, cluster) = replayed("0.9.1-no-events", &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        for id in ["summary-ttft", "summary-itl", "summary-throughput"] {
            page.until("it is unknown and says why", async |page| {
                let shown = tile(page, id).await;
                wait::expect(shown.contains('–') && shown.contains("no data: set --prometheus"), || shown)
            })
            .await;
            let title = page.attribute(&format!("[data-testid={id}]"), "title").await.unwrap();
            assert!(title.contains("http://HOST"), "{title}");
        }
    })
    .await;
}
