//! The stage and the tour as a person uses them: sliders by keys, a fault that comes and goes, the story by arrow keys.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::stage::{open, stage, until_stage};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{layout, wait};
use serde_json::{Value, json};

/// What a killed worker raises.
const FINDING: &str = "worker_gone";

#[tokio::test]
async fn a_killed_worker_is_found_and_mended() {
    let server = Radixscope::steered_demo(&[]).await;
    with_page(async |page| {
        page.size(1280, 720).await;
        open(page, &server, "/?view=findings").await;
        page.click("stage-break").await;
        page.click("stage-break-kill-worker").await;
        page.until_true(
            "the bar says what is broken",
            "!!document.querySelector('[data-testid=stage-broken]')",
        )
        .await;
        let until_workers = async |there: usize, gone: usize| {
            wait::until("workers that are there and that left", async || {
                let cluster = server.cluster().await;
                let workers = cluster["workers"].as_array().ok_or("no workers")?;
                let left = workers.iter().filter(|worker| !worker["gone"].is_null()).count();
                let now = (workers.len() - left, left);
                wait::expect(now == (there, gone), || format!("{now:?}"))
            })
            .await;
        };
        until_workers(2, 1).await;
        let phase = async |code: &str| {
            let findings = server.json("/api/v1/findings?state=all").await;
            let all = findings["findings"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|finding| finding["code"] == code).map(|finding| finding["phase"].clone())
        };
        wait::until("a finding names it", async || {
            let phase = phase(FINDING).await;
            wait::expect(phase.as_ref().is_some_and(|phase| phase != "cleared"), || format!("{phase:?}"))
        })
        .await;
        page.click("stage-mend").await;
        page.until_true("nothing is broken", "!!document.querySelector('[data-testid=stage-break]')").await;
        until_stage(&server, "no fault is at work", "/fault", Value::Null).await;
        until_workers(3, 1).await;
    })
    .await;
}

#[tokio::test]
async fn the_bar_fits_every_window_and_stands_in_frames_only_where_it_is_asked_for() {
    let server = Radixscope::steered_demo(&[]).await;
    with_page(async |page| {
        for (width, height) in [(1920, 1080), (1280, 720), (390, 844)] {
            page.size(width, height).await;
            open_folded(page, &server).await;
            let fits =
                "(() => { const bar = document.querySelector('[data-testid=stage]').getBoundingClientRect();
                return bar.left >= 0 && bar.right <= innerWidth + 0.5 && bar.bottom <= innerHeight + 0.5
                    && document.documentElement.scrollWidth <= innerWidth; })()";
            page.until_true(&format!("the bar fits {width}×{height}"), fits).await;
            let (.., bar_height) = page.rectangle("[data-testid=stage]").await;
            let least = if width < 900 { 80.0 } else { 110.0 };
            assert!(bar_height <= least, "{width}×{height}: {bar_height} high");
        }
        for (query, is_there) in [("kiosk", false), ("chrome=0&view=tree", false), ("kiosk&stage", true)] {
            page.open(&server.url(&format!("/?{query}"))).await;
            page.until_true("the page", "document.body.dataset.connection === 'live'").await;
            let shown = format!("!!document.querySelector('[data-testid=stage]') === {is_there}");
            page.until_true(&format!("{query}: {is_there}"), &shown).await;
        }
    })
    .await;
}

async fn open_folded(page: &Page, server: &Radixscope) {
    page.open(&server.url("/")).await;
    page.until_true("the bar", "!!document.querySelector('[data-testid=stage]')").await;
}

/// Nothing of the overview with the bar is cut, covered, without contrast or without a name, nor of a step of the tour.
#[tokio::test]
async fn the_bar_and_the_tour_can_be_read_by_everybody() {
    let server = Radixscope::steered_demo(&["--speed", "0.000001"]).await;
    let none = |faults: Vec<(String, String)>, what: &str| assert!(faults.is_empty(), "{what}: {faults:#?}");
    with_page(async |page| {
        layout::bring_axe(page).await;
        page.prefer(&[("prefers-reduced-motion", "reduce")]).await;
        for theme in layout::THEMES {
            for (query, part) in [("", "stage-slider"), ("&tour=2", "tour-next")] {
                page.size(1920, 1080).await;
                page.open(&server.url(&format!("/?theme={theme}{query}"))).await;
                page.until_true("it is there", &format!("!!document.querySelector('[data-testid={part}]')"))
                    .await;
                layout::until_stable(page).await;
                let what = format!("{theme}{query}");
                none(layout::axe_faults(page).await, &what);
                none(layout::contrast_faults(page).await, &what);
                // The card of the tour covers what is not spoken of.
                for (width, height) in
                    if query.is_empty() { &[(1920, 1080), (1280, 720), (390, 844)][..] } else { &[] }
                {
                    page.size(*width, *height).await;
                    layout::until_stable(page).await;
                    let mut faults = layout::layout_faults(page).await;
                    // On a telephone it stays in sight while the page scrolls below it.
                    faults.retain(|(fault, _)| *width > 900 || fault.starts_with("cut"));
                    none(faults, &format!("{what} {width}×{height}"));
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_tour_goes_by_arrow_keys_and_breaks_nothing_by_itself() {
    let server = Radixscope::steered_demo(&[]).await;
    with_page(async |page| {
        page.size(1280, 720).await;
        page.open(&server.url("/?tour")).await;
        let at = async |number: &str, view: &str| {
            page.until(&format!("{number}, {view}"), async |page| {
                let now = page.text("tour-number").await.unwrap_or_default();
                let shown = page.attribute(".page", "data-view").await.unwrap_or_default();
                wait::expect(now == number && shown == view, || format!("{now} {shown}"))
            })
            .await;
        };
        at("1 of 7", "overview").await;
        page.until_true("something is outlined", "!!document.querySelector('[data-testid=tour-outline]')")
            .await;
        for (number, view) in [
            ("2 of 7", "overview"),
            ("3 of 7", "tree"),
            ("4 of 7", "decisions"),
            ("5 of 7", "findings"),
            ("6 of 7", "findings"),
        ] {
            page.press("ArrowRight").await;
            at(number, view).await;
            let words = page.text("tour-text").await.unwrap_or_default().split_whitespace().count();
            assert!((1..=20).contains(&words), "{number}: {words} words");
        }
        assert_eq!(stage(&server).await["fault"], Value::Null, "nothing is broken by itself");
        page.click("tour-act").await;
        until_stage(&server, "the button breaks it", "/fault", json!("kill-worker")).await;
        page.press("ArrowRight").await;
        at("7 of 7", "overview").await;
        page.click("tour-act").await;
        until_stage(&server, "the button mends it", "/fault", Value::Null).await;
        page.press("ArrowLeft").await;
        at("6 of 7", "findings").await;
        page.press("Escape").await;
        page.until_true("it has ended", "!document.querySelector('[data-testid=tour]')").await;
        assert_eq!(page.address().await.query(), None);
    })
    .await;
}

#[tokio::test]
async fn without_a_stage_the_tour_has_no_such_steps_and_on_a_kiosk_it_goes_by_itself() {
    let server = Radixscope::start(["demo", "--warm-up", "30"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/?tour=9")).await;
        page.until("its last step", async |page| {
            let now = page.text("tour-number").await.unwrap_or_default();
            wait::expect(now == "5 of 5", || now.clone())
        })
        .await;
        assert_eq!(page.text("tour-act").await, None);
        page.open(&server.url("/?kiosk&tour=4,3s")).await;
        for number in ["5 of 5", "1 of 5", "2 of 5"] {
            page.until(number, async |page| {
                let now = page.text("tour-number").await.unwrap_or_default();
                wait::expect(now == number, || now.clone())
            })
            .await;
        }
        assert_eq!(page.text("tour-next").await, None, "nobody can press it");
    })
    .await;
}
