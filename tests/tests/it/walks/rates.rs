//! Charts over time: their range is set by the menu and kept in the address.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::rates::{ends, open, option, query, standing, until_query};
use radixscope_tests::wait;

#[tokio::test]
async fn the_menu_sets_the_range_of_every_chart_and_the_address_has_it() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=latency").await;
        let charts = ["ttft-trend", "tpot-trend", "spread-chart"];
        assert_eq!(query(page, "from").await, None, "the last 5 minutes are not written");
        page.eval("document.querySelector('[data-testid=time-range]').focus()").await;
        // As the keyboard does it: the entry after the present one.
        page.press("ArrowDown").await;
        until_query(page, "from", |from| from == Some("now-15m")).await;
        assert_eq!(query(page, "to").await.as_deref(), Some("now"));
        for chart in charts {
            page.until("the chart has the range", async |page| {
                let (from, until) = ends(page, chart).await;
                wait::expect(until - from == 900_000, || format!("{chart}: {from} to {until}"))
            })
            .await;
        }
        let (from, _) = ends(page, "ttft-trend").await;
        let data = option(page, "ttft-trend", "series[1].data").await;
        let data = data.as_array().expect("points");
        assert!(data.iter().all(|point| point[0].as_u64() >= Some(from)));
        let (known, all) = (data.iter().filter(|point| !point[1].is_null()).count(), data.len());
        // Of 400 s of 900, in steps of 15 s.
        assert!((20..=30).contains(&known) && all >= 58, "{known} of {all}");
        page.press("Home").await;
        until_query(page, "from", |from| from == Some("now-1m")).await;
    })
    .await;
}
