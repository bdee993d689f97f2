//! The encoded snapshot for newcomers, made once for all who come within a short time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_model::id::Seq;
use radixscope_recording::{EncodeError, snapshot_frames};
use radixscope_state::cluster::Cluster;

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
    /// When it was begun.
    pub(super) made: Instant,
    /// How long making it took.
    pub(super) cost: Duration,
    life: Duration,
}

impl Snapshot {
    /// Encodes the state as it is now.
    pub(super) fn of(cluster: &Cluster) -> Result<Self, EncodeError> {
        let started = Instant::now();
        let seq = cluster.seq();
        // Without the room that they grew into, see `State::publish`.
        let exact = |frame: Vec<u8>| Bytes::from(frame.into_boxed_slice());
        let frames: Vec<_> = snapshot_frames(cluster)?.into_iter().map(exact).collect();
        let cost = started.elapsed();
        tracing::debug!(
            seq = seq.0,
            parts = frames.len(),
            cost_ms = cost.as_millis() as u64,
            "snapshot encoded"
        );
        Ok(Self { seq, frames, made: started, cost, life: MIN_LIFE.max(cost * LIFE_PER_COST) })
    }

    /// One that was read from a recording.
    pub(super) fn read(seq: Seq, frames: Vec<Bytes>) -> Self {
        Self { seq, frames, made: Instant::now(), cost: Duration::ZERO, life: MIN_LIFE }
    }

    /// Whether it is still young enough to be given out at `now`.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < self.life
    }
}
