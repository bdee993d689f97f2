//! Logs of frontends: files through their whole life, pipes to their end, and what is said meanwhile.

use std::fs::{File, OpenOptions, create_dir, remove_dir, rename};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use radixscope_captures::Recording;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

/// Nothing listens there: only the log is looked at.
const NO_NATS: &str = "nats://127.0.0.1:1";
const SELECTED: &str = "2026-11-20T18:06:54.428962Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: \
    worker_id=7 dp_rank=0, logit: 4.625, cached blocks: 0, tree size: 0, total blocks: 64";

fn recorded(capture: &str) -> Vec<String> {
    Recording::fixture(capture).log("frontend").collect()
}

/// Lines about routing, counted by their words.
fn about_routing(lines: &[String]) -> u64 {
    let text = [
        "Formula for worker_id",
        "Multiple workers tied",
        "Selected worker",
        "KV Routing initialized",
        "using JetStream",
        "Runtime shutdown initiated",
    ];
    lines.iter().filter(|line| text.iter().any(|word| line.contains(word))).count() as u64
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("the log can be opened");
    file.write_all(text.as_ref()).expect("the log can be written");
}

/// The source of a log in `/api/v1/cluster`.
fn log<'c>(cluster: &'c Value, name: &str) -> &'c Value {
    let sources = cluster["sources"].as_array().expect("sources");
    sources.iter().find(|source| source["name"] == name).expect("the log is a source")
}

/// Waits until a log is in a state, with words and so many lines handed over.
async fn until(server: &Radixscope, name: &str, state: &str, expected: &str, received: u64) -> Value {
    let what = format!("{name} is {state}, {expected:?}, {received} lines");
    let look = |cluster: &Value| {
        let source = log(cluster, name);
        let says = source["detail"].as_str().is_some_and(|detail| detail.contains(expected));
        let is_there = source["state"] == state && says && source["received"] == received;
        wait::expect(is_there, || source.to_string())
    };
    let cluster = server.until_cluster(&what, look).await;
    log(&cluster, name).clone()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("frontend.log")
    }

    async fn server(&self) -> Radixscope {
        let log = self.log();
        let log = log.to_str().expect("a plain path");
        Radixscope::start(["serve", "--nats", NO_NATS, "--logs", log]).await
    }
}

#[tokio::test]
async fn a_file_is_waited_for_read_followed_and_found_again_when_it_is_rotated() {
    let (folder, name) = (Folder::new(), "log/frontend.log");
    let server = folder.server().await;
    let source = until(&server, name, "connecting", "does not exist yet", 0).await;
    assert_eq!(source["kind"], "logs");
    let lines = recorded("0.9.1-no-events");
    let (first, second) = lines.split_at(lines.len() / 2);
    append(&folder.log(), first.join("\n"));
    // The last line has no line feed yet, so it may still grow.
    let whole = about_routing(&first[..first.len() - 1]);
    until(&server, name, "live", "Following", whole).await;
    append(&folder.log(), format!("\n{}\r\n", second.join("\r\n")));
    let all = about_routing(&lines);
    until(&server, name, "live", "Following", all).await;
    // Moved away for a new one, the last line without an end.
    append(&folder.log(), SELECTED);
    rename(folder.log(), folder.0.path().join("frontend.log.1")).expect("the log can be moved");
    let more = "x".repeat(1_000);
    append(&folder.log(), format!("{SELECTED}\n{more}\n"));
    until(&server, name, "live", "Following", all + 2).await;
    // Emptied in its place.
    File::create(folder.log()).expect("the log can be emptied");
    append(&folder.log(), format!("{SELECTED}\n"));
    until(&server, name, "live", "Following", all + 3).await;
}

#[tokio::test]
async fn what_cannot_be_followed_is_reported_and_tried_again() {
    let (folder, name) = (Folder::new(), "log/frontend.log");
    create_dir(folder.log()).expect("a folder in the log's place");
    let server = folder.server().await;
    until(&server, name, "refused", "is a directory", 0).await;
    remove_dir(folder.log()).expect("an empty folder");
    append(&folder.log(), format!("{SELECTED}\n"));
    until(&server, name, "live", "1 line read, 1 of them about routing", 1).await;
}

#[tokio::test]
async fn lines_that_are_not_understood_are_counted_with_a_reason() {
    let (folder, name) = (Folder::new(), "log/frontend.log");
    append(&folder.log(), format!("{SELECTED}\n{SELECTED}{}\n", "x".repeat(1 << 20)));
    append(
        &folder.log(),
        [SELECTED.as_bytes(), b"\xff\n", SELECTED.replace("4.625", "NaN").as_bytes(), b"\n"].concat(),
    );
    let server = folder.server().await;
    let source = until(&server, name, "live", "4 lines read", 4).await;
    let look = |cluster: &Value| {
        let rejected = log(cluster, name)["rejected"].as_array().cloned().unwrap_or_default();
        let mut reasons: Vec<_> =
            rejected.iter().map(|r| r["reason"].as_str().unwrap_or_default().to_owned()).collect();
        reasons.sort();
        wait::expect(reasons == ["malformed", "too_large", "wrong_type"], || {
            format!("{rejected:?} of {source}")
        })
    };
    server.until_cluster("three lines are refused", look).await;
}

#[tokio::test]
async fn standard_input_is_read_to_its_end() {
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    let args = ["serve", "--nats", NO_NATS, "--logs", "pod-0=-"];
    let server = Radixscope::start_with_input(&args, input).await;
    let lines = recorded("0.9.1-log-jsonl-info");
    let text = lines.join("\n");
    let read = lines.len();
    let passed = about_routing(&lines);
    tokio::task::spawn_blocking(move || writer.write_all(text.as_bytes())).await.unwrap().unwrap();
    let expected = format!("{read} lines read, {passed} of them about routing");
    until(&server, "log/pod-0", "ended", &expected, passed).await;
}

#[test]
fn two_logs_of_one_name_are_refused() {
    let output = Radixscope::run(&[
        "serve",
        "--nats",
        NO_NATS,
        "--listen",
        "127.0.0.1:0",
        "--logs",
        "a/f.log",
        "--logs",
        "b/f.log",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("two logs have the name \"f.log\""));
}
