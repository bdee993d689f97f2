//! The view of a reader: the state, the hub's counts, and cached figures that need a tree walk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use radixscope_export::tree::TreeSnapshot;
use radixscope_insight::timeline::SecondRow;
use radixscope_intake::routing::Routing;
use radixscope_model::id::{Millis, PoolIx, Seq, SourceIx};
use radixscope_replay::{Retention, SegmentRow};
use radixscope_state::cluster::Cluster;

use super::history::History;
use super::{QueueLimits, SegmentFrames, SegmentId, StoredSegment};
use crate::recording::{Recorder, RecordingStatus};

/// Trees of up to this many nodes are walked for every reader, which takes about a millisecond.
const WALKED_ALWAYS_NODES: u32 = 65_536;
/// How long the depth of a larger tree is cached.
const DEPTH_LIFE: Duration = Duration::from_secs(1);

/// The state as a reader sees it.
pub struct View<'a> {
    /// The cluster state.
    pub cluster: &'a Cluster,
    /// Routing data beyond the state.
    pub routing: &'a Routing,
    /// Counts of the hub.
    pub stats: &'a Stats,
    /// Now.
    pub at_ms: Millis,
    /// The run of the server that sequence numbers belong to.
    pub epoch: u64,
    /// Whether it is a replay, whose clock stands still.
    pub is_replay: bool,
    pub(super) history: Option<&'a History>,
    pub(super) recorder: Option<&'a Recorder>,
    pub(super) depth: &'a mut DepthCache,
    pub(super) pictures: &'a mut PictureCache,
}

impl View<'_> {
    /// Extent of the history; `None`: disabled.
    pub(crate) fn history(&self) -> Option<Retention> {
        self.history.map(History::retention)
    }

    /// Status of the recording; `None`: disabled.
    pub(crate) fn recording(&self) -> Option<RecordingStatus> {
        self.recorder.map(|recorder| recorder.watch().status())
    }

    /// Segments of the history, oldest first, and the timeline rows after `after`.
    pub(crate) fn timeline(&self, after: Millis) -> (Vec<SegmentRow>, Vec<SecondRow>) {
        self.history.map_or_else(Default::default, |history| (history.segments(), history.rows_after(after)))
    }

    /// Segments of a time range, from the keyframe before its start, and its rows.
    pub(crate) fn retained_between(&self, from: Millis, to: Millis) -> (Vec<SegmentId>, Vec<SecondRow>) {
        self.history.map_or_else(Default::default, |history| history.between(from, to))
    }

    /// A segment; `None`: no longer retained.
    pub(crate) fn retained_segment(&self, id: SegmentId) -> Option<StoredSegment> {
        self.history?.segment(id)
    }

    /// The frames that lead to the state at `at`. With `after`, only those behind that record; with `until`, no later ones.
    /// `None`: not retained.
    pub(crate) fn segment_at(
        &self,
        at: Millis,
        after: Option<Seq>,
        until: Option<Millis>,
    ) -> Option<SegmentFrames> {
        self.history?.segment_at(at, after, until)
    }

    /// Length of the longest path in blocks; for a large tree it may be a second old.
    pub fn max_depth(&mut self) -> u32 {
        self.depth.of(self.cluster)
    }

    /// A copy of a pool's tree for longer computations; for a large tree it may be some seconds old.
    pub fn picture(&mut self, pool: PoolIx) -> Arc<TreeSnapshot> {
        self.pictures.of(self.cluster, pool, self.at_ms)
    }
}

/// How long a copy of the latest record is reused; for a large tree also an older one.
const PICTURE_LIFE: Duration = Duration::from_secs(1);
/// A copy is reused for at least this many times its cost, so that copying takes less than a twentieth of a core.
const PICTURE_LIFE_PER_COST: u32 = 20;
/// A copy that was not used for this long is dropped.
const PICTURE_UNUSED_FOR: Duration = Duration::from_secs(10);

/// Maximum cached copies, one per pool.
const MAX_PICTURES: usize = 8;

/// Cached copies of trees, one per pool.
#[derive(Default)]
pub(super) struct PictureCache(Vec<CachedPicture>);

struct CachedPicture {
    picture: Arc<TreeSnapshot>,
    made: Instant,
    life: Duration,
    used: Instant,
}

impl PictureCache {
    fn of(&mut self, cluster: &Cluster, pool: PoolIx, at_ms: Millis) -> Arc<TreeSnapshot> {
        let now = Instant::now();
        let nodes = cluster.tree(pool).allocated();
        let is_large = nodes > WALKED_ALWAYS_NODES;
        if let Some(cached) = self.0.iter_mut().find(|cached| cached.picture.pool() == pool)
            && now.duration_since(cached.made) < cached.life
            && (is_large || cached.picture.seq() == cluster.seq())
        {
            cached.used = now;
            return Arc::clone(&cached.picture);
        }
        let picture = Arc::new(TreeSnapshot::of(cluster, pool, at_ms));
        let cost = now.elapsed();
        tracing::debug!(nodes, cost_us = cost.as_micros() as u64, "tree copied");
        let life = PICTURE_LIFE.max(cost * PICTURE_LIFE_PER_COST);
        let cached = CachedPicture { picture: Arc::clone(&picture), made: now, life, used: now };
        let known = self.0.iter().position(|cached| cached.picture.pool() == pool);
        let oldest = || (0..self.0.len()).min_by_key(|&at| self.0[at].used);
        let replaced = known.or_else(|| oldest().filter(|_| self.0.len() == MAX_PICTURES));
        drop_in_background(replaced.map(|at| self.0.swap_remove(at)));
        self.0.push(cached);
        picture
    }

    /// Called once a second.
    pub(super) fn forget_unused(&mut self) {
        while let Some(at) = self.0.iter().position(|cached| cached.used.elapsed() > PICTURE_UNUSED_FOR) {
            drop_in_background(Some(self.0.swap_remove(at)));
        }
    }
}

/// A large copy takes milliseconds to drop.
fn drop_in_background(cached: Option<CachedPicture>) {
    if let Some(cached) = cached {
        tokio::task::spawn_blocking(move || drop(cached));
    }
}

#[derive(Default)]
pub(super) struct DepthCache(Option<(Seq, Instant, u32)>);

impl DepthCache {
    fn of(&mut self, cluster: &Cluster) -> u32 {
        let now = Instant::now();
        let nodes: u32 = cluster.trees().map(|(_, tree)| tree.allocated()).sum();
        let is_large = nodes > WALKED_ALWAYS_NODES;
        if let Some((seq, found, depth)) = self.0
            && (seq == cluster.seq() || (is_large && now.duration_since(found) < DEPTH_LIFE))
        {
            return depth;
        }
        let depth = cluster.trees().map(|(_, tree)| tree.max_depth()).max().unwrap_or(0);
        self.0 = Some((cluster.seq(), now, depth));
        depth
    }
}

/// Counts since the server started.
#[derive(Clone, Debug)]
pub struct Stats {
    /// By source.
    pub sources: Vec<SourceTraffic>,
    /// Queued messages.
    pub queued_messages: usize,
    /// Queued bytes.
    pub queued_bytes: usize,
    /// Limits of the queue.
    pub queue_limits: QueueLimits,
    /// Bytes of recent batches.
    pub log_bytes: usize,
    /// Batches sent.
    pub batches: u64,
    /// Longest time from a message's arrival in the queue to its fold, in the last full second. `None`: there was no
    /// message.
    pub fold_lag: Option<Duration>,
    /// The same in the current second.
    fold_lag_now: Option<Duration>,
    /// When the server started.
    pub started: Instant,
}

/// Counts of one source since the server started.
#[derive(Clone, Copy, Debug, Default)]
pub struct SourceTraffic {
    /// Messages folded.
    pub messages: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Records from them.
    pub records: u64,
}

impl Stats {
    pub(super) fn new(sources: usize) -> Self {
        Self {
            sources: vec![SourceTraffic::default(); sources],
            queued_messages: 0,
            queued_bytes: 0,
            queue_limits: QueueLimits { messages: 0, bytes: 0 },
            log_bytes: 0,
            batches: 0,
            fold_lag: None,
            fold_lag_now: None,
            started: Instant::now(),
        }
    }

    pub(super) fn message(&mut self, source: SourceIx, bytes: usize, records: u64, lag: Duration) {
        if let Some(source) = self.sources.get_mut(source.at()) {
            source.messages += 1;
            source.bytes += bytes as u64;
            source.records += records;
        }
        self.fold_lag_now = self.fold_lag_now.max(Some(lag));
    }

    pub(super) fn end_second(&mut self) {
        self.fold_lag = self.fold_lag_now.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{BlockHash, TokensHash, Worker, WorkerIx};
    use radixscope_model::record::{Block, Entry, Record};

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(1_800_000_000_000), record });
    }

    /// One worker with so many blocks.
    fn cluster(blocks: u64) -> Cluster {
        let mut cluster = Cluster::default();
        fold(&mut cluster, Record::new_worker(WorkerIx(0), Worker::new(1, 0), "dynamo", "backend"));
        let block = |i| Block { block_hash: BlockHash(i), tokens_hash: TokensHash(i) };
        let blocks: Vec<Block> = (1..=blocks).map(block).collect();
        fold(&mut cluster, Record::Stored { worker: WorkerIx(0), parent: None, blocks: blocks.into() });
        cluster
    }

    #[tokio::test]
    async fn readers_of_one_moment_share_a_copy_of_the_tree() {
        let (mut cluster, mut cache, at) = (cluster(3), PictureCache::default(), Millis(1));
        let first = cache.of(&cluster, PoolIx(0), at);
        assert!(Arc::ptr_eq(&first, &cache.of(&cluster, PoolIx(0), at)));
        let hashes: Vec<BlockHash> = (1..=3).map(BlockHash).collect();
        fold(&mut cluster, Record::Removed { worker: WorkerIx(0), hashes: hashes.into() });
        assert_eq!(
            cache.of(&cluster, PoolIx(0), at).tree().totals().nodes,
            0,
            "a small tree is never outdated"
        );
        assert_eq!(first.tree().totals().nodes, 3);
    }

    #[tokio::test]
    async fn a_copy_of_a_large_tree_serves_for_a_while_and_is_dropped_when_unused() {
        let blocks = u64::from(WALKED_ALWAYS_NODES) + 2;
        let (mut cluster, mut cache, at) = (cluster(blocks), PictureCache::default(), Millis(1));
        let first = cache.of(&cluster, PoolIx(0), at);
        if let Some(cached) = cache.0.first_mut() {
            cached.life = Duration::from_secs(3_600);
        }
        fold(&mut cluster, Record::Removed { worker: WorkerIx(0), hashes: vec![BlockHash(blocks)].into() });
        assert!(Arc::ptr_eq(&first, &cache.of(&cluster, PoolIx(0), at)));
        if let Some(cached) = cache.0.first_mut() {
            cached.life = Duration::ZERO;
        }
        assert_eq!(cache.of(&cluster, PoolIx(0), at).seq(), cluster.seq());
        cache.forget_unused();
        assert!(!cache.0.is_empty(), "it was just asked for");
        if let Some(cached) = cache.0.first_mut() {
            cached.used -= PICTURE_UNUSED_FOR * 2;
        }
        cache.forget_unused();
        assert!(cache.0.is_empty());
        assert_eq!(first.tree().totals().nodes, blocks);
    }
}
