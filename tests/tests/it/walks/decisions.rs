//! The decisions panel: its rows, filters and details are those of the API, and the keyboard reaches everything.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::decisions::{count, kinds, open, rows};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

fn ids(decisions: &[Value]) -> Vec<String> {
    decisions.iter().map(|d| d["id"].as_str().unwrap().to_owned()).collect()
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
