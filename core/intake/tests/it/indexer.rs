//! The index of a genuine standalone indexer against the tree that is built here from the same engines' batches.

use std::sync::Arc;

use radixscope_captures::EngineRecording;
use radixscope_dynamo::indexer::{self, Index};
use radixscope_intake::{EngineInput, EnginePublisher, Intake, Payload, Received};
use radixscope_model::id::{BlockHash, Millis, SourceIx, Worker, WorkerId};
use radixscope_model::record::{Engine, IndexComparison, IndexedWorker, SourceKind};
use radixscope_state::cluster::Cluster;

use crate::publisher::publisher;

const NOW_MS: u64 = 1_800_000_100_000;
/// The indexer's id of the engine that sent everything, and of the one that sent the first half.
const WHOLE: u64 = 1;
const HALF: u64 = 2;

struct Stage {
    intake: Intake,
    cluster: Cluster,
}

impl Stage {
    fn new() -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        intake.source("engines", SourceKind::Engines, Millis(NOW_MS), &mut cluster).unwrap();
        intake.source("indexer", SourceKind::Indexer, Millis(NOW_MS), &mut cluster).unwrap();
        Self { intake, cluster }
    }

    fn give(&mut self, source: u8, payload: Payload) {
        let received = Received { source: SourceIx(source), at_ms: Millis(NOW_MS), payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    /// The engine at `port` publishes the first batches of the recording.
    fn publish(&mut self, port: u64, batches: usize) {
        let publisher = Arc::new(publisher(&format!("tcp://127.0.0.1:{port}"), port, Engine::Vllm, "chat"));
        let recorded = EngineRecording::of("vllm-0.28.0");
        for (sequence, frames) in recorded.live.iter().enumerate().take(batches) {
            let (sequence, body) = (sequence as u64, frames[2].clone());
            let input = EngineInput::Batch { run: 0, sequence, is_replayed: false, body };
            self.give(0, Payload::Engine { publisher: Arc::clone(&publisher), input });
        }
        self.intake.flush(Millis(NOW_MS), &mut self.cluster);
    }

    fn read(&mut self, name: &str, index: &Index) {
        let index = Arc::new(index.clone());
        self.give(1, Payload::Indexer { name: name.into(), index, size_bytes: 1 });
    }

    fn of(&self, instance_id: u64) -> &IndexedWorker {
        let [state] = self.cluster.indexers() else { panic!("one: {:?}", self.cluster.indexers()) };
        state.report.workers.iter().find(|of| of.instance_id == instance_id).unwrap()
    }

    fn compared(&self, instance_id: u64) -> IndexComparison {
        self.of(instance_id).compared.unwrap()
    }
}

fn genuine() -> Index {
    let workers = include_bytes!("../../../dynamo/tests/fixtures/indexer/workers.json");
    let dump = include_bytes!("../../../dynamo/tests/fixtures/indexer/dump.json");
    indexer::decode(workers, dump, None).unwrap()
}

#[test]
fn what_a_genuine_indexer_dropped_shows_at_the_second_reading() {
    let mut stage = Stage::new();
    stage.publish(8091, usize::MAX);
    stage.publish(8092, 28);
    let held = EngineRecording::of("vllm-0.28.0").expected.held as u64;
    let first = IndexComparison { same_blocks: 69, tree_only_blocks: held - 69, ..Default::default() };
    let index = genuine();
    stage.read("http://indexer:8090", &index);
    assert_eq!((stage.of(WHOLE).blocks, stage.compared(WHOLE)), (69, first));
    assert_eq!(stage.of(WHOLE).worker, stage.cluster.engines()[0].worker, "by its address, not by the id");
    stage.read("http://indexer:8090", &index);
    assert_eq!(
        stage.compared(WHOLE),
        IndexComparison { tree_only_twice_blocks: held - 69, ..first },
        "events on their way cannot explain it"
    );
    let half = stage.compared(HALF);
    assert_eq!(half.same_blocks + half.index_only_blocks, stage.of(HALF).blocks);
    let tree = stage.cluster.blocks(stage.of(HALF).worker.unwrap()).unwrap();
    assert_eq!(half.same_blocks + half.tree_only_blocks, tree);
    assert_eq!(half.index_only_blocks, 0, "{half:?}");
    assert_eq!(stage.cluster.indexers()[0].readings, 2);
}

#[test]
fn what_differs_once_is_an_event_on_its_way() {
    let mut stage = Stage::new();
    stage.publish(8091, usize::MAX);
    let complete = genuine();
    let held = &complete.blocks[&Worker { id: WorkerId(WHOLE), dp_rank: 0 }];
    let (one, other) = (held[3], held[40]);
    let without = |name: BlockHash| {
        let mut index = complete.clone();
        index.blocks.values_mut().for_each(|names| names.retain(|known| *known != name));
        index
    };
    stage.read("i", &complete);
    stage.read("i", &without(one));
    let dropped = stage.compared(WHOLE).tree_only_twice_blocks;
    stage.read("i", &without(other));
    assert_eq!(stage.compared(WHOLE).tree_only_twice_blocks, dropped, "each of them was missing once");
    stage.read("i", &without(other));
    assert_eq!(stage.compared(WHOLE).tree_only_twice_blocks, dropped + 1);
    let mut more = complete.clone();
    more.blocks.values_mut().for_each(|names| names.insert(0, BlockHash(0)));
    stage.read("i", &more);
    assert_eq!(
        (stage.compared(WHOLE).index_only_blocks, stage.compared(WHOLE).index_only_twice_blocks),
        (1, 0)
    );
    stage.read("i", &more);
    assert_eq!(stage.compared(WHOLE).index_only_twice_blocks, 1);
}

#[test]
fn engines_that_are_not_listened_to_or_not_known_completely_are_listed_and_not_compared() {
    let mut stage = Stage::new();
    stage.read("i", &genuine());
    assert_eq!((stage.of(WHOLE).worker, stage.of(WHOLE).compared), (None, None));
    assert_eq!((stage.of(WHOLE).blocks, &*stage.of(WHOLE).status), (69, "active"));
    // Met late: what it stored before is unknown here, and would seem to be in the index alone.
    let recorded = EngineRecording::of("vllm-0.28.0");
    let publisher = Arc::new(EnginePublisher {
        engine_name: "late".into(),
        ..publisher("tcp://127.0.0.1:8091", 9, Engine::Vllm, "chat")
    });
    let body = recorded.live[9][2].clone();
    let input = EngineInput::Batch { run: 0, sequence: 9, is_replayed: false, body };
    stage.give(0, Payload::Engine { publisher, input });
    stage.intake.flush(Millis(NOW_MS), &mut stage.cluster);
    stage.read("i", &genuine());
    assert!(stage.of(WHOLE).worker.is_some());
    assert_eq!(stage.of(WHOLE).compared, None);
}
