//! Deployments of several pools as a person sees them: two models apart, a switch that every panel obeys, and both choices
//! of a request where prefill and decode are apart.

use radixscope_tests::browser::with_page;
use radixscope_tests::capture::Capture;
use radixscope_tests::panels::says_only;
use radixscope_tests::{replay, wait};
use serde_json::Value;

/// The decision with this id, by the API.
fn decision<'a>(decisions: &'a [Value], id: &Value) -> &'a Value {
    decisions.iter().find(|decision| decision["id"] == *id).expect("both parts are kept")
}

#[tokio::test]
async fn both_choices_of_a_disaggregated_request_lead_to_each_other() {
    let capture = Capture::topology("1.6.1-disagg");
    let (_nats, server, cluster) = replay::replayed_capture(capture, &[]).await;
    let decisions = server.json("/api/v1/decisions?limit=10000").await;
    let decisions = decisions["decisions"].as_array().unwrap().clone();
    let prefill = decisions.iter().find(|d| d["role"] == "prefill" && !d["other_part"].is_null());
    let prefill = prefill.expect("a request with two choices");
    let decode = decision(&decisions, &prefill["other_part"]);
    assert_eq!(decode["role"], "decode");
    let ms = |of: &Value, field: &str| of["progress"][field].as_i64().expect("a time");
    let gap = ms(decode, "first_token_ms") - ms(prefill, "ended_ms");
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        says_only(page, "coverage", "2 of 2 workers").await;
        let mut roles = page.texts("[data-testid=worker-pool]").await;
        roles.sort();
        assert_eq!(roles, ["decode", "decode", "prefill", "prefill"]);
        page.screenshot("pools-disaggregated").await;

        page.open(&server.url("/?view=decisions")).await;
        page.until("there are lines", async |page| {
            let lines = page.texts("[data-testid=ledger-row][data-decision]").await;
            wait::expect(!lines.is_empty(), || "none".to_owned())
        })
        .await;
        for (kind, wanted) in [("all", 162), ("unknown", 0)] {
            let text = page.text(&format!("kind-{kind}")).await.unwrap();
            let digits: String = text.chars().filter(char::is_ascii_digit).collect();
            assert_eq!(digits, wanted.to_string(), "{kind}");
        }
        let title = page.attribute("[data-testid=ledger-row] .verdict.ignored", "title").await;
        assert_eq!(title.as_deref(), Some("decode decisions ignore cached blocks"));

        let (from, to) = (prefill["id"].as_str().unwrap(), decode["id"].as_str().unwrap());
        page.open(&server.url(&format!("/?view=decisions&decision={from}"))).await;
        page.until("the other part is named", async |page| {
            let other = page.attribute("[data-testid=other-part]", "data-decision").await;
            wait::expect(other.as_deref() == Some(to), || format!("{other:?}"))
        })
        .await;
        assert!(page.text("why").await.unwrap().contains("was chosen"));
        let other = page.text("other-part").await.unwrap();
        assert!(other.contains("decode worker") && other.contains("cost "), "{other}");
        let shown_text = page.text("transfer-gap").await.unwrap();
        assert!(shown_text.starts_with(&format!("Transfer gap {gap} ms")), "{gap}: {shown_text}");
        page.screenshot("pools-other-part").await;
        page.click("open-other-part").await;
        page.until("the other part is open", async |page| {
            let open = page.attribute("[data-testid=ledger-details]", "data-decision").await;
            wait::expect(open.as_deref() == Some(to), || format!("{open:?}"))
        })
        .await;
        page.until("it leads back", async |page| {
            let other = page.attribute("[data-testid=other-part]", "data-decision").await;
            wait::expect(other.as_deref() == Some(from), || format!("{other:?}"))
        })
        .await;
        assert!(page.text("why").await.unwrap().contains("was chosen"));
        assert_eq!(page.text("transfer-gap").await.unwrap(), shown_text);
    })
    .await;
}
