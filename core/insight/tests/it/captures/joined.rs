//! Every decision of every recorded log, held against what the log says when read by plain patterns: ids, lengths,
//! overlap, costs, times, and the mean hit rate against the router's own histogram.

use std::collections::BTreeMap;
use std::path::Path;

use radixscope_captures::{Recording, Scrape, fixtures};
use radixscope_dynamo::log_line;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Candidate, Completeness, SourceKind};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::captures::logged::{LoggedDecisions, Request};
use crate::captures::replay::{millis, publications};

/// How a recording is played.
#[derive(Clone, Copy, Debug)]
struct Played {
    with_nats: bool,
    nats_late_ms: u64,
    log_late_ms: u64,
}

const LOG: Played = Played { with_nats: false, nats_late_ms: 0, log_late_ms: 0 };
const BOTH: Played = Played { with_nats: true, ..LOG };

/// The frontends' logs of a recording, by name.
fn logs(recording: &Recording) -> Vec<(&'static str, Vec<String>)> {
    let names = ["frontend", "frontend.2"].into_iter().filter(|name| recording.has_log(name));
    names.map(|name| (name, recording.log(name).collect())).collect()
}

fn play(recording: &Recording, how: Played) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let mut source = |name, kind| intake.source(name, kind, Millis(1), &mut cluster).unwrap();
    let (nats, log, metrics) = (
        source("nats", SourceKind::Nats),
        source("log", SourceKind::Logs),
        source("metrics", SourceKind::Prometheus),
    );
    let mut all: Vec<(u64, Payload)> = Vec::new();
    for (name, lines) in logs(recording) {
        let mut last = 0;
        for line in lines {
            let record = log_line::decode(line.as_bytes()).ok().flatten();
            last = record.and_then(|record| record.at_us).map_or(last, |us| us as u64 / 1_000);
            let payload = Payload::LogLine { log: name.into(), line: line.into() };
            all.push((last + how.log_late_ms, payload));
        }
    }
    all.extend(recording.scrapes().map(|scrape| {
        let at = scrape.at_ms();
        (at, Payload::Scrape { process: scrape.process.into(), text: scrape.text.into() })
    }));
    if how.with_nats {
        let late = |(at, payload): (f64, Payload)| (millis(at).0 + how.nats_late_ms, payload);
        all.extend(publications(recording).map(late));
    }
    all.sort_by_key(|(at, _)| *at);
    let (mut flushed, mut end) = (0, 0);
    for (at, payload) in all {
        let at_ms = Millis(at);
        end = at;
        if at / 1_000 > flushed {
            flushed = at / 1_000;
            intake.flush(at_ms, &mut cluster);
        }
        let source = match payload {
            Payload::LogLine { .. } => log,
            Payload::Scrape { .. } => metrics,
            _ => nats,
        };
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
    }
    for second in 1..=60 {
        intake.flush(Millis(end + second * 1_000), &mut cluster);
    }
    cluster
}

/// So many of so many.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Of(usize, usize);

/// A recording against its own words: of what the log tells, how much was joined and is equal.
#[derive(Default)]
struct Table {
    decisions: Of,
    ids: Of,
    isl: Of,
    overlap: Of,
    costs: Of,
    ttft: Of,
    hit_rate: Option<(f64, f64, usize)>,
    /// Values that no line tells.
    made_up: Vec<String>,
    wrong: Vec<String>,
}

/// Requests of this block size are recorded.
const BLOCK: u64 = 16;

fn table(recording: &Recording, how: Played) -> Table {
    let logs_read: Vec<LoggedDecisions> =
        logs(recording).into_iter().map(|(_, lines)| LoggedDecisions::of(lines.into_iter())).collect();
    let cluster = play(recording, how);
    let by_id: BTreeMap<&str, &DecisionEntry> = cluster
        .decisions()
        .newest_first()
        .filter_map(|d| Some((d.decision.request_id.as_deref()?, d)))
        .collect();
    let selected: usize = logs_read.iter().map(|w| w.selected).sum();
    let mut table =
        Table { decisions: Of(cluster.decisions().totals().count as usize, selected), ..Table::default() };
    let requests = || logs_read.iter().flat_map(|w| &w.requests);
    for (id, logged) in requests() {
        table.hold(&cluster, id, logged, by_id.get(id.as_str()).copied());
    }
    if logs_read.iter().all(|w| w.requests.values().all(|request| request.costs.is_empty())) {
        let found =
            cluster.decisions().newest_first().filter(|d| how_known(d)).map(|d| d.decision.candidates.len());
        table.costs = Of(found.sum(), logs_read.iter().map(|w| w.formulas).sum());
    }
    if !how.with_nats {
        table.nothing_made_up(&cluster, &logs_read);
    }
    table.hit_rate = hit_rate(recording, &cluster);
    table
}

fn how_known(decided: &DecisionEntry) -> bool {
    decided.decision.completeness == Completeness::AllCandidates
}

impl Table {
    fn hold(&mut self, cluster: &Cluster, id: &str, logged: &Request, found: Option<&DecisionEntry>) {
        let mut count = |of: fn(&mut Self) -> &mut Of, is_told: bool, is_same: bool, what: &str| {
            if is_told {
                let place = of(self);
                place.1 += 1;
                place.0 += usize::from(is_same);
                if !is_same {
                    self.wrong.push(format!("{what} of {id}: {logged:?}"));
                }
            }
        };
        let known = |is_same: fn(&DecisionEntry, &Request) -> bool| found.is_some_and(|d| is_same(d, logged));
        count(|t| &mut t.ids, logged.chosen, found.is_some(), "id");
        let is_placed = logged.chosen;
        let same_isl = known(|d, logged| {
            d.decision.isl_tokens == logged.input_tokens
                && d.decision.isl_blocks == logged.input_tokens.map(|tokens| tokens.div_ceil(BLOCK))
        });
        count(|t| &mut t.isl, is_placed && logged.input_tokens.is_some(), same_isl, "isl");
        let same_overlap = known(|d, logged| d.overlap_blocks() == logged.overlap);
        count(|t| &mut t.overlap, logged.overlap.is_some(), same_overlap, "overlap");
        let same_ttft =
            known(|d, logged| d.progress.ttft_us == logged.ttft_ms.map(|ms| (ms * 1_000.0).round() as u64));
        count(|t| &mut t.ttft, is_placed && logged.ttft_ms.is_some(), same_ttft, "ttft");
        let same_costs = found.is_some_and(|d| {
            let cost = |c: &Candidate| (cluster.worker(c.worker).unwrap().id.id.0, c.cost);
            how_known(d) && d.decision.candidates.iter().map(cost).collect::<BTreeMap<_, _>>() == logged.costs
        });
        count(|t| &mut t.costs, !logged.costs.is_empty(), same_costs, "costs");
    }

    /// Every field of a decision known only from the log is in the log.
    fn nothing_made_up(&mut self, cluster: &Cluster, text: &[LoggedDecisions]) {
        let all: BTreeMap<&str, &Request> =
            text.iter().flat_map(|w| &w.requests).map(|(id, request)| (id.as_str(), request)).collect();
        let has_costs = text.iter().any(|w| w.formulas > 0);
        let says_overlap =
            text.iter().any(|w| w.selected > 0 && w.requests.values().any(|r| r.overlap.is_some()));
        for decided in cluster.decisions().newest_first() {
            let logged = decided.decision.request_id.as_deref().and_then(|id| all.get(id));
            let isl = decided.decision.isl_tokens;
            if isl.is_some() && logged.is_none_or(|logged| logged.input_tokens != isl && !logged.has_hashes) {
                self.made_up.push(format!("isl {isl:?}: {:?}", decided.decision));
            }
            let in_line = decided.decision.request_id.is_none() && !has_costs && !says_overlap;
            if decided.overlap_blocks().is_some()
                && logged.is_none_or(|logged| logged.overlap.is_none())
                && !has_costs
                && !in_line
                // Computed here, and named so.
                && decided.decision.completeness != Completeness::Reconstructed
            {
                self.made_up.push(format!("overlap: {:?}", decided.decision));
            }
        }
    }
}

/// Mean hit rate of dispatched requests up to the last scrape: ours, the router's own, and how many that are.
fn hit_rate(recording: &Recording, cluster: &Cluster) -> Option<(f64, f64, usize)> {
    let (mut sum, mut count, mut rates) = (0.0, 0.0, Vec::new());
    let scrapes: Vec<Scrape> = recording.scrapes().collect();
    for (place, (name, lines)) in logs(recording).into_iter().enumerate() {
        let of = |process: &str| scrapes.iter().rev().find(|scrape| scrape.process == process);
        // A frontend that was started again goes on under its name: its last scrape is that of its last log.
        let last = match (of("frontend2"), place) {
            (second, 1) => second.or_else(|| of("frontend")),
            (None, _) if logs(recording).len() > 1 => None,
            _ => of("frontend"),
        };
        let Some(Scrape { at_s, text, .. }) = last else { continue };
        let value = |what: &str| -> Option<f64> {
            let name = format!("dynamo_component_router_kv_hit_rate_{what}");
            text.lines().find(|l| l.starts_with(&name))?.rsplit(' ').next()?.parse().ok()
        };
        let (Some(s), Some(c)) = (value("sum"), value("count")) else { continue };
        (sum, count) = (sum + s, count + c);
        let logged = LoggedDecisions::of(lines.into_iter());
        assert!(!name.is_empty());
        let at_most = Millis((at_s * 1e3) as u64);
        // Up to 1.2 the router counts what it chose, from 1.3 on what it dispatched.
        let counts_dispatched = !recording.name().starts_with("1.1") && !recording.name().starts_with("1.2");
        let ours = cluster.decisions().newest_first().filter(|d| {
            let logged = d.decision.request_id.as_deref().and_then(|id| logged.requests.get(id));
            logged.is_some_and(|logged| logged.dispatched || !counts_dispatched) && d.decided_ms() <= at_most
        });
        rates.extend(ours.filter_map(DecisionEntry::overlap_share));
    }
    (count > 0.0 && !rates.is_empty()).then(|| {
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        (mean, sum / count, rates.len())
    })
}

fn recordings(root: &Path) -> Vec<Recording> {
    let mut found = Recording::all_in(root);
    found.retain(|recording| recording.has_log("frontend"));
    found
}

/// What each recording must come to: nothing that the log tells is missing or different, nothing else is shown.
fn assert_whole(recording: &Recording, how: Played) -> Table {
    let name = recording.name();
    let table = table(recording, how);
    let Table { decisions, ids, isl, overlap, costs, ttft, .. } = &table;
    for (what, Of(found, logged)) in [
        ("decisions", decisions),
        ("ids", ids),
        ("isl", isl),
        ("overlap", overlap),
        ("costs", costs),
        ("ttft", ttft),
    ] {
        assert_eq!(found, logged, "{name}, {how:?}: {what}: {:#?}", table.wrong);
    }
    assert!(table.made_up.is_empty(), "{name}, {how:?}: {:#?}", table.made_up);
    table
}

/// Each of these recordings with its log alone; their requests, and how many of them have a hit rate.
fn joined_from_logs(recordings: impl IntoIterator<Item = Recording>) -> (usize, usize) {
    let (mut requests, mut rates) = (0, 0);
    for recording in recordings {
        let table = assert_whole(&recording, LOG);
        requests += table.isl.0;
        if let Some((ours, theirs, n)) = table.hit_rate {
            // A request that failed tells no length, so that its rate is not known.
            let is_whole = table.overlap == table.isl;
            assert!(
                !is_whole || (ours - theirs).abs() < 1e-12,
                "{}: {ours} {theirs} of {n}",
                recording.name()
            );
            rates += usize::from(is_whole);
        }
    }
    (requests, rates)
}

/// Recordings of Dynamo 1.6.1, of which there are most, or all others.
fn of_1_6_1(is_wanted: bool) -> impl Iterator<Item = Recording> {
    recordings(&fixtures()).into_iter().filter(move |one| one.name().starts_with("1.6.1") == is_wanted)
}

#[test]
fn all_that_a_log_of_1_6_1_reports_of_its_requests_is_joined_and_nothing_else_is_shown() {
    let (requests, rates) = joined_from_logs(of_1_6_1(true));
    assert!(requests > 800 && rates >= 4, "{requests} requests, {rates} recordings with a hit rate");
}

#[test]
fn all_that_logs_of_other_versions_report_of_their_requests_is_joined_and_nothing_else_is_shown() {
    let (requests, rates) = joined_from_logs(of_1_6_1(false));
    assert!(requests > 1_150 && rates >= 9, "{requests} requests, {rates} recordings with a hit rate");
}

#[test]
fn it_is_the_same_when_the_log_or_the_messages_come_late() {
    let late = [Played { log_late_ms: 500, ..BOTH }, Played { nats_late_ms: 700, ..BOTH }];
    let names = ["0.9.1-log-jsonl-info", "1.1.1-healthy", "1.3.1-healthy", "1.4.2-replicas", "1.5.1-healthy"];
    for (name, how) in names.into_iter().flat_map(|name| late.map(|how| (name, how))) {
        assert_whole(&Recording::fixture(name), how);
    }
}

#[test]
fn the_mean_hit_rate_that_is_shown_is_the_routers_own() {
    for (name, expected) in [
        ("1.3.1-healthy", 0.724_391_094_131_119_2),
        ("1.4.2-healthy", 0.755_188_368_934_105_6),
        ("1.5.1-healthy", 0.751_937_802_707_566_5),
        ("1.6.1-healthy", 0.806_716_397_880_852_3),
        ("1.7.0.dev20261026-healthy", 0.741_712_990_206_898_7),
    ] {
        for how in [LOG, BOTH] {
            let totals = play(&Recording::fixture(name), how).decisions().totals();
            let shown = totals.mean_hit_rate().unwrap();
            assert!((shown - expected).abs() < 1e-12, "{name}, {how:?}: {shown}");
            // All but the query that ran nothing.
            assert_eq!(totals.with_blocks + 1, totals.count, "{name}");
        }
    }
}

#[test]
fn a_query_that_runs_nothing_is_known_as_such_where_the_log_says_when_requests_end() {
    for name in
        ["1.1.1-healthy", "1.2.1-healthy", "1.3.1-healthy", "1.4.2-healthy", "1.5.1-healthy", "1.6.1-healthy"]
    {
        let cluster = play(&Recording::fixture(name), LOG);
        let all = || cluster.decisions().newest_first();
        let queries: Vec<&DecisionEntry> = all().filter(|d| d.decision.dispatched == Some(false)).collect();
        assert_eq!(queries.len(), 1, "{name}");
        assert!(queries[0].decision.request_id.is_some() && queries[0].progress.outcome.is_none(), "{name}");
        let dispatched = all().filter(|d| d.decision.dispatched == Some(true)).count();
        assert_eq!(dispatched + 1, all().len(), "{name}");
    }
}
