//! A state from damaged bytes: an error, or a state that folds on; never a panic.

use std::borrow::Cow;

use proptest::prelude::*;
use radixscope_model::id::{BlockHash, Millis, Seq, SourceIx, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record, SourceKind};
use radixscope_state::cluster::{Cluster, SnapshotReader};

const AT: Millis = Millis(1_795_198_014_434);

fn state(runs: &[(u16, Option<u64>, u64)]) -> Cluster {
    let mut records =
        vec![Record::Source { source: SourceIx(0), name: "nats".into(), kind: SourceKind::Nats }];
    records.extend(
        (0..4).map(|w| {
            Record::new_worker(WorkerIx(w), Worker::new(u64::from(w) << 40, 0), "dynamo", "backend")
        }),
    );
    records.extend(runs.iter().map(|&(worker, parent, first)| {
        Record::Stored {
            worker: WorkerIx(worker.into()),
            parent: parent.map(BlockHash),
            blocks: Cow::Owned(
                (first..first + 5)
                    .map(|h| Block { block_hash: BlockHash(h), tokens_hash: TokensHash(h) })
                    .collect(),
            ),
        }
    }));
    let mut cluster = Cluster::new(1000);
    for (seq, record) in (1..).zip(records) {
        cluster.fold(Seq(seq), &Entry { at_ms: AT, record });
    }
    cluster
}

fn parts(cluster: &Cluster) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    cluster.snapshot(|part| parts.push(part)).unwrap();
    parts
}

fn read(parts: &[Vec<u8>]) -> Option<Cluster> {
    let mut reader = SnapshotReader::default();
    parts.iter().find_map(|part| reader.part(part).ok().flatten())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_gives_the_state_it_was_made_of_and_damage_gives_no_other(
        runs in proptest::collection::vec((0u16..4, proptest::option::of(0u64..40), 0u64..40), 0..20),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let cluster = state(&runs);
        let whole = parts(&cluster);
        prop_assert_eq!(read(&whole).map(|c| c.digest()), Some(cluster.digest()));
        let mut damaged = whole;
        for (part, at, byte) in damage {
            let part = part.index(damaged.len());
            let at = at.index(damaged[part].len());
            damaged[part][at] = byte;
        }
        if let Some(mut other) = read(&damaged) {
            let seq = Seq(other.seq().0.saturating_add(1));
            other.fold(seq, &Entry { at_ms: AT, record: Record::Cleared { worker: WorkerIx(0), all_ranks: true } });
        }
    }

    #[test]
    fn parts_out_of_order_are_an_error(swap in any::<(prop::sample::Index, prop::sample::Index)>()) {
        let cluster = state(&[(0, None, 1), (1, Some(90), 7)]);
        let mut parts = parts(&cluster);
        let (a, b) = (swap.0.index(parts.len()), swap.1.index(parts.len()));
        parts.swap(a, b);
        prop_assert_eq!(read(&parts).is_some(), a == b);
    }
}
