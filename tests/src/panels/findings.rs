//! The findings panel over a demo with a fault.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;

/// A demo with a fault, once its finding is active: the rule listens for five seconds first.
pub async fn faulty() -> (Radixscope, Value) {
    let server = Radixscope::start(["demo", "--fault", "block-size"]).await;
    server.until_source_is("live").await;
    let finding = wait::until("the fault is found", async || found(&server).await).await;
    (server, finding)
}

/// The finding as the API has it now, else all that it has.
pub async fn found(server: &Radixscope) -> Result<Value, String> {
    let all = server.json("/api/v1/findings").await;
    let found =
        all["findings"].as_array().unwrap().iter().find(|f| f["code"] == "block_size_mismatch").cloned();
    found.ok_or_else(|| all.to_string())
}

/// Opens the panel, and waits for what was checked.
pub async fn open(page: &Page, server: &Radixscope, more: &str) {
    page.open(&server.url(&format!("/?view=findings{more}"))).await;
    page.until_true("the panel is there", "!!document.querySelector('[data-testid=checked] li')").await;
}

/// The card of the fault.
pub const CARD: &str = "[data-code=block_size_mismatch][data-testid=finding]";
