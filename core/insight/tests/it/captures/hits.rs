//! Hits of recorded requests against the overlap that the router itself reported.

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Entry, Record, SourceKind};
use radixscope_state::cluster::{Cluster, Follow, touch};
use radixscope_state::sink::RecordSink;
use radixscope_state::tree::{HIT_WINDOW, NodeId};

use crate::captures::replay::{millis, publications};

/// A state, and what became a hit in it.
#[derive(Default)]
struct Watched {
    cluster: Cluster,
    /// Per request: blocks that the chosen worker held by the router's word, and where the hit was noted, in blocks.
    judged: Vec<(u64, u32)>,
}

impl RecordSink for Watched {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn follow_blocks(&mut self, follow: Follow) {
        self.cluster.follow_blocks(follow);
    }

    fn append(&mut self, entry: &Entry<'_>) {
        let before = self.cluster.tree(self.cluster.default_pool()).requests(0);
        self.cluster.append(entry);
        let tree = self.cluster.tree(self.cluster.default_pool());
        let Record::Decision(decision) = &entry.record else { return };
        if tree.requests(0) == before {
            return;
        }
        let (node, at) = tree.hits().next_back().unwrap();
        assert_eq!(at, touch(entry.at_ms));
        let depth = if node == NodeId::ROOT { 0 } else { tree.position(node) + 1 };
        assert!(depth == 0 || tree.owners(node).contains(decision.worker.slot()), "{decision:?}");
        self.judged.push((decision.overlap_blocks.unwrap(), depth));
    }
}

fn play(name: &str) -> Watched {
    let (mut intake, mut watched) = (Intake::default(), Watched::default());
    let source = intake.source("capture", SourceKind::Nats, Millis(1), &mut watched).unwrap();
    for (at, payload) in publications(&Recording::fixture(name)) {
        let at_ms = millis(at);
        intake.handle(&Received { source, at_ms, payload }, &mut watched);
    }
    watched
}

/// Requests, those that were hits by the router's word, and those whose hit is as deep as the router says.
fn figures(name: &str) -> (usize, usize, usize) {
    let Watched { cluster, judged } = play(name);
    let newest = cluster.tree(cluster.default_pool()).hits().next_back().map(|(_, at)| at).unwrap();
    assert_eq!(
        cluster.tree(cluster.default_pool()).requests(newest.saturating_sub(HIT_WINDOW)),
        cluster.tree(cluster.default_pool()).requests(0)
    );
    assert_eq!(
        cluster.tree(cluster.default_pool()).requests(0) as usize,
        judged.len(),
        "the recording is shorter than the window"
    );
    let hits = judged.iter().filter(|(summary, _)| *summary > 0).count();
    let same = judged.iter().filter(|(summary, depth)| *summary == u64::from(*depth)).count();
    (judged.len(), hits, same)
}

#[test]
fn with_1_6_every_hit_is_as_deep_as_the_router_says_that_its_worker_held_the_prompt() {
    assert_eq!(figures("../routing/1.6.1-replica-sync-trace"), (153, 127, 153));
}

#[test]
fn with_0_9_every_hit_is_as_deep_as_the_router_says_though_events_came_in_between() {
    assert_eq!(figures("../routing/0.9.1-replica-sync"), (131, 105, 131));
}
