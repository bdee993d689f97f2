//! The what-if panel: sliders and pasted token ids give what the API says.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::whatif::{asked, demo, until_costs};
use serde_json::json;

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
