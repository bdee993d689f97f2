//! Workers that are rolled out anew, again and again: more of them than there are slots, all right while they are there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::frame::{BatchWriter, Frame};
use radixscope_model::id::{Millis, PoolIx, Seq, SourceIx, Worker};
use radixscope_model::record::{Entry, MissedCause, SourceKind};
use radixscope_state::cluster::{Cluster, SnapshotReader};
use radixscope_state::sink::RecordSink;
use serde_json::json;

/// A state, and a second one that hears of it over the wire.
struct Both {
    near: Cluster,
    far: Cluster,
    batch: BatchWriter,
}

impl RecordSink for Both {
    fn cluster(&self) -> &Cluster {
        &self.near
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.batch.push(entry).unwrap();
        self.near.append(entry);
    }
}

/// What is asked in one rollout.
struct Rollouts {
    intake: Intake,
    both: Both,
    source: SourceIx,
    at: u64,
    /// Chosen worker and candidates of each decision.
    decided: Vec<(Worker, [Worker; 3])>,
}

/// Midnight, 2027-01-15.
const MIDNIGHT_MS: u64 = 1_799_971_200_000;

impl Rollouts {
    fn new(slots: usize) -> Self {
        let both =
            Both { near: Cluster::default(), far: Cluster::default(), batch: BatchWriter::new(Seq(1)) };
        let (mut intake, mut both) = (Intake::with_slots(slots), both);
        let source = intake.source("nats", SourceKind::Nats, Millis(MIDNIGHT_MS), &mut both).unwrap();
        Self { intake, both, source, at: MIDNIGHT_MS, decided: Vec::new() }
    }

    fn take(&mut self, payload: Payload) {
        let received = Received { source: self.source, at_ms: Millis(self.at), payload };
        self.intake.take(&received, &mut self.both);
    }

    fn log(&mut self, line: String) {
        self.take(Payload::LogLine { log: "frontend".into(), line: line.into() });
    }

    /// Two blocks: one that all hold, and one of its own.
    fn stores(&mut self, worker: Worker) {
        let own = worker.id.0 * 64 + u64::from(worker.dp_rank) + 1;
        let blocks = [(1, 1), (own, own)].map(
            |(block, tokens)| json!({"block_hash": block, "tokens_hash": tokens, "mm_extra_info": null}),
        );
        let data = json!({"stored": {"parent_hash": null, "blocks": blocks}});
        let event = json!({"event_id": 0, "data": data, "dp_rank": worker.dp_rank});
        let message = json!({"worker_id": worker.id.0, "event": event}).to_string();
        let subject = "namespace-dynamo-component-backend-kv-events.kv-events";
        let payload = NatsSubjects::default().publication(subject, None, message.into()).unwrap();
        self.take(payload);
    }

    /// A frontend's log weighs three workers and chooses the last one.
    fn decides(&mut self, workers: [Worker; 3]) {
        let seconds = (self.at - MIDNIGHT_MS) / 1_000;
        let clock = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let head = format!("2027-01-15T{clock}.000000Z  INFO dynamo_llm::kv_router::scheduler");
        for Worker { id, dp_rank } in workers {
            let line = format!(
                "{head}: Formula for worker_id={} dp_rank={dp_rank} with 0 cached blocks: 5.000 = 1.0 * prefill_blocks + \
                 decode_blocks = 1.0 * 2.000 + 3.000",
                id.0
            );
            self.log(line);
        }
        let Worker { id, dp_rank } = workers[2];
        let line = format!(
            "{head}: Selected worker: worker_id={} dp_rank={dp_rank}, logit: 5.000, cached blocks: 0, tree size: 0, total \
             blocks: 64",
            id.0
        );
        self.log(line);
        self.decided.push((workers[2], workers));
    }

    fn listed(&mut self, ids: impl Iterator<Item = u64>) {
        let instance = |id| json!({"component": "backend", "endpoint": "generate", "namespace": "dynamo", "instance_id": id});
        let list = json!({"status": "healthy", "instances": ids.map(instance).collect::<Vec<_>>()});
        self.take(Payload::Health { frontend: "frontend".into(), answer: list.to_string().into() });
    }

    fn flush(&mut self) {
        self.intake.flush(Millis(self.at), &mut self.both);
        let bytes = self.both.batch.finish(Millis(self.at), None).unwrap();
        let Frame::Batch(batch) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
        for entry in batch.entries() {
            let (seq, entry) = entry.unwrap();
            self.both.far.fold(seq, &entry);
        }
        assert_eq!(self.both.near.digest(), self.both.far.digest());
    }

    fn too_many(&self) -> u64 {
        let missed = self.both.near.sources().iter().flat_map(|source| &source.missed);
        missed.filter(|missed| missed.cause == MissedCause::TooManyWorkers).map(|missed| missed.count).sum()
    }

    /// The worker is shown as it is: two blocks stored and held, and so many requests.
    fn is_shown(&self, worker: Worker, chosen: u64) {
        let cluster = &self.both.near;
        let ix = cluster.worker_ix(worker).unwrap_or_else(|| panic!("{worker:?} is not shown"));
        let state = cluster.worker(ix).unwrap();
        assert_eq!((state.gone, state.stored_total, cluster.blocks(ix)), (None, 2, Some(2)), "{worker:?}");
        assert_eq!(cluster.decisions().totals_of(ix).count, chosen, "{worker:?}");
    }

    /// No decision names another worker than it was about; gives how many of them, newest first, name all.
    fn named(&self) -> usize {
        let cluster = &self.both.near;
        let mut all_named = None;
        for (place, decided) in cluster.decisions().newest_first().enumerate() {
            let (chosen, candidates) = self.decided[decided.decision.id.0 as usize - 1];
            let name = |ix| cluster.worker(ix).map(|worker| worker.id);
            let mut names = vec![(name(decided.decision.worker), chosen)];
            assert_eq!(decided.decision.candidates.len(), 3);
            names.extend(decided.decision.candidates.iter().map(|c| name(c.worker)).zip(candidates));
            for (named, was) in names {
                assert!(named.is_none_or(|named| named == was), "{named:?} was {was:?}");
                if named.is_none() {
                    all_named.get_or_insert(place);
                }
            }
        }
        all_named.unwrap_or(cluster.decisions().newest_first().len())
    }

    /// Bytes of a snapshot, which restores to the same state.
    fn snapshot(&self) -> usize {
        let (mut reader, mut bytes, mut restored) = (SnapshotReader::default(), 0, None);
        self.both
            .near
            .snapshot(|part| {
                bytes += part.len();
                restored = reader.part(&part).unwrap();
            })
            .unwrap();
        assert_eq!(restored.map(|cluster: Cluster| cluster.digest()), Some(self.both.near.digest()));
        bytes
    }
}

/// Workers of a rollout.
#[derive(Clone, Copy)]
struct Size {
    processes: u64,
    ranks: u32,
}

/// Rolls out `count` times: the workers of the rollout before are listed no more. Gives the sizes of some snapshots.
fn rolled_out(rollouts: &mut Rollouts, count: u64, Size { processes, ranks }: Size) -> Vec<usize> {
    let mut snapshots = Vec::new();
    for rollout in 0..count {
        rollouts.at += 40_000;
        let ids = 1 + rollout * processes..1 + (rollout + 1) * processes;
        let workers: Vec<Worker> =
            ids.clone().flat_map(|id| (0..ranks).map(move |rank| Worker::new(id, rank))).collect();
        workers.iter().for_each(|&worker| rollouts.stores(worker));
        rollouts.listed(ids.clone());
        rollouts.at += 5_000;
        rollouts.listed(ids);
        let third = workers.len() / 3;
        for at in 0..8 {
            rollouts.decides([workers[at], workers[at + third], workers[at + 2 * third]]);
        }
        rollouts.flush();
        for (at, &worker) in workers.iter().enumerate() {
            rollouts.is_shown(worker, u64::from((2 * third..2 * third + 8).contains(&at)));
        }
        if rollout % 100 == 99 {
            assert!(rollouts.named() >= 1_000.min(rollouts.decided.len()), "{}", rollouts.named());
            snapshots.push(rollouts.snapshot());
        }
    }
    snapshots
}

#[test]
fn a_thousand_rollouts_show_every_worker_that_is_there() {
    let mut rollouts = Rollouts::new(64);
    let snapshots = rolled_out(&mut rollouts, 1_000, Size { processes: 8, ranks: 4 });
    let cluster = &rollouts.both.near;
    let sizes = (cluster.workers().len(), cluster.tree(PoolIx(0)).totals().resident, rollouts.too_many());
    assert_eq!(sizes, (64, 2 * 8 * 4, 0));
    assert!(snapshots[9] < 4 * snapshots[2], "decisions are kept, workers are not: {snapshots:?}");
}

#[test]
fn workers_that_left_unreported_give_their_slots_after_long_silence() {
    let mut rollouts = Rollouts::new(32);
    for rollout in 0..20 {
        rollouts.at += 20 * 60_000;
        for id in rollout * 32..(rollout + 1) * 32 {
            rollouts.stores(Worker::new(id + 1, 0));
        }
        rollouts.flush();
        for id in rollout * 32..(rollout + 1) * 32 {
            rollouts.is_shown(Worker::new(id + 1, 0), 0);
        }
    }
    assert_eq!((rollouts.both.near.workers().len(), rollouts.too_many()), (32, 0));
}

#[test]
fn no_worker_that_is_there_gives_its_slot_to_another() {
    let mut rollouts = Rollouts::new(8);
    for _ in 0..3 {
        rollouts.at += 60_000;
        (1..=10).for_each(|id| rollouts.stores(Worker::new(id, 0)));
        rollouts.flush();
    }
    assert_eq!((rollouts.both.near.workers().len(), rollouts.too_many()), (8, 6));
    assert!((1..=8).all(|id| rollouts.both.near.worker_ix(Worker::new(id, 0)).is_some()));
}

#[test]
fn workers_that_left_are_forgotten_but_for_their_names_in_decisions() {
    let mut rollouts = Rollouts::new(usize::MAX);
    rolled_out(&mut rollouts, 200, Size { processes: 8, ranks: 4 });
    let listed = rollouts.both.near.workers().len();
    assert_eq!(listed, 32 + RETAINED, "those that are there and those that left last");
    assert!(rollouts.named() >= 1_000, "decisions name those that left: {}", rollouts.named());
}

/// Workers that left and are retained.
const RETAINED: usize = 128;

/// So many workers at a time, of two rollouts while one follows the other, need no more than this.
fn is_bounded(rollouts: &Rollouts, live: usize) {
    let workers = rollouts.both.near.workers();
    assert_eq!((workers.len(), rollouts.too_many()), (live + RETAINED, 0));
    assert!(workers.slots() <= 2 * live + RETAINED, "{} slots", workers.slots());
}

#[test]
fn rollouts_of_more_workers_than_there_are_slots_keep_the_names_in_every_decision() {
    let mut rollouts = Rollouts::new(usize::MAX);
    rolled_out(&mut rollouts, 20, Size { processes: 32, ranks: 8 });
    const { assert!(20 * 256 > radixscope_state::cluster::MAX_WORKERS) };
    assert_eq!(rollouts.named(), 20 * 8, "every decision names all");
    is_bounded(&rollouts, 256);
}

/// Rolls out without decisions until so many workers were there; gives the bytes of heap of both states and the intake.
fn heap_bytes_after(workers: u64, Size { processes, ranks }: Size) -> i64 {
    let mut kept = None;
    let used = allocation_counter::measure(|| {
        let mut rollouts = Rollouts::new(usize::MAX);
        for rollout in 0..workers / (processes * u64::from(ranks)) {
            rollouts.at += 40_000;
            let ids = 1 + rollout * processes..1 + (rollout + 1) * processes;
            for id in ids.clone() {
                (0..ranks).for_each(|rank| rollouts.stores(Worker::new(id, rank)));
            }
            rollouts.listed(ids.clone());
            rollouts.at += 5_000;
            rollouts.listed(ids);
            rollouts.flush();
        }
        kept = Some(rollouts);
    });
    is_bounded(&kept.unwrap(), processes as usize * ranks as usize);
    used.bytes_current
}

#[test]
fn memory_is_bounded_by_the_workers_that_are_there_and_not_by_those_that_were() {
    let size = Size { processes: 8, ranks: 4 };
    let (few, many) = (heap_bytes_after(1_600, size), heap_bytes_after(16_000, size));
    // The ids of 65,536 departed workers are remembered, in a table that doubles; of their states nothing is.
    assert!(many < few + 14_400 * 96, "{few} and {many} bytes");
}

/// The same for a day: `cargo test --release --test rollouts -- --ignored --nocapture 100_000`.
#[test]
#[ignore = "a measurement: minutes without optimisation"]
fn memory_after_100_000_workers() {
    for workers in [1_024, 10_240, 100_096] {
        let bytes = heap_bytes_after(workers, Size { processes: 32, ranks: 8 });
        println!("{workers} workers, 256 at a time: {:.1} MiB", bytes as f64 / 1_048_576.0);
    }
}

#[test]
fn departed_workers_stay_visible_as_long_as_there_is_room() {
    let mut rollouts = Rollouts::new(64);
    for (at, ids) in [(0, 1..33), (1, 33..65)] {
        rollouts.at += at * 60_000;
        ids.clone().for_each(|id| rollouts.stores(Worker::new(id, 0)));
        rollouts.listed(ids.clone());
        rollouts.at += 5_000;
        rollouts.listed(ids);
        rollouts.flush();
    }
    let shown = rollouts.both.near.workers();
    assert_eq!(shown.iter().filter(|worker| worker.gone.is_some()).count(), 32);
}
