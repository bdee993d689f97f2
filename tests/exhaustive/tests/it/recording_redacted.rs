//! A recording with pseudonyms: no id and no name of the deployment is anywhere in it, and everything else is as it was.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::Path;

use radixscope_model::id::PoolIx;
use radixscope_recording::{Channel, Recording, Series};
use radixscope_state::cluster::Cluster;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;

fn open(path: &Path) -> Recording<File> {
    Recording::open(File::open(path).expect("a file")).expect("a recording")
}

fn files(folder: &Path) -> Vec<Recording<File>> {
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "mcap"));
    paths.map(|path| open(&path)).collect()
}

/// Everything in a recording, decompressed, and what the file says of itself.
fn bytes(of: Recording<File>) -> Vec<u8> {
    let mut all: Vec<u8> = format!("{:?}", of.meta()).into_bytes();
    let mut series = Series::of(vec![of]).expect("one");
    for channel in Channel::ALL {
        let damaged = series.each(channel, &mut |message| all.extend(message.data));
        assert!(damaged.is_none(), "{damaged:?}");
    }
    all
}

/// An id as it may stand anywhere: in words, in hexadecimal, raw, and as postcard writes numbers.
fn forms(id: u64) -> Vec<Vec<u8>> {
    let mut varint = Vec::new();
    let mut rest = id;
    while rest >= 0x80 {
        varint.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    varint.push(rest as u8);
    vec![id.to_string().into_bytes(), format!("{id:x}").into_bytes(), id.to_le_bytes().to_vec(), varint]
}

/// What the recording must not tell.
fn secrets(cluster: &Cluster) -> BTreeSet<Vec<u8>> {
    let mut secrets = BTreeSet::new();
    for worker in cluster.workers().iter() {
        secrets.extend(forms(worker.id.id.0));
    }
    for router in cluster.routers() {
        secrets.extend(forms(router.id));
    }
    for decided in cluster.decisions().newest_first() {
        secrets.extend(decided.decision.request_id.clone().map(String::into_bytes));
    }
    // Some processes of the simulated cluster have names that say nothing.
    let processes = cluster.processes().iter().map(|process| &process.name);
    let telling = processes.filter(|name| !["dynamo", "frontend"].contains(&name.as_str()));
    secrets.extend(telling.map(|name| name.clone().into_bytes()));
    secrets.extend(cluster.sources().iter().map(|source| source.name.clone().into_bytes()));
    secrets
}

/// Which of the secrets stand somewhere.
fn found<'s>(all: &[u8], secrets: &'s BTreeSet<Vec<u8>>) -> BTreeSet<&'s [u8]> {
    let lengths: BTreeSet<usize> = secrets.iter().map(Vec::len).filter(|&length| length > 0).collect();
    let mut found = BTreeSet::new();
    for length in lengths {
        let wanted: HashSet<&[u8]> =
            secrets.iter().map(Vec::as_slice).filter(|secret| secret.len() == length).collect();
        found.extend(all.windows(length).filter_map(|window| wanted.get(window).copied()));
    }
    found
}

/// What has to be the same: the trees, and what decisions cost and how they went on.
fn figures(cluster: &Cluster) -> (Vec<u64>, Vec<String>, usize) {
    let pools = (0..cluster.pools().len() as u16).map(PoolIx);
    let trees = pools.map(|pool| cluster.tree(pool).digest()).collect();
    let decisions = cluster.decisions().newest_first().map(|decided| {
        let of = &decided.decision;
        format!("{:?} {:?} {:?} {:?} {:?}", of.id, of.worker, of.candidates, of.path, decided.progress)
    });
    (trees, decisions.collect(), cluster.findings().len())
}

fn same(original: Vec<Recording<File>>, redacted: Vec<Recording<File>>) -> (Cluster, Cluster) {
    let fold = |files| Series::of(files).expect("of one").play(&mut |_| {}).expect("a state").cluster;
    let (original, redacted) = (fold(original), fold(redacted));
    assert_eq!(redacted.seq(), original.seq());
    assert!(figures(&redacted) == figures(&original), "trees, decisions and findings are as they were");
    assert!(original.workers().len() > 1 && original.decisions().totals().count > 100);
    (original, redacted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_name_is_left_in_a_redacted_recording_and_all_else_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().expect("a path of ours").to_owned();
    let (plain, at_once) = (text("plain"), text("at-once"));
    let demo = ["demo", "--fault", "kill-worker", "--speed", "10", "--record"];
    for (to, more) in [(&plain, None), (&at_once, Some("--redact"))] {
        let args = demo.into_iter().chain([to.as_str()]).chain(more);
        let mut server = Radixscope::start(args).await;
        wait::until("there is a finding", async || {
            let findings = server.json("/api/v1/findings").await;
            wait::expect(!findings["findings"].as_array().expect("a list").is_empty(), || "none".to_owned())
        })
        .await;
        server.process().terminate();
        server.process_mut().ended().await;
    }

    let copied = Radixscope::run(&["export", &plain, "--recording", &text("copied.mcap")]);
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let redacted = text("redacted.mcap");
    let made = Radixscope::run(&["export", &plain, "--recording", &redacted, "--redact"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let again = Radixscope::run(&["export", &plain, "--recording", &redacted]);
    assert!(!again.status.success(), "a file that exists is not replaced");

    same(files(Path::new(&plain)), vec![open(&path("copied.mcap"))]);
    let (original, named_anew) = same(files(Path::new(&plain)), vec![open(Path::new(&redacted))]);
    let namespaces = named_anew.pools().iter().map(|pool| &pool.namespace);
    assert!(namespaces.filter(|name| !name.is_empty()).all(|name| name.starts_with("namespace-")));
    assert!(open(Path::new(&redacted)).meta().redacted);
    let secrets = secrets(&original);
    let (all, was) = (bytes(open(Path::new(&redacted))), bytes(open(&path("copied.mcap"))));
    let left = found(&all, &secrets);
    assert!(
        left.is_empty(),
        "{:?}",
        left.iter().map(|secret| String::from_utf8_lossy(secret)).collect::<Vec<_>>()
    );
    let there = found(&was, &secrets).len();
    assert!(there > 100, "only {there} of {} would be found", secrets.len());

    // Written with pseudonyms at once it is the same: the simulated cluster has the same ids in every run.
    let workers: BTreeSet<Vec<u8>> =
        original.workers().iter().flat_map(|worker| forms(worker.id.id.0)).collect();
    for file in files(Path::new(&at_once)) {
        assert!(file.meta().redacted);
        let all = bytes(file);
        assert!(found(&all, &workers).is_empty(), "an id of a worker");
        let pseudonym = BTreeSet::from([b"simulator-".to_vec()]);
        assert_eq!(found(&all, &pseudonym).len(), 1, "the source has one");
    }
    let replay = Radixscope::start(["replay", &redacted]).await;
    assert_eq!(replay.cluster().await["workers"].as_array().map(Vec::len), Some(original.workers().len()));
}
