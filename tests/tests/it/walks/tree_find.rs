//! The search in the tree: whatever is pasted is found.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::tree_find::{explained, is_selected, open, search};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

#[tokio::test]
async fn whatever_is_pasted_is_found() {
    let (server, decisions) = Radixscope::standing_demo().await;
    let decision = explained(&decisions);
    let hash = decision["path"]["block_hash"].as_str().unwrap();
    let number: u64 = hash.parse().unwrap();
    let block = server.json(&format!("/api/v1/tree/block?hash={hash}")).await;
    let tokens = block["block"]["tokens_hash"].as_str().unwrap();
    with_page(async |page| {
        open(page, &server, "").await;
        page.press("/").await;
        page.until_true("the key leads to the field", "document.activeElement?.id === 'tree-search'").await;
        for text in [hash.to_owned(), format!("{number:#x}"), number.cast_signed().to_string()] {
            search(page, &text, "block hash or tokens hash").await;
            page.until_true(
                "the block is the first result",
                "document.querySelector('[data-testid=found]')?.innerText.startsWith('Block at position')",
            )
            .await;
            page.press("Enter").await;
            is_selected(page, hash).await;
            assert_eq!(page.text("block-hash").await.unwrap(), hash, "all digits");
        }
        let role = page.attribute("#tree-search", "role").await;
        assert_eq!(role.as_deref(), Some("combobox"));
        search(page, tokens, "for block hash or tokens hash").await;
        let wanted = format!("block hash {hash}");
        page.until("it is found by its tokens", async |page| {
            let lines = page.texts("[data-testid=found]").await;
            wait::expect(lines.iter().any(|line| line.contains(&wanted)), || format!("{lines:?}"))
        })
        .await;
        page.press("ArrowDown").await;
        search(page, "W2", "worker W2").await;
        page.press("Enter").await;
        page.until("the worker is picked out", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            wait::expect(query.contains("worker="), || query)
        })
        .await;
        let id = decision["id"].as_str().unwrap();
        search(page, &format!("#{id}"), "1 result for number of a decision").await;
        page.press("Enter").await;
        page.until("the decision is open", async |page| {
            let query = page.address().await.query().unwrap_or_default().to_owned();
            wait::expect(query.contains(&format!("decision={id}")), || query)
        })
        .await;
        let expected = search(page, "0xdeadbeef", "Nothing found").await;
        assert!(
            expected.contains("decimal 3735928559") && expected.contains("Looked through distinct blocks"),
            "{expected}"
        );
        search(page, "a b", "Not understood").await;
    })
    .await;
}
