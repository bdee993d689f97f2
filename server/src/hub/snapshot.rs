//! The encoded snapshot for new viewers, shared by all that connect within a short time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use radixscope_model::id::Seq;
use radixscope_recording::{EncodeError, snapshot_frames};
use radixscope_state::cluster::Cluster;

/// How long a snapshot is reused; viewers replay the log after it.
const MIN_LIFE: Duration = Duration::from_secs(2);
/// A snapshot is reused for at least this many times its cost, so that encoding takes less than a tenth of a core.
const LIFE_PER_COST: u32 = 10;

/// A whole state as frames.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The state is the one after this record.
    pub(super) seq: Seq,
    /// Its frames in order.
    pub(super) frames: Vec<Bytes>,
    /// When encoding began.
    pub(super) made: Instant,
    /// How long encoding took.
    pub(super) cost: Duration,
    life: Duration,
}

impl Snapshot {
    /// Encodes the state as it is now.
    pub(super) fn of(cluster: &Cluster) -> Result<Self, EncodeError> {
        let started = Instant::now();
        let seq = cluster.seq();
        // Without spare capacity, see `HubState::publish`.
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

    /// Whether it can still be used at `now`.
    pub(super) fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.made) < self.life
    }
}
