//! Replays recordings and compares every decision that is shown with the routers' own words: through the library itself,
//! with logs and messages late by so much, or through real sockets at the recorded pace. Prints a table.
//!
//! `decisions [--sockets] [--differences] [--log-late MS,…] [--nats-late MS,…] [RECORDING or FOLDER …]`

mod sockets;
mod tape;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use radixscope_recount::compare::decisions::{Agreement, Given};
use radixscope_recount::compare::table;
use radixscope_recount::recording::Recording;
use radixscope_tests::paths;

use tape::{Late, Tape};

/// How late lines of logs come, ms, beside those that come at once.
const LOG_LATE_MS: [u64; 5] = [0, 10, 50, 200, 500];
/// How late messages come, ms.
const NATS_LATE_MS: [u64; 3] = [10, 50, 200];

struct Wanted {
    through_sockets: bool,
    with_differences: bool,
    late: Vec<Late>,
    folders: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let wanted = wanted();
    println!("{}", table::HEADING);
    let (mut rows, mut whole) = (0, 0);
    let mut count = |name: &str, agreement: &Agreement| {
        println!("{}", table::row(name, agreement));
        if wanted.with_differences {
            agreement.differences.iter().for_each(|difference| println!("    {difference}"));
        }
        rows += 1;
        whole += usize::from(agreement.is_whole());
    };
    for folder in &wanted.folders {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let recording = match Recording::read(folder) {
            Ok(recording) => recording,
            Err(error) => {
                println!("| {name} | not read: {error:#} |");
                continue;
            }
        };
        if wanted.through_sockets {
            let (answer, shift_s) = sockets::answer(folder);
            let given = Given { shift_s, are_formulas_hidden: false };
            count(&format!("{name}, sockets"), &Agreement::of(&recording, &answer, given));
            continue;
        }
        let tape = Tape::read(folder);
        for late in &wanted.late {
            let agreement = Agreement::of(&recording, &tape.answer(*late, false), Given::default());
            count(&format!("{name}{late}"), &agreement);
        }
        if recording.choices.iter().any(|choice| choice.is_prompt_known && !choice.candidates.is_empty()) {
            let given = Given { are_formulas_hidden: true, ..Given::default() };
            for log_ms in [0, 200] {
                let late = Late { log_ms, nats_ms: 0 };
                let agreement = Agreement::of(&recording, &tape.answer(late, true), given);
                count(&format!("{name}{late}, without Formula lines"), &agreement);
            }
        }
    }
    println!("\n{whole} of {rows} replays agree in everything.");
    if whole == rows { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn wanted() -> Wanted {
    let mut wanted =
        Wanted { through_sockets: false, with_differences: false, late: Vec::new(), folders: Vec::new() };
    let (mut log_late, mut nats_late) = (LOG_LATE_MS.to_vec(), NATS_LATE_MS.to_vec());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut times = || -> Vec<u64> {
            let value = args.next().unwrap_or_else(|| panic!("{arg} needs times in ms"));
            let times = value.split(',').filter(|text| !text.is_empty());
            times.map(|text| text.parse().unwrap_or_else(|e| panic!("{arg} {text}: {e}"))).collect()
        };
        match arg.as_str() {
            "--sockets" => wanted.through_sockets = true,
            "--differences" => wanted.with_differences = true,
            "--log-late" => log_late = times(),
            "--nats-late" => nats_late = times(),
            option if option.starts_with('-') => panic!("unknown option {option}"),
            folder => wanted.folders.extend(recordings(&found(folder))),
        }
    }
    wanted.late.extend(log_late.into_iter().map(|log_ms| Late { log_ms, nats_ms: 0 }));
    wanted.late.extend(nats_late.into_iter().map(|nats_ms| Late { log_ms: 0, nats_ms }));
    if wanted.folders.is_empty() {
        wanted.folders = recordings(&paths::fixture("captures"));
    }
    wanted
}

/// A folder, or a recording of the repository by its name.
fn found(folder: &str) -> PathBuf {
    let path = PathBuf::from(folder);
    if path.is_dir() { path } else { paths::fixture("captures").join(folder) }
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
