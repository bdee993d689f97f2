//! Behaviour of responses on small states that are known block by block.

use proptest::prelude::*;

use super::*;
use radixscope_model::id::{BlockHash, DecisionId, Seq, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    self, Block, Completeness, Decision, DecisionSource, Entry, Progress, Record, SourceKind,
};
use radixscope_router::hash::{Seed, chain};

const AT: u64 = 1_800_000_000_000;

/// Workers of one component, with cards that say 16 tokens a block.
struct Scene {
    cluster: Cluster,
    at: u64,
}

impl Scene {
    fn new(workers: u16) -> Self {
        let mut scene = Self { cluster: Cluster::default(), at: AT };
        scene.fold(Record::Source { source: SourceIx(0), name: "n".into(), kind: SourceKind::Nats });
        for w in 0..workers {
            let id = Worker::new(100 + u64::from(w), 0);
            scene.fold(Record::new_worker(WorkerIx(w.into()), id, "dynamo", "backend"));
            let (worker, block_size_tokens) = (WorkerIx(w.into()), Some(16));
            scene.fold(Record::ModelCard {
                worker,
                total_kv_blocks: None,
                block_size_tokens,
                publishes_events: None,
            });
        }
        scene
    }

    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
    }

    /// `worker` holds the blocks with these local hashes, a prompt's first ones.
    fn hold(&mut self, worker: u16, own: impl IntoIterator<Item = u64>) {
        let blocks: Vec<Block> = own
            .into_iter()
            .map(|own| Block { block_hash: BlockHash(own + 500), tokens_hash: TokensHash(own) })
            .collect();
        self.fold(Record::Stored { worker: WorkerIx(worker.into()), parent: None, blocks: blocks.into() });
    }

    fn load(&mut self, worker: u16, router: u64, prefill_tokens: u64, decode_blocks: u64) {
        self.fold(Record::RouterLoad {
            worker: WorkerIx(worker.into()),
            router: Some(router),
            decode_blocks: Some(decode_blocks),
            prefill_tokens: Some(prefill_tokens),
        });
    }

    fn state(&self) -> WhatIfState<'_> {
        WhatIfState { cluster: &self.cluster, active: None, now_ms: Millis(self.at) }
    }

    fn costs(&self, question: &WhatIfRequest) -> Vec<(CandidateRef, f64)> {
        let mut engine = WhatIf::default();
        let response = engine.score(self.state(), question).expect("answered");
        response.ranked().map(|c| (c.candidate.worker, c.candidate.cost)).collect()
    }

    fn notes(&self, question: &WhatIfRequest) -> String {
        WhatIf::default().score(self.state(), question).expect("answered").notes.join("\n")
    }

    fn refused(&self, question: &WhatIfRequest) -> String {
        WhatIf::default().score(self.state(), question).expect_err("refused").to_string()
    }
}

fn w(ix: u16) -> CandidateRef {
    CandidateRef::Worker(WorkerIx(ix.into()))
}

fn local(hashes: impl IntoIterator<Item = u64>, isl_tokens: Option<u64>) -> WhatIfRequest {
    let hashes = Hashes::Local(hashes.into_iter().collect());
    let prompt = Prompt::Blocks(Blocks { hashes, isl_tokens, block_size_tokens: None });
    WhatIfRequest { prompt, ..WhatIfRequest::default() }
}

#[test]
fn the_worked_example_needs_no_cluster() {
    let costs = Scene::new(0).costs(&WhatIfRequest::default());
    assert_eq!(
        costs,
        [
            (CandidateRef::Example(1), 30.0),
            (CandidateRef::Example(0), 90.0),
            (CandidateRef::Example(2), 99.0)
        ]
    );
}

#[test]
fn what_a_worker_holds_and_has_to_do_is_its_cost() {
    let mut scene = Scene::new(2);
    scene.hold(0, 1..=7);
    scene.load(0, 9, 32, 40);
    scene.load(1, 9, 0, 0);
    let question = local(1..=7, Some(122));
    assert_eq!(scene.costs(&question), [(w(1), 14.625), (w(0), (32.0 + 10.0) / 16.0 + 47.0)]);
    let busy =
        Busy { decode_blocks: Adjustment::Set(0), prefill_tokens: Adjustment::Add(-99), ..Busy::default() };
    let changes = WorkerChanges { busy: vec![(w(0), busy)], ..WorkerChanges::default() };
    assert_eq!(scene.costs(&WhatIfRequest { changes, ..question })[0], (w(0), 7.625));
}

#[test]
fn chain_and_local_hashes_and_token_ids_ask_the_same() {
    let mut scene = Scene::new(2);
    let tokens: Vec<u32> = (0..100).collect();
    let by_tokens = Blocks::of_tokens(&tokens, 16, Seed::PLAIN);
    let Hashes::Local(own) = by_tokens.hashes.clone() else { panic!("local") };
    scene.hold(1, own[..4].iter().copied());
    let links = chain(&own.iter().map(|&own| TokensHash(own)).collect::<Vec<_>>());
    let by_chain = Hashes::Chain(links.iter().map(|hash| hash.0).collect());
    let by_chain = Blocks { hashes: by_chain, isl_tokens: Some(100), block_size_tokens: None };
    let ask = |blocks: &Blocks| {
        scene.costs(&WhatIfRequest { prompt: Prompt::Blocks(blocks.clone()), ..WhatIfRequest::default() })
    };
    assert_eq!(ask(&by_tokens), ask(&by_chain));
    assert_eq!(ask(&by_tokens)[0], (w(1), (100.0 - 64.0) / 16.0 + 6.0));
}

#[test]
fn a_prompt_can_go_on_where_a_held_one_ends() {
    let mut scene = Scene::new(2);
    scene.hold(0, 1..=7);
    let after = |block: u64| WhatIfRequest {
        prompt: Prompt::After { worker: WorkerIx(0), block_hash: BlockHash(block), new_tokens: 33 },
        ..WhatIfRequest::default()
    };
    assert_eq!(scene.costs(&after(503)), [(w(0), 33.0 / 16.0 + 5.0), (w(1), 81.0 / 16.0 + 5.0)]);
    assert!(scene.refused(&after(77)).contains("block 77 is not cached on worker 100/0"));
}

#[test]
fn holes_count_for_the_versions_that_count_so() {
    let mut scene = Scene::new(2);
    scene.hold(0, 1..=4);
    scene.hold(1, 1..=4);
    scene.fold(Record::Removed { worker: WorkerIx(0), hashes: vec![BlockHash(502)].into() });
    let overlap = |options: RouterSettings| {
        let question = WhatIfRequest { options, ..local(1..=4, None) };
        let mut engine = WhatIf::default();
        let response = engine.score(scene.state(), &question).expect("answered");
        response.ranked().find(|c| c.candidate.worker == w(0)).expect("W1").candidate.overlap_blocks
    };
    let of = |version| overlap(RouterSettings::of_version(version).expect("known"));
    assert_eq!((of("0.9.1"), of("1.1.0"), of("1.6.1")), (3, 1, 1));
}

#[test]
fn unknown_loads_are_reported_and_never_silently_nothing() {
    let mut scene = Scene::new(2);
    scene.hold(0, 1..=2);
    let notes = scene.notes(&local(1..=2, None));
    assert!(notes.contains("Loads are unknown") && notes.contains("--router-replica-sync"), "{notes}");
    assert!(notes.contains("No KV event was received from 1 of the workers"), "{notes}");
    assert!(notes.contains("every worker is charged all 2"), "{notes}");
    assert!(notes.contains("length is taken as its 2 full blocks"), "{notes}");
}

#[test]
fn estimates_of_several_routers_are_not_mixed() {
    let mut scene = Scene::new(2);
    scene.load(0, 7, 0, 10);
    scene.load(1, 7, 0, 20);
    scene.at += 2_500;
    scene.load(0, 8, 0, 1);
    let question = local([1], None);
    assert_eq!(scene.costs(&question), [(w(1), 2.0), (w(0), 3.0)], "router 8 reported nothing of W2");
    let notes = scene.notes(&question);
    assert!(notes.contains("router 8, up to 0.0 s old. 1 other routers"), "{notes}");
    assert!(notes.contains("reported nothing of 1 workers"), "{notes}");
    let question = WhatIfRequest { router: Some(7), ..question };
    assert_eq!(scene.costs(&question), [(w(0), 12.0), (w(1), 22.0)]);
    assert!(scene.notes(&question).contains("router 7, up to 2.5 s old"));
}

/// Decision `id` of `worker`, with a prompt of 122 tokens of which it held 7 blocks.
fn decide(scene: &mut Scene, id: u64, worker: u16) {
    let mut decision =
        Decision::new(DecisionId(id), WorkerIx(worker.into()), DecisionSource::ActiveSequences);
    decision.isl_tokens = Some(122);
    decision.block_size_tokens = Some(16);
    decision.overlap_blocks = Some(7);
    scene.fold(Record::Decision(Box::new(decision)));
}

#[test]
fn decisions_whose_end_is_not_received_load_their_worker_where_ends_are_received() {
    let mut scene = Scene::new(2);
    for id in 1..=4 {
        decide(&mut scene, id, u16::from(id != 4));
    }
    let question = local([1], None);
    assert!(scene.notes(&question).contains("Loads are unknown"));
    let progress = |first: bool, ended: bool| Progress {
        first_token_ms: first.then_some(Millis(AT)),
        ended_ms: ended.then_some(Millis(AT)),
        ..Progress::default()
    };
    scene.fold(Record::Progress { decision: DecisionId(1), progress: Box::new(progress(true, true)) });
    scene.fold(Record::Progress { decision: DecisionId(2), progress: Box::new(progress(true, false)) });
    assert_eq!(scene.costs(&question), [(w(0), 2.0 + 7.0 + 10.0 / 16.0), (w(1), 2.0 + 14.0 + 10.0 / 16.0)]);
    assert!(scene.notes(&question).contains("whose end was not received"));
    scene.at += 300_001;
    assert!(scene.notes(&question).contains("Loads are unknown"), "the router has forgotten them too");
}

/// Four candidates as the router's log gives them.
fn record(scene: &mut Scene) -> WhatIfRequest {
    let mut decision = Decision::new(DecisionId(5), WorkerIx(2), DecisionSource::Log);
    decision.isl_tokens = Some(122);
    decision.block_size_tokens = Some(16);
    (decision.formula, decision.prefill_factor) = (Some(Formula::A), Some(1.0));
    decision.completeness = Completeness::AllCandidates;
    let rows = [(0, 7.625, 9.0), (2, 5.625, 12.0), (7, 0.625, 9.0), (7, 3.0, 7.0)];
    decision.candidates = rows
        .iter()
        .zip(0..)
        .map(|(&(overlap_blocks, prefill_blocks, decode_blocks), ix)| record::Candidate {
            worker: WorkerIx(ix),
            overlap_blocks,
            host_blocks: 0,
            disk_blocks: 0,
            prefill_blocks,
            decode_blocks,
            cost: prefill_blocks + decode_blocks,
            tree_size: None,
        })
        .collect();
    scene.fold(Record::Decision(Box::new(decision)));
    let id = DecisionId(5);
    WhatIfRequest { prompt: Prompt::Recorded(id), actual: Some(id), ..WhatIfRequest::default() }
}

#[test]
fn a_recorded_decision_comes_out_as_it_was_taken() {
    let mut scene = Scene::new(4);
    let question = record(&mut scene);
    assert_eq!(scene.costs(&question), [(w(2), 9.625), (w(3), 10.0), (w(0), 16.625), (w(1), 17.625)]);
    let mut engine = WhatIf::default();
    let name = |who| format!("{who:?}");
    let versus = engine.score(scene.state(), &question).expect("answered").versus.expect("compared");
    assert_eq!((versus.rank, versus.changes_worker, versus.above_best_blocks), (Some(1), false, Some(0.0)));
    let says = "The router chose Worker(WorkerIx(2)). Here it costs least too, by 0.375 blocks.";
    assert_eq!(versus.sentence(name), says);
}

#[test]
fn another_weight_a_missing_worker_and_a_busier_one_change_the_choice_and_say_so() {
    let mut scene = Scene::new(4);
    let question = record(&mut scene);
    let mut engine = WhatIf::default();
    let name = |who| match who {
        CandidateRef::Worker(ix) => ix.to_string(),
        other => format!("{other:?}"),
    };
    let mut say = |question: &WhatIfRequest| {
        engine.score(scene.state(), question).expect("answered").versus.expect("compared").sentence(name)
    };
    let mut other = question.clone();
    other.options.overlap_score_weight = 0.1;
    assert_eq!(
        say(&other),
        "The router chose W3. Here W4 costs least: W3 is number 2 of 4, 1.763 blocks above it."
    );
    let changes = WorkerChanges { left_out: vec![w(2)], ..WorkerChanges::default() };
    let without = WhatIfRequest { changes, ..question.clone() };
    assert_eq!(say(&without), "The router chose W3. It cannot be chosen here, and W4 costs least.");
    let busy = Busy { decode_blocks: Adjustment::Add(1), ..Busy::default() };
    let changes = WorkerChanges { busy: vec![(w(2), busy)], ..WorkerChanges::default() };
    let busier = WhatIfRequest { changes, ..question };
    assert!(say(&busier).contains("W4 costs least"));
}

#[test]
fn what_cannot_be_answered_says_which_part_is_at_fault() {
    let mut scene = Scene::new(1);
    decide(&mut scene, 1, 0);
    let recorded =
        |id| WhatIfRequest { prompt: Prompt::Recorded(DecisionId(id)), ..WhatIfRequest::default() };
    assert!(scene.refused(&recorded(1)).contains("only the chosen worker is known"));
    assert!(scene.refused(&recorded(9)).contains("decision 9 is not retained"));
    let rechunked = WhatIfRequest { block_size_tokens: Some(32), ..local([1], None) };
    assert!(scene.refused(&rechunked).contains("needs its token ids"));
    assert!(scene.refused(&local([1, 2], Some(31))).contains("has no 2 full blocks of 16"));
    let out = WorkerChanges { left_out: vec![w(0)], ..WorkerChanges::default() };
    assert!(scene.refused(&WhatIfRequest { changes: out, ..local([1], None) }).contains("no worker"));
    let long = WhatIfRequest { prompt: Prompt::Length { isl_tokens: u64::MAX }, ..WhatIfRequest::default() };
    assert!(scene.refused(&long).contains("at most"));
    let zero = WhatIfRequest { block_size_tokens: Some(0), ..local([1], None) };
    assert!(scene.refused(&zero).contains("expected 1 to"));
    let mut bad = local([1], None);
    bad.options.router_temperature = f64::NAN;
    let error = WhatIf::default().score(scene.state(), &bad).expect_err("refused");
    assert_eq!(error.field(), "options");
}

#[test]
fn a_thousand_workers_and_ten_thousand_blocks_take_the_same_path_without_an_allocation_each() {
    const WORKERS: u16 = 1_000;
    const BLOCKS: u64 = 10_000;
    let mut scene = Scene::new(WORKERS);
    for worker in 0..WORKERS {
        let held = (u64::from(worker) % 40 + 1) * BLOCKS / 41;
        scene.hold(worker, 1..=held);
        scene.load(worker, 9, u64::from(worker), u64::from(worker % 7));
    }
    let question = local(1..=BLOCKS, None);
    let mut engine = WhatIf::default();
    let best = engine.score(scene.state(), &question).expect("answered").ranked().next().expect("one");
    assert_eq!((best.candidate.worker, best.candidate.overlap_blocks), (w(39), (40 * BLOCKS / 41) as u32));
    let warm = allocation_counter::measure(|| {
        engine.score(scene.state(), &question).expect("answered");
    });
    assert!(warm.count_total < 64, "{warm:?}");
}

fn any_options() -> impl Strategy<Value = RouterSettings> {
    let formula = prop::sample::select(Formula::ALL.to_vec());
    (formula, 0.0..4.0_f64, 0.0..2.0_f64, 0.0..2.0_f64).prop_map(|(formula, factor, credit, r)| {
        let mut options = RouterSettings::new(formula);
        options.set_prefill_factor(factor);
        options.overlap_score_credit = credit;
        options.decode_active_request_weight = r;
        options
    })
}

proptest! {
    #[test]
    fn an_idle_empty_worker_more_leaves_the_others_as_they_are_and_without_the_best_the_second_wins(
        held in prop::collection::vec(0..40_u64, 2..8),
        loads in prop::collection::vec((0..4_000_u64, 0..300_u64), 8),
        options in any_options(),
    ) {
        let mut scene = Scene::new(held.len() as u16);
        for ((worker, &held), &(prefill, decode)) in (0..).zip(&held).zip(&loads) {
            scene.hold(worker, 1..=held);
            scene.load(worker, 9, prefill, decode);
        }
        let question = WhatIfRequest { options, ..local(1..=40, None) };
        let before = scene.costs(&question);
        let changes = WorkerChanges { added: 1, ..WorkerChanges::default() };
        let more = scene.costs(&WhatIfRequest { changes, ..question.clone() });
        prop_assert_eq!(more.len(), before.len() + 1);
        let others: Vec<_> = more.into_iter().filter(|(who, _)| *who != CandidateRef::Added(0)).collect();
        prop_assert_eq!(&others, &before);
        let changes = WorkerChanges { left_out: vec![before[0].0], ..WorkerChanges::default() };
        let without = scene.costs(&WhatIfRequest { changes, ..question });
        prop_assert_eq!(&without[..], &before[1..]);
    }
}
