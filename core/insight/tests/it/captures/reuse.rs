//! Where the reuse of prompts is lost in recorded traffic: what is computed here against what routers logged of the chosen worker and
//! what frontends report of cached tokens.

use radixscope_captures::{Recording, fixtures};
use radixscope_insight::reuse::{Funnel, PromptReuse};
use radixscope_state::cluster::Cluster;

use crate::captures::watch::{ALL_AND_CARDS, Tape};

/// Decisions with a funnel; of those whose log has the overlap, and those where both agree; with reported cached tokens, and those
/// where they are what the chosen worker held, to the block that holds the last token.
#[derive(Default, Debug)]
struct Compared {
    decisions: u32,
    logged: u32,
    overlap_agrees: u32,
    reported: u32,
    tokens_agree: u32,
}

impl Compared {
    fn add(&mut self, other: &Self) {
        self.decisions += other.decisions;
        self.logged += other.logged;
        self.overlap_agrees += other.overlap_agrees;
        self.reported += other.reported;
        self.tokens_agree += other.tokens_agree;
    }
}

fn compare(cluster: &Cluster) -> Compared {
    let mut compared = Compared::default();
    for decided in cluster.decisions().newest_first() {
        let Ok(reuse) = PromptReuse::of(decided) else { continue };
        let (blocks, size) = (decided.reuse.unwrap(), u64::from(decided.decision.block_size_tokens.unwrap()));
        compared.decisions += 1;
        let lost: u64 = reuse.losses.iter().map(|(_, tokens)| tokens).sum();
        let reused = reuse.reused.map_or(reuse.steps[4], |reused| reused.min(reuse.steps[4]));
        assert_eq!(lost + reused, reuse.steps[0], "{decided:?}");
        assert!(reuse.steps.is_sorted_by(|a, b| a >= b), "{decided:?}");
        assert_eq!(blocks.gone.is_some(), blocks.seen_blocks > blocks.held_blocks, "{decided:?}");
        if let Some(overlap) = decided.decision.overlap_blocks {
            let held = overlap + decided.decision.lower_tier_blocks.unwrap_or(0);
            compared.logged += 1;
            compared.overlap_agrees += u32::from(held == u64::from(blocks.chosen_blocks));
        }
        if let Some(cached) = decided.progress.cached_tokens {
            compared.reported += 1;
            compared.tokens_agree +=
                u32::from(cached.abs_diff(u64::from(blocks.chosen_blocks) * size) <= size);
        }
    }
    compared
}

/// All recordings of a folder of fixtures, and what they come to.
fn compare_all(folder: &str) -> Compared {
    let mut all = Compared::default();
    for recording in Recording::all_in(&fixtures().with_file_name(folder)) {
        let cluster = Tape::of_recording(&recording).play(ALL_AND_CARDS, 0.0, 12).cluster;
        let (compared, funnel) = (compare(&cluster), Funnel::of(cluster.decisions().newest_first()));
        if compared.decisions == 0 {
            continue;
        }
        let name = recording.name();
        println!("{name}: {compared:?}, steps {:?}, reported {:?}", funnel.steps, funnel.reported);
        for loss in &funnel.losses {
            println!(
                "    {:16} {:>8} tokens in {} decisions",
                loss.cause.as_str(),
                loss.tokens,
                loss.decisions
            );
        }
        let lost: u64 = funnel.losses.iter().map(|loss| loss.tokens).sum();
        assert!(lost <= funnel.steps[0], "{name}");
        all.add(&compared);
    }
    assert!(all.overlap_agrees * 100 >= all.logged * 99, "{all:?}");
    assert!(all.tokens_agree * 100 >= all.reported * 97, "{all:?}");
    all
}

#[test]
fn what_the_chosen_worker_held_is_what_its_router_reports() {
    let all = compare_all("captures");
    assert!(all.logged > 250, "{all:?}");
}

#[test]
fn what_the_chosen_worker_held_is_what_its_router_reports_in_every_topology() {
    let all = compare_all("topologies");
    assert!(all.logged > 700, "{all:?}");
}

#[test]
fn what_the_chosen_worker_held_is_what_routers_and_engines_report() {
    let all = compare_all("routing");
    assert!(all.logged > 550 && all.reported > 350, "{all:?}");
}
