//! Baselines that the command line names: read at the start, and again for the checks and for readers of the page, since a folder
//! of results grows while an experiment runs. Knows files, not what is in them.

use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use radixscope_insight::baseline::{
    Baseline, Import, ImportError, MAX_BYTES, MAX_RESULT_BYTES, MAX_RESULT_FILES, Results, Router, export,
    import, is_results,
};

use crate::config::BaselineAt;

/// What is older is read again for the next reader.
const READ_EVERY: Duration = Duration::from_secs(2);
/// Deepest folder below a folder of results: aiperf writes two or three deep.
const MAX_DEPTH: usize = 5;
/// Maximum entries of folders that are looked at.
const MAX_ENTRIES: usize = 16_384;
/// Most bytes of all files of a folder.
const MAX_FOLDER_BYTES: u64 = 256 << 20;
/// Folders of aiperf in which a warm-up has files named as a run's.
const PASSED_OVER: [&str; 2] = ["phases", "logs"];
/// Files of aiperf that are read in folders.
const RUN: &str = "profile_export_aiperf.json";
const SWEEP: &str = "profile_export_aiperf_sweep.json";
const BEGUN: &str = "run_config.json";

/// The baselines of the command line.
#[derive(Default, Debug)]
pub struct BaselineFiles {
    all: Vec<BaselineAt>,
    /// What is not read from files.
    fixed: Vec<Baseline>,
    /// As CSV, when it was last looked at, and the stamp of what it was read from.
    read: Mutex<Option<(Instant, u64, String)>>,
}

impl BaselineFiles {
    /// Those.
    pub fn new(all: Vec<BaselineAt>) -> Self {
        Self { all, ..Self::default() }
    }

    /// With others that do not change.
    #[must_use]
    pub(crate) fn and(mut self, fixed: Vec<Baseline>) -> Self {
        self.fixed = fixed;
        self
    }

    /// Reads all, and logs what was passed over.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn open(&self) -> anyhow::Result<Vec<Baseline>> {
        let mut baselines = Vec::new();
        for at in &self.all {
            let Import { baselines: read, notices } =
                read(at).with_context(|| format!("--baseline {}", at.path.display()))?;
            for notice in notices {
                tracing::warn!(path = %at.path.display(), "{notice}");
            }
            baselines.extend(read);
        }
        Ok(baselines)
    }

    /// Another value once any of the files has changed: by names, sizes and times, without reading them. Blocks.
    pub(crate) fn stamp(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for at in &self.all {
            let files = match fs::metadata(&at.path) {
                Ok(of) if of.is_dir() => json_files(&at.path).unwrap_or_default(),
                _ => vec![at.path.clone()],
            };
            for path in files {
                let of = fs::metadata(&path).ok();
                let size_and_time = of.map(|of| (of.len(), of.modified().ok()));
                (path, size_and_time).hash(&mut hash);
            }
        }
        hash.finish()
    }

    /// Reads each again; `None` for one that cannot be read now. Blocks.
    pub(crate) fn read_each(&self) -> Vec<Option<Vec<Baseline>>> {
        self.all.iter().map(|at| read(at).ok().map(|import| import.baselines)).collect()
    }

    /// As the CSV that the page exports, at most two seconds old; what cannot be read now stands in comments. Blocks.
    pub fn csv(&self) -> String {
        // One reader reads, the others wait for what it finds.
        let mut last = self.read.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((at, _, text)) = last.as_ref()
            && at.elapsed() < READ_EVERY
        {
            return text.clone();
        }
        let now = self.stamp();
        if let Some((at, stamp, text)) = last.as_mut()
            && *stamp == now
        {
            *at = Instant::now();
            return text.clone();
        }
        let (mut baselines, mut comments) = (self.fixed.clone(), String::new());
        for at in &self.all {
            match read(at) {
                Ok(Import { baselines: read, notices }) => {
                    if read.iter().all(|baseline| baseline.rows().is_empty()) {
                        comment(&mut comments, &format!("{}: no results yet", at.name()));
                    }
                    baselines.extend(read);
                    for notice in notices {
                        comment(&mut comments, &format!("{}: {notice}", at.name()));
                    }
                }
                Err(error) => comment(&mut comments, &format!("{}: {error:#}", at.name())),
            }
        }
        // Nothing at all tells the page not to ask again.
        let text = if self.all.is_empty() && self.fixed.is_empty() {
            String::new()
        } else {
            comments + &export(&baselines)
        };
        *last = Some((Instant::now(), now, text.clone()));
        text
    }
}

fn comment(comments: &mut String, text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(comments, "# {line}");
}

fn read(at: &BaselineAt) -> anyhow::Result<Import> {
    if fs::metadata(&at.path)?.is_dir() {
        let router = at.router.ok_or_else(|| anyhow!(no_router(&at.path)))?;
        return folder(&at.path, &at.name(), router);
    }
    let text = file(&at.path, MAX_RESULT_BYTES as u64)?;
    if is_results(&text) {
        let router = at.router.ok_or_else(|| anyhow!(no_router(&at.path)))?;
        let mut results = Results::default();
        results.add(&text)?;
        return Ok(results.finish(&at.name(), router));
    }
    if text.len() > MAX_BYTES {
        return Err(ImportError::Bytes(text.len()).into());
    }
    let mut import = import(&text, &at.name())?;
    if let Some(router) = at.router {
        import.baselines = import.baselines.into_iter().map(|baseline| baseline.or_routed(router)).collect();
    }
    Ok(import)
}

fn no_router(path: &Path) -> String {
    let path = path.display();
    format!("the results do not say how requests were routed: give kv-aware={path} or round-robin={path}")
}

/// Text of a file that is no larger than that, also if it grows meanwhile.
fn file(path: &Path, most: u64) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(anyhow!("the file has more than {most} bytes"));
    }
    Ok(text)
}

/// The results in a folder. Files that cannot be read, as one that is being written, are left out with a notice.
fn folder(path: &Path, name: &str, router: Router) -> anyhow::Result<Import> {
    let found = json_files(path)?;
    let of_aiperf: Vec<PathBuf> = found.iter().filter(|path| is_of_aiperf(path)).cloned().collect();
    let files = if of_aiperf.is_empty() { top_level(path, found) } else { of_aiperf };
    let mut results = Results::default();
    let mut left = MAX_FOLDER_BYTES;
    for (n, file_path) in files.iter().enumerate() {
        let shown = file_path.strip_prefix(path).unwrap_or(file_path).display().to_string();
        if n == MAX_RESULT_FILES || left == 0 {
            tracing::warn!(path = %path.display(), "only the first {n} files of the folder are read");
            break;
        }
        let text = match file(file_path, left.min(MAX_RESULT_BYTES as u64)) {
            Ok(text) => text,
            Err(error) => {
                tracing::debug!(path = %file_path.display(), "{error:#}");
                continue;
            }
        };
        left -= text.len() as u64;
        if let Err(error) = results.add(&text) {
            results.leave_out(&shown, &error);
        }
    }
    Ok(results.finish(name, router))
}

/// JSON files in the folder itself: other tools write one a run.
fn top_level(path: &Path, found: Vec<PathBuf>) -> Vec<PathBuf> {
    found.into_iter().filter(|file| file.parent() == Some(path)).collect()
}

fn is_of_aiperf(path: &Path) -> bool {
    path.file_name().is_some_and(|name| [RUN, SWEEP, BEGUN].iter().any(|own| name == *own))
}

/// JSON files in a folder and below, by name; links are not followed.
fn json_files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut entries) = (Vec::new(), 0);
    let mut folders = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(anyhow!("the folder has more than {MAX_ENTRIES} entries"));
            }
            let entry = entry?;
            let (path, kind, name) = (entry.path(), entry.file_type()?, entry.file_name());
            if kind.is_dir() && depth < MAX_DEPTH && !PASSED_OVER.iter().any(|other| name == *other) {
                folders.push((path, depth + 1));
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "json") {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use radixscope_insight::baseline::{Figure, SpreadKind};

    use super::*;

    fn sweep(router: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/aiperf/0.13.0-sweep").join(router)
    }

    fn files(text: &str) -> BaselineFiles {
        let Ok(at) = text.parse();
        BaselineFiles::new(vec![at])
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }

    #[test]
    fn a_folder_of_aiperf_is_read_with_its_aggregate_and_without_its_warm_up() {
        let all = files(&format!("kv={}", sweep("kv").display())).open().unwrap();
        let [baseline] = &all[..] else { panic!("{all:?}") };
        // The folder is called as its router.
        assert_eq!((baseline.name(), baseline.router()), ("0.13.0-sweep", Router::KvAware));
        let runs: Vec<_> = baseline.rows().iter().map(|row| (row.concurrency, row.runs.finished)).collect();
        assert_eq!(runs, [(4.0, Some(2)), (8.0, Some(2)), (16.0, Some(2))]);
        let first = baseline.rows()[0];
        assert_eq!(
            (first.spread, first.samples),
            (Some(SpreadKind::Confidence { percent: 95.0 }), Some(327))
        );
    }

    #[test]
    fn a_folder_that_grows_is_read_again_and_what_is_half_written_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&format!("round-robin={}", folder.path().display()));
        assert_eq!(files.open().unwrap()[0].rows(), []);
        let run = |name: &str| format!("profile_runs/trial_0001/concurrency_4/{name}");
        copy(&sweep("round-robin").join(run(BEGUN)), &folder.path().join(run(BEGUN)));
        fs::write(folder.path().join(run(RUN)), "{\"schema_version\": \"1.4\", \"aiperf").unwrap();
        let csv = files.csv();
        assert!(
            csv.starts_with("# ")
                && csv.contains("concurrency_4/profile_export_aiperf.json: line 1, column 33"),
            "{csv}"
        );
        let read = import(&csv, "").unwrap().baselines.remove(0);
        assert_eq!(read.rows().len(), 3);
        assert!(read.rows()[0].runs.is_running());
        copy(&sweep("round-robin").join(run(RUN)), &folder.path().join(run(RUN)));
        *files.read.lock().unwrap() = None;
        let read = import(&files.csv(), "").unwrap().baselines.remove(0);
        assert!(read.rows()[0].figures.get(Figure::TtftP50).is_some() && !read.rows()[0].runs.is_running());
    }

    #[test]
    fn results_without_a_router_are_refused_with_what_to_write() {
        let file = sweep("kv").join("aggregate/sweep_aggregate").join(SWEEP);
        for path in [sweep("kv"), file.clone()] {
            let error = format!("{:#}", files(&path.display().to_string()).open().unwrap_err());
            assert!(error.contains("give kv-aware="), "{error}");
        }
        assert_eq!(files(&format!("kv={}", file.display())).open().unwrap()[0].rows().len(), 3);
        let absent = format!("{:#}", files("kv=absent").open().unwrap_err());
        assert!(absent.starts_with("--baseline absent: "), "{absent}");
    }

    #[test]
    fn results_of_other_tools_are_read_from_a_folder_of_theirs() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/load_generators");
        let all = files(&format!("other={}", path.display())).open().unwrap();
        let levels: Vec<_> = all[0].rows().iter().map(|row| (row.concurrency, row.runs.finished)).collect();
        // guidellm's and vLLM's runs at 60, and guidellm's at 80.
        assert_eq!(levels, [(60.0, Some(2)), (80.0, Some(1))]);
    }
}
