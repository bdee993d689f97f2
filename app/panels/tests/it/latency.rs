//! Latency and in-flight imbalance of simulated clusters: percentiles recounted from single requests, standings from targets on both sides
//! of them, and what no source reports.

use std::collections::BTreeSet;

use radixscope_export::panel::latency::{NO_SAMPLE, TTFT as TTFT_LABELS, TrendSeries};
use radixscope_insight::imbalance::Imbalance;
use radixscope_insight::in_flight::{Episode, Spike};
use radixscope_insight::latency::{Quantity, Side};
use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::number_format::duration;
use radixscope_model::range::Range;
use radixscope_model::record::LatencyTargets;
use radixscope_panels::format::{UNKNOWN, count};
use radixscope_panels::latency::{
    ITL, Load, QuantityFigures, Spread, TREND_TARGET, TTFT, Target, TrendLines, subtitle,
};
use radixscope_panels::legend::Hidden;
use radixscope_panels::time_zone::TimeZone;
use radixscope_panels::url::Address;
use radixscope_sim::{Config, Fault, Topology};
use radixscope_state::cluster::Cluster;

use crate::folded::{Folded, START};

fn ttft(folded: &Folded, target_ms: f64) -> QuantityFigures {
    QuantityFigures::of(&folded.cluster, Quantity::Ttft, target_ms, folded.now, true)
}

fn spread(folded: &Folded) -> Spread {
    Spread::of(&Imbalance::of(&folded.shown(), folded.now), TimeZone::default())
}

fn nothing() -> Folded {
    Folded { cluster: Cluster::default(), now: START }
}

/// Times to first token of the requests that ended in the last minute, as the frontend measured them, by rising length.
fn measured_ms(folded: &Folded) -> Vec<f64> {
    let since = Millis(folded.now.0 - 60_000);
    let decisions = folded.cluster.decisions().newest_first();
    let mut all: Vec<f64> = decisions
        .filter(|decided| decided.progress.ended_ms.is_some_and(|at| at > since))
        .filter_map(|decided| Some(decided.progress.ttft_us? as f64 / 1_000.0))
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

/// By nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100) - 1]
}

#[test]
fn where_requests_are_known_one_by_one_figures_are_exact_and_say_of_how_many() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let all = measured_ms(&folded);
    let shown = ttft(&folded, 600.0);
    let names = shown.readings.each_ref().map(|reading| reading.name);
    assert_eq!(names, ["p95", "p50", "p99"]);
    let texts = shown.readings.each_ref().map(|reading| reading.text.clone());
    assert_eq!(texts, [95, 50, 99].map(|percent| duration(percentile(&all, percent))));
    assert_eq!(shown.share, format!("{} requests", count(all.len() as u64)));
    assert!(shown.source.contains("as the frontend measured it"), "{}", shown.source);
    // Of the same requests.
    let share = |target: f64| all.iter().filter(|ms| **ms > target).count() as f64 / all.len() as f64 * 100.0;
    let middle = percentile(&all, 50).round() + 0.5;
    let burn = ttft(&folded, middle).burn.expect("samples");
    assert_eq!(burn.text, format!("{:.0} % above {}", share(middle), duration(middle)));
    // The session is known by the frontend's histogram alone.
    assert!(burn.title.contains(" since ") && burn.title.ends_with(", histogram of frontend"), "{burn:?}");
    // Its lines over time end with the same figure.
    let span = TrendLines::step(TimeSpan { from: Millis(folded.now.0 - 60_000), until: folded.now });
    let lines = TrendLines::of(&folded.cluster, Quantity::Ttft, span, folded.now);
    assert!(lines.0.iter().any(|(side, _)| *side == Side::Frontend), "{lines:?}");
    let described = lines.description(&TTFT_LABELS, 600.0);
    assert!(described.starts_with("95th percentile of TTFT over the 60 s before each point; at the end "));
    assert!(described.ends_with(", target 600 ms"), "{described}");
}

#[test]
fn a_percentile_known_by_its_bucket_stands_against_targets_outside_of_it_alone() {
    let folded = Folded::demo(Topology::AggregatedV0_9, 180);
    let shown = ttft(&folded, 600.0);
    let reading = &shown.readings[0];
    let figure = radixscope_insight::latency::figure(&folded.cluster, Quantity::Ttft, folded.now).unwrap();
    let [_, p95, _] = figure.quantiles.unwrap();
    let (low, high) = (p95.low(), p95.high().expect("not in the last bucket"));
    assert!(low < high, "a simulated 0.9 reports TTFT by histogram alone: {p95:?}");
    assert_eq!(reading.text, format!("{}–{}", duration(low), duration(high)));
    for (target, class, said) in [
        (high, "reading within", "✓ within target"),
        (low, "reading above", "◆ above target"),
        ((low + high) / 2.0, "reading unknown", "above or within is unknown"),
    ] {
        let shown = ttft(&folded, target);
        let [p95, p50, _] = &shown.readings;
        let standing = p95.standing.as_deref().unwrap();
        assert_eq!(p95.class, class);
        assert!(standing.contains(said), "{standing}: {said}");
        assert_eq!((p50.class.as_str(), &p50.standing), ("reading unknown", &None), "p95 alone is judged");
    }
    let stale = QuantityFigures::of(&folded.cluster, Quantity::Ttft, low, folded.now, false);
    assert_eq!(
        (stale.readings[0].standing.as_ref(), stale.readings[0].class.as_str()),
        (None, "reading unknown")
    );
    assert_eq!(stale.readings[0].text, reading.text, "what is not current is not judged, and stays");
    let itl = QuantityFigures::of(&folded.cluster, Quantity::Tpot, 45.0, folded.now, true);
    assert!(itl.burn.expect("samples").text.contains("above 45 ms"));
}

#[test]
fn what_no_source_reports_is_absent_and_names_what_would_report_it() {
    let shown = ttft(&nothing(), 600.0);
    assert!(!shown.is_known && shown.burn.is_none());
    assert!(shown.readings.iter().all(|reading| reading.text == NO_SAMPLE && !reading.is_sampled));
    let load = Load::of(&Cluster::default(), START);
    assert!(load.rows.is_empty() && load.events.is_empty(), "{load:?}");
    let absent = load.absent.expect("everything");
    let listed: usize = absent.by_setting.iter().map(|(what, _)| what.split(" · ").count()).sum();
    assert_eq!(absent.heading, format!("{listed} figures not reported"));
    // A 0.9: its router counts no events where a frontend's metrics show them.
    let folded = Folded::demo(Topology::AggregatedV0_9, 60);
    let load = Load::of(&folded.cluster, folded.now);
    let absent = load.absent.expect("some figures");
    let newer = |(_, setting): &&(String, String)| {
        setting == "only from Dynamo 1.0; --prometheus frontend=http://HOST:8000/metrics"
    };
    let (what, _) = absent.by_setting.iter().find(newer).unwrap_or_else(|| panic!("{absent:?}"));
    assert!(what.contains("Router overhead p50 / p95") && what.contains("KV events in the router"), "{what}");
    assert!(load.events.is_empty());
    // A trend of a quantity that is reported nowhere has no line; the target alone is in the legend.
    let span = TimeSpan { from: Millis(START.0 - 60_000), until: START };
    let lines = TrendLines::of(&Cluster::default(), Quantity::Ttft, span, START);
    let names: Vec<String> = lines.legend().into_iter().map(|entry| entry.id).collect();
    assert_eq!((lines.0.len(), names), (0, vec![TREND_TARGET.to_owned()]));
}

#[test]
fn load_is_what_ended_and_what_the_frontends_count() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let load = Load::of(&folded.cluster, folded.now);
    let value =
        |id: &str| &load.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{load:?}")).value;
    let per_s: f64 = value("requests").trim_end_matches("/s").parse().unwrap();
    let ended = measured_ms(&folded).len() as f64 / 60.0;
    // Scrapes are two seconds apart, and a closed loop of 120 users ends some requests each second.
    assert!((per_s - ended).abs() < ended * 0.15, "{per_s}, by single requests {ended}");
    assert!(
        value("errors").starts_with("0 %, 0 of ") && value("errors").ends_with(" ended"),
        "{}",
        value("errors")
    );
    let (prompt, output) = (value("input").clone(), value("output").clone());
    assert!(prompt.ends_with(" tokens") && prompt.matches(" / ").count() == 1, "{prompt}");
    assert!(output.matches(" tokens").count() == 1, "the unit stands once: {output}");
    // Dynamo 1.6 counts what became of KV events.
    assert!(!load.events.is_empty() && load.events.iter().all(|event| !event.is_bad), "{:?}", load.events);
    let gap = Folded::of(Config { topology: Topology::Aggregated, ..Config::default() }, 30);
    assert!(Load::of(&gap.cluster, gap.now).rows.iter().all(|row| !row.source.is_empty()));
}

#[test]
fn every_worker_has_a_strip_and_the_gap_fits_them() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let shown = spread(&folded);
    let workers: Vec<WorkerIx> = shown.workers.iter().map(|(worker, _)| *worker).collect();
    assert_eq!(workers, folded.shown().worker_list().collect::<Vec<_>>());
    let now: Vec<u32> = shown.workers.iter().map(|(_, [now, _])| now.parse().unwrap()).collect();
    for (worker, [now, most]) in &shown.workers {
        let in_flight = folded.cluster.worker(*worker).unwrap().in_flight.now().unwrap();
        let [now, most]: [u32; 2] = [now, most].map(|text| text.parse().unwrap());
        // The figure is the most of the last full second; some requests began or ended since.
        assert!(now.abs_diff(in_flight) <= 5 && most >= now, "{now}, {most}: {in_flight}");
        assert_eq!(shown.figures(*worker)[0], now.to_string());
    }
    // 120 users, each with one request in flight, apart from the time between two.
    assert!((100..=130).contains(&now.iter().sum::<u32>()), "{now:?}");
    assert_eq!(shown.gap[0], (now.iter().max().unwrap() - now.iter().min().unwrap()).to_string());
    let [gap, most, p95] = shown.gap.each_ref().map(|text| text.parse::<u32>().unwrap());
    assert!(gap <= most && p95 <= most, "{:?}", shown.gap);
    assert!(shown.limit.contains("batch limit 64"), "{}", shown.limit);
    assert!(
        shown.description.starts_with(&format!("W1: {} in flight now, max ", now[0])),
        "{}",
        shown.description
    );
    assert!(
        shown
            .description
            .contains(&format!("Difference between the most and the least loaded worker: {gap} now"))
    );
    assert!(shown.left_out.is_none() && shown.estimates.is_empty());
    assert_eq!(shown.figures(WorkerIx(99)), [String::new(), String::new()]);
}

#[test]
fn a_worker_that_gets_most_conversations_has_spikes_and_the_widest_gap() {
    let hot = Folded::fault(Fault::HotWorker, 150);
    let shown = spread(&hot);
    let now: Vec<u32> = shown.workers.iter().map(|(_, [now, _])| now.parse().unwrap()).collect();
    assert_eq!(now.iter().max(), Some(&now[0]), "the first worker is the hot one: {now:?}");
    let healthy = spread(&Folded::demo(Topology::AggregatedV0_9, 150));
    let widest = |spread: &Spread| spread.gap[1].parse::<u32>().unwrap();
    assert!(widest(&shown) > widest(&healthy), "{:?}, healthy {:?}", shown.gap, healthy.gap);
    // Spikes of one worker stay where they are.
    assert!(
        shown.episodes.is_empty() && shown.no_episode.starts_with("None in the last 5 minutes; "),
        "{shown:?}"
    );
    assert!(shown.no_episode.ends_with(" where it was"));
    assert_eq!(spread(&nothing()).no_episode, "None in the last 5 minutes, and no spike at all");
    assert_eq!(spread(&nothing()).gap, [UNKNOWN; 3].map(str::to_owned));
}

#[test]
fn with_prefill_and_decode_apart_the_gap_is_within_a_pool() {
    let folded = Folded::demo(Topology::Disaggregated, 60);
    let shown = spread(&folded);
    let pools: BTreeSet<PoolIx> =
        shown.workers.iter().map(|(worker, _)| folded.cluster.pool_of(*worker).unwrap()).collect();
    assert_eq!(pools.len(), 2, "{:?}", shown.workers);
    let width = |pool: &PoolIx| {
        let of_pool = shown.workers.iter().filter(|(ix, _)| folded.cluster.pool_of(*ix) == Some(*pool));
        let now: Vec<u32> = of_pool.map(|(_, [now, _])| now.parse().unwrap()).collect();
        now.iter().max().unwrap() - now.iter().min().unwrap()
    };
    let widest = pools.iter().map(width).max().unwrap();
    assert_eq!(shown.gap[0], widest.to_string(), "{:?}", shown.workers);
}

#[test]
fn of_many_workers_some_have_no_strip_and_spikes_that_moved_are_in_order_of_time() {
    let mut imbalance = Imbalance::default();
    imbalance.series.workers = (0..40).map(|worker| (WorkerIx(worker), vec![Some(worker), None])).collect();
    let spike = |worker, second, peak| {
        let from_s = START.0 / 1_000 + second;
        Spike { worker: WorkerIx(worker), from_s, peak_s: from_s, until_s: from_s + 5, peak }
    };
    let episode = |spikes: [Spike; 2]| Episode { spikes: spikes.to_vec() };
    imbalance.episodes =
        vec![episode([spike(0, 10, 70), spike(2, 30, 65)]), episode([spike(1, 100, 80), spike(0, 130, 66)])];
    imbalance.estimates = vec![(WorkerIx(5), Some(1_234)), (WorkerIx(6), None)];
    let shown = Spread::of(&imbalance, TimeZone(3_600_000));
    assert_eq!(shown.workers.len(), 32);
    assert_eq!(shown.left_out.as_deref(), Some("8 more workers are not drawn; the gap counts them"));
    assert_eq!(shown.figures(WorkerIx(7)), [UNKNOWN.to_owned(), "7".to_owned()]);
    assert_eq!(
        shown.episodes,
        [
            "01:01:40 W2 (up to 80) → 01:02:10 W1 (up to 66)",
            "01:00:10 W1 (up to 70) → 01:00:30 W3 (up to 65)"
        ],
        "the last one first"
    );
    assert_eq!(shown.estimates, [(WorkerIx(5), "1,234".to_owned())]);
    assert!(shown.limit.starts_with("batch limit unknown"), "{}", shown.limit);
}

#[test]
fn a_target_is_in_the_address_and_a_bad_one_is_named() {
    let targets = LatencyTargets { ttft_ms: 600.0, itl_ms: 40.0 };
    assert_eq!((TTFT.default_ms(targets), ITL.default_ms(targets)), (600.0, 40.0));
    let of = |query: &str| {
        let (address, _) = Address::parse(query);
        Target::of(TTFT, TTFT.typed(&address).as_deref(), 600.0)
    };
    assert_eq!(of(""), Target { ms: 600.0, fault: None });
    assert_eq!(of("?ttft_slo=450"), Target { ms: 450.0, fault: None });
    for text in ["soon", "0", "-5", "600001", ""] {
        let fault = format!("ttft_slo={text} in the address is invalid: milliseconds above 0; 600 is used");
        assert_eq!(of(&format!("?ttft_slo={text}")), Target { ms: 600.0, fault: Some(fault) });
    }
    let mut address = Address::default();
    ITL.set(&mut address, "45", 40.0);
    assert_eq!(address.query(), "?tpot_slo=45");
    ITL.set(&mut address, "none", 40.0);
    assert_eq!(address.query(), "?tpot_slo=45", "what is no target changes nothing");
    ITL.set(&mut address, "40", 40.0);
    assert_eq!(address.query(), "", "the default is not written");
}

#[test]
fn lines_are_named_by_where_they_are_measured_and_can_be_hidden() {
    let series = TrendSeries {
        times: vec![START],
        values: vec![Some((300.0, 300.0))],
        last: Some(Range::exact(300.0)),
        step_ms: 5_000,
    };
    let alone = TrendLines(vec![(Side::Frontend, series.clone())]);
    let names = |lines: &TrendLines| lines.legend().into_iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(names(&alone), ["p95", "target"]);
    let none = TrendSeries { last: None, ..series.clone() };
    let all = TrendLines(vec![(Side::Frontend, series), (Side::Client, none.clone()), (Side::Engine, none)]);
    assert_eq!(names(&all), ["p95 at the frontend", "at the client", "in the engines", "target"]);
    let drawn = |hidden: &str| {
        let drawn = all.drawn("TTFT", &Hidden::parse(hidden));
        drawn.into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
    };
    assert_eq!(drawn("").len(), 3);
    assert_eq!(drawn("p95,client"), [format!("TTFT p95, {}, ms", Side::Engine.as_str())]);
    assert_eq!(
        all.description(&TTFT_LABELS, 600.0),
        format!(
            "95th percentile of TTFT over the 60 s before each point; at the end {} 300 ms, {} no sample, {} no sample, target 600 ms",
            Side::Frontend.as_str(),
            Side::Client.as_str(),
            Side::Engine.as_str()
        )
    );
    let keys = [TrendLines::hidden_key(Quantity::Ttft), TrendLines::hidden_key(Quantity::Tpot)];
    assert_eq!(keys, ["ttft.hide", "itl.hide"]);
    // Points keep their place: between them nothing moves.
    let span = |ms: u64| TimeSpan { from: Millis(ms), until: Millis(ms + 60_000) };
    assert_eq!(TrendLines::step(span(1_004_999)), span(1_000_000));
}

#[test]
fn the_heading_says_what_the_figures_are_of_and_that_they_are_not_current() {
    let zone = TimeZone(3_600_000);
    assert_eq!(
        subtitle(None, zone),
        "Last 60 s against the targets, and in-flight imbalance between workers"
    );
    assert_eq!(subtitle(Some(START), zone), "60 s before 01:00:00; not current");
}
