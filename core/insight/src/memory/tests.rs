//! Occupancy by every mixture of sources.

use super::*;
use radixscope_model::id::{BlockHash, PoolIx, Seq, TokensHash, Worker};
use radixscope_model::record::{
    Block, DepartureCause, Entry, ModelFigures, ProcessRole, RankFigures, Record, Scrape,
};

const NOW: u64 = 1_800_000_000_000;
const W: WorkerIx = WorkerIx(0);

/// A cluster of one worker with id 7, and a clock.
struct Fixture {
    cluster: Cluster,
    at: u64,
}

impl Fixture {
    fn new() -> Self {
        let mut fixture = Self { cluster: Cluster::default(), at: NOW };
        let id = Worker::new(7, 0);
        fixture.fold(Record::new_worker(W, id, "", ""));
        fixture
    }

    fn fold(&mut self, record: Record<'_>) -> &mut Self {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
        self
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.at += ms;
        self
    }

    fn store(&mut self, blocks: std::ops::Range<u64>) -> &mut Self {
        let blocks: Vec<Block> =
            blocks.map(|b| Block { block_hash: BlockHash(b), tokens_hash: TokensHash(b) }).collect();
        self.fold(Record::Stored { worker: W, parent: None, blocks: blocks.into() })
    }

    fn remove(&mut self, blocks: std::ops::Range<u64>) -> &mut Self {
        let hashes: Vec<BlockHash> = blocks.map(BlockHash).collect();
        self.fold(Record::Removed { worker: W, hashes: hashes.into() })
    }

    fn card(&mut self, capacity: u64) -> &mut Self {
        self.fold(Record::ModelCard {
            worker: W,
            total_kv_blocks: Some(capacity),
            block_size_tokens: Some(32),
            publishes_events: None,
        })
    }

    fn uses(&mut self, used_blocks: u64) -> &mut Self {
        self.fold(Record::EngineLoad { worker: W, used_blocks })
    }

    fn scrape(
        &mut self,
        instance: Option<u64>,
        rank: RankFigures,
        frontend_blocks: Option<u64>,
    ) -> &mut Self {
        let role = if frontend_blocks.is_some() { ProcessRole::Frontend } else { ProcessRole::Worker };
        let model = ModelFigures {
            name: "m".into(),
            block_size_tokens: Some(16),
            total_kv_blocks: frontend_blocks,
            max_num_seqs: None,
            max_num_batched_tokens: None,
            context_length: None,
        };
        let scrape = Scrape {
            instance,
            models: if frontend_blocks.is_some() { vec![model] } else { Vec::new() },
            ranks: vec![rank],
            ..Scrape::new(role.as_str(), role)
        };
        self.fold(Record::Scrape(Box::new(scrape)))
    }

    fn memory(&self) -> Memory {
        Memory::of(&self.cluster, W, Millis(self.at)).unwrap()
    }
}

const fn rank(used: Option<u64>, usage: Option<f64>, total: Option<u64>) -> RankFigures {
    RankFigures { dp_rank: 0, kv_usage: usage, used_blocks: used, total_blocks: total }
}

#[test]
fn what_the_engine_does_not_use_of_the_mirrors_blocks_is_kept_for_reuse() {
    let mut fixture = Fixture::new();
    fixture.card(100).store(0..60).after(1_000).uses(25);
    let memory = fixture.memory();
    assert_eq!(
        memory.parts(),
        [(MemorySegment::Used, 25), (MemorySegment::Retained, 35), (MemorySegment::Free, 40)]
    );
    assert_eq!((memory.retained_blocks(), memory.free_blocks()), (Some(35), Some(40)));
    let used = memory.used.unwrap();
    assert_eq!((used.source, used.at_ms), (UsedSource::KvMetrics, Some(Millis(NOW + 1_000))));
    assert_eq!(memory.mirror.unwrap().at_ms, Millis(NOW));
    assert!(memory.estimate_status_text().contains("35 blocks more"), "{}", memory.estimate_status_text());
    assert_eq!(memory.block_size.map(|size| size.value), Some(32));
}

#[test]
fn what_is_not_reported_is_unknown_and_names_what_would_report_it() {
    let fixture = Fixture::new();
    let memory = fixture.memory();
    assert_eq!(memory.parts(), []);
    assert_eq!((memory.retained_blocks(), memory.free_blocks(), memory.churn), (None, None, None));
    assert_eq!(memory.belief(), EstimateStatus::Nothing);
    let missing = memory.missing().join(" ");
    assert!(
        missing.contains("--kv-events-config") && missing.contains("--prometheus frontend="),
        "{missing}"
    );
    assert_eq!(Memory::of(&fixture.cluster, WorkerIx(1), Millis(NOW)), None);
}

#[test]
fn a_worker_that_left_has_no_memory_that_is_free() {
    let mut fixture = Fixture::new();
    fixture.card(100).store(0..60).uses(25).fold(Record::Left { worker: W, why: DepartureCause::Log });
    let memory = fixture.memory();
    assert_eq!(
        (memory.parts(), memory.free_blocks(), memory.belief()),
        (Vec::new(), None, EstimateStatus::Left)
    );
    assert_eq!(memory.estimate_status_text(), "It left the deployment.");
    assert_eq!(memory.missing(), [""; 0], "nothing would tell more of it");
}

#[test]
fn a_mirror_without_an_engine_does_not_part_used_from_kept() {
    let mut fixture = Fixture::new();
    fixture.card(100).store(0..60);
    let memory = fixture.memory();
    assert_eq!(memory.parts(), [(MemorySegment::UsedOrCached, 60), (MemorySegment::Free, 40)]);
    assert_eq!((memory.belief(), memory.retained_blocks()), (EstimateStatus::NoEngine, None));
}

#[test]
fn an_engine_without_events_does_not_part_kept_from_free() {
    let mut fixture = Fixture::new();
    fixture.card(100).uses(30);
    let memory = fixture.memory();
    assert_eq!(memory.parts(), [(MemorySegment::Used, 30), (MemorySegment::Rest, 70)]);
    assert_eq!((memory.belief(), memory.free_blocks()), (EstimateStatus::NoEvents, None));
}

#[test]
fn an_engine_that_uses_more_than_the_mirror_knows_leaves_the_kept_part_unknown() {
    let mut fixture = Fixture::new();
    fixture.card(100).store(0..20).uses(30);
    let memory = fixture.memory();
    assert_eq!(memory.belief(), EstimateStatus::EngineAbove(10));
    assert_eq!(memory.retained_blocks(), None);
    assert_eq!(memory.parts(), [(MemorySegment::Used, 30), (MemorySegment::Free, 70)]);
}

#[test]
fn a_tree_above_the_capacity_is_reported_as_wrong() {
    let mut fixture = Fixture::new();
    fixture.card(50).store(0..60).uses(10);
    let memory = fixture.memory();
    assert_eq!(
        (memory.belief(), memory.free_blocks(), memory.retained_blocks()),
        (EstimateStatus::AboveCapacity(10), None, None)
    );
    assert!(memory.estimate_status_text().contains("10 blocks more than the capacity"));
}

#[test]
fn the_engines_total_counts_more_than_the_card_and_the_frontend_and_differences_are_named() {
    let mut fixture = Fixture::new();
    fixture.scrape(None, rank(None, None, None), Some(90));
    assert_eq!(fixture.memory().capacity.unwrap().source, CapacitySource::Frontend);
    assert_eq!(fixture.memory().block_size.map(|size| size.value), Some(16));
    fixture.card(100);
    assert_eq!(fixture.memory().capacity.unwrap().source, CapacitySource::ModelCard);
    fixture.scrape(Some(7), rank(None, Some(0.25), Some(200)), None);
    let memory = fixture.memory();
    assert_eq!(memory.capacity.map(|known| (known.value, known.source)), Some((200, CapacitySource::Engine)));
    assert_eq!(memory.capacities.len(), 3);
    assert!(memory.capacity_text().unwrap().contains("200 blocks by the engine's total, but 100 blocks"));
    assert_eq!(memory.used.map(|known| (known.value, known.source)), Some((50, UsedSource::GaugeShare)));
}

#[test]
fn the_later_word_of_the_engine_counts() {
    let mut fixture = Fixture::new();
    fixture.uses(5).after(1_000).scrape(Some(7), rank(Some(9), None, None), None);
    assert_eq!(fixture.memory().used.unwrap().value, 9);
    fixture.after(1_000).uses(6);
    assert_eq!(fixture.memory().used.unwrap().value, 6);
}

#[test]
fn metrics_of_a_process_without_a_known_worker_belong_to_none() {
    let mut fixture = Fixture::new();
    fixture.scrape(None, rank(Some(9), None, Some(100)), None);
    fixture.scrape(Some(8), rank(Some(9), None, Some(100)), None);
    let memory = fixture.memory();
    assert_eq!((memory.used, memory.capacity), (None, None));
}

#[test]
fn churn_is_what_came_and_went_in_the_last_minute() {
    let mut fixture = Fixture::new();
    fixture.store(0..40).after(100_000).store(100..110).remove(0..30).after(1_000);
    let churn = fixture.memory().churn.unwrap();
    assert_eq!((churn.stored, churn.removed), (10, 30));
    assert_eq!(churn.ratio(), Some(3.0));
    assert_eq!(EvictionRatio { stored: 0, removed: 5 }.ratio(), None);
}

#[test]
fn lifetimes_are_held_against_the_gap_to_the_next_use() {
    let ages = |came_back, reuse| BlockResidency {
        one_in: 32,
        removed: 50,
        lifetime_p50_ms: Some(20_000),
        lifetime_p95_ms: Some(60_000),
        came_back,
        came_back_p50_ms: (came_back > 0).then_some(4_000),
        reuse_p50_ms: reuse,
    };
    let text = |ages| {
        let mut fixture = Fixture::new();
        fixture.fold(Record::BlockResidency { worker: W, lifetimes: Box::new(ages) });
        fixture.memory().lifetime_text().unwrap()
    };
    assert!(text(ages(0, Some(30_000))).contains("shorter than the gap"));
    assert!(text(ages(0, Some(3_000))).contains("longer than the gap"));
    let back = text(ages(10, None));
    assert!(back.contains("4.0 s after they were evicted") && back.contains("one block in 32"), "{back}");
}

#[test]
fn sums_for_remedies_are_unknown_as_soon_as_one_worker_is() {
    let mut fixture = Fixture::new();
    fixture.card(100).store(0..60).uses(25);
    let sums = live(&fixture.cluster, PoolIx(0), Millis(fixture.at));
    assert_eq!(
        (sums.used_blocks, sums.retained_blocks, sums.capacity_blocks),
        (Some(25), Some(35), Some(100))
    );
    let (worker, id) = (WorkerIx(1), Worker::new(8, 0));
    fixture.fold(Record::new_worker(worker, id, "", ""));
    assert_eq!(live(&fixture.cluster, PoolIx(0), Millis(fixture.at)).used_blocks, None);
    fixture.fold(Record::Left { worker, why: DepartureCause::Log });
    assert_eq!(live(&fixture.cluster, PoolIx(0), Millis(fixture.at)).used_blocks, Some(25));
}
