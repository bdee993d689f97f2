//! Stores of discovery that hold or send more than anybody can use: the workers are there nevertheless, memory stays bounded, and
//! what was left out is reported.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tempfile::TempDir;

use radixscope_exhaustive::kubernetes::Kubernetes;
use radixscope_tests::discovery::{Registered, file_name, until_status, until_workers};
use radixscope_tests::endless::{Cost, Endless, Flood, cost};
use radixscope_tests::etcd::Etcd;
use radixscope_tests::figures;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

/// Until a list is cut, hundreds of megabytes pass through a server without optimisation, beside other tests.
const FLOOD_BOUND: Duration = Duration::from_secs(240);
/// Most memory that a store of discovery may cost.
const MAX_GROWN_MB: f64 = 64.0;
const WORKER: Registered = Registered {
    worker_id: 7_668_682_384_961_603_590,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 34_549,
    tcp_port: 41_413,
};

async fn serve(url: &str) -> Radixscope {
    Radixscope::start(["serve", "--discovery", url, "--tree-dumps", "off"]).await
}

fn assert_bounded(cost: Cost) {
    assert!(cost.grown_mb <= MAX_GROWN_MB, "{cost:?}");
}

/// Runs a server against an endless store, and expects this state and detail at a bounded cost.
async fn assert_flood_is_bounded(flood: Flood, state: &str, detail: &str) {
    let store = Endless::start(flood).await;
    let server = serve(&store.url()).await;
    until_status(&server, "live", "no Dynamo entries yet").await;
    let (_, paid) = cost(&server, async {
        store.begin();
        wait::until_within(FLOOD_BOUND, &format!("discovery is {state}: {detail}"), async || {
            let cluster = server.cluster().await;
            let source = &cluster["sources"][0];
            let is_there =
                source["state"] == state && source["detail"].as_str().is_some_and(|of| of.contains(detail));
            wait::expect(is_there, || source.to_string())
        })
        .await;
    })
    .await;
    assert_bounded(paid);
}

/// Waits until so many inputs are counted as too large.
async fn until_too_large(server: &Radixscope, expected: u64) {
    server
        .until_cluster("what is skipped is counted", |cluster| {
            let rejected = cluster["sources"][0]["rejected"].as_array().expect("a list");
            let too_large = rejected.iter().filter(|row| row["reason"] == "too_large");
            let count: u64 = too_large.map(|row| figures::number(row, "count")).sum();
            wait::expect(count == expected, || format!("{count} instead of {expected}"))
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_keys_of_others_in_etcd_are_skipped_and_named() {
    let etcd = Etcd::start().await;
    let large = json!("x".repeat(1_400_000));
    for n in 0..45 {
        etcd.put(&format!("v1/zz/{n:02}"), &large, None).await;
        etcd.put(&format!("v1/mdc/aa/{n:02}"), &large, None).await;
    }
    for (key, value) in WORKER.entries() {
        etcd.put(&key, &value, None).await;
    }
    let server = serve(&etcd.url()).await;
    until_workers(&server, &[(WORKER, None)]).await;
    let text = ": 5 Dynamo entries";
    let cluster = until_status(&server, "live", text).await;
    let skipped = "45 keys skipped, the first: v1/mdc/aa/00 (1.4 MB, more than 64 KiB).";
    assert!(cluster["sources"][0]["detail"].as_str().expect("words").ends_with(skipped), "{cluster}");
    until_too_large(&server, 45).await;
    // One of them becomes an entry, one goes, one comes.
    etcd.put("v1/mdc/aa/00", &json!({"type": "Other"}), None).await;
    etcd.delete("v1/mdc/aa/01").await;
    etcd.delete("v1/mdc/aa/02").await;
    etcd.put("v1/mdc/ab", &large, None).await;
    until_status(&server, "live", ": 6 Dynamo entries").await;
    until_status(&server, "live", "43 keys skipped").await;
    etcd.delete("v1/mdc/aa/00").await;
    until_status(&server, "live", ": 5 Dynamo entries").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_etcd_without_end_are_cut() {
    assert_flood_is_bounded(Flood::Pages, "live", "The list was cut after").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_other_kinds_in_etcd_are_not_held() {
    let etcd = Endless::start(Flood::OtherKinds).await;
    let server = serve(&etcd.url()).await;
    until_status(&server, "live", "no Dynamo entries yet").await;
    let ((), paid) = cost(&server, async {
        etcd.begin();
        etcd.until_sent(400_000).await;
    })
    .await;
    assert_bounded(paid);
    until_status(&server, "live", "no Dynamo entries yet").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_entries_than_may_be_followed_are_counted() {
    assert_flood_is_bounded(Flood::Cards, "live", "beyond 40,000 entries or 24 MiB").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_kubernetes_without_end_are_cut() {
    for flood in [Flood::Lists, Flood::List] {
        assert_flood_is_bounded(flood, "refused", "The list was cut after").await;
    }
}

#[tokio::test]
async fn a_large_entry_of_kubernetes_is_skipped_and_named() {
    let api = Kubernetes::start().await;
    for (key, value) in WORKER.entries() {
        api.put("agg-worker-0", &key, &value);
    }
    api.put("agg-worker-0", "v1/mdc/dynamo/backend/generate/aa", &json!("x".repeat(100_000)));
    api.set_all_ready();
    let server = serve(&api.url()).await;
    until_workers(&server, &[(WORKER, None)]).await;
    let skipped = "1 key skipped: v1/mdc/dynamo/backend/generate/aa (100 kB, more than 64 KiB).";
    until_status(&server, "live", skipped).await;
    until_too_large(&server, 1).await;
    api.remove("agg-worker-0", "v1/mdc/dynamo/backend/generate/aa");
    server
        .until_cluster("nothing is skipped", |cluster| {
            let detail = cluster["sources"][0]["detail"].as_str().expect("words");
            wait::expect(!detail.contains("skipped"), || detail.to_owned())
        })
        .await;
}

/// Writes the worker's files, which need no renewal while a test runs.
fn write(folder: &Path) {
    for (key, value) in WORKER.entries() {
        let path = folder.join(file_name(&key));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        fs::write(&path, value.to_string()).expect("a writable folder");
        let file = fs::File::options().append(true).open(&path).expect("the file");
        file.set_modified(SystemTime::now() + Duration::from_secs(3_600)).expect("our own file");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_files_are_not_read() {
    let folder = TempDir::new().expect("a writable folder");
    write(folder.path());
    let server = serve(&format!("file:{}", folder.path().display())).await;
    until_workers(&server, &[(WORKER, None)]).await;
    let (_, paid) = cost(&server, async {
        for n in 0..300 {
            let file = fs::File::create(folder.path().join(format!("v1/mdc/aa%2F{n:03}")))
                .expect("a writable folder");
            file.set_len(8 * 1024 * 1024).expect("a sparse file");
            file.set_modified(SystemTime::now() + Duration::from_secs(3_600)).expect("our own file");
        }
        until_status(
            &server,
            "live",
            "300 keys skipped, the first: v1/mdc/aa/000 (8.4 MB, more than 64 KiB).",
        )
        .await
    })
    .await;
    assert_bounded(paid);
    until_too_large(&server, 300).await;
    until_workers(&server, &[(WORKER, None)]).await;
}
