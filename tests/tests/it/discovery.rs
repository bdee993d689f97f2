//! Discovery in a real etcd and in a folder of entries: who is there, who leaves, and what is shown when it cannot be read.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use radixscope_tests::discovery::{
    Folder, Registered, event_channel, file_name, until_status, until_workers,
};
use radixscope_tests::envelope::envelope;
use radixscope_tests::etcd::Etcd;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

const FIRST: Registered = Registered {
    worker_id: 7_668_682_384_961_603_590,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 34_549,
    tcp_port: 41_413,
};
const SECOND: Registered =
    Registered { worker_id: FIRST.worker_id + 15, publisher_id: 6_332_565_725_965_451, ..FIRST };

async fn register(etcd: &Etcd, worker: Registered) {
    etcd.lease(worker.worker_id, 60).await;
    for (key, value) in worker.entries() {
        etcd.put(&key, &value, Some(worker.worker_id)).await;
    }
}

#[tokio::test]
async fn workers_come_and_go_as_etcd_says() {
    let mut etcd = Etcd::start().await;
    register(&etcd, FIRST).await;
    let server = Radixscope::start(["serve", "--discovery", &etcd.url()]).await;
    until_workers(&server, &[(FIRST, None)]).await;
    register(&etcd, SECOND).await;
    until_workers(&server, &[(FIRST, None), (SECOND, None)]).await;
    // Terminated: its endpoint goes first. Killed: all goes with its lease.
    etcd.delete(&FIRST.endpoint_key()).await;
    until_workers(&server, &[(FIRST, Some("discovery")), (SECOND, None)]).await;
    etcd.revoke(SECOND.worker_id).await;
    until_workers(&server, &[(FIRST, Some("discovery")), (SECOND, Some("discovery"))]).await;
    register(&etcd, SECOND).await;
    until_workers(&server, &[(FIRST, Some("discovery")), (SECOND, None)]).await;
    // What changed while etcd was away, and its history since, is not needed to know it.
    etcd.stop();
    until_status(&server, "connecting", "Retrying").await;
    etcd.start_again().await;
    etcd.revoke(SECOND.worker_id).await;
    etcd.compact().await;
    until_workers(&server, &[(FIRST, Some("discovery")), (SECOND, Some("discovery"))]).await;
    until_status(&server, "live", "Dynamo entr").await;
}

#[tokio::test]
async fn etcd_with_passwords_and_tls_says_what_is_missing() {
    let mut etcd = Etcd::start().await;
    register(&etcd, FIRST).await;
    etcd.ask_for_passwords("v1/").await;
    let anonymous = Radixscope::start(["serve", "--discovery", &etcd.url()]).await;
    until_status(&anonymous, "refused", "--discovery-user").await;
    let at = etcd.url().replace("etcd://", "etcd://viewer:wrong@");
    let wrong = Radixscope::start(["serve", "--discovery", &at]).await;
    until_status(&wrong, "refused", "rejects the login").await;
    let file = |name: &str| etcd.file(name).to_str().expect("a plain path").to_owned();
    let (ca, certificate, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
    let stranger = Radixscope::start(["serve", "--discovery", &etcd.tls_url()]).await;
    until_status(&stranger, "refused", "--discovery-tls-ca").await;
    let tls_url = etcd.tls_url();
    let start = async |certificate: &[&str]| {
        let mut args = vec!["serve", "--discovery", &tls_url, "--discovery-tls-ca", &ca];
        args.extend(["--discovery-user", "viewer", "--discovery-password", "secret"]);
        Radixscope::start(args.iter().chain(certificate)).await
    };
    until_status(&start(&[]).await, "refused", "--discovery-tls-cert").await;
    // etcd's gateway takes no certificate that names a user: it would have to ignore the name.
    let named = [file("server.pem"), file("server.key")];
    let named = start(&["--discovery-tls-cert", &named[0], "--discovery-tls-key", &named[1]]).await;
    until_status(&named, "refused", "without a common name").await;
    let server = start(&["--discovery-tls-cert", &certificate, "--discovery-tls-key", &key]).await;
    until_workers(&server, &[(FIRST, None)]).await;
    // It may read and watch what is Dynamo's, and sees what changes.
    etcd.delete(&FIRST.card_key()).await;
    until_workers(&server, &[(FIRST, Some("discovery"))]).await;
}

#[tokio::test]
async fn more_entries_than_a_page_are_all_read() {
    let etcd = Etcd::start().await;
    let worker = |n: u64| Registered { worker_id: 1_000 + n, publisher_id: 5_000 + n, ..FIRST };
    for n in 0..130 {
        register(&etcd, worker(n)).await;
    }
    let server = Radixscope::start(["serve", "--discovery", &etcd.url()]).await;
    let expected: Vec<_> = (0..130).map(|n| (worker(n), None)).collect();
    until_workers(&server, &expected).await;
}

fn write(folder: &Path, worker: Registered) {
    for (key, value) in worker.entries() {
        let path = folder.join(file_name(&key));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        // As Dynamo's file store does.
        let unfinished = path.with_file_name(".tmp_x");
        fs::write(&unfinished, value.to_string()).expect("a writable folder");
        fs::rename(&unfinished, &path).expect("a writable folder");
    }
}

/// As a process does that lives, or one that was killed long ago.
fn renewed(folder: &Path, worker: Registered, at: SystemTime) {
    for (key, _) in worker.entries() {
        let file = fs::File::options().append(true).open(folder.join(file_name(&key))).expect("the file");
        file.set_modified(at).expect("our own file");
    }
}

#[tokio::test]
async fn workers_come_and_go_as_a_folder_says() {
    let folder = TempDir::new().expect("a writable folder");
    let at = format!("file:{}", folder.path().display());
    let server = Radixscope::start(["serve", "--discovery", &at]).await;
    until_status(&server, "connecting", "DYN_FILE_KV").await;
    // Far in the future: these entries need no renewal while the test runs.
    let later = SystemTime::now() + Duration::from_secs(3_600);
    for worker in [FIRST, SECOND] {
        write(folder.path(), worker);
        renewed(folder.path(), worker, later);
    }
    until_workers(&server, &[(FIRST, None), (SECOND, None)]).await;
    renewed(folder.path(), FIRST, SystemTime::now() - Duration::from_secs(11));
    fs::remove_file(folder.path().join(file_name(&SECOND.card_key()))).expect("the file");
    until_workers(&server, &[(FIRST, Some("discovery")), (SECOND, Some("discovery"))]).await;
    until_status(&server, "live", "not renewed").await;
    renewed(folder.path(), FIRST, later);
    until_workers(&server, &[(FIRST, None), (SECOND, Some("discovery"))]).await;
}

#[tokio::test]
async fn subjects_of_nats_are_those_that_discovery_names() {
    let nats = Nats::start().await;
    let client = nats.client().await;
    let folder = Folder::default();
    for (key, value) in FIRST.entries().into_iter().filter(|(key, _)| !key.contains("event_channels")) {
        folder.put(&key, &value);
    }
    let (key, mut channel) = event_channel("kv-events", FIRST.publisher_id, "tcp://127.0.0.1:1");
    channel["transport"] = json!({"kind": "Nats", "config": {"subject_prefix": "ours.of.them"}});
    folder.put(&key, &channel);
    let more = ["--discovery", &folder.url(), "--tree-dumps", "off"];
    let server = Radixscope::serve_with(&nats.url(), &more).await;
    until_workers(&server, &[(FIRST, None)]).await;
    let event = json!([{"worker_id": FIRST.worker_id, "event": {"event_id": 1, "dp_rank": 0, "data": {"stored":
        {"parent_hash": null, "blocks": [{"block_hash": 7, "tokens_hash": 8}]}}}}]);
    // A publisher does not know when the subscription is effective, so the event is published until it was received.
    let mut sequence = 0;
    wait::until("the event is received", async || {
        let message = envelope(FIRST.publisher_id, sequence, "kv-events", &event);
        sequence += 1;
        client.publish("ours.of.them.kv-events", message.into()).await.expect("the server lives");
        let worker = &server.cluster().await["workers"][0];
        wait::expect(worker["blocks"] == 1, || worker.to_string())
    })
    .await;
}

/// What `radixscope sources` says of a place: its exit code, its text and its JSON.
fn sources(args: &[&str]) -> (Option<i32>, String, Value) {
    let run = |more: &[&str]| {
        let mut command = Radixscope::command();
        for variable in ["ETCD_ENDPOINTS", "DYN_FILE_KV", "NATS_SERVER", "DYN_DISCOVERY_BACKEND"] {
            command.env_remove(variable);
        }
        command.arg("sources").args(args).args(more).stdout(Stdio::piped());
        command.spawn().expect("the program can be started")
    };
    // Each listens for three seconds: both beside each other.
    let (text, json) = (run(&[]), run(&["--json"]));
    let [text, json] = [text, json].map(|child| child.wait_with_output().expect("it is ours"));
    assert_eq!(text.status.code(), json.status.code());
    let text = String::from_utf8(text.stdout).expect("text");
    (json.status.code(), text, serde_json::from_slice(&json.stdout).expect("JSON"))
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_says_what_is_there_and_how_to_see_it() {
    let etcd = Etcd::start().await;
    // Whoever listens there is enough to be reached, and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    for worker in [FIRST, SECOND] {
        register(&etcd, Registered { tcp_port: port, ..worker }).await;
    }
    let (code, text, json) = sources(&["--discovery", &etcd.url()]);
    assert_eq!(code, Some(1), "its publishers cannot be reached: {text}");
    for expected in [
        "dynamo/backend: 2 workers, model models/tiny-llama, blocks of 16 tokens, 1,600 blocks each",
        "Request plane  TCP, MessagePack",
        "Event plane    ZeroMQ, a socket for each publisher",
        "Dynamo         1.4 or later",
        "2 workers answer block queries",
        &format!("radixscope serve --discovery {}", etcd.url()),
    ] {
        assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
    }
    assert_eq!(json["pools"][0]["workers"], 2, "{json}");
    assert_eq!(json["topics"][0]["is_received"], false, "{json}");
    assert!(text.contains("ZeroMQ, 2 publishers, not reachable from this machine"), "{text}");
    assert_eq!(json["topics"][1]["is_received"], true, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_names_the_setting_that_is_missing() {
    let etcd = Etcd::start().await;
    // As with a broker that is not registered: sources, and no channels.
    for (key, value) in FIRST.entries().iter().filter(|(key, _)| !key.contains("event_channels")) {
        etcd.put(key, value, None).await;
    }
    let (code, text, json) = sources(&["--discovery", &etcd.url()]);
    assert_eq!((code, json["topics"][0]["is_received"].as_bool()), (Some(1), Some(false)), "{text}");
    assert!(text.contains("--zmq-broker") && text.contains("DYN_ZMQ_BROKER_URL"), "{text}");
    let (code, text, _) = sources(&["--discovery", "etcd://127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("Nothing listens at http://127.0.0.1:1/") && !text.contains("To show it"),
        "{text}"
    );
}
