//! Deployments of several pools and of one: what the switch of pools does.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Capture;
use radixscope_tests::panels::says_only;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::Value;

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
        says_only(page, "nodes", nodes).await;
        assert_eq!(page.text("shared").await.as_deref(), Some("10 %"));
        let link = page.text("tree-pool-other").await.unwrap();
        assert!(link.ends_with("10 % shared"), "{link}");
        page.click("tree-pool-other").await;
        says_only(page, "nodes", other_nodes).await;
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
