//! Charts over time: opened, and read through the options of ECharts and the address.

use crate::browser::Page;
use crate::panels::paused_demo;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;

/// A demo in which hardly any time passes any more.
pub async fn standing(more: &[&str]) -> Radixscope {
    paused_demo(&[&["--warm-up", "400"], more].concat()).await
}

/// Opens an address, and waits until every chart is drawn.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until_true(
        "all charts are drawn",
        "(all => all.length > 0 && all.every(chart => chart.querySelector('canvas')))
            ([...document.querySelectorAll('.time-chart .chart')])",
    )
    .await;
}

/// Values of the address by key.
pub async fn query(page: &Page, key: &str) -> Option<String> {
    page.address().await.query_pairs().find(|(name, _)| name == key).map(|(_, value)| value.into_owned())
}

/// Waits until the address has a value that is wanted for a key.
pub async fn until_query(page: &Page, key: &str, is_wanted: impl Fn(Option<&str>) -> bool) -> Option<String> {
    page.until(key, async |page| {
        let now = query(page, key).await;
        let wanted = is_wanted(now.as_deref());
        wait::expect(wanted, || format!("{key}: {now:?}")).map(|()| now)
    })
    .await
}

/// What the chart's option in ECharts is; null as long as it is not drawn.
pub async fn option(page: &Page, chart: &str, path: &str) -> Value {
    page.eval(&format!(
        "(chart => chart?.querySelector('canvas') ? echarts.getInstanceByDom(chart).getOption().{path} : null)
            (document.querySelector('[data-testid={chart}]'))"
    ))
    .await
}

/// Begin and end of a chart's time axis, Unix milliseconds.
pub async fn ends(page: &Page, chart: &str) -> (u64, u64) {
    let axis = option(page, chart, "xAxis[0]").await;
    (axis["min"].as_u64().expect("a begin"), axis["max"].as_u64().expect("an end"))
}
