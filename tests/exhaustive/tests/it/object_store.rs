//! Recordings in object storage: a real server that speaks S3, which is slow, full or away, and writers that are killed.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use radixscope_exhaustive::object_store::{BUCKET, ObjectStore, StoreMode, StoreProxy, as_given};
use radixscope_exhaustive::object_store::{downloaded, end, files_in, recorder, until_recording};
use radixscope_model::id::Millis;
use radixscope_recording::{Channel, Meta, Recording, Series, Writer};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Memory that storing may take: parts of files, and what allocators keep.
const MORE_MEMORY: u64 = 64 << 20;

fn number(of: &Value, name: &str) -> u64 {
    of["stored"][name].as_u64().unwrap_or_else(|| panic!("{name} in {of}"))
}

/// The state and the decisions that a replay shows.
async fn replayed(args: &[&str], variables: &[(&'static str, String)]) -> (Value, Value, String) {
    let args = [&["replay"], args].concat();
    let server = Radixscope::start_with_variables(&args, &as_given(variables)).await;
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;
    let mut cluster = server.cluster().await;
    // Of this process, not of the recording.
    for field in ["history", "version", "started_ms", "viewers", "uptime_ms"] {
        cluster.as_object_mut().expect("an object").remove(field);
    }
    let decisions = server.json("/api/v1/decisions?limit=10000").await;
    (cluster, decisions, server.process().output())
}

/// A number that a line of the log has.
fn logged(output: &str, name: &str) -> u64 {
    let (_, rest) = output.rsplit_once(&format!("{name}=")).unwrap_or_else(|| panic!("{name} in {output}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_recorder_loses_and_doubles_nothing_that_was_stored_and_replays_are_the_same() {
    let store = ObjectStore::start().await;
    let buffer = tempfile::tempdir().expect("a folder");
    let variables = store.variables();
    let mut server = recorder("cluster=a", buffer.path(), &variables, "10", &[]).await;
    let said = until_recording(&server, "two files are stored", |recording| {
        recording["stored"]["objects"].as_u64() >= Some(4)
    })
    .await;
    server.kill();
    let before = store.objects("cluster=a").await;
    assert!(before.len() as u64 >= number(&said, "objects"), "{before:?}");
    let folder = downloaded(&store, "cluster=a").await;
    let open = |path: &Path| Recording::open(File::open(path).expect("a file")).expect("a recording");
    let opened: Vec<_> = files_in(folder.path(), "mcap").iter().map(|path| open(path)).collect();
    let (_, end_ms) = Series::of(opened).expect("of one recording").range();
    assert!(end_ms.0 >= number(&said, "until_ms"), "{end_ms} {said}");

    let mut server = recorder("cluster=a", buffer.path(), &variables, "10", &[]).await;
    until_recording(&server, "what was left is stored", |recording| {
        recording["stored"]["objects"].as_u64() >= Some(2) && recording["stored"]["waiting_files"] == 0
    })
    .await;
    let output = end(&mut server).await;
    assert!(!output.contains(&variables[4].1), "the secret is not shown");
    assert_eq!(files_in(buffer.path(), "mcap").len(), 1, "the last one stays, to resume from");
    assert_eq!(files_in(buffer.path(), "rows").len(), 0);

    let after = store.objects("cluster=a").await;
    assert!(before.iter().all(|object| after.contains(object)), "{before:?} {after:?}");
    let folder = downloaded(&store, "cluster=a").await;
    let mut opened: Vec<_> = files_in(folder.path(), "mcap").iter().map(|path| open(path)).collect();
    opened.sort_by_key(|file| file.range());
    for pair in opened.windows(2) {
        let [before, after] = pair else { unreachable!("two of them") };
        assert!(before.range().expect("a state").1 <= after.range().expect("a state").0, "nothing is twice");
    }
    // Each run of the server is whole up to the second before it was killed.
    let mut series = Series::of(opened).expect("of one recording");
    assert_eq!(series.play(&mut |_| {}).expect("it can be read").missing, 0);

    let local = replayed(&[folder.path().to_str().expect("a path of ours")], &[]).await;
    let remote = replayed(&[&format!("s3://{BUCKET}/cluster=a")], &variables).await;
    assert_eq!(remote.0, local.0);
    assert_eq!(remote.1, local.1);

    // A jump: the state of one moment, in the middle.
    let (from_ms, to_ms) = series.range();
    let moment = (from_ms.0 + to_ms.0) / 2;
    let jump = [format!("s3://{BUCKET}/cluster=a"), "--from".to_owned(), moment.to_string()];
    let jump = [&jump[..], &["--to".to_owned(), (moment + 1).to_string()]].concat();
    let jump: Vec<_> = jump.iter().map(String::as_str).collect();
    let (cluster, _, output) = replayed(&jump, &variables).await;
    assert!(
        cluster["at_ms"].as_u64().is_some_and(|at| at.abs_diff(moment) <= 1_000),
        "{moment} {}",
        cluster["at_ms"]
    );
    let stored: u64 = after.iter().filter(|(name, _)| name.ends_with("mcap")).map(|(_, bytes)| bytes).sum();
    let fetched = logged(&output, "fetched_bytes");
    eprintln!("a jump fetched {fetched} of {stored} bytes");
    assert!(fetched < stored / 2, "{fetched} of {stored}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_recorders_with_one_prefix_do_not_meet() {
    let store = ObjectStore::start().await;
    let buffers = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let variables = store.variables();
    let mut servers = [
        recorder("both", buffers[0].path(), &variables, "10", &[]).await,
        recorder("both", buffers[1].path(), &variables, "10", &[]).await,
    ];
    let mut stored = 0;
    for server in &mut servers {
        until_recording(server, "a file is stored", |recording| {
            recording["stored"]["objects"].as_u64() >= Some(2)
        })
        .await;
        end(server).await;
        stored += 1;
    }
    let objects = store.objects("both/recordings").await;
    let mut folders: Vec<_> =
        objects.iter().filter_map(|(name, _)| name.rsplit_once('/')).map(|(folder, _)| folder).collect();
    folders.dedup();
    assert_eq!(folders.len(), stored, "{objects:?}");
    let run = |at: &str| {
        let mut command = Radixscope::command();
        command.args(["export", at, "--decisions", "csv"]).envs(store.variables());
        command.output().expect("the program can be started")
    };
    let refused = run(&format!("s3://{BUCKET}/both"));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("2 recordings are under"), "{said}");
    for folder in folders {
        assert!(said.contains(folder), "{said}");
        let exported = run(&format!("s3://{BUCKET}/{folder}"));
        assert!(
            exported.status.success() && exported.stdout.len() > 1_000,
            "{}",
            String::from_utf8_lossy(&exported.stderr)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_and_a_full_store_are_told_in_words_and_lose_nothing() {
    const WRONG: &str = "not-the-secret-of-the-writer";
    let store = ObjectStore::start().await;
    let proxy = StoreProxy::start(store.port()).await;
    let buffer = tempfile::tempdir().expect("a folder");
    let mut variables = store.variables_at(proxy.port());
    WRONG.clone_into(&mut variables[4].1);
    let mut server = recorder("words", buffer.path(), &variables, "10", &[]).await;
    let recording = until_recording(&server, "the credentials are refused, and files wait", |recording| {
        !recording["error"].is_null() && recording["stored"]["waiting_files"].as_u64() >= Some(2)
    })
    .await;
    let error = recording["error"].as_str().expect("text");
    assert!(
        error.contains("the credentials are wrong") && error.contains("AWS_SECRET_ACCESS_KEY"),
        "{error}"
    );
    let output = end(&mut server).await;
    assert!(!output.contains(WRONG), "the secret is not shown");
    assert!(output.contains("not everything recorded is stored"), "{output}");
    let attempts = output.lines().filter(|line| line.contains("storing the recording failed")).count();
    // Twice as late each time: a second and the third within some seconds.
    assert!((1..=4).contains(&attempts), "{attempts} attempts: {output}");
    assert_eq!(store.objects("words").await, []);

    let variables = store.variables_at(proxy.port());
    proxy.set(StoreMode::Full);
    let mut server = recorder("words", buffer.path(), &variables, "10", &[]).await;
    let recording = until_recording(&server, "it is full", |recording| !recording["error"].is_null()).await;
    let error = recording["error"].as_str().expect("text");
    assert!(error.contains("the store is full"), "{error}");
    proxy.set(StoreMode::Normal);
    let recording = until_recording(&server, "everything is stored", |recording| {
        recording["error"].is_null() && recording["stored"]["waiting_files"] == 0
    })
    .await;
    assert_eq!((number(&recording, "lost_files"), recording["gaps"].as_u64()), (0, Some(0)));
    end(&mut server).await;

    let mut command = Radixscope::command();
    command.args(["check", "s3://nowhere/words"]).envs(store.variables());
    let refused = command.output().expect("the program can be started");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("there is no such bucket"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_trickles_delays_nothing_and_takes_no_memory() {
    let store = ObjectStore::start().await;
    let proxy = StoreProxy::start(store.port()).await;
    proxy.set(StoreMode::Trickle(20_000));
    let buffer = tempfile::tempdir().expect("a folder");
    let more = ["--record-max-size", "16MiB", "--history-mib", "16"];
    // What the same cluster takes without a store.
    let disk = tempfile::tempdir().expect("a folder");
    let args = ["demo", "--warm-up", "20", "--speed", "100", "--record"];
    let args = [&args[..], &[disk.path().to_str().expect("a path of ours")], &more].concat();
    let usual = Radixscope::start(args).await;
    let server = recorder("slow", buffer.path(), &store.variables_at(proxy.port()), "100", &more).await;
    let recording = until_recording(&server, "the buffer was full", |recording| {
        recording["stored"]["lost_files"].as_u64() >= Some(3)
    })
    .await;
    let on_disk: u64 = std::fs::read_dir(buffer.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").metadata().map_or(0, |of| of.len()))
        .sum();
    assert!(on_disk <= 17 << 20, "{on_disk} bytes in the buffer");
    let viewer = server.viewer().await;
    viewer.agrees_with(&server).await;
    let seq = server.cluster().await["seq"].as_u64();
    usual
        .until_cluster("the usual one is as far", |cluster| {
            wait::expect(cluster["seq"].as_u64() >= seq, || format!("{} of {seq:?}", cluster["seq"]))
        })
        .await;
    let (peak, usual) = (server.process().peak_rss_bytes(), usual.process().peak_rss_bytes());
    eprintln!("peak memory {peak}, without a store {usual}; {recording}; {on_disk} bytes in the buffer");
    assert!(peak < usual + MORE_MEMORY, "{peak} {usual}");
    assert_eq!(recording["gaps"], 0, "what is shown and the disk are not delayed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_file_is_stored_in_parts() {
    const BYTES: u64 = 256 << 20;
    let store = ObjectStore::start().await;
    let buffer = tempfile::tempdir().expect("a folder");
    let path = buffer.path().join("radixscope-1800000000000.mcap");
    let (by, sources) = ("test".to_owned(), String::new());
    let meta = Meta { by, epoch: 1, recording: 0xabc, began_ms: 1_800_000_000_000, sources, redacted: false };
    let mut writer = Writer::new(std::io::BufWriter::new(File::create(&path).expect("a file")), &meta)
        .expect("a recording");
    let mut state = 1_u64;
    while writer.len_bytes() < BYTES {
        // Nothing that compresses.
        let data: Vec<u8> = (0..64 << 10)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as u8
            })
            .collect();
        writer.message(Channel::Findings, Millis(1_800_000_000_000), &data).expect("it can be written");
    }
    drop(writer.finish().expect("it can be written"));
    let len = std::fs::metadata(&path).expect("a file").len();
    let since = Instant::now();
    let server = recorder("large", buffer.path(), &store.variables(), "1", &[]).await;
    let started = since.elapsed();
    until_recording(&server, "it is stored", |recording| recording["stored"]["waiting_files"] == 0).await;
    let took = (since.elapsed() - started).as_secs_f64();
    eprintln!(
        "{len} bytes in {took:.1} s: {:.0} MB/s; peak memory {}",
        len as f64 / took / 1e6,
        server.process().peak_rss_bytes()
    );
    let objects = store.objects("large/recordings").await;
    let name = "large/recordings/0000000000000abc/radixscope-1800000000000.mcap".to_owned();
    assert!(objects.contains(&(name, len)), "{objects:?}");
}
