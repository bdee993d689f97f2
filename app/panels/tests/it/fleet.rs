//! The page of many clusters: members with summaries of simulated clusters, and members that do not answer.

use radixscope_export::ClusterSummary;
use radixscope_export::fleet::{FleetPoint, FleetReport, MemberReport, MemberState};
use radixscope_insight::latency::Quantity;
use radixscope_model::id::Millis;
use radixscope_model::range::{Range, TargetComparison};
use radixscope_panels::fleet::{
    AxesOf, COLUMNS, Column, MemberRow, Order, age_cell, caption, connection, keep_points, listed, neighbour,
    none_found, state_cell, totals,
};
use radixscope_panels::format::{UNKNOWN, count};
use radixscope_sim::{Fault, Topology};
use radixscope_state::cluster::Cluster;

use crate::folded::Folded;

const NOW: Millis = Millis(1_800_000_000_000);

fn member(name: &str, summary: Option<ClusterSummary>) -> MemberReport {
    MemberReport {
        name: name.to_owned(),
        link: format!("https://radix.example/{name}/"),
        state: MemberState::Answering,
        since_ms: Millis(NOW.0 - 90_000),
        detail: String::new(),
        answered_ms: Some(Millis(NOW.0 - 3_000)),
        took_ms: Some(12),
        version: Some("1.2.3".to_owned()),
        summary,
        points: Vec::new(),
    }
}

fn summary(folded: &Folded) -> ClusterSummary {
    ClusterSummary::of(&folded.cluster, folded.now, false, None)
}

fn nothing() -> ClusterSummary {
    ClusterSummary::of(&Cluster::default(), NOW, false, None)
}

fn dead(name: &str, why: &str, summary: Option<ClusterSummary>) -> MemberReport {
    MemberReport {
        state: MemberState::NotAnswering,
        detail: why.to_owned(),
        answered_ms: summary.as_ref().map(|_| Millis(NOW.0 - 3_000)),
        ..member(name, summary)
    }
}

fn report(members: Vec<MemberReport>) -> FleetReport {
    let answering = members.iter().filter(|member| member.state == MemberState::Answering).count() as u32;
    FleetReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at_ms: NOW,
        poll_interval_s: 5.0,
        points_s: 900,
        answering,
        members,
    }
}

fn row(member: &MemberReport) -> MemberRow {
    MemberRow::of(member, &AxesOf::default())
}

/// Value and what it is of, by column.
fn texts(member: &MemberReport) -> Vec<[String; 2]> {
    row(member).cells.map(|cell| [cell.value, cell.more]).into()
}

#[test]
fn a_row_says_what_the_members_state_says() {
    let folded = Folded::demo(Topology::Aggregated, 90);
    let summary = summary(&folded);
    let shown = row(&member("eu", Some(summary.clone())));
    let [findings, hit_rate, ttft, _, workers, requests] = &shown.cells;
    // Some rules have no data in the simulator: that nothing was found is not good then.
    assert_eq!((findings.value.as_str(), &findings.more), ("No findings", &summary.findings.checked));
    let mut good = summary;
    good.findings.is_good = true;
    let cell = row(&member("eu", Some(good))).cells[0].clone();
    assert_eq!((cell.value.as_str(), cell.class), ("✓ No findings", "within"));
    let since = Millis(folded.now.0 - 60_000);
    let decisions: Vec<_> =
        folded.cluster.decisions().newest_first().take_while(|of| of.at_ms > since).collect();
    let blocks = |of: &dyn Fn(&radixscope_model::record::Decision) -> Option<u64>| {
        decisions.iter().filter_map(|decided| of(&decided.decision)).sum::<u64>() as f64
    };
    let share = blocks(&|of| of.overlap_blocks) / blocks(&|of| of.isl_blocks);
    assert_eq!(hit_rate.value, format!("{:.1} %", share * 100.0));
    assert_eq!(hit_rate.more, format!("{} decisions", count(decisions.len() as u64)));
    let p95 = radixscope_insight::latency::figure(&folded.cluster, Quantity::Ttft, folded.now).unwrap();
    assert_eq!(ttft.value, Quantity::Ttft.range_text(&p95.quantiles.unwrap()[1]));
    assert_eq!(ttft.more, if ttft.class == "within" { "✓ within 600 ms" } else { "◆ above 600 ms" });
    assert_eq!((workers.value.as_str(), workers.more.as_str()), ("3", "complete"));
    let ended = requests.value.parse::<f64>().unwrap();
    assert!((1.0..100.0).contains(&ended) && requests.more == "60 s mean", "{requests:?}");
    let class = if ttft.class == "above" { "warning" } else { "good" };
    assert_eq!((shown.name.as_str(), shown.class, shown.state), ("eu", class, "answering"));
}

#[test]
fn a_member_with_a_fault_shows_its_worst_finding_and_where_reuse_is_lost() {
    let folded = Folded::fault(Fault::NoEvents, 150);
    let active = folded.cluster.findings();
    assert!(!active.is_empty());
    let summary = summary(&folded);
    let shown = row(&member("eu", Some(summary.clone())));
    let worst = summary.findings.worst.as_ref().expect("a finding");
    let findings = &shown.cells[0];
    assert!(
        findings.value.ends_with(&worst.title) && findings.value.len() > worst.title.len(),
        "{findings:?}"
    );
    assert_eq!((findings.title.as_str(), findings.class), (worst.title.as_str(), worst.severity.as_str()));
    let counted: u64 =
        findings.more.split(" · ").map(|part| part.split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(counted, summary.findings.critical + summary.findings.warning + summary.findings.info);
    assert!(["critical", "warning"].contains(&shown.class), "{shown:?}");
    if let Some(worst) = &summary.reuse.worst {
        assert_eq!(shown.cells[3].value, worst.text);
        assert!(shown.cells[3].more.ends_with(" % of prompt tokens"), "{:?}", shown.cells[3]);
    }
}

#[test]
fn what_is_unknown_is_no_zero_and_says_why() {
    let cells = texts(&member("empty", Some(nothing())));
    assert_eq!(cells[0][0], "No findings", "what was not checked is not good");
    assert_eq!(cells[1], [UNKNOWN, "no decision in 60 s"]);
    assert_eq!(cells[3], [UNKNOWN, "no decision in 60 s"]);
    assert_eq!((cells[2][0].as_str(), cells[5][0].as_str()), (UNKNOWN, UNKNOWN));
    assert_eq!(cells[4][0], "0");
    let why = "did not respond within 2 s";
    let silent = dead("silent", why, None);
    let cells = texts(&silent);
    assert_eq!(cells[0], [why, ""], "why nothing is known");
    assert!(cells[1..].iter().all(|cell| *cell == [UNKNOWN, ""]), "{cells:?}");
    assert_eq!((row(&silent).class, age_cell(&silent, NOW.0).value.as_str()), ("dead empty-handed", "never"));
    assert_eq!(state_cell(&silent, NOW.0).more, "not answering for 90 s");
    // One that answered before keeps its last values.
    let mut last = nothing();
    last.hit_rate.share = Some(0.25);
    let died = dead("died", why, Some(last));
    assert_eq!(texts(&died)[1][0], "25.0 %");
    assert_eq!((row(&died).class, age_cell(&died, NOW.0).value.as_str()), ("dead", "3 s"));
    let old = MemberReport {
        state: MemberState::NoSummary,
        detail: "version 0.1 reports no summary".to_owned(),
        ..member("old", None)
    };
    assert_eq!(state_cell(&old, NOW.0).more, "version 0.1 reports no summary");
    assert!(texts(&old).iter().all(|cell| *cell == [UNKNOWN, "not reported"]));
    let waiting = MemberReport { state: MemberState::Waiting, answered_ms: None, ..member("new", None) };
    assert_eq!(state_cell(&waiting, NOW.0).more, "not asked yet");
    assert_eq!(row(&waiting).class, "unknown empty-handed");
}

#[test]
fn the_name_says_what_is_particular_of_a_member_that_answers() {
    let more = |change: fn(&mut ClusterSummary)| {
        let mut summary = nothing();
        summary.version = env!("CARGO_PKG_VERSION").to_owned();
        change(&mut summary);
        state_cell(&member("eu", Some(summary)), NOW.0).more
    };
    assert_eq!(more(|_| {}), "");
    assert_eq!(more(|of| of.is_replay = true), "replay");
    assert_eq!(more(|of| (of.sources.up, of.sources.all) = (1, 3)), "1 of 3 sources connected");
    let other = format!("version 9.9, this page {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(more(|of| of.version = "9.9".to_owned()), other);
    let title = state_cell(&member("eu", Some(nothing())), NOW.0).title;
    assert!(title.starts_with("eu · answering for 90 s · Radixscope 1.2.3"), "{title}");
    assert_eq!(age_cell(&member("eu", None), NOW.0).title, "Its last answer took 12 ms");
}

#[test]
fn the_worst_come_first_and_unknown_figures_last_in_both_directions() {
    let with = |name: &str, share: Option<f64>| {
        let mut summary = nothing();
        summary.hit_rate.share = share;
        member(name, Some(summary))
    };
    let mut critical = nothing();
    critical.findings.critical = 1;
    let mut above = nothing();
    above.ttft.standing = TargetComparison::Above;
    let report = report(vec![
        with("low", Some(0.1)),
        with("none", None),
        with("high", Some(0.9)),
        member("critical", Some(critical)),
        member("above", Some(above)),
        dead("dead", "refused", None),
    ]);
    let names = |order: Order, find: &str| -> Vec<&str> {
        listed(&report, order, find).into_iter().map(|at| report.members[at].name.as_str()).collect()
    };
    let worst = Order::of(None);
    assert_eq!(names(worst, ""), ["dead", "critical", "above", "high", "low", "none"]);
    let by_hits = worst.toggled(Column::HitRate);
    assert_eq!(names(by_hits, "")[..2], ["low", "high"]);
    let down = by_hits.toggled(Column::HitRate);
    assert_eq!(names(down, "")[..2], ["high", "low"]);
    assert_eq!(names(down, "")[2..], names(by_hits, "")[2..], "unknown ones stay last, by name");
    assert_eq!(
        [worst, by_hits, down].map(Order::to_text),
        [None, Some("hit_rate".to_owned()), Some("-hit_rate".to_owned())]
    );
    assert_eq!(Order::of(Some("-hit_rate")), down);
    assert_eq!(Order::of(Some("nonsense")), worst);
    assert_eq!((down.aria(Column::HitRate), down.aria(Column::Name)), (Some("descending"), None));
    // The largest times and counts are what is looked for.
    assert_eq!(worst.toggled(Column::Workers).to_text().as_deref(), Some("-workers"));
    assert_eq!(names(Order::of(Some("name")), ""), ["above", "critical", "dead", "high", "low", "none"]);
    assert_eq!(names(worst, "H"), ["high"], "the filter is by name, without regard to case");
    assert!(names(worst, "nothing").is_empty());
    assert_eq!(none_found("nothing"), "No cluster's name contains “nothing”");
    assert_eq!(totals(Some(&report)), ["5 of 6", "1", "1"].map(str::to_owned));
    assert_eq!(totals(None), [UNKNOWN; 3].map(str::to_owned));
    assert_eq!(COLUMNS.map(|(column, ..)| column.as_str()).len(), 8);
}

#[test]
fn before_any_member_was_asked_nothing_is_counted() {
    let waiting = MemberReport { state: MemberState::Waiting, ..member("new", None) };
    assert_eq!(totals(Some(&report(vec![waiting]))), ["0 of 1", UNKNOWN, UNKNOWN].map(str::to_owned));
    assert_eq!(connection("", false), ("wait", "Loading"));
    assert_eq!(connection("", true), ("live", "Live"));
    assert_eq!(connection("The server of this page does not respond", true), ("bad", "Not current"));
}

#[test]
fn lines_share_their_axes_and_the_caption_says_which() {
    let point = |seconds: u64, hit_rate, ttft: f64| FleetPoint {
        at_ms: Millis(NOW.0 - seconds * 1_000),
        hit_rate: Some(hit_rate),
        ttft_ms: Some(Range::exact(ttft)),
    };
    let mut with_target = nothing();
    with_target.ttft.target_ms = 600.0;
    let mut one = member("one", Some(with_target));
    one.points = vec![point(300, 0.0, 300.0), point(0, 1.0, 1_200.0)];
    let axes = AxesOf::of(&report(vec![one.clone(), member("two", None)]));
    assert_eq!(
        caption(&axes),
        "Lines: the last 5 min, hit rate 0–100 %, TTFT 0–1.2 s, the same for all. Grey: last values of a cluster that does not answer."
    );
    let shown = MemberRow::of(&one, &axes);
    // Further apart than four points: not connected. From the bottom at the left to the top at the right.
    assert_eq!(shown.hit_paths.line, "M0.0 23.5h1M100.0 0.5h-1");
    // 600 of 1,200 ms.
    assert_eq!(shown.target_y, Some(12.0));
    // One far above its target does not flatten the others.
    one.points.push(point(0, 1.0, 60_000.0));
    assert!(caption(&AxesOf::of(&report(vec![one]))).contains("TTFT 0–2.4 s (larger ones at the top)"));
}

#[test]
fn points_are_kept_as_long_as_they_are_shown_and_come_once() {
    let point =
        |seconds: u64| FleetPoint { at_ms: Millis(NOW.0 - seconds * 1_000), hit_rate: None, ttft_ms: None };
    let with = |points: &[u64]| MemberReport {
        points: points.iter().copied().map(point).collect(),
        ..member("eu", None)
    };
    let before = report(vec![with(&[1_000, 800, 20])]);
    let mut now = report(vec![with(&[20, 5])]);
    keep_points(&mut now, &before);
    let ages: Vec<u64> = now.members[0].points.iter().map(|point| NOW.since(point.at_ms) / 1_000).collect();
    assert_eq!(ages, [800, 20, 5]);
    let mut other = report(vec![MemberReport { name: "us".to_owned(), ..with(&[5]) }]);
    keep_points(&mut other, &before);
    assert_eq!(other.members[0].points.len(), 1, "another member's points are not taken");
}

#[test]
fn arrows_lead_from_cell_to_cell_and_stop_at_the_edges() {
    let to = |key, from| neighbour(key, from, 3);
    assert_eq!(to("ArrowDown", (0, 2)), Some((1, 2)));
    assert_eq!((to("ArrowDown", (2, 2)), to("ArrowUp", (0, 2))), (Some((2, 2)), Some((0, 2))));
    assert_eq!((to("ArrowRight", (0, 6)), to("ArrowLeft", (0, 0))), (Some((0, 6)), Some((0, 0))));
    assert_eq!(
        (to("Home", (2, 1)), to("End", (0, 1)), to("Enter", (0, 1))),
        (Some((0, 1)), Some((2, 1)), None)
    );
    assert_eq!(neighbour("ArrowDown", (0, 0), 0), Some((0, 0)));
}
