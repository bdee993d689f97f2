//! The same messages and lines at any pace and in any interleaving give the same decisions: the order of arrival between sources is
//! no evidence. Within one source, which is a NATS connection, a log, or scrapes, the order stays.
//!
//! Messages of 0.8 have no time of their own: they are taken to need as long as the last one that could be about one choice
//! only, and nothing is asserted of them here.
//!
//! Every run tries [`SAMPLE`]; the exhaustive tests try each recording at every pace, in [`ORDERS`] orders.
//! `RADIXSCOPE_CAPTURES` names another directory with recordings for these, `ONLY` a part of their names.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::log_line;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::SourceKind;
use radixscope_state::cluster::{Cluster, DecisionEntry};

/// Orders tried of each pace by the exhaustive tests.
const ORDERS: u64 = 3;
/// How late messages and lines may be.
const LATE_MS: u64 = 500;
/// How often what was summed up becomes records, as in the server.
const FLUSH_EVERY_MS: u64 = 1_000;
/// So long nothing is received in a pause.
const PAUSE_MS: u64 = 10_000;
/// After the last message, so that what waits for others is released.
const AFTERWARDS_MS: u64 = 12_000;

/// A sequence of numbers that is the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound.max(1)
    }
}

/// A source with what it received, in its order, each with the time at which it was published or written.
#[derive(Clone)]
struct Source {
    name: String,
    kind: SourceKind,
    received: Vec<(u64, Payload)>,
}

/// A recording as its sources received it.
struct Tape {
    name: String,
    sources: Vec<Source>,
}

impl Tape {
    fn read(recording: &Recording) -> Self {
        let mut subjects = NatsSubjects::default();
        let messages = recording.subscribed().filter_map(|m| {
            Some(((m.at_s * 1e3) as u64, subjects.publication(&m.subject, m.reply.as_deref(), m.payload)?))
        });
        let scrapes = recording.scrapes().map(|scrape| {
            let at_ms = scrape.at_ms();
            (at_ms, Payload::Scrape { process: scrape.process.into(), text: scrape.text.into() })
        });
        let mut sources = vec![
            Source { name: "nats".into(), kind: SourceKind::Nats, received: messages.collect() },
            Source { name: "metrics".into(), kind: SourceKind::Prometheus, received: scrapes.collect() },
        ];
        for log in recording.logs().into_iter().filter(|log| log.starts_with("frontend")) {
            let mut last = 0;
            let line = |line: String| {
                let at_us = log_line::decode(line.as_bytes()).ok().flatten().and_then(|line| line.at_us);
                last = at_us.map_or(last, |us| last.max(us as u64 / 1_000));
                (last, Payload::LogLine { log: log.as_str().into(), line: line.into() })
            };
            let received: Vec<(u64, Payload)> = recording.log(&log).map(line).collect();
            // What was written before the first line with a time belongs to it.
            let first = received.iter().map(|(at, _)| *at).find(|at| *at > 0).unwrap_or(0);
            let received = received.into_iter().map(|(at, payload)| (at.max(first), payload)).collect();
            sources.push(Source { name: log.clone(), kind: SourceKind::Logs, received });
        }
        Self { name: recording.name(), sources }
    }

    /// The same without scrapes: they tell of the moment at which they were asked for, so that none waits for minutes.
    fn without_scrapes(&self) -> Self {
        let sources = self.sources.iter().filter(|source| source.kind != SourceKind::Prometheus);
        Self { name: self.name.clone(), sources: sources.cloned().collect() }
    }

    /// The decisions after everything was received in this order.
    fn play(&self, pace: Pace, seed: u64) -> Cluster {
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ (seed + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9));
        let arrivals = pace.arrivals(&self.sources, &mut numbers);
        let begin = arrivals.first().map_or(0, |(at, _)| *at);
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        let sources: Vec<SourceIx> = self
            .sources
            .iter()
            .map(|of| intake.source(&of.name, of.kind, Millis(begin), &mut cluster).unwrap())
            .collect();
        let mut next: Vec<usize> = vec![0; sources.len()];
        let (mut flush_ms, mut last) = (begin + FLUSH_EVERY_MS, begin);
        for (at, of) in arrivals {
            while flush_ms <= at {
                intake.flush(Millis(flush_ms), &mut cluster);
                flush_ms += FLUSH_EVERY_MS;
            }
            let (_, payload) = &self.sources[of].received[next[of]];
            next[of] += 1;
            last = at;
            let received = Received { source: sources[of], at_ms: Millis(at), payload: payload.clone() };
            intake.handle(&received, &mut cluster);
        }
        while flush_ms <= last + AFTERWARDS_MS {
            intake.flush(Millis(flush_ms), &mut cluster);
            flush_ms += FLUSH_EVERY_MS;
        }
        cluster
    }
}

/// When and in which order sources are received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// Everything when it was published.
    Recorded,
    /// Everything up to [`LATE_MS`] later, each source on its own.
    Late,
    /// A backlog of a few seconds at a time: everything of it at once, the sources in any interleaving.
    Bursts,
    /// Nothing for [`PAUSE_MS`] now and then, and all of it afterwards.
    Pauses,
    /// The whole recording but for scrapes at once, the sources in any interleaving.
    AtOnce,
}

/// All but the recorded one.
const PACES: [Pace; 4] = [Pace::Late, Pace::Bursts, Pace::Pauses, Pace::AtOnce];

impl Pace {
    /// When each source is received next.
    fn arrivals(self, sources: &[Source], numbers: &mut Numbers) -> Vec<(u64, usize)> {
        let mut all: Vec<(u64, usize)> = Vec::new();
        for (ix, source) in sources.iter().enumerate() {
            let mut late = 0;
            let mut last = 0;
            for (n, (at, _)) in source.received.iter().enumerate() {
                if self == Self::Late && n % 16 == 0 {
                    late = numbers.below(LATE_MS + 1);
                }
                last = last.max(at + late);
                all.push((last, ix));
            }
        }
        // Sources that are received at one time keep their own order, whatever the order between them.
        all.sort_by_key(|(at, _)| *at);
        let (Some(&(first, _)), Some(&(end, _))) = (all.first(), all.last()) else { return all };
        let span = match self {
            Self::Recorded | Self::Late => return all,
            Self::Bursts => 4_000,
            Self::Pauses => PAUSE_MS,
            Self::AtOnce => end - first + 1,
        };
        let mut shuffled = Vec::with_capacity(all.len());
        let mut rest: VecDeque<(u64, usize)> = all.into();
        let mut from = first;
        while !rest.is_empty() {
            let until = from + span;
            let waiting = rest.partition_point(|(at, _)| *at < until);
            let backlog: Vec<(u64, usize)> = rest.drain(..waiting).collect();
            shuffled.extend(interleaved(&backlog, until, sources.len(), numbers));
            from = until;
            if self == Self::Pauses {
                // Between two pauses everything comes when it is published.
                let until = from + numbers.below(PAUSE_MS);
                let waiting = rest.partition_point(|(at, _)| *at < until);
                shuffled.extend(rest.drain(..waiting));
                from = until;
            }
        }
        shuffled
    }
}

/// A backlog that is received at one time, in runs of one source after the other.
fn interleaved(
    backlog: &[(u64, usize)],
    at: u64,
    sources: usize,
    numbers: &mut Numbers,
) -> Vec<(u64, usize)> {
    let mut left: Vec<usize> =
        (0..sources).map(|ix| backlog.iter().filter(|(_, of)| *of == ix).count()).collect();
    let mut order = Vec::with_capacity(backlog.len());
    while order.len() < backlog.len() {
        let of = numbers.below(sources as u64) as usize;
        // From single messages to a whole source at once.
        let run = 1_usize << numbers.below(14);
        let run = run.min(left[of]);
        left[of] -= run;
        order.extend(std::iter::repeat_n((at, of), run));
    }
    order
}

/// All that is known of each decision, but for the order in which sources were received and what it was named here.
fn figures(cluster: &Cluster) -> Vec<String> {
    let decisions = cluster.decisions().newest_first();
    let mut all: Vec<String> = decisions.map(|of| figure(cluster, of)).collect();
    all.sort();
    all
}

fn figure(cluster: &Cluster, decided: &DecisionEntry) -> String {
    let name = |worker| cluster.worker(worker).map(|worker| (worker.id.id.0, worker.id.dp_rank));
    let d = &decided.decision;
    let sources: Vec<&str> = decided.sources().map(|source| source.as_str()).collect();
    let other = d.other_part.and_then(|id| cluster.decisions().get(id)).map(|of| name(of.decision.worker));
    let costs: BTreeMap<_, _> = d
        .candidates
        .iter()
        .map(|c| (name(c.worker), (c.overlap_blocks, c.host_blocks, format!("{:.3}", c.cost))))
        .collect();
    let costs = format!("{:?} {:?} {:?} {costs:?}", d.completeness, d.not_reconstructed, d.formula);
    format!(
        "{:?} {} {:?} {sources:?} isl {:?} {:?} {:?} overlap {:?}+{:?} logit {:?} cost {:?} dispatched {:?} other {other:?} \
         mode {:?} by {:?} session {:?} tied {} {} {:?}",
        d.decided_ms.map(|at| at.0),
        d.request_id.as_deref().unwrap_or("-"),
        name(d.worker),
        d.isl_tokens,
        d.isl_blocks,
        d.block_size_tokens,
        d.overlap_blocks,
        d.lower_tier_blocks,
        d.logit,
        d.chosen_cost,
        d.dispatched,
        d.mode,
        d.decided_by,
        d.session,
        d.tied,
        costs,
        decided.progress,
    )
}

/// In how many decisions two replays differ, and how.
fn differences(one: &Cluster, other: &Cluster) -> (usize, Vec<String>) {
    let mut of_one = figures(one);
    let mut of_other = figures(other);
    let common: Vec<String> =
        of_one.iter().filter(|of| of_other.binary_search(of).is_ok()).cloned().collect();
    of_one.retain(|of| common.binary_search(of).is_err());
    of_other.retain(|of| common.binary_search(of).is_err());
    let mut lines: Vec<String> = of_one.iter().map(|of| format!("- {of}")).collect();
    lines.extend(of_other.iter().map(|of| format!("+ {of}")));
    lines.sort_by(|a, b| a[1..].cmp(&b[1..]));
    let totals = |cluster: &Cluster| {
        let totals = cluster.decisions().totals();
        (totals.count, totals.with_blocks, totals.isl_blocks, totals.overlap_blocks)
    };
    if totals(one) != totals(other) {
        lines.push(format!("totals {:?} and {:?}", totals(one), totals(other)));
    }
    (of_one.len().max(of_other.len()), lines)
}

/// All recordings of the repository in which something reports decisions.
fn recordings() -> Vec<Recording> {
    let more = std::env::var_os("RADIXSCOPE_CAPTURES").map(PathBuf::from);
    let own = ["captures", "topologies", "routing", "bursts"].map(|name| fixtures().with_file_name(name));
    let folders = more.map_or_else(|| own.to_vec(), |folder| vec![folder]);
    let only = std::env::var("ONLY").unwrap_or_default();
    let all = folders.iter().flat_map(|folder| Recording::all_in(folder));
    all.filter(|recording| recording.name().contains(&only)).collect()
}

/// Replays that differ from the recorded pace, as a table's lines.
fn compare(recording: &Recording, orders: &[(Pace, u64)]) -> (usize, Vec<String>) {
    let tape = Tape::read(recording);
    let reference = tape.play(Pace::Recorded, 0);
    let decisions = reference.decisions().newest_first().len();
    let without_scrapes = orders.iter().any(|(pace, _)| *pace == Pace::AtOnce).then(|| {
        let tape = tape.without_scrapes();
        let reference = tape.play(Pace::Recorded, 0);
        (tape, reference)
    });
    let mut lines = Vec::new();
    for &(pace, seed) in orders {
        let (tape, reference) = match &without_scrapes {
            Some((tape, reference)) if pace == Pace::AtOnce => (tape, reference),
            _ => (&tape, &reference),
        };
        let (count, differences) = differences(reference, &tape.play(pace, seed));
        if !differences.is_empty() {
            lines.push(format!("{}: {pace:?}, {seed}: {count} of {decisions} decisions differ", tape.name));
            lines.extend(differences.into_iter().take(8).map(|line| format!("    {line}")));
        }
    }
    (decisions, lines)
}

/// Compares every recording whose messages have times, at each pace in several orders.
pub(crate) fn compare_all() {
    let orders: Vec<(Pace, u64)> =
        PACES.iter().flat_map(|&pace| (0..ORDERS).map(move |seed| (pace, seed))).collect();
    let recordings: Vec<Recording> =
        recordings().into_iter().filter(|recording| !recording.name().starts_with("0.8")).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let results: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let work = || {
            let mut results = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(recording) = recordings.get(at) else { return results };
                results.push(compare(recording, &orders));
            }
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let decisions: usize = results.iter().map(|(decisions, _)| decisions).sum();
    let differing: Vec<&str> = results.iter().flat_map(|(_, lines)| lines).map(String::as_str).collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    let is_all = std::env::var_os("ONLY").is_none() && std::env::var_os("RADIXSCOPE_CAPTURES").is_none();
    assert!(!is_all || decisions > 2_000, "{decisions} decisions");
}

/// A recording of each way in which decisions are reported, each at a pace of its own.
const SAMPLE: [(&str, &str, Pace); 6] = [
    ("captures", "0.9.1-healthy", Pace::Late),
    ("captures", "1.6.1-log-jsonl-debug", Pace::Pauses),
    ("captures", "1.7.0.dev20261026-replicas", Pace::AtOnce),
    ("topologies", "1.6.1-disagg", Pace::Bursts),
    ("routing", "1.6.1-replica-sync-trace", Pace::AtOnce),
    ("bursts", "1.6.1-policy-classes", Pace::Late),
];

#[test]
fn another_pace_and_interleaving_give_the_same_decisions() {
    let mut decisions = 0;
    for (seed, (folder, name, pace)) in (0..).zip(SAMPLE) {
        let recording = Recording::at(fixtures().with_file_name(folder).join(name));
        let (count, differing) = compare(&recording, &[(pace, seed)]);
        assert!(differing.is_empty(), "{}", differing.join("\n"));
        decisions += count;
    }
    assert!(decisions > 500, "{decisions} decisions");
}
