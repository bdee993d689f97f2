//! The ledger as a person uses it: its rows are the API's, filters count what a count over the API gives, Pause loses
//! nothing, the keyboard reaches everything, and what is saved is what is shown.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::figures::number;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::{Value, json};

/// Opens the ledger and waits for its lines.
async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=decisions{more}"))).await;
    page.until("there are lines", async |page| {
        let rows = rows(page).await;
        wait::expect(!rows.is_empty(), || format!("{rows:?}"))
    })
    .await;
}

/// Decisions of the lines in the document.
async fn rows(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=ledger-row][data-decision]')].map(r => r.dataset.decision)";
    serde_json::from_value(page.eval(all).await).unwrap()
}

fn ids(decisions: &[Value]) -> Vec<String> {
    decisions.iter().map(|d| d["id"].as_str().unwrap().to_owned()).collect()
}

/// The kinds of a decision, worked out from the API's numbers alone.
fn kinds(decision: &Value) -> Vec<&'static str> {
    let number = |field: &str| decision[field].as_f64();
    let full = number("isl_tokens")
        .zip(number("block_size_tokens"))
        .map(|(tokens, size)| (tokens / size).floor())
        .or(number("isl_blocks"));
    let mut kinds = vec![match (number("overlap_blocks"), full) {
        (Some(0.0), _) => "miss",
        (Some(held), Some(full)) if held >= 0.9 * full => "hit",
        (Some(_), Some(_)) => "partial",
        _ => "unknown",
    }];
    let candidates: Vec<&Value> = decision["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| !c["prefill_blocks"].is_null())
        .collect();
    let costs: Vec<f64> = candidates.iter().map(|c| c["cost"].as_f64().unwrap()).collect();
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    if decision["tied"] == true || costs.iter().filter(|&&cost| cost == least).count() > 1 {
        kinds.push("tie");
    }
    let held = |c: &&Value| c["overlap_blocks"].as_u64().unwrap();
    let chosen = candidates.iter().find(|c| c["selected"] == true).map(held);
    if chosen.is_some_and(|chosen| candidates.iter().map(held).max() > Some(chosen)) {
        kinds.push("lost-affinity");
    }
    kinds
}

async fn count(page: &Page, kind: &str) -> usize {
    let text = page.text(&format!("kind-{kind}")).await.unwrap();
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[tokio::test]
async fn its_rows_and_its_filters_say_what_the_api_says() {
    let (server, decisions) = Radixscope::standing_demo().await;
    with_page(async |page| {
        open(page, &server, "").await;
        let shown = rows(page).await;
        assert_eq!(shown, ids(&decisions)[..shown.len()], "newest first, none left out");
        assert!(shown.len() < 60, "only what is in sight is in the document: {}", shown.len());
        let overlaps = page.texts("[data-testid=ledger-row][data-decision] .l-overlap").await;
        for (text, decision) in overlaps.iter().zip(&decisions) {
            let wanted = decision["overlap_blocks"].as_u64().map_or("–".to_owned(), |n| n.to_string());
            assert_eq!(text.replace(',', ""), wanted, "{decision}");
        }
        assert_eq!(
            page.attribute("[data-testid=ledger-grid]", "aria-rowcount").await.unwrap(),
            (decisions.len() + 1).to_string()
        );
        for kind in ["hit", "partial", "miss", "tie", "lost-affinity", "unknown"] {
            let wanted = decisions.iter().filter(|d| kinds(d).contains(&kind)).count();
            assert_eq!(count(page, kind).await, wanted, "{kind}");
        }
        assert_eq!(count(page, "all").await, decisions.len());
        page.click("kind-miss").await;
        let misses: Vec<Value> = decisions.iter().filter(|d| kinds(d).contains(&"miss")).cloned().collect();
        assert!(!misses.is_empty());
        page.until("only misses are shown", async |page| {
            let shown = rows(page).await;
            wait::expect(shown == ids(&misses)[..shown.len().min(misses.len())], || format!("{shown:?}"))
        })
        .await;
        assert!(page.address().await.query().unwrap().contains("outcome=miss"));
        let summary = page.text("ledger-summary").await.unwrap().replace(',', "");
        assert!(
            summary.starts_with(&format!("{} shown of {} retained", misses.len(), decisions.len())),
            "{summary}"
        );
        let request = misses.iter().find_map(|d| d["request_id"].as_str()).unwrap();
        open(page, &server, &format!("&request={request}&outcome=all")).await;
        let notice = page.text("notice-address").await.unwrap();
        assert!(notice.starts_with("outcome=all in the address is invalid"), "{notice}");
        page.until("one request is shown", async |page| {
            let shown = rows(page).await;
            let of_request = |id: &String| {
                decisions
                    .iter()
                    .any(|d| d["id"] == **id && d["request_id"].as_str().unwrap().contains(request))
            };
            wait::expect(!shown.is_empty() && shown.iter().all(of_request), || format!("{shown:?}"))
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn the_details_are_the_api_s_candidates_and_lead_to_the_tree() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let decision =
        decisions.iter().find(|d| !d["path"].is_null() && d["candidates"].as_array().unwrap().len() == 3);
    let decision = decision.expect("a decision whose prompt was held");
    let id = decision["id"].as_str().unwrap();
    with_page(async |page| {
        open(page, &server, &format!("&decision={id}")).await;
        page.until_true("the details are there", "!!document.querySelector('[data-testid=candidate]')").await;
        let bars = "[...document.querySelectorAll('[data-testid=candidate]')].map(c => [+c.dataset.cost, +c.dataset.overlap])";
        let shown: Vec<(f64, f64)> = serde_json::from_value(page.eval(bars).await).unwrap();
        let mut wanted: Vec<(f64, f64)> = decision["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (c["cost"].as_f64().unwrap(), c["overlap_blocks"].as_f64().unwrap()))
            .collect();
        let mut by_cost = shown.clone();
        wanted.sort_by(|a, b| a.partial_cmp(b).unwrap());
        by_cost.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(by_cost, wanted);
        assert!(shown.is_sorted_by(|a, b| a.0 <= b.0), "cheapest first: {shown:?}");
        let why = page.text("why").await.unwrap();
        assert!(why.contains("was chosen"), "{why}");
        if let Some(cost_gap) = decision["margin_blocks"].as_f64() {
            let text = page.text("margin").await.unwrap();
            let announced: f64 = text.split(" ").nth(2).unwrap().parse().unwrap();
            assert!((announced - cost_gap.abs()).abs() < 0.001, "{text}: {cost_gap}");
        }
        page.screenshot("ledger-details").await;
        let ticket = page.eval("document.querySelector('[data-testid=ticket]').textContent").await;
        let request = decision["request_id"].as_str().unwrap();
        assert!(ticket.as_str().unwrap().contains(request), "{ticket}");
        page.eval("document.querySelector('[data-testid=show-in-tree]').scrollIntoView()").await;
        page.click("show-in-tree").await;
        let end = format!("decision {id}, block {}", decision["path"]["blocks"]);
        page.until("the path is painted to its end", async |page| {
            let label = page.attribute("#tree", "data-path-end").await.unwrap_or_default();
            wait::expect(label.replace(',', "") == end.replace(',', ""), || label)
        })
        .await;
        assert!(page.address().await.query().unwrap().contains(&format!("decision={id}")), "it can be sent to others");
        assert!(page.text("painted").await.unwrap().contains(&format!("Decision {id} for W")));
        page.screenshot("ledger-painted-path").await;
        page.click("painted-close").await;
        page.until_true("it is let go", "!document.querySelector('#tree').dataset.pathEnd").await;
    })
    .await;
}

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

#[tokio::test]
async fn the_keyboard_alone_walks_through_the_ledger() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let ids = ids(&decisions);
    with_page(async |page| {
        open(page, &server, "").await;
        for _ in 0..80 {
            if page.eval("document.activeElement.id").await == "ledger-grid" {
                break;
            }
            page.press("Tab").await;
        }
        assert_eq!(page.eval("document.activeElement.id").await, "ledger-grid");
        let opened = async |wanted: &str| {
            page.until("the details follow", async |page| {
                let open = page.attribute("[data-testid=ledger-details]", "data-decision").await;
                wait::expect(open.as_deref() == Some(wanted), || format!("{open:?}, not {wanted}"))
            })
            .await;
        };
        for _ in 0..3 {
            page.press("ArrowDown").await;
        }
        let active = page.attribute("#ledger-grid", "aria-activedescendant").await;
        assert_eq!(active, Some(format!("ledger-{}", ids[2])));
        page.press("Enter").await;
        opened(&ids[2]).await;
        page.press("ArrowDown").await;
        opened(&ids[3]).await;
        page.press("End").await;
        opened(ids.last().unwrap()).await;
        page.until("the line is in sight", async |page| {
            let shown = rows(page).await;
            wait::expect(shown.last() == ids.last(), || format!("{shown:?}"))
        })
        .await;
        page.press("Home").await;
        opened(&ids[0]).await;
        page.press("Escape").await;
        page.until_true("Escape closes", "!document.querySelector('[data-testid=ledger-details]')").await;
        assert_eq!(page.eval("document.activeElement.id").await, "ledger-grid");
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
