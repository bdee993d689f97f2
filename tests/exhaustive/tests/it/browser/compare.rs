//! The compare panel: live beside the sample baselines, CSV in and out, windows saved in the browser.

use std::fs;
use std::path::{Path, PathBuf};

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::compare::{VIEW, open};
use radixscope_tests::panels::{paused_demo, says};
use radixscope_tests::paths;
use radixscope_tests::radixscope::Radixscope;

/// A demo under a load that stands still.
async fn paused() -> Radixscope {
    paused_demo(&["--warm-up", "300", "--concurrency", "120"]).await
}

/// What aiperf wrote of a sweep with this router.
fn sweep(router: &str) -> PathBuf {
    paths::fixture("aiperf/0.13.0-sweep").join(router)
}

/// The server with the two sweeps, under a load that they measured.
async fn with_baselines(kv: &Path, rr: &Path) -> Radixscope {
    let [kv, rr] =
        [("kv-aware", kv), ("round-robin", rr)].map(|(router, path)| format!("{router}={}", path.display()));
    let fixed = [
        "demo",
        "--warm-up",
        "300",
        "--speed",
        "0.000001",
        "--concurrency",
        "9",
        "--baseline",
        &kv,
        "--baseline",
        &rr,
    ];
    let server = Radixscope::start(fixed).await;
    server.until_source_is("live").await;
    server
}

#[tokio::test]
async fn files_are_taken_whole_or_refused_with_line_and_column() {
    let server = paused().await;
    let folder = tempfile::tempdir().unwrap();
    let (good, bad) = (folder.path().join("mine.csv"), folder.path().join("bad.csv"));
    fs::write(&good, "router,concurrency,ttft_p50_ms\nkv-aware,60,100\nkv-aware,180,400\n").unwrap();
    fs::write(&bad, "concurrency,ttft_p50_ms\n60,fast\n").unwrap();
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.choose_files("#cmp-file", &[&bad]).await;
        says(page, "cmp-status", "bad.csv was not imported: line 2, column ttft_p50_ms: \"fast\" is not")
            .await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 2);
        page.choose_files("#cmp-file", &[&good]).await;
        says(page, "cmp-status", "mine.csv: 1 baseline with 2 levels imported.").await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 3);
        page.reload().await;
        page.until_true("it is kept", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 3")
            .await;
        page.eval("(document.querySelector('[data-testid=cmp-delete]').click(), true)").await;
        page.until_true("it is gone", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 2")
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_file_is_taken_by_the_panel_and_not_as_a_recording() {
    let server = paused().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dropped.csv");
    fs::write(&path, "router,concurrency,ttft_p50_ms\nkv-aware,60,100\nkv-aware,180,400\n").unwrap();
    let target = "[data-testid=cmp-drop]";
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.drag_file("dragover", &path, target).await;
        page.until_true("the panel is the target", "!!document.querySelector('[data-testid=cmp-drop].over')")
            .await;
        assert_eq!(page.eval("document.body.classList.contains('recording-over')").await, false);
        page.drag_file("drop", &path, target).await;
        says(page, "cmp-status", "dropped.csv: 1 baseline with 2 levels imported.").await;
        assert_eq!(page.texts("[data-testid=cmp-baseline]").await.len(), 3);
        assert_eq!(page.eval("!!document.querySelector('[data-testid=cmp-drop].over')").await, false);
        assert_eq!(page.text("notice-file").await, None);
        assert_eq!(page.text("notice-file-words").await, None);
    })
    .await;
}

#[tokio::test]
async fn a_window_is_saved_plays_its_role_and_survives_a_reload() {
    let server = paused().await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.eval("(document.querySelector('[data-testid=cmp-save]').click(), true)").await;
        says(page, "cmp-status", "Saved as My sweep, concurrency").await;
        page.eval(
            "(e => { e.value = 'kv-aware:My sweep'; e.dispatchEvent(new Event('change', {bubbles: true})); return true; })\
             (document.querySelector('[data-testid=cmp-kv]'))",
        )
        .await;
        page.until_true("the address says so", "location.search.includes('cmp.kv=kv-aware%3AMy%20sweep')").await;
        page.reload().await;
        page.until_true("it is kept", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 3").await;
        assert_eq!(page.eval("document.querySelector('[data-testid=cmp-kv]').value").await, "kv-aware:My sweep");
    })
    .await;
}

#[tokio::test]
async fn results_of_a_load_generator_become_baselines_with_the_spread_of_their_runs() {
    let server = paused().await;
    let runs = |router: &str| -> Vec<PathBuf> {
        let of = |trial: u8, level: u8| {
            sweep(router)
                .join(format!("profile_runs/trial_000{trial}/concurrency_{level}/profile_export_aiperf.json"))
        };
        [1, 2].into_iter().flat_map(|trial| [4, 8, 16].map(|level| of(trial, level))).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("other.json");
    fs::write(&bad, "{\"schema_version\": \"2.0\", \"aiperf_version\": \"1.0\"}").unwrap();
    with_page(async |page| {
        open(page, &server, VIEW).await;
        page.choose_files("#cmp-file", &[&bad]).await;
        says(page, "cmp-status", "other.json was not imported: aiperf wrote it with version 2.0").await;
        for (router, wanted) in [("kv", "kv-aware"), ("round-robin", "round-robin")] {
            let files = runs(router);
            page.eval(&format!(
                "(() => {{ const routed = document.querySelector('[data-testid=cmp-routed]'), called = document.querySelector('[data-testid=cmp-called]');
                   routed.value = '{wanted}'; routed.dispatchEvent(new Event('change', {{bubbles: true}}));
                   called.value = 'lab'; called.dispatchEvent(new Event('input', {{bubbles: true}})); return true; }})()"
            ))
            .await;
            page.choose_files("#cmp-file", &files.iter().map(PathBuf::as_path).collect::<Vec<_>>()).await;
            says(page, "cmp-status", "profile_export_aiperf.json and 5 files: 1 baseline with 3 levels imported.").await;
            page.until_true(
                "it plays its role",
                &format!("location.search.includes('{wanted}%3Alab')"),
            )
            .await;
        }
        says(page, "cmp-standing", "TTFT p50: KV-aware is faster up to concurrency 10; the runs overlap from concurrency 10 on.").await;
        says(page, "cmp-standing", "Bars: min-max of the runs.").await;
        // The means cross at 14, within the spread of the runs.
        says(page, "cmp-crossovers", "TTFT: no crossover that the runs bear out.").await;
        let list = page.texts("[data-testid=cmp-baseline]").await;
        assert!(list.iter().any(|text| text.contains("kv-aware, levels 4 (2 runs, 327 samples), 8 (")), "{list:?}");
        page.reload().await;
        page.until_true("they are kept", "document.querySelectorAll('[data-testid=cmp-baseline]').length === 4").await;
        says(page, "cmp-standing", "KV-aware is faster up to concurrency 10").await;
    })
    .await;
}

#[tokio::test]
async fn a_running_experiment_shows_what_is_there_and_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let name = |file: &str| format!("profile_runs/trial_0001/concurrency_4/{file}");
    let copy = |file: &str| {
        let to = folder.path().join("lab").join(name(file));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(sweep("kv").join(name(file)), to).unwrap();
    };
    copy("run_config.json");
    let server = with_baselines(&folder.path().join("lab"), &sweep("round-robin")).await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        says(
            page,
            "cmp-experiment",
            "lab, kv-aware: 0 of 6 runs. Running: concurrency 4. Missing: 2 at 4, 2 at 8, 2 at 16.",
        )
        .await;
        // Only what is incomplete is listed.
        assert_eq!(page.texts("[data-testid=cmp-experiment]").await.len(), 1);
        copy("profile_export_aiperf.json");
        page.reload().await;
        says(page, "cmp-experiment", "lab, kv-aware: 1 of 6 runs. Missing: 1 at 4, 2 at 8, 2 at 16.").await;
    })
    .await;
}

#[tokio::test]
async fn baselines_of_the_server_play_their_roles_and_show_their_confidence() {
    let server = with_baselines(&sweep("kv"), &sweep("round-robin")).await;
    let csv = server.get("/api/v1/baselines.csv").await.text().to_owned();
    assert!(csv.contains("95% confidence") && csv.lines().count() == 7, "{csv}");
    with_page(async |page| {
        for (theme, figure) in [("dark", "ttft"), ("light", "ttft"), ("dark", "requests"), ("light", "hits")]
        {
            page.size(1280, 1000).await;
            page.open(&server.url(&format!("{VIEW}&theme={theme}&cmp.figure={figure}"))).await;
            page.until_true(
                "the chart is there",
                "document.querySelector('[data-testid=cmp-chart]')?.dataset.ready === 'true'",
            )
            .await;
            says(page, "cmp-standing", "Bars: 95% confidence of the runs.").await;
            // The mean of aiperf's own aggregate, with its interval.
            says(page, "cmp-ttft_p50_ms-kv", "(").await;
            page.screenshot(&format!("compare-results-{theme}-{figure}")).await;
        }
        assert_eq!(page.texts("[data-testid=cmp-experiment]").await.len(), 0);
        let kv = page.eval("document.querySelector('[data-testid=cmp-kv]').value").await;
        assert_eq!(kv, "kv-aware:0.13.0-sweep");
    })
    .await;
}
