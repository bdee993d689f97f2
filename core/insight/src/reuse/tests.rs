//! Steps and causes add up, and each cause is found by what was recorded.

use super::*;
use crate::time_range::TimeSpan;
use radixscope_model::id::{DecisionId, Seq, Worker, WorkerIx};
use radixscope_model::record::{
    Candidate, Completeness, DecidedBy, Decision, DecisionSource, Entry, GoneBlock, GoneReason, Progress,
    Record,
};
use radixscope_state::cluster::Cluster;

const NOW: u64 = 1_800_000_000_000;

struct Scene(Cluster);

impl Scene {
    fn new() -> Self {
        let mut scene = Self(Cluster::default());
        for w in 0..3 {
            scene.fold(Record::new_worker(
                WorkerIx(w),
                Worker::new(100 + u64::from(w), 0),
                "dynamo",
                "backend",
            ));
        }
        scene
    }

    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.0.seq().0 + 1);
        self.0.fold(seq, &Entry { at_ms: Millis(NOW), record });
    }

    /// A prompt of 105 tokens in blocks of 10 that worker 0 was chosen for.
    fn decide(&mut self, change: impl FnOnce(&mut Decision, &mut Reuse, &mut Progress)) -> &DecisionEntry {
        let id = DecisionId(self.0.decisions().newest_first().len() as u64 + 1);
        let mut decision = Decision::new(id, WorkerIx(0), DecisionSource::Log);
        (decision.isl_tokens, decision.block_size_tokens) = (Some(105), Some(10));
        let mut reuse = Reuse {
            decision: id,
            prompt_blocks: 10,
            seen_blocks: 8,
            held_blocks: 8,
            eligible_blocks: 8,
            chosen_blocks: 8,
            holder: Some(WorkerIx(0)),
            gone: None,
            known_since_ms: Millis(NOW - 60_000),
            lacked_blocks: false,
            displaced_by: None,
        };
        let mut progress = Progress::default();
        change(&mut decision, &mut reuse, &mut progress);
        self.fold(Record::Decision(Box::new(decision)));
        self.fold(Record::Reuse(Box::new(reuse)));
        self.fold(Record::Progress { decision: id, progress: Box::new(progress) });
        self.0.decisions().get(id).unwrap()
    }
}

fn gone(why: GoneReason) -> Option<GoneBlock> {
    Some(GoneBlock { worker: WorkerIx(1), at_ms: Millis(NOW - 41_000), why, held_blocks: 900 })
}

fn candidate(worker: u32, cost: f64) -> Candidate {
    Candidate {
        worker: WorkerIx(worker),
        overlap_blocks: 0,
        host_blocks: 0,
        disk_blocks: 0,
        prefill_blocks: 0.0,
        decode_blocks: 0.0,
        cost,
        tree_size: None,
    }
}

/// Worker 2 held more than the chosen one.
fn skip(reuse: &mut Reuse) {
    (reuse.chosen_blocks, reuse.holder) = (3, Some(WorkerIx(2)));
}

/// Costs of the chosen worker, 5 blocks, and of worker 2.
fn weigh(decision: &mut Decision, holder: f64) {
    decision.completeness = Completeness::AllCandidates;
    decision.candidates = vec![candidate(0, 5.0), candidate(2, holder)];
    decision.candidates[1].overlap_blocks = 8;
}

/// Tokens of a prompt are those reused and those lost.
fn adds_up(reuse: &PromptReuse) {
    let lost: u64 = reuse.losses.iter().map(|(_, tokens)| tokens).sum();
    let reused = reuse.reused.map_or(reuse.steps[4], |reused| reused.min(reuse.steps[4]));
    assert_eq!(lost + reused, reuse.steps[0], "{reuse:?}");
    assert!(reuse.steps.is_sorted_by(|a, b| a >= b), "{reuse:?}");
}

#[test]
fn each_cause_is_found_by_what_was_recorded() {
    type Change = fn(&mut Decision, &mut Reuse, &mut Progress);
    let table: [(Change, LossCause, u64); 15] = [
        (|_, _, _| {}, LossCause::FirstSeen, 20),
        (|_, reuse, _| reuse.lacked_blocks = true, LossCause::NotKnown, 20),
        (
            |_, reuse, _| {
                (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
                    (5, 5, 5, gone(GoneReason::Evicted))
            },
            LossCause::Evicted,
            30,
        ),
        (
            |_, reuse, _| {
                (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
                    (5, 5, 5, gone(GoneReason::Cleared))
            },
            LossCause::Cleared,
            30,
        ),
        (
            |_, reuse, _| {
                (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
                    (5, 5, 5, gone(GoneReason::Left))
            },
            LossCause::WorkerLeft,
            30,
        ),
        (
            |_, reuse, _| {
                (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
                    (5, 5, 5, gone(GoneReason::NotReported))
            },
            LossCause::EventLost,
            30,
        ),
        (
            |_, reuse, _| (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks) = (5, 5, 5),
            LossCause::Scattered,
            30,
        ),
        (|_, reuse, _| (reuse.eligible_blocks, reuse.chosen_blocks) = (4, 4), LossCause::NotEligible, 40),
        (|_, reuse, _| skip(reuse), LossCause::Skipped, 50),
        (
            |decision, reuse, _| {
                weigh(decision, 9.0);
                skip(reuse);
            },
            LossCause::Load,
            50,
        ),
        (
            // Of 8 blocks that it held the router counted 2, fewer than of the chosen one.
            |decision, reuse, _| {
                weigh(decision, 9.0);
                decision.candidates[1].overlap_blocks = 2;
                skip(reuse);
            },
            LossCause::RouterIndex,
            50,
        ),
        (
            |decision, reuse, _| {
                weigh(decision, 5.0);
                skip(reuse);
            },
            LossCause::Chance,
            50,
        ),
        (
            |decision, reuse, _| {
                decision.decided_by = Some(DecidedBy::SessionAffinity);
                skip(reuse);
            },
            LossCause::Affinity,
            50,
        ),
        (
            |decision, reuse, _| {
                decision.decided_by = Some(DecidedBy::Policy);
                skip(reuse);
            },
            LossCause::Policy,
            50,
        ),
        (|_, _, progress| progress.cached_tokens = Some(48), LossCause::EngineHadLess, 32),
    ];
    for (change, cause, tokens) in table {
        let mut scene = Scene::new();
        let reuse = PromptReuse::of(scene.decide(change)).unwrap();
        adds_up(&reuse);
        assert_eq!(reuse.worst(), Some((cause, tokens)), "{reuse:?}");
        assert!(reuse.losses.contains(&(LossCause::BelowBlock, 5)));
    }
}

#[test]
fn an_engine_computes_the_last_block_of_a_prompt_that_is_cached_whole() {
    let mut scene = Scene::new();
    let whole = scene.decide(|decision, reuse, progress| {
        decision.isl_tokens = Some(100);
        (reuse.seen_blocks, reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks) = (10, 10, 10, 10);
        progress.cached_tokens = Some(90);
    });
    let reuse = PromptReuse::of(whole).unwrap();
    adds_up(&reuse);
    assert_eq!((reuse.losses, reuse.reused), (vec![(LossCause::BelowBlock, 10)], Some(90)));
}

#[test]
fn what_an_engine_reused_beyond_its_events_is_counted_apart() {
    let mut scene = Scene::new();
    let reuse = PromptReuse::of(scene.decide(|_, _, progress| progress.cached_tokens = Some(100))).unwrap();
    assert_eq!((reuse.reused, reuse.surplus_tokens), (Some(100), 20));
}

#[test]
fn what_is_not_known_is_left_out_and_counted() {
    let mut scene = Scene::new();
    scene.decide(|_, _, _| {});
    scene.decide(|decision, _, _| decision.dispatched = Some(false));
    scene.decide(|decision, _, _| decision.isl_tokens = None);
    let id = DecisionId(9);
    scene.fold(Record::Decision(Box::new(Decision::new(id, WorkerIx(1), DecisionSource::Log))));
    let funnel = Funnel::of(scene.0.decisions().newest_first());
    assert_eq!(funnel.decisions, 1);
    assert_eq!(funnel.left_out, [(NoReuse::Query, 1), (NoReuse::NotVisible, 1), (NoReuse::Length, 1)]);
}

#[test]
fn a_funnel_sums_steps_and_losses_of_a_selection() {
    let mut scene = Scene::new();
    scene.decide(|_, _, progress| {
        (progress.cached_tokens, progress.prefill_us, progress.ttft_us) =
            (Some(80), Some(2_500), Some(4_000));
    });
    scene.decide(|decision, reuse, _| {
        decision.worker = WorkerIx(1);
        (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
            (5, 5, 5, gone(GoneReason::Evicted));
    });
    let funnel = Funnel::of(scene.0.decisions().newest_first());
    assert_eq!(funnel.steps, [210, 160, 130, 130, 130]);
    assert_eq!(funnel.reported, (1, 80, 80));
    let losses: Vec<_> = funnel.losses.iter().map(|loss| (loss.cause, loss.tokens, loss.decisions)).collect();
    assert_eq!(
        losses,
        [(LossCause::FirstSeen, 40, 2), (LossCause::Evicted, 30, 1), (LossCause::BelowBlock, 10, 2)]
    );
    assert_eq!(funnel.worst().map(|loss| loss.cause), Some(LossCause::FirstSeen));
    assert_eq!(funnel.prefill_ms(40), Some(4.0));
    assert_eq!(funnel.share(Step::Reused), Some(130.0 / 210.0));
    let of_one = |decided: &&DecisionEntry| decided.decision.worker == WorkerIx(1);
    assert_eq!(Funnel::of(scene.0.decisions().newest_first().filter(of_one)).decisions, 1);
}

#[test]
fn the_parts_of_a_time_and_the_sessions_add_up_to_the_funnel() {
    let mut scene = Scene::new();
    let evict = |reuse: &mut Reuse| {
        (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
            (5, 5, 5, gone(GoneReason::Evicted));
    };
    for (session, at) in [("a", NOW), ("a", NOW + 9_999), ("b", NOW + 5_000), ("c", NOW + 10_000)] {
        scene.decide(|decision, reuse, _| {
            (decision.session, decision.decided_ms) = (Some(session.to_owned()), Some(Millis(at)));
            if session != "c" {
                evict(reuse);
            }
        });
    }
    let span = TimeSpan { from: Millis(NOW), until: Millis(NOW + 10_000) };
    let (mut trend, mut sessions) = (Trend::new(span, 2), Sessions::default());
    let funnel = Funnel::with_parts(scene.0.decisions().newest_first(), &mut trend, &mut sessions);
    assert_eq!(funnel, Funnel::of(scene.0.decisions().newest_first()));
    let prompts: Vec<u64> = trend.parts.iter().map(|part| part.steps[0]).collect();
    assert_eq!((prompts, trend.begin(1)), (vec![105, 315], Millis(NOW + 5_000)));
    assert_eq!(trend.parts[0].shares(), Some([80.0, 50.0, 50.0, 50.0].map(|tokens| tokens / 105.0)));
    let lost: Vec<_> =
        sessions.largest(5).into_iter().map(|of| (of.session, of.decisions, of.lost_tokens)).collect();
    assert_eq!(lost, [("a".to_owned(), 2, 60), ("b".to_owned(), 1, 30)]);
    assert_eq!(sessions.largest(1).len(), 1);
}

#[test]
fn half_of_what_could_be_avoided_is_lost_to_few_causes() {
    let mut scene = Scene::new();
    scene.decide(|_, reuse, _| {
        (reuse.held_blocks, reuse.eligible_blocks, reuse.chosen_blocks, reuse.gone) =
            (4, 4, 4, gone(GoneReason::Evicted));
    });
    scene.decide(|decision, reuse, _| {
        weigh(decision, 9.0);
        skip(reuse);
    });
    scene.decide(|_, reuse, _| (reuse.eligible_blocks, reuse.chosen_blocks) = (7, 7));
    let funnel = Funnel::of(scene.0.decisions().newest_first());
    let half: Vec<_> = funnel.half_of_avoidable().iter().map(|loss| (loss.cause, loss.tokens)).collect();
    assert_eq!(half, [(LossCause::Load, 50)], "of 100");
    assert!(Funnel::default().half_of_avoidable().is_empty());
}
