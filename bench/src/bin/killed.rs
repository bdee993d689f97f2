//! Kills a recording server at random points of its writing and opens what it left: every file opens, says how many bytes at
//! its end are lost, and holds all but what was shown in the last second.
#![forbid(unsafe_code)]

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_recording::{Recording, Series};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::json;

/// The longest that a server writes before it is killed.
const MOST_MS: u64 = 3_000;
/// What is written is brought to the disk once a second, and that takes its time where the machine is busy.
const MOST_LOST_MS: u64 = 2_000;

/// What one kill left.
struct Left {
    /// Bytes at the end of the last file that are no whole part of it.
    lost_bytes: u64,
    /// From the last moment in the files to the last that was shown.
    lost_ms: u64,
    lost_records: u64,
    bytes: u64,
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Servers that are killed
    #[arg(long, default_value_t = 100)]
    times: u64,
}

#[tokio::main]
async fn main() {
    let Options { report, times } = Options::parse();
    let mut all = Vec::new();
    for run in 0..times {
        // Spread over the time, with a rest that no rhythm of the writing has.
        let after_ms = MOST_MS * run / times + run * 7_919 % 97;
        let left = killed_after(Duration::from_millis(after_ms)).await;
        println!(
            "killed after {after_ms} ms: {} bytes, {} lost at the end, {} records of {} ms not written",
            left.bytes, left.lost_bytes, left.lost_records, left.lost_ms
        );
        all.push(left);
    }
    let most = |of: fn(&Left) -> u64| all.iter().map(of).max().unwrap_or(0);
    let torn = all.iter().filter(|left| left.lost_bytes > 0).count();
    let rows = json!([
        {"what": "recordings of killed servers that open", "value": all.len(), "unit": format!("of {times}")},
        {"what": "of those, with an end that is not whole", "value": torn, "unit": "files"},
        {"what": "most lost at the end", "value": most(|left| left.lost_bytes), "unit": "B"},
        {"what": "most that was shown and not written", "value": most(|left| left.lost_ms), "unit": "ms",
            "budget": format!("{MOST_LOST_MS} ms"), "within": most(|left| left.lost_ms) <= MOST_LOST_MS},
    ]);
    println!("{rows:#}");
    report.write(&json!({ "rows": rows }));
}

async fn killed_after(time: Duration) -> Left {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("a path of ours");
    let args = ["demo", "--warm-up", "20", "--speed", "20", "--record", path];
    let mut server = Radixscope::start(args).await;
    let viewer = server.viewer().await;
    viewer
        .until("it shows something", |seen| seen.state.as_ref().map(drop).ok_or("nothing".to_owned()))
        .await;
    wait::until("something is written", async || {
        wait::expect(!files(folder.path()).is_empty(), || "no file yet".to_owned())
    })
    .await;
    tokio::time::sleep(time).await;
    server.kill();
    let (seq, shown_ms) = viewer.with(|seen| {
        let state = seen.state.as_ref().expect("a state");
        (state.seq().0, seen.at_ms.0)
    });
    let paths = files(folder.path());
    let open = |path| Recording::open(File::open(path).expect("it is there")).expect("every file opens");
    let opened: Vec<_> = paths.iter().map(open).collect();
    let lost_bytes = opened.iter().map(Recording::lost_bytes).sum();
    let bytes = paths.iter().map(|path| std::fs::metadata(path).expect("it is there").len()).sum();
    let folded = Series::of(opened).expect("of one recording").play(&mut |_| {}).expect("a state");
    assert!(folded.damaged.is_none(), "{:?}", folded.damaged);
    let lost_records = seq.saturating_sub(folded.cluster.seq().0);
    Left { lost_bytes, lost_ms: shown_ms.saturating_sub(folded.at_ms.0), lost_records, bytes }
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "mcap")).collect()
}
