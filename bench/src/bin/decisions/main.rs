//! Replays recordings and compares every decision that is shown with the routers' own words: through the library itself,
//! with logs and messages late by so much, or through real sockets at the recorded pace. Prints a table.
#![forbid(unsafe_code)]

mod sockets;
mod tape;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::{self, available_parallelism};

use clap::Parser as _;
use radixscope_recount::compare::decisions::{Agreement, Given};
use radixscope_recount::compare::table;
use radixscope_recount::recording::Recording;
use radixscope_tests::paths;

use tape::{Late, Tape};

/// How late lines of logs come, ms, beside those that come at once.
const LOG_LATE_MS: [u64; 5] = [0, 10, 50, 200, 500];
/// How late messages come, ms.
const NATS_LATE_MS: [u64; 3] = [10, 50, 200];
/// How late lines of logs come, ms, where those with every candidate's cost are kept back.
const HIDDEN_LATE_MS: [u64; 2] = [0, 200];

/// A row of the table.
struct Row {
    name: String,
    agreement: Agreement,
}

fn main() -> ExitCode {
    let options = Options::parse();
    println!("{}", table::HEADING);
    let (mut count, mut whole) = (0, 0);
    let mut print = |rows: Result<Vec<Row>, String>| match rows {
        Err(error) => {
            println!("{error}");
            count += 1;
        }
        Ok(rows) => {
            for Row { name, agreement } in rows {
                println!("{}", table::row(&name, &agreement));
                if options.differences {
                    agreement.differences.iter().for_each(|difference| println!("    {difference}"));
                }
                count += 1;
                whole += usize::from(agreement.is_whole());
            }
        }
    };
    // At its own pace one at a time: two would disturb each other's times.
    let at_once = if options.sockets { 1 } else { available_parallelism().map_or(1, usize::from) };
    for folders in options.folders().chunks(at_once) {
        thread::scope(|scope| {
            let started = folders.iter().map(|folder| scope.spawn(|| rows(folder, &options)));
            let started: Vec<_> = started.collect();
            started.into_iter().for_each(|rows| print(rows.join().expect("the replay ends")));
        });
    }
    println!("\n{whole} of {count} replays agree in everything.");
    if whole == count { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every replay of a recording.
fn rows(folder: &Path, options: &Options) -> Result<Vec<Row>, String> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let recording = Recording::read(folder).map_err(|error| format!("{name} is not read: {error:#}"))?;
    if options.sockets {
        let (response, shift_s) = sockets::response(folder);
        let given = Given { shift_s, ..Given::default() };
        let agreement = Agreement::of(&recording, &response, given);
        return Ok(vec![Row { name: format!("{name}, sockets"), agreement }]);
    }
    let tape = Tape::read(folder);
    let replay = |late: Late, are_formulas_hidden: bool| {
        let nats_late_s = late.nats_ms as f64 / 1_000.0;
        let given = Given { nats_late_s, are_formulas_hidden, ..Given::default() };
        let hidden = if are_formulas_hidden { ", without Formula lines" } else { "" };
        let agreement = Agreement::of(&recording, &tape.response(late, are_formulas_hidden), given);
        Row { name: format!("{name}{late}{hidden}"), agreement }
    };
    let mut rows: Vec<Row> = options.late().into_iter().map(|late| replay(late, false)).collect();
    // Where every cost is logged and could be computed as well, the log judges the computed ones.
    if recording.decisions.iter().any(|decision| decision.is_prompt_known && !decision.candidates.is_empty())
    {
        rows.extend(HIDDEN_LATE_MS.map(|log_ms| replay(Late { log_ms, nats_ms: 0 }, true)));
    }
    Ok(rows)
}

#[derive(clap::Parser)]
struct Options {
    /// Through real sockets at the recorded pace
    #[arg(long)]
    sockets: bool,
    /// Print each difference
    #[arg(long)]
    differences: bool,
    /// How late logs are read, milliseconds
    #[arg(long, value_name = "MS", value_delimiter = ',', default_values_t = LOG_LATE_MS)]
    log_late: Vec<u64>,
    /// How late messages are received, milliseconds
    #[arg(long, value_name = "MS", value_delimiter = ',', default_values_t = NATS_LATE_MS)]
    nats_late: Vec<u64>,
    /// Folders of recordings, or names of those of the repository; all of these when none is named
    recordings: Vec<PathBuf>,
}

impl Options {
    fn late(&self) -> Vec<Late> {
        let logs = self.log_late.iter().map(|&log_ms| Late { log_ms, nats_ms: 0 });
        logs.chain(self.nats_late.iter().map(|&nats_ms| Late { log_ms: 0, nats_ms })).collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        if self.recordings.is_empty() {
            return recordings(&paths::fixture("captures"));
        }
        self.recordings.iter().flat_map(|named| recordings(&found(named))).collect()
    }
}

/// A folder, or a recording of the repository by its name.
fn found(folder: &Path) -> PathBuf {
    if folder.is_dir() { folder.to_owned() } else { paths::fixture("captures").join(folder) }
}

/// The recording in a folder, or all those in the folders below.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    if folder.join("nats.jsonl.gz").is_file() {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = folders.filter(|path| path.join("nats.jsonl.gz").is_file()).collect();
    folders.sort();
    folders
}
