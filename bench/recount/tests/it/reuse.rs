//! Where the reuse of prompts is lost as Radixscope shows it, block for block against the count of the raw messages and logs, and what
//! was reused against the tokens that traces and the responses to clients report. `RADIXSCOPE_CAPTURES` names another directory
//! with recordings, which are compared too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use radixscope_captures::{CAPTURES_VARIABLE, Recording, fixtures};
use radixscope_insight::reuse::{LossCause, PromptReuse};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::GoneReason;
use radixscope_recount::Worker;
use radixscope_recount::recording::Recording as Raw;
use radixscope_recount::reuse::{Counted, Steps, count};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::played::cluster_of;

/// What one recording comes to.
#[derive(Default, Debug)]
struct Compared {
    /// Prompts with a funnel on both sides, and those of which only one state could be what the router saw.
    prompts: u32,
    sure: u32,
    /// Blocks at each step, of all that are compared: prompt, seen, held, eligible, chosen; by the recount and here.
    counted: [u64; 5],
    shown: [u64; 5],
    /// Blocks lost for each cause, by the recount and here.
    lost: BTreeMap<&'static str, (u64, u64)>,
    /// Prompts whose cached tokens are reported, by trace or response, and tokens; and blocks of the chosen worker in tokens.
    reported: (u32, u64, u64),
    /// Prompts that only the recount has.
    not_shown: u32,
    /// Prompts of which the router counted blocks that no worker held, but that it expected.
    expected: u32,
    /// Evictions around which the worker stored blocks, and those where it is known of which request most were.
    displaced: (u32, u32),
    differences: Vec<String>,
}

impl Compared {
    fn lose(&mut self, cause: &'static str, counted: u64, shown: u64) {
        if counted + shown > 0 {
            let lost = self.lost.entry(cause).or_default();
            *lost = (lost.0 + counted, lost.1 + shown);
        }
    }

    fn compare(&mut self, cluster: &Cluster, decided: &DecisionEntry, counted: &Counted) {
        let Some(reuse) = decided.reuse else {
            self.not_shown += u32::from(!counted.states.is_empty());
            return;
        };
        let id_of = |worker: WorkerIx| {
            cluster.worker(worker).map_or((0, 0), |worker| (worker.id.id.0, u64::from(worker.id.dp_rank)))
        };
        if counted.states.is_empty() {
            // The router counted more than any state has: blocks that it expected.
            self.expected += 1;
            return;
        }
        let gone = reuse.gone.map(|gone| (gone.why.as_str(), id_of(gone.worker)));
        let shown = [reuse.seen_blocks, reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks];
        let [seen, held, eligible, chosen] = shown.map(u64::from);
        let is_same = |steps: &&Steps| {
            (steps.seen, steps.held, steps.eligible, steps.chosen) == (seen, held, eligible, chosen)
                && steps.gone.map(|(why, worker)| (why.as_str(), worker)) == gone
        };
        self.prompts += 1;
        self.sure += u32::from(counted.states.len() == 1);
        let same = counted.states.iter().find(is_same);
        if same.is_none() || counted.prompt_blocks != u64::from(reuse.prompt_blocks) {
            self.differences
                .push(format!("{}: {reuse:?}, gone {gone:?}\n      not {counted:?}", counted.request_id));
        }
        let Some(steps) = same.or(counted.states.first()) else { return };
        self.compare_stored(cluster, decided, steps);
        let all = [counted.prompt_blocks, steps.seen, steps.held, steps.eligible, steps.chosen];
        let shown = [u64::from(reuse.prompt_blocks), seen, held, eligible, chosen];
        self.counted.iter_mut().zip(all).for_each(|(sum, of)| *sum += of);
        self.shown.iter_mut().zip(shown).for_each(|(sum, of)| *sum += of);
        self.lose("first_seen", all[0] - all[1], shown[0] - shown[1]);
        let why = |gone: Option<(&'static str, Worker)>| gone.map_or("scattered", |(why, _)| why);
        self.lose(why(steps.gone.map(|(why, of)| (why.as_str(), of))), all[1] - all[2], 0);
        self.lose(why(gone), 0, shown[1] - shown[2]);
        self.lose("not_eligible", all[2] - all[3], shown[2] - shown[3]);
        self.lose_to_others(decided, counted, (all[3] - all[4], shown[3] - shown[4]), id_of);
        let Ok(prompt) = PromptReuse::of(decided) else { return };
        if let Some(tokens) = counted.traced_tokens.or(counted.client_tokens) {
            let size = u64::from(decided.decision.block_size_tokens.unwrap());
            self.reported = (self.reported.0 + 1, self.reported.1 + tokens, self.reported.2 + chosen * size);
            // Of a prompt that is cached whole an engine computes its last block.
            let isl_tokens = decided.decision.isl_tokens.unwrap();
            let least = if chosen * size == isl_tokens { isl_tokens - size } else { chosen * size };
            assert!(
                (least..=chosen * size).contains(&tokens),
                "{}: {tokens} of {reuse:?}",
                counted.request_id
            );
            if let Some(traced) = counted.traced_tokens {
                assert_eq!(prompt.reused, Some(traced), "{}", counted.request_id);
            }
        }
    }

    /// What the worker stored that evicted the next block, around then.
    fn compare_stored(&mut self, cluster: &Cluster, decided: &DecisionEntry, steps: &Steps) {
        let Some((reuse, gone)) = decided.reuse.and_then(|reuse| Some((reuse, reuse.gone?))) else { return };
        let Some(by) = reuse.displaced_by else {
            assert!(gone.why != GoneReason::Evicted || steps.stored.0 == 0, "{decided:?}: {steps:?}");
            return;
        };
        let (least, most) = steps.stored;
        assert!((least..=most).contains(&by.stored_blocks.into()), "{by:?}, not {steps:?}");
        assert!(by.decision_blocks <= by.stored_blocks, "{by:?}");
        self.displaced.0 += 1;
        if let Some(by) = by.decision.and_then(|id| cluster.decisions().get(id)) {
            // Its blocks are stored when they are computed: behind its choice, and for a while after.
            let (decided_ms, until_ms) = (by.decided_ms(), Millis(gone.at_ms.0 + 1_000));
            assert_eq!(by.decision.worker, gone.worker);
            assert!(decided_ms <= until_ms, "{by:?}: {gone:?}");
            self.displaced.1 += 1;
        }
    }

    /// Blocks that a worker held which was not chosen: where a log has all costs it is known whether it cost more.
    fn lose_to_others(
        &mut self,
        decided: &DecisionEntry,
        counted: &Counted,
        (counted_blocks, shown_blocks): (u64, u64),
        id_of: impl Fn(WorkerIx) -> Worker,
    ) {
        if shown_blocks == 0 && counted_blocks == 0 {
            return;
        }
        let holder = decided.reuse.and_then(|reuse| reuse.holder).map(id_of);
        let cost = |worker: Option<Worker>| counted.costs.get(&worker?).copied();
        let shown = PromptReuse::of(decided).ok().and_then(|reuse| {
            let causes = [
                LossCause::Load,
                LossCause::Chance,
                LossCause::Skipped,
                LossCause::Affinity,
                LossCause::Policy,
            ];
            reuse.losses.into_iter().map(|(cause, _)| cause).find(|cause| causes.contains(cause))
        });
        let shown = shown.map_or("none", LossCause::as_str);
        let by_log = match (cost(holder), cost(Some(counted.worker))) {
            (Some(holder), Some(chosen)) if shown == "load" || shown == "chance" || shown == "skipped" => {
                if holder > chosen {
                    "load"
                } else {
                    "chance"
                }
            }
            // Without costs of a log only how many there are is compared.
            _ => shown,
        };
        self.lose(by_log, counted_blocks, 0);
        self.lose(shown, 0, shown_blocks);
    }
}

fn compare(folder: &Path) -> Option<Compared> {
    let raw = Raw::read(folder).ok()?;
    let counted = count(folder, &raw).unwrap();
    if counted.is_empty() {
        return None;
    }
    let cluster = cluster_of(&Recording::at(folder));
    let mut compared = Compared::default();
    for one in &counted {
        let is_of = |decided: &&DecisionEntry| {
            let worker = cluster.worker(decided.decision.worker).map(|worker| worker.id);
            decided.decision.request_id.as_deref() == Some(one.request_id.as_str())
                && worker.is_some_and(|id| (id.id.0, u64::from(id.dp_rank)) == one.worker)
        };
        match cluster.decisions().newest_first().find(is_of) {
            Some(decided) => compared.compare(&cluster, decided, one),
            None => compared.not_shown += 1,
        }
    }
    Some(compared)
}

/// Compares every recording, and prints a table of what was compared.
#[test]
fn steps_and_causes_of_reuse_are_those_of_an_independent_count() {
    let mut folders: Vec<PathBuf> = ["captures", "topologies", "routing"]
        .into_iter()
        .map(|folder| fixtures().with_file_name(folder))
        .collect();
    folders.extend(std::env::var_os(CAPTURES_VARIABLE).map(PathBuf::from));
    let (mut prompts, mut differences, mut not_shown) = (0, 0, 0);
    let (mut lost, mut displaced) = (BTreeMap::<&str, u64>::new(), (0, 0));
    println!(
        "| Recording | Prompts | Sure | Blocks | Ever cached | Held | Eligible | Chosen | Reported tokens, held tokens | Only counted | Different |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for folder in folders {
        for recording in Recording::all_in(&folder) {
            let folder = folder.join(recording.name());
            let Some(compared) = compare(&folder) else { continue };
            let Compared { counted, shown, .. } = &compared;
            let cell = |at: usize| {
                if counted[at] == shown[at] {
                    counted[at].to_string()
                } else {
                    format!("**{} not {}**", shown[at], counted[at])
                }
            };
            println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {:?} | {} | {} |",
                recording.name(),
                compared.prompts,
                compared.sure,
                cell(0),
                cell(1),
                cell(2),
                cell(3),
                cell(4),
                compared.reported,
                compared.not_shown,
                compared.differences.len(),
            );
            println!("    {:?}, displaced {:?}", compared.lost, compared.displaced);
            displaced = (displaced.0 + compared.displaced.0, displaced.1 + compared.displaced.1);
            compared.differences.iter().for_each(|difference| println!("    {difference}"));
            prompts += compared.prompts;
            differences += compared.differences.len();
            not_shown += compared.not_shown;
            compared.lost.iter().for_each(|(cause, (blocks, _))| *lost.entry(cause).or_default() += blocks);
            assert!(compared.expected == 0 || recording.name().contains("predicted"), "{}", recording.name());
            let is_equal = compared.lost.values().all(|(counted, shown)| counted == shown);
            assert!(
                is_equal || !compared.differences.is_empty(),
                "{}: {:?}",
                recording.name(),
                compared.lost
            );
        }
    }
    println!("{prompts} prompts, {lost:?}, displaced {displaced:?}");
    assert!(prompts > 1_000, "{prompts}");
    assert!(
        ["evicted", "worker_left", "load", "not_eligible"].iter().all(|cause| lost[cause] > 0),
        "{lost:?}"
    );
    assert_eq!((differences, not_shown), (0, 0));
    assert!(displaced.0 >= 6 && displaced.1 == displaced.0, "{displaced:?}");
}
