//! What a person sees of a tree that lacks blocks: that it does, from the first second, and no share that would be wrong; then
//! how asking the workers fills it.

use radixscope_captures::Recording;
use radixscope_tests::browser::with_page;
use radixscope_tests::capture::Message;
use radixscope_tests::nats::Nats;
use radixscope_tests::panels::until_text;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::{Value, json};

#[tokio::test]
async fn a_tree_that_was_joined_late_shows_no_share_and_says_how_much_is_known() {
    let messages: Vec<Message> = Recording::late("1.6.1-nats-late-replica-sync").subscribed().collect();
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), &[]).await;
    server.until_ready().await;
    replay::publish(&nats.client().await, &messages).await;
    let has_all = |cluster: &Value| {
        let decisions = cluster["decisions"]["count"].as_u64();
        wait::expect(decisions == Some(268), || format!("{decisions:?} decisions"))
    };
    let cluster = server.until_cluster("every decision is received", has_all).await;
    for worker in cluster["workers"].as_array().unwrap() {
        let knowledge = &worker["knowledge"];
        assert_eq!((&knowledge["state"], &knowledge["why"]), (&json!("partial"), &json!("joined_late")));
        assert_eq!(knowledge["used_blocks"], Value::Null, "no source tells the capacity");
    }
    let pool = &cluster["pools"][0]["knowledge"];
    assert_eq!((&pool["state"], &pool["complete_workers"]), (&json!("partial"), &json!(0)));
    assert!(pool["withheld"].is_string(), "{pool}");
    let readiness = server.json("/readyz").await;
    assert_eq!((&readiness["ready"], &readiness["complete"]), (&json!(true), &json!(false)), "{readiness}");
    let decisions = server.json("/api/v1/decisions?limit=1000").await;
    let decisions = decisions["decisions"].as_array().unwrap();
    let is_computed = |decision: &&Value| decision["completeness"] == "reconstructed";
    let computed: Vec<&Value> = decisions.iter().filter(is_computed).collect();
    assert!(!computed.is_empty(), "some are computed");
    let newest = computed[0]["id"].as_str().expect("an id").to_owned();
    for decision in computed {
        assert_eq!(
            (&decision["partial"], &decision["margin_blocks"]),
            (&json!(true), &Value::Null),
            "{decision}"
        );
    }
    with_page(async |page| {
        page.open_at(&server, "/?theme=dark", &cluster).await;
        let coverage = page.text("coverage").await.unwrap();
        assert_eq!(coverage, "unknown · 0 of 3 workers");
        assert_eq!(page.text("shared").await.as_deref(), Some("–"));
        assert!(page.text("notice-findings").await.unwrap().contains("The tree lacks blocks"));
        page.screenshot("late-overview").await;

        page.open_at(&server, "/?view=tree&theme=light", &cluster).await;
        for figure in ["shared", "copies"] {
            assert_eq!(page.text(figure).await.as_deref(), Some("–"), "{figure} is withheld");
        }
        assert!(
            page.text("notice-partial").await.unwrap().starts_with("The tree is incomplete: unknown share")
        );
        page.screenshot("late-tree").await;

        page.open_at(&server, "/?view=workers", &cluster).await;
        let known = page.text("knowledge").await.unwrap();
        assert!(known.contains("it stored blocks before this dashboard listened"), "{known}");
        page.screenshot("late-workers").await;

        // Lines move while decisions are completed, so it is opened by its address.
        page.open_at(&server, &format!("/?view=decisions&decision={newest}&theme=dark"), &cluster).await;
        let partial = "document.querySelector('[data-testid=ledger-row].partial')";
        page.until_true("a decision is marked", &format!("!!{partial}")).await;
        let shown_text = until_text(page, "details-partial", |text| !text.is_empty()).await;
        assert!(shown_text.starts_with("Computed on a tree that lacked blocks"), "{shown_text}");
        assert!(page.text("why").await.unwrap().contains("no reason is given"));
        page.screenshot("late-decisions").await;
    })
    .await;
}
