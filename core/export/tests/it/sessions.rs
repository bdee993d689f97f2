//! The tree by sessions: each box is of the sessions whose requests found it cached, counted block by block without the tree's boxes.

use std::collections::{BTreeMap, BTreeSet};

use radixscope_captures::{Played, play};
use radixscope_export::panel::session::{COLOURED, coloured};
use radixscope_export::tree::sessions::{BoxSession, SessionBoxes};
use radixscope_model::id::{PoolIx, Slot};
use radixscope_sim::{Config, Topology};
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::NodeId;
use radixscope_state::tree::forest::{Arrangement, Forest, VisibleBox, Window};

use crate::START;

fn simulated(live_s: u64) -> Cluster {
    let config =
        Config { topology: Topology::Tiers, session_affinity: true, traces: true, ..Config::default() };
    let mut cluster = Cluster::default();
    let played = Played { start: START, warm_up_s: 0, live_s };
    play(config, played, &mut cluster, |_, _: &mut Cluster| true).expect("a topology that plays");
    cluster
}

/// Sessions whose requests found each block cached.
fn by_block(cluster: &Cluster, pool: PoolIx) -> BTreeMap<NodeId, BTreeSet<&str>> {
    let tree = cluster.tree(pool);
    let mut sessions: BTreeMap<NodeId, BTreeSet<&str>> = BTreeMap::new();
    for decided in cluster.decisions().newest_first() {
        let (Some(session), Some(end)) = (decided.decision.session.as_deref(), decided.decision.path) else {
            continue;
        };
        let is_here = cluster.pool_of(end.worker) == Some(pool);
        let slot = cluster.slot(end.worker).filter(|_| is_here);
        let mut node = slot.and_then(|slot| tree.find(slot, end.block_hash));
        while let Some(at) = node {
            sessions.entry(at).or_default().insert(session);
            node = tree.parent(at);
        }
    }
    sessions
}

#[test]
fn every_box_is_of_the_sessions_that_found_one_of_its_blocks() {
    let cluster = simulated(240);
    let (mut boxes, mut kinds) = (0, BTreeMap::<&str, usize>::new());
    for pool in cluster.pools_in_use() {
        let tree = cluster.tree(pool);
        let forest = Forest::of(tree, Arrangement::default());
        let all = SessionBoxes::of(&cluster, pool, tree, &forest);
        let expected = by_block(&cluster, pool);
        let colours: BTreeMap<&str, Slot> =
            all.coloured().iter().map(|(name, slot)| (&**name, *slot)).collect();
        let (x1, bottom) = (f64::from(forest.width()), f64::from(u32::MAX));
        let everything = Window { x0: 0.0, x1, top: 0.0, bottom, columns: u32::MAX };
        forest.visit(&everything, |seen| {
            let VisibleBox::Chain { id, .. } = seen else { return };
            let chain = forest.chain(id);
            // The first block of a box is above all others of it.
            let sessions = expected.get(&chain.first);
            let shown = all.of_box(chain);
            let right = match sessions.map(|of| of.iter().collect::<Vec<_>>()).as_deref() {
                None => None,
                Some([one]) => {
                    Some(colours.get(**one).map_or(BoxSession::Other, |slot| BoxSession::One(*slot)))
                }
                Some(_) => Some(BoxSession::Several),
            };
            assert_eq!(shown, right, "box at {} of {sessions:?}", chain.position);
            boxes += 1;
            let kind = match shown {
                None => "none",
                Some(BoxSession::One(_)) => "one",
                Some(BoxSession::Other) => "other",
                Some(BoxSession::Several) => "several",
            };
            *kinds.entry(kind).or_default() += 1;
        });
    }
    assert!(boxes > 50 && kinds.len() == 4, "{boxes} boxes: {kinds:?}");
}

#[test]
fn the_sessions_with_most_requests_have_colours_of_their_own_that_stay() {
    let cluster = simulated(120);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for session in
        cluster.decisions().newest_first().filter_map(|decided| decided.decision.session.as_deref())
    {
        *counts.entry(session).or_default() += 1;
    }
    let all = coloured(&cluster);
    let names: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    let slots: BTreeSet<Slot> = all.iter().map(|(_, slot)| *slot).collect();
    assert_eq!((names.len(), slots.len()), (COLOURED, COLOURED), "each has its own");
    let least = names.iter().filter_map(|name| counts.get(name)).min().expect("some");
    let better = counts.iter().filter(|(name, count)| *count > least && !names.contains(**name));
    assert_eq!(better.count(), 0, "none without a colour has more");
    assert_eq!(all, coloured(&cluster));
}
