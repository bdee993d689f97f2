//! Metrics as Tachometer leaves them, and Parquet files that are damaged.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime};

use radixscope_captures::Recording as Captured;
use radixscope_model::record::{Counter, Gauge, HistogramKind};
use radixscope_state::cluster::{Cluster, Distribution, ProcessState};

use super::{client_run, contains, fixture, folder, named, open_in, opened};

/// What Tachometer leaves of the metrics that were recorded in the capture 1.6.1-healthy.
fn tachometer() -> Vec<u8> {
    fs::read(fixture("tachometer/final.parquet")).unwrap()
}

/// When its first sample was taken, and the time after it at which its last was.
const TACHOMETER_BEGAN_MS: u64 = 1_795_197_951_985;
const TACHOMETER_LASTS_MS: u64 = 86_999;

/// Of a process: times to first token of the session, how many are above 50 ms, requests that ended well, and in flight.
type Figures = (Option<u64>, Option<(u64, u64)>, Option<f64>, Option<f64>);

/// Of each process.
fn figures(cluster: &Cluster) -> BTreeMap<String, Figures> {
    let of = |process: &ProcessState| {
        let ttft = process.session(HistogramKind::Ttft);
        let (count, above) = (ttft.as_ref().map(Distribution::count), ttft.as_ref().map(|of| of.above(0.05)));
        (count, above, process.counted(Counter::RequestsOk), process.gauge(Gauge::InFlightRequests))
    };
    cluster.processes().iter().map(|process| (process.name.clone(), of(process))).collect()
}

#[test]
fn metrics_of_tachometer_are_those_that_the_processes_answered() {
    let files = named(&[("run/metrics/final.parquet", tachometer())]);
    let plain = folder(&files);
    let path = plain.path().join("run/metrics/final.parquet");
    let ended = SystemTime::UNIX_EPOCH + Duration::from_millis(TACHOMETER_BEGAN_MS + TACHOMETER_LASTS_MS);
    fs::File::options().write(true).open(&path).unwrap().set_modified(ended).unwrap();
    let (from_parquet, report) = open_in(&plain, &["run"], None).unwrap();
    contains(
        &report,
        &[
            "run/metrics/final.parquet: Tachometer metrics, 18,724 samples read; ",
            "time by when the file was changed, which is that of its last sample",
        ],
    );
    // The responses themselves.
    let names = |from: &str| match from {
        "frontend" => "frontend_0".to_owned(),
        worker => format!("backend_agg{}_rank0", worker.trim_start_matches("worker")),
    };
    let scrapes = Captured::fixture("1.6.1-healthy").scrapes();
    let responses = scrapes.map(|scrape| {
        let at_ms = (scrape.at_s * 1_000.0) as u64;
        (format!("run/{at_ms}/{}.prom", names(&scrape.process)), scrape.text.into_bytes())
    });
    let (from_text, _) = opened(&responses.collect());
    let (parquet, text) = (figures(&from_parquet), figures(&from_text));
    assert_eq!(parquet.len(), 4, "{:?}", parquet.keys());
    assert_eq!(parquet, text);
    assert!(parquet["frontend_0"].0.is_some_and(|count| count > 100), "{parquet:?}");
}

#[test]
fn parquet_that_is_damaged_or_of_others_is_named_and_the_rest_is_read() {
    let whole = tachometer();
    let mut broken = whole.clone();
    // Every byte of the data once in a while: pages, then the schema at the end.
    let flipped: Vec<Vec<u8>> = (0..whole.len())
        .step_by(2_477)
        .map(|at| {
            broken.copy_from_slice(&whole);
            broken[at] ^= 0xff;
            broken.clone()
        })
        .collect();
    let mut files = client_run();
    files.push(("short.parquet".into(), whole[..whole.len() / 2].to_vec()));
    files.push(("empty.parquet".into(), b"PAR1".to_vec()));
    files.extend(flipped.into_iter().enumerate().map(|(n, bytes)| (format!("flipped{n}.parquet"), bytes)));
    let (cluster, report) = opened(&files);
    assert_eq!(cluster.decisions().totals().count, 3);
    contains(
        &report,
        &["short.parquet: not read; Parquet that cannot be read: ", "empty.parquet: not read; "],
    );
}
