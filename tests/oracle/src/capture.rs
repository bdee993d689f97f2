//! Recorded traffic of real Dynamo, as the repository's fixtures hold it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use radixscope_dynamo::subject;
use radixscope_model::record::Topic;

/// Names another directory with captures, one directory each.
pub const CAPTURES_VARIABLE: &str = "RADIXSCOPE_CAPTURES";

/// One message.
pub struct Captured {
    /// When it was heard, Unix time in milliseconds.
    pub at_ms: u64,
    /// Subject.
    pub subject: String,
    /// Reply subject.
    pub reply: Option<String>,
    /// Bytes.
    pub payload: Vec<u8>,
}

#[derive(serde::Deserialize)]
struct Line {
    t: f64,
    s: String,
    r: Option<String>,
    p: String,
}

/// Where the captures are.
pub fn directory() -> PathBuf {
    std::env::var_os(CAPTURES_VARIABLE)
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/captures"), PathBuf::from)
}

/// Names of all captures, sorted.
pub fn names() -> Result<Vec<String>> {
    let directory = directory();
    let entries = std::fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.path().join("nats.jsonl.gz").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The messages of a capture, named as a fixture or by the path of its directory or file.
pub fn messages(capture: &str) -> Result<Vec<Captured>> {
    let named = PathBuf::from(capture);
    let directory = if named.exists() { named } else { directory().join(capture) };
    let path = if directory.is_dir() { directory.join("nats.jsonl.gz") } else { directory };
    let file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
    let mut messages = Vec::new();
    for line in BufReader::new(flate2::read::GzDecoder::new(file)).lines() {
        let line: Line = serde_json::from_str(&line?)?;
        messages.push(Captured {
            at_ms: (line.t * 1000.0) as u64,
            subject: line.s,
            reply: line.r,
            payload: STANDARD.decode(line.p)?,
        });
    }
    Ok(messages)
}

/// The KV events among them, each once: not the copies that JetStream delivers to routers.
pub fn kv_events(capture: &str) -> Result<Vec<Captured>> {
    let mut messages = messages(capture)?;
    messages.retain(|m| {
        let topic = subject::parse(&m.subject).map(|subject| subject.topic);
        topic == Some(Topic::KvEvents) && !subject::is_delivery_copy(m.reply.as_deref())
    });
    Ok(messages)
}
