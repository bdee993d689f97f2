//! How tests open the page's panels and read what they show: what the walks of the default tier and the tests of the exhaustive
//! one have in common. A panel is opened by its address, and read by the test ids of its elements.

pub mod compare;
pub mod counterfactual;
pub mod decisions;
pub mod embed;
pub mod findings;
pub mod latency;
pub mod link;
pub mod memory;
pub mod player;
pub mod rates;
pub mod stage;
pub mod time;
pub mod tree;
pub mod tree_find;
pub mod tree_grid;
pub mod whatif;

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;

/// A demo with these flags in which hardly any time passes once it is warm, so that page and API speak of one state.
pub async fn paused_demo(flags: &[&str]) -> Radixscope {
    let paused = ["demo", "--speed", "0.000001"];
    let server = Radixscope::start(paused.iter().chain(flags).copied()).await;
    server.until_source_is("live").await;
    server
}

/// Waits until the text of the first element with this test id is as `is_it` wants it.
pub async fn until_text(page: &Page, id: &str, is_it: impl Fn(&str) -> bool) -> String {
    page.until(&format!("{id} says so"), async |page| {
        let text = page.text(id).await.unwrap_or_default();
        wait::expect(is_it(&text), || text.clone())?;
        Ok(text)
    })
    .await
}

/// Waits until the first element with this test id contains `expected`.
pub async fn says(page: &Page, id: &str, expected: &str) {
    page.until(expected, async |page| {
        let text = page.text(id).await.unwrap_or_default();
        wait::expect(text.contains(expected), || text.clone())
    })
    .await;
}

/// Waits until the first element with this test id says `expected` and nothing else.
pub async fn says_only(page: &Page, id: &str, expected: &str) {
    page.until(&format!("{id} is {expected}"), async |page| {
        let text = page.text(id).await;
        wait::expect(text.as_deref() == Some(expected), || format!("{text:?}"))
    })
    .await;
}

/// The number in a text like `1,599`.
pub fn digits(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number in {text:?}"))
}
