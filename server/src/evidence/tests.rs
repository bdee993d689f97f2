//! Recorded files of real Dynamo and aiperf, in folders and archives, and what can be wrong with them.

#[cfg(feature = "parquet")]
mod tachometer;

use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use radixscope_captures::Recording as Captured;
use radixscope_dynamo::subject;
use radixscope_intake::Payload;
use radixscope_model::id::{Millis, Worker, WorkerIx};
use radixscope_model::record::{DecisionSource, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry, WorkerState};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

use super::timeline::{Source, Timeline};
use super::*;

const MAX_BYTES: u64 = 1 << 30;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(path)
}

fn traces() -> Vec<u8> {
    fs::read(fixture("traces/1.7.0.dev20261026/dynamo-request-trace.000000.jsonl.gz")).unwrap()
}

fn client_log() -> Vec<u8> {
    fs::read(fixture("aiperf/0.13.0/frontend.log")).unwrap()
}

fn client_results() -> Vec<u8> {
    fs::read(fixture("aiperf/0.13.0/profile_export.jsonl")).unwrap()
}

fn unpacked(bytes: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Files by name.
type Files = Vec<(String, Vec<u8>)>;

fn named(files: &[(&str, Vec<u8>)]) -> Files {
    files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect()
}

/// A run with aiperf: the frontend's log, and what its client measured.
fn client_run() -> Files {
    named(&[
        ("run/logs/frontend.log", client_log()),
        ("run/benchmark/profile_export.jsonl", client_results()),
    ])
}

fn folder(files: &Files) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

fn tar(files: &Files) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        // Written as it is: the library refuses names that lead out of a folder.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mtime(1_795_762_400);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append(&header, bytes.as_slice()).unwrap();
    }
    archive.into_inner().unwrap()
}

fn zip(files: &Files) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// What comes of paths in a folder.
fn open_in(folder: &TempDir, paths: &[&str], run: Option<u32>) -> anyhow::Result<(Cluster, String)> {
    let paths = paths.iter().map(|path| folder.path().join(path)).collect();
    let options = Options { paths, run, max_bytes: MAX_BYTES, checks: Checks::default(), save: None };
    let Opened { mut series, report, .. } = open(options, &|| false)?;
    let (_, to) = series.range();
    let folded = series.state_at(to)?;
    assert!(folded.damaged.is_none() && folded.missing == 0);
    Ok((folded.cluster, report.to_string()))
}

fn opened(files: &Files) -> (Cluster, String) {
    open_in(&folder(files), &[""], None).unwrap()
}

/// Why nothing comes of paths in a folder.
fn refused(folder: &TempDir, path: &str, run: Option<u32>) -> String {
    match open_in(folder, &[path], run) {
        Ok((_, report)) => panic!("it opens:\n{report}"),
        Err(error) => format!("{error:#}"),
    }
}

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} in:\n{text}"));
}

#[test]
fn summaries_of_runs_are_baselines_to_compare_with() {
    let sweep = fixture("aiperf/0.13.0-sweep/kv");
    let alone = folder(&client_run());
    let paths = vec![sweep, alone.path().join("run")];
    let options = Options { paths, run: None, max_bytes: MAX_BYTES, checks: Checks::default(), save: None };
    let Opened { report, baselines, .. } = open(options, &|| false).unwrap();
    let [baseline] = &baselines[..] else { panic!("{baselines:?}\n{report}") };
    let levels: Vec<_> = baseline.rows().iter().map(|row| (row.concurrency, row.runs.finished)).collect();
    assert_eq!((baseline.name(), levels), ("kv", vec![(4.0, Some(2)), (8.0, Some(2)), (16.0, Some(2))]));
    contains(&report.to_string(), &["summary of runs; baseline kv in Compare"]);
    assert_eq!(sweep_folder("a/b/phases/warmup/profile_export_aiperf.json"), None);
    assert_eq!(sweep_folder("a/profile_runs/trial_0001/concurrency_4/x.json"), Some("a"));
    assert_eq!((sweep_folder("a/b/x.json"), sweep_folder("x.json")), (Some("a/b"), Some("")));
}

#[test]
fn a_log_and_what_its_client_measured_are_joined_whatever_they_lie_in() {
    let files = client_run();
    let alone = folder(&files);
    let packed = folder(&named(&[
        ("run.tar", tar(&files)),
        ("run.tar.gz", gzip(&tar(&files))),
        ("run.zip", zip(&files)),
        ("odd-name", gzip(&tar(&files))),
    ]));
    let expected = open_in(&alone, &["run"], None).unwrap();
    assert_eq!(expected.0.decisions().totals().count, 3);
    assert_eq!((expected.0.clients().joined(), expected.0.clients().unknown()), (3, 0));
    contains(
        &expected.1,
        &[
            "run/logs/frontend.log: log, 9 records read",
            "run/benchmark/profile_export.jsonl: client results, 4 records read",
            "clock agrees",
            "Client results: 3 joined",
            "request traces (DYN_REQUEST_TRACE=1",
            "KV events are in no file of Dynamo",
        ],
    );
    for path in ["run.tar", "run.tar.gz", "run.zip", "odd-name"] {
        let (cluster, report) = open_in(&packed, &[path], None).unwrap();
        assert_eq!(cluster.decisions().totals(), expected.0.decisions().totals(), "{path}");
        assert_eq!(cluster.clients(), expected.0.clients(), "{path}");
        contains(&report, &[&format!("{path}!run/logs/frontend.log: log, 9 records read")]);
    }
    let mix = ["run/logs/frontend.log", "run/benchmark"];
    assert_eq!(open_in(&alone, &mix, None).unwrap().0.clients().joined(), 3);
}

#[test]
fn every_request_of_a_trace_is_a_decision_and_a_truncated_one_gives_what_it_has() {
    let whole = traces();
    let lines = unpacked(&whole).lines().count();
    let (cluster, report) = opened(&named(&[("traces/a.jsonl.gz", whole.clone())]));
    assert_eq!(cluster.decisions().totals().count as usize, lines);
    assert!(cluster.decisions().newest_first().all(|entry| entry.is_from(DecisionSource::RequestTrace)));
    assert!(cluster.decisions().newest_first().all(|entry| entry.progress.cached_tokens.is_some()));
    contains(&report, &[&format!("{lines} records read")]);

    let (cluster, report) = opened(&named(&[("traces/a.jsonl.gz", whole[..whole.len() / 2].to_vec())]));
    let read = cluster.decisions().totals().count as usize;
    assert!(read > 0 && read < lines, "{read}");
    contains(&report, &["the gzip data ends early", "1 not understood"]);
}

#[test]
fn logs_and_metrics_of_a_recorded_deployment_say_what_they_say_live() {
    let capture = Captured::fixture("1.6.1-healthy");
    let mut files = Files::new();
    for process in capture.logs() {
        let text: String = capture.log(&process).map(|line| line + "\n").collect();
        files.push((format!("logs/{process}.log.gz"), gzip(text.as_bytes())));
    }
    let mut processes = 0;
    for scrape in capture.scrapes() {
        let name = format!("metrics/{}-{}.prom", scrape.process, (scrape.at_s * 1_000.0) as u64);
        files.push((name, scrape.text.into_bytes()));
        processes += 1;
    }
    assert!(processes > 10);
    let (cluster, report) = opened(&files);
    let requests = capture.log("frontend").filter(|line| line.contains("request received")).count() as u64;
    assert_eq!(cluster.decisions().totals().count, requests);
    let names: Vec<&str> = cluster.processes().iter().map(|process| process.name.as_str()).collect();
    assert!(names.contains(&"frontend") && names.contains(&"worker1"), "{names:?}");
    contains(&report, &["metrics", "time by its name, process frontend"]);
    assert_eq!(cluster.findings().iter().filter(|f| f.code == "source_down").count(), 0);
}

#[test]
fn a_clock_that_is_an_hour_ahead_is_found_and_put_right() {
    let hour_ns = 3_600_000_000_000_u64;
    let mut late = String::new();
    for line in String::from_utf8(client_results()).unwrap().lines() {
        let mut record: serde_json::Value = serde_json::from_str(line).unwrap();
        for field in ["request_start_ns", "request_end_ns"] {
            let at = record["metadata"][field].as_u64().unwrap();
            record["metadata"][field] = (at + hour_ns).into();
        }
        late += &format!("{record}\n");
    }
    let files = named(&[("a/frontend.log", client_log()), ("a/profile_export.jsonl", late.into_bytes())]);
    let (cluster, report) = opened(&files);
    contains(
        &report,
        &["clock 3,600 s ahead, put right", "by 3 requests in common", "Run: 2026-11-27 06:53"],
    );
    assert!(!report.contains("--run"), "{report}");
    assert_eq!(cluster.clients().joined(), 3);
    let (right, _) = opened(&client_run());
    let sent = |cluster: &Cluster| -> Vec<Millis> {
        cluster.decisions().newest_first().map(|entry| entry.client.unwrap().sent_ms).collect()
    };
    let differences: Vec<u64> =
        sent(&cluster).iter().zip(sent(&right)).map(|(one, other)| one.0.abs_diff(other.0)).collect();
    assert!(differences.iter().all(|&ms| ms < 1_000), "{differences:?}");
}

#[test]
fn of_two_runs_in_one_folder_the_last_is_shown_and_the_first_can_be() {
    let mut files = client_run();
    files.push(("old/traces.jsonl.gz".to_owned(), traces()));
    let both = folder(&files);
    let (cluster, report) = open_in(&both, &[""], None).unwrap();
    assert_eq!(cluster.decisions().totals().count, 3);
    contains(&report, &["2 runs", "(--run 1)", "(shown)", "22 records of other runs left out"]);
    let (cluster, report) = open_in(&both, &[""], Some(1)).unwrap();
    assert_eq!(cluster.decisions().totals().count, 22);
    contains(&report, &["(--run 2)"]);
    let error = refused(&both, "", Some(3));
    assert_eq!(error, "--run 3: there are 2 runs");
}

/// Ids of requests, the latest decision first.
fn requests(cluster: &Cluster) -> Vec<String> {
    cluster.decisions().newest_first().map(|entry| entry.decision.request_id.clone().unwrap()).collect()
}

#[test]
fn lines_of_a_file_may_come_in_any_order() {
    let text = unpacked(&traces());
    let (right, _) = opened(&named(&[("t/traces.jsonl", text.clone().into_bytes())]));
    let reversed: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    let (other, _) = opened(&named(&[("t/traces.jsonl", reversed.into_bytes())]));
    assert_eq!(right.decisions().totals(), other.decisions().totals());
    let (mut one, mut two) = (requests(&right), requests(&other));
    one.sort();
    two.sort();
    assert_eq!(one, two);
    // As if two processes wrote one after the other into one file: in the order of their times again.
    let lines: Vec<&str> = text.lines().collect();
    let halves: String = lines[11..].iter().chain(&lines[..11]).map(|line| format!("{line}\n")).collect();
    let (other, _) = opened(&named(&[("t/traces.jsonl", halves.into_bytes())]));
    assert_eq!(requests(&other), requests(&right));
}

#[test]
fn a_pause_of_minutes_does_not_end_a_run_and_costs_no_rows() {
    let mut text = String::new();
    for (at, line) in unpacked(&traces()).lines().enumerate() {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        let pause_ms = if at < 11 { 0 } else { 9 * 60_000 };
        let event = &mut line["event"];
        event["event_time_unix_ms"] = (event["event_time_unix_ms"].as_u64().unwrap() + pause_ms).into();
        let received = &mut event["request"]["request_received_ms"];
        *received = (received.as_u64().unwrap() + pause_ms).into();
        text += &format!("{line}\n");
    }
    let place = folder(&named(&[("t/traces.jsonl", text.into_bytes())]));
    let paths = vec![place.path().to_owned()];
    let options = Options { paths, run: None, max_bytes: MAX_BYTES, checks: Checks::default(), save: None };
    let Opened { mut series, report, .. } = open(options, &|| false).unwrap();
    contains(&report.to_string(), &["Run: 2026-11-26 15:05:50 to 15:14:55 UTC", "Decisions: 22"]);
    let mut rows = 0;
    let damaged = series.each(radixscope_recording::Channel::Timeline, &mut |_| rows += 1);
    assert!(damaged.is_none() && (300..330).contains(&rows), "{rows}");
}

#[test]
fn nothing_is_written_under_a_name_of_an_archive() {
    let odd = "../../escaped.log";
    let mut files = client_run();
    files.push((odd.to_owned(), client_log()));
    files.push(("/absolute.log".to_owned(), client_log()));
    files.push(("bell\u{7}\u{1b}[2J.log".to_owned(), client_log()));
    let place = folder(&named(&[("a/b/run.tar", tar(&files)), ("a/b/run.zip", zip(&files))]));
    for path in ["a/b/run.tar", "a/b/run.zip"] {
        let (_, report) = open_in(&place, &[path], None).unwrap();
        contains(&report, &["../../escaped.log: log", "/absolute.log: log", "bell\\u{7}\\u{1b}[2J.log: log"]);
        assert!(!report.contains('\u{1b}'));
    }
    let mut left: Vec<_> =
        fs::read_dir(place.path().join("a/b")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["run.tar", "run.zip"]);
    assert!(!place.path().join("escaped.log").exists() && !Path::new("/absolute.log").exists());
}

#[test]
fn long_names_in_tar_are_read_and_endless_ones_are_not() {
    let log = client_log();
    let entry = |kind: tar::EntryType, size: usize| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size as u64);
        header.set_mode(0o644);
        header.set_path("short.log").unwrap();
        header.set_cksum();
        header
    };
    let mut archive = tar::Builder::new(Vec::new());
    let name = format!("{}/gnu.log", "a".repeat(120));
    archive.append_data(&mut entry(tar::EntryType::Regular, log.len()), &name, log.as_slice()).unwrap();
    archive.append_pax_extensions([("path", "pax/x.log".as_bytes())]).unwrap();
    archive.append(&entry(tar::EntryType::Regular, log.len()), log.as_slice()).unwrap();
    let endless = vec![b'b'; 3 << 20];
    archive.append(&entry(tar::EntryType::GNULongName, endless.len()), endless.as_slice()).unwrap();
    archive.append(&entry(tar::EntryType::Regular, log.len()), log.as_slice()).unwrap();
    let place = folder(&named(&[("names.tar", archive.into_inner().unwrap())]));
    let (_, report) = open_in(&place, &["names.tar"], None).unwrap();
    contains(&report, &["aaa/gnu.log: log, 9", "names.tar!pax/x.log: log, 9", "bbb…: log, 9"]);
}

#[test]
fn links_are_not_followed() {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    archive.append_link(&mut header, "logs/passwords.log", "/etc/passwd").unwrap();
    let mut files = client_run();
    files.push(("run/links.tar".to_owned(), archive.into_inner().unwrap()));
    let place = folder(&files);
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/passwd", place.path().join("run/passwords.log")).unwrap();
    let (cluster, report) = open_in(&place, &["run"], None).unwrap();
    assert_eq!(cluster.decisions().totals().count, 3);
    contains(
        &report,
        &["links.tar!logs/passwords.log: not read; a link, a device or a sparse file in an archive"],
    );
    #[cfg(unix)]
    contains(&report, &["run/passwords.log: not read; a symbolic link"]);
}

#[test]
fn bombs_end_in_words() {
    let line = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
    let long = line.repeat(24);
    let mut files = client_run();
    files.push(("run/bomb.log.gz".to_owned(), gzip(&long)));
    let (cluster, report) = opened(&files);
    assert_eq!(cluster.clients().joined(), 3);
    contains(&report, &["bomb.log.gz", "as only a decompression bomb does"]);

    // Within a zip, and a limit that is used up: what was read before counts.
    let inner = named(&[("a/frontend.log", client_log()), ("b/bomb.log", long)]);
    let place = folder(&named(&[("run.zip", zip(&inner))]));
    let (cluster, report) = open_in(&place, &["run.zip"], None).unwrap();
    assert_eq!(cluster.decisions().totals().count, 3);
    contains(&report, &["as only a decompression bomb does"]);
    let options = Options {
        paths: vec![place.path().join("run.zip")],
        run: None,
        max_bytes: 1 << 20,
        checks: Checks::default(),
        save: None,
    };
    let report = open(options, &|| false).unwrap().report.to_string();
    contains(&report, &["b/bomb.log: text, 1 line", "(--max-size); the rest is not read"]);
}

/// Why a Parquet file that is cut off is not read.
const NO_PARQUET: &str = match cfg!(feature = "parquet") {
    true => "final.parquet: not read; Parquet that cannot be read: ",
    false => "final.parquet: not read; Parquet: this binary was built without the cargo feature parquet, ",
};

#[test]
fn what_is_no_evidence_is_listed_with_the_reason() {
    let mut files = client_run();
    files.extend(named(&[
        ("run/metrics/final.parquet", b"PAR1\x15\x04\x15\x10".to_vec()),
        (
            "run/benchmark/profile_export_aiperf.json",
            b"{\"schema_version\":\"1.4\",\"input_config\":{}}".to_vec(),
        ),
        ("run/empty.log", Vec::new()),
        ("run/picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        ("run/notes.txt", b"we restarted it\n".to_vec()),
        ("run/nested.zip.gz", gzip(&zip(&client_run()))),
        ("run/inner.tar", tar(&named(&[("a.tar", tar(&client_run()))]))),
    ]));
    let (_, report) = opened(&files);
    contains(
        &report,
        &[
            NO_PARQUET,
            "profile_export_aiperf.json: summary of runs; this JSON is none of aiperf's",
            "empty.log: not read; empty",
            "picture.png: not read; binary",
            "notes.txt: text, 1 line of which none is about routing",
            "nested.zip.gz: not read; a zip archive within gzip",
            "inner.tar!a.tar: not read; packed within what is packed",
        ],
    );
    let error = refused(&folder(&named(&[("x/a.txt", b"nothing\n".to_vec())])), "x", None);
    contains(&error, &["no evidence", "a.txt: text, 1 line"]);
    let error = refused(&folder(&Files::new()), "missing", None);
    contains(&error, &["missing"]);
}

#[test]
fn a_recording_is_opened_by_itself_also_from_an_archive_and_can_be_saved() {
    let place = folder(&client_run());
    let saved = place.path().join("saved.mcap");
    let paths = vec![place.path().join("run")];
    let options = Options {
        paths,
        run: None,
        max_bytes: MAX_BYTES,
        checks: Checks::default(),
        save: Some(saved.clone()),
    };
    drop(open(options, &|| false).unwrap());
    let bytes = fs::read(&saved).unwrap();
    assert_eq!(open_in(&place, &["saved.mcap"], None).unwrap().0.clients().joined(), 3);
    let packed = folder(&named(&[("r.tgz", gzip(&tar(&named(&[("a/saved.mcap", bytes)]))))]));
    let (cluster, report) = open_in(&packed, &["r.tgz"], None).unwrap();
    assert_eq!(cluster.clients().joined(), 3);
    contains(&report, &["r.tgz!a/saved.mcap: recording; 2026-11-27"]);
    assert!(!report.contains("Absent"));
}

/// A recording of what NATS carried in a capture.
fn recorded(captured: &Captured, to: &Path) -> Cluster {
    let named = [("nats://capture".to_owned(), SourceKind::Nats)];
    let mut messages = captured.messages().peekable();
    let began = Millis(messages.peek().unwrap().at_ms());
    let meta = recording::meta(1, 2, began, &named);
    let [(name, kind)] = named;
    let source = Source { name, kind, ahead_ms: 0, detail: "Listening.".to_owned() };
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(to).unwrap();
    let mut timeline = Timeline::new(&[source], Checks::default(), (file, &meta), began).unwrap();
    for message in messages {
        let Some(subject) = subject::parse(&message.subject).map(Arc::new) else { continue };
        let at = Millis(message.at_ms());
        timeline.take(0, at, Payload::Nats { subject, message: message.payload.clone() });
    }
    timeline.end().unwrap().0
}

/// A recording of what NATS carried in a capture, opened together with its frontend's log. The state of the recording alone too.
fn joined_with_log(name: &str) -> (Cluster, Cluster, String) {
    let place = tempfile::tempdir().unwrap();
    let captured = Captured::fixture(name);
    let alone = recorded(&captured, &place.path().join("live.mcap"));
    let log: String = captured.log("frontend").map(|line| line + "\n").collect();
    fs::write(place.path().join("frontend.log"), log).unwrap();
    let (cluster, report) = open_in(&place, &["live.mcap", "frontend.log"], None).unwrap();
    (alone, cluster, report)
}

/// Blocks that each worker holds and stored.
fn held(cluster: &Cluster) -> BTreeMap<Worker, (u64, u64)> {
    let of = |(ix, state): (WorkerIx, &WorkerState)| {
        let blocks = cluster.trees().map(|(_, tree)| tree.holdings(ix.slot()).resident).sum();
        (state.id, (blocks, state.stored_total))
    };
    cluster.workers().indexed().map(of).collect()
}

#[test]
fn a_recording_without_decisions_and_the_log_of_its_frontend_are_one_time_line() {
    let (alone, cluster, report) = joined_with_log("1.6.1-log-jsonl-debug");
    contains(&report, &["live.mcap: recording; ", "joined with the other files: 0 results of clients, "]);
    contains(&report, &["frontend.log: log, "]);
    assert_eq!((alone.decisions().totals().count, alone.trees().count()), (0, 1));
    // One worker, whoever names it first, with the blocks that the recording has.
    assert_eq!(held(&cluster), held(&alone));
    let decisions = cluster.decisions().totals().count;
    assert!(decisions == 99 && report.contains(&format!("{decisions} decisions by them")), "{report}");
    let is_known = |entry: &&DecisionEntry| {
        cluster.worker(entry.decision.worker).is_some_and(|worker| worker.stored_total > 0)
    };
    assert_eq!(cluster.decisions().newest_first().filter(is_known).count() as u64, decisions);
    let sources: Vec<_> =
        cluster.sources().iter().map(|source| (source.name.as_str(), source.received > 0)).collect();
    assert_eq!(sources, [("files/log", true), ("nats://capture", true)]);
}

#[test]
fn decisions_of_a_recording_are_completed_by_the_log_of_its_frontend() {
    let place = tempfile::tempdir().unwrap();
    let lines: Vec<String> = Captured::fixture("1.5.1-healthy").log("frontend").collect();
    let write = |name: &str, lines: &mut dyn Iterator<Item = &String>| {
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        fs::write(place.path().join(name), text).unwrap();
    };
    // Of a frontend that does not log how requests end.
    write("chosen.log", &mut lines.iter().filter(|line| !line.contains("request completed")));
    write("frontend.log", &mut lines.iter());
    let paths = vec![place.path().join("chosen.log")];
    let save = Some(place.path().join("live.mcap"));
    let options = Options { paths, run: None, max_bytes: MAX_BYTES, checks: Checks::default(), save };
    drop(open(options, &|| false).unwrap());
    let (alone, _) = open_in(&place, &["live.mcap"], None).unwrap();
    let (cluster, report) = open_in(&place, &["live.mcap", "frontend.log"], None).unwrap();
    contains(&report, &["; joined with the other files: 0 results of clients, more known of "]);
    contains(&report, &["frontend.log: log, ", "clock agrees"]);
    assert_eq!(cluster.decisions().totals().count, alone.decisions().totals().count);
    let ended = |cluster: &Cluster| {
        let all = cluster.decisions().newest_first();
        all.filter(|entry| entry.progress.outcome.is_some()).count() as u64
    };
    // One had not ended when the log did.
    let (by_log, _) = open_in(&place, &["frontend.log"], None).unwrap();
    assert_eq!((ended(&alone), ended(&cluster)), (0, 90), "{report}");
    assert_eq!(ended(&by_log), 90);
}

#[test]
fn results_of_clients_are_joined_with_the_decisions_of_a_recording() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("client.log"), client_log()).unwrap();
    let paths = vec![place.path().join("client.log")];
    let save = Some(place.path().join("client.mcap"));
    drop(
        open(Options { paths, run: None, max_bytes: MAX_BYTES, checks: Checks::default(), save }, &|| false)
            .unwrap(),
    );
    fs::write(place.path().join("profile_export.jsonl"), client_results()).unwrap();
    let names = ["client.mcap", "client.log", "profile_export.jsonl"];
    let (cluster, report) = open_in(&place, &names, None).unwrap();
    contains(&report, &["joined with the other files: 3 results of clients"]);
    assert_eq!((cluster.clients().joined(), cluster.decisions().totals().count), (3, 3));
    let error_free = |name: &str| !report.contains(&format!("{name}: not read"));
    assert!(names.into_iter().all(error_free));

    // Recordings of two deployments cannot be.
    recorded(&Captured::fixture("1.6.1-healthy"), &place.path().join("live.mcap"));
    let (_, report) = open_in(&place, &["live.mcap", "client.mcap", "client.log"], None).unwrap();
    contains(&report, &["not joined with the other files: "]);
}

#[test]
fn a_line_that_is_broken_is_counted_and_the_rest_is_read() {
    let mut text = unpacked(&traces());
    let cut = text.lines().next().unwrap()[..200].to_owned();
    text = format!("{cut}\n{text}{}\n{cut}", "x".repeat(9 << 20));
    let (cluster, report) = opened(&named(&[("t/traces.jsonl", text.into_bytes())]));
    assert_eq!(cluster.decisions().totals().count, 22);
    contains(
        &report,
        &["22 records read, 3 not understood", "the first that was not understood: dynamo.request_trace.v1"],
    );
    assert_eq!(cluster.rejected_total(), 2, "those behind the first time");
}

#[test]
fn a_time_that_cannot_be_is_none() {
    let mut lines: Vec<String> = unpacked(&traces()).lines().map(str::to_owned).collect();
    for wrong in [u64::MAX, 10_000_000_000_000] {
        let mut line: serde_json::Value = serde_json::from_str(&lines[3]).unwrap();
        line["event"]["event_time_unix_ms"] = wrong.into();
        line["event"]["request"]["request_id"] = wrong.to_string().into();
        lines.push(line.to_string());
    }
    let (cluster, report) = opened(&named(&[("t/traces.jsonl", lines.join("\n").into_bytes())]));
    assert_eq!(cluster.decisions().totals().count, 24);
    contains(&report, &["Run: 2026-11-26 15:05:50 to 15:05:55 UTC"]);
}

#[test]
fn it_ends_when_somebody_wants_that() {
    let place = folder(&client_run());
    let paths = vec![place.path().to_owned()];
    let options = Options { paths, run: None, max_bytes: MAX_BYTES, checks: Checks::default(), save: None };
    let Err(error) = open(options, &|| true) else { panic!("it ends") };
    assert_eq!(error.to_string(), "stopped while files were read");
}
