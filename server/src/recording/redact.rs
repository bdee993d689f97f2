//! Redaction: replaces names and ids in keyframes, records and JSON rows by keyed hashes. A redacted state is folded along, so
//! that the output is consistent. Without the key the originals cannot be recovered.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::DecisionValues;
use radixscope_export::decision_row;
use radixscope_model::frame::{BatchWriter, Digest, Frame};
use radixscope_model::id::{DecisionId, Millis, Worker};
use radixscope_recording::snapshot_frames;
use radixscope_recording::{Channel, RecordingError, Target};
use radixscope_state::cluster::{Cluster, SnapshotReader};
use radixscope_state::redact::{self, Pseudonyms};

const KEY_BYTES: usize = 32;
/// Key file of a folder, so that pseudonyms stay the same after a restart. With it, ids can be guessed and verified.
const KEY_FILE: &str = "radixscope.key";
/// Maximum names that are replaced in texts; beyond it the known ones are dropped. Workers and processes are fewer.
const MAX_NAMES: usize = 1 << 16;
/// Names that identify nothing and occur in texts of any deployment.
const ORDINARY: [&str; 4] = ["dynamo", "frontend", "router", "worker"];
/// Replacement for texts that may contain names.
const REMOVED: &str = "…";

/// The key of a recording's pseudonyms.
#[derive(Clone)]
pub(crate) struct RedactionKey([u8; KEY_BYTES]);

impl RedactionKey {
    /// A random key.
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self(key))
    }

    /// The key of a folder, created if it does not exist.
    pub(crate) fn of_folder(folder: &Path) -> std::io::Result<Self> {
        let path = folder.join(KEY_FILE);
        let mut key = [0; KEY_BYTES];
        match File::open(&path) {
            Ok(mut known) => known.read_exact(&mut key).map(|()| Self(key)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let new = Self::random()?;
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                options.open(&path)?.write_all(&new.0)?;
                Ok(new)
            }
            Err(error) => Err(error),
        }
    }

    fn hash(&self, kind: &str, of: &[u8]) -> u64 {
        let hash = Sha256::new().chain_update(self.0).chain_update(kind).chain_update([0]).chain_update(of);
        hash.finalize().iter().take(8).fold(0, |hash, &byte| hash << 8 | u64::from(byte))
    }
}

/// Assigned pseudonyms.
struct Names {
    key: RedactionKey,
    /// Single words in texts: ids in both notations, and namespaces.
    pseudonyms: HashMap<String, String>,
    /// Phrases in texts, longest first.
    phrases: Vec<(String, String)>,
}

impl Names {
    fn remember(&mut self, original: &str, pseudonym: &str) {
        let is_word = original.bytes().all(is_of_word);
        if is_word {
            if self.pseudonyms.len() >= MAX_NAMES {
                self.pseudonyms.clear();
            }
            self.pseudonyms.insert(original.to_owned(), pseudonym.to_owned());
        } else if !self.phrases.iter().any(|(known, _)| known == original) {
            if self.phrases.len() >= MAX_NAMES {
                self.phrases.clear();
            }
            let at = self.phrases.partition_point(|(known, _)| known.len() >= original.len());
            self.phrases.insert(at, (original.to_owned(), pseudonym.to_owned()));
        }
    }
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

impl Pseudonyms for Names {
    fn number(&mut self, id: u64) -> u64 {
        let new = self.key.hash("id", &id.to_le_bytes());
        self.remember(&id.to_string(), &new.to_string());
        self.remember(&format!("{id:x}"), &format!("{new:x}"));
        new
    }

    fn name(&mut self, kind: &str, name: &str) -> String {
        let new = format!("{kind}-{:016x}", self.key.hash(kind, name.as_bytes()));
        // Request ids do not occur in texts, and are unbounded.
        if kind != "request" && !ORDINARY.contains(&name) {
            self.remember(name, &new);
        }
        new
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (original, pseudonym) in &self.phrases {
            if text.contains(original.as_str()) {
                text = text.replace(original.as_str(), pseudonym);
            }
        }
        let mut new = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(begin) = rest.find(|c: char| c.is_ascii() && is_of_word(c as u8)) {
            let (before, from) = rest.split_at(begin);
            let end = from.bytes().position(|byte| !is_of_word(byte)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            new.push_str(before);
            new.push_str(self.pseudonyms.get(word).map_or(word, String::as_str));
            rest = after;
        }
        new + rest
    }

    fn leave_out(&mut self, text: &str) {
        // A single word identifies nothing, and would be removed from every text.
        if text.contains(' ') {
            self.remember(text, REMOVED);
        }
    }
}

/// Redacts the messages of a recording.
pub(crate) struct Redactor {
    names: Names,
    /// The redacted state; `None`: waiting for a keyframe.
    cluster: Option<Cluster>,
}

impl Redactor {
    pub(crate) fn new(key: RedactionKey) -> Self {
        Self { names: Names { key, pseudonyms: HashMap::new(), phrases: Vec::new() }, cluster: None }
    }

    /// Redacts the sources in the metadata.
    pub(crate) fn sources(&mut self, lines: &str) -> String {
        let line = |line: &str| {
            let (kind, name) = line.split_once(' ').unwrap_or((line, ""));
            format!("{kind} {}", self.names.name(kind, name))
        };
        lines.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Redacts a keyframe.
    pub(crate) fn keyframe<F: AsRef<[u8]>>(&mut self, frames: &[F]) -> Result<Vec<Bytes>, RecordingError> {
        let mut reader = SnapshotReader::default();
        self.cluster = None;
        for frame in frames {
            let Frame::Snapshot { bytes, .. } = Frame::decode(frame.as_ref())? else {
                return Err(other_frame());
            };
            if let Some(mut cluster) = reader.part(bytes.0)? {
                cluster.redact(&mut self.names);
                self.cluster = Some(cluster);
            }
        }
        let cluster = self.cluster.as_ref().ok_or(RecordingError::NoKeyframe)?;
        let frames = snapshot_frames(cluster).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(frames.into_iter().map(Bytes::from).collect())
    }

    /// Redacts another message. `None`: it is dropped.
    pub(crate) fn message(&mut self, channel: Channel, data: &[u8]) -> Result<Option<Bytes>, RecordingError> {
        match channel {
            Channel::Keyframes => Err(other_frame()),
            Channel::Batches => self.batch(data).map(Some),
            Channel::Decisions => Ok(self.decision(data)),
            Channel::Findings => Ok(self.finding(data)),
            Channel::Timeline => Ok(self.row(data)),
        }
    }

    fn batch(&mut self, frame: &[u8]) -> Result<Bytes, RecordingError> {
        let Frame::Batch(batch) = Frame::decode(frame)? else { return Err(other_frame()) };
        let Self { names, cluster } = self;
        let is_next = |cluster: &Cluster| batch.first_seq.0 <= cluster.seq().0 + 1;
        *cluster = cluster.take().filter(is_next);
        let mut writer = BatchWriter::new(batch.first_seq);
        for entry in batch.entries() {
            let (seq, entry) = entry?;
            let entry = redact::entry(&entry, names);
            writer.push(&entry)?;
            if let Some(cluster) = cluster {
                cluster.fold(seq, &entry);
            }
        }
        let digest = || Some(Digest(cluster.as_ref()?.digest()));
        let check = batch.check.as_ref().and_then(|_| digest());
        Ok(writer.finish(batch.at_ms, check)?.into())
    }

    /// The decision in the redacted state; dropped if the state no longer has it.
    fn decision(&self, json: &[u8]) -> Option<Bytes> {
        let row: Value = serde_json::from_slice(json).ok()?;
        let id = DecisionId(row.get("id")?.as_str()?.parse().ok()?);
        let cluster = self.cluster.as_ref()?;
        let row = decision_row(cluster, cluster.decisions().get(id)?)?;
        Some(serde_json::to_vec(&row).ok()?.into())
    }

    /// A decision for the table, from the redacted state. `None`: the state no longer has it.
    pub(super) fn values(&self, id: DecisionId) -> Option<DecisionValues> {
        let cluster = self.cluster.as_ref()?;
        DecisionValues::of(cluster, cluster.decisions().get(id)?)
    }

    fn finding(&mut self, json: &[u8]) -> Option<Bytes> {
        let mut line: Value = serde_json::from_slice(json).ok()?;
        let title = line.get_mut("title")?;
        *title = self.names.text(title.as_str()?).into();
        Some(line.to_string().into())
    }

    fn row(&mut self, json: &[u8]) -> Option<Bytes> {
        let mut row: Value = serde_json::from_slice(json).ok()?;
        for mark in row.get_mut("workers")?.as_array_mut()? {
            if let Some(process) = mark.get("process").and_then(Value::as_str) {
                let process = self.names.name("process", process);
                mark["process"] = process.into();
            }
            if let Ok(worker) = serde_json::from_value::<MarkedWorker>(mark["worker"].clone()) {
                let id = worker.worker_id.parse().ok()?;
                let worker = redact::worker(Worker::new(id, worker.dp_rank), &mut self.names);
                mark["worker"] = serde_json::to_value(worker).ok()?;
            }
        }
        Some(row.to_string().into())
    }
}

/// A worker in JSON.
#[derive(serde::Deserialize)]
struct MarkedWorker {
    worker_id: String,
    dp_rank: u32,
}

fn other_frame() -> RecordingError {
    RecordingError::Damaged { at: 0, what: "a frame of another kind than its channel's" }
}

/// Target that redacts a copied recording.
pub(crate) struct Redacted<'r> {
    pub(crate) redactor: &'r mut Redactor,
    pub(crate) to: &'r mut dyn Target,
}

impl Target for Redacted<'_> {
    fn keyframe(&mut self, at_ms: Millis, frames: &[Vec<u8>]) -> Result<(), RecordingError> {
        let frames: Vec<Vec<u8>> =
            self.redactor.keyframe(frames)?.iter().map(|frame| frame.to_vec()).collect();
        self.to.keyframe(at_ms, &frames)
    }

    fn message(&mut self, channel: Channel, at_ms: Millis, data: &[u8]) -> Result<(), RecordingError> {
        match self.redactor.message(channel, data)? {
            Some(data) => self.to.message(channel, at_ms, &data),
            None => Ok(()),
        }
    }
}
