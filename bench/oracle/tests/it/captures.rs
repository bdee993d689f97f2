//! Recorded traffic of real Dynamo into both trees: the overlap of every path there is.

use std::collections::{BTreeMap, HashSet};

use dynamo_kv_router::RadixTree;
use dynamo_kv_router::protocols::{KvCacheEventData, RouterEvent};
use radixscope_model::id::Worker;
use radixscope_oracle::theirs::{self, Wire};
use radixscope_oracle::{capture, ours};
use radixscope_state::tree::Tree;

/// Paths are compared so many times on the way through a capture, and at its end.
const LOOKS: usize = 8;

struct Replay {
    ours: Tree,
    theirs: RadixTree,
    /// By index.
    workers: Vec<Worker>,
    /// Per worker the hashes it removed at some time.
    removed: Vec<HashSet<u64>>,
    compared: usize,
}

impl Replay {
    fn apply(&mut self, event: RouterEvent) {
        let id = Worker::new(event.worker_id, event.event.dp_rank);
        let worker = self.workers.iter().position(|w| *w == id).unwrap_or_else(|| {
            self.workers.push(id);
            self.removed.push(HashSet::new());
            self.workers.len() - 1
        });
        if let KvCacheEventData::Removed(removed) = &event.event.data {
            self.removed[worker].extend(removed.block_hashes.iter().map(|h| h.0));
        }
        let mut same = event.clone();
        same.worker_id = worker as u64;
        ours::apply(&mut self.ours, &theirs::event(&same));
        // Refusals are expected: see `compare`.
        let _ = self.theirs.apply_event(event);
    }

    /// The mocker evicts prefixes before what continues them, so chains get holes, and Dynamo's tree forgets what
    /// follows a hole until it is stored again (reference §6.3). It therefore never knows more than ours, and the
    /// same where the worker never removed a block of the path.
    fn compare(&mut self, name: &str) {
        let by_path = |path: &[u64]| -> Vec<u64> {
            let own: Vec<_> = path.iter().map(|&t| radixscope_model::id::TokensHash(t)).collect();
            radixscope_router::hash::chain(&own).iter().map(|h| h.0).collect()
        };
        for path in ours::paths(&self.ours) {
            let ours = ours::overlap(&self.ours, &path, self.workers.len());
            let theirs = theirs::overlap(&self.theirs, &path, &self.workers);
            let hashes = by_path(&path);
            for (worker, id) in self.workers.iter().enumerate() {
                assert!(theirs[worker] <= ours[worker], "{name}: {id} on a path of {}", path.len());
                let unbroken = hashes.iter().take_while(|h| !self.removed[worker].contains(h)).count() as u32;
                let (ours, theirs) = (ours[worker].min(unbroken), theirs[worker].min(unbroken));
                assert_eq!(ours, theirs, "{name}: {id} on a path of {}", path.len());
                self.compared += 1;
            }
        }
    }
}

fn replay(name: &str) -> Option<(Wire, Replay)> {
    let messages = capture::kv_events(name);
    let wire = theirs::wire_of(&messages)?;
    let mut replay = Replay {
        ours: Tree::default(),
        theirs: RadixTree::new(),
        workers: Vec::new(),
        removed: Vec::new(),
        compared: 0,
    };
    for (i, message) in messages.iter().enumerate() {
        theirs::decode(wire, &message.payload, |event| replay.apply(event)).unwrap();
        if (i + 1) % (messages.len() / LOOKS).max(1) == 0 {
            replay.compare(name);
        }
    }
    replay.compare(name);
    Some((wire, replay))
}

#[test]
fn overlap_of_every_path_of_every_capture() {
    let mut wires: BTreeMap<String, usize> = BTreeMap::new();
    for name in capture::names() {
        let Some((wire, replay)) = replay(&name) else { continue };
        if !name.contains("mismatch") {
            assert!(replay.compared > 1000, "{name}: {} compared", replay.compared);
        }
        assert_eq!(replay.ours.totals().unattached, 0, "{name}: every parent was known");
        *wires.entry(format!("{wire:?}")).or_default() += 1;
    }
    assert_eq!(wires.len(), 3, "one capture at least of each way to write events: {wires:?}");
}
