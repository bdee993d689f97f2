//! Messages as they were recorded: lines of text with base64 inside.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use serde::Deserialize;

/// A message on a subject.
#[derive(Clone)]
pub struct Message {
    pub subject: String,
    pub reply: Option<String>,
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
struct Line {
    s: String,
    r: Option<String>,
    p: String,
}

pub fn base64(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("a fixture is base64")
}

pub fn gunzipped_lines(path: &Path) -> impl Iterator<Item = String> + use<> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("a capture is text"))
}

/// Directories of full captures; none where they are not checked out.
pub fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/captures");
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a directory entry").path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

/// All NATS messages of a capture.
pub fn messages(capture: &Path) -> Vec<Message> {
    gunzipped_lines(&capture.join("nats.jsonl.gz")).map(|line| message(&line)).collect()
}

/// A line of a capture or of a fixture.
pub fn message(line: &str) -> Message {
    let line: Line = serde_json::from_str(line).expect("a line of a capture is JSON");
    Message { subject: line.s, reply: line.r, body: base64(&line.p) }
}
