//! Boxes of the tree by the session whose requests found them cached: by the retained decisions that name a session and where the
//! cached part of their prompt ended.

use std::collections::HashMap;

use radixscope_model::id::{PoolIx, Slot};
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::forest::{Chain, Forest};
use radixscope_state::tree::{NodeId, Tree};

use crate::panel::session;

/// Which session a box is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoxSession {
    /// This one alone, by its colour.
    One(Slot),
    /// One without a colour of its own.
    Other,
    /// Two or more.
    Several,
}

/// The sessions of a tree's boxes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionBoxes {
    /// By the first block of a box.
    boxes: HashMap<NodeId, BoxSession>,
    coloured: Vec<(Box<str>, Slot)>,
}

impl SessionBoxes {
    /// Looks at every retained decision of a pool. `forest` is that of `tree`, the pool's tree of devices.
    pub fn of(cluster: &Cluster, pool: PoolIx, tree: &Tree, forest: &Forest) -> Self {
        let coloured: Vec<(Box<str>, Slot)> =
            session::coloured(cluster).into_iter().map(|(name, slot)| (name.into(), slot)).collect();
        // Sessions are told apart before they are coloured: two without colours are several.
        let mut known: HashMap<&str, usize> = HashMap::new();
        let mut found: HashMap<NodeId, Option<usize>> = HashMap::new();
        for decided in cluster.decisions().newest_first() {
            let decision = &decided.decision;
            let (Some(name), Some(end)) = (decision.session.as_deref(), decision.path) else { continue };
            if cluster.pool_of(end.worker) != Some(pool) {
                continue;
            }
            let node = cluster.slot(end.worker).and_then(|slot| tree.find(slot, end.block_hash));
            let Some(last) = node.and_then(|node| forest.chain_of(node)) else { continue };
            let next = known.len();
            let session = *known.entry(name).or_insert(next);
            for chain in forest.up(last).map(|id| forest.chain(id)) {
                let known = found.insert(chain.first, Some(session));
                match known {
                    None => {}
                    // Whoever reached a box reached all above it, so that these are as they have to be.
                    Some(Some(before)) if before == session => break,
                    Some(None) => {
                        found.insert(chain.first, None);
                        break;
                    }
                    Some(Some(_)) => {
                        found.insert(chain.first, None);
                    }
                }
            }
        }
        let slots: HashMap<usize, Slot> =
            coloured.iter().filter_map(|(name, slot)| Some((*known.get(&**name)?, *slot))).collect();
        let shown = |session: Option<usize>| match session {
            Some(session) => slots.get(&session).map_or(BoxSession::Other, |slot| BoxSession::One(*slot)),
            None => BoxSession::Several,
        };
        let boxes = found.into_iter().map(|(first, session)| (first, shown(session))).collect();
        Self { boxes, coloured }
    }

    /// Whose a box is; `None`: of no retained decision with a session.
    pub fn of_box(&self, chain: &Chain) -> Option<BoxSession> {
        self.boxes.get(&chain.first).copied()
    }

    /// Sessions with a colour, by name.
    pub fn coloured(&self) -> &[(Box<str>, Slot)] {
        &self.coloured
    }

    /// Name of the session with a colour.
    pub fn name(&self, slot: Slot) -> Option<&str> {
        self.coloured.iter().find(|(_, of)| *of == slot).map(|(name, _)| &**name)
    }
}
