//! The state of the page's connection.

use crate::browser::Page;
use crate::wait;

/// Waits until the page is connected and up to date.
pub async fn until_live(page: &Page) {
    page.until_true(
        "the page is live",
        "document.body.dataset.connection === 'live' && document.body.dataset.stale === 'false'",
    )
    .await;
}

/// Waits until nothing on the page claims to be of now: not all of it changes in the same task of the browser.
pub async fn nothing_is_current(page: &Page, old: &str) {
    let expected = format!("document.querySelector('.page').dataset.old === '{old}'");
    page.until_true("the page says what is not current", &expected).await;
    for id in ["lag", "coverage", "stored-rate-all", "removed-rate-all", "stored-rate"] {
        page.until(&format!("{id} is unknown"), async |page| {
            let texts = page.texts(&format!("[data-testid={id}]")).await;
            wait::expect(texts.first().is_some_and(|text| text == "–"), || format!("{texts:?}"))
        })
        .await;
    }
    for is_left in [".worker.active", ".notice.good"] {
        page.until_true("nothing is green", &format!("!document.querySelector('{is_left}')")).await;
    }
    let grey =
        "getComputedStyle(document.querySelector('.panel.workers > .scroll')).filter === 'grayscale(1)'";
    page.until_true("workers are grey", grey).await;
    page.until("it says as of when", async |page| {
        let text = page.text("as-of").await;
        wait::expect(text.as_deref().is_some_and(|text| text.starts_with("as of ")), || format!("{text:?}"))
    })
    .await;
}
