//! How long the icicle takes, natively: `cargo run --release -p radixscope-core --example forest [NAME …]`.
//!
//! A tree of each kind is folded, planted, changed and looked at. Times are medians in milliseconds unless said
//! otherwise; a browser takes 1.5 to 2 times as long.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use radixscope_core::id::{BlockHash, TokensHash, WorkerIx};
use radixscope_core::record::Block;
use radixscope_core::tree::Tree;
use radixscope_core::tree::forest::{Arrangement, Forest, Order, Seen, Window};

const WORKERS: u64 = 8;
const COLUMNS: u32 = 1920;
const ROUNDS: usize = 15;

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

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn from(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn blocks(&mut self, n: u64) -> Vec<Block> {
        (0..n)
            .map(|_| Block { block_hash: BlockHash(self.next()), tokens_hash: TokensHash(self.next()) })
            .collect()
    }
}

/// One store event.
struct Store {
    worker: WorkerIx,
    parent: Option<BlockHash>,
    blocks: Vec<Block>,
}

/// A path that a worker holds, for events to go on with.
struct Path {
    worker: WorkerIx,
    blocks: Vec<Block>,
}

struct Scene {
    name: &'static str,
    stores: Vec<Store>,
    paths: Vec<Path>,
}

/// Which of 40 starters, the first one most often.
fn zipf(dice: &mut Dice) -> usize {
    let sum: f64 = (1..=40).map(|i| 1.0 / f64::from(i)).sum();
    let mut at = dice.below(1 << 32) as f64 / (1u64 << 32) as f64 * sum;
    for i in 1..40 {
        at -= 1.0 / f64::from(i);
        if at < 0.0 {
            return i as usize - 1;
        }
    }
    39
}

/// Conversations below shared starters.
fn realistic(name: &'static str, blocks: u64) -> Scene {
    let mut dice = Dice(7);
    let (mut stores, mut paths) = (Vec::new(), Vec::new());
    let starters: Vec<Vec<Block>> = (0..40)
        .map(|_| {
            let n = dice.from(20, 120).min(blocks / 80);
            dice.blocks(n)
        })
        .collect();
    let mut made = 0;
    for starter in &starters {
        made += starter.len() as u64;
        for w in 0..WORKERS {
            stores.push(Store { worker: WorkerIx(w as u16), parent: None, blocks: starter.clone() });
        }
    }
    while made < blocks {
        let worker = WorkerIx(dice.below(WORKERS) as u16);
        let mut path = starters[zipf(&mut dice)].clone();
        for _ in 0..dice.from(1, 10) {
            let n = dice.from(5, 40);
            let turn = dice.blocks(n);
            made += n;
            stores.push(Store { worker, parent: path.last().map(|b| b.block_hash), blocks: turn.clone() });
            if dice.below(10) == 0 {
                let n = dice.from(5, 20);
                let again = dice.blocks(n);
                made += n;
                stores.push(Store { worker, parent: path.last().map(|b| b.block_hash), blocks: again });
            }
            path.extend(turn);
        }
        if dice.below(10) == 0 {
            let other = WorkerIx(dice.below(WORKERS) as u16);
            stores.push(Store { worker: other, parent: None, blocks: path.clone() });
        }
        paths.push(Path { worker, blocks: path });
    }
    Scene { name, stores, paths }
}

/// A million leaves below one block.
fn leaves(blocks: u64) -> Scene {
    let mut dice = Dice(8);
    let first = dice.blocks(1);
    let worker = WorkerIx(0);
    let mut stores = vec![Store { worker, parent: None, blocks: first.clone() }];
    let mut paths = Vec::new();
    for _ in 0..blocks {
        let blocks = dice.blocks(1);
        paths.push(Path { worker, blocks: vec![first[0], blocks[0]] });
        stores.push(Store { worker, parent: Some(first[0].block_hash), blocks });
    }
    Scene { name: "leaves", stores, paths }
}

/// One chain.
fn chain(blocks: u64) -> Scene {
    let worker = WorkerIx(0);
    let blocks = Dice(9).blocks(blocks);
    let stores = vec![Store { worker, parent: None, blocks: blocks.clone() }];
    Scene { name: "one chain", stores, paths: vec![Path { worker, blocks }] }
}

/// One path whose every second block two workers hold.
fn alternating(blocks: u64) -> Scene {
    let (worker, other) = (WorkerIx(0), WorkerIx(1));
    let mut scene = chain(blocks);
    scene.name = "alternating path";
    for pair in scene.paths[0].blocks.chunks_exact(2) {
        // The other worker held the block before for a moment.
        scene.stores.push(Store { worker: other, parent: None, blocks: Vec::new() });
        let _ = (pair, worker);
    }
    scene
}

/// The realistic shape, but every block its own chain.
fn striped(blocks: u64) -> Scene {
    let mut scene = realistic("striped", blocks);
    scene.stores.retain(|store| !store.blocks.is_empty());
    scene
}

fn apply(tree: &mut Tree, store: &Store, at: u32) {
    tree.store(store.worker, store.parent, &store.blocks, at);
}

/// Folds a scene; what its kind asks for beyond stores included.
fn fold(scene: &Scene, tree: &mut Tree) {
    for (i, store) in scene.stores.iter().enumerate() {
        apply(tree, store, i as u32);
    }
    if scene.name == "alternating path" || scene.name == "striped" {
        for path in &scene.paths {
            let other = WorkerIx((path.worker.0 + 1) % WORKERS as u16);
            tree.store(other, None, &path.blocks, 1 << 30);
            for block in path.blocks.iter().step_by(2) {
                tree.remove(other, block.block_hash);
            }
        }
    }
}

/// Events as a live cluster sends them.
fn events(tree: &mut Tree, scene: &mut Scene, dice: &mut Dice, n: u64, at: u32) {
    for _ in 0..n {
        let which = dice.below(scene.paths.len() as u64) as usize;
        let path = &mut scene.paths[which];
        match dice.below(10) {
            0..6 => {
                let n = dice.from(1, 16);
                let new = dice.blocks(n);
                tree.store(path.worker, path.blocks.last().map(|b| b.block_hash), &new, at);
                path.blocks.extend(new);
            }
            6 => {
                let n = dice.from(1, 16);
                let parent = path.blocks[dice.below(path.blocks.len() as u64) as usize].block_hash;
                tree.store(path.worker, Some(parent), &dice.blocks(n), at);
            }
            7..9 => {
                for _ in 0..dice.from(1, 16) {
                    if path.blocks.len() > 1
                        && let Some(last) = path.blocks.pop()
                    {
                        tree.remove(path.worker, last.block_hash);
                    }
                }
            }
            _ => {
                let other = WorkerIx(dice.below(WORKERS) as u16);
                let most = path.blocks.len().min(512) as u64;
                let until = dice.from(1, most) as usize;
                tree.store(other, None, &path.blocks[..until], at);
            }
        }
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn visit(forest: &Forest, x0: f64, x1: f64, top: f64, bottom: f64) -> usize {
    let mut seen = 0;
    forest.visit(&Window { x0, x1, top, bottom, columns: COLUMNS }, |what| {
        seen += 1;
        if let Seen::Chain { id, .. } = what {
            black_box(forest.chain(id).len);
        }
    });
    seen
}

fn row(what: &str, value: f64, unit: &str) {
    println!("| {what:<34} | {value:>10.3} | {unit:<6} |");
}

fn settle(tree: &mut Tree) -> f64 {
    let start = Instant::now();
    tree.settle_forest();
    ms(start)
}

fn bench(mut scene: Scene) {
    let mut tree = Tree::default();
    let start = Instant::now();
    fold(&scene, &mut tree);
    let (bare, allocated) = (ms(start), f64::from(tree.allocated()));

    let start = Instant::now();
    tree.grow_forest(Arrangement::default());
    let planted = ms(start);
    let Some(forest) = tree.forest() else { return };
    println!(
        "\n{}: {} blocks, {} chains, {} deep",
        scene.name,
        forest.sums().blocks,
        forest.sums().chains,
        forest.sums().bottom
    );
    row("grow_forest on a full tree", planted, "ms");
    row("heap_bytes", forest.heap_bytes() as f64 / 1e6, "MB");

    let mut grown = Tree::default();
    grown.grow_forest(Arrangement::default());
    let start = Instant::now();
    fold(&scene, &mut grown);
    row("fold without a forest", bare * 1e6 / allocated, "ns/blk");
    row("fold with a forest", ms(start) * 1e6 / allocated, "ns/blk");
    drop(grown);

    let forest_of = |tree: &Tree| {
        tree.forest().map_or((0.0, 0.0), |f| (f64::from(f.width()), f64::from(f.sums().bottom)))
    };
    let (width, bottom) = forest_of(&tree);
    let Some(forest) = tree.forest() else { return };
    let mut seen = 0;
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        seen = visit(forest, 0.0, width, 0.0, bottom);
        ms(start)
    });
    row("visit of the whole", median(times.collect()), "ms");
    row("  of it seen", seen as f64, "");
    let mut dice = Dice(3);
    let times = (0..40).map(|i| {
        let share = 2f64.powi(i / 4 + 1);
        let x0 = dice.below(1 << 20) as f64 / (1 << 20) as f64 * (width - width / share);
        let top = dice.below(1 << 20) as f64 / (1 << 20) as f64 * (bottom - bottom / share);
        let start = Instant::now();
        visit(forest, x0, x0 + width / share, top, top + bottom / share);
        ms(start)
    });
    let times: Vec<f64> = times.collect();
    row("visit zoomed, slowest of 40", times.iter().copied().fold(0.0, f64::max), "ms");
    row("visit zoomed, median of 40", median(times), "ms");
    let start = Instant::now();
    for _ in 0..1000 {
        let x = dice.below(1 << 20) as f64 / (1 << 20) as f64 * width;
        let y = dice.below(1 << 20) as f64 / (1 << 20) as f64 * bottom.min(200.0);
        black_box(forest.at(x, y));
    }
    row("at", ms(start), "us");
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        black_box(forest.largest(20));
        ms(start)
    });
    row("largest(20)", median(times.collect()), "ms");

    for n in [100, 1000] {
        let (mut folding, mut settling) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let start = Instant::now();
            events(&mut tree, &mut scene, &mut dice, n, 2_000_000 + round as u32);
            folding.push(ms(start));
            settling.push(settle(&mut tree));
        }
        row(&format!("fold {n} events"), median(folding), "ms");
        let slowest = settling.iter().copied().fold(0.0, f64::max);
        row(&format!("settle after {n} events"), median(settling), "ms");
        row(&format!("settle after {n} events, slowest"), slowest, "ms");
    }
    tree.grow_forest(Arrangement { order: Order::Stable, ..Arrangement::default() });
    row("settle after another order", settle(&mut tree), "ms");
    row("heap_bytes at the end", tree.forest().map_or(0.0, |f| f.heap_bytes() as f64 / 1e6), "MB");
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    type Make = fn() -> Scene;
    let scenes: [(&str, Make); 7] = [
        ("10k", || realistic("10k", 10_000)),
        ("100k", || realistic("100k", 100_000)),
        ("1M", || realistic("1M", 1_000_000)),
        ("leaves", || leaves(1_000_000)),
        ("chain", || chain(1_000_000)),
        ("path", || alternating(1_000_000)),
        ("striped", || striped(1_000_000)),
    ];
    for (name, make) in scenes {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            bench(make());
        }
    }
}
