//! What a store of discovery can do to a server: memory, answers of `/healthz`, and how late the real entries are listed.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use radixscope_tests::discovery::{Folder, Registered, until_status, until_workers};
use radixscope_tests::endless::{Cost, Endless, Flood, cost};
use radixscope_tests::etcd::Etcd;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

use super::{ms, row};

/// Most memory beyond that of an idle server.
const MEMORY: (&str, f64) = ("≤ 64 MB", 64.0);
const HEALTH: (&str, f64) = ("≤ 50 ms", 50.0);
const LISTED: (&str, f64) = ("≤ 5 s", 5.0);
/// Size of a key of others in etcd, which takes at most 1.5 MiB.
const LARGE_BYTES: usize = 1_400_000;
const WORKER: Registered = Registered {
    worker_id: 7_668_682_384_961_603_590,
    publisher_id: 3_916_204_183_855_218,
    zmq_port: 1,
    tcp_port: 1,
};

/// All attacks, each for as long as the store is read, or so long.
pub(super) async fn rows(each: Duration) -> Vec<Value> {
    let mut rows = sparse_files(each).await.to_vec();
    rows.extend(large_keys().await);
    for (flood, name) in [
        (Flood::Pages, "etcd with pages of 40 MB without end"),
        (Flood::OtherKinds, "etcd with changes of other kinds without end"),
        (Flood::Cards, "etcd with model cards without end"),
        (Flood::Lists, "Kubernetes with pages without end"),
        (Flood::List, "Kubernetes with a list without end"),
    ] {
        rows.extend(endless(flood, name, each).await);
    }
    rows
}

async fn serve(url: &str) -> Radixscope {
    Radixscope::start(["serve", "--discovery", url, "--tree-dumps", "off"]).await
}

fn paid(name: &str, cost: Cost) -> [Value; 3] {
    [
        row(&format!("memory beyond idle at most, {name}"), cost.grown_mb, "MB", Some(MEMORY)),
        row(&format!("slowest /healthz, {name}"), ms(cost.slowest_health), "ms", Some(HEALTH)),
        row(&format!("the same of an idle server, {name}"), ms(cost.slowest_idle), "ms", None),
    ]
}

async fn endless(flood: Flood, name: &str, each: Duration) -> [Value; 3] {
    let store = Endless::start(flood).await;
    let server = serve(&store.url()).await;
    until_status(&server, "live", "no Dynamo entries yet").await;
    let ((), cost) = cost(&server, async {
        store.begin();
        tokio::time::sleep(each).await;
    })
    .await;
    paid(name, cost)
}

async fn sparse_files(each: Duration) -> [Value; 3] {
    let folder = Folder::default();
    for (key, value) in WORKER.entries() {
        folder.put(&key, &value);
    }
    let server = serve(&folder.url()).await;
    until_workers(&server, &[(WORKER, None)]).await;
    let path = folder.url().split_once(':').map(|(_, path)| path.to_owned()).expect("file:FOLDER");
    let ((), cost) = cost(&server, async {
        for n in 0..300 {
            let file = fs::File::create(format!("{path}/v1/mdc/aa%2F{n:03}")).expect("a writable folder");
            file.set_len(8 * 1024 * 1024).expect("a sparse file");
            file.set_modified(SystemTime::now() + Duration::from_secs(3_600)).expect("our own file");
        }
        tokio::time::sleep(each).await;
    })
    .await;
    paid("300 sparse files of 8 MiB", cost)
}

/// A server that starts while others keep large keys in etcd, some of them under the prefixes that are read.
async fn large_keys() -> Vec<Value> {
    let name = "etcd with 90 keys of 1.4 MB of others";
    let etcd = Etcd::start().await;
    let large = json!("x".repeat(LARGE_BYTES));
    for n in 0..45 {
        etcd.put(&format!("v1/zz/{n:02}"), &large, None).await;
        etcd.put(&format!("v1/instances/aa/{n:02}"), &large, None).await;
    }
    let idle = serve(&Endless::start(Flood::Pages).await.url()).await;
    until_status(&idle, "live", "no Dynamo entries yet").await;
    let before = idle.process().rss_bytes();
    drop(idle);
    for (key, value) in WORKER.entries() {
        etcd.put(&key, &value, None).await;
    }
    let server = serve(&etcd.url()).await;
    let since = Instant::now();
    let (listed, mut cost) = cost(&server, async {
        until_workers(&server, &[(WORKER, None)]).await;
        since.elapsed()
    })
    .await;
    cost.grown_mb = server.process().peak_rss_bytes().saturating_sub(before) as f64 / 1e6;
    let listed =
        row(&format!("until the real entries are listed, {name}"), listed.as_secs_f64(), "s", Some(LISTED));
    [listed].into_iter().chain(paid(name, cost)).collect()
}
