//! Decisions asked as their readers ask: the worst first, one worker's, those with a word in them, and of one: what would
//! round-robin have done. Every figure is worked out again from the API.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

const ROWS: &str =
    "[...document.querySelectorAll('[data-testid=ledger-row][data-decision]')].map(r => r.dataset.decision)";

async fn rows(page: &Page) -> Vec<String> {
    serde_json::from_value(page.eval(ROWS).await).unwrap()
}

async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=decisions{more}"))).await;
    page.until_true("there are lines", &format!("{ROWS}.length > 0")).await;
}

async fn query(page: &Page) -> String {
    page.address().await.query().unwrap_or_default().to_owned()
}

/// Waits until the lines begin with these decisions.
async fn until_rows(page: &Page, what: &str, wanted: &[String]) {
    page.until(what, async |page| {
        let shown = rows(page).await;
        let is_so = !shown.is_empty() && shown[..] == wanted[..shown.len().min(wanted.len())];
        wait::expect(is_so, || format!("{shown:?}, not {wanted:?}"))
    })
    .await;
}

fn id(decision: &Value) -> String {
    decision["id"].as_str().unwrap().to_owned()
}

fn ttft_ms(decision: &Value) -> Option<f64> {
    let at = decision["decided_ms"].as_f64().or(decision["at_ms"].as_f64());
    let progress = &decision["progress"];
    progress["ttft_ms"].as_f64().or_else(|| Some(progress["first_token_ms"].as_f64()? - at?))
}

/// Ids by a figure, unknown ones last and equal ones newest first.
fn by(decisions: &[Value], figure: impl Fn(&Value) -> Option<f64>, sign: f64) -> Vec<String> {
    let mut all: Vec<(f64, String)> = decisions
        .iter()
        .map(|decision| (figure(decision).map_or(f64::INFINITY, |n| n * sign), id(decision)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, id)| id).collect()
}

fn hit_rate(decision: &Value) -> Option<f64> {
    Some(decision["overlap_blocks"].as_f64()? / decision["isl_blocks"].as_f64()?)
}

async fn sorted_as(page: &Page, column: &str) -> String {
    let head = format!("[role=columnheader]:has([data-testid={column}])");
    page.attribute(&head, "aria-sort").await.unwrap()
}

#[tokio::test]
async fn a_click_on_a_heading_orders_by_it_and_the_address_keeps_it() {
    let (server, decisions) = Radixscope::standing_demo().await;
    with_page(async |page| {
        page.size(1600, 900).await;
        open(page, &server, "").await;
        assert_eq!(sorted_as(page, "time").await, "descending");
        page.click("ttft").await;
        until_rows(page, "the slowest first", &by(&decisions, ttft_ms, -1.0)).await;
        assert_eq!(
            (sorted_as(page, "ttft").await.as_str(), sorted_as(page, "time").await.as_str()),
            ("descending", "none")
        );
        assert!(query(page).await.contains("sort=-ttft"));
        page.click("hit-rate").await;
        until_rows(page, "the lowest hit rate first", &by(&decisions, hit_rate, 1.0)).await;
        page.click("cost-gap").await;
        let gap = |decision: &Value| decision["margin_blocks"].as_f64();
        until_rows(page, "the largest gap first", &by(&decisions, gap, -1.0)).await;
        page.press("Enter").await;
        until_rows(page, "by the keyboard the other way round", &by(&decisions, gap, 1.0)).await;
        assert_eq!(sorted_as(page, "cost-gap").await, "ascending");
        page.screenshot("decisions-sorted").await;
        let address = query(page).await;
        page.open(&server.url(&format!("/?{address}"))).await;
        until_rows(page, "the address restores it", &by(&decisions, gap, 1.0)).await;
        page.click("time").await;
        until_rows(page, "newest first again", &decisions.iter().map(id).collect::<Vec<_>>()).await;
        assert!(!query(page).await.contains("sort="));
    })
    .await;
}

#[tokio::test]
async fn keys_walk_in_the_order_shown_and_what_is_saved_has_it() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let wanted = by(&decisions, ttft_ms, -1.0);
    with_page(async |page| {
        open(page, &server, "&sort=-ttft").await;
        until_rows(page, "the slowest first", &wanted).await;
        page.eval("document.querySelector('#ledger-grid').focus()").await;
        for (key, at) in [("ArrowDown", 0), ("ArrowDown", 1), ("PageDown", 2), ("Home", 0), ("End", wanted.len() - 1)] {
            page.press(key).await;
            if key == "PageDown" {
                continue;
            }
            let active = page.attribute("#ledger-grid", "aria-activedescendant").await;
            assert_eq!(active, Some(format!("ledger-{}", wanted[at])), "{key}");
        }
        let listen = "(() => { const make = URL.createObjectURL; window.saved = null;
            URL.createObjectURL = (blob) => { blob.text().then((text) => { window.saved = text; }); return make(blob); }; return 0; })()";
        page.eval(listen).await;
        page.click("export-csv").await;
        page.until_true("it is saved", "window.saved !== null").await;
        let csv = page.eval("window.saved").await;
        let lines = csv.as_str().unwrap().split_terminator("\r\n").skip(1);
        let saved: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(saved, wanted);
    })
    .await;
}

#[tokio::test]
async fn one_worker_and_a_word_are_looked_for_and_the_address_keeps_both() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let worker = &decisions[0]["worker_id"];
    let of_worker: Vec<Value> = decisions.iter().filter(|d| d["worker_id"] == *worker).cloned().collect();
    let ids = |all: &[Value]| all.iter().map(id).collect::<Vec<_>>();
    with_page(async |page| {
        open(page, &server, "").await;
        let choose = format!(
            "(() => {{ const s = document.querySelector('[data-testid=filter-worker]'); s.value = '{}/0';
               s.dispatchEvent(new Event('change', {{bubbles: true}})); }})()",
            worker.as_str().unwrap()
        );
        page.eval(&choose).await;
        until_rows(page, "those of one worker", &ids(&of_worker)).await;
        assert!(query(page).await.contains("worker="));
        let request = decisions[3]["request_id"].as_str().unwrap();
        page.open(&server.url("/?view=decisions&find=no%20such%20word")).await;
        page.until_true("nothing has it", "!!document.querySelector('[data-testid=ledger-none]')").await;
        open(page, &server, "").await;
        page.click("filter-find").await;
        for letter in request[2..9].to_uppercase().chars() {
            page.press(&letter.to_string()).await;
        }
        let with_part: Vec<Value> = decisions
            .iter()
            .filter(|d| d["request_id"].as_str().unwrap().contains(&request[2..9]))
            .cloned()
            .collect();
        until_rows(page, "a part of a request id, in capitals", &ids(&with_part)).await;
        assert!(query(page).await.contains("find="));
        open(page, &server, "&find=more%20of%20the%20prompt").await;
        let lost: Vec<Value> =
            decisions.iter().filter(|d| !d["lost_affinity_blocks"].is_null()).cloned().collect();
        assert!(!lost.is_empty());
        until_rows(page, "words of the reason", &ids(&lost)).await;
    })
    .await;
}

#[tokio::test]
async fn the_list_holds_still_under_the_pointer_in_any_order() {
    let server = Radixscope::start(["demo", "--warm-up", "60", "--speed", "4"]).await;
    server.until_source_is("live").await;
    with_page(async |page| {
        for order in ["", "&sort=-cost"] {
            page.hover(2.0, 2.0).await;
            open(page, &server, order).await;
            let (x, y) = page.centre("#ledger-grid").await;
            page.hover(x, y).await;
            page.until("it says that it holds", async |page| {
                let expected = page.text("ledger-held").await.unwrap_or_default();
                wait::expect(expected.contains("held while"), || expected)
            })
            .await;
            let before = rows(page).await;
            page.until("thirty more decisions came", async |page| {
                let expected = page.text("ledger-held").await.unwrap_or_default();
                let newer: String = expected.chars().filter(char::is_ascii_digit).collect();
                wait::expect(newer.parse().is_ok_and(|newer: u64| newer >= 30), || expected)
            })
            .await;
            assert_eq!(rows(page).await, before, "nothing moved");
            page.eval("(document.querySelector('#ledger-grid').scrollTop = 260, 0)").await;
            page.until("scrolled, the lines are those that were there", async |page| {
                let now = rows(page).await;
                wait::expect(now.first() == before.get(10), || {
                    format!("{now:?}, not from {:?}", before.get(10))
                })
            })
            .await;
            page.eval("(document.querySelector('#ledger-grid').scrollTop = 0, 0)").await;
            page.hover(2.0, 2.0).await;
            page.until("what came is there when the pointer leaves", async |page| {
                let expected = page.text("ledger-held").await.unwrap_or_default();
                // The highest costs may be those of before.
                let is_new = !order.is_empty() || rows(page).await != before;
                wait::expect(is_new && !expected.contains("held while"), || expected)
            })
            .await;
        }
    })
    .await;
}

/// Between the medians of the third with the fewest uncached blocks and of that with the most, in milliseconds a block.
fn pace(decisions: &[Value]) -> f64 {
    let known = |d: &Value| Some((d["isl_blocks"].as_f64()? - d["overlap_blocks"].as_f64()?, ttft_ms(d)?));
    let mut all: Vec<(f64, f64)> = decisions.iter().filter_map(known).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let third = all.len() / 3;
    let median = |part: &[(f64, f64)]| {
        let mut times: Vec<f64> = part.iter().map(|(_, ms)| *ms).collect();
        times.sort_by(f64::total_cmp);
        (part[part.len() / 2].0, times[times.len() / 2])
    };
    let (few, many) = (median(&all[..third]), median(&all[all.len() - third..]));
    (many.1 - few.1) / (many.0 - few.0)
}

/// `≈ +1.24 s TTFT` in milliseconds.
fn said_ms(sentence: &str) -> Option<f64> {
    let (_, rest) = sentence.split_once("≈ ")?;
    let mut text = rest.split(' ');
    let number: f64 = text.next()?.replace('−', "-").replace([',', '+'], "").parse().ok()?;
    Some(if text.next()? == "s" { number * 1_000.0 } else { number })
}

#[tokio::test]
async fn what_round_robin_would_have_done_is_what_the_api_s_figures_come_to() {
    // Whose router writes what every candidate had cached.
    let (server, decisions) = Radixscope::standing_demo_of("aggregated-0.9").await;
    let pace = pace(&decisions);
    with_page(async |page| {
        open(page, &server, "").await;
        // Workers as the page calls them, W1 first seen.
        let chips = page.texts("[data-testid=ledger-row][data-decision] .l-worker").await;
        let mut labels: Vec<(String, String)> = chips
            .iter()
            .zip(&decisions)
            .map(|(label, d)| (label.trim().to_owned(), d["worker_id"].as_str().unwrap().to_owned()))
            .collect();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), 3, "{labels:?}");
        let mut with_time = 0;
        for decision in decisions.iter().take(12) {
            let candidates = decision["candidates"].as_array().unwrap();
            assert_eq!(candidates.len(), 3);
            open(page, &server, &format!("&decision={}", id(decision))).await;
            let expected = page
                .until("the sentence is there", async |page| {
                    page.text("round-robin").await.filter(|t| !t.is_empty()).ok_or_else(|| "none".to_owned())
                })
                .await;
            // Ids count from 1 in a cluster of one pool.
            let number: usize = id(decision).parse().unwrap();
            let (label, worker) = &labels[(number - 1) % 3];
            let held = |of: &str| {
                let of = candidates.iter().find(|c| c["worker_id"] == *of).unwrap();
                of["overlap_blocks"].as_f64().unwrap()
            };
            let chosen = decision["worker_id"].as_str().unwrap();
            let more = held(worker) - held(chosen);
            let wanted = match more {
                _ if worker == chosen => "as well".to_owned(),
                0.0 => "as many cached blocks".to_owned(),
                more if more < 0.0 => format!("{} fewer cached block", -more),
                more => format!("{more} more cached block"),
            };
            assert!(
                expected.starts_with(&format!("Round-robin would have sent it to {label}")),
                "{expected}"
            );
            assert!(expected.contains(&wanted), "{expected}: {wanted}");
            if let Some(ms) = said_ms(&expected) {
                let wanted = -more * pace;
                assert!(
                    (ms - wanted).abs() <= 0.06 + wanted.abs() * 0.01,
                    "{expected}: {wanted} by {pace} ms a block"
                );
                with_time += 1;
            }
            let ticket = page.eval("document.querySelector('[data-testid=ticket]').textContent").await;
            assert!(ticket.as_str().unwrap().contains(&format!("Round-robin would have sent it to {label}")));
        }
        assert!(with_time > 0, "some have an estimate; {pace} ms a block");
        page.eval("document.querySelector('[data-testid=round-robin-how]').focus()").await;
        page.until("how it was derived shows at the focus", async |page| {
            let how = page.text("round-robin").await.unwrap();
            wait::expect(
                how.contains("per uncached block") && how.contains("Queues are not followed"),
                || how,
            )
        })
        .await;
        page.screenshot("decisions-round-robin").await;
    })
    .await;
}

#[tokio::test]
async fn why_here_and_what_round_robin_would_have_done_is_one_click_from_the_overview_and_what_if_another() {
    let (server, _) = Radixscope::standing_demo().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.until_true("decisions are listed", "!!document.querySelector('[data-testid=decision]')").await;
        page.click("decision").await;
        page.until_true("its details are open", "!!document.querySelector('[data-testid=round-robin]')")
            .await;
        for sentence in ["why", "round-robin", "open-whatif"] {
            let (_, top, _, height) = page.rectangle(&format!("[data-testid={sentence}]")).await;
            assert!(top > 0.0 && top + height < 720.0, "{sentence} at {top}: no scrolling");
        }
        let id = page.attribute("[data-testid=ledger-details]", "data-decision").await.unwrap();
        page.click("open-whatif").await;
        let loaded = format!("document.querySelector('[data-testid=whatif-decision]')?.value === '{id}'");
        page.until_true("what-if has it loaded", &loaded).await;
        page.until_true("and answers", "!!document.querySelector('[data-testid=whatif-versus]')").await;
        let address = query(page).await;
        assert!(address.contains("view=whatif") && address.contains(&format!("decision={id}")), "{address}");
        page.open(&server.url(&format!("/?{address}"))).await;
        page.until_true("the address restores it", &loaded).await;
    })
    .await;
}

#[tokio::test]
async fn bars_begin_at_the_cheapest_and_a_small_gap_shows() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let costs = |d: &Value| -> Vec<f64> {
        let all = d["candidates"].as_array().unwrap();
        all.iter().map(|c| c["cost"].as_f64().unwrap()).collect()
    };
    let least = |d: &Value| costs(d).into_iter().fold(f64::INFINITY, f64::min);
    let share =
        |d: &&Value| d["margin_blocks"].as_f64().filter(|gap| *gap > 0.0).map_or(1.0, |gap| gap / least(d));
    // The one whose gap is the least beside its cost.
    let decision = decisions.iter().min_by(|a, b| share(a).total_cmp(&share(b))).unwrap();
    assert!(share(&decision) < 0.02, "a gap that a bar from 0 would not show: {}", share(&decision));
    with_page(async |page| {
        for view in ["decisions", "whatif"] {
            page.open(&server.url(&format!("/?view={view}&decision={}", id(decision)))).await;
            let (row, track) = match view {
                "decisions" => ("[data-testid=candidate]", ".track"),
                _ => ("[data-testid=cost-row]", ".stack"),
            };
            page.until_true("bars are there", &format!("document.querySelectorAll('{row}').length === 3")).await;
            let bars = format!(
                "[...document.querySelectorAll('{row}')].map(r => {{
                    const t = r.querySelector('{track}');
                    const sum = [...t.querySelectorAll('i')].reduce((sum, i) => sum + i.getBoundingClientRect().width, 0);
                    return [+r.dataset.cost, sum, t.getBoundingClientRect().width]; }})"
            );
            let bars: Vec<(f64, f64, f64)> = serde_json::from_value(page.eval(&bars).await).unwrap();
            let (base, end) = (least(decision), costs(decision).into_iter().fold(0.0, f64::max));
            for (cost, bar, track) in bars {
                let wanted = (cost - base) / (end - base) * track;
                // At least two pixels each of three parts, and a track has a border.
                assert!((bar - wanted).abs() < 8.0, "{view}: {cost} is {bar} of {track} wide, not {wanted}");
                // What-if has the exact cost, the log rounds it to three decimals.
                assert_eq!(bar > 0.0, cost > base + 0.001, "{view}: {cost}");
            }
            let expected = page.text("cost-shared").await.unwrap();
            let shared: f64 = expected.split(' ').nth(4).unwrap().parse().unwrap_or_else(|_| panic!("{expected}"));
            assert!((shared - base).abs() < 0.01, "{expected}: {base}");
        }
        page.screenshot("decisions-whatif-bars").await;
    })
    .await;
}

#[tokio::test]
async fn the_time_to_first_token_has_its_parts_with_their_sources() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let decision = decisions.iter().find(|d| ttft_ms(d).is_some()).unwrap();
    with_page(async |page| {
        open(page, &server, &format!("&decision={}", id(decision))).await;
        page.until_true("its details are open", "!!document.querySelector('[data-testid=ttft-split]')").await;
        let parts = page.texts("[data-testid=ttft-split] li").await;
        assert_eq!(parts.len(), 3);
        assert!(
            parts[0].starts_with("Queue not reported") && parts[0].contains("DYN_REQUEST_TRACE=1"),
            "{parts:?}"
        );
        let ms = ttft_ms(decision).unwrap();
        assert!(ms < 999.0, "{ms}");
        assert!(
            parts[1].starts_with(&format!("Prefill {ms} ms from the decision to the first token")),
            "{parts:?}"
        );
        assert!(parts[2].starts_with("First token not reported"), "{parts:?}");
    })
    .await;
}
