//! Deployments of several pools as a person sees them: two models apart, a switch that every panel obeys, and both choices
//! of a request where prefill and decode are apart.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::Value;

/// Waits until the first element with this test id says `wanted`.
async fn until_text(page: &Page, id: &str, wanted: &str) {
    page.until(&format!("{id} is {wanted}"), async |page| {
        let text = page.text(id).await;
        wait::expect(text.as_deref() == Some(wanted), || format!("{text:?}"))
    })
    .await;
}

/// Values of what can be chosen.
async fn choices(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=pool-switch] option')].map(o => o.value)";
    serde_json::from_value(page.eval(all).await).unwrap()
}

/// Workers of the rows in the document, by id.
async fn workers(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=worker]')].map(r => r.dataset.worker).sort()";
    serde_json::from_value(page.eval(all).await).unwrap()
}

/// Workers of a pool, by the API.
async fn workers_of(server: &Radixscope, pool: &str) -> Vec<String> {
    let cluster = server.cluster().await;
    let of_pool = |worker: &&Value| worker["pool"] == pool;
    let id = |worker: &Value| format!("{}/{}", worker["worker_id"].as_str().unwrap(), worker["dp_rank"]);
    let mut all: Vec<String> =
        cluster["workers"].as_array().unwrap().iter().filter(of_pool).map(id).collect();
    all.sort();
    assert!(!all.is_empty(), "{pool} has workers: {cluster}");
    all
}

#[tokio::test]
async fn two_models_are_shown_apart_and_every_panel_obeys_the_switch() {
    let capture = Capture::topology("1.6.1-two-models");
    let (_nats, server, cluster) = replay::replayed_capture(capture, &[]).await;
    with_page(async |page| {
        page.open_at(&server, "/", &cluster).await;
        page.until("there is a choice of pools", async |page| {
            let choices = choices(page).await;
            wait::expect(choices.len() == 3, || format!("{choices:?}"))
        })
        .await;
        let mut choices = choices(page).await;
        assert_eq!(choices.remove(0), "", "all pools come first");
        choices.sort();
        assert_eq!(choices, ["dynamo/backend", "dynamo/backend2"]);
        assert_eq!(page.attribute("[data-testid=pool-switch]", "disabled").await, None);
        assert_eq!(workers(page).await.len(), 4);

        // One tree at a time, the other a press away; both as they were counted.
        let drawn = page.text("tree-pool").await.unwrap();
        let (nodes, other, other_nodes) = match drawn.as_str() {
            "Pool backend" => ("2,365", "dynamo/backend2", "2,366"),
            "Pool backend2" => ("2,366", "dynamo/backend", "2,365"),
            _ => panic!("{drawn}"),
        };
        until_text(page, "nodes", nodes).await;
        assert_eq!(page.text("shared").await.as_deref(), Some("10 %"));
        let link = page.text("tree-pool-other").await.unwrap();
        assert!(link.ends_with("10 % shared"), "{link}");
        page.click("tree-pool-other").await;
        until_text(page, "nodes", other_nodes).await;
        assert!(page.address().await.query().unwrap().contains(&format!("pool={other}")));
        assert_eq!(workers(page).await, workers_of(&server, other).await);
        page.screenshot("pools-two-models").await;

        // By the keyboard, and after a reload.
        page.eval("(e => (e.focus(), true))(document.querySelector('[data-testid=pool-switch]'))").await;
        page.press("Home").await;
        page.until("all pools are shown again", async |page| {
            let workers = workers(page).await;
            wait::expect(workers.len() == 4, || format!("{workers:?}"))
        })
        .await;
        assert_eq!(page.address().await.query(), None);
        page.press("End").await;
        let last = choices.last().unwrap();
        let wanted = workers_of(&server, last).await;
        page.until("the last pool is shown", async |page| {
            let workers = workers(page).await;
            wait::expect(workers == wanted, || format!("{workers:?}"))
        })
        .await;
        page.reload().await;
        page.until("it still is", async |page| {
            let workers = workers(page).await;
            wait::expect(workers == wanted, || format!("{workers:?}"))
        })
        .await;

        page.open(&server.url("/?view=decisions&pool=dynamo/backend2")).await;
        page.until("the decisions of one pool are listed", async |page| {
            let summary = page.text("ledger-summary").await.unwrap_or_default();
            wait::expect(summary.starts_with("48 shown of 102 retained"), || summary)
        })
        .await;
        let pools = page.texts("[data-testid=ledger-row][data-decision] [data-testid=ledger-pool]").await;
        assert!(!pools.is_empty() && pools.iter().all(|pool| *pool == pools[0]), "{pools:?}");

        page.open(&server.url("/?pool=dynamo/none")).await;
        page.until("an unknown pool is named", async |page| {
            let notice = page.text("notice-pool").await.unwrap_or_default();
            let wanted = "pool=dynamo/none in the address is invalid: there are the pools ";
            wait::expect(notice.starts_with(wanted), || notice)
        })
        .await;
        assert_eq!(workers(page).await.len(), 4, "all pools are shown");
    })
    .await;
}

#[tokio::test]
async fn one_pool_is_shown_without_a_word_of_pools() {
    let (server, _) = Radixscope::standing_demo().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.agrees_with(&server).await;
        page.until("there are workers", async |page| {
            let workers = workers(page).await;
            wait::expect(!workers.is_empty(), || "none".to_owned())
        })
        .await;
        for id in ["pool-switch", "tree-pools", "worker-pool", "decision-pool", "notice-pool"] {
            assert_eq!(page.text(id).await, None, "{id}");
        }
    })
    .await;
}

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
        until_text(page, "coverage", "2 of 2 workers").await;
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
