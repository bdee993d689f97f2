//! The ledger as a person uses it: its rows are the API's, filters count what a count over the API gives, Pause loses
//! nothing, the keyboard reaches everything, and what is saved is what is shown.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::figures::number;
use radixscope_tests::nats::Nats;
use radixscope_tests::panels::decisions::{kinds, open, rows};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::{Value, json};

#[tokio::test]
async fn a_row_of_the_overview_opens_the_ledger_at_its_decision() {
    let (server, decisions) = Radixscope::standing_demo().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.until_true("decisions are listed", "!!document.querySelector('[data-testid=decision-open]')")
            .await;
        page.click("decision-open").await;
        page.until("its details are open", async |page| {
            let open = page.attribute("[data-testid=ledger-details]", "data-decision").await;
            wait::expect(open.as_deref() == decisions[0]["id"].as_str(), || format!("{open:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn pause_keeps_what_is_shown_and_going_on_leaves_no_gap() {
    let server = Radixscope::start(["demo", "--warm-up", "60", "--speed", "4"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        open(page, &server, "").await;
        page.press("p").await;
        page.until("it is paused", async |page| {
            let state = page.text("ledger-state").await.unwrap();
            wait::expect(state.starts_with("Paused"), || state)
        })
        .await;
        // The list follows its state by a frame.
        let held = page
            .until("the list stands still", async |page| {
                let before = rows(page).await;
                page.eval("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(() => drawn(0))))")
                    .await;
                let now = rows(page).await;
                wait::expect(before == now, || format!("{before:?}, then {now:?}"))?;
                Ok(now)
            })
            .await;
        let newest: u64 = held[0].parse().unwrap();
        wait::until("the server goes on", async || {
            let now = server.json("/api/v1/decisions?limit=1").await;
            let id: u64 = now["decisions"][0]["id"].as_str().unwrap().parse().unwrap();
            wait::expect(id > newest + 20, || format!("{id} after {newest}"))
        })
        .await;
        page.until("the new ones are counted", async |page| {
            let state = page.text("ledger-state").await.unwrap();
            let newer: String = state.chars().filter(char::is_ascii_digit).collect();
            wait::expect(newer.parse::<u64>().is_ok_and(|newer| newer >= 20), || state)
        })
        .await;
        assert_eq!(rows(page).await, held, "nothing moved");
        page.press(" ").await;
        page.until("the new ones are there, without a gap", async |page| {
            let shown: Vec<u64> = rows(page).await.iter().map(|id| id.parse().unwrap()).collect();
            let is_new = shown[0] > newest + 20;
            let is_whole = shown.windows(2).all(|pair| pair[0] == pair[1] + 1);
            wait::expect(is_new && is_whole, || format!("{shown:?}"))
        })
        .await;
        assert_eq!(page.text("ledger-state").await.unwrap(), "Live");
        let below = "document.querySelector('[data-testid=ledger-grid]').scrollTop = 26 * 40";
        page.eval(&format!("({below}, 0)")).await;
        page.until_true(
            "it says how many are above",
            "!!document.querySelector('[data-testid=ledger-to-top]')",
        )
        .await;
        let first = rows(page).await[0].clone();
        let ahead = page.text("ledger-to-top").await;
        page.until("more came above", async |page| {
            let now = page.text("ledger-to-top").await;
            wait::expect(now != ahead, || format!("{now:?}"))
        })
        .await;
        let retained = rows(page).await;
        assert!(retained[..2].contains(&first), "scrolled down, the lines stay: {first} in {retained:?}");
        page.click("ledger-to-top").await;
        page.until_true("it is at the top again", "!document.querySelector('[data-testid=ledger-to-top]')")
            .await;
    })
    .await;
}

/// What a click on a button saves.
async fn saved(page: &Page, button: &str) -> String {
    let listen = "(() => { const make = URL.createObjectURL; window.saved = null;
        URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); URL.createObjectURL = make; return make(blob); };
        return 0; })()";
    page.eval(listen).await;
    page.click(button).await;
    let saved = page.until("it is saved", async |page| {
        page.eval("window.saved").await.as_str().map(str::to_owned).ok_or_else(|| "not yet".to_owned())
    });
    saved.await
}

#[tokio::test]
async fn what_is_saved_is_what_is_shown_and_equals_the_api() {
    let (server, decisions) = Radixscope::standing_demo().await;
    with_page(async |page| {
        open(page, &server, "").await;
        let whole: Value = serde_json::from_str(&saved(page, "export-json").await).unwrap();
        assert_eq!(whole["decisions"], json!(decisions));
        let api = server.json("/api/v1/decisions?limit=1").await;
        assert_eq!(whole["totals"], api["totals"]);
        let announced = page.eval("document.querySelector('[data-testid=ledger-status]').textContent").await;
        assert!(announced.as_str().unwrap().starts_with("decisions.json saved with"), "{announced}");
        page.click("kind-partial").await;
        let partial: Vec<&Value> = decisions.iter().filter(|d| kinds(d).contains(&"partial")).collect();
        page.until("the filter is on", async |page| {
            let on = page.attribute("[data-testid=kind-partial]", "aria-pressed").await;
            wait::expect(on.as_deref() == Some("true"), || format!("{on:?}"))
        })
        .await;
        let csv = saved(page, "export-csv").await;
        let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(lines.len(), partial.len() + 1);
        assert!(lines[0].starts_with("decision_id,seq,at_ms,"));
        for (line, decision) in lines[1..].iter().zip(partial) {
            let begin = format!("{},{},", decision["id"].as_str().unwrap(), number(decision, "seq"));
            assert!(line.starts_with(&begin), "{line}: {decision}");
            let worker = format!(",{},{},", decision["worker_id"].as_str().unwrap(), decision["dp_rank"]);
            assert!(line.contains(&worker) && line.contains(",partial,"), "{line}");
        }
    })
    .await;
}

#[tokio::test]
async fn where_only_the_chosen_worker_is_known_the_settings_that_would_report_more_are_named() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("0.9.1-worker-restart");
    replay::publish(&nats.client().await, &capture.messages).await;
    server.until_quiet(capture.publications() as u64).await;
    with_page(async |page| {
        open(page, &server, "").await;
        let id = rows(page).await[0].clone();
        open(page, &server, &format!("&decision={id}")).await;
        page.until("the settings are named", async |page| {
            let text = page.text("chosen-only").await.unwrap_or_default();
            let all = ["--logs", "[ROUTING_INPUT]", "--router-replica-sync", "DYN_REQUEST_TRACE=1"];
            wait::expect(all.iter().all(|name| text.contains(name)), || text)
        })
        .await;
        let cost_gap = page.attribute("[data-testid=ledger-row] .l-margin", "title").await.unwrap();
        assert_eq!(cost_gap, "Unknown: only the chosen worker's part is known");
        page.size(900, 700).await;
        page.screenshot("ledger-chosen-only").await;
    })
    .await;
}
