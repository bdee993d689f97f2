//! Workers that are rolled out anew, again and again: more of them than there are slots, all right while they are there.

mod rollout;

use radixscope_intake::Payload;
use radixscope_model::id::{PoolIx, Worker};
use radixscope_state::cluster::{Cluster, SnapshotReader};

use rollout::{MIDNIGHT_MS, RETAINED, Rollouts, Size, heap_bytes_after, is_bounded};

impl Rollouts {
    fn log(&mut self, line: String) {
        self.handle(Payload::LogLine { log: "frontend".into(), line: line.into() });
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

    /// The worker is shown as it is: two blocks stored and held, and so many requests.
    fn is_shown(&self, worker: Worker, chosen: u64) {
        let cluster = &self.both.near;
        let ix = cluster.worker_ix(worker).unwrap_or_else(|| panic!("{worker:?} is not shown"));
        let state = cluster.worker(ix).unwrap();
        assert_eq!(
            (state.departure, state.stored_total, cluster.blocks(ix)),
            (None, 2, Some(2)),
            "{worker:?}"
        );
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

#[test]
fn rollouts_of_more_workers_than_there_are_slots_keep_the_names_in_every_decision() {
    let mut rollouts = Rollouts::new(usize::MAX);
    rolled_out(&mut rollouts, 20, Size { processes: 32, ranks: 8 });
    const { assert!(20 * 256 > radixscope_state::cluster::MAX_WORKERS) };
    assert_eq!(rollouts.named(), 20 * 8, "every decision names all");
    is_bounded(&rollouts, 256);
}

#[test]
fn memory_is_bounded_by_the_workers_that_are_there_and_not_by_those_that_were() {
    let size = Size { processes: 8, ranks: 4 };
    let (few, many) = (heap_bytes_after(1_600, size), heap_bytes_after(16_000, size));
    // The ids of 65,536 departed workers are remembered, in a table that doubles; of their states nothing is.
    assert!(many < few + 14_400 * 96, "{few} and {many} bytes");
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
    assert_eq!(shown.iter().filter(|worker| worker.departure.is_some()).count(), 32);
}
