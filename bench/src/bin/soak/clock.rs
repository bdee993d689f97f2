//! The server's clock, which can be set: libfaketime, loaded before the C library, adds what a file says to the time of day. Timers go
//! on as they did, as after a real step of the clock.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where distributions keep the library.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
/// By how much the clock is set, seconds, one after the other: a correction, a restored virtual machine, a wrong time zone.
const STEPS_S: [i64; 6] = [-2, 60, -3_600, 2, -60, 3_600];

/// A clock that one server reads.
pub(super) struct Clock {
    library: PathBuf,
    file: PathBuf,
    steps: usize,
}

impl Clock {
    /// Correct so far; `None`: the library is not installed. Its file is in `folder`.
    pub(super) fn new(folder: &Path) -> Option<Self> {
        let folders = fs::read_dir(LIBRARIES).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        let library = folders.map(|folder| folder.join(LIBRARY)).find(|path| path.is_file())?;
        let clock = Self { library, file: folder.join("clock"), steps: 0 };
        clock.set(0);
        Some(clock)
    }

    /// What a program that reads it is started with.
    pub(super) fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_CACHE_DURATION", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }

    /// Sets it to a wrong time, another than the last.
    pub(super) fn step(&mut self) {
        let ahead_s = STEPS_S[self.steps % STEPS_S.len()];
        self.steps += 1;
        self.set(ahead_s);
    }

    /// Sets it to the right time.
    pub(super) fn correct(&self) {
        self.set(0);
    }

    fn set(&self, ahead_s: i64) {
        // Renamed, so that nobody reads half of it.
        let next = self.file.with_extension("next");
        fs::write(&next, format!("{ahead_s:+}\n")).expect("a writable folder");
        fs::rename(next, &self.file).expect("a writable folder");
    }
}
