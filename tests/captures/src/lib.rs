//! Recordings of real Dynamo deployments, a folder each: their NATS messages, logs, metrics, discovery, traffic and
//! timeline. Opens no message and knows nothing of Dynamo's formats.
#![forbid(unsafe_code)]

#[cfg(feature = "simulated")]
mod advice;
mod engines;
mod late;
pub mod port;
pub mod publisher;
#[cfg(feature = "recorded")]
pub mod recorded;
mod replayer;
#[cfg(feature = "simulated")]
mod simulated;
mod zmq;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[cfg(feature = "simulated")]
pub use advice::{contradictions, is_incomplete};
pub use engines::{EngineRecording, Expected, Frames};
pub use late::{DiscoveryChange, HeldBlocks, RecordedQuery, TrueBlock};
pub use replayer::Replayer;
#[cfg(feature = "simulated")]
pub use simulated::{Played, Simulated, play};
pub use zmq::ZmqMessage;

/// Names another directory with recordings, a folder each.
pub const CAPTURES_VARIABLE: &str = "RADIXSCOPE_CAPTURES";

/// The repository's recordings.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/captures")
}

/// A folder with what was recorded of a deployment.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Recording {
    folder: PathBuf,
}

/// A message as it was received on the wire.
#[derive(Clone, Debug)]
pub struct Message {
    /// When, in Unix seconds.
    pub at_s: f64,
    /// Subject.
    pub subject: String,
    /// Reply subject.
    pub reply: Option<String>,
    /// Body.
    pub payload: Bytes,
}

/// A response to a scrape.
#[derive(Clone, Deserialize, Debug)]
pub struct Scrape {
    /// When, in Unix seconds.
    #[serde(rename = "t")]
    pub at_s: f64,
    /// Name of the process.
    #[serde(rename = "src")]
    pub process: String,
    /// In Prometheus' text format.
    pub text: String,
}

/// Something that was done to the deployment while it was recorded.
#[derive(Clone, Deserialize, Debug)]
pub struct Event {
    /// When, in Unix seconds.
    #[serde(rename = "t")]
    pub at_s: f64,
    /// What.
    pub event: String,
}

impl Recording {
    /// What is in a folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// One of the repository's, by its name below [`fixtures`].
    pub fn fixture(name: &str) -> Self {
        Self::at(fixtures().join(name))
    }

    /// One of the repository's recordings of other than one aggregated pool, by its name below `fixtures/topologies`.
    pub fn topology(name: &str) -> Self {
        Self::at(fixtures().with_file_name("topologies").join(name))
    }

    /// One of the repository's recordings of a deployment that ran already, with what its workers answered when they were asked
    /// for their blocks, by its name below `fixtures/late`.
    pub fn late(name: &str) -> Self {
        Self::at(fixtures().with_file_name("late").join(name))
    }

    /// All recordings below a directory, by name; none where it is not checked out.
    pub fn all_in(directory: &Path) -> Vec<Self> {
        let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
        let folders = entries.map(|entry| entry.expect("a directory entry").path());
        let mut all: Vec<Self> =
            folders.filter(|folder| folder.join(MESSAGES).is_file()).map(Self::at).collect();
        all.sort();
        all
    }

    /// All of the repository, or of the directory that [`CAPTURES_VARIABLE`] names.
    pub fn all() -> Vec<Self> {
        Self::all_in(&std::env::var_os(CAPTURES_VARIABLE).map_or_else(fixtures, PathBuf::from))
    }

    /// Name of its folder.
    pub fn name(&self) -> String {
        self.folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All NATS messages, delivery copies and topics without subscriber included.
    pub fn messages(&self) -> impl Iterator<Item = Message> + use<> {
        self.lines(MESSAGES).map(|line| Message::read(&line))
    }

    /// The NATS messages on subjects that Radixscope subscribes to, delivery copies included.
    pub fn subscribed(&self) -> impl Iterator<Item = Message> + use<> {
        self.messages().filter(|message| !message.subject.ends_with(".forward-pass-metrics"))
    }

    /// Names of the processes whose logs there are, sorted: `frontend`, `frontend.2`, `worker1`.
    pub fn logs(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).expect("a recording");
        let files =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"));
        let mut names: Vec<String> =
            files.filter_map(|file| Some(file.strip_suffix(LOG)?.to_owned())).collect();
        names.sort();
        names
    }

    /// Lines of a process's log.
    pub fn log(&self, process: &str) -> impl Iterator<Item = String> + use<> {
        self.lines(&format!("{process}{LOG}"))
    }

    /// Whether there is a log of this process.
    pub fn has_log(&self, process: &str) -> bool {
        self.folder.join(format!("{process}{LOG}")).is_file()
    }

    /// All answers to scrapes, as they were recorded; none if none were.
    pub fn scrapes(&self) -> impl Iterator<Item = Scrape> + use<> {
        self.lines_if_any("metrics.jsonl.gz").map(|line| json(&line))
    }

    /// Lines of another file of the recording.
    pub fn lines_of(&self, file: &str) -> impl Iterator<Item = String> + use<> {
        self.lines(file)
    }

    /// What discovery held, a JSON object `{"kvs":[{"key":…,"value":…}]}` for each change; none if it was not recorded.
    pub fn discovery(&self) -> impl Iterator<Item = String> + use<> {
        self.lines_if_any("discovery.jsonl.gz")
    }

    /// Its entries whenever it was read: when, in Unix seconds, key, and value as JSON.
    pub fn discovery_entries(&self) -> impl Iterator<Item = (f64, String, String)> + use<> {
        #[derive(Deserialize)]
        struct Snapshot {
            t: f64,
            kvs: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            key: String,
            value: serde_json::Value,
        }
        self.discovery().flat_map(|line| {
            let Snapshot { t, kvs } = json(&line);
            kvs.into_iter().map(move |entry| (t, entry.key, entry.value.to_string()))
        })
    }

    /// What the clients that made the traffic measured, a request each, as far as `T` takes it.
    pub fn traffic<T: DeserializeOwned>(&self) -> impl Iterator<Item = T> + use<T> {
        self.lines("traffic.jsonl.gz").map(|line| json(&line))
    }

    /// What was done to the deployment.
    pub fn timeline(&self) -> Vec<Event> {
        let path = self.folder.join("timeline.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        text.lines().map(json).collect()
    }

    /// What was counted of each request by other means, where it was.
    pub fn expected_requests<T: DeserializeOwned>(&self) -> impl Iterator<Item = T> + use<T> {
        self.lines_if_any("expected_requests.jsonl.gz").map(|line| json(&line))
    }

    fn lines_if_any(&self, file: &str) -> impl Iterator<Item = String> + use<> {
        self.folder.join(file).is_file().then(|| self.lines(file)).into_iter().flatten()
    }

    /// Lines of a gzipped file.
    fn lines(&self, file: &str) -> impl Iterator<Item = String> + use<> {
        let path = self.folder.join(file);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("a recording is whole text"))
    }
}

const MESSAGES: &str = "nats.jsonl.gz";
const LOG: &str = ".log.gz";

fn json<T: DeserializeOwned>(line: &str) -> T {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

impl Message {
    /// A message as recordings write it, a JSON object a line with its body in base64.
    pub fn read(line: &str) -> Self {
        #[derive(Deserialize)]
        struct Line {
            #[serde(default)]
            t: f64,
            s: String,
            r: Option<String>,
            p: String,
        }
        let Line { t, s, r, p } = json(line);
        let payload = bytes(&p);
        Self { at_s: t, subject: s, reply: r, payload }
    }

    /// When it was received, in Unix milliseconds.
    pub fn at_ms(&self) -> u64 {
        millis(self.at_s)
    }

    /// Whether this is not the publication but a copy that JetStream delivered to a router.
    pub fn is_delivery_copy(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| reply.starts_with("$JS.ACK."))
    }

    /// Name of the stream that keeps it, if one does.
    pub fn stream(&self) -> Option<&str> {
        let (stream, topic) = self.subject.split_once('.')?;
        (topic == "kv-events" && stream.ends_with("-kv-events")).then_some(stream)
    }
}

impl Scrape {
    /// When it was answered, in Unix milliseconds.
    pub fn at_ms(&self) -> u64 {
        millis(self.at_s)
    }
}

/// Bytes as recordings write them.
pub fn bytes(base64: &str) -> Bytes {
    BASE64_STANDARD.decode(base64).expect("base64").into()
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1e3) as u64
}
