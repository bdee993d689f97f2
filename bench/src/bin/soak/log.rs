//! The log of a frontend that routes, rotated as logrotate does: renamed, and begun anew under its name.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, rename};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use radixscope_bench::random::Random;

/// Lines in a file until it is rotated: about a minute's.
const LINES_IN_A_FILE: u64 = 2_400;
/// Decisions a second.
const DECISIONS_PER_S: u64 = 20;
/// Decisions that the log holds when the server begins to read it: more than the requests that it remembers, 65,536, so that its
/// memory of them is full from the start and not after an hour.
const DECISIONS_BEFORE: u32 = 70_000;
/// Requests that run at a time: each ends as so many others begin after it.
const RUN_AT_A_TIME: usize = 200;
/// Time between two decisions.
pub(super) const EACH: Duration = Duration::from_millis(1_000 / DECISIONS_PER_S);

/// The log.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    random: Random,
    /// Ids of requests that run, oldest first.
    run: VecDeque<String>,
    decisions: u64,
    lines: u64,
    lines_of_file: u64,
}

impl Log {
    /// The log of a frontend that runs for long, with decisions for `workers`.
    pub(super) fn new(path: PathBuf, seed: u64, workers: &[u64]) -> Self {
        let (file, run, random) = (begin(&path), VecDeque::new(), Random::new(seed));
        let mut log = Self { path, file, random, run, decisions: 0, lines: 0, lines_of_file: 0 };
        let now = SystemTime::now();
        for before in (1..=DECISIONS_BEFORE).rev() {
            log.decide(now - EACH * before, workers);
            // All in one file, which is there before anybody could follow a rotation.
            log.lines_of_file = 0;
        }
        log
    }

    /// Lines written to it so far, over all its files.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// A request goes to one of `workers`, and the one that runs longest ends.
    pub(super) fn decide(&mut self, at: SystemTime, workers: &[u64]) {
        if workers.is_empty() {
            return;
        }
        let worker = workers[self.random.below(workers.len() as u64) as usize];
        let (random, cost) = (self.random.below(1 << 32), self.random.below(8_000) as f64 / 8.0);
        let request = format!("{random:08x}-0000-4000-8000-{:012x}", self.decisions);
        self.decisions += 1;
        self.write(at, &format!(
            "dynamo_kv_router::scheduling::selector: Selected worker router_mode=\"kv\" request_id=\"{request}\" \
             worker_id={worker} worker_type=decode dp_rank=0 logit={cost} host_pinned_blocks=0 disk_blocks=0"
        ));
        self.run.push_back(request);
        if self.run.len() > RUN_AT_A_TIME
            && let Some(request) = self.run.pop_front()
        {
            self.write(at, &format!(
                "http-request: dynamo_llm::http::service::metrics: request completed request_id={request} \
                 model=models/tiny-llama endpoint=chat_completions request_type=stream status=success elapsed_ms=1978"
            ));
        }
    }

    fn write(&mut self, at: SystemTime, message: &str) {
        if self.lines_of_file == LINES_IN_A_FILE {
            rename(&self.path, self.path.with_extension("log.1")).expect("a log can be moved");
            self.file = begin(&self.path);
            self.lines_of_file = 0;
        }
        let time = humantime::format_rfc3339_micros(at);
        writeln!(self.file, "{time}  INFO {message}").expect("a log can be written");
        self.lines += 1;
        self.lines_of_file += 1;
    }
}

fn begin(path: &PathBuf) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a log can be begun")
}
