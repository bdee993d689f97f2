//! The log of a frontend that routes, rotated as logrotate does: renamed, and begun anew under its name.

use std::fs::{File, OpenOptions, rename};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use radixscope_tests::random::Random;

/// Lines in a file until it is rotated: about a minute's.
const LINES_IN_A_FILE: u64 = 1_200;
/// Decisions a second.
const DECISIONS_PER_S: u64 = 20;
/// Time between two decisions.
pub(super) const EACH: Duration = Duration::from_millis(1_000 / DECISIONS_PER_S);

/// The log.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    random: Random,
    lines: u64,
}

impl Log {
    pub(super) fn new(path: PathBuf, seed: u64) -> Self {
        let file = begin(&path);
        Self { path, file, random: Random::new(seed), lines: 0 }
    }

    /// Lines written to it so far, over all its files.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Writes a decision for one of `workers`.
    pub(super) fn decide(&mut self, workers: &[u64]) {
        if workers.is_empty() {
            return;
        }
        if self.lines > 0 && self.lines.is_multiple_of(LINES_IN_A_FILE) {
            rename(&self.path, self.path.with_extension("log.1")).expect("a log can be moved");
            self.file = begin(&self.path);
        }
        let worker = workers[self.random.below(workers.len() as u64) as usize];
        let time = humantime::format_rfc3339_micros(SystemTime::now());
        let request = self.random.below(u64::MAX);
        let (cost, number) = (self.random.below(8_000) as f64 / 8.0, self.lines);
        writeln!(
            self.file,
            "{time}  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode=\"kv\" \
             request_id=\"{:08x}-0000-4000-8000-{number:012x}\" worker_id={worker} worker_type=decode dp_rank=0 \
             logit={cost} host_pinned_blocks=0 disk_blocks=0",
            request >> 32
        )
        .expect("a log can be written");
        self.lines += 1;
    }
}

fn begin(path: &PathBuf) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a log can be begun")
}
