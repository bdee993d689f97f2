//! The memory panel: its figures are the API's, the calculator is typed with the keyboard and lives in the address.

use radixscope_insight::capacity::PRESETS;
use radixscope_model::number_format::count;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::memory::{VIEW, open, paused};
use radixscope_tests::panels::says;

/// Empties the field and types as a person does.
async fn type_into(page: &Page, id: &str, text: &str) {
    page.eval(&format!("(e => (e.focus(), e.select(), true))(document.getElementById('{id}'))")).await;
    page.press("Backspace").await;
    for key in text.chars() {
        page.press(&key.to_string()).await;
    }
}

#[tokio::test]
async fn the_calculator_is_typed_with_the_keyboard_and_bad_values_are_named_in_place() {
    let server = paused(&[]).await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        // It begins with what the deployment reports, not with the preset's own.
        let reported = radixscope_insight::capacity::reference_blocks_per_worker(32);
        says(page, "cap-blocks-each", &count(u64::from(reported))).await;
        says(page, "cap-verdicts", "25 of 64 sequences of 13,530 tokens (p95) fit at once").await;
        let verdicts = page.text("cap-verdicts").await.unwrap();
        assert!(!verdicts.contains("Does not fit"), "{verdicts}");
        type_into(page, "cap-seqs", "16").await;
        says(page, "cap-verdicts", "Fits.").await;
        type_into(page, "cap-p95", "400000").await;
        says(page, "cap-verdicts", "Does not fit. 0 of 16").await;
        type_into(page, "cap-p95", "13530").await;
        type_into(page, "cap-blocks", "").await;
        type_into(page, "cap-fraction", "much").await;
        says(page, "cap-fraction-fault", "Memory fraction: \"much\" is not a number").await;
        assert_eq!(page.attribute("#cap-fraction", "aria-invalid").await.as_deref(), Some("true"));
        assert_eq!(page.eval("document.activeElement.id").await, "cap-fraction", "typing keeps the focus");
        says(page, "cap-error", "is not a number").await;
        type_into(page, "cap-fraction", "0.80").await;
        // TensorRT-LLM takes its fraction of what the weights leave free.
        let weights = page.eval("document.getElementById('cap-weights').value").await;
        type_into(page, "cap-weights", "200").await;
        says(page, "cap-weights-fault", "none is left for KV").await;
        type_into(page, "cap-weights", weights.as_str().expect("text")).await;
        let inputs = radixscope_insight::capacity::Inputs {
            fraction: 0.8,
            max_num_seqs: Some(16),
            ..PRESETS[0].inputs
        };
        let blocks = count(inputs.capacity().unwrap().blocks_per_worker);
        says(page, "cap-blocks-each", &blocks).await;
        let address = page.address().await;
        assert!(
            address.query().unwrap().contains("cap.seqs=16&cap.fraction=0.80")
                || address.query().unwrap().contains("cap.fraction=0.80"),
            "{address}"
        );
        page.reload().await;
        says(page, "cap-blocks-each", &blocks).await;
        assert_eq!(page.eval("document.getElementById('cap-seqs').value").await, "16");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_red_before_any_input() {
    let server = paused(&[]).await;
    with_page(async |page| {
        let red = "[...document.querySelectorAll('.field-fault, .cf-error, .cap-no, .too-much, [aria-invalid=true], [role=alert]')]\
            .filter(e => e.checkVisibility() && (e.textContent || e.matches('input'))).map(e => e.outerHTML).join()";
        for view in ["memory", "counterfactual", "compare", "latency", "tree"] {
            page.open(&server.url(&format!("/?view={view}"))).await;
            page.until_true("the panel is there", "!!document.querySelector('main .panel')").await;
            page.until_true("the page is live", "document.body.dataset.connection === 'live'").await;
            assert_eq!(page.eval(red).await, "", "{view}");
        }
        page.open(&server.url("/?view=whatif")).await;
        page.until_true("the panel is there", "!!document.querySelector('[data-testid=cost-row]')").await;
        let modes = page.eval("[...document.querySelectorAll('[name=whatif-mode]')].map(e => e.value).join(' ')").await;
        let modes = modes.as_str().unwrap();
        assert!(modes.split(' ').count() >= 6, "{modes}");
        for mode in modes.split(' ') {
            page.eval(&format!("document.querySelector('[name=whatif-mode][value={mode}]').click()")).await;
            page.until_true("a response or a hint", "!!document.querySelector('[data-testid=whatif-fault], [data-testid=cost-row]')")
                .await;
            assert_eq!(page.eval(red).await, "", "{mode}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_calculator_starts_from_the_blocks_that_run_and_suggests_nothing_without_a_finding() {
    let server = paused(&["--blocks", "5000"]).await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        let value = |id: &str| format!("document.getElementById('{id}').value");
        page.until_true("the blocks that run", "document.getElementById('cap-blocks').value === '5000'").await;
        assert_eq!(page.eval(&value("cap-block")).await, "32");
        assert_eq!(page.eval(&value("cap-workers")).await, "3");
        says(page, "cap-blocks-all", "15,000").await;
        assert!(!page.address().await.as_str().contains("cap."), "an untouched form is not in the address");
        let memory = server.json("/api/v1/findings?state=all").await;
        let is_short = memory["findings"].as_array().unwrap().iter().any(|finding| {
            finding["state"] != "cleared" && ["memory_full", "churn"].iter().any(|code| finding["code"] == *code)
        });
        let suggested = page.texts(".cap-remedy.suggested").await;
        assert_eq!(!suggested.is_empty(), is_short, "{suggested:?}");
        // Another preset is computed from its own memory.
        page.eval("(e => (e.value = '1', e.dispatchEvent(new Event('change', {bubbles: true}))))(document.getElementById('cap-preset'))")
            .await;
        page.until_true("no given blocks", "document.getElementById('cap-blocks').value === ''").await;
        says(page, "cap-live", "Live workers have 5,000 blocks each").await;
    })
    .await;
}

#[tokio::test]
async fn what_the_deployment_reports_is_taken_and_the_rest_is_named() {
    let server = paused(&[]).await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        says(page, "cap-live", "as the deployment reports them").await;
        page.eval("(document.querySelector('[data-testid=cap-take]').click(), true)").await;
        says(page, "cap-taken", "block size 32").await;
        says(page, "cap-taken", "workers 3").await;
        says(page, "cap-taken", "kv blocks per worker 10,738").await;
        for (theme, width, height) in
            [("dark", 1280, 720), ("light", 1280, 720), ("dark", 1920, 1080), ("light", 1920, 1080)]
        {
            page.size(width, height).await;
            open(page, &server, &format!("{VIEW}&theme={theme}")).await;
            page.screenshot(&format!("memory-{theme}-{width}x{height}")).await;
        }
    })
    .await;
}
