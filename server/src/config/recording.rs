//! Options for writing and reading recordings.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Http, InvalidOption, Limits, Log, RecordingAt, SloTargets, Sources, StoreAt};
use crate::recording::{RecordOptions, RecordTo};

/// What is written in percent in the name of a folder.
const IN_FOLDER_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'=');
/// Smallest limit for the size of a folder of recordings.
const MIN_BYTES: u64 = 16 << 20;

/// Options for writing a recording.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Recording")]
pub struct RecordArgs {
    /// Folder for recordings, or a bucket such as s3://BUCKET/PREFIX, gs:// or az://: everything received is written there, in files
    /// that replay, check and export read; after a restart the server resumes from them [default: nothing is written]
    #[arg(long, env = "RADIXSCOPE_RECORD", value_name = "DIR|URL")]
    pub record: Option<RecordingAt>,
    /// Maximum size of that folder's recordings, such as 10GiB or 500MiB; beyond it the oldest are deleted. With a bucket, of the
    /// buffer: files are deleted there before they are stored
    #[arg(long, env = "RADIXSCOPE_RECORD_MAX_SIZE", value_name = "SIZE", default_value = "10GiB", value_parser = size)]
    pub record_max_size: u64,
    /// Maximum age of recordings in a folder, such as 24h or 7days; older ones are deleted. In a bucket Radixscope deletes nothing
    #[arg(long, env = "RADIXSCOPE_RECORD_MAX_AGE", value_name = "TIME", default_value = "24h", value_parser = age)]
    pub record_max_age: Duration,
    /// The way to a bucket.
    #[command(flatten)]
    pub buffer: BufferArgs,
    /// Write pseudonyms in place of ids of workers and requests, and of names of processes, namespaces and sources
    #[arg(long, env = "RADIXSCOPE_REDACT", requires = "record")]
    pub redact: bool,
}

impl RecordArgs {
    /// Where to write and what; `None`: no recording.
    ///
    /// # Errors
    /// There is no folder for the buffer.
    pub fn options(&self) -> Result<Option<RecordOptions>, InvalidOption> {
        let (max_bytes, max_age) = (self.record_max_size, self.record_max_age);
        let to = match self.record.clone() {
            None => return Ok(None),
            Some(RecordingAt::Path(path)) => RecordTo::Folder { path, max_bytes, max_age },
            Some(RecordingAt::Store(at)) => self.buffer.store(at, max_bytes)?,
        };
        Ok(Some(RecordOptions { to, redact: self.redact }))
    }
}

/// What lies between a recording and the bucket that it goes to.
#[derive(Args, Debug, Clone, Default)]
pub struct BufferArgs {
    /// With a bucket: folder of the files that are not stored yet. It should survive a restart of the process, which then stores them
    /// [default: $XDG_STATE_HOME/radixscope/…, else ~/.local/state/radixscope/…]
    #[arg(long, env = "RADIXSCOPE_RECORD_BUFFER", value_name = "DIR")]
    pub record_buffer: Option<PathBuf>,
    /// With a bucket: time after which a file ends and is stored, so that the bucket is not further behind
    #[arg(long, env = "RADIXSCOPE_RECORD_STORE_EVERY", value_name = "TIME", default_value = "5m", value_parser = age)]
    pub record_store_every: Duration,
}

impl BufferArgs {
    /// A recording that goes to a bucket.
    ///
    /// # Errors
    /// There is no folder for the buffer.
    pub fn store(&self, at: StoreAt, max_bytes: u64) -> Result<RecordTo, InvalidOption> {
        let buffer = match &self.record_buffer {
            Some(buffer) => buffer.clone(),
            None => usual_buffer(&at)?,
        };
        Ok(RecordTo::Store { at, buffer, max_bytes, every: self.record_store_every })
    }
}

/// A folder for the state of programs, with one in it for each address.
fn usual_buffer(at: &StoreAt) -> Result<PathBuf, InvalidOption> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
    let none = || {
        InvalidOption::new(
            "--record",
            "no folder for the buffer, because HOME is not set; name one with --record-buffer",
        )
    };
    // Another address is another folder: what waits there belongs to one.
    let name = utf8_percent_encode(&at.to_string(), IN_FOLDER_NAME).to_string();
    Ok(state.ok_or_else(none)?.join("radixscope").join(name))
}

/// `radixscope record`.
#[derive(Args, Debug)]
pub struct Record {
    /// File to write, which must not exist yet, or a bucket such as s3://BUCKET/PREFIX, gs:// or az://
    #[arg(env = "RADIXSCOPE_RECORD_FILE", value_name = "FILE|URL")]
    pub to: RecordingAt,
    /// The way to a bucket.
    #[command(flatten)]
    pub buffer: BufferArgs,
    /// With a bucket: maximum size of the buffer; beyond it files are deleted before they are stored
    #[arg(long, env = "RADIXSCOPE_RECORD_MAX_SIZE", value_name = "SIZE", default_value = "10GiB", value_parser = size)]
    pub record_max_size: u64,
    /// Write pseudonyms in place of ids of workers and requests, and of names of processes, namespaces and sources
    #[arg(long, env = "RADIXSCOPE_REDACT")]
    pub redact: bool,
    /// How long to record, such as 30s or 10m, counted from the start [default: until Ctrl-C]
    #[arg(long = "for", env = "RADIXSCOPE_FOR", value_name = "TIME", value_parser = age)]
    pub record_for: Option<Duration>,
    /// Sources.
    #[command(flatten)]
    pub from: Sources,
    /// SLO targets and baselines.
    #[command(flatten)]
    pub slo: SloTargets,
    /// Limits of memory.
    #[command(flatten)]
    pub limits: Limits,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// `radixscope replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// Recordings of one deployment: files in any order, a folder of them, or objects in a bucket such as
    /// s3://BUCKET/PREFIX, of which only what is needed is read
    #[arg(env = "RADIXSCOPE_RECORDINGS", value_name = "FILE", value_delimiter = ',', required = true)]
    pub recordings: Vec<RecordingAt>,
    /// Show the recording from the keyframe before this time on, Unix milliseconds [default: its begin, as far as --history-mib reaches]
    #[arg(long, env = "RADIXSCOPE_FROM", value_name = "MS")]
    pub from: Option<u64>,
    /// Show the recording up to this time, to the second, Unix milliseconds [default: its end]
    #[arg(long, env = "RADIXSCOPE_TO", value_name = "MS")]
    pub to: Option<u64>,
    /// Maximum bytes of the decompressed recording kept in memory for going back, in MiB; of a larger recording, the end is
    /// kept
    #[arg(long, env = "RADIXSCOPE_HISTORY_MIB", value_name = "MIB", default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Limits")]
    pub history_mib: u32,
    /// HTTP server.
    #[command(flatten)]
    pub http: Http,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// `radixscope open`.
#[derive(Args, Debug)]
pub struct Open {
    /// What was collected: folders, archives (tar, tar.gz, zip) and files, in any mix
    #[arg(env = "RADIXSCOPE_OPEN", value_name = "PATH", value_delimiter = ',', required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the page with what was put together to this file, which a browser opens without a server, and end
    #[arg(long, env = "RADIXSCOPE_HTML", value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write what was put together as a recording to this file, which must not exist yet, for replay, check and export
    #[arg(long, env = "RADIXSCOPE_SAVE", value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Which run to show if there are several with pauses of more than 10 min between, from 1 [default: the last]
    #[arg(long, env = "RADIXSCOPE_RUN", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// Maximum size of the text in all files, unpacked; what lies behind is not read
    #[arg(long, env = "RADIXSCOPE_MAX_SIZE", value_name = "SIZE", default_value = "64GiB", value_parser = size, help_heading = "Limits")]
    pub max_size: u64,
    /// Maximum bytes of what was put together, decompressed, kept in memory for going back, in MiB; of more, the end is kept
    #[arg(long, env = "RADIXSCOPE_HISTORY_MIB", value_name = "MIB", default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = "Limits")]
    pub history_mib: u32,
    /// SLO targets and baselines.
    #[command(flatten)]
    pub slo: SloTargets,
    /// HTTP server.
    #[command(flatten)]
    pub http: Http,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// `radixscope export`.
#[derive(Args, Debug)]
pub struct Export {
    /// Recordings of one deployment: files in any order, a folder of them, or objects in a bucket such as s3://BUCKET/PREFIX
    #[arg(env = "RADIXSCOPE_RECORDINGS", value_name = "FILE", value_delimiter = ',', required = true)]
    pub recordings: Vec<RecordingAt>,
    /// Print every routing decision with the outcome of its request
    #[arg(long, env = "RADIXSCOPE_DECISIONS", value_enum, value_name = "FORM")]
    pub decisions: Option<DecisionsAs>,
    /// Write the recording as one file to this path, which must not exist yet
    #[arg(long, env = "RADIXSCOPE_RECORDING", value_name = "FILE")]
    pub recording: Option<PathBuf>,
    /// In that file, write pseudonyms in place of ids of workers and requests, and of names of processes, namespaces and sources
    #[arg(long, env = "RADIXSCOPE_REDACT", requires = "recording")]
    pub redact: bool,
    /// Write the requests of each worker as slices (queue, prefill, decode) to this file, which ui.perfetto.dev opens
    #[arg(long, env = "RADIXSCOPE_PERFETTO", value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Write the recording with the page inside to this file, which a browser opens without a server
    #[arg(long, env = "RADIXSCOPE_HTML", value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Begin of the part for --html, Unix milliseconds; it starts at the keyframe before [default: the recording's begin]
    #[arg(long, env = "RADIXSCOPE_FROM", value_name = "MS", requires = "html")]
    pub from: Option<u64>,
    /// End of the part for --html, Unix milliseconds [default: the recording's end]
    #[arg(long, env = "RADIXSCOPE_TO", value_name = "MS", requires = "html")]
    pub to: Option<u64>,
    /// Log.
    #[command(flatten)]
    pub log: Log,
}

/// Format of exported decisions.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionsAs {
    /// One line per decision, as the page exports them
    Csv,
    /// An array of the objects of /api/v1/decisions
    Json,
    /// A Parquet file with the columns of the CSV; ids are unsigned 64-bit integers
    Parquet,
}

fn size(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a size such as 10GiB or 500MiB, 16MiB at least";
    let number_len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_len);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" | "k" => 1 << 10,
        "mib" | "m" => 1 << 20,
        "gib" | "g" => 1 << 30,
        "tib" | "t" => 1 << 40,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(EXPECTED.to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.filter(|&bytes| bytes >= MIN_BYTES).ok_or_else(|| EXPECTED.to_owned())
}

fn age(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time >= Duration::from_secs(1) => Ok(time),
        Ok(_) => Err("expected at least 1s".to_owned()),
        Err(error) => Err(format!("{error}; expected a time such as 10m or 24h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_a_buffer_of_its_own() {
        let name = |text: &str| match text.parse() {
            Ok(RecordingAt::Store(at)) => usual_buffer(&at).unwrap().file_name().unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(name("s3://bucket/cluster=a/b"), "s3%3A%2F%2Fbucket%2Fcluster=a%2Fb");
        assert_ne!(name("s3://bucket/a_b"), name("s3://bucket/a/b"));
    }

    #[test]
    fn sizes_have_units_and_a_least() {
        assert_eq!(size("10GiB"), Ok(10 << 30));
        assert_eq!(size("500 MiB"), Ok(500 << 20));
        assert_eq!(size("20MB"), Ok(20_000_000));
        assert_eq!(size("33554432"), Ok(32 << 20));
        for wrong in ["", "GiB", "1MiB", "10 parsecs", "-1GiB", "99999999999TiB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
