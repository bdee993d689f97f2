//! The state as bytes for a newcomer: the head, then the tree in parts; and back.

use serde::{Deserialize, Serialize};

use super::{Cluster, Head, ProcessState};
use crate::tree::{RestoreError, TreePart, TreeReader};
use radixscope_model::id::{PoolIx, WorkerIx};

/// One message of a snapshot, in order: one head, any number of tree parts, one end.
#[derive(Serialize, Deserialize)]
pub enum SnapshotPart {
    /// Everything but the tree.
    Head(Vec<u8>),
    /// A run of the tree of a pool.
    Tree(PoolIx, Box<TreePart>),
    /// That was all. Blocks per worker outside the picture, and the digest that the restored state must have.
    End {
        /// Blocks per worker that the limit keeps out of the picture.
        hidden: Vec<(WorkerIx, u64)>,
        /// [`Cluster::digest`] of the state that was written.
        #[serde(with = "postcard::fixint::le")]
        digest: u64,
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
        for (pool, tree) in self.trees() {
            tree.snapshot(|tree| -> Result<(), postcard::Error> {
                #[derive(Serialize)]
                enum Borrowed<'a> {
                    #[expect(dead_code, reason = "keeps the variant's number equal to SnapshotPart's")]
                    Head,
                    Tree(PoolIx, &'a TreePart),
                }
                part(postcard::to_allocvec(&Borrowed::Tree(pool, tree))?);
                Ok(())
            })?;
        }
        let hidden = (0..self.head.workers.len() as u16)
            .map(|w| (WorkerIx(w), self.tree_of(WorkerIx(w)).holdings(WorkerIx(w)).hidden))
            .filter(|&(_, hidden)| hidden > 0)
            .collect();
        part(postcard::to_allocvec(&SnapshotPart::End { hidden, digest: self.digest() })?);
        Ok(())
    }
}

/// Restores a state from its parts.
#[derive(Default)]
pub struct SnapshotReader {
    /// The head, and a reader for the tree of each pool.
    state: Option<(Head, Vec<TreeReader>)>,
}

impl SnapshotReader {
    /// Takes the next part; gives the state with the last one.
    pub fn part(&mut self, bytes: &[u8]) -> Result<Option<Cluster>, SnapshotError> {
        match postcard::from_bytes(bytes)? {
            SnapshotPart::Head(head) => {
                let mut head: Head = postcard::from_bytes(&head)?;
                head.processes.iter_mut().for_each(ProcessState::restored);
                head.decisions.restored();
                head.requests.restored();
                head.departed.restored();
                if head.workers.iter().any(|worker| worker.pool.at() >= head.pools.len()) {
                    return Err(SnapshotError::Order);
                }
                let trees = head.pools.iter().map(|_| TreeReader::new(head.limit_nodes)).collect();
                self.state = Some((head, trees));
                Ok(None)
            }
            SnapshotPart::Tree(pool, part) => {
                let (_, trees) = self.state.as_mut().ok_or(SnapshotError::Order)?;
                trees.get_mut(pool.at()).ok_or(SnapshotError::Order)?.part(&part)?;
                Ok(None)
            }
            SnapshotPart::End { hidden, digest } => {
                let (head, readers) = self.state.take().ok_or(SnapshotError::Order)?;
                let mut hidden_in: Vec<Vec<(WorkerIx, u64)>> = vec![Vec::new(); readers.len()];
                for (worker, count) in hidden {
                    let pool = head.workers.get(worker.at()).ok_or(SnapshotError::Order)?.pool;
                    hidden_in[pool.at()].push((worker, count));
                }
                let trees = readers.into_iter().zip(hidden_in).map(|(reader, hidden)| reader.finish(hidden));
                let cluster = Cluster { head, trees: trees.collect::<Result<_, _>>()? };
                match cluster.digest() {
                    got if got == digest => Ok(Some(cluster)),
                    got => Err(SnapshotError::Digest { got, wanted: digest }),
                }
            }
        }
    }
}
