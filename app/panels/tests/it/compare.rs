//! Live traffic beside baselines: simulated clusters, the samples that come with the page, and a recorded sweep of aiperf.

use std::fs;
use std::path::{Path, PathBuf};

use radixscope_insight::baseline::{Baseline, Figure, Results, Router, import, reference};
use radixscope_insight::recent_window::{RecentFigures, live};
use radixscope_panels::compare::{
    BaselineSet, Curves, EMPTY, FIGURE_KEY, FigureChoice, FigureRow, ImportFiles, ImportKind, Role,
    WindowChoice, can_save, is_empty, is_simulated, name_of, name_to_save, refused, router_named, subtitle,
};
use radixscope_panels::format::UNKNOWN;
use radixscope_panels::legend::Hidden;
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::Address;
use radixscope_sim::Topology;
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

const NOBODY: [Option<String>; 2] = [None, None];

fn samples() -> BaselineSet {
    BaselineSet { samples: reference(), ..BaselineSet::default() }
}

fn figures(folded: &Folded) -> RecentFigures {
    live(&folded.cluster, folded.now, WindowChoice::ALL[0].ms)
}

fn nothing() -> RecentFigures {
    live(&Cluster::default(), START, 60_000)
}

/// A value between two measured levels, by hand.
fn between(baseline: &Baseline, figure: Figure, at: f64) -> f64 {
    let known: Vec<(f64, f64)> =
        baseline.rows().iter().filter_map(|row| Some((row.concurrency, row.figures.get(figure)?))).collect();
    let pair = known.windows(2).find(|pair| pair[0].0 <= at && at <= pair[1].0).expect("measured");
    let [(from, low), (to, high)] = [pair[0], pair[1]];
    low + (high - low) * (at - from) / (to - from)
}

#[test]
fn live_stands_beside_the_baselines_at_its_own_concurrency() {
    let folded = Folded::demo(Topology::Aggregated, 150);
    let live = figures(&folded);
    let (concurrency, _) = live.concurrency.expect("known");
    // 120 users, each with one request in flight, apart from the time between two.
    assert!((100.0..=121.0).contains(&concurrency), "{concurrency}");
    let zone = TimeZone::default();
    let [minute, five] = WindowChoice::ALL;
    assert!(is_simulated(&folded.cluster) && !is_empty(&live));
    assert_eq!(
        subtitle(&live, minute, true, None, zone),
        format!(
            "Live: simulated cluster, last 60 s, concurrency {concurrency:.0} (mean in flight: sum of durations ÷ window)."
        )
    );
    assert!(
        subtitle(&live, five, false, Some(folded.now), zone)
            .starts_with("Live, 5 min before 00:02:30, not current, concurrency ")
    );
    let playing = samples().playing(&NOBODY);
    let [kv, rr] = playing.each_ref().map(|baseline| baseline.as_ref().expect("a sample"));
    assert_eq!([kv.router(), rr.router()], [Router::KvAware, Router::RoundRobin]);
    let rows = FigureRow::all(&live, &playing);
    assert_eq!(rows.iter().map(|row| row.figure).collect::<Vec<_>>(), Figure::ALL);
    let row = rows.iter().find(|row| row.figure == Figure::TtftP50).unwrap();
    for ((text, why), baseline) in row.base.iter().zip([kv, rr]) {
        assert_eq!(*text, format!("{:.0}", between(baseline, Figure::TtftP50, concurrency)));
        assert!(why.starts_with("Interpolated linearly between concurrency "), "{why}");
    }
    // The simulator traces each request: a number, and worse or better follows from it alone.
    let value: f64 = row.live.0.parse().unwrap_or_else(|_| panic!("{:?}", row.live));
    for ((difference, class), (base, _)) in row.differences.iter().zip(&row.base) {
        let base: f64 = base.parse().unwrap();
        let (word, of) = if value > base { ("worse", '+') } else { ("better", '−') };
        assert!(difference.starts_with(of) && difference.ends_with(word) && *class == word, "{difference}");
    }
}

#[test]
fn nothing_known_is_said_and_saves_nothing() {
    let live = nothing();
    assert!(is_empty(&live) && !is_simulated(&Cluster::default()));
    let text = subtitle(&live, WindowChoice::ALL[0], false, None, TimeZone::default());
    assert_eq!(text, "Live, last 60 s, concurrency unknown.");
    for row in FigureRow::all(&live, &samples().playing(&NOBODY)) {
        assert_eq!(row.live, (UNKNOWN.to_owned(), "no data".to_owned()));
        let unknown = (UNKNOWN.to_owned(), "The current concurrency is unknown".to_owned());
        assert_eq!(row.base, [unknown.clone(), unknown]);
        assert!(row.differences.iter().all(|(text, class)| text == UNKNOWN && class.is_empty()));
    }
    for row in FigureRow::all(&live, &[None, None]) {
        assert_eq!(row.base[0].1, "No such baseline");
    }
    assert!(!can_save(&live, true));
    assert_eq!(name_to_save("mine", &live), Err("Nothing was saved: the current concurrency is unknown."));
    assert_eq!(name_to_save("  ", &live), Err("A baseline needs a name."));
    assert!(EMPTY.contains("`--prometheus frontend=http://HOST:8000/metrics`"));
}

#[test]
fn figures_that_are_known_by_bucket_are_ranges_and_a_baseline_inside_is_neither_better_nor_worse() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 150);
    let live = figures(&folded);
    let rows = FigureRow::all(&live, &samples().playing(&NOBODY));
    let row = rows.iter().find(|row| row.figure == Figure::TtftP50).unwrap();
    let (low, high) = row.live.0.split_once('–').unwrap_or_else(|| panic!("{:?}", row.live));
    let (low, high): (f64, f64) = (low.parse().unwrap(), high.parse().unwrap());
    assert!(low < high && row.live.1.ends_with(" samples, frontends' metrics"), "{:?}", row.live);
    for ((base, _), (difference, class)) in row.base.iter().zip(&row.differences) {
        let base: f64 = base.parse().unwrap();
        let expected = match base {
            base if base < low => "worse",
            base if base > high => "better",
            _ => "quiet",
        };
        assert_eq!(*class, expected, "{base} of {low} to {high}: {difference}");
        assert!(expected != "quiet" || difference.ends_with(": baseline within range"), "{difference}");
    }
    let shown = Curves::of(FigureChoice::ALL[0], &live, &samples().playing(&NOBODY));
    let ends = &shown.live[0];
    assert_eq!([ends[0].1, ends[1].1], [low, high], "both ends of the range are drawn");
    assert_eq!(ends[0].2, format!("Live p50 {}", row.live.0));
    let saved = samples().save("mine", Router::KvAware, &live.window);
    if let Some(text) = saved {
        assert!(text.contains(" Not saved, as only a range is known: TTFT p50, "), "{text}");
    }
}

#[test]
fn the_chart_has_a_line_for_each_figure_and_says_where_the_baselines_cross() {
    let (live, playing) = (nothing(), samples().playing(&NOBODY));
    let of = |key: &str| {
        let (address, _) = Address::parse(&format!("?{FIGURE_KEY}={key}"));
        Curves::of(FigureChoice::of(&address), &live, &playing)
    };
    let ttft = of("ttft");
    let names: Vec<&str> = ttft.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["KV-aware p50", "KV-aware p95", "Round-robin p50", "Round-robin p95"]);
    assert_eq!(ttft.lines.iter().map(|line| line.is_dashed).collect::<Vec<_>>(), [false, true, false, true]);
    assert_eq!(ttft.values, "TTFT, ms");
    let [kv, rr] = playing.each_ref().map(|baseline| baseline.as_ref().unwrap());
    // By hand: at which levels the sign of the difference changes.
    let signs: Vec<(f64, bool)> = kv
        .rows()
        .iter()
        .zip(rr.rows())
        .map(|(kv, rr)| {
            let of =
                |row: &radixscope_insight::baseline::SweepLevel| row.figures.get(Figure::TtftP50).unwrap();
            (kv.concurrency, of(kv) > of(rr))
        })
        .collect();
    let turn = signs.windows(2).find(|pair| !pair[0].1 && pair[1].1).expect("KV-aware gets worse");
    let marked = ttft.marks.iter().find(|(_, mark)| mark.starts_with("p50 worse from ")).expect("a mark").0;
    assert!((turn[0].0..=turn[1].0).contains(&marked), "{marked} between {turn:?}");
    assert!(ttft.crossovers.starts_with("Crossovers: TTFT p50 at "), "{}", ttft.crossovers);
    assert!(ttft.crossovers.contains("KV-aware gets worse"));
    assert_eq!(
        ttft.standing,
        "How far repeats of these baselines lie apart is unknown, so crossovers are of single measurements."
    );
    let described = ttft.description();
    assert!(described.starts_with("TTFT by concurrency. Crossovers: "), "{described}");
    let legend = ttft.legend();
    assert_eq!(legend.len(), 4);
    assert_ne!(legend[0].colour, legend[2].colour);
    let drawn = ttft.clone().drawn(&Hidden::parse("KV-aware p95"));
    assert_eq!((drawn.lines.len(), drawn.marks.len()), (3, 0), "crossings of a hidden line are not marked");
    assert!(!ttft.drawn(&Hidden::default()).marks.is_empty());
    let hits = of("hits");
    assert_eq!(
        hits.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(),
        ["KV-aware", "Round-robin"]
    );
    assert_eq!(of("nonsense").values, "TTFT, ms", "the first where the address has none");
    let (window, _) = Address::parse("?cmp.window=5min");
    assert_eq!(WindowChoice::of(&window).ms, 300_000);
    let alone = Curves::of(FigureChoice::ALL[0], &live, &[playing[0].clone(), None]);
    assert_eq!(
        (alone.crossovers.as_str(), alone.standing.as_str()),
        ("TTFT: the baselines do not cross.", "")
    );
}

#[test]
fn the_address_chooses_who_plays_a_role_and_own_baselines_replace_others_of_their_name() {
    let mut set = samples();
    let csv = "router,concurrency,ttft_p50_ms\nkv-aware,60,100\nkv-aware,180,400\n";
    let read = import(csv, "mine").unwrap();
    let (status, playing) = set.add(read.clone(), "mine.csv");
    assert_eq!(status, "mine.csv: 1 baseline with 2 levels imported.");
    assert_eq!(playing, [(Role::KvAware, "kv-aware:mine".to_owned())]);
    // What is brought again takes the place of what was there.
    set.add(read, "mine.csv");
    assert_eq!(set.all().map(name_of).filter(|name| name == "kv-aware:mine").count(), 1);
    let address = Address::parse("?cmp.kv=kv-aware%3Amine").0;
    let [kv, rr] = set.playing(&Role::wanted(&address));
    assert_eq!(name_of(&kv.unwrap()), "kv-aware:mine");
    assert_eq!(rr.unwrap().router(), Router::RoundRobin, "the first that was routed so");
    let gone = Address::parse("?cmp.kv=kv-aware%3Agone").0;
    assert_eq!(set.playing(&Role::wanted(&gone))[0], set.playing(&NOBODY)[0]);
    let rows = set.rows();
    let of = |is_own: bool| rows.iter().filter(move |row| row.is_own == is_own).collect::<Vec<_>>();
    assert_eq!((of(true).len(), of(false).len()), (1, 2));
    assert_eq!(of(true)[0].key, "kv-aware:mine");
    assert!(of(true)[0].about.starts_with("kv-aware, levels 60, 180. "), "{:?}", of(true)[0]);
    assert!(of(false).iter().all(|row| row.about.contains("your hardware differs")), "{rows:?}");
    // An export has the samples, too: they are not taken as the reader's own.
    let all = import(&radixscope_insight::baseline::export(set.all()), "all").unwrap();
    let own = set.own.len();
    set.add(all, "all.csv");
    assert_eq!(set.own.len(), own, "{:?}", set.rows());
    set.delete("kv-aware:mine");
    assert!(set.own.is_empty());
    set.served = vec![Baseline::new("lab", "a cluster", Router::KvAware)];
    assert!(
        set.rows()[0].about.ends_with("a cluster, given to the server (--baseline)"),
        "{:?}",
        set.rows()[0]
    );
    assert!(!set.rows()[0].is_own);
}

#[test]
fn a_window_is_saved_as_a_level_and_plays_its_role() {
    let folded = Folded::demo(Topology::Aggregated, 150);
    let (live, mut set) = (figures(&folded), samples());
    assert!(can_save(&live, true) && !can_save(&live, false), "not before the stored ones are read");
    assert_eq!(name_to_save(" My sweep ", &live), Ok("My sweep"));
    let text = set.save("My sweep", Router::KvAware, &live.window).unwrap();
    let level = live.window.row().concurrency;
    assert!(text.starts_with(&format!("Saved as My sweep, concurrency {level}.")), "{text}");
    assert_eq!(set.all().map(name_of).last().as_deref(), Some("kv-aware:My sweep"));
    assert_eq!(set.rows().last().map(|row| row.is_own), Some(true));
    assert_eq!((router_named("round-robin"), router_named("x")), (Router::RoundRobin, Router::Other));
}

#[test]
fn files_are_taken_together_or_refused_with_a_reason() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let result = "{\"schema_version\": \"1.0\", \"aiperf_version\": \"0.13.0\"}";
    let (csv, json) = (file("mine.csv", "concurrency\n1\n"), file("run.json", result));
    let kind = |files: &[(String, String)], is_restored| ImportFiles::new(files).unwrap().kind(is_restored);
    assert!(ImportFiles::new(&[]).is_none());
    let one = [csv.clone()];
    assert_eq!(kind(&one, true), Ok(ImportKind::Csv));
    assert_eq!(ImportFiles::new(&one).unwrap().name(""), "mine");
    assert_eq!(ImportFiles::new(&one).unwrap().name("lab"), "lab");
    assert_eq!(
        kind(&one, false),
        Err("mine.csv was not imported: the baselines stored in this browser are not read yet.".to_owned())
    );
    let runs = [json.clone(), json.clone(), json.clone()];
    assert_eq!(kind(&runs, true), Ok(ImportKind::Results));
    assert_eq!(ImportFiles::new(&runs).unwrap().to_text(), "run.json and 2 files");
    assert_eq!(
        kind(&[json, csv], true),
        Err("run.json and 1 file were not imported: only results of a load generator are read together, a CSV alone."
            .to_owned())
    );
    let size = |name: &str, bytes: f64| (name.to_owned(), bytes);
    assert_eq!(refused(&[size("mine.csv", 10.0)]), None);
    let why = refused(&[size("huge.csv", 1e12)]).unwrap();
    assert!(why.starts_with("huge.csv was not imported: it is larger than "), "{why}");
    let many: Vec<_> = (0..10_000).map(|_| size("run.json", 1.0)).collect();
    let why = refused(&many).unwrap();
    assert!(why.contains(" files are read together"), "{why}");
}

/// What aiperf wrote of a sweep with this router.
fn sweep(router: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/aiperf/0.13.0-sweep")
        .join(router)
        .join("profile_runs")
}

fn runs(router: &str, as_router: Router) -> Baseline {
    let mut results = Results::default();
    for trial in ["trial_0001", "trial_0002"] {
        for level in [4, 8, 16] {
            let path =
                sweep(router).join(trial).join(format!("concurrency_{level}/profile_export_aiperf.json"));
            results.add(&fs::read_to_string(path).unwrap()).unwrap();
        }
    }
    let mut import = results.finish("lab", as_router);
    assert_eq!(import.baselines.len(), 1);
    import.baselines.remove(0)
}

#[test]
fn repeated_runs_say_how_far_their_difference_bears() {
    let mut set = samples();
    set.own = vec![runs("kv", Router::KvAware), runs("round-robin", Router::RoundRobin)];
    let playing = set.playing(&Role::ALL.map(|role| {
        set.own.iter().map(name_of).find(|name| name.starts_with(["kv-aware", "round-robin"][role as usize]))
    }));
    let shown = Curves::of(FigureChoice::ALL[0], &nothing(), &playing);
    let standing =
        "TTFT p50: KV-aware is faster up to concurrency 10; the runs overlap from concurrency 10 on.";
    assert!(shown.standing.contains(standing), "{}", shown.standing);
    assert!(shown.standing.ends_with("Bars: min-max of the runs."), "{}", shown.standing);
    // The means cross at 14, within the spread of the runs.
    assert_eq!(shown.crossovers, "TTFT: no crossover that the runs bear out.");
    assert!(shown.lines.iter().all(|line| line.spreads.len() == 3), "{:?}", shown.lines);
    let rows = set.rows();
    let own = rows.iter().find(|row| row.key == "kv-aware:lab").unwrap();
    assert!(own.about.starts_with("kv-aware, levels 4 (2 runs, 327 samples), 8 ("), "{}", own.about);
    // At a measured level the reading names its runs.
    let mut live = nothing();
    live.concurrency = Some((8.0, radixscope_insight::recent_window::ConcurrencySource::Durations));
    let row = &FigureRow::all(&live, &playing)[0];
    assert!(row.base[0].1.starts_with("Measured at 8; 2 runs at 8, in brackets "), "{row:?}");
    assert!(row.base[0].0.contains(" (") && row.base[0].0.ends_with(')'), "{row:?}");
    live.concurrency = Some((30.0, radixscope_insight::recent_window::ConcurrencySource::Durations));
    let row = &FigureRow::all(&live, &playing)[0];
    assert_eq!(
        row.base[0],
        ("outside".to_owned(), "Measured from 4 to 16 only, not extrapolated".to_owned())
    );
}

#[test]
fn an_experiment_shows_what_is_there_and_what_is_missing() {
    let served = |runs: [u8; 3], begun: u8| {
        let [four, eight, sixteen] = runs;
        // Two runs at each of three levels, as the server writes them; of the first one more may have begun.
        let csv = format!(
            "router,name,concurrency,runs,runs_begun,runs_planned,ttft_p50_ms\n\
             kv-aware,lab,4,{four},{begun},2,\nkv-aware,lab,8,{eight},{eight},2,\nkv-aware,lab,16,{sixteen},{sixteen},2,\n"
        );
        BaselineSet { served: import(&csv, "lab").unwrap().baselines, ..BaselineSet::default() }
    };
    let lab = "lab, kv-aware".to_owned();
    let running = "0 of 6 runs. Running: concurrency 4. Missing: 2 at 4, 2 at 8, 2 at 16".to_owned();
    assert_eq!(served([0, 0, 0], 1).experiments(), [(lab.clone(), running)]);
    let one = "1 of 6 runs. Missing: 1 at 4, 2 at 8, 2 at 16".to_owned();
    assert_eq!(served([1, 0, 0], 1).experiments(), [(lab, one)]);
    assert!(served([2, 2, 2], 2).experiments().is_empty(), "only what is incomplete is listed");
    assert!(samples().experiments().is_empty());
}
