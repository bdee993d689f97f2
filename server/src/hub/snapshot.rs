//! The encoded snapshot for newcomers, made once for all who come within a short time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_model::frame::{self, Frame, FrameError};
use radixscope_model::id::Seq;
use radixscope_state::cluster::{Cluster, SnapshotError};

/// How long a snapshot serves newcomers; they replay the log after it.
const MIN_LIFE: Duration = Duration::from_secs(2);
/// A snapshot serves at least this many times as long as it took to make, so that making them stays below a tenth of
/// a core however large the tree is.
const LIFE_PER_COST: u32 = 10;

/// A whole state as frames.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The state is the one after this record.
    pub(super) seq: Seq,
    /// Its frames in order.
    pub(super) frames: Vec<Bytes>,
    made: Instant,
    life: Duration,
}

/// Why a state could not be encoded. Neither happens with a sound state; both end the viewer's connection.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The state.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl Snapshot {
    /// Encodes the state as it is now.
    pub(super) fn of(cluster: &Cluster) -> Result<Self, EncodeError> {
        let started = Instant::now();
        let seq = cluster.seq();
        let mut bodies = Vec::new();
        cluster.snapshot(|part| bodies.push(part))?;
        let parts = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
        let mut frames = Vec::with_capacity(bodies.len());
        for (part, body) in (0..).zip(bodies) {
            let frame = Frame::Snapshot { seq, part, parts, bytes: frame::Bytes(&body) };
            frames.push(Bytes::from(frame.encode()?));
        }
        let cost = started.elapsed();
        tracing::debug!(seq = seq.0, parts, cost_ms = cost.as_millis() as u64, "snapshot encoded");
        Ok(Self { seq, frames, made: started, life: MIN_LIFE.max(cost * LIFE_PER_COST) })
    }

    /// Whether it is still young enough to be given out at `now`.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < self.life
    }
}
