//! The counterfactual panel: its figures are those of the API for the same decisions.

use radixscope_tests::browser::with_page;
use radixscope_tests::figures::number;
use radixscope_tests::panels::counterfactual::{VIEW, ask, fill, open, paused};
use radixscope_tests::wait;
use serde_json::{Value, json};

#[tokio::test]
async fn the_headline_and_the_table_are_the_apis_for_the_same_decisions() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        fill(page, "cf-last", "300").await;
        fill(page, "cf-weight", "0.5").await;
        fill(page, "cf-temperature", "0.2").await;
        page.click("cf-compute").await;
        let settings = json!({"overlap_score_weight": 0.5, "router_temperature": 0.2});
        let expected = ask(&server, json!({"mode": "frozen", "last": 300, "settings": settings})).await;
        page.until("the headline is the API's", async |page| {
            let headline = page.text("cf-headline").await.unwrap_or_default();
            wait::expect(expected["headline"] == headline, || headline)
        })
        .await;
        assert!(expected["headline"].as_str().unwrap().contains("of 300 decisions"));
        let share = |outcome: &Value| format!("{:.1} %", outcome["overlap_share"].as_f64().unwrap() * 100.0);
        assert_eq!(page.text("cf-overlap-actual").await.unwrap(), share(&expected["actual"]));
        assert_eq!(page.text("cf-overlap-frozen").await.unwrap(), share(&expected["tried"]));
        let p95 = number(&expected["tried"]["spread"], "p95").to_string();
        assert_eq!(page.text("cf-spread-p95-frozen").await.unwrap(), p95);
        let changed = page.texts("[data-testid=cf-flip]").await;
        assert_eq!(changed.len(), expected["flips"].as_array().unwrap().len());
        let first = page.attribute("[data-testid=cf-flip]", "data-decision").await.unwrap();
        assert_eq!(expected["flips"][0]["decision"], first);
        let limits = page.eval("document.querySelector('[data-testid=cf-limits]').textContent").await;
        assert!(limits.to_string().contains("no cache warms elsewhere"));
        let stamp = page.text("cf-stamp").await.unwrap();
        assert!(stamp.contains("on 300 decisions"), "{stamp}");
        assert_eq!(page.text("cf-compute").await.unwrap(), "Recompute");
    })
    .await;
}
