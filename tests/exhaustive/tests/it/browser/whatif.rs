//! The what-if panel as a person uses it: the example everybody knows, sliders by keyboard, pasted token ids, a worker
//! left out; what it shows is what `POST /api/v1/score` says.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::whatif::{asked, costs, demo, until_costs};
use radixscope_tests::wait;
use serde_json::json;

async fn until_winner(page: &Page, expected: &str) {
    page.until(expected, async |page| {
        let winner = page.text("whatif-winner").await.unwrap_or_default();
        wait::expect(winner == expected, || winner)
    })
    .await;
}

#[tokio::test]
async fn the_worked_example_is_one_click_away_and_without_its_winner_the_next_one_wins() {
    let server = demo().await;
    with_page(async |page| {
        for theme in ["dark", "light"] {
            page.open(&server.url(&format!("/?view=whatif&theme={theme}"))).await;
            page.until_true("the panel is there", "document.querySelector('[data-testid=cost-row]') !== null").await;
            page.screenshot(&format!("whatif-recorded-{theme}")).await;
            page.click("whatif-example").await;
            until_costs(page, "the example's costs", &[30.0, 90.0, 99.0]).await;
            until_winner(page, "Worker 2 wins").await;
            assert_eq!(page.text("whatif-margin").await.expect("a text"), "Cost gap 60 blocks to the next");
            page.screenshot(&format!("whatif-example-{theme}")).await;
            page.eval("document.querySelector('[data-testid=whatif-fleet] [data-name=\"Worker 2\"] [type=checkbox]').click()")
                .await;
            until_winner(page, "Worker 1 wins").await;
            until_costs(page, "the others' costs", &[90.0, 99.0]).await;
            page.click("whatif-add").await;
            page.click("whatif-as-is").await;
            until_costs(page, "as it was", &[30.0, 90.0, 99.0]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_help_explains_the_choice_and_leads_to_the_example() {
    let server = demo().await;
    with_page(async |page| {
        page.open(&server.url("/")).await;
        page.until_true("the page is live", "document.body.dataset.connection === 'live'").await;
        page.press("?").await;
        page.until_true("the help is open", "document.querySelector('[data-testid=help]').open").await;
        let terms = page.texts("[data-testid=glossary] dt").await;
        assert!(terms.iter().any(|term| term == "KV hit rate") && terms.len() >= 12, "{terms:?}");
        // By the keyboard alone: the first term's link leads to its panel without loading the page again.
        page.eval("window.isSame = true").await;
        page.eval("document.querySelector('[data-testid=glossary] a').focus()").await;
        page.press("Enter").await;
        page.until_true("the panel is open", "!!document.querySelector('[data-testid=memory]')").await;
        assert_eq!(
            page.eval("window.isSame && !document.querySelector('[data-testid=help]').open").await,
            true
        );
        page.press("?").await;
        page.until_true("the help is open", "document.querySelector('[data-testid=help]').open").await;
        page.click("help-example").await;
        until_costs(page, "the example's costs", &[30.0, 90.0, 99.0]).await;
        until_winner(page, "Worker 2 wins").await;
    })
    .await;
}

#[tokio::test]
async fn the_prompt_of_a_decision_meets_the_tree_as_it_is_now() {
    let server = demo().await;
    let decisions = server.json("/api/v1/decisions?limit=1").await;
    let id = decisions["decisions"][0]["id"].as_str().expect("an id");
    with_page(async |page| {
        page.open(&server.url(&format!("/?view=whatif&decision={id}"))).await;
        page.until_true("the choice is there", "document.querySelector('[data-testid=way-live]') !== null")
            .await;
        page.eval("document.querySelector('[data-testid=way-live]').click()").await;
        page.until("the tree of now is asked", async |page| {
            let notes = page.text("whatif-notes").await.unwrap_or_default();
            wait::expect(notes.contains("estimates of router"), || notes)
        })
        .await;
        let chain = server.json(&format!("/api/v1/prompt?decision={id}")).await["chain_hashes"].clone();
        let by_hashes = asked(&server, json!({"chain_hashes": chain})).await;
        assert_eq!(costs(page).await.len(), by_hashes.len());
    })
    .await;
}
