//! Results that aiperf 0.13.0 wrote of Dynamo 1.6.1, of other load generators after their sources, and what strangers may give.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::baseline::{Standing, export, import, standing, standing_text};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

fn sweep(of: &str) -> PathBuf {
    fixtures().join("aiperf/0.13.0-sweep").join(of)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of that name of both trials.
fn of_runs(router: &str, name: &str) -> Vec<String> {
    let mut all = Vec::new();
    for trial in ["trial_0001", "trial_0002"] {
        for level in ["concurrency_4", "concurrency_8", "concurrency_16"] {
            all.push(text(&sweep(router).join("profile_runs").join(trial).join(level).join(name)));
        }
    }
    all
}

fn aggregate(router: &str) -> String {
    text(&sweep(router).join("aggregate/sweep_aggregate/profile_export_aiperf_sweep.json"))
}

fn baseline<'a>(files: impl IntoIterator<Item = &'a String>) -> Baseline {
    let mut results = Results::default();
    for file in files {
        results.add(file).unwrap();
    }
    results.finish("mine", Router::KvAware).baselines.remove(0)
}

fn error(text: &str) -> String {
    Results::default().add(text).unwrap_err().to_string()
}

#[test]
fn the_runs_of_a_sweep_are_levels_with_the_mean_and_the_range_of_their_repeats() {
    let all = baseline(&of_runs("kv", "profile_export_aiperf.json"));
    let levels: Vec<f64> = all.rows().iter().map(|row| row.concurrency).collect();
    assert_eq!(levels, [4.0, 8.0, 16.0]);
    let row = &all.rows()[0];
    // What aiperf's own aggregate has as mean, min and max of the two runs.
    assert!((row.figures.get(Figure::TtftP50).unwrap() - 50.932_084).abs() < 1e-9);
    assert_eq!(row.bounds.get(Figure::TtftP50), Some(Bounds { low: 50.703_038, high: 51.161_13 }));
    assert_eq!(row.spread, Some(SpreadKind::MinMax));
    assert_eq!(row.runs, Runs { finished: Some(2), begun: Some(2), planned: Some(2) });
    assert_eq!((row.samples, row.runs.missing()), (Some(327), Some(0)));
    assert!((row.figures.get(Figure::HitRate).unwrap() - 79.169_522_715_505_05).abs() < 1e-9);
    // Whole requests are in seconds here.
    assert!((0.1..2.0).contains(&row.figures.get(Figure::E2eP50).unwrap()));
    assert!((20.0..21.0).contains(&row.duration_s.unwrap()));
}

#[test]
fn the_aggregate_of_a_sweep_brings_its_confidence_and_the_runs_their_samples() {
    let alone = baseline([&aggregate("kv")]);
    let row = &alone.rows()[0];
    assert_eq!(row.spread, Some(SpreadKind::Confidence { percent: 95.0 }));
    assert!((row.bounds.get(Figure::TtftP50).unwrap().low - 48.021_778_629_998_13).abs() < 1e-9);
    // The interval of two runs reaches beyond all prompts' tokens.
    assert_eq!(row.bounds.get(Figure::HitRate).unwrap().high, 100.0);
    assert_eq!(row.runs.finished, Some(2));
    assert_eq!(row.samples, Some(327));
    let mut files = of_runs("kv", "profile_export_aiperf.json");
    files.push(aggregate("kv"));
    let both = baseline(&files);
    for (row, alone) in both.rows().iter().zip(alone.rows()) {
        for figure in Figure::ALL {
            assert_eq!(row.bounds.get(figure), alone.bounds.get(figure), "{figure:?}");
            assert_eq!(row.figures.get(figure), alone.figures.get(figure), "{figure:?}");
        }
        assert_eq!(row.runs.planned, Some(2));
    }
    let level = text(&sweep("kv").join("aggregate/concurrency_8/profile_export_aiperf_aggregate.json"));
    assert_eq!(baseline([&level]).rows()[0].bounds, alone.rows()[1].bounds);
}

#[test]
fn a_running_experiment_names_its_levels_and_what_is_missing() {
    let begun = of_runs("kv", "run_config.json");
    let finished = of_runs("kv", "profile_export_aiperf.json");
    // Four runs have begun, three of them have ended.
    let all = baseline(begun[..4].iter().chain(&finished[..3]));
    let runs: Vec<Runs> = all.rows().iter().map(|row| row.runs).collect();
    assert_eq!(runs[0], Runs { finished: Some(1), begun: Some(2), planned: Some(2) });
    assert!(runs[0].is_running() && !runs[1].is_running());
    assert_eq!(runs.iter().map(|runs| runs.missing().unwrap()).sum::<u64>(), 3);
    // One run has no spread, and levels that have not begun are there without figures.
    assert_eq!(all.rows()[0].spread, None);
    let first = baseline(&begun[..1]);
    assert_eq!(first.rows().len(), 3);
    assert!(first.rows().iter().all(|row| row.figures == Figures::default()));
    assert_eq!(first.rows()[2].runs, Runs { finished: Some(0), begun: Some(0), planned: Some(2) });
}

#[test]
fn a_run_that_is_given_twice_counts_once() {
    let run = of_runs("kv", "profile_export_aiperf.json").remove(0);
    let all = baseline([&run, &run]);
    assert_eq!(all.rows()[0].runs.finished, Some(1));
    assert_eq!(all.rows()[0].samples, Some(163));
}

#[test]
fn where_the_repeats_lie_apart_one_router_is_faster_and_in_between_they_overlap() {
    let [kv, rr] =
        ["kv", "round-robin"].map(|router| baseline(&of_runs(router, "profile_export_aiperf.json")));
    let text =
        |figure| standing_text(figure, ["KV-aware", "Round-robin"], &standing(&kv, &rr, figure)).unwrap();
    // Half-way between 8 and 16 the means cross, 66.9 against 63.3 … 69.9: the repeats overlap from before that on.
    assert_eq!(
        text(Figure::TtftP50),
        "KV-aware is faster up to concurrency 10; the runs overlap from concurrency 10 on"
    );
    assert_eq!(text(Figure::HitRate), "KV-aware is higher from 4 to 16, all that was measured");
    let [kv, rr] = ["kv", "round-robin"].map(|router| baseline([&aggregate(router)]));
    // Two runs bear no such statement with 95 % confidence.
    let all = standing(&kv, &rr, Figure::TtftP50);
    assert!(all.iter().all(|stretch| stretch.standing == Standing::Overlap), "{all:?}");
}

#[test]
fn what_was_read_survives_the_export() {
    for files in [
        vec![aggregate("kv")],
        of_runs("round-robin", "profile_export_aiperf.json"),
        of_runs("kv", "run_config.json"),
    ] {
        let read = baseline(&files);
        assert_eq!(import(&export([&read]), "").unwrap().baselines, [read]);
    }
}

#[test]
fn other_load_generators_are_read_where_their_fields_mean_the_same() {
    let vllm = baseline([&text(&fixtures().join("load_generators/vllm-bench-serve.json"))]);
    let [row] = vllm.rows() else { panic!("one level") };
    let known = Figure::ALL.map(|figure| row.figures.get(figure));
    let expected = [
        Some(249.5),
        Some(446.25),
        None,
        Some(2151.2),
        Some(2.59),
        Some(26.0),
        Some(27.5),
        Some(24.3),
        Some(27.7),
    ];
    assert_eq!((row.concurrency, row.samples, known), (60.0, Some(600), expected));
    let guidellm = baseline([&text(&fixtures().join("load_generators/guidellm.json"))]);
    let levels: Vec<_> = guidellm
        .rows()
        .iter()
        .map(|row| (row.concurrency, row.figures.get(Figure::TtftP50), row.duration_s))
        .collect();
    assert_eq!(levels, [(60.0, Some(250.0), Some(60.0)), (80.0, Some(275.0), Some(60.0))]);
}

#[test]
fn what_cannot_be_compared_is_refused_in_words() {
    let run = of_runs("kv", "profile_export_aiperf.json").remove(0);
    let with = |from: &str, to: &str| {
        assert!(run.contains(from), "{from}");
        error(&run.replace(from, to))
    };
    assert_eq!(
        with("\"schema_version\": \"1.4\"", "\"schema_version\": \"2.0\""),
        "aiperf wrote it with version 2.0; what is read: schema versions 1.x"
    );
    assert!(with("\"schema_version\": \"1.4\"", "\"x\": 1").contains("version none"));
    assert!(with("\"was_cancelled\": false", "\"was_cancelled\": true").contains("cancelled"));
    assert!(with("\"is_complete\": true", "\"is_complete\": false").contains("ended early"));
    assert!(with("\"concurrency\": 4", "\"concurrency\": -4").contains("names no concurrency"));
    assert!(with("\"unit\": \"ms\"", "\"unit\": 7").starts_with("line "));
    let swept = aggregate("kv").replace("\"concurrency\": 4\n", "\"concurrency\": 4, \"isl\": 100\n");
    assert_eq!(
        error(&swept),
        "the sweep varies isl, too; levels can only be compared if nothing but the concurrency varies"
    );
    let guidellm = text(&fixtures().join("load_generators/guidellm.json"));
    let other = error(&guidellm.replace("\"version\": 2,", "\"version\": 3,"));
    assert_eq!(other, "guidellm wrote it with version 3; what is read: report version 2");
    assert!(error("{}").contains("profile_export_aiperf.json"));
    assert!(error("{\"benchmarks\": [").starts_with("line 1, column "));
    assert!(error(&"[".repeat(100_000)).starts_with("line 1, column "));
}

#[test]
fn figures_in_units_that_do_not_convert_are_unknown() {
    let run = of_runs("kv", "profile_export_aiperf.json").remove(0);
    let level = |run: &String| baseline([run]).rows()[0].figures;
    let plain = level(&run);
    let seconds = run.replacen("\"unit\": \"ms\"", "\"unit\": \"sec\"", 1);
    let strange = run.replacen("\"unit\": \"ms\"", "\"unit\": \"ticks\"", 1);
    // The first metric of the file is the duration of whole requests.
    let of = |figures: &Figures| figures.get(Figure::E2eP50);
    assert_eq!(of(&level(&seconds)), of(&plain).map(|s| s * 1e3));
    assert_eq!(of(&level(&strange)), None);
    assert_eq!(level(&strange).get(Figure::TtftP50), plain.get(Figure::TtftP50));
}

#[test]
fn a_level_of_nothing_but_failed_files_is_left_out_with_the_reason() {
    let mut results = Results::default();
    let bad = "{}";
    let why = results.add(bad).unwrap_err();
    for n in 0..30 {
        results.leave_out(&format!("run {n}"), &why);
    }
    results.add(&of_runs("kv", "profile_export_aiperf.json")[0]).unwrap();
    let notice = results.finish("mine", Router::Other).notices[0].to_string();
    assert!(
        notice.starts_with("left out: run 0: this JSON is none of") && notice.ends_with(" and 10 more"),
        "{notice}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_read_and_never_panic(at in 0_usize..4_000, with in any::<u8>(), cut in 0_usize..6_000) {
        let path = "profile_runs/trial_0001/concurrency_4/profile_export_aiperf.json";
        let mut bytes = fs::read(sweep("kv").join(path)).unwrap();
        let at = at % bytes.len();
        bytes[at] = with;
        bytes.truncate(bytes.len().saturating_sub(cut / 2));
        if let Ok(text) = String::from_utf8(bytes) {
            let mut results = Results::default();
            if results.add(&text).is_ok() {
                let read = results.finish("mine", Router::Other).baselines;
                prop_assert_eq!(import(&export(&read), "").map(|again| again.baselines), Ok(read));
            }
        }
    }
}
