//! How long the pictures of a tree take, natively: `cargo run --release -p radixscope-export --example panels`.
//!
//! 100,000 blocks of 4 workers in 1600 × 800 pixels, the copy of the tree included: best, median and most of some rounds, and
//! the mean of the processor's time, which does not count what else a machine does.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use radixscope_export::panel::svg::{Panel, PanelKind, PanelRequest};
use radixscope_export::tree::TreeSnapshot;
use radixscope_insight::time_range::TimeRange;
use radixscope_insight::view_context::{PoolQuery, ShownPools, ViewContext};
use radixscope_model::id::{BlockHash, Millis, PoolIx, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{Block, Entry, Record};
use radixscope_state::cluster::Cluster;

const BLOCKS: u64 = 100_000;
const WORKERS: u16 = 4;
const ROUNDS: usize = 41;
const NOW: Millis = Millis(1_800_000_000_000);

/// SplitMix64: the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn blocks(&mut self, n: u64) -> Vec<Block> {
        let mut block = || Block { block_hash: BlockHash(self.next()), tokens_hash: TokensHash(self.next()) };
        (0..n).map(|_| block()).collect()
    }
}

#[derive(Default)]
struct State(Cluster);

impl State {
    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.0.seq().0 + 1);
        self.0.fold(seq, &Entry { at_ms: NOW, record });
    }

    fn store(&mut self, worker: u16, parent: Option<BlockHash>, blocks: Vec<Block>) {
        self.fold(Record::Stored { worker: WorkerIx(worker.into()), parent, blocks: blocks.into() });
    }
}

impl State {
    fn with_workers() -> Self {
        let mut state = Self::default();
        for ix in 0..WORKERS {
            let id = Worker::new(u64::from(ix) + 7, 0);
            state.fold(Record::new_worker(WorkerIx(ix.into()), id, "dynamo", "backend"));
        }
        state
    }
}

/// Prompts of a hundred blocks that have nothing in common, the first half of every third on two workers.
fn prompts() -> Cluster {
    let (mut state, mut dice) = (State::with_workers(), Dice(6));
    for prompt in 0..BLOCKS / 100 {
        let (blocks, worker) = (dice.blocks(100), (prompt % u64::from(WORKERS)) as u16);
        if prompt.is_multiple_of(3) {
            state.store((worker + 1) % WORKERS, None, blocks[..50].to_vec());
        }
        state.store(worker, None, blocks);
    }
    state.0
}

/// Conversations below shared beginnings, most of them on one worker, some on two.
fn conversations() -> Cluster {
    let (mut state, mut dice) = (State::with_workers(), Dice(7));
    let beginnings: Vec<Vec<Block>> = (0..40).map(|n| dice.blocks(20 + 2 * n)).collect();
    for beginning in &beginnings {
        (0..WORKERS).for_each(|worker| state.store(worker, None, beginning.clone()));
    }
    let mut made = 0;
    while made < BLOCKS {
        let beginning = &beginnings[dice.from(0, 39).min(dice.from(0, 39)) as usize];
        let worker = (dice.next() % u64::from(WORKERS)) as u16;
        let (mut path, mut parent) = (beginning.clone(), beginning.last().map(|block| block.block_hash));
        for _ in 0..dice.from(1, 10) {
            let length = dice.from(5, 40);
            let turn = dice.blocks(length);
            made += turn.len() as u64;
            path.extend(&turn);
            let last = turn.last().map(|block| block.block_hash);
            state.store(worker, parent, turn);
            parent = last;
        }
        if dice.from(1, 10) == 1 {
            state.store((worker + 1) % WORKERS, None, path);
        }
    }
    state.0
}

/// Milliseconds that this thread has computed.
fn computed_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map_or(f64::NAN, |ns| ns / 1e6)
}

fn main() {
    println!("panel          best   median     most  processor ms      bytes");
    for (name, cluster) in [("prompts", prompts()), ("conversations", conversations())] {
        println!("{name}: {} blocks", cluster.tree(PoolIx(0)).totals().nodes);
        measure(&cluster);
    }
}

fn measure(cluster: &Cluster) {
    let pools = ShownPools::of(cluster, &PoolQuery::default());
    let shown = ViewContext::new(cluster, pools);
    for kind in PanelKind::ALL {
        let (mut times, mut bytes) = (Vec::new(), 0);
        let computed = computed_ms();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let picture = kind.needs_tree().then(|| Arc::new(TreeSnapshot::of(cluster, PoolIx(0), NOW)));
            let asked = PanelRequest {
                kind,
                is_dark: false,
                width_px: 1_600,
                height_px: 800,
                worker: None,
                span: TimeRange::default().span(NOW),
                targets_ms: [600.0, 60.0],
            };
            let svg = black_box(Panel::of(&shown, picture, asked, NOW).svg());
            times.push(begin.elapsed().as_secs_f64() * 1e3);
            bytes = svg.len();
        }
        times.sort_by(f64::total_cmp);
        let [best, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| times[at]);
        let mean = (computed_ms() - computed) / ROUNDS as f64;
        println!("{:10} {best:8.2} {median:8.2} {most:8.2} {mean:13.2} {bytes:10}", kind.as_str());
    }
}
