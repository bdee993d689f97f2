//! What storing chains of blocks as runs would bring: `cargo run --release -p radixscope-oracle --example runs -- [CAPTURE…]`; without
//! a capture, all of the repository's and two generated trees. A run is a chain of blocks with the same owners in which each
//! block is the only one below the one before. Its bytes are a lower bound: what its blocks need, and one head a run.

use std::hint::black_box;
use std::time::Instant;

use radixscope_model::id::{BlockHash, Slot};
use radixscope_oracle::talk::Talk;
use radixscope_oracle::{Change, Event, capture, ours};
use radixscope_state::tree::{NodeId, Step, Tree};

/// Of a block in a run: tokens hash, block hash and the number of its run, which its entry in the index leads to.
const BLOCK_BYTES: usize = 8 + 8 + 4;
/// Of a run: first block, length, parent, child, owners, touched, first stored.
const RUN_BYTES: usize = 7 * 4;
/// Of a block's entry in the index at a mean load of 21/32: a number and a control byte, which both forms need.
const ENTRY_BYTES: f64 = 5.0 * 32.0 / 21.0;
/// Look-ups are repeated so often; the fastest round counts.
const ROUNDS: usize = 9;

#[expect(clippy::print_stdout, reason = "what the program is for")]
fn main() -> anyhow::Result<()> {
    println!(
        "{:<30} {:>9} {:>8} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "tree", "blocks", "runs", "length", "by times", "now B", "runs B", "saved %", "apply ns", "find ns"
    );
    let named: Vec<String> = std::env::args().skip(1).collect();
    let generated: &[usize] = if named.is_empty() { &[100_000, 1_000_000] } else { &[] };
    for name in if named.is_empty() { capture::names() } else { named } {
        let short = name.trim_end_matches('/').rsplit('/').next().unwrap_or(&name);
        if let Some(line) = measure(short, &capture::events(&name)?) {
            println!("{line}");
        }
    }
    for &resident in generated {
        let line = measure(&format!("talk, {resident} blocks"), &Talk::events_until(resident, 1));
        println!("{}", line.unwrap_or_default());
    }
    Ok(())
}

fn measure(what: &str, events: &[Event]) -> Option<String> {
    let blocks_moved: usize = events
        .iter()
        .map(|event| match &event.change {
            Change::Stored { blocks, .. } => blocks.len(),
            Change::Removed(hashes) => hashes.len(),
            Change::Cleared => 0,
        })
        .sum();
    let (tree, apply_ns) = fastest(|| {
        let mut tree = Tree::with_limit(u32::MAX >> 2);
        events.iter().for_each(|event| ours::apply(&mut tree, event));
        tree
    });
    let Runs { blocks, by_owners, by_times } = count(&tree);
    if blocks == 0 {
        return None;
    }
    // Each block that is held, once a worker, as the events name them.
    let held: Vec<(Slot, BlockHash)> = (0..events.iter().map(|event| event.worker).max()? + 1)
        .flat_map(|worker| tree.names_of(Slot(worker)).into_iter().map(move |name| (Slot(worker), name)))
        .collect();
    let (_, find_ns) = fastest(|| {
        held.iter().filter(|(worker, name)| black_box(tree.find(*worker, *name)).is_some()).count()
    });
    let now = tree.heap_bytes() as f64 / blocks as f64;
    let runs = BLOCK_BYTES as f64 + ENTRY_BYTES + (RUN_BYTES * by_owners) as f64 / blocks as f64;
    Some(format!(
        "{what:<30} {blocks:>9} {by_owners:>8} {:>7.1} {:>9.1} {now:>9.1} {runs:>9.1} {:>9.0} {:>9.1} {:>9.1}",
        blocks as f64 / by_owners as f64,
        blocks as f64 / by_times as f64,
        100.0 * (1.0 - runs / now),
        apply_ns / blocks_moved as f64,
        find_ns / held.len().max(1) as f64,
    ))
}

/// The fastest of some rounds, in nanoseconds, and what the last one made.
fn fastest<T>(mut work: impl FnMut() -> T) -> (T, f64) {
    let mut least = f64::MAX;
    let mut made = None;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let result = work();
        least = least.min(start.elapsed().as_secs_f64() * 1e9);
        made = Some(result);
    }
    (made.unwrap_or_else(work), least)
}

struct Runs {
    blocks: usize,
    /// Runs of blocks with the same owners.
    by_owners: usize,
    /// The same if its blocks must also have been touched and first stored at one time, so that these are kept once a run.
    by_times: usize,
}

fn count(tree: &Tree) -> Runs {
    let mut runs = Runs { blocks: 0, by_owners: 0, by_times: 0 };
    for step in tree.walk(NodeId::ROOT) {
        let Step::Enter { node, depth: 1.. } = step else { continue };
        runs.blocks += 1;
        let before = tree.parent(node).filter(|&above| {
            above != NodeId::ROOT
                && tree.owners_key(above) == tree.owners_key(node)
                && tree.children(above).count() == 1
        });
        let is_same_time = |above: NodeId| {
            tree.touched(above) == tree.touched(node) && tree.first_stored(above) == tree.first_stored(node)
        };
        runs.by_owners += usize::from(before.is_none());
        runs.by_times += usize::from(!before.is_some_and(is_same_time));
    }
    runs
}
