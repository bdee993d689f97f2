//! The reuse panel: its steps and losses are those of the API and lead to a decision.

use radixscope_model::number_format::count;
use radixscope_tests::browser::with_page;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::test]
async fn steps_and_losses_are_the_apis_and_lead_to_a_decision() {
    // A cluster that stands still, so that page and API say the same.
    let server = Radixscope::standing("aggregated").await;
    server.until_source_is("live").await;
    with_page(async |page| {
        page.open(&server.url("/?view=reuse&from=now-1h&to=now")).await;
        // What the last decisions reused is computed a little after them.
        let reuse = page
            .until("the steps of the page are the API's", async |page| {
                let reuse = server.json("/api/v1/reuse").await;
                let steps = reuse["steps"].as_array().expect("steps");
                for step in steps.iter().filter(|step| step["step"] != "reused") {
                    let tokens = count(step["tokens"].as_u64().expect("tokens"));
                    let name = format!("reuse-step-{}", step["step"].as_str().expect("a name"));
                    let text = page.text(&name).await.unwrap_or_default();
                    wait::expect(text.contains(&tokens), || format!("{tokens} in {text}"))?;
                }
                Ok(reuse)
            })
            .await;
        let losses = reuse["losses"].as_array().expect("losses");
        assert!(losses.len() > 1, "{losses:?}");
        for loss in losses {
            let row = page.text(&format!("reuse-loss-{}", loss["cause"].as_str().expect("a cause"))).await;
            let (row, tokens) = (row.expect("a row"), count(loss["tokens"].as_u64().expect("tokens")));
            assert!(row.contains(&tokens), "{tokens} in {row}");
        }
        let first = losses[0]["cause"].as_str().expect("a cause");
        let open =
            format!("(document.querySelector('[data-testid=reuse-loss-{first}] button').click(), true)");
        page.eval(&open).await;
        page.until("the decision says why", async |page| {
            let text = page.text("not-reused").await.unwrap_or_default();
            wait::expect(text.starts_with("Computed anew: "), || text.clone())
        })
        .await;
    })
    .await;
}
