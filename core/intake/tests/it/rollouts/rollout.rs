//! Rollouts of workers, one after the other, and what they cost in memory: for the tests beside this and for the measurement
//! `cargo xtask bench rollouts`.

use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::frame::{BatchWriter, Frame};
use radixscope_model::id::{Millis, Seq, SourceIx, Worker};
use radixscope_model::record::{Entry, MissedCause, SourceKind};
use radixscope_state::cluster::{Cluster, Follow};
use radixscope_state::sink::RecordSink;
use serde_json::json;

/// A state, and a second one that hears of it over the wire.
pub(crate) struct Both {
    pub(crate) near: Cluster,
    far: Cluster,
    batch: BatchWriter,
}

impl RecordSink for Both {
    fn cluster(&self) -> &Cluster {
        &self.near
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.near.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        self.batch.push(entry).unwrap();
        self.near.append(entry);
    }
}

/// What is asked in one rollout.
pub(crate) struct Rollouts {
    intake: Intake,
    pub(crate) both: Both,
    source: SourceIx,
    pub(crate) at: u64,
    /// Chosen worker and candidates of each decision.
    pub(crate) decided: Vec<(Worker, [Worker; 3])>,
}

/// Midnight, 2027-01-15.
pub(crate) const MIDNIGHT_MS: u64 = 1_799_971_200_000;

impl Rollouts {
    pub(crate) fn new(slots: usize) -> Self {
        let both =
            Both { near: Cluster::default(), far: Cluster::default(), batch: BatchWriter::new(Seq(1)) };
        let (mut intake, mut both) = (Intake::with_slots(slots), both);
        let source = intake.source("nats", SourceKind::Nats, Millis(MIDNIGHT_MS), &mut both).unwrap();
        Self { intake, both, source, at: MIDNIGHT_MS, decided: Vec::new() }
    }

    pub(crate) fn handle(&mut self, payload: Payload) {
        let received = Received { source: self.source, at_ms: Millis(self.at), payload };
        self.intake.handle(&received, &mut self.both);
    }

    /// Two blocks: one that all hold, and one of its own.
    pub(crate) fn stores(&mut self, worker: Worker) {
        let own = worker.id.0 * 64 + u64::from(worker.dp_rank) + 1;
        let blocks = [(1, 1), (own, own)].map(
            |(block, tokens)| json!({"block_hash": block, "tokens_hash": tokens, "mm_extra_info": null}),
        );
        let data = json!({"stored": {"parent_hash": null, "blocks": blocks}});
        let event = json!({"event_id": 0, "data": data, "dp_rank": worker.dp_rank});
        let message = json!({"worker_id": worker.id.0, "event": event}).to_string();
        let subject = "namespace-dynamo-component-backend-kv-events.kv-events";
        let payload = NatsSubjects::default().publication(subject, None, message.into()).unwrap();
        self.handle(payload);
    }

    pub(crate) fn listed(&mut self, ids: impl Iterator<Item = u64>) {
        let instance = |id| json!({"component": "backend", "endpoint": "generate", "namespace": "dynamo", "instance_id": id});
        let list = json!({"status": "healthy", "instances": ids.map(instance).collect::<Vec<_>>()});
        self.handle(Payload::Health { frontend: "frontend".into(), response: list.to_string().into() });
    }

    pub(crate) fn flush(&mut self) {
        self.intake.flush(Millis(self.at), &mut self.both);
        let bytes = self.both.batch.finish(Millis(self.at), None).unwrap();
        let Frame::Batch(batch) = Frame::decode(&bytes).unwrap() else { panic!("not a batch") };
        for entry in batch.entries() {
            let (seq, entry) = entry.unwrap();
            self.both.far.fold(seq, &entry);
        }
        assert_eq!(self.both.near.digest(), self.both.far.digest());
    }

    pub(crate) fn too_many(&self) -> u64 {
        let missed = self.both.near.sources().iter().flat_map(|source| &source.missed);
        missed.filter(|missed| missed.cause == MissedCause::TooManyWorkers).map(|missed| missed.count).sum()
    }
}

/// Workers of a rollout.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) processes: u64,
    pub(crate) ranks: u32,
}

/// Workers that left and are retained.
pub(crate) const RETAINED: usize = 128;

/// So many workers at a time, of two rollouts while one follows the other, need no more than this.
pub(crate) fn is_bounded(rollouts: &Rollouts, live: usize) {
    let workers = rollouts.both.near.workers();
    assert_eq!((workers.len(), rollouts.too_many()), (live + RETAINED, 0));
    assert!(workers.slots() <= 2 * live + RETAINED, "{} slots", workers.slots());
}

/// Rolls out without decisions until so many workers were there; gives the bytes of heap of both states and the intake.
pub(crate) fn heap_bytes_after(workers: u64, Size { processes, ranks }: Size) -> i64 {
    let mut retained = None;
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
        retained = Some(rollouts);
    });
    is_bounded(&retained.unwrap(), processes as usize * ranks as usize);
    used.bytes_current
}
