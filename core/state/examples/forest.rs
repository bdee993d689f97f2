//! How long the icicle takes, natively: `cargo run --release -p radixscope-state --example forest [NAME …]`.
//!
//! A tree of each kind is folded, its forest built, changed and looked at. Of each time there are the best and the median of
//! some rounds: the best is what the machine can do, the median what else it did meanwhile. A browser takes 1.5 to 2
//! times as long.

#![expect(clippy::print_stdout, reason = "the table is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use radixscope_model::id::{BlockHash, Slot, TokensHash};
use radixscope_model::record::Block;
use radixscope_state::tree::forest::{Arrangement, Forest, Order, VisibleBox, Window};
use radixscope_state::tree::{MAX_HITS, NodeId, Tree};

const WORKERS: u64 = 8;
const COLUMNS: u32 = 1920;
const ROUNDS: usize = 21;
/// The longest prompts there are: a million tokens in blocks of 16.
const LONGEST_BLOCKS: u64 = 65_536;

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
    worker: Slot,
    parent: Option<BlockHash>,
    blocks: Vec<Block>,
}

/// A path that a worker holds, for events to go on with.
struct Path {
    worker: Slot,
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
            stores.push(Store { worker: Slot(w as u16), parent: None, blocks: starter.clone() });
        }
    }
    while made < blocks {
        let worker = Slot(dice.below(WORKERS) as u16);
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
            let other = Slot(dice.below(WORKERS) as u16);
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
    let worker = Slot(0);
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
    let worker = Slot(0);
    let blocks = Dice(9).blocks(blocks);
    let stores = vec![Store { worker, parent: None, blocks: blocks.clone() }];
    Scene { name: "one chain", stores, paths: vec![Path { worker, blocks }] }
}

/// One path; folding makes two workers hold every second block.
fn alternating(blocks: u64) -> Scene {
    Scene { name: "alternating path", ..chain(blocks) }
}

/// The realistic shape; folding makes every block its own chain.
fn striped(blocks: u64) -> Scene {
    realistic("striped", blocks)
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
            let other = Slot((path.worker.0 + 1) % WORKERS as u16);
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
                let other = Slot(dice.below(WORKERS) as u16);
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

fn hits(tree: &mut Tree, scene: &Scene, dice: &mut Dice, n: usize, at: u32) {
    for _ in 0..n {
        let path = &scene.paths[dice.below(scene.paths.len() as u64) as usize];
        let block = path.blocks[dice.below(path.blocks.len() as u64) as usize];
        let node = tree.find(path.worker, block.block_hash).unwrap_or(NodeId::ROOT);
        tree.hit(node, at);
    }
}

/// Prints the best and the median time, in milliseconds.
fn times(what: &str, mut all: Vec<f64>) {
    all.sort_by(f64::total_cmp);
    println!("| {what:<44} | {:>9.3} | {:>9.3} | ms |", all[0], all[all.len() / 2]);
}

fn visit(forest: &Forest, x0: f64, x1: f64, top: f64, bottom: f64) -> usize {
    let mut seen = 0;
    forest.visit(&Window { x0, x1, top, bottom, columns: COLUMNS }, |what| {
        seen += 1;
        if let VisibleBox::Chain { id, .. } = what {
            black_box(forest.chain(id).len);
        }
    });
    seen
}

fn row(what: &str, value: f64, unit: &str) {
    println!("| {what:<44} | {value:>9.3} |           | {unit} |");
}

fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let made = black_box(run());
    (ms(start), made)
}

/// A place in 0 … 1.
fn share(dice: &mut Dice) -> f64 {
    dice.below(1 << 20) as f64 / f64::from(1 << 20)
}

/// What the tree costs without and with a forest. Gives a tree with one.
fn folding(scene: &Scene) -> Tree {
    let (mut bare, mut builds, mut folds) = (Vec::new(), Vec::new(), Vec::new());
    let mut last = Tree::default();
    for _ in 0..3 {
        let mut tree = Tree::default();
        bare.push(timed(|| fold(scene, &mut tree)).0);
        builds.push(timed(|| tree.build_forest(Arrangement::default())).0);
        last = tree;
        let mut tree = Tree::default();
        tree.build_forest(Arrangement::default());
        folds.push(timed(|| fold(scene, &mut tree)).0);
    }
    if let Some(forest) = last.forest() {
        let sums = forest.sums();
        println!("\n{}: {} blocks, {} chains, {} deep", scene.name, sums.blocks, sums.chains, sums.bottom);
        row("heap_bytes", forest.heap_bytes() as f64 / 1e6, "MB");
    }
    let best = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    let hooks = (best(&folds) - best(&bare)) * 1e6 / f64::from(last.allocated());
    times("fold", bare);
    times("fold with a forest", folds);
    row("hooks", hooks, "ns a block");
    times("build_forest on a full tree", builds);
    last
}

fn looking(forest: &Forest, dice: &mut Dice) {
    let (width, bottom) = (f64::from(forest.width()), f64::from(forest.sums().bottom));
    let mut seen = 0;
    let mut all = || seen = visit(forest, 0.0, width, 0.0, bottom);
    times("visit of the whole", (0..ROUNDS).map(|_| timed(&mut all).0).collect());
    row("  of it seen", seen as f64, "");
    let zoomed = (0..10).map(|i| {
        let zoom = 2f64.powi(i + 1);
        let (x0, top) = (share(dice) * (width - width / zoom), share(dice) * (bottom - bottom / zoom));
        let look = || visit(forest, x0, x0 + width / zoom, top, top + bottom / zoom);
        (0..ROUNDS).map(|_| timed(look).0).fold(f64::MAX, f64::min)
    });
    let zoomed: Vec<f64> = zoomed.collect();
    row("visit of ten zoomed windows, the slowest", zoomed.iter().copied().fold(0.0, f64::max), "ms");
    let points: Vec<(f64, f64)> =
        (0..1000).map(|_| (share(dice) * width, share(dice) * bottom.min(200.0))).collect();
    let find = || points.iter().filter(|&&(x, y)| forest.at(x, y).is_some()).count();
    times("a thousand times at", (0..ROUNDS).map(|_| timed(find).0).collect());
    times("largest(20)", (0..ROUNDS).map(|_| timed(|| forest.largest(20)).0).collect());
}

fn bench(mut scene: Scene) {
    let mut tree = folding(&scene);
    let mut dice = Dice(3);
    if let Some(forest) = tree.forest() {
        looking(forest, &mut dice);
    }
    let mut at = 2_000_000_000;
    for (n, with_changes) in [(100, false), (1000, false), (1000, true)] {
        tree.keep_forest_changes(with_changes);
        let rounds = (0..ROUNDS).map(|_| {
            at += 1;
            events(&mut tree, &mut scene, &mut dice, n, at);
            timed(|| tree.update_forest()).0
        });
        let what =
            format!("update_forest after {n} events{}", if with_changes { ", with changes" } else { "" });
        times(&what, rounds.collect());
    }
    tree.keep_forest_changes(false);
    hits(&mut tree, &scene, &mut dice, MAX_HITS, at);
    tree.update_forest();
    let rounds = (0..ROUNDS).map(|_| {
        at += 1;
        hits(&mut tree, &scene, &mut dice, 10, at);
        timed(|| tree.update_forest()).0
    });
    times("update_forest after 10 hits, 65,536 kept", rounds.collect());
    let orders = [Order::Stable, Order::LeftHeavy].into_iter().cycle().take(4);
    let rounds = orders.map(|order| {
        tree.build_forest(Arrangement { order, ..Arrangement::default() });
        timed(|| tree.update_forest()).0
    });
    times("update_forest after another order", rounds.collect());
    row("heap_bytes at the end", tree.forest().map_or(0.0, |f| f.heap_bytes() as f64 / 1e6), "MB");
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    type Make = fn() -> Scene;
    let scenes: [(&str, Make); 8] = [
        ("10k", || realistic("10k", 10_000)),
        ("100k", || realistic("100k", 100_000)),
        ("1M", || realistic("1M", 1_000_000)),
        ("leaves", || leaves(1_000_000)),
        ("chain", || chain(1_000_000)),
        ("path", || alternating(LONGEST_BLOCKS)),
        ("endless", || alternating(1_000_000)),
        ("striped", || striped(1_000_000)),
    ];
    for (name, make) in scenes {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            bench(make());
        }
    }
}
