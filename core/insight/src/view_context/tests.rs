//! Pools as they are chosen, named and added up.

use radixscope_model::id::{BlockHash, DecisionId, Millis, PoolIx, Seq, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{
    Block, Decision, DecisionSource, DepartureCause, Entry, KnowledgeWhy, Record, Role, RoleEvidence,
    TreeKnowledge,
};
use radixscope_state::cluster::Cluster;

use crate::block_rates::{MAX_BANDS, OTHERS, band_workers};

use super::{LISTED_AFTER_LEAVING_MS, PoolQuery, ShownPools, Sums, Unit, ViewContext};

const NOW: u64 = 1_800_000_000_000;

/// A state to which a worker at a time is added.
#[derive(Default)]
struct Fixture(Cluster);

impl Fixture {
    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.0.seq().0 + 1);
        self.0.fold(seq, &Entry { at_ms: Millis(NOW), record });
    }

    fn worker(&mut self, namespace: &'static str, component: &'static str) -> WorkerIx {
        let worker = WorkerIx(self.0.workers().len() as u32);
        let id = Worker::new(u64::from(worker.0) + 100, 0);
        self.fold(Record::new_worker(worker, id, namespace, component));
        worker
    }

    fn model(&mut self, worker: WorkerIx, name: &'static str) {
        self.fold(Record::Model { worker, name: name.into() });
    }

    fn role(&mut self, worker: WorkerIx, role: Role) {
        self.fold(Record::Role { worker, role, evidence: RoleEvidence::Card });
    }

    fn card(&mut self, worker: WorkerIx, block_size_tokens: Option<u32>, publishes_events: Option<bool>) {
        self.fold(Record::ModelCard { worker, total_kv_blocks: None, block_size_tokens, publishes_events });
    }

    /// Stores so many blocks, others than any other worker.
    fn store(&mut self, worker: WorkerIx, blocks: u64) {
        let first = 1_000 * (u64::from(worker.0) + 1);
        let block = |n: u64| Block { block_hash: BlockHash(first + n), tokens_hash: TokensHash(first + n) };
        let blocks: Vec<Block> = (0..blocks).map(block).collect();
        self.fold(Record::Stored { worker, parent: None, blocks: blocks.into() });
    }

    fn decision(&mut self, id: u64, worker: WorkerIx, isl_blocks: u64, overlap_blocks: u64) {
        let decision = Decision::new(DecisionId(id), worker, DecisionSource::KvHitRate);
        self.fold(Record::Decision(Box::new(Decision {
            isl_blocks: Some(isl_blocks),
            overlap_blocks: Some(overlap_blocks),
            ..decision
        })));
    }

    fn shown(&self, query: PoolQuery) -> ViewContext<'_> {
        ViewContext::new(&self.0, ShownPools::of(&self.0, &query))
    }

    fn all(&self) -> ViewContext<'_> {
        self.shown(PoolQuery::default())
    }

    fn only(&self, pool: &str) -> ViewContext<'_> {
        self.shown(PoolQuery { pool: Some(pool.to_owned()), model: None })
    }
}

/// Two models, two workers each.
fn two_models() -> Fixture {
    let mut fixture = Fixture::default();
    for (component, model) in [("backend", "tiny-llama"), ("backend2", "tiny-two")] {
        for _ in 0..2 {
            let worker = fixture.worker("dynamo", component);
            fixture.model(worker, model);
        }
    }
    fixture
}

/// A prefill worker and two decode workers of one model.
fn disaggregated() -> Fixture {
    let mut fixture = Fixture::default();
    for (component, role) in
        [("prefill", Role::Prefill), ("backend", Role::Decode), ("backend", Role::Decode)]
    {
        let worker = fixture.worker("dynamo", component);
        fixture.role(worker, role);
        fixture.model(worker, "tiny-llama");
    }
    fixture
}

fn titles(shown: ViewContext<'_>) -> Vec<String> {
    shown.pool_labels().iter().map(|label| label.to_text()).collect()
}

fn beside(shown: ViewContext<'_>) -> Vec<String> {
    let all = shown.pool_labels();
    all.iter().map(|label| label.beside(&all)).collect()
}

#[test]
fn one_pool_is_no_choice() {
    let mut fixture = Fixture::default();
    let worker = fixture.worker("dynamo", "backend");
    fixture.model(worker, "tiny-llama");
    assert!(titles(fixture.all()).is_empty());
    assert_eq!(titles(fixture.only("dynamo/backend")).len(), 1, "who chose it must be able to undo that");
}

#[test]
fn pools_are_named_by_component_and_by_namespace_where_that_differs() {
    assert_eq!(titles(two_models().all()), ["backend · tiny-llama", "backend2 · tiny-two"]);
    let mut fixture = Fixture::default();
    fixture.worker("teama", "backend");
    fixture.worker("teamb", "backend");
    assert_eq!(titles(fixture.all()), ["teama/backend", "teamb/backend"]);
    assert_eq!(beside(fixture.all()), ["teama/backend", "teamb/backend"]);
}

#[test]
fn a_worker_is_distinguished_by_what_differs() {
    assert_eq!(beside(two_models().all()), ["tiny-llama", "tiny-two"]);
    let disaggregated = disaggregated();
    assert_eq!(titles(disaggregated.all()), ["prefill · tiny-llama", "backend · decode · tiny-llama"]);
    assert_eq!(beside(disaggregated.all()), ["prefill", "decode"]);
}

#[test]
fn workers_without_a_component_are_no_pool_beside_a_named_one() {
    let mut fixture = Fixture::default();
    fixture.worker("dynamo", "backend");
    fixture.worker("dynamo", "");
    assert!(titles(fixture.all()).is_empty());
}

#[test]
fn the_address_names_a_pool_or_the_first_of_a_model_that_holds_blocks() {
    let mut fixture = two_models();
    fixture.store(WorkerIx(3), 5);
    assert_eq!(fixture.all().pool, PoolIx(1), "the first that holds blocks");
    let only = fixture.only("dynamo/backend");
    assert_eq!((only.pool, only.only), (PoolIx(0), Some(PoolIx(0))));
    assert_eq!(only.worker_list().collect::<Vec<_>>(), [WorkerIx(0), WorkerIx(1)]);
    let model = fixture.shown(PoolQuery { pool: None, model: Some("tiny-two".to_owned()) });
    assert_eq!(model.only, Some(PoolIx(1)));
    let unknown = PoolQuery { pool: Some("dynamo/other".to_owned()), model: None };
    assert_eq!(unknown.find(&fixture.0), Err(("pool", "dynamo/other")));
    assert_eq!(fixture.shown(unknown).only, None, "all are shown");
}

#[test]
fn blocks_of_unequal_size_are_added_as_tokens_and_not_at_all_where_a_size_is_unknown() {
    let mut fixture = two_models();
    fixture.store(WorkerIx(0), 10);
    fixture.store(WorkerIx(2), 5);
    assert_eq!(fixture.all().held(), None, "no size is known: they may differ");
    fixture.card(WorkerIx(0), Some(16), None);
    fixture.card(WorkerIx(2), Some(16), None);
    assert_eq!(fixture.all().held(), Some((15, 15, Unit::Blocks)));
    fixture.card(WorkerIx(2), Some(32), None);
    assert_eq!(fixture.all().held(), Some((320, 320, Unit::Tokens)));
    assert_eq!(fixture.only("dynamo/backend2").held(), Some((5, 5, Unit::Blocks)));
}

#[test]
fn hit_rates_of_pools_are_added_in_tokens_or_stand_side_by_side() {
    let mut fixture = two_models();
    fixture.decision(1, WorkerIx(0), 100, 10);
    fixture.decision(2, WorkerIx(2), 100, 40);
    let sums: Sums = fixture.all().decision_sums();
    assert_eq!((sums.count, sums.hit_rate()), (2, None));
    assert_eq!(sums.apart, [("dynamo/backend".to_owned(), 0.1), ("dynamo/backend2".to_owned(), 0.4)]);
    fixture.card(WorkerIx(0), Some(16), None);
    fixture.card(WorkerIx(2), Some(32), None);
    let sums = fixture.all().decision_sums();
    assert_eq!(sums.prompts, Some((4_800, 1_440, Unit::Tokens)));
    assert_eq!(sums.hit_rate(), Some(0.3));
    assert_eq!(fixture.all().recent_sums(Millis(NOW), 60_000), sums);
    assert_eq!(fixture.only("dynamo/backend").decision_sums().hit_rate(), Some(0.1));
}

#[test]
fn decode_choices_have_no_hit_rate() {
    let mut fixture = disaggregated();
    fixture.decision(1, WorkerIx(0), 100, 80);
    fixture.decision(2, WorkerIx(1), 100, 0);
    assert_eq!(fixture.all().decision_sums().hit_rate(), Some(0.8));
    let decode = fixture.only("dynamo/backend").decision_sums();
    assert_eq!((decode.count, decode.hit_rate()), (1, None));
}

#[test]
fn coverage_is_of_the_pools_shown_and_of_who_publishes_by_design() {
    let mut fixture = disaggregated();
    let workers = |fixture: &Fixture| fixture.all().coverage().workers;
    assert_eq!(workers(&fixture), 1, "decode workers that never published do not count");
    fixture.store(WorkerIx(0), 1);
    let (worker, knowledge) = (WorkerIx(0), TreeKnowledge::Complete);
    fixture.fold(Record::Knowledge { worker, knowledge, why: KnowledgeWhy::FromFirstEvent });
    let coverage = fixture.all().coverage();
    assert_eq!((coverage.complete, coverage.workers, coverage.share()), (1, 1, Some(1.0)));
    fixture.store(WorkerIx(1), 1);
    assert_eq!(workers(&fixture), 3, "one of them does, so the other should");
    fixture.card(WorkerIx(2), None, Some(false));
    assert_eq!(workers(&fixture), 2, "by its card it does not");
    fixture.fold(Record::Left { worker: WorkerIx(1), why: DepartureCause::Log });
    assert_eq!(workers(&fixture), 1, "who left does not count");
    assert_eq!(two_models().only("dynamo/backend").coverage().workers, 2);
}

#[test]
fn workers_that_left_long_ago_are_not_listed_while_others_are_here() {
    let mut fixture = Fixture::default();
    let all = [(); 3].map(|()| fixture.worker("ns", "backend"));
    let leave = |fixture: &mut Fixture, worker| {
        fixture.fold(Record::Left { worker, why: DepartureCause::Discovery });
    };
    leave(&mut fixture, all[0]);
    let listed = |fixture: &Fixture, after_ms: u64| fixture.all().listed_workers(Millis(NOW + after_ms));
    assert_eq!(listed(&fixture, LISTED_AFTER_LEAVING_MS), all);
    assert_eq!(listed(&fixture, LISTED_AFTER_LEAVING_MS + 1), all[1..]);
    all[1..].iter().for_each(|worker| leave(&mut fixture, *worker));
    assert_eq!(listed(&fixture, LISTED_AFTER_LEAVING_MS + 1), all, "nobody is here");
}

#[test]
fn rates_have_a_band_for_each_worker_that_was_there_and_one_for_those_beyond_the_colours() {
    let mut fixture = Fixture::default();
    let all: Vec<WorkerIx> = (0..MAX_BANDS + 2).map(|_| fixture.worker("ns", "backend")).collect();
    fixture.fold(Record::Left { worker: all[0], why: DepartureCause::Discovery });
    let ids = |picked, from| {
        let shown = fixture.all();
        let bands = band_workers(&shown, picked, Millis(from));
        bands.iter().map(|band| band.id(&shown)).collect::<Vec<_>>()
    };
    let id = |at: usize| format!("{}/0", 100 + at);
    let until_now = ids(None, NOW);
    assert_eq!((until_now.len(), &until_now[0]), (MAX_BANDS + 1, &id(0)));
    assert_eq!(until_now.last().map(String::as_str), Some(OTHERS));
    let later = ids(None, NOW + 1);
    assert_eq!((later.len(), &later[0]), (MAX_BANDS, &id(1)), "it left before");
    assert_eq!(ids(Some(all[MAX_BANDS + 1]), NOW), [id(MAX_BANDS + 1)], "one alone has its own");
}
