//! The baselines at hand, which of them plays which role, and what is done with them.

use std::collections::HashSet;

use radixscope_insight::baseline::{
    Baseline, Figure, Import, MAX_BYTES, MAX_RESULT_BYTES, MAX_RESULT_FILES, Router, SweepLevel, Window,
    is_results, save_window,
};
use radixscope_insight::recent_window::RecentFigures;

use crate::format;
use crate::url::Address;

/// A role in the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Routed by cached prefix and load.
    KvAware,
    /// Routed in turn.
    RoundRobin,
}

impl Role {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::KvAware, Self::RoundRobin];

    /// Its name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::KvAware => "KV-aware baseline",
            Self::RoundRobin => "Round-robin baseline",
        }
    }

    /// Key in the address; also for tests.
    pub const fn key(self) -> &'static str {
        match self {
            Self::KvAware => "cmp.kv",
            Self::RoundRobin => "cmp.rr",
        }
    }

    /// What the address says of both.
    pub fn wanted(address: &Address) -> [Option<String>; 2] {
        Self::ALL.map(|role| address.other(role.key()))
    }

    /// The role of baselines that were routed so.
    fn of(router: Router) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.router() == router)
    }

    const fn router(self) -> Router {
        match self {
            Self::KvAware => Router::KvAware,
            Self::RoundRobin => Router::RoundRobin,
        }
    }
}

/// What tells a baseline from others, in the address.
pub fn name_of(baseline: &Baseline) -> String {
    format!("{}:{}", baseline.router().as_str(), baseline.name())
}

/// The router of that name.
pub fn router_named(value: &str) -> Router {
    Router::ALL.into_iter().find(|router| router.as_str() == value).unwrap_or(Router::Other)
}

/// All baselines.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BaselineSet {
    /// Those that the server was given (`--baseline`).
    pub served: Vec<Baseline>,
    /// Those that come with the page.
    pub samples: Vec<Baseline>,
    /// The reader's own.
    pub own: Vec<Baseline>,
}

/// A baseline in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BaselineRow {
    /// What tells it from others.
    pub key: String,
    /// Its name.
    pub name: String,
    /// How it was routed, its levels, and where it is from.
    pub about: String,
    /// Whether it is the reader's, who may delete it.
    pub is_own: bool,
}

impl BaselineSet {
    /// The server's first, then samples, then the reader's, which take the place of others of the same name.
    pub fn all(&self) -> impl Iterator<Item = &Baseline> {
        let is_replaced =
            |other: &Baseline| self.own.iter().any(|baseline| name_of(baseline) == name_of(other));
        self.served.iter().chain(&self.samples).filter(move |other| !is_replaced(other)).chain(&self.own)
    }

    /// Those that play the roles: as the address says, else the first that was routed so.
    pub fn playing(&self, wanted: &[Option<String>; 2]) -> [Option<Baseline>; 2] {
        let playing = |role: Role, wanted: &Option<String>| {
            let named = self.all().find(|baseline| wanted.as_ref() == Some(&name_of(baseline)));
            named.or_else(|| self.all().find(|baseline| baseline.router() == role.router())).cloned()
        };
        let [kv, rr] = wanted;
        [playing(Role::KvAware, kv), playing(Role::RoundRobin, rr)]
    }

    /// How far the server's experiments are that have runs to come: name and router, and their progress.
    pub fn experiments(&self) -> Vec<(String, String)> {
        let running = |baseline: &Baseline| {
            let progress = baseline.progress().filter(|progress| !progress.is_complete())?;
            Some((format!("{}, {}", baseline.name(), baseline.router().as_str()), progress.to_text()))
        };
        self.served.iter().filter_map(running).collect()
    }

    /// The list.
    pub fn rows(&self) -> Vec<BaselineRow> {
        self.all().map(|baseline| self.row(baseline)).collect()
    }

    fn row(&self, baseline: &Baseline) -> BaselineRow {
        let (is_sample, is_served) = (self.samples.contains(baseline), self.served.contains(baseline));
        let mut about = match is_sample {
            true => format!("Sample: {}; your hardware differs", baseline.attribution()),
            false => baseline.attribution().to_owned(),
        };
        if is_served {
            about.push_str(", given to the server (--baseline)");
        }
        let levels: Vec<String> = baseline.rows().iter().map(level_text).collect();
        BaselineRow {
            key: name_of(baseline),
            name: baseline.name().to_owned(),
            about: format!("{}, levels {}. {about}", baseline.router().as_str(), levels.join(", ")),
            is_own: !is_sample && !is_served,
        }
    }

    /// Takes what was read of `file`: says what that was, and which of it is to play which role.
    pub fn add(&mut self, mut import: Import, file: &str) -> (String, Vec<(Role, String)>) {
        // An export has the samples, too.
        import.baselines.retain(|baseline| !self.samples.contains(baseline));
        let levels: usize = import.baselines.iter().map(|baseline| baseline.rows().len()).sum();
        let count = format::plural(import.baselines.len() as u64, "baseline", "baselines");
        let mut status = format!("{file}: {count} with {levels} levels imported.");
        for notice in &import.notices {
            status.push_str(&format!(" Note: {notice}."));
        }
        let names: HashSet<String> = import.baselines.iter().map(name_of).collect();
        // What was just brought is what the reader wants to see.
        let playing =
            import.baselines.iter().filter_map(|new| Some((Role::of(new.router())?, name_of(new)))).collect();
        self.own.retain(|baseline| !names.contains(&name_of(baseline)));
        self.own.extend(import.baselines);
        (status, playing)
    }

    /// Saves a window of live traffic as a level; says so, or nothing where there is nothing to save.
    pub fn save(&mut self, name: &str, router: Router, window: &Window) -> Option<String> {
        if !save_window(&mut self.own, name, router, window) {
            return None;
        }
        let level = window.row().concurrency;
        let left_out: Vec<&str> = window.inexact().map(Figure::label).collect();
        let without = match left_out.is_empty() {
            true => String::new(),
            false => format!(" Not saved, as only a range is known: {}.", left_out.join(", ")),
        };
        Some(format!("Saved as {name}, concurrency {level}.{without}"))
    }

    /// Deletes one of the reader's.
    pub fn delete(&mut self, key: &str) {
        self.own.retain(|baseline| name_of(baseline) != key);
    }
}

/// A baseline's level: its concurrency, and what is known of its runs.
fn level_text(row: &SweepLevel) -> String {
    let runs = row.runs.finished.map(|runs| format::plural(runs, "run", "runs"));
    let samples = row.samples.map(|samples| format::plural(samples, "sample", "samples"));
    let known: Vec<String> = runs.into_iter().chain(samples).collect();
    if known.is_empty() {
        row.concurrency.to_string()
    } else {
        format!("{} ({})", row.concurrency, known.join(", "))
    }
}

/// Whether the window can be saved: its concurrency is known, and nothing is stored over what is not read yet.
pub fn can_save(live: &RecentFigures, is_restored: bool) -> bool {
    live.concurrency.is_some() && is_restored
}

/// The name to save the window under.
///
/// # Errors
/// Why nothing is saved.
pub fn name_to_save<'n>(typed: &'n str, live: &RecentFigures) -> Result<&'n str, &'static str> {
    match (typed.trim(), live.concurrency) {
        ("", _) => Err("A baseline needs a name."),
        (_, None) => Err("Nothing was saved: the current concurrency is unknown."),
        (name, Some(_)) => Ok(name),
    }
}

/// Why files of these names and sizes, bytes, are not read; `None`: they are.
pub fn refused(files: &[(String, f64)]) -> Option<String> {
    let refused = |name: &str, why: String| Some(format!("{name} was not imported: {why}."));
    let mut left = MAX_RESULT_BYTES as f64;
    for (name, bytes) in files {
        // A CSV and a single run are small; a report with all its requests is not.
        let most = if name.ends_with(".json") { left } else { MAX_BYTES as f64 };
        if *bytes > most {
            return refused(name, format!("it is larger than {most} bytes"));
        }
        left -= bytes;
    }
    match files {
        [(name, _), ..] if files.len() > MAX_RESULT_FILES => {
            refused(name, format!("at most {MAX_RESULT_FILES} files are read together"))
        }
        _ => None,
    }
}

/// What files are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportKind {
    /// One CSV.
    Csv,
    /// Results of a load generator, which are one baseline together.
    Results,
}

/// Files that a reader chose together: names and texts.
#[derive(Clone, Copy, Debug)]
pub struct ImportFiles<'f> {
    /// The first one's name.
    first: &'f str,
    files: &'f [(String, String)],
}

impl<'f> ImportFiles<'f> {
    /// `None`: there is no file.
    pub fn new(files: &'f [(String, String)]) -> Option<Self> {
        Some(Self { first: &files.first()?.0, files })
    }

    /// In a sentence.
    pub fn to_text(self) -> String {
        match self.files.len() as u64 {
            0 | 1 => self.first.to_owned(),
            all => format!("{} and {}", self.first, format::plural(all - 1, "file", "files")),
        }
    }

    /// What a baseline without a name of its own is called: as the reader says, else as the first file.
    pub fn name(self, called: &str) -> String {
        let of_file = self.first.trim_end_matches(".csv").trim_end_matches(".json");
        if called.is_empty() { of_file } else { called }.to_owned()
    }

    /// What they are.
    ///
    /// # Errors
    /// Why they are not read.
    pub fn kind(self, is_restored: bool) -> Result<ImportKind, String> {
        let refused = |why: &str| Err(format!("{} {why}", self.to_text()));
        if !is_restored {
            return refused("was not imported: the baselines stored in this browser are not read yet.");
        }
        match (self.files.iter().all(|(_, text)| is_results(text)), self.files.len()) {
            (true, _) => Ok(ImportKind::Results),
            (false, 1) => Ok(ImportKind::Csv),
            (false, _) => {
                refused("were not imported: only results of a load generator are read together, a CSV alone.")
            }
        }
    }
}
