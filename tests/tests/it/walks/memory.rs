//! The memory panel: the figures of every worker are those of the API.

use radixscope_model::number_format::count;
use radixscope_tests::browser::with_page;
use radixscope_tests::panels::memory::{VIEW, open, paused};
use radixscope_tests::wait;
use serde_json::Value;

fn shown(value: &Value) -> String {
    value.as_u64().map_or("–".to_owned(), count)
}

#[tokio::test]
async fn every_workers_figures_are_the_apis() {
    let server = paused(&[]).await;
    with_page(async |page| {
        open(page, &server, VIEW).await;
        let memory = server.json("/api/v1/memory").await;
        let workers = memory["workers"].as_array().unwrap();
        assert_eq!(workers.len(), 3);
        for worker in workers {
            let id = worker["worker_id"].as_str().unwrap();
            for (cell, key) in [
                ("mem-used", "used_blocks"),
                ("mem-retained", "retained_blocks"),
                ("mem-free", "free_blocks"),
                ("mem-capacity", "capacity_blocks"),
            ] {
                let wanted = shown(&worker[key]);
                page.until(key, async |page| {
                    let texts = page
                        .texts(&format!("[data-testid=mem-worker][data-worker^='{id}'] [data-testid={cell}]"))
                        .await;
                    wait::expect(texts == [wanted.clone()], || format!("{texts:?}, not {wanted}"))
                })
                .await;
            }
            let bar = format!("[data-testid=mem-worker][data-worker^='{id}'] .mem-bar");
            for hint in ["title", "aria-label"] {
                let announced = page.attribute(&bar, hint).await.unwrap_or_default();
                assert!(announced.contains(worker["belief_words"].as_str().unwrap()), "{announced:?}");
            }
            assert!(worker["mirror_blocks"].is_u64(), "{worker}");
        }
        let prose = page.texts("[data-testid=mem-status]").await;
        assert_eq!(prose, Vec::<String>::new(), "no sentence that every worker has");
    })
    .await;
}
