//! The counterfactual panel: its figures are the API's for the same decisions, it can be cancelled, its map is walked
//! with the keyboard.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::counterfactual::{VIEW, ask, fill, idle, open, paused};
use radixscope_tests::wait;
use serde_json::json;

#[tokio::test]
async fn the_model_is_shown_against_itself_with_its_assumptions() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        fill(page, "cf-last", "200").await;
        page.click("cf-round-robin").await;
        page.click("cf-way-model").await;
        page.click("cf-compute").await;
        page.until("the model's assumptions are shown", async |page| {
            page.text("cf-assumptions").await.ok_or_else(|| "not yet".to_owned())
        })
        .await;
        idle(page).await;
        let body = json!({"mode": "resimulated", "last": 200, "settings": {"router_mode": "round-robin"}});
        let expected = ask(&server, body).await;
        let fits = page.attribute("[data-testid=cf-calibration]", "data-fits").await;
        assert_eq!(fits.as_deref(), Some(expected["fits"].to_string().as_str()));
        for (column, figures) in
            [("model-recorded", &expected["recorded"]), ("model-tried", &expected["tried"])]
        {
            let shown = page.text(&format!("cf-hits-{column}")).await.unwrap();
            let figure = format!("{:.1} %", figures["hit_rate"].as_f64().unwrap() * 100.0);
            match (fits.as_deref(), column) {
                (Some("true"), _) => assert_eq!(shown, figure, "{column}"),
                // Of a model that does not fit, nothing absolute.
                (_, "model-recorded") => assert_eq!(shown, "–"),
                _ => assert!(shown.contains(" of 20 parts"), "{shown}"),
            }
        }
        assert_eq!(page.text("cf-overlap-model-tried").await.unwrap(), "–", "unknown, not 0");
        let assumptions = page.text("cf-assumptions").await.unwrap();
        for expected in expected["assumptions"].as_array().unwrap() {
            assert!(assumptions.contains(expected.as_str().unwrap()), "{expected}");
        }
        page.screenshot("counterfactual-model").await;
        // One figure of round-robin everywhere: the simulated one, or none.
        let (replayed, simulated) =
            (page.text("cf-overlap-frozen").await, page.text("cf-hits-model-tried").await.unwrap());
        assert_eq!(replayed.as_deref(), Some("–"), "its caches would have filled otherwise");
        page.click("nav-overview").await;
        let wanted = match fits.as_deref() {
            Some("true") => format!("round-robin ≈ {simulated}"),
            _ => "round-robin –".to_owned(),
        };
        page.until("the overview has the same", async |page| {
            let shown = page.text("summary-hit-rate").await.unwrap_or_default();
            wait::expect(shown.contains(&wanted), || format!("{shown}: {wanted}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_run_can_be_cancelled_and_the_page_answers_meanwhile() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        fill(page, "cf-last", "10000").await;
        page.click("cf-way-model").await;
        // Frames go on while the worker computes.
        page.eval(
            "(window.frames = 0, (function tick() { \
             window.frames += document.querySelector('[data-testid=cf-cancel]') ? 1 : 0; \
             requestAnimationFrame(tick); })(), true)",
        )
        .await;
        let before = page.text("cf-headline").await;
        // Pressed in one go: on a fast machine the run would be over before another command arrives.
        page.eval(
            "(document.querySelector('[data-testid=cf-compute]').click(), new Promise(done => { \
             const look = () => { const cancel = document.querySelector('[data-testid=cf-cancel]'); \
             cancel ? (cancel.click(), done(true)) : setTimeout(look, 0); }; look(); }))",
        )
        .await;
        idle(page).await;
        assert_eq!(page.text("cf-assumptions").await, None, "what was cancelled gives no result");
        assert_eq!(page.text("cf-headline").await, before, "results stay");
        page.eval("(window.before = window.frames, true)").await;
        page.click("cf-sweep").await;
        page.until_true("it can be computed again", "!!document.querySelector('[data-testid=cf-grid]')")
            .await;
        idle(page).await;
        let frames = page.eval("window.frames - window.before").await.as_u64().unwrap();
        // None, if the page itself computed.
        assert!(frames > 0, "no frame while all settings were tried");
    })
    .await;
}

#[tokio::test]
async fn the_map_marks_the_present_setting_and_is_walked_with_the_keyboard() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        assert_eq!(page.attribute("[data-testid=cf-all]", "open").await, None, "the answer first");
        page.click("cf-all-name").await;
        let marks = page
            .eval("[...document.querySelectorAll('.cf-cell')].map(c => c.dataset.mark).filter(Boolean)")
            .await;
        assert!(marks.to_string().contains("present"), "{marks}");
        let advice = page.text("cf-recommendation").await.unwrap();
        let is_marked = marks.to_string().contains("recommended");
        assert_eq!(is_marked, advice.starts_with("★ Recommended"), "{advice}: {marks}");
        let set = page.text("cf-recommended-setting").await;
        assert_eq!(set.is_some(), is_marked, "{set:?}");
        assert!(set.is_none_or(|set| set.starts_with("--")), "flags, with their values");
        let effects = page.text("cf-effects").await;
        assert_eq!(effects.is_some(), is_marked, "{effects:?}");
        let figures = ["KV hit rate", "In-flight imbalance p95", "Decisions that change worker"];
        assert!(effects.is_none_or(|effects| figures.iter().all(|figure| effects.contains(figure))));
        page.eval("(document.querySelector('.cf-cell[tabindex=\"0\"]').focus(), true)").await;
        let expected = async || page.text("cf-status").await.unwrap();
        page.press("PageUp").await;
        page.press("Home").await;
        page.until("the corner is announced", async |_| {
            let now = expected().await;
            wait::expect(now.starts_with("overlap_score_weight 0, router_temperature 0:"), || now)
        })
        .await;
        page.press("ArrowRight").await;
        page.press("ArrowDown").await;
        page.until("the next cell is announced", async |_| {
            let now = expected().await;
            wait::expect(now.starts_with("overlap_score_weight 0.1, router_temperature 0.02:"), || now)
        })
        .await;
        assert_eq!(page.eval("document.querySelectorAll('.cf-cell[tabindex=\"0\"]').length").await, 1);
        assert_eq!(page.attribute(".cf-cell:focus", "aria-selected").await.as_deref(), Some("true"));
        page.press("Enter").await;
        page.until_true(
            "Enter takes the setting",
            "document.querySelector('[data-testid=cf-weight]').value === '0.1'",
        )
        .await;
        for (theme, width, height) in
            [("dark", 1280, 720), ("light", 1280, 720), ("dark", 1920, 1080), ("light", 1920, 1080)]
        {
            page.size(width, height).await;
            open(page, &server, &format!("{VIEW}&theme={theme}")).await;
            page.screenshot(&format!("counterfactual-{theme}-{width}x{height}")).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_changed_choice_leads_to_its_decision_and_the_results_are_there_on_return() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        let headline = page.text("cf-headline").await;
        let decision = page.attribute("[data-testid=cf-flip]", "data-decision").await.unwrap();
        page.eval("(document.querySelector('[data-testid=cf-flip] a').click(), true)").await;
        page.until_true(
            "the ledger is open at the decision",
            &format!("new URL(location).search.includes('view=decisions') && new URL(location).searchParams.get('decision') === '{decision}'"),
        )
        .await;
        page.eval("(history.back(), true)").await;
        page.until("the results are there", async |page| {
            let now = page.text("cf-headline").await;
            wait::expect(now == headline, || format!("{now:?}"))
        })
        .await;
    })
    .await;
}
