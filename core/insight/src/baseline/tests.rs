//! The sample table, what follows from it, and files that people and strangers write.

use proptest::prelude::*;

use super::*;
use radixscope_model::range::Range;

fn sample() -> [Baseline; 2] {
    reference().try_into().unwrap()
}

fn sheet(text: &str) -> Result<Vec<Baseline>, String> {
    import(text, "mine").map(|import| import.baselines).map_err(|error| error.to_string())
}

fn figures(row: &SweepLevel) -> [f64; 9] {
    Figure::ALL.map(|figure| row.figures.get(figure).unwrap())
}

#[test]
fn the_sample_is_the_reference_table_and_says_whose_it_is() {
    let [kv, rr] = sample();
    assert_eq!((kv.router(), rr.router()), (Router::KvAware, Router::RoundRobin));
    for baseline in [&kv, &rr] {
        assert!(baseline.attribution().contains("Dynamo 0.9"), "{}", baseline.attribution());
        let levels: Vec<f64> = baseline.rows().iter().map(|row| row.concurrency).collect();
        assert_eq!(levels, [60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0]);
        assert!(baseline.rows().iter().all(|row| (row.duration_s, row.samples) == (Some(300.0), None)));
    }
    assert_eq!(figures(&kv.rows()[0]), [249.0, 446.0, 91.6, 2262.8, 2.57, 26.0, 27.0, 24.3, 27.7]);
    assert_eq!(figures(&rr.rows()[0]), [274.0, 655.0, 90.9, 2146.9, 2.60, 28.0, 30.0, 24.6, 30.1]);
    assert_eq!(figures(&kv.rows()[6]), [472.0, 3143.0, 94.0, 3907.7, 4.61, 45.0, 48.0, 41.4, 48.7]);
    assert_eq!(figures(&rr.rows()[6]), [413.0, 732.0, 88.9, 3434.0, 4.10, 52.0, 54.0, 46.1, 54.6]);
    // Of all levels, so that no digit of the table is wrong unseen.
    let sum = |of: &Baseline| of.rows().iter().flat_map(figures).sum::<f64>();
    assert!((sum(&kv) - 31_984.01).abs() < 1e-6, "{}", sum(&kv));
    assert!((sum(&rr) - 28_314.29).abs() < 1e-6, "{}", sum(&rr));
}

#[test]
fn between_levels_figures_lie_on_a_straight_line_and_beyond_them_nowhere() {
    let [kv, _] = sample();
    let at = |concurrency| kv.interpolate(concurrency, Figure::TtftP95);
    assert_eq!(at(130.0), Some(Interpolated { value: 590.0, between: (120.0, 140.0) }));
    assert_eq!(at(180.0), Some(Interpolated { value: 3143.0, between: (180.0, 180.0) }));
    assert_eq!(at(60.0), Some(Interpolated { value: 446.0, between: (60.0, 60.0) }));
    for outside in [59.9, 180.1, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(at(outside), None, "{outside}");
    }
    assert_eq!(kv.range(Figure::TtftP95), Some((60.0, 180.0)));
}

#[test]
fn levels_without_the_figure_are_passed_over() {
    let [baseline] =
        sheet("concurrency,ttft_p50_ms,itl_p50_ms\n10,100,\n20,,\n30,300,7\n").unwrap().try_into().unwrap();
    let at = baseline.interpolate(20.0, Figure::TtftP50);
    assert_eq!(at, Some(Interpolated { value: 200.0, between: (10.0, 30.0) }));
    assert_eq!(baseline.range(Figure::ItlP50), Some((30.0, 30.0)));
    assert_eq!(baseline.range(Figure::E2eP50), None);
    assert_eq!(baseline.interpolate(20.0, Figure::ItlP50), None);
}

#[test]
fn ttft_p95_crosses_between_120_and_140_and_twice_more() {
    use Direction::{FirstGetsBetter, FirstGetsWorse};
    let [kv, rr] = sample();
    let crossings = crossover(&kv, &rr, Figure::TtftP95);
    let expected = [
        (120.0 + 20.0 * 113.0 / 120.0, FirstGetsWorse),
        (140.0 + 20.0 * 7.0 / 25.0, FirstGetsBetter),
        (160.0 + 20.0 * 18.0 / 2_429.0, FirstGetsWorse),
    ];
    assert_eq!(crossings.len(), expected.len());
    for (crossing, (concurrency, direction)) in crossings.iter().zip(expected) {
        assert!((crossing.concurrency - concurrency).abs() < 1e-9, "{crossing:?}");
        assert_eq!(crossing.direction, direction);
    }
    let reversed = crossover(&rr, &kv, Figure::TtftP95);
    assert_eq!(reversed[0].direction, FirstGetsBetter);
    assert!((reversed[0].concurrency - expected[0].0).abs() < 1e-9);
}

#[test]
fn the_kv_aware_hit_rate_is_never_the_worse_one() {
    let [kv, rr] = sample();
    assert_eq!(crossover(&kv, &rr, Figure::HitRate), []);
    // Requests are: round-robin finished more of them at 60.
    let [requests] = crossover(&kv, &rr, Figure::Requests).try_into().unwrap();
    assert_eq!(requests.direction, Direction::FirstGetsBetter);
    assert!((60.0..80.0).contains(&requests.concurrency));
}

#[test]
fn a_crossing_counts_if_the_runs_lie_apart_on_both_sides_of_it() {
    let pair = |first: &str, second: &str| {
        let [first, second] = [first, second].map(|rows| {
            sheet(&format!("concurrency,ttft_p50_ms,ttft_p50_ms_low,ttft_p50_ms_high\n{rows}"))
                .unwrap()
                .remove(0)
        });
        crossover(&first, &second, Figure::TtftP50)
            .into_iter()
            .map(|crossing| crossing.concurrency)
            .collect::<Vec<_>>()
    };
    let flat = "10,100,95,105\n20,100,95,105\n30,100,95,105\n";
    assert_eq!(pair("10,80,75,85\n20,100,95,105\n30,120,115,125\n", flat), [20.0]);
    // Within the spread from there on, from the start, and everywhere.
    assert_eq!(pair("10,80,75,85\n20,100,95,105\n30,104,99,109\n", flat), [0.0; 0]);
    assert_eq!(pair("10,96,91,101\n20,100,95,105\n30,120,115,125\n", flat), [0.0; 0]);
    assert_eq!(pair("10,98,93,103\n30,102,97,107\n", flat), [0.0; 0]);
    // One run alone says nothing of its spread.
    assert_eq!(pair("10,80,,\n20,100,,\n30,104,,\n", flat), [20.0]);
    // Worse from 20 on; that it is better from 45 on is within the spread, and so its being worse from 55 on is nothing new.
    let flat = "10,100,,\n30,100,,\n40,100,95,105\n50,100,95,105\n60,100,95,105\n80,100,,\n";
    let there_and_back = "10,90,,\n30,110,,\n40,101,96,106\n50,99,94,104\n60,99,94,104\n80,110,,\n";
    assert_eq!(pair(there_and_back, flat), [20.0]);
}

#[test]
fn meeting_is_no_crossing_but_passing_through_an_equal_level_is() {
    let pair = |second: &str| {
        let flat = sheet("concurrency,ttft_p50_ms\n10,100\n20,100\n30,100\n40,100\n").unwrap().remove(0);
        crossover(&sheet(second).unwrap()[0], &flat, Figure::TtftP50)
    };
    assert_eq!(pair("concurrency,ttft_p50_ms\n10,90\n20,100\n30,90\n"), []);
    let [through] = pair("concurrency,ttft_p50_ms\n10,90\n20,100\n30,100\n40,110\n").try_into().unwrap();
    assert_eq!(through, Crossover { concurrency: 20.0, direction: Direction::FirstGetsWorse });
    assert_eq!(pair("concurrency,ttft_p50_ms\n50,90\n60,110\n"), []);
}

#[test]
fn columns_are_found_by_name_in_any_order_with_any_separator() {
    let plain = "concurrency,ttft_p50_ms,baseline,router\n60,249.5,a,kv-aware\n";
    let expected = sheet(plain).unwrap();
    assert_eq!((expected[0].name(), expected[0].router()), ("a", Router::KvAware));
    let others = [
        "\u{feff}Router;TTFT_p50_ms; Concurrency ;baseline;;\r\nKV-Aware;249.5;60;a;;\r\n",
        "# mine\n\nbaseline\trouter\tconcurrency\tttft_p50_ms\n# between\na\tkv-aware\t60\t 249.5 \n\n",
    ];
    for other in others {
        assert_eq!(sheet(other).unwrap(), expected, "{other}");
    }
}

#[test]
fn unknown_columns_are_named_and_left_out() {
    let import = import("concurrency,gpu,ttft_p50_ms,note\n60,H200,249,x\n", "mine").unwrap();
    assert_eq!(import.baselines[0].name(), "mine");
    let [notice] = import.notices.try_into().unwrap();
    assert_eq!(notice.to_string(), "unknown columns, ignored: gpu, note");
}

#[test]
fn lines_are_grouped_sorted_and_the_first_attribution_counts() {
    let text =
        "baseline,attribution,concurrency,ttft_p50_ms\nb,,80,2\na,x,70,3\nb,lab 4,60,1\nb,other,70,9\n";
    let [b, a] = sheet(text).unwrap().try_into().unwrap();
    assert_eq!((b.name(), b.attribution(), a.attribution()), ("b", "lab 4", "x"));
    let levels: Vec<f64> = b.rows().iter().map(|row| row.concurrency).collect();
    assert_eq!(levels, [60.0, 70.0, 80.0]);
}

#[test]
fn errors_say_where_and_what_may_be_there() {
    let header = "# a comment\n\nconcurrency,ttft_p50_ms,hit_rate_percent,samples,router,baseline\n";
    let cases = [
        (
            "60,fast,90,1,,\n",
            "line 4, column ttft_p50_ms: \"fast\" is not a number of at least 0, with a decimal point",
        ),
        (
            "60,1,90,1,,\n# x\n\n70,-1,90,1,,\n",
            "line 7, column ttft_p50_ms: \"-1\" is not a number of at least 0, with a decimal point",
        ),
        (
            "60,1,90,1,,\"two\nlines\"\n70,inf,90,1,,\n",
            "line 6, column ttft_p50_ms: \"inf\" is not a number of at least 0, with a decimal point",
        ),
        (
            "60,NaN,90,1,,\n",
            "line 4, column ttft_p50_ms: \"NaN\" is not a number of at least 0, with a decimal point",
        ),
        (
            "60,1,100.1,1,,",
            "line 4, column hit_rate_percent: \"100.1\" is not a number from 0 to 100, with a decimal point",
        ),
        ("60,1,90,1.5,,\n", "line 4, column samples: \"1.5\" is not a whole number of at least 0"),
        ("60,1,90,1,random,\n", "line 4, column router: \"random\" is not kv-aware, round-robin or other"),
        (
            "1000001,1,90,1,,\n",
            "line 4, column concurrency: \"1000001\" is not a number above 0 and at most 1,000,000",
        ),
        (",1,90,1,,\n", "line 4, column concurrency: \"\" is not a number above 0 and at most 1,000,000"),
        (
            "60,1,90,1,,\r\n60.0,2,90,1,,\r\n",
            "line 5, column concurrency: 60.0 is there twice for the same baseline",
        ),
        ("60,1,90,1,,,x\n", "line 4: 7 fields, but the header has 6"),
        ("", "the file has no lines below a header with column names such as concurrency and ttft_p50_ms"),
    ];
    for (lines, expected) in cases {
        assert_eq!(sheet(&format!("{header}{lines}")).unwrap_err(), expected);
    }
    assert_eq!(sheet("ttft_p50_ms\n1\n").unwrap_err(), "line 1: there is no column concurrency");
    assert_eq!(
        sheet("concurrency,speed\n1,1\n").unwrap_err(),
        "line 1: there is no column of measured values, such as ttft_p50_ms or hit_rate_percent"
    );
    assert_eq!(
        sheet("concurrency,itl_p50_ms,ITL_P50_ms\n1,1,1\n").unwrap_err(),
        "line 1: column itl_p50_ms is there twice"
    );
}

#[test]
fn files_are_bounded_in_bytes_lines_and_baselines() {
    assert_eq!(import(&" ".repeat(MAX_BYTES + 1), ""), Err(ImportError::Bytes(MAX_BYTES + 1)));
    let levels = |count: usize| {
        (0..count)
            .fold("concurrency,ttft_p50_ms\n".to_owned(), |text, at| text + &format!("{},1\n", count - at))
    };
    assert_eq!(sheet(&levels(MAX_ROWS)).unwrap()[0].rows().len(), MAX_ROWS);
    assert_eq!(import(&levels(MAX_ROWS + 1), ""), Err(ImportError::Rows { line: MAX_ROWS + 2 }));
    let names = |count: usize| {
        (0..count)
            .fold("baseline,concurrency,ttft_p50_ms\n".to_owned(), |text, at| text + &format!("{at},1,1\n"))
    };
    assert_eq!(sheet(&names(MAX_BASELINES)).unwrap().len(), MAX_BASELINES);
    assert_eq!(
        import(&names(MAX_BASELINES + 1), ""),
        Err(ImportError::Baselines { line: MAX_BASELINES + 2 })
    );
    let wide = format!("concurrency,ttft_p50_ms,{}\n1,1\n", "é,".repeat(100_000));
    let notice = import(&wide, "").unwrap().notices.remove(0).to_string();
    assert!(notice.ends_with("é and 99981 more"), "{notice}");
    let long = sheet(&format!("concurrency,ttft_p50_ms\n1,{}\n", "ü".repeat(100_000))).unwrap_err();
    assert!(long.chars().count() < 200, "{long}");
}

#[test]
fn names_that_a_spreadsheet_would_run_are_guarded_and_come_back() {
    for name in
        ["=1+1", "'=1", "'tis", "''", "# not a comment", "a;b\tc", "two\r\nlines", " padded ", "\"q\""]
    {
        let mut baseline = Baseline::new(name, "@who", Router::Other);
        baseline.set_row(SweepLevel::new(1.0));
        let csv = export([&baseline]);
        assert!(!csv.contains("\n=") && !csv.contains(",@"), "{csv}");
        assert_eq!(import(&csv, "").unwrap().baselines, [baseline], "{csv}");
    }
}

fn window(concurrency: f64, ttft_ms: f64) -> Window {
    let mut window = Window { concurrency, duration_ms: 60_000, ..Window::default() };
    window.figures.set(Figure::TtftP50, Some(Range::exact(ttft_ms)));
    window.figures.set(Figure::ItlP50, Some(Range::exact(30.0)));
    window.figures.set(Figure::ItlP95, Some(Range::in_bucket(24.0, Some(45.0))));
    window.figures.set(Figure::HitRate, Some(Range::exact(f64::NAN)));
    window.samples.set(Figure::TtftP50, 12);
    window.samples.set(Figure::ItlP50, 800);
    window.samples.set(Figure::HitRate, 12);
    window
}

#[test]
fn a_saved_window_is_a_level_with_its_length_and_fewest_samples() {
    let baseline = Baseline::with_window("lab", Router::KvAware, &window(118.4, 250.0));
    let [row] = baseline.rows().try_into().unwrap();
    assert_eq!((row.concurrency, row.duration_s, row.samples), (118.0, Some(60.0), Some(12)));
    assert_eq!(row.figures.get(Figure::TtftP50), Some(250.0));
    assert_eq!(row.figures.get(Figure::HitRate), None);
    assert_eq!(row.figures.get(Figure::E2eP95), None);
    assert_eq!(row.figures.get(Figure::ItlP95), None, "no number is made of a bucket");
    let left_out: Vec<Figure> =
        window(1.0, 1.0).inexact().filter(|&figure| figure != Figure::HitRate).collect();
    assert_eq!(left_out, [Figure::ItlP95]);
}

#[test]
fn worse_and_better_are_reported_only_where_the_baseline_lies_outside_the_range() {
    let verdict = |figure, live, base| difference(figure, live, base, None).unwrap().verdict;
    let bucket = Range::in_bucket(470.0, Some(1_000.0));
    assert_eq!(verdict(Figure::TtftP95, bucket, 600.0), AgainstBaseline::Unknown);
    assert_eq!(verdict(Figure::TtftP95, bucket, 446.0), AgainstBaseline::Worse);
    assert_eq!(verdict(Figure::TtftP95, bucket, 1_200.0), AgainstBaseline::Better);
    assert_eq!(verdict(Figure::HitRate, Range::exact(95.0), 90.0), AgainstBaseline::Better);
    assert_eq!(verdict(Figure::TtftP95, Range::exact(602.0), 600.0), AgainstBaseline::Equal);
    assert_eq!(verdict(Figure::TtftP95, Range::between(700.0, None), 600.0), AgainstBaseline::Worse);
    assert_eq!(verdict(Figure::TtftP95, Range::between(500.0, None), 600.0), AgainstBaseline::Unknown);
    assert_eq!(difference(Figure::TtftP95, bucket, 0.0, None), None);
    assert_eq!(difference(Figure::TtftP95, Range::in_bucket(0.0, None), 500.0, None), None);
    let share =
        difference(Figure::TtftP95, Range::in_bucket(500.0, Some(1_000.0)), 500.0, None).unwrap().share;
    assert_eq!((share.low(), share.high()), (0.0, Some(1.0)));
}

#[test]
fn within_what_the_runs_of_a_baseline_differ_by_nothing_is_better() {
    use AgainstBaseline::{Better, WithinSpread, Worse};
    let verdict = |figure, live: f64| {
        let bounds = Bounds { low: 90.0, high: 110.0 };
        difference(figure, Range::exact(live), 100.0, Some(bounds)).unwrap().verdict
    };
    assert_eq!(
        [80.0, 90.0, 109.0, 111.0].map(|live| verdict(Figure::TtftP50, live)),
        [Better, WithinSpread, WithinSpread, Worse]
    );
    assert_eq!(
        [80.0, 100.0, 120.0].map(|live| verdict(Figure::Requests, live)),
        [Worse, WithinSpread, Better]
    );
}

#[test]
fn an_experiment_tells_what_runs_and_what_is_missing() {
    let text =
        "concurrency,runs,runs_begun,runs_planned,ttft_p50_ms\n60,2,2,2,249\n80,1,2,2,267\n100,0,0,2,\n";
    let progress = sheet(text).unwrap()[0].progress().unwrap();
    assert_eq!(progress.to_text(), "3 of 6 runs. Running: concurrency 80. Missing: 1 at 80, 2 at 100");
    assert!(!progress.is_complete());
    assert_eq!(sample()[0].progress(), None);
    let done =
        sheet("concurrency,runs,runs_planned,ttft_p50_ms\n60,2,2,249\n").unwrap()[0].progress().unwrap();
    assert!(done.is_complete());
    assert_eq!(done.to_text(), "2 of 2 runs");
}

#[test]
fn saving_again_replaces_the_level_of_that_concurrency_only() {
    let mut baselines = Vec::new();
    for (concurrency, ttft) in [(118.4, 250.0), (60.2, 200.0), (117.9, 260.0)] {
        assert!(save_window(&mut baselines, "lab", Router::KvAware, &window(concurrency, ttft)));
    }
    assert!(save_window(&mut baselines, "lab", Router::RoundRobin, &window(60.0, 1.0)));
    assert!(!save_window(&mut baselines, "lab", Router::KvAware, &window(f64::INFINITY, 1.0)));
    assert_eq!(baselines.len(), 2);
    let levels: Vec<_> =
        baselines[0].rows().iter().map(|row| (row.concurrency, row.figures.get(Figure::TtftP50))).collect();
    assert_eq!(levels, [(60.0, Some(200.0)), (118.0, Some(260.0))]);
}

fn standing_of(first: &str, second: &str) -> Vec<(f64, f64, Standing)> {
    let of = |rows: &str| {
        sheet(&format!("concurrency,ttft_p50_ms,ttft_p50_ms_low,ttft_p50_ms_high\n{rows}")).unwrap()
    };
    let all = standing(&of(first)[0], &of(second)[0], Figure::TtftP50);
    all.into_iter().map(|stretch| (stretch.from, stretch.to, stretch.standing)).collect()
}

#[test]
fn one_is_better_only_where_the_runs_lie_apart() {
    use Standing::{FirstBetter, Overlap, SecondBetter};
    let flat = "10,100,90,110\n20,100,90,110\n30,100,90,110\n";
    // The upper end of the first rises from 80 to 120 between 10 and 20, its lower end from 60 to 100, and on to 180 and 160.
    let rising = "10,70,60,80\n20,110,100,120\n30,170,160,180\n";
    let up = [
        (10.0, 12.5, FirstBetter),
        (12.5, 20.0 + 10.0 / 6.0, Overlap),
        (20.0 + 10.0 / 6.0, 30.0, SecondBetter),
    ];
    let close = |all: Vec<(f64, f64, Standing)>, expected: [(f64, f64, Standing); 3]| {
        assert_eq!(all.len(), 3, "{all:?}");
        for (got, wanted) in all.iter().zip(expected) {
            assert!(
                (got.0 - wanted.0).abs() < 1e-9 && (got.1 - wanted.1).abs() < 1e-9 && got.2 == wanted.2,
                "{all:?}"
            );
        }
    };
    close(standing_of(rising, flat), up);
    let turned = up.map(|(from, to, standing)| match standing {
        FirstBetter => (from, to, SecondBetter),
        SecondBetter => (from, to, FirstBetter),
        Overlap => (from, to, Overlap),
    });
    close(standing_of(flat, rising), turned);
    let text = |rows: &[(f64, f64, Standing)]| {
        let all: Vec<Stretch> =
            rows.iter().map(|&(from, to, standing)| Stretch { from, to, standing }).collect();
        standing_text(Figure::TtftP50, ["KV-aware", "Round-robin"], &all)
    };
    assert_eq!(
        text(&up).unwrap(),
        "KV-aware is faster up to concurrency 12; the runs overlap between 12 and 22; Round-robin is faster from concurrency 22 on"
    );
    assert_eq!(text(&[]), None);
    assert_eq!(text(&[(8.0, 8.0, Overlap)]).unwrap(), "the runs overlap at 8");
}

#[test]
fn nothing_is_said_where_a_level_has_no_spread() {
    let known = "10,70,60,80\n20,70,60,80\n30,70,60,80\n";
    let single = "10,100,,\n20,100,,\n30,100,,\n";
    assert_eq!(standing_of(known, single), []);
    // Between 10 and 20 one end is unknown.
    let partly = "10,100,,\n20,100,90,110\n30,100,90,110\n";
    assert_eq!(standing_of(known, partly), [(20.0, 30.0, Standing::FirstBetter)]);
    assert_eq!(standing_of("20,70,60,80\n", partly), [(20.0, 20.0, Standing::FirstBetter)]);
    // Levels of the one between those of the other.
    assert_eq!(
        standing_of("15,70,60,80\n25,70,60,80\n", "10,100,90,110\n30,100,90,110\n"),
        [(15.0, 25.0, Standing::FirstBetter)]
    );
}

#[test]
fn a_spread_is_refused_if_its_ends_are_the_wrong_way_round_or_its_kind_is_unknown() {
    let wrong = sheet("concurrency,ttft_p50_ms,ttft_p50_ms_low,ttft_p50_ms_high\n10,5,6,4\n").unwrap_err();
    assert_eq!(wrong, "line 2, column ttft_p50_ms_high: \"4\" is not at least the low end");
    let kind = sheet("concurrency,ttft_p50_ms,spread\n10,5,quartiles\n").unwrap_err();
    assert_eq!(kind, "line 2, column spread: \"quartiles\" is not min-max or 95% confidence");
}

#[test]
fn sweeps_without_runs_are_exported_without_their_columns() {
    let text = export(&reference());
    let header = text.lines().next().unwrap();
    assert!(header.ends_with(",e2e_p95_s"), "{header}");
}

fn figure_value() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop_oneof![0.0..100.0, Just(0.0), Just(100.0), Just(f64::MIN_POSITIVE)])
}

prop_compose! {
    fn row()(
        concurrency in prop_oneof![(1..2_000_u32).prop_map(f64::from), 1e-3..1e6],
        duration_s in prop::option::of(0.0..1e6),
        samples: Option<u64>,
        values in prop::array::uniform9(figure_value()),
        ends in prop::array::uniform9(prop::option::of((figure_value(), figure_value()))),
        (finished, begun, planned) in any::<(Option<u64>, Option<u64>, Option<u64>)>(),
        spread in prop::option::of(prop_oneof![
            Just(SpreadKind::MinMax),
            (0.1..99.9).prop_map(|percent| SpreadKind::Confidence { percent }),
        ]),
    ) -> SweepLevel {
        let bounds = |figure: Figure| {
            let (a, b) = ends[figure as usize]?;
            let (a, b) = (a?, b?);
            Some(Bounds { low: a.min(b), high: a.max(b) })
        };
        SweepLevel {
            concurrency,
            duration_s,
            samples,
            figures: Figures::from_fn(|figure| values[figure as usize]),
            runs: Runs { finished, begun, planned },
            spread,
            bounds: ByFigure::from_fn(bounds),
        }
    }
}

prop_compose! {
    fn baseline()(
        name in prop_oneof!["\\PC{0,20}", "[a-c'=#,;\"\r\n\t -]{0,6}"],
        attribution in prop_oneof!["\\PC{0,20}", "[a-c'=#,;\"\r\n\t -]{0,6}"],
        router in prop::sample::select(&Router::ALL[..]),
        rows in prop::collection::vec(row(), 1..12),
    ) -> Baseline {
        let mut baseline = Baseline::new(&name, &attribution, router);
        for row in rows {
            assert!(baseline.set_row(row));
        }
        baseline
    }
}

proptest! {
    #[test]
    fn what_is_exported_comes_back_to_the_last_bit(mut baselines in prop::collection::vec(baseline(), 1..6)) {
        let mut seen = std::collections::HashSet::new();
        baselines.retain(|baseline| seen.insert((baseline.name().to_owned(), baseline.router().as_str())));
        let import = import(&export(&baselines), "").unwrap();
        prop_assert_eq!(import.baselines, baselines);
        prop_assert_eq!(import.notices, []);
    }

    #[test]
    fn nothing_in_a_file_panics(text in prop_oneof![
        "\\PC{0,200}",
        "(concurrency|ttft_p50_ms|baseline|samples|60|1e9|-0|nan|[,;\t\r\n\"#' ]){0,60}",
        "concurrency[,;\t]ttft_p50_ms\r?\n([0-9.e+-]{0,6}[,;\t\"\r\n]){0,40}",
    ]) {
        if let Ok(import) = import(&text, "x") {
            for baseline in &import.baselines {
                prop_assert!(baseline.rows().is_sorted_by(|a, b| a.concurrency < b.concurrency));
            }
        }
    }

    #[test]
    fn interpolation_stays_between_its_neighbours(baseline in baseline(), at in 0.0..1e6) {
        for figure in Figure::ALL {
            let Some((least, most)) = baseline.range(figure) else { continue };
            let read = baseline.interpolate(at, figure);
            prop_assert_eq!(read.is_some(), least <= at && at <= most);
            let Some(read) = read else { continue };
            let ends = [read.between.0, read.between.1].map(|end| baseline.interpolate(end, figure).unwrap().value);
            let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            prop_assert!(read.value >= low - 1e-9 && read.value <= high + 1e-9);
        }
    }

    #[test]
    fn at_a_crossover_both_are_equal_and_directions_take_turns(a in baseline(), b in baseline()) {
        for figure in Figure::ALL {
            let crossings = crossover(&a, &b, figure);
            prop_assert!(crossings.is_sorted_by(|x, y| x.concurrency <= y.concurrency));
            prop_assert!(crossings.windows(2).all(|pair| pair[0].direction != pair[1].direction));
            let turned = crossover(&b, &a, figure);
            prop_assert_eq!(turned.len(), crossings.len());
            for crossing in crossings {
                let [x, y] = [&a, &b].map(|of| of.interpolate(crossing.concurrency, figure).unwrap().value);
                prop_assert!((x - y).abs() < 1e-3, "{} {}", x, y);
            }
        }
    }
}
