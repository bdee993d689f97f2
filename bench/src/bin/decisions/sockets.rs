//! A recording reported again at its own pace by a real NATS server, real scrapes and growing logs to a real
//! `radixscope serve`.

use std::path::Path;

use radixscope_tests::recording;
use serde_json::Value;

/// What `/api/v1/decisions` answers afterwards, and the seconds from recorded times to those of the response.
pub(crate) fn response(folder: &Path) -> (Value, f64) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        // Recordings are named for as long as the program runs: it ends after the last one.
        let name: &'static str = Box::leak(folder.to_string_lossy().into_owned().into_boxed_str());
        let replayed = recording::Recording::prepare(name, 1.0).await.replay().await;
        (replayed.server.json("/api/v1/decisions?limit=10000").await, replayed.shift_s)
    })
}
