//! What recorded traffic and logs say beside blocks and decisions: signs of the event path, departures, requests in
//! flight, how long blocks live. Each against a count by other means.

use std::collections::{BTreeMap, HashMap};

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::{BlockHash, Millis, Worker, WorkerIx};
use radixscope_model::record::{
    BlockResidency, DepartureCause, Entry, EventTransport, LogSignal, Record, SourceKind,
};
use radixscope_state::cluster::{Cluster, Follow, Liveness};
use radixscope_state::sink::RecordSink;

use crate::captures::replay::received;

const ALL_LOGS: &[&str] = &["frontend", "worker1", "worker2", "worker3"];

/// A state and the records that are looked at here.
#[derive(Default)]
struct Played {
    cluster: Cluster,
    records: Vec<(Millis, Record<'static>)>,
    /// Lives of all blocks: worker, when removed, how long held.
    lives: Vec<(WorkerIx, u64, u64)>,
    held: HashMap<(WorkerIx, BlockHash), u64>,
}

impl RecordSink for Played {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.cluster.append(entry);
        let retained = match entry.record {
            Record::EventTransport { worker, line, first_event_id } => {
                Record::EventTransport { worker, line, first_event_id }
            }
            Record::Left { worker, why } => Record::Left { worker, why },
            Record::Rejoined { worker } => Record::Rejoined { worker },
            Record::InFlight { worker, now, most } => Record::InFlight { worker, now, most },
            Record::BlockResidency { worker, ref lifetimes } => {
                Record::BlockResidency { worker, lifetimes: lifetimes.clone() }
            }
            Record::Stored { worker, ref blocks, .. } => {
                for block in blocks.iter() {
                    self.held.entry((worker, block.block_hash)).or_insert(entry.at_ms.0);
                }
                return;
            }
            Record::Removed { worker, ref hashes } => {
                let lived =
                    |hash| Some((worker, entry.at_ms.0, entry.at_ms.0 - self.held.remove(&(worker, hash))?));
                self.lives.extend(hashes.iter().copied().filter_map(lived));
                return;
            }
            _ => return,
        };
        self.records.push((entry.at_ms, retained));
    }
}

/// Plays a capture with these logs, flushing every second as the server does.
fn play(name: &str, logs: &[&str]) -> Played {
    let (mut intake, mut played) = (Intake::default(), Played::default());
    let nats = intake.source("nats", SourceKind::Nats, Millis(1), &mut played).unwrap();
    let log = intake.source("log", SourceKind::Logs, Millis(1), &mut played).unwrap();
    let mut now = Millis(0);
    for (at_ms, payload) in received(name, logs) {
        if at_ms.0 / 1_000 > now.0 / 1_000 {
            intake.flush(at_ms, &mut played);
        }
        now = at_ms;
        let source = if matches!(payload, Payload::LogLine { .. }) { log } else { nats };
        intake.handle(&Received { source, at_ms, payload }, &mut played);
    }
    intake.flush(Millis(now.0 + 1_000), &mut played);
    assert_eq!(played.cluster.rejected_total(), 0, "{name}: {:?}", played.cluster.sources());
    assert_eq!(intake.block_lifetimes().forgotten(), 0);
    played
}

/// Lines of these logs that have these words.
fn count(name: &str, logs: &[&str], text: &str) -> u64 {
    let of = |log: &&str| Recording::fixture(name).log(log).filter(|line| line.contains(text)).count();
    logs.iter().map(of).sum::<usize>() as u64
}

#[test]
fn signs_in_logs_add_up_to_the_lines_that_say_them() {
    for name in ["0.9.1-mismatch", "1.6.1-mismatch", "0.9.1-healthy", "1.6.1-healthy", "0.9.1-localindexer"] {
        let played = play(name, ALL_LOGS);
        let findings = |sign| played.cluster.sign(|known| *known == sign).map_or(0, |state| state.count);
        for (sign, text) in [
            (LogSignal::RouterStarted, "KV Routing initialized"),
            (LogSignal::UsesJetStream, "using JetStream subscription"),
            (LogSignal::ParentUnknown, "skipping store operation"),
            (LogSignal::BlockUnknown, "skipping remove operation"),
            (LogSignal::PublisherSize { publisher: 16, engine: 32 }, "Block not published."),
        ] {
            assert_eq!(findings(sign), count(name, ALL_LOGS, text), "{name}: {sign:?}");
        }
        assert_eq!(
            findings(LogSignal::PublisherSize { publisher: 16, engine: 32 }) > 0,
            name.ends_with("mismatch")
        );
        let of_workers = played.cluster.sign(|sign| *sign == LogSignal::ParentUnknown);
        let workers = of_workers.map_or(0, |state| state.workers.len());
        assert_eq!(workers, if name.ends_with("mismatch") { 3 } else { 0 }, "{name}");
    }
}

#[test]
fn a_killed_worker_leaves_within_seconds_with_its_blocks() {
    let played = play("0.9.1-worker-restart", &["frontend"]);
    let cluster = &played.cluster;
    let dead = cluster.worker_ix(Worker::new(7_668_682_361_245_869_064, 0)).expect("known");
    let departed: Vec<_> = played
        .records
        .iter()
        .filter_map(|(at, record)| match record {
            Record::Left { worker, why } => Some((*at, *worker, *why)),
            Record::Rejoined { .. } => panic!("no worker rejoined under its old id"),
            _ => None,
        })
        .collect();
    let [(at, worker, why)] = departed[..] else { panic!("{departed:?}") };
    assert_eq!((worker, why), (dead, DepartureCause::Log));
    let state = cluster.worker(dead).unwrap();
    let last_sign = state.last_sign_ms.expect("it spoke");
    assert!(at.since(last_sign) <= 10_000, "{} ms after its last sign", at.since(last_sign));
    assert_eq!(state.sign(cluster.now_ms()), Liveness::Left);
    assert_eq!(cluster.blocks(dead), Some(0));
    assert!(cluster.workers().indices().all(|w| (w == dead) == (cluster.blocks(w) == Some(0))));
    let without_log = play("0.9.1-worker-restart", &[]);
    assert!(without_log.cluster.workers().iter().all(|worker| worker.departure.is_none()), "not reported");
}

#[test]
fn every_worker_reports_once_how_its_events_come() {
    for (name, line, first) in [
        ("0.9.1-healthy", EventTransport::JetStream, 0),
        ("0.9.1-localindexer", EventTransport::Core, 0),
        ("1.6.1-healthy", EventTransport::Core, 1),
    ] {
        let played = play(name, &[]);
        let mut received = BTreeMap::new();
        for (_, record) in &played.records {
            if let Record::EventTransport { worker, line, first_event_id } = record {
                assert_eq!(
                    received.insert(*worker, (*line, *first_event_id)),
                    None,
                    "{name}: reported twice"
                );
            }
        }
        let want: BTreeMap<_, _> = (0..3).map(|worker| (WorkerIx(worker), (line, first))).collect();
        assert_eq!(received, want, "{name}");
        assert!(played.cluster.workers().iter().all(|worker| worker.lines.len() == 1));
    }
}

#[derive(serde::Deserialize)]
struct Request {
    t0: f64,
    t1: f64,
    nvext: Vec<serde_json::Value>,
}

/// The most requests at once on each worker, as the clients saw them.
fn most_at_once(name: &str) -> BTreeMap<u64, u32> {
    let mut steps: BTreeMap<u64, Vec<(f64, i32)>> = BTreeMap::new();
    for request in Recording::fixture(name).traffic::<Request>() {
        let worker = request.nvext[0]["worker_id"]["decode_worker_id"].as_u64().unwrap();
        steps.entry(worker).or_default().extend([(request.t0, 1), (request.t1, -1)]);
    }
    let most = |mut steps: Vec<(f64, i32)>| {
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let running = steps.iter().scan(0, |now, (_, step)| {
            *now += step;
            Some(*now)
        });
        running.max().unwrap_or(0) as u32
    };
    steps.into_iter().map(|(worker, steps)| (worker, most(steps))).collect()
}

#[test]
fn requests_in_flight_are_as_many_as_clients_had() {
    let name = "1.6.1-healthy";
    let played = play(name, &["frontend"]);
    let mut most: BTreeMap<u64, u32> = BTreeMap::new();
    for (_, record) in &played.records {
        if let Record::InFlight { worker, most: received, .. } = record {
            let known = most.entry(played.cluster.worker(*worker).unwrap().id.id.0).or_default();
            *known = (*known).max(*received);
        }
    }
    let clients = most_at_once(name);
    println!("most at once by the log {most:?}, by the clients {clients:?}");
    assert_eq!(most.len(), 3);
    for (worker, clients) in &clients {
        assert!(
            *clients > 2 && most[worker].abs_diff(*clients) <= 1,
            "{worker}: {} of {clients}",
            most[worker]
        );
    }
    assert!(played.cluster.workers().iter().all(|worker| worker.in_flight.now() == Some(0)), "all ended");
}

#[test]
fn where_no_source_reports_ends_the_number_of_requests_is_unknown() {
    let played = play("0.9.1-healthy", &["frontend"]);
    assert!(played.cluster.workers().iter().all(|worker| worker.in_flight.now().is_none()));
}

#[test]
fn the_sample_of_blocks_lives_as_long_as_all_of_them_do() {
    for name in ["0.9.1-healthy", "1.6.1-healthy"] {
        let played = play(name, &[]);
        let mut judged = 0;
        for worker in (0..3).map(WorkerIx) {
            let latest = played.records.iter().rev().find_map(|(at, record)| match record {
                Record::BlockResidency { worker: of, lifetimes: ages }
                    if *of == worker && ages.removed > 0 =>
                {
                    Some((at.0, **ages))
                }
                _ => None,
            });
            let (at, ages): (u64, BlockResidency) = latest.expect("a record");
            let window = at - 60_000..=at;
            let mut all: Vec<u64> = played
                .lives
                .iter()
                .filter(|(of, removed, _)| *of == worker && window.contains(removed))
                .map(|(.., lived)| *lived)
                .collect();
            all.sort_unstable();
            let share = f64::from(ages.removed) * 16.0 / all.len() as f64;
            let median = all[all.len() / 2];
            let p50 = ages.lifetime_p50_ms.unwrap();
            println!(
                "{name} {worker:?}: {} of {} removed, median {p50} of {median} ms",
                ages.removed,
                all.len()
            );
            assert!((0.6..1.6).contains(&share), "{name}: a fair sample, not {share}");
            assert!((p50 as f64 / median as f64 - 1.0).abs() < 0.3, "{name}: {p50} of {median}");
            judged += 1;
        }
        assert_eq!(judged, 3);
    }
}

#[test]
fn engines_that_hash_alike_name_every_shared_block_alike() {
    let played = play("0.9.1-healthy", &[]);
    let compared: u64 = played.cluster.workers().iter().map(|worker| worker.hashes_compared_total).sum();
    let differing: u64 = played.cluster.workers().iter().map(|worker| worker.hashes_differing_total).sum();
    assert!(compared > 1_000, "{compared}");
    assert_eq!(differing, 0);
}

#[test]
fn messages_alone_and_with_the_log_report_the_same_numbers_in_flight() {
    let most = |logs| {
        let played = play("../routing/1.6.1-replica-sync-trace", logs);
        let mut most: BTreeMap<Worker, u32> = BTreeMap::new();
        for (_, record) in &played.records {
            if let Record::InFlight { worker, most: received, .. } = record {
                let known = most.entry(played.cluster.worker(*worker).unwrap().id).or_default();
                *known = (*known).max(*received);
            }
        }
        assert!(played.cluster.workers().iter().all(|worker| worker.in_flight.now() == Some(0)), "all ended");
        most
    };
    let by_messages = most(&[]);
    assert!(by_messages.len() >= 2 && by_messages.values().all(|most| *most > 1), "{by_messages:?}");
    let by_both = most(&["frontend"]);
    for (worker, most) in &by_messages {
        assert!(by_both[worker].abs_diff(*most) <= 1, "{worker}: {most} and {}", by_both[worker]);
    }
}
