//! Segments as Dynamo 1.7.0.dev20261026 wrote them, and what can happen to them.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::*;

const RECORDED: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/fixtures/traces/1.7.0.dev20261026/dynamo-request-trace.000000.jsonl.gz"
));

fn recorded_lines() -> Vec<String> {
    let mut text = String::new();
    MultiGzDecoder::new(RECORDED).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

struct Written {
    _folder: tempfile::TempDir,
    path: PathBuf,
    segment: Segment,
}

impl Written {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, b"").unwrap();
        Self { segment: Segment::new(path.clone()), path, _folder: folder }
    }

    fn append(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(bytes).unwrap();
    }

    /// Lines that are new, and how many parts could not be read.
    async fn read(&mut self) -> (Vec<String>, usize) {
        let (mut found, mut broken) = (Vec::new(), 0);
        loop {
            let lines = match self.segment.read().await.unwrap() {
                SegmentRead::More(lines) => lines,
                SegmentRead::Broken(lines, _) => {
                    broken += 1;
                    lines
                }
                SegmentRead::Nothing => return (found, broken),
            };
            found.extend(lines.iter().map(|line| String::from_utf8(line.to_vec()).unwrap()));
        }
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn a_segment_is_read_in_whatever_pieces_it_grows() {
    let expected = recorded_lines();
    assert!(expected.len() > 20);
    for size in [997, 40_000, RECORDED.len()] {
        let mut written = Written::new("traces.000000.jsonl.gz");
        let mut found = Vec::new();
        for piece in RECORDED.chunks(size) {
            written.append(piece);
            let (lines, broken) = written.read().await;
            assert_eq!(broken, 0);
            found.extend(lines);
        }
        assert_eq!(found, expected, "in pieces of {size}");
    }
}

#[tokio::test]
async fn behind_a_broken_part_reading_goes_on() {
    let members = ["one\ntwo\n", "three\n", "four\n"].map(gzip);
    let mut damaged = members.concat();
    // The second member does not begin as one.
    damaged[members[0].len()] ^= 0xff;
    let mut written = Written::new("traces.jsonl.gz");
    written.append(&damaged);
    assert_eq!(written.read().await, (vec!["one".to_owned(), "two".to_owned(), "four".to_owned()], 1));

    // A writer that died left half a member; the next one begins behind it, later.
    let mut written = Written::new("traces.jsonl.gz");
    written.append(&members[0]);
    written.append(&members[1][..members[1].len() - 6]);
    assert_eq!(written.read().await.0[..2], ["one", "two"]);
    written.append(&members[2]);
    written.append(&gzip("five\n"));
    let (lines, broken) = written.read().await;
    assert!(broken >= 1, "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("five"));
}

#[tokio::test]
async fn what_is_no_gzip_at_all_is_reported_once() {
    let mut written = Written::new("traces.jsonl.gz");
    written.append(&vec![b'x'; 100_000]);
    assert_eq!(written.read().await, (Vec::new(), 1));
}

#[tokio::test]
async fn a_plain_file_is_followed_and_one_that_is_replaced_starts_over() {
    let mut written = Written::new("traces.jsonl");
    written.append(b"one\ntw");
    assert_eq!(written.read().await.0, ["one"]);
    written.append(b"o\n");
    assert_eq!(written.read().await.0, ["two"]);
    fs::write(&written.path, b"new\n").unwrap();
    assert_eq!(written.read().await.0, ["new"]);
    fs::remove_file(&written.path).unwrap();
    assert_eq!(written.read().await.0, Vec::<String>::new());
}

#[tokio::test]
async fn a_line_that_never_ends_is_cut() {
    let mut written = Written::new("traces.jsonl.gz");
    let long = "x".repeat(20 << 20);
    written.append(&gzip(&format!("{long}\nafter\n")));
    let (lines, broken) = written.read().await;
    assert_eq!((lines.len(), broken, lines[1].as_str()), (2, 0, "after"));
    assert!(lines[0].len() <= radixscope_intake::MAX_PAYLOAD_BYTES + 1);
}

#[test]
fn a_path_is_a_file_a_folder_or_what_names_begin_with() {
    let folder = tempfile::tempdir().unwrap();
    let names =
        ["trace.000000.jsonl.gz", "trace.000001.jsonl.gz", "trace.jsonl", "other.jsonl", "trace.000002.txt"];
    for name in names {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let found = |path: &str| {
        let found = segments_of(&folder.path().join(path), TraceFiles::RequestTraces).unwrap();
        found.into_keys().map(|name| name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("trace"), ["trace.000000.jsonl.gz", "trace.000001.jsonl.gz", "trace.jsonl"]);
    assert_eq!(found("trace.000001.jsonl.gz"), ["trace.000001.jsonl.gz"]);
    assert_eq!(found("").len(), 4);
    assert!(found("nothing").is_empty());
    assert!(segments_of(Path::new("/no/such/folder/trace"), TraceFiles::RequestTraces).unwrap().is_empty());
}

#[test]
fn more_segments_than_are_followed_leave_the_oldest_out() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..MAX_SEGMENTS + 3 {
        fs::write(folder.path().join(format!("trace.{n:06}.jsonl.gz")), b"").unwrap();
    }
    let found = segments_of(&folder.path().join("trace"), TraceFiles::RequestTraces).unwrap();
    assert_eq!(found.len(), MAX_SEGMENTS);
    assert_eq!(found.into_keys().next().unwrap(), *"trace.000003.jsonl.gz");
}

#[test]
fn a_line_says_when_its_request_ended() {
    let ended: Vec<TraceKind> = recorded_lines().iter().map(|line| TraceKind::of(line.as_bytes())).collect();
    assert!(ended.iter().all(|of| matches!(of, TraceKind::At(at) if *at > 1_795_000_000_000)), "{ended:?}");
    assert_eq!(TraceKind::of(br#"{"timestamp":1,"event":{"event_type":"tool"}}"#), TraceKind::Other);
    // As it is published, without a line around it.
    assert_eq!(TraceKind::of(br#"{"event_type":"request_payload","payload":{}}"#), TraceKind::Other);
    assert_eq!(TraceKind::of(br#"{"event_type":"request_end","event_time_unix_ms":7}"#), TraceKind::At(7));
    assert_eq!(TraceKind::of(b"{}"), TraceKind::Unknown);
}

#[test]
fn of_a_folder_of_aiperf_only_the_results_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["inputs.json", "profile_export.jsonl", "profile_export_raw.jsonl", "slices.jsonl"] {
        fs::write(folder.path().join(name), b"").unwrap();
    }
    let found = segments_of(folder.path(), TraceFiles::ClientResults).unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["profile_export.jsonl"]);
}
