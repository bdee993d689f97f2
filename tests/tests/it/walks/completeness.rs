//! A tree that lacks blocks: asking the workers makes it complete.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use radixscope_tests::browser::with_page;
use radixscope_tests::discovery::{Registered, file_name};
use radixscope_tests::envelope::envelope;
use radixscope_tests::fake_worker::{Call, FakeWorker, Script, whole};
use radixscope_tests::nats::Nats;
use radixscope_tests::panels::until_text;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};
use tempfile::TempDir;

const WORKERS: [u64; 2] = [7_668_682_384_961_603_590, 7_668_682_384_961_603_591];
const PUBLISHERS: [u64; 2] = [3_916_204_183_855_218, 3_916_204_183_855_219];
const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Numbers of the events before anybody listened.
const LAST: u64 = 40;

/// A worker's response with six blocks, of which both workers hold the first three; the last is that of its latest event.
fn response(call: &Call, worker: usize) -> Script {
    let hashes = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 14, 15, 16]][worker];
    let blocks = hashes.map(|hash| json!({"block_hash": hash, "tokens_hash": hash}));
    let data = json!({"stored": {"parent_hash": null, "blocks": blocks}});
    let event = json!({"worker_id": WORKERS[worker], "event": {"event_id": 0, "dp_rank": 0, "data": data}});
    let dump = json!({"TreeDump": {"events": [event], "last_event_id": LAST + 1, "reset_scope": "all"}});
    let item = json!({"data": dump, "complete_final": false});
    let item = match call.is_msgpack() {
        true => rmp_serde::to_vec_named(&item).expect("plain data"),
        false => item.to_string().into_bytes(),
    };
    Script::response(whole(&item, call.is_msgpack()))
}

/// Two workers that run for long: registered in a folder, publishing over NATS, answering when they are asked.
struct Deployment {
    nats: Nats,
    folder: Arc<TempDir>,
    workers: Vec<FakeWorker>,
}

impl Deployment {
    async fn start() -> Self {
        let (nats, folder) = (Nats::start().await, Arc::new(TempDir::new().expect("a writable folder")));
        let mut workers = Vec::new();
        for worker in 0..WORKERS.len() {
            workers.push(FakeWorker::start(move |call| response(call, worker)).await);
        }
        let deployment = Self { nats, folder, workers };
        deployment.register();
        // As workers do: what is not renewed counts no more after ten seconds.
        let renewed = (Arc::downgrade(&deployment.folder), deployment.entries());
        tokio::spawn(async move {
            let mut renew = tokio::time::interval(Duration::from_secs(2));
            while let Some(folder) = renewed.0.upgrade() {
                write(&folder, &renewed.1);
                drop(folder);
                renew.tick().await;
            }
        });
        deployment
    }

    fn entries(&self) -> Vec<(String, Value)> {
        let each = self.workers.iter().enumerate().flat_map(|(at, worker)| {
            let (worker_id, publisher_id) = (WORKERS[at], PUBLISHERS[at]);
            Registered { worker_id, publisher_id, zmq_port: 1, tcp_port: worker.port() }.entries()
        });
        // NATS is the event plane: no channel is registered.
        each.filter(|(key, _)| !key.contains("event_channels")).collect()
    }

    fn register(&self) {
        write(&self.folder, &self.entries());
    }

    /// Each publishes one event, by whose number it was there before.
    async fn publish(&self) {
        let client = self.nats.client().await;
        for (at, worker) in WORKERS.into_iter().enumerate() {
            let hash = [6, 16][at];
            let parent = [5, 15][at];
            let data = json!({"stored": {"parent_hash": parent, "blocks": [{"block_hash": hash, "tokens_hash": hash}]}});
            let event =
                json!({"worker_id": worker, "event": {"event_id": LAST + 1, "dp_rank": 0, "data": data}});
            let message = envelope(PUBLISHERS[at], 300, "kv-events", &[event]);
            client.publish(SUBJECT, message.into()).await.expect("the server lives");
        }
        client.flush().await.expect("the server lives");
    }
}

fn write(folder: &TempDir, entries: &[(String, Value)]) {
    for (key, value) in entries {
        let path = folder.path().join(file_name(key));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(path, value.to_string()).expect("a writable folder");
    }
}

#[tokio::test]
async fn a_press_asks_a_worker_and_the_page_is_complete_once_all_answered() {
    let deployment = Deployment::start().await;
    let discovery = format!("file:{}", deployment.folder.path().display());
    let flags = ["--discovery", &discovery, "--tree-dumps", "on-request"];
    let server = Radixscope::serve_with(&deployment.nats.url(), &flags).await;
    server.until_ready().await;
    deployment.publish().await;
    let asking = |cluster: &Value| {
        let workers = cluster["workers"].as_array().unwrap();
        let is_on_request = |worker: &Value| worker["knowledge"]["asking"] == "on_request";
        wait::expect(workers.len() == 2 && workers.iter().all(is_on_request), || format!("{cluster}"))
    };
    let cluster = server.until_cluster("both can be asked", asking).await;
    with_page(async |page| {
        page.open_at(&server, "/?view=workers", &cluster).await;
        until_text(page, "coverage", |text| text.ends_with("0 of 2 workers")).await;
        page.click("ask-for-blocks").await;
        until_text(page, "coverage", |text| text.ends_with("1 of 2 workers")).await;
        page.click("ask-for-blocks").await;
        until_text(page, "coverage", |text| text == "2 of 2 workers").await;
        page.until_true("no worker lacks blocks", "!document.querySelector('[data-testid=knowledge]')").await;

        page.open_at(&server, "/?view=tree", &server.cluster().await).await;
        until_text(page, "shared", |text| text == "33 %").await;
        assert_eq!(page.text("notice-partial").await, None);
        page.screenshot("complete-tree").await;
    })
    .await;
    let cluster = server.cluster().await;
    for worker in cluster["workers"].as_array().unwrap() {
        let knowledge = &worker["knowledge"];
        assert_eq!((&knowledge["state"], &knowledge["known_blocks"]), (&json!("complete"), &json!(6)));
        assert_eq!(knowledge["queries"]["applied_total"], 1, "{knowledge}");
    }
    assert_eq!(server.json("/readyz").await["complete"], true);
    let metrics = server.get("/metrics").await.text().to_owned();
    for wanted in ["radixscope_tree_known_ratio 1.0", "outcome=\"applied\"} 1"] {
        assert!(metrics.contains(wanted), "{wanted} is missing in {metrics}");
    }
}
