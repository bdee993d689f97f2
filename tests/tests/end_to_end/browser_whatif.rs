//! The what-if panel as a person uses it: the example everybody knows, sliders by keyboard, pasted token ids, a worker
//! left out; what it shows is what `POST /api/v1/score` says.

use hyper::Method;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::http::Http;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};

/// A demo in which hardly any time passes, so that page and API speak of one state.
async fn demo() -> Radixscope {
    // Whose router has the fewest settings.
    let args = ["demo", "--topology", "aggregated-0.9", "--warm-up", "60", "--speed", "0.000001"];
    let server = Radixscope::start(args).await;
    server.until_source_is("live").await;
    server
}

/// Costs as the panel shows them, by rank.
async fn costs(page: &Page) -> Vec<f64> {
    let shown =
        "[...document.querySelectorAll('[data-testid=cost-row]')].map(row => row.dataset.cost).join(' ')";
    let shown = page.eval(shown).await;
    shown
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .map(|cost| cost.parse().expect("a number"))
        .collect()
}

async fn until_costs(page: &Page, what: &str, expected: &[f64]) {
    page.until(what, async |page| {
        let costs = costs(page).await;
        wait::expect(costs == expected, || format!("{costs:?}, not {expected:?}"))
    })
    .await;
}

async fn until_winner(page: &Page, expected: &str) {
    page.until(expected, async |page| {
        let winner = page.text("whatif-winner").await.unwrap_or_default();
        wait::expect(winner == expected, || winner)
    })
    .await;
}

/// Costs by rank as the API has them.
async fn asked(server: &Radixscope, question: Value) -> Vec<f64> {
    let url = server.url("/api/v1/score");
    let response = Http::default().send(Method::POST, &url, &[], question.to_string().into()).await;
    let response = response.expect("the server answers").json();
    let candidates = response["candidates"].as_array().unwrap_or_else(|| panic!("{response}")).iter();
    candidates.map(|candidate| candidate["cost"].as_f64().expect("a cost")).collect()
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
async fn sliders_by_keyboard_and_pasted_token_ids_give_what_the_api_says() {
    let server = demo().await;
    let decisions = server.json("/api/v1/decisions?limit=50").await;
    let known = decisions["decisions"].as_array().expect("decisions").iter();
    let id = known.clone().find(|d| d["completeness"] != "chosen only").expect("one")["id"].clone();
    let id = id.as_str().expect("a string");
    with_page(async |page| {
        page.open(&server.url(&format!("/?view=whatif&decision={id}"))).await;
        let recorded = asked(&server, json!({"decision": id})).await;
        until_costs(page, "the recorded costs", &recorded).await;
        assert!(page.text("whatif-versus").await.expect("compared").contains("Same worker"));

        let slider = "document.querySelector('[data-testid=slider-overlap_score_weight]')";
        page.eval(&format!("{slider}.focus()")).await;
        for _ in 0..4 {
            page.press("ArrowRight").await;
        }
        let weight: f64 = page.eval(&format!("{slider}.value")).await.as_str().expect("a value").parse().expect("a number");
        assert!(weight > 1.1, "{weight}");
        let options = json!({"overlap_score_weight": weight});
        let heavier = asked(&server, json!({"decision": id, "options": options})).await;
        assert_ne!(heavier, recorded);
        until_costs(page, "the costs at another weight", &heavier).await;

        let tokens: Vec<u32> = (0..5_000).map(|i| i * 7 % 1_000).collect();
        page.eval("document.querySelector('[data-testid=mode-tokens]').click()").await;
        let paste = format!(
            "(() => {{ const t = document.querySelector('[data-testid=whatif-tokens]'); t.value = {:?} + ' x'; \
             t.dispatchEvent(new Event('input', {{bubbles: true}})); }})()",
            format!("{tokens:?}")
        );
        page.until_true("there is a field", "document.querySelector('[data-testid=whatif-tokens]') !== null").await;
        page.eval(&paste).await;
        let options = json!({"version": "0.9", "overlap_score_weight": weight});
        let by_tokens = asked(&server, json!({"token_ids": tokens, "options": options})).await;
        until_costs(page, "the costs of the pasted prompt", &by_tokens).await;
        let complaint = page.text("whatif-complaint").await.expect("a text");
        assert!(complaint.contains("1 piece is not a whole number") && complaint.contains('x'), "{complaint}");
        let notes = page.text("whatif-notes").await.expect("a text");
        assert!(notes.contains("estimates of router"), "{notes}");
        page.screenshot("whatif-tokens").await;

        page.click("whatif-freeze").await;
        until_costs(page, "the same costs on the kept state", &by_tokens).await;
        assert!(page.text("whatif-moment").await.expect("a text").starts_with("Fixed at"));
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
