//! The demo controls, and what the server says of them.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;

/// What the server says of its controls.
pub async fn stage(server: &Radixscope) -> Value {
    server.json("/api/v1/stage").await
}

/// Waits until the server says so at a place of that.
pub async fn until_stage(server: &Radixscope, what: &str, pointer: &str, value: Value) {
    wait::until(what, async || {
        let now = stage(server).await;
        wait::expect(now.pointer(pointer) == Some(&value), || {
            format!("{pointer} is {:?}", now.pointer(pointer))
        })
    })
    .await;
}

/// The page with its bar, which takes changes.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    let is_ready = "document.querySelector('[data-testid=stage-slider]')?.disabled === false";
    page.until_true("the stage can be steered", is_ready).await;
}
