//! What Chromium's DevTools do, by other means for browsers that have none: the console is listened to in the page itself,
//! and a viewport is set by WebDriver BiDi where the driver speaks it.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use crate::wait;

/// Keeps from now on what the page complains of. Errors before it was there are not among them.
pub(super) const LISTEN: &str = "(() => {
    if (window.complaints) return;
    const retained = window.complaints = [];
    for (const level of ['error', 'warn']) {
        const write = console[level];
        console[level] = (...said) => { retained.push(said.map(String).join(' ')); write.apply(console, said); };
    }
    addEventListener('error', (event) => retained.push(String(event.message || event.target?.src || 'error')), true);
    addEventListener('unhandledrejection', (event) => retained.push(String(event.reason)));
})()";

/// What was complained of since the last look.
pub(super) const COMPLAINTS: &str = "(window.complaints ?? []).splice(0)";

/// Addresses that the document asked for; sockets are not among them.
pub(super) const REQUESTS: &str =
    "[location.href, ...performance.getEntriesByType('resource').map((entry) => entry.name)]";

/// Gives the window `context` a viewport of exactly this size, in CSS pixels.
pub(super) async fn set_viewport(url: &str, context: &str, width: u32, height: u32) {
    let command = json!({
        "id": 1,
        "method": "browsingContext.setViewport",
        "params": {"context": context, "viewport": {"width": width, "height": height}},
    });
    let response = wait::within("the browser has the size", async {
        let (mut socket, _) = connect_async(url).await.expect("the driver speaks BiDi");
        socket.send(Message::text(command.to_string())).await.expect("it listens");
        let response = socket.next().await.expect("it answers").expect("it answers");
        let _ = socket.close(None).await;
        response.into_text().expect("text").to_string()
    })
    .await;
    let response: Value = serde_json::from_str(&response).expect("JSON");
    assert_eq!(response["type"], "success", "{response}");
}
