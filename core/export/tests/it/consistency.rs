//! A figure that stands in several places is the same in all of them: findings, memory and queues in the API's answers, in tickets
//! and in pictures. The exhaustive tests compare every fault in every topology of the simulator.

use radixscope_captures::{Played, play};
use radixscope_export::finding_ticket::{finding_ticket, findings_ticket, setting_line};
use radixscope_export::panel::svg::{Panel, PanelKind, PanelRequest};
use radixscope_export::{FindingFilter, Findings, Memories, Summary};
use radixscope_insight::check::Checks;
use radixscope_insight::occupancy::Occupancy;
use radixscope_insight::time_range::TimeRange;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_model::id::Millis;
use radixscope_model::number_format::short;
use radixscope_model::record::{CheckStatus, Severity};
use radixscope_sim::{Config, Fault, FaultPlan, Topology};
use radixscope_state::cluster::Cluster;
use serde_json::Value;

use crate::START;

/// Long enough for most findings and their symptoms, seconds.
const LIVE_S: u64 = 150;
const BEGINS_MS: u64 = 60_000;

/// The state and its time after a fault has shown; `None` where it cannot be in this topology.
fn after(fault: Fault, topology: Topology) -> Option<(Cluster, Millis)> {
    let after_ms = if fault.is_set_up() { 0 } else { BEGINS_MS };
    let config = Config { fault: Some(FaultPlan { fault, after_ms }), topology, ..Config::default() };
    let (mut cluster, mut checks, mut last) = (Cluster::default(), Checks::default(), START);
    let played = Played { start: START, warm_up_s: 0, live_s: LIVE_S };
    play(config, played, &mut cluster, |now, cluster: &mut Cluster| {
        checks.run(now, cluster);
        last = now;
        true
    })
    .ok()?;
    Some((cluster, last))
}

fn picture(cluster: &Cluster, kind: PanelKind, now: Millis) -> String {
    let shown = ViewContext::new(cluster, ShownPools::of(cluster, &PoolQuery::default()));
    let asked = PanelRequest {
        kind,
        is_dark: false,
        width_px: 2_400,
        height_px: 1_600,
        worker: None,
        span: TimeRange::default().span(now),
        targets_ms: [600.0, 60.0],
    };
    let svg = Panel::of(&shown, None, asked, now).svg();
    let document = roxmltree::Document::parse(&svg).expect("a picture is XML");
    let texts = document.descendants().filter(roxmltree::Node::is_text).filter_map(|node| node.text());
    texts.collect::<Vec<_>>().join("\n")
}

/// As a ticket writes a cell.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Every finding in the API's response, in its ticket and in the ticket of all.
fn compare_findings(cluster: &Cluster, now: Millis, what: &str) {
    let api = serde_json::to_value(Findings::of(cluster, FindingFilter::default(), now)).unwrap();
    let listed = api["findings"].as_array().unwrap();
    let active = FindingFilter::default().of(cluster);
    assert_eq!(listed.len(), active.len(), "{what}");
    let all = findings_ticket(cluster);
    let mut at = 0;
    for (json, finding) in listed.iter().zip(&active) {
        let ticket = finding_ticket(cluster, finding);
        let place =
            all[at..].find(&ticket).unwrap_or_else(|| panic!("{what}: not in this order: {ticket}\n{all}"));
        at += place;
        let since_ms = json["first_seen_ms"].as_u64().unwrap();
        assert_eq!((json["code"].as_str(), since_ms), (Some(&*finding.code), finding.first_ms.0), "{what}");
        for row in json["evidence"].as_array().unwrap() {
            let cell = |name: &str| on_one_line(row[name].as_str().unwrap());
            let line = format!("| {} | {} | {} |", cell("label"), cell("value"), cell("unit"));
            assert!(ticket.contains(&line), "{what}: {line}\n{ticket}");
        }
        for (fix, json) in finding.fix.iter().zip(json["fix"].as_array().unwrap()) {
            let line = on_one_line(&setting_line(fix));
            assert!(ticket.contains(&line), "{what}: {line}\n{ticket}");
            assert_eq!(json["value"].as_str().unwrap_or_default(), fix.value, "{what}");
        }
        compare_windows(finding.evidence.iter().map(|row| (&*row.label, &*row.value)), what);
    }
}

/// Two rows of one finding that say the same words have the same figure.
fn compare_windows<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>, what: &str) {
    let mut known: std::collections::BTreeMap<&str, &str> = std::collections::BTreeMap::new();
    for (label, value) in rows {
        let before = known.insert(label, value);
        assert!(before.is_none_or(|before| before == value), "{what}: {label}: {before:?} and {value}");
    }
}

/// How much was judged, in the API, the ticket and the picture; and no check is both ok and pending or without data.
fn compare_summary(cluster: &Cluster, now: Millis, what: &str) {
    let api: Value = serde_json::to_value(Findings::of(cluster, FindingFilter::default(), now)).unwrap();
    let summary = Summary::of(cluster);
    let of = |status: CheckStatus| {
        let checked = api["checked"].as_array().unwrap().iter();
        checked.filter(|rule| rule["status"] == status.as_str()).count() as u64
    };
    assert_eq!(of(CheckStatus::NoData), summary.no_data, "{what}");
    assert_eq!(of(CheckStatus::Pending), summary.pending.len() as u64, "{what}");
    assert_eq!(api["summary"]["judged"], summary.rules - summary.no_data, "{what}");
    assert!(findings_ticket(cluster).contains(&summary.coverage()), "{what}");
    let drawn = picture(cluster, PanelKind::Findings, now);
    assert!(drawn.contains(&summary.coverage()), "{what}: {drawn}");
    let critical =
        FindingFilter::default().of(cluster).iter().filter(|f| f.severity == Severity::Critical).count();
    assert!(drawn.contains(&format!("{critical} critical")), "{what}: {drawn}");
}

/// Capacity and cached blocks of each worker, in the API and in the picture.
fn compare_memory(cluster: &Cluster, now: Millis, what: &str) {
    let api = serde_json::to_value(Memories::of(cluster, now)).unwrap();
    let drawn = picture(cluster, PanelKind::Occupancy, now);
    let workers = cluster.workers_by_id();
    for (json, worker) in api["workers"].as_array().unwrap().iter().zip(workers) {
        let of = Occupancy::of(cluster, worker);
        let capacity = of.capacity.as_ref().map(|capacity| capacity.value);
        assert_eq!(json["capacity_blocks"].as_u64(), capacity, "{what}: {json}");
        if let Some(blocks) = json["mirror_blocks"].as_u64() {
            assert_eq!(Some(blocks), of.blocks, "{what}: {json}");
            assert!(drawn.contains(&short(blocks)), "{what}: {} of {json} in {drawn}", short(blocks));
        }
    }
}

/// Compares what is shown of these faults where they can be in the topology; how many that are.
pub(crate) fn compare(topology: Topology, faults: impl IntoIterator<Item = Fault>) -> usize {
    let mut compared = 0;
    for fault in faults {
        let Some((cluster, now)) = after(fault, topology) else { continue };
        let what = format!("{} in {topology:?}", fault.name());
        compare_findings(&cluster, now, &what);
        compare_summary(&cluster, now, &what);
        compare_memory(&cluster, now, &what);
        compared += 1;
    }
    compared
}

#[test]
fn figures_agree_in_every_place_with_two_models() {
    let faults = [Fault::BlockSizePartial, Fault::MemoryFull];
    assert_eq!(compare(Topology::TwoModels, faults), faults.len());
}

#[test]
fn figures_agree_in_every_place_with_tiers() {
    let faults = [Fault::HotWorker, Fault::KillWorker];
    assert_eq!(compare(Topology::Tiers, faults), faults.len());
}
