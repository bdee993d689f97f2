//! What a person sees of a tree that lacks blocks: that it does, from the first second, and no share that would be wrong; then
//! how asking the workers fills it.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use radixscope_captures::Recording;
use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::capture::Message;
use radixscope_tests::discovery::{Registered, file_name};
use radixscope_tests::envelope::envelope;
use radixscope_tests::fake_worker::{Call, FakeWorker, Script, whole};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};

const WORKERS: [u64; 2] = [7_668_682_384_961_603_590, 7_668_682_384_961_603_591];
const PUBLISHERS: [u64; 2] = [3_916_204_183_855_218, 3_916_204_183_855_219];
const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Numbers of the events before anybody listened.
const LAST: u64 = 40;

/// Waits until the first element with this test id says something like this.
async fn until_text(page: &Page, id: &str, is_it: impl Fn(&str) -> bool) -> String {
    page.until(&format!("{id} says so"), async |page| {
        let text = page.text(id).await.unwrap_or_default();
        wait::expect(is_it(&text), || text.clone())?;
        Ok(text)
    })
    .await
}

#[tokio::test]
async fn a_tree_that_was_joined_late_shows_no_share_and_says_how_much_is_known() {
    let messages: Vec<Message> = Recording::late("1.6.1-nats-late-replica-sync").subscribed().collect();
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), &[]).await;
    server.until_ready().await;
    replay::publish(&nats.client().await, &messages).await;
    let has_all = |cluster: &Value| {
        let decisions = cluster["decisions"]["count"].as_u64();
        wait::expect(decisions == Some(268), || format!("{decisions:?} decisions"))
    };
    let cluster = server.until_cluster("every decision is received", has_all).await;
    for worker in cluster["workers"].as_array().unwrap() {
        let knowledge = &worker["knowledge"];
        assert_eq!((&knowledge["state"], &knowledge["why"]), (&json!("partial"), &json!("joined_late")));
        assert_eq!(knowledge["used_blocks"], Value::Null, "no source tells the capacity");
    }
    let pool = &cluster["pools"][0]["knowledge"];
    assert_eq!((&pool["state"], &pool["complete_workers"]), (&json!("partial"), &json!(0)));
    assert!(pool["withheld"].is_string(), "{pool}");
    let readiness = server.json("/readyz").await;
    assert_eq!((&readiness["ready"], &readiness["complete"]), (&json!(true), &json!(false)), "{readiness}");
    let decisions = server.json("/api/v1/decisions?limit=1000").await;
    let decisions = decisions["decisions"].as_array().unwrap();
    let is_computed = |decision: &&Value| decision["completeness"] == "reconstructed";
    let computed: Vec<&Value> = decisions.iter().filter(is_computed).collect();
    assert!(!computed.is_empty(), "some are computed");
    let newest = computed[0]["id"].as_str().expect("an id").to_owned();
    for decision in computed {
        assert_eq!(
            (&decision["partial"], &decision["margin_blocks"]),
            (&json!(true), &Value::Null),
            "{decision}"
        );
    }
    with_page(async |page| {
        page.open_at(&server, "/?theme=dark", &cluster).await;
        let coverage = page.text("coverage").await.unwrap();
        assert_eq!(coverage, "unknown · 0 of 3 workers");
        assert_eq!(page.text("shared").await.as_deref(), Some("–"));
        assert!(page.text("notice-findings").await.unwrap().contains("The tree lacks blocks"));
        page.screenshot("late-overview").await;

        page.open_at(&server, "/?view=tree&theme=light", &cluster).await;
        for figure in ["shared", "copies"] {
            assert_eq!(page.text(figure).await.as_deref(), Some("–"), "{figure} is withheld");
        }
        assert!(
            page.text("notice-partial").await.unwrap().starts_with("The tree is incomplete: unknown share")
        );
        page.screenshot("late-tree").await;

        page.open_at(&server, "/?view=workers", &cluster).await;
        let known = page.text("knowledge").await.unwrap();
        assert!(known.contains("it stored blocks before this dashboard listened"), "{known}");
        page.screenshot("late-workers").await;

        // Lines move while decisions are completed, so it is opened by its address.
        page.open_at(&server, &format!("/?view=decisions&decision={newest}&theme=dark"), &cluster).await;
        let partial = "document.querySelector('[data-testid=ledger-row].partial')";
        page.until_true("a decision is marked", &format!("!!{partial}")).await;
        let shown_text = until_text(page, "details-partial", |text| !text.is_empty()).await;
        assert!(shown_text.starts_with("Computed on a tree that lacked blocks"), "{shown_text}");
        assert!(page.text("why").await.unwrap().contains("no reason is given"));
        page.screenshot("late-decisions").await;
    })
    .await;
}

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
