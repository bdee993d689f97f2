//! The queries of docs/duckdb.md, by DuckDB on recordings in a real server that speaks S3: they count what the recordings hold.
//! Needs DuckDB: `cargo xtask test duckdb`.

use std::fs::File;
use std::process::Command;

use radixscope_exhaustive::object_store::{BUCKET, ObjectStore};
use radixscope_exhaustive::object_store::{downloaded, end, files_in, recorder, until_recording};
use radixscope_recording::{Channel, Recording, Series};
use radixscope_tests::paths;
use serde_json::Value;

/// Figures of a cluster, counted from the decisions in its recording, each of which is there as JSON.
struct Counted {
    decisions: Vec<Value>,
}

impl Counted {
    async fn of(store: &ObjectStore, prefix: &str) -> Self {
        let folder = downloaded(store, prefix).await;
        let open = |path: &std::path::PathBuf| {
            Recording::open(File::open(path).expect("a file")).expect("a recording")
        };
        let opened = files_in(folder.path(), "mcap").iter().map(open).collect();
        let mut decisions = Vec::new();
        let damaged = Series::of(opened).expect("one recording").each(Channel::Decisions, &mut |message| {
            decisions.push(serde_json::from_slice(message.data).expect("JSON"));
        });
        assert!(damaged.is_none());
        Self { decisions }
    }

    /// Values of a field, where it is known.
    fn known(&self, read: impl Fn(&Value) -> Option<f64>) -> Vec<f64> {
        let mut known: Vec<f64> = self.decisions.iter().filter_map(read).collect();
        known.sort_by(f64::total_cmp);
        known
    }

    fn ttft_ms(decision: &Value) -> Option<f64> {
        decision["progress"]["ttft_ms"].as_f64()
    }

    /// Overlap over length, of those for which the cache counts.
    fn hit_rate(&self) -> f64 {
        let counts = self.decisions.iter().filter(|of| of["verdict"] != "ignored");
        let blocks =
            counts.filter_map(|of| Some((of["overlap_blocks"].as_f64()?, of["isl_blocks"].as_f64()?)));
        let (overlap, isl) =
            blocks.filter(|(_, isl)| *isl > 0.0).fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        overlap / isl
    }

    fn count(&self, is: impl Fn(&Value) -> bool) -> u64 {
        self.decisions.iter().filter(|of| is(of)).count() as u64
    }
}

/// The rows of a query for a cluster.
fn rows_of<'r>(results: &'r Value, query: &str, cluster: &str) -> Vec<&'r Value> {
    let rows = results[query].as_array().unwrap_or_else(|| panic!("{query} is no query of the document"));
    rows.iter().filter(|row| row["cluster"] == cluster).collect()
}

fn sum(rows: &[&Value], column: &str) -> u64 {
    rows.iter().map(|row| row[column].as_u64().unwrap_or_else(|| panic!("{column} in {row}"))).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queries_of_the_document_count_what_the_recordings_hold() {
    let store = ObjectStore::start().await;
    let buffers = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let variables = store.variables();
    let clusters = [("a", "20", &["--topology", "tiers"]), ("b", "40", &["--topology", "disaggregated"])];
    for ((cluster, speed, more), buffer) in clusters.iter().zip(&buffers) {
        let prefix = format!("cluster={cluster}");
        let mut server = recorder(&prefix, buffer.path(), &variables, speed, *more).await;
        until_recording(&server, "several files are stored", |recording| {
            recording["stored"]["objects"].as_u64() >= Some(8)
        })
        .await;
        end(&mut server).await;
    }
    let counted = [Counted::of(&store, "cluster=a").await, Counted::of(&store, "cluster=b").await];
    let is_asked = |of: &&Value| of["request_id"].is_string() && of["progress"]["outcome"].is_string();
    let asked = counted[0]
        .decisions
        .iter()
        .find(is_asked)
        .unwrap_or_else(|| panic!("a request that ended: {:?}", counted[0].decisions.last()));
    let request = asked["request_id"].as_str().expect("an id");
    let results = queried(&store, request);

    for (cluster, of) in ["a", "b"].iter().zip(&counted) {
        let all = of.decisions.len() as u64;
        assert!(all > 50, "{all} decisions in {cluster}");
        let rows = |query: &str| rows_of(&results, query, cluster);
        assert_eq!(sum(&rows("Better-cached workers that were skipped"), "decisions"), all, "{cluster}");
        let skipped = of.count(|decision| !decision["lost_affinity_blocks"].is_null());
        assert_eq!(sum(&rows("Better-cached workers that were skipped"), "skipped"), skipped, "{cluster}");

        let hit_rate = rows("Hit rate by cluster and day");
        let with_blocks = of.count(|decision| {
            decision["verdict"] != "ignored"
                && decision["overlap_blocks"].is_u64()
                && decision["isl_blocks"].as_u64() > Some(0)
        });
        assert_eq!(sum(&hit_rate, "decisions"), with_blocks, "{cluster}");
        // Two days only around midnight.
        if let [row] = hit_rate[..] {
            let difference = row["hit_rate"].as_f64().expect("a share") - of.hit_rate();
            assert!(difference.abs() < 1e-4, "{row} {}", of.hit_rate());
        }

        let ttft = of.known(Counted::ttft_ms);
        // Only the first of the clusters reports it.
        assert_eq!(rows("TTFT against a target").is_empty(), ttft.is_empty(), "{cluster}");
        for row in rows("TTFT against a target") {
            assert_eq!(row["requests"], ttft.len());
            for (column, share) in [("p50_ms", 0.5), ("p95_ms", 0.95)] {
                let value = row[column].as_f64().expect("a time");
                // Several may have the same time.
                let first = ttft.partition_point(|ttft| *ttft < value) as f64;
                let last = ttft.partition_point(|ttft| *ttft <= value) as f64;
                let rank = share * ttft.len() as f64;
                assert!(first - 1.0 <= rank && rank <= last + 1.0, "{column} {value}: {first} {rank} {last}");
            }
            let within = ttft.iter().filter(|ttft| **ttft <= 500.0).count() as f64 / ttft.len() as f64;
            assert!(
                (row["within_target"].as_f64().expect("a share") - within).abs() < 1e-4,
                "{row} {within}"
            );
        }

        for row in rows("Slowest workers") {
            let is_of = |of: &Value| {
                of["worker_id"] == row["worker_id"].to_string().as_str()
                    && of["dp_rank"] == row["dp_rank"]
                    && !of["progress"]["ttft_ms"].is_null()
            };
            assert_eq!(row["requests"], of.count(is_of), "{row}");
        }
        let causes = sum(&rows("Why prompts had to be computed"), "prompts");
        assert_eq!(
            causes,
            of.count(|of| of["reuse"]["losses"].as_array().is_some_and(|losses| !losses.is_empty()))
        );
        let days = rows("Decisions made on partial knowledge");
        assert_eq!(sum(&days, "decisions"), all);
        if let [row] = days[..] {
            let partial = of.count(|of| of["partial"] == true) as f64 / all as f64;
            assert!(
                (row["partial_share"].as_f64().expect("a share") - partial).abs() < 1e-4,
                "{row} {partial}"
            );
        }
        for row in rows("How requests ended") {
            let ended = of.count(|of| of["progress"]["outcome"] == row["outcome"]);
            assert_eq!(row["requests"], ended, "{row}");
        }
        let weeks = rows("Growth of prompts and traffic");
        assert_eq!(sum(&weeks, "decisions"), all);
        if let [row] = weeks[..] {
            let isl = of.known(|of| of["isl_tokens"].as_f64());
            let mean = isl.iter().sum::<f64>() / isl.len() as f64;
            assert!((row["mean_isl_tokens"].as_f64().expect("a mean") - mean).abs() < 0.1, "{row} {mean}");
            assert!(row["more_than_before"].is_null());
        }
    }
    assert!(!counted[0].known(Counted::ttft_ms).is_empty(), "some query is of it");
    let of_request = rows_of(&results, "One request", "a");
    assert_eq!(of_request.len() as u64, counted[0].count(|of| of["request_id"] == request));
    assert!(of_request.iter().any(|row| row["verdict"] == asked["verdict"]), "{of_request:?}");
    assert_eq!(results["duplicates"], 0);
    assert!(
        results["columns"].as_array().is_some_and(|columns| columns.iter().any(|name| name == "cluster"))
    );
}

/// The results of the document's queries.
fn queried(store: &ObjectStore, request: &str) -> Value {
    let (library, extension) = paths::duckdb();
    let checkout = paths::checkout();
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", library).env("PYTHONDONTWRITEBYTECODE", "1").envs(store.variables());
    command.arg(checkout.join("tests/duckdb_queries.py")).arg(checkout.join("docs/duckdb.md")).arg(extension);
    let output = command.args([&format!("s3://{BUCKET}"), request]).output().expect("python3 is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}
