//! The latency panel: targets are set in their fields, kept in the address, and named where they are invalid.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::latency::{open, standing};
use radixscope_tests::wait;

#[tokio::test]
async fn a_target_set_in_its_field_is_in_the_address_and_a_bad_one_is_named() {
    let server = standing().await;
    with_page(async |page| {
        open(page, &server, "&ttft_slo=soon").await;
        page.until_true(
            "it is named",
            "document.querySelector('[data-testid=ttft] .field-fault').innerText.includes('ttft_slo=soon')",
        )
        .await;
        let set =
            "(() => { const field = document.querySelector('[data-testid=tpot-target]'); field.value = '45';
            field.dispatchEvent(new Event('change', {bubbles: true})); })()";
        page.eval(set).await;
        page.until("the address has it", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            wait::expect(query.contains("tpot_slo=45"), || query)
        })
        .await;
        page.until_true(
            "the session is counted against it",
            "document.querySelector('[data-testid=tpot-burn]').innerText.includes('above 45 ms')",
        )
        .await;
    })
    .await;
}
