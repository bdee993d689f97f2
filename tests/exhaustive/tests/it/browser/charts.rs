//! Charts over time by hand's means: the range of time by menu and by drag, marks of what happened, legends, the line at the
//! pointer that all charts share, and a link that shows the same to somebody else.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::rates::{ends, open, option, query, standing, until_query};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

/// Places in a chart: shares of the width of its area.
async fn places<const N: usize>(page: &Page, chart: &str, shares: [f64; N]) -> [(f64, f64); N] {
    let area = format!(".time-chart:has([data-testid={chart}]) .time-area");
    page.eval(&format!("document.querySelector('{area}').scrollIntoView({{block: 'center'}})")).await;
    let (x, y, width, height) = page.rectangle(&area).await;
    shares.map(|share| (x + share * width, y + height * 0.3))
}

#[tokio::test]
async fn a_drag_zooms_every_chart_and_escape_leads_back() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=latency&from=now-15m&to=now").await;
        let (from, until) = ends(page, "ttft-trend").await;
        page.drag(&places(page, "ttft-trend", [0.8, 0.7, 0.6]).await).await;
        let zoomed = until_query(page, "from", |from| from != Some("now-15m")).await;
        let zoomed: u64 = zoomed.expect("a begin").parse().expect("Unix milliseconds");
        let end: u64 = query(page, "to").await.expect("an end").parse().expect("Unix milliseconds");
        let at = |share: f64| from + ((until - from) as f64 * share) as u64;
        assert!(zoomed.abs_diff(at(0.6)) < 5_000 && end.abs_diff(at(0.8)) < 5_000, "{zoomed} to {end}");
        for chart in ["tpot-trend", "spread-chart"] {
            page.until("the other charts follow", async |page| {
                let (from, until) = ends(page, chart).await;
                wait::expect(from.abs_diff(zoomed) <= 5_000 && until.abs_diff(end) <= 5_000, || {
                    format!("{chart}: {from} to {until}")
                })
            })
            .await;
        }
        // Somebody else sees the same.
        let link = page.address().await;
        page.open(link.as_str()).await;
        page.until_true("the range is named", "!!document.querySelector('[data-testid=time-range-other]')")
            .await;
        assert_eq!(query(page, "from").await, Some(zoomed.to_string()));
        // A reader who came by the link did not zoom: the default is what is left.
        page.press("Escape").await;
        until_query(page, "from", |from| from.is_none()).await;
        open(page, &server, "/?view=rates&from=now-15m&to=now").await;
        page.drag(&places(page, "rates-chart", [0.5, 0.6, 0.7]).await).await;
        until_query(page, "to", |to| to != Some("now")).await;
        page.click("time-range-back").await;
        until_query(page, "from", |from| from == Some("now-15m")).await;
    })
    .await;
}

#[tokio::test]
async fn a_click_is_no_drag() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=rates").await;
        let [(x, y)] = places(page, "rates-chart", [0.5]).await;
        page.click_at(x, y).await;
        page.drag(&places(page, "rates-chart", [0.5, 0.6, 0.7]).await).await;
        let from = until_query(page, "from", |from| from.is_some()).await;
        // Had the click set a range, the drag would have been within it.
        let (zoomed, end): (u64, u64) =
            (from.unwrap().parse().unwrap(), query(page, "to").await.unwrap().parse().unwrap());
        assert!((end - zoomed).abs_diff(60_000) < 5_000, "{zoomed} to {end}");
    })
    .await;
}

#[tokio::test]
async fn the_pointer_over_one_chart_shows_the_values_of_that_time_in_all() {
    let server = standing(&[]).await;
    with_page(async |page| {
        page.size(1280, 1400).await;
        open(page, &server, "/?view=latency").await;
        let [(x, y)] = places(page, "ttft-trend", [0.5]).await;
        let (from, until) = ends(page, "ttft-trend").await;
        page.hover(x, y).await;
        let middle = (from + until) / 2;
        for chart in ["ttft-trend", "tpot-trend", "spread-chart"] {
            page.until("the time is shown", async |page| {
                // The tooltip is the only child beside the canvas; its first line is a time.
                let look = format!(
                    "(tip => tip && getComputedStyle(tip).visibility !== 'hidden' && tip.innerText.match(/\\d{{4}}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d/)?.[0])
                    ([...document.querySelectorAll('[data-testid={chart}] > div')].find(box => !box.querySelector('canvas')))"
                );
                let shown = page.eval(&look).await;
                let at = page.eval(&format!("new Date({shown}).getTime()")).await.as_u64().unwrap_or(0);
                wait::expect(at.abs_diff(middle) <= 6_000, || format!("{chart}: {shown}, not about {middle}"))
            })
            .await;
        }
        page.hover(2.0, 2.0).await;
        for chart in ["ttft-trend", "tpot-trend", "spread-chart"] {
            page.until_true(
                "it is gone with the pointer",
                &format!(
                    "(tip => !tip || ['hidden'].includes(getComputedStyle(tip).visibility) || getComputedStyle(tip).opacity === '0')
                    ([...document.querySelectorAll('[data-testid={chart}] > div')].find(box => !box.querySelector('canvas')))"
                ),
            )
            .await;
        }
    })
    .await;
}

/// Which of the legend's buttons are pressed.
async fn pressed(page: &Page) -> Vec<bool> {
    let all = page
        .eval("[...document.querySelectorAll('[data-testid=rates] [data-testid=legend-item]')].map(item => item.ariaPressed === 'true')")
        .await;
    serde_json::from_value(all).expect("a list")
}

async fn until_pressed(page: &Page, wanted: [bool; 3]) {
    page.until("the legend says so", async |page| {
        let now = pressed(page).await;
        wait::expect(now == wanted, || format!("{now:?}, not {wanted:?}"))
    })
    .await;
    let bands = wanted.iter().filter(|shown| **shown).count() as u64 * 2;
    page.until("the chart has these bands", async |page| {
        let now = option(page, "rates-chart", "series.length").await;
        wait::expect(now == json!(bands), || format!("{now}, not {bands}"))
    })
    .await;
}

#[tokio::test]
async fn a_legend_hides_a_series_and_shows_one_alone_and_a_link_does_the_same() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=rates").await;
        until_pressed(page, [true; 3]).await;
        let item = |at: usize| format!(".chart-legend-item:nth-child({at})");
        let (x, y) = page.centre(&item(2)).await;
        page.click_at(x, y).await;
        until_pressed(page, [true, false, true]).await;
        page.reload().await;
        until_pressed(page, [true, false, true]).await;
        page.click_at(x, y).await;
        until_pressed(page, [true; 3]).await;
        assert_eq!(query(page, "rates.hide").await, None);
        page.double_click_at(x, y).await;
        until_pressed(page, [false, true, false]).await;
        page.double_click_at(x, y).await;
        until_pressed(page, [true; 3]).await;
        // By keyboard.
        page.eval(&format!("document.querySelector('{}').focus()", item(3))).await;
        page.press("Enter").await;
        until_pressed(page, [true, true, false]).await;
        page.press("Enter").await;
        until_pressed(page, [true; 3]).await;
        let shift = json!({"type": "keyDown", "key": "Enter", "code": "Enter", "text": "\r", "windowsVirtualKeyCode": 13, "modifiers": 8});
        page.devtools("Input.dispatchKeyEvent", shift).await;
        let up = json!({"type": "keyUp", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 8});
        page.devtools("Input.dispatchKeyEvent", up).await;
        until_pressed(page, [false, false, true]).await;
    })
    .await;
}

#[tokio::test]
async fn what_happened_is_marked_on_the_axis_and_a_click_leads_there() {
    let server = Radixscope::start(["demo", "--warm-up", "200", "--fault", "kill-worker"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        open(page, &server, "/?view=rates&theme=light").await;
        let finding = page
            .until("marks", async |page| {
                let labels = page
                    .eval("[...document.querySelectorAll('[data-testid=time-mark]')].map(mark => mark.ariaLabel)")
                    .await;
                let labels: Vec<String> = serde_json::from_value(labels).map_err(|e| e.to_string())?;
                let at = |what: &str| labels.iter().position(|label| label.contains(what));
                let found = at(" left, ").and(at("warning: "));
                found.ok_or_else(|| format!("{labels:?}"))
            })
            .await;
        page.screenshot("rates-marks-light").await;
        // Where marks lie over each other the topmost takes the click: this one is meant.
        page.eval(&format!("document.querySelectorAll('[data-testid=time-mark]')[{finding}].focus()")).await;
        page.press("Enter").await;
        page.until("its card has the focus", async |page| {
            let now = page.eval("[location.search, document.activeElement.id]").await;
            let is_panel = now[0].as_str().is_some_and(|query| query.contains("view=findings"));
            let is_card = now[1].as_str().is_some_and(|id| id.starts_with("finding-"));
            wait::expect(is_panel && is_card, || now.to_string())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_copied_link_restores_the_view_and_without_a_clipboard_it_stands_selected() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=latency&from=now-15m&to=now&ttft_slo=450&ttft.hide=target").await;
        // The reader's browser forbids it.
        page.eval("(navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')), true)").await;
        page.click("copy-link").await;
        page.until_true(
            "the address stands there, selected",
            "(field => !!field && document.activeElement === field && field.value === location.href
                && field.selectionEnd - field.selectionStart === field.value.length)
                (document.querySelector('[data-testid=copy-link-text]'))",
        )
        .await;
        page.eval("(navigator.clipboard.writeText = async text => { window.copied = text; }, true)").await;
        page.click("copy-link").await;
        page.until_true("it says so", "document.querySelector('[data-testid=copy-link-status]').innerText === 'Link copied'").await;
        let link = page.eval("window.copied").await;
        page.open(link.as_str().expect("a link")).await;
        page.until_true(
            "the same is shown",
            "document.querySelector('[data-testid=time-range]')?.value === '900'
                && document.querySelector('[data-testid=ttft-target]')?.value === '450'
                && document.querySelectorAll('[data-testid=ttft] [data-testid=legend-item]')[1]?.ariaPressed === 'false'",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_time_that_is_not_understood_is_named() {
    let server = standing(&[]).await;
    with_page(async |page| {
        open(page, &server, "/?view=rates&from=yesterday").await;
        page.until_true("it is named", "document.body.innerText.includes('from=yesterday')").await;
        let (from, until) = ends(page, "rates-chart").await;
        assert_eq!(until - from, 300_000);
    })
    .await;
}

/// With many bands a point stands for several seconds, which the panel says; with one it does not.
#[tokio::test]
async fn points_that_are_means_are_named_and_are_what_is_drawn() {
    let server = standing(&["--workers", "7"]).await;
    with_page(async |page| {
        open(page, &server, "/?view=rates").await;
        let until_points = async |words: &str, step_ms: u64| {
            page.until(&format!("points of {step_ms} ms"), async |page| {
                let named = page.text("rates-points").await;
                let data = option(page, "rates-chart", "series[0].data").await;
                let at = |point: usize| data[point][0].as_u64();
                let step = at(3).zip(at(2)).map(|(later, earlier)| later - earlier);
                let is_so = named.as_deref() == Some(words) && step == Some(step_ms);
                wait::expect(is_so, || format!("{named:?}, {step:?}"))
            })
            .await;
        };
        until_points("means of 2 s", 2_000).await;
        let worker = server.cluster().await["workers"][0]["worker_id"].clone();
        let worker = worker.as_str().expect("an id").to_owned();
        open(page, &server, &format!("/?view=rates&worker={worker}")).await;
        until_points("", 1_000).await;
    })
    .await;
}
