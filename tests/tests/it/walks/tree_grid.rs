//! The tree as a table: the keyboard alone reaches a block.

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::panels::tree_grid::{CAPTURE, lines, open};
use radixscope_tests::{replay, wait};

/// Hash of the line that the keyboard is on.
async fn cursor(page: &Page) -> Option<String> {
    let of = "document.getElementById(document.getElementById('tree-grid').getAttribute('aria-activedescendant') ?? '')?.dataset.hash ?? null";
    serde_json::from_value(page.eval(of).await).unwrap()
}

async fn press_until(page: &Page, key: &str, what: &str, done: impl AsyncFn(&Page) -> Result<(), String>) {
    page.press(key).await;
    page.until(what, done).await;
}

#[tokio::test]
async fn the_keyboard_alone_reaches_a_block_and_shows_it_in_the_picture() {
    let (_nats, server, _) = replay::replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let (_, all) = open(page, &server).await;
        page.eval("document.getElementById('tree-grid').focus()").await;
        let branching = lines(page)
            .await
            .iter()
            .position(|hash| !all[hash].children.is_empty())
            .expect("some prompt goes on in several ways");
        for _ in 0..=branching {
            page.press("ArrowDown").await;
        }
        let parent = lines(page).await[branching].clone();
        page.until("the cursor is there", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&parent), || format!("{at:?}"))
        })
        .await;
        let children = &all[&parent].children;
        press_until(page, "ArrowRight", "it is open", async |page| {
            let next = lines(page).await.get(branching + 1).cloned();
            let is_child = next.as_ref().is_some_and(|next| children.contains(next));
            wait::expect(is_child, || format!("{next:?}"))
        })
        .await;
        let first_child = lines(page).await[branching + 1].clone();
        press_until(page, "ArrowRight", "the first child has the cursor", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&first_child), || format!("{at:?}"))
        })
        .await;
        let level = format!("[data-hash='{first_child}']");
        assert_eq!(page.attribute(&level, "aria-level").await.as_deref(), Some("2"));
        assert_eq!(page.attribute(&level, "aria-setsize").await, Some(children.len().to_string()));
        press_until(page, "ArrowLeft", "the parent has the cursor again", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&parent), || format!("{at:?}"))
        })
        .await;
        press_until(page, "ArrowLeft", "it is closed", async |page| {
            let shown = lines(page).await;
            wait::expect(!shown.contains(&first_child), || format!("{shown:?}"))
        })
        .await;
        page.press("Enter").await;
        page.until_true(
            "the picture is back",
            "document.querySelector('[data-testid=tree] canvas') !== null",
        )
        .await;
    })
    .await;
}
