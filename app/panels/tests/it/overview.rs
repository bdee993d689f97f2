//! The overview's figures and its line of findings: counted again from the requests and findings of the state, and the same wherever else
//! they stand.

use radixscope_export::FindingFilter;
use radixscope_export::finding_ticket::setting_line;
use radixscope_export::panel::findings;
use radixscope_insight::latency::{self, Quantity};
use radixscope_model::id::Millis;
use radixscope_model::record::{CheckStatus, Phase, Severity};
use radixscope_panels::findings::FindingBadge;
use radixscope_panels::format;
use radixscope_panels::kiosk;
use radixscope_panels::overview::{StatusLine, TILES, Tile, TileSettings, tiles};
use radixscope_panels::round_robin::RoundRobinRun;
use radixscope_panels::url::Panel;
use radixscope_panels::workers::WorkerRow;
use radixscope_sim::{Fault, Topology};

use crate::folded::Folded;
use crate::states::{ZONE, faulty, nothing, numbers, recorded};

const SETTINGS: TileSettings =
    TileSettings { targets_ms: [500.0, 60.0], is_current: true, round_robin: None, zone: ZONE };

/// With the targets that findings are judged by.
fn tiles_of(folded: &Folded) -> [Tile; 5] {
    let targets = folded.cluster.targets();
    let settings = TileSettings { targets_ms: [targets.ttft_ms, targets.itl_ms], ..SETTINGS };
    tiles(&folded.shown(), folded.now, &settings)
}

fn line_of(folded: &Folded) -> StatusLine {
    StatusLine::of(&folded.cluster, &tiles_of(folded), false, ZONE)
}

#[test]
fn figures_are_those_counted_from_the_requests() {
    let folded = Folded::demo(Topology::Aggregated, 120);
    let settings = TileSettings { targets_ms: [100_000.0, 60.0], ..SETTINGS };
    let all = tiles(&folded.shown(), folded.now, &settings);
    // Requests whose first token came in the last minute, as frontends measured it.
    let [ttft, itl, hit_rate, throughput, in_flight] = &all;
    assert_eq!(
        (ttft.state, ttft.status_text.as_str(), ttft.above_ms),
        ("within", "✓ within target 100 s", None)
    );
    for (tile, quantity) in [(ttft, Quantity::Ttft), (itl, Quantity::Tpot)] {
        let figure = latency::figure(&folded.cluster, quantity, folded.now).expect("it is measured");
        let p95 = figure.quantiles.unwrap()[1];
        assert_eq!(tile.value, quantity.range_text(&p95));
        assert!(tile.title.starts_with("95th percentile over the last 60 s, all pools: "), "{}", tile.title);
    }
    assert!(itl.status_text.contains("target 60 ms"), "{}", itl.status_text);

    let requests: Vec<(usize, u64)> = folded
        .cluster
        .workers()
        .indexed()
        .enumerate()
        .filter_map(|(at, (_, state))| Some((at, u64::from(state.in_flight.now()?))))
        .collect();
    let sum: u64 = requests.iter().map(|(_, n)| n).sum();
    let most = requests.iter().map(|(_, n)| *n).max().unwrap();
    assert!((1..=120).contains(&sum), "each of 120 users has one request at most: {sum}");
    assert_eq!(in_flight.value, format::count(sum));
    let on: Vec<String> = requests
        .iter()
        .filter(|(_, n)| *n == most)
        .map(|(at, _)| format!("max {most} on W{}", at + 1))
        .collect();
    assert!(on.contains(&in_flight.status_text), "{}: {on:?}", in_flight.status_text);

    let recent =
        folded.cluster.decisions().newest_first().filter(|entry| folded.now.since(entry.at_ms) <= 60_000);
    let recent: Vec<_> = recent.collect();
    let prompts: u64 = recent.iter().filter_map(|entry| entry.decision.isl_blocks).sum();
    let held: u64 = recent.iter().filter_map(|entry| entry.overlap_blocks()).sum();
    assert_eq!(hit_rate.value, format!("{:.0} %", 100.0 * held as f64 / prompts as f64));
    assert_eq!(hit_rate.status_text, format::plural(recent.len() as u64, "decision", "decisions"));
    assert_eq!((hit_rate.more_text(), hit_rate.more.as_str()), ("round-robin –", ""));
    assert!(hit_rate.title.contains(&format!(
        "{} of {} prompt blocks",
        format::count(held),
        format::count(prompts)
    )));
    assert!(
        hit_rate.title.ends_with(
            "round-robin not simulated yet: Counterfactual simulates it with the recorded requests"
        )
    );

    let per_s: f64 = throughput.value.trim_end_matches(" req/s").parse().unwrap();
    let ended = folded.cluster.decisions().newest_first();
    let ended = ended
        .filter(|entry| entry.progress.ended_ms.is_some_and(|at| folded.now.since(at) <= 60_000))
        .count();
    assert!((per_s - ended as f64 / 60.0).abs() < 0.3 * per_s, "{per_s} and {ended} in a minute");
    assert!(throughput.status_text.ends_with(" tokens/s"), "{}", throughput.status_text);

    let names: Vec<_> = TILES.iter().map(|(at, name, id, panel)| (*at, *name, *id, *panel)).collect();
    assert_eq!(names[2], (2, "KV hit rate", "summary-hit-rate", Panel::Decisions));
    assert!(names.iter().enumerate().all(|(place, (at, ..))| place == *at));

    let run = RoundRobinRun {
        pool: None,
        shown_at: 0,
        at_ms: folded.now,
        requests: 1_203,
        hit_rate: 0.325,
        recorded_hit_rate: 0.811,
    };
    let simulated = TileSettings { round_robin: Some(run), ..SETTINGS };
    let hit_rate = &tiles(&folded.shown(), folded.now, &simulated)[2];
    assert_eq!(hit_rate.more_text(), "round-robin ≈ 32.5 %");
    let expected = format!(
        ". Round-robin, simulated at {} with 1,203 recorded requests: 32.5 % of prompt tokens found in the engines' caches, 81.1 % under the recorded setting",
        ZONE.time_of_day(folded.now)
    );
    assert!(hit_rate.title.ends_with(&expected), "{}", hit_rate.title);

    // Scraped figures that are not current meet no target.
    let old = tiles(&folded.shown(), folded.now, &TileSettings { is_current: false, ..SETTINGS });
    for tile in &old[..2] {
        assert_eq!((tile.state, tile.status_text.as_str(), tile.above_ms), ("unknown", "not current", None));
    }
}

#[test]
fn what_is_not_reported_names_the_option_that_would_report_it() {
    let folded = Folded::recorded("0.9.1-no-events");
    let [ttft, itl, hit_rate, throughput, in_flight] = tiles_of(&folded);
    for tile in [ttft, itl, throughput] {
        assert_eq!((tile.value.as_str(), tile.status_text.as_str()), ("–", "no data: set --prometheus"));
        assert!(tile.title.contains("http://HOST"), "{}", tile.title);
    }
    assert_eq!((in_flight.value.as_str(), in_flight.status_text.as_str()), ("–", "no data: set --logs"));
    assert!(in_flight.title.contains("--router-replica-sync"), "{}", in_flight.title);
    // Each prompt is reported, and no worker had anything of it.
    assert_eq!(hit_rate.value, "0 %");

    let nothing = nothing();
    let none = tiles_of(&nothing);
    assert!(none.iter().all(|tile| tile.value == "–" && tile.state.is_empty()), "{none:?}");
    assert_eq!(none[2].status_text, "no decision in 60 s");
    let line = line_of(&nothing);
    assert_eq!((line.text.as_str(), line.level, line.link), ("Nothing was checked yet", "", "Open findings"));
}

#[test]
fn the_line_names_the_worst_finding_with_a_setting_of_it_and_the_others() {
    let folded = faulty(Fault::NoEvents, 90);
    let active = FindingFilter::default().of(&folded.cluster);
    let line = line_of(&folded);
    let worst = active[0];
    assert!(line.text.starts_with(match worst.severity {
        Severity::Critical => "◆ Critical: ",
        Severity::Warning => "▲ Warning: ",
        Severity::Info => "● Note: ",
    }));
    assert_eq!(line.level, ["info", "warn", "bad"][worst.severity as usize]);
    assert_eq!((line.link, line.is_check), ("Open findings", false));
    assert_eq!(line.since, format!("since {}", ZONE.time_of_day(worst.first_ms)));
    let settings: Vec<String> = worst.fix.iter().map(setting_line).filter(|line| !line.is_empty()).collect();
    assert_eq!(Some(&line.setting), settings.first(), "ready to be copied");
    assert!(!line.setting.is_empty() && line.setting_title().ends_with(&line.setting));
    let named = line.more.matches(": ").count();
    assert!(named >= (active.len() - 1).min(2), "{}: {} findings", line.more, active.len());
    let bad = active.iter().filter(|finding| finding.severity > Severity::Info).count();
    let badge = FindingBadge::of(&folded.cluster).expect("a finding that needs an eye");
    let most = active.iter().map(|finding| finding.severity).max().unwrap();
    assert_eq!((badge.count as usize, badge.worst), (bad, most));
}

#[test]
fn a_healthy_cluster_says_how_much_was_checked_and_is_green_only_where_all_was() {
    let folded = Folded::demo(Topology::Aggregated, 60);
    assert!(
        folded.cluster.findings().iter().all(|finding| finding.phase == Phase::Cleared),
        "{:?}",
        folded.cluster.findings()
    );
    let checked = folded.cluster.checked();
    let no_data = checked.iter().filter(|rule| rule.status == CheckStatus::NoData).count();
    assert!(no_data > 0, "some rules have no data in the demo");
    let coverage =
        format!("{} of {} checks ran, {no_data} without data", checked.len() - no_data, checked.len());
    let tiles = tiles_of(&folded);
    let line = line_of(&folded);
    assert!(line.is_check && !line.text.contains('✓') && line.link == "What is missing", "{line:?}");
    assert!([&line.text, &line.more].iter().any(|text| text.contains(&coverage)), "{line:?}");
    assert_eq!(FindingBadge::of(&folded.cluster), None);

    // What is above its target is no finding yet, and not well either.
    let mut above = tiles.clone();
    (above[0].above_ms, above[1].above_ms) = (None, Some(22_000));
    let line = StatusLine::of(&folded.cluster, &above, false, ZONE);
    let is_pending = folded.cluster.checked().iter().any(|rule| rule.status == CheckStatus::Pending);
    if !is_pending {
        assert_eq!((line.level, line.text.as_str()), ("warn", "◆ ITL p95 above target for 22 s"));
        assert_eq!(line.more, coverage);
    }
    let old = StatusLine::of(&folded.cluster, &tiles, true, ZONE);
    assert_eq!(old.level, "info");
    assert!(old.text.starts_with("Last check: "), "{}", old.text);
}

/// Compares everything that stands in two places.
fn agree(name: &str, folded: &Folded) {
    let shown = folded.shown();
    let [ttft, itl, _, _, in_flight] = tiles_of(folded);
    for (tile, quantity) in [(&ttft, Quantity::Ttft), (&itl, Quantity::Tpot)] {
        let figure = latency::latest(&folded.cluster, quantity, folded.now);
        let p95 = figure.iter().find(|times| times.samples > 0).and_then(|times| times.quantiles);
        let expected = p95.map_or("–".to_owned(), |[_, p95, _]| quantity.range_text(&p95));
        assert_eq!(tile.value, expected, "{name}");
    }
    // Requests in flight: the tile, and the table of workers.
    let rows = shown.worker_list().filter_map(|ix| WorkerRow::of(&folded.cluster, ix, folded.now, true));
    let rows: Vec<WorkerRow> = rows.collect();
    let each: Vec<u64> =
        rows.iter().filter_map(|row| numbers(&row.figures.in_flight).first().copied()).collect();
    match numbers(&in_flight.value)[..] {
        [sum] => assert_eq!(sum, each.iter().sum::<u64>(), "{name}"),
        _ => assert!(each.is_empty(), "{name}: {in_flight:?}"),
    }
    let queued: Vec<u64> =
        rows.iter().map(|row| numbers(&row.figures.queued).first().copied().unwrap_or(0)).collect();
    assert!(
        each.is_empty() || each.iter().zip(&queued).all(|(all, part)| part <= all),
        "{name}: {queued:?} of {each:?}"
    );
    // Dynamo 0.9's engines do not say whose queues they report.
    let are_told_apart = !rows.iter().any(|row| row.figures.in_flight_title.contains("Queued: not reported"));
    let on_workers = in_flight.more.strip_suffix(" queued on workers").filter(|_| are_told_apart);
    if let Some(on_workers) = on_workers {
        assert_eq!(numbers(on_workers).last().copied(), Some(queued.iter().sum()), "{name}");
    }

    let active = FindingFilter::default().of(&folded.cluster);
    let bad = active.iter().filter(|finding| finding.severity > Severity::Info).count();
    assert_eq!(FindingBadge::of(&folded.cluster).map_or(0, |badge| badge.count as usize), bad, "{name}");
    let counts = findings::counts(&findings::active(&folded.cluster, None));
    assert_eq!(counts.iter().sum::<u64>() as usize, active.len(), "{name}");
    let (line, worst) = (line_of(folded), kiosk::WorstFinding::of(&shown, &tiles_of(folded)));
    let is_above = [ttft, itl].iter().any(|tile| tile.above_ms.is_some());
    match active.first() {
        Some(_) => {
            let title = line.text.split_once(": ").expect("mark, word and title").1;
            assert!(title.starts_with(&worst.text), "{name}: {title} and {}", worst.text);
            assert_ne!(line.level, "good", "{name}");
        }
        None => {
            assert_eq!(
                line.level == "good",
                folded.cluster.checked().iter().all(|rule| rule.status == CheckStatus::Ok) && !is_above
            );
            if is_above {
                assert!(line.text.contains("above target for"), "{name}: {}", line.text);
                assert!(worst.text.contains("above target for"), "{name}: {}", worst.text);
            }
        }
    }
}

#[test]
fn a_figure_that_stands_in_two_places_is_the_same_in_both() {
    for (topology, seconds) in [
        (Topology::Aggregated, 75),
        (Topology::TwoModels, 75),
        (Topology::Disaggregated, 75),
        (Topology::Tiers, 75),
    ] {
        agree(&format!("{topology:?}"), &Folded::demo(topology, seconds));
    }
}

#[test]
fn figures_agree_under_faults() {
    for (fault, seconds) in [(Fault::Slow, 90), (Fault::HotWorker, 120), (Fault::KillWorker, 90)] {
        agree(&format!("{fault:?}"), &Folded::fault(fault, seconds));
    }
    for fault in [Fault::NoEvents, Fault::BlockSizeCard] {
        agree(&format!("{fault:?}"), &faulty(fault, 75));
    }
}

#[test]
fn a_figure_above_its_target_says_so_and_for_how_long() {
    let folded = Folded::demo(Topology::Aggregated, 75);
    let settings = TileSettings { targets_ms: [1.0, 60.0], ..SETTINGS };
    let tile = &tiles(&folded.shown(), folded.now, &settings)[0];
    assert_eq!((tile.state, tile.status_text.as_str()), ("above", "◆ above target 1 ms"));
    let above_ms = tile.above_ms.expect("for some time");
    assert!(above_ms <= 75_000, "{above_ms}");
    let later = Folded { now: Millis(folded.now.0 + 3_600_000), cluster: folded.cluster };
    let late = &tiles_of(&later)[0];
    assert_eq!((late.value.as_str(), late.status_text.as_str()), ("–", "no sample in 60 s"));
    assert_eq!(late.title, "No request ended in the last 60 s");
}

#[test]
fn in_a_recording_that_was_joined_late_the_line_says_that_the_tree_lacks_blocks() {
    let mut folded = recorded(&radixscope_captures::Recording::late("1.6.1-nats-late-replica-sync"));
    let mut checks = radixscope_insight::check::Checks::default();
    for second in 0..90 {
        checks.run(Millis(folded.now.0 + second * 1_000), &mut folded.cluster);
    }
    assert!(line_of(&folded).text.contains("The tree lacks blocks"), "{}", line_of(&folded).text);
}
