//! The state as bytes for a newcomer: the head, then the tree in parts; and back.

use std::cell::Cell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Cluster, Follow, Head, ProcessState};
use crate::tree::{RestoreError, TreePart, TreeReader};
use radixscope_model::frame::Digest;
use radixscope_model::id::{PoolIx, Slot};
use radixscope_model::record::Tier;

/// One message of a snapshot, in order: one head, any number of tree parts, one end.
#[derive(Serialize, Deserialize)]
pub enum SnapshotPart {
    /// Everything but the tree.
    Head(Vec<u8>),
    /// A run of the tree of a pool, on the device or in a lower tier.
    Tree(PoolIx, Option<Tier>, Box<TreePart>),
    /// That was all. Blocks per worker outside the picture, and the digest that the restored state must have.
    End {
        /// Blocks per worker, by its slot, and tier that the limit keeps out of the picture.
        hidden: Vec<(Slot, Option<Tier>, u64)>,
        /// [`Cluster::digest`] of the state that was written; `None`: it was written by an older version, as another state.
        digest: Option<Digest>,
    },
}

/// Why a snapshot cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are not what this version writes.
    #[error("the snapshot cannot be read: {0}")]
    Codec(#[from] postcard::Error),
    /// The tree's parts do not fit together.
    #[error(transparent)]
    Tree(#[from] RestoreError),
    /// Parts came in another order than written.
    #[error("the snapshot's parts came out of order")]
    Order,
    /// The restored state is not the one that was written.
    #[error("the restored state has digest {got}, the written one {wanted}")]
    Digest {
        /// Digest of the restored state.
        got: u64,
        /// Digest of the written state.
        wanted: u64,
    },
}

impl Cluster {
    /// Calls `part` with the state in messages of bounded size (but for the head, which grows with workers and
    /// decisions, both bounded).
    pub fn snapshot(&self, mut part: impl FnMut(Vec<u8>)) -> Result<(), SnapshotError> {
        let head = postcard::to_allocvec(&self.head)?;
        part(postcard::to_allocvec(&SnapshotPart::Head(head))?);
        for ((pool, tier), tree) in self.all_trees() {
            let is_written = Cell::new(false);
            let mut write = |tree: &TreePart| -> Result<(), postcard::Error> {
                #[derive(Serialize)]
                enum Borrowed<'a> {
                    #[expect(dead_code, reason = "keeps the variant's number equal to SnapshotPart's")]
                    Head,
                    Tree(PoolIx, Option<Tier>, &'a TreePart),
                }
                is_written.set(true);
                part(postcard::to_allocvec(&Borrowed::Tree(pool, tier, tree))?);
                Ok(())
            };
            tree.snapshot(&mut write)?;
            // Each pool has a tree; that a tier has one, from its first event on, only its part tells, whatever it holds.
            if tier.is_some() && !is_written.get() {
                write(&TreePart::default())?;
            }
        }
        let workers = self.head.workers.indexed();
        let hidden = workers
            .flat_map(|(worker, state)| {
                let (pool, slot) = (state.pool, worker.slot());
                let own = self.all_trees().filter(move |((of, _), _)| *of == pool);
                own.map(move |((_, tier), tree)| (slot, tier, tree.holdings(slot).hidden))
            })
            .filter(|&(.., hidden)| hidden > 0)
            .collect();
        part(postcard::to_allocvec(&SnapshotPart::End { hidden, digest: Some(Digest(self.digest())) })?);
        Ok(())
    }
}

/// A reader for each tree, of a pool's devices or of a lower tier.
type Readers = BTreeMap<(PoolIx, Option<Tier>), TreeReader>;

/// Restores a state from its parts.
#[derive(Default)]
pub struct SnapshotReader {
    /// The head, and a reader for each tree.
    state: Option<(Head, Readers)>,
    /// Bytes that are known to follow; 0: it is not known.
    left_bytes: usize,
}

impl SnapshotReader {
    /// One for parts that are all at hand, so many bytes of them: room for what they hold is made once.
    pub fn of_bytes(bytes: usize) -> Self {
        Self { state: None, left_bytes: bytes }
    }

    /// Takes the next part; gives the state with the last one.
    pub fn part(&mut self, bytes: &[u8]) -> Result<Option<Cluster>, SnapshotError> {
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len());
        match postcard::from_bytes(bytes)? {
            SnapshotPart::Head(head) => {
                let mut head: Head = postcard::from_bytes(&head)?;
                head.processes.iter_mut().for_each(ProcessState::restored);
                head.decisions.restored();
                head.requests.restored();
                head.clients.restored();
                head.departed.restored();
                let is_whole = head.workers.restored();
                if !is_whole || head.workers.iter().any(|worker| worker.pool.at() >= head.pools.len()) {
                    return Err(SnapshotError::Order);
                }
                // One after the other: collecting them would sort what is in order.
                let mut trees = Readers::new();
                for pool in 0..head.pools.len() as u16 {
                    trees.insert((PoolIx(pool), None), TreeReader::new(head.limit_nodes));
                }
                self.state = Some((head, trees));
                Ok(None)
            }
            SnapshotPart::Tree(pool, tier, part) => {
                let (head, trees) = self.state.as_mut().ok_or(SnapshotError::Order)?;
                if pool.at() >= head.pools.len() {
                    return Err(SnapshotError::Order);
                }
                let limit = head.limit_nodes;
                let reader = trees.entry((pool, tier)).or_insert_with(|| TreeReader::new(limit));
                reader.part(&part, self.left_bytes)?;
                Ok(None)
            }
            SnapshotPart::End { hidden, digest } => {
                let (head, readers) = self.state.take().ok_or(SnapshotError::Order)?;
                let mut cluster = Cluster {
                    head,
                    trees: Vec::new(),
                    tiers: BTreeMap::new(),
                    follow: Follow::Nothing,
                    changed: None,
                };
                for ((pool, tier), reader) in readers {
                    let pool_in = |slot| cluster.pool_of(cluster.workers().in_slot(slot)?);
                    let is_its = |(slot, of, _): &&(Slot, Option<Tier>, u64)| {
                        *of == tier && pool_in(*slot) == Some(pool)
                    };
                    let hidden = hidden.iter().filter(is_its).map(|&(slot, _, count)| (slot, count));
                    let hidden: Vec<(Slot, u64)> = hidden.collect();
                    let tree = reader.finish(hidden)?;
                    match tier {
                        None => cluster.trees.push(tree),
                        Some(tier) => {
                            cluster.tiers.insert((pool, tier), tree);
                        }
                    }
                }
                match (cluster.digest(), digest) {
                    (got, Some(Digest(wanted))) if got != wanted => {
                        Err(SnapshotError::Digest { got, wanted })
                    }
                    _ => Ok(Some(cluster)),
                }
            }
        }
    }
}
