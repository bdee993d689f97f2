//! The counterfactual panel, opened, and the same question asked over HTTP.

use crate::browser::Page;
use crate::radixscope::Radixscope;
use serde_json::{Value, json};

/// Address of the panel.
pub const VIEW: &str = "/?view=counterfactual";

/// A demo that stands still.
pub async fn paused() -> Radixscope {
    // Whose settings are flags; from 1.6 on they are lines of a file.
    Radixscope::standing("aggregated-0.9").await
}

/// Opens an address of the panel, and waits for the sweep that begins with it.
pub async fn open(page: &Page, server: &Radixscope, path: &str) {
    page.open(&server.url(path)).await;
    page.until("the sweep that opens with the panel is done", async |page| {
        page.text("cf-grid").await.ok_or_else(|| "no map yet".to_owned())
    })
    .await;
    idle(page).await;
}

/// Waits until nothing is computed.
pub async fn idle(page: &Page) {
    page.until_true("nothing is under way", "!document.querySelector('[data-testid=cf-cancel]')").await;
}

/// Asks the API the same.
pub async fn ask(server: &Radixscope, body: Value) -> Value {
    let response = server.post("/api/v1/counterfactual", &body.to_string(), &[]).await;
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

/// Types into a field as a framework hears it.
pub async fn fill(page: &Page, id: &str, value: &str) {
    let set = format!(
        "(e => {{ e.value = {}; e.dispatchEvent(new Event('input', {{bubbles: true}})); return true; }})(document.querySelector('[data-testid={id}]'))",
        json!(value)
    );
    page.eval(&set).await;
}
