//! A worker's block size and capacity, each with its source: the one place that decides between the sources, for panels,
//! rules and the API alike.

use super::{Cluster, ProcessState, WorkerState, is_peer};
use radixscope_model::id::{Millis, PoolIx, WorkerIx};
use radixscope_model::record::{Decision, ModelFigures, ProcessRole, RankFigures};

/// Latest decisions that are asked for a block size. Every decision with its prompt has it, so the first few are enough;
/// if none has it, looking at more would only cost time.
const DECISIONS_ASKED: usize = 1_000;

/// A value with its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sourced<T, S> {
    /// The value; its unit is that of the question.
    pub value: T,
    /// Where it is known from.
    pub source: S,
    /// When it was reported last; `None` for what is reported once.
    pub at_ms: Option<Millis>,
}

/// Where a worker's block size is known from. An earlier source wins over a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BlockSizeSource {
    /// The engine's own KV events, which name it.
    Events,
    /// `kv_cache_block_size` of its model card (reference §8).
    ModelCard,
    /// A frontend's `model_kv_cache_block_size` (reference §4.2), where all frontends and models agree, else of its model.
    Frontend,
    /// Requests that were routed to it: traces and `[ROUTING_INPUT]` name the size, replica sync shows it.
    Requests,
    /// The model cards of the other workers of its component, where they agree: one component serves one model.
    Component,
    /// Requests that were routed to other workers of its component.
    ComponentRequests,
}

impl BlockSizeSource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Events => "its KV events",
            Self::ModelCard => "model card",
            Self::Frontend => "frontend's model_kv_cache_block_size",
            Self::Requests => "its requests",
            Self::Component => "model cards of its component",
            Self::ComponentRequests => "requests of its component",
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::ModelCard => "model_card",
            Self::Frontend => "frontend",
            Self::Requests => "requests",
            Self::Component => "component",
            Self::ComponentRequests => "component_requests",
        }
    }
}

/// Where the number of a worker's blocks is known from. An earlier source wins over a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CapacitySource {
    /// The worker's own metrics (`dynamo_component_total_blocks`, reference §4.4).
    Engine,
    /// `total_kv_blocks` of its model card (reference §8).
    ModelCard,
    /// A frontend's `model_total_kv_blocks` (reference §4.2), where all frontends and models agree, else of its model.
    Frontend,
}

impl CapacitySource {
    /// Name on screen.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Engine => "engine's total",
            Self::ModelCard => "model card",
            Self::Frontend => "frontend's model_total_kv_blocks",
        }
    }

    /// Name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::ModelCard => "model_card",
            Self::Frontend => "frontend",
        }
    }
}

impl Cluster {
    /// Tokens per block of `worker`, above 0, by the first source of [`BlockSizeSource`] that knows it; `None`: none does.
    pub fn block_size(&self, worker: WorkerIx) -> Option<Sourced<u32, BlockSizeSource>> {
        let state = self.worker(worker)?;
        let events = self.engine_of(worker).and_then(|feed| feed.block_size_tokens);
        if let Some(events) = events.and_then(by(BlockSizeSource::Events)) {
            return Some(events);
        }
        let card = state.block_size_tokens.and_then(by(BlockSizeSource::ModelCard));
        let frontend = || {
            self.model_figure(worker, |model| model.block_size_tokens).and_then(by(BlockSizeSource::Frontend))
        };
        let requests = || self.size_of_requests(|at| at == worker).and_then(by(BlockSizeSource::Requests));
        card.or_else(frontend).or_else(requests).or_else(|| self.size_of_component(state))
    }

    /// Tokens per block that a decision was taken with: its own where it is recorded, else the block size of its worker.
    pub fn block_size_of(&self, decision: &Decision) -> Option<Sourced<u32, BlockSizeSource>> {
        let own = decision.block_size_tokens.and_then(by(BlockSizeSource::Requests));
        own.or_else(|| self.block_size(decision.worker))
    }

    fn size_of_component(&self, of: &WorkerState) -> Option<Sourced<u32, BlockSizeSource>> {
        let is_peer = |state: &WorkerState| is_peer(self, state, of);
        let peers = self.head.workers.iter().filter(|state| is_peer(state) && state.departure.is_none());
        let cards = agreed(peers.filter_map(|state| state.block_size_tokens));
        let requests = || self.size_of_requests(|at| self.worker(at).is_some_and(is_peer));
        cards
            .and_then(by(BlockSizeSource::Component))
            .or_else(|| requests().and_then(by(BlockSizeSource::ComponentRequests)))
    }

    fn size_of_requests(&self, is_meant: impl Fn(WorkerIx) -> bool) -> Option<u32> {
        let latest = self.decisions().newest_first().take(DECISIONS_ASKED).map(|decided| &decided.decision);
        latest.filter(|decision| is_meant(decision.worker)).find_map(|decision| decision.block_size_tokens)
    }

    /// Tokens per block where all workers of `pool` that are there, as far as they are known, have the same; `None` also
    /// where they differ. Before any worker is known: what frontends or requests say.
    pub fn block_tokens(&self, pool: PoolIx) -> Option<u32> {
        let workers = &self.head.workers;
        let all_left = workers.iter().all(|state| state.departure.is_some());
        let mut sizes = workers
            .indexed()
            .filter(|(_, state)| state.pool == pool && (all_left || state.departure.is_none()))
            .filter_map(|(ix, _)| Some(self.block_size(ix)?.value))
            .peekable();
        if sizes.peek().is_some() {
            return agreed(sizes);
        }
        let frontends = self.models_agree(|model| model.block_size_tokens);
        frontends.or_else(|| self.size_of_requests(|_| true)).filter(|&tokens| tokens > 0)
    }

    /// Workers of `pool` that have not left.
    pub fn pool_workers(&self, pool: PoolIx) -> usize {
        let workers = self.head.workers.iter();
        workers.filter(|state| state.pool == pool && state.departure.is_none()).count()
    }

    /// Blocks that the KV cache of `worker` holds, by the first source of [`CapacitySource`] that knows it; `None`: none does.
    pub fn capacity(&self, worker: WorkerIx) -> Option<Sourced<u64, CapacitySource>> {
        self.capacities(worker).into_iter().flatten().next()
    }

    /// The same by every source, the best first.
    pub fn capacities(&self, worker: WorkerIx) -> [Option<Sourced<u64, CapacitySource>>; 3] {
        let sourced = |blocks: Option<u64>, source, at_ms| {
            // A worker that registers before its engine is up reports 0.
            blocks.filter(|&blocks| blocks > 0).map(|value| Sourced { value, source, at_ms })
        };
        let rank = self.rank_of(worker);
        let card = self.worker(worker).and_then(|state| state.capacity_blocks);
        let frontend = self.model_figure(worker, |model| model.total_kv_blocks);
        [
            sourced(
                rank.and_then(|(_, rank)| rank.total_blocks),
                CapacitySource::Engine,
                rank.map(|(process, _)| process.last_ms),
            ),
            sourced(card, CapacitySource::ModelCard, None),
            sourced(frontend, CapacitySource::Frontend, None),
        ]
    }

    /// The metrics of `worker`'s own process for its rank. A worker is known by its id alone, which its metrics
    /// carry from Dynamo 1.0 on.
    pub fn rank_of(&self, worker: WorkerIx) -> Option<(&ProcessState, &RankFigures)> {
        let id = self.worker(worker)?.id;
        let is_it = |process: &&ProcessState| {
            process.role == ProcessRole::Worker && process.instance() == Some(id.id.0)
        };
        let process = self.processes().iter().filter(is_it).max_by_key(|process| process.last_ms)?;
        let rank = process.ranks().iter().find(|rank| rank.dp_rank == id.dp_rank)?;
        Some((process, rank))
    }

    /// A figure of the frontends' models for a worker: where they differ, that of its own model.
    pub fn model_figure<T: PartialEq>(
        &self,
        worker: WorkerIx,
        figure: impl Fn(&ModelFigures) -> Option<T>,
    ) -> Option<T> {
        self.worker(worker)?;
        // Without frontends' metrics no model is looked for: that goes through all workers.
        self.processes().iter().find(|process| !process.models().is_empty())?;
        self.models_agree(&figure).or_else(|| {
            let name = self.model_of(worker)?;
            self.models_agree(|model| figure(model).filter(|_| model.name == name))
        })
    }

    /// A figure of the frontends' models, if all reported values are equal.
    pub fn models_agree<T: PartialEq>(&self, figure: impl Fn(&ModelFigures) -> Option<T>) -> Option<T> {
        agreed(self.processes().iter().flat_map(|process| process.models()).filter_map(figure))
    }
}

/// A block size of 0 is none.
fn by(source: BlockSizeSource) -> impl Fn(u32) -> Option<Sourced<u32, BlockSizeSource>> {
    move |tokens| (tokens > 0).then_some(Sourced { value: tokens, source, at_ms: None })
}

/// The one value of all; `None` of none, or where two differ.
fn agreed<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Seq, Worker};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Record, Scrape};

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(1_800_000_000_000), record });
    }

    /// Two workers of one component and one of another.
    fn cluster() -> Cluster {
        let mut cluster = Cluster::default();
        for (at, component) in ["backend", "backend", "prefill"].into_iter().enumerate() {
            let (worker, id) = (WorkerIx(at as u32), Worker::new(at as u64 + 1, 0));
            fold(&mut cluster, Record::new_worker(worker, id, "dynamo", component));
        }
        cluster
    }

    fn card(cluster: &mut Cluster, worker: u16, blocks: Option<u64>, size: Option<u32>) {
        let worker = WorkerIx(worker.into());
        fold(
            cluster,
            Record::ModelCard {
                worker,
                total_kv_blocks: blocks,
                block_size_tokens: size,
                publishes_events: None,
            },
        );
    }

    fn request(cluster: &mut Cluster, id: u64, worker: u16, size: u32) {
        let decision = Decision::new(DecisionId(id), WorkerIx(worker.into()), DecisionSource::RequestTrace);
        fold(cluster, Record::Decision(Box::new(Decision { block_size_tokens: Some(size), ..decision })));
    }

    fn scrape(cluster: &mut Cluster, process: &'static str, role: ProcessRole, size: u32, blocks: u64) {
        let of_worker = role == ProcessRole::Worker;
        let model = ModelFigures {
            name: "m".into(),
            block_size_tokens: Some(size),
            total_kv_blocks: Some(blocks),
            max_num_seqs: None,
            max_num_batched_tokens: None,
            context_length: None,
        };
        let rank = RankFigures { dp_rank: 0, kv_usage: None, used_blocks: None, total_blocks: Some(blocks) };
        let scrape = Scrape {
            instance: of_worker.then_some(1),
            models: if of_worker { Vec::new() } else { vec![model] },
            ranks: if of_worker { vec![rank] } else { Vec::new() },
            ..Scrape::new(process, role)
        };
        fold(cluster, Record::Scrape(Box::new(scrape)));
    }

    fn size(cluster: &Cluster, worker: u16) -> Option<(u32, BlockSizeSource)> {
        cluster.block_size(WorkerIx(worker.into())).map(|size| (size.value, size.source))
    }

    #[test]
    fn the_sources_of_a_block_size_count_in_the_order_of_their_list() {
        let mut cluster = cluster();
        assert_eq!(
            (size(&cluster, 0), cluster.block_tokens(PoolIx(0))),
            (None, None),
            "no source: not known"
        );
        request(&mut cluster, 1, 1, 128);
        assert_eq!(size(&cluster, 0), Some((128, BlockSizeSource::ComponentRequests)));
        assert_eq!(size(&cluster, 2), None, "another component may have another size");
        card(&mut cluster, 1, None, Some(64));
        assert_eq!(size(&cluster, 0), Some((64, BlockSizeSource::Component)));
        request(&mut cluster, 2, 0, 32);
        assert_eq!(size(&cluster, 0), Some((32, BlockSizeSource::Requests)));
        scrape(&mut cluster, "f", ProcessRole::Frontend, 16, 900);
        assert_eq!(size(&cluster, 0), Some((16, BlockSizeSource::Frontend)));
        card(&mut cluster, 0, None, Some(8));
        assert_eq!(size(&cluster, 0), Some((8, BlockSizeSource::ModelCard)));
        assert_eq!(cluster.block_tokens(PoolIx(0)), None, "8, 64 and 16 are not one size");
    }

    #[test]
    fn a_decision_has_the_size_it_was_recorded_with_before_that_of_its_worker() {
        let mut cluster = cluster();
        let decision = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::RequestTrace);
        let size = |cluster: &Cluster, own| {
            let decision = Decision { block_size_tokens: own, ..decision.clone() };
            cluster.block_size_of(&decision).map(|size| (size.value, size.source))
        };
        assert_eq!(size(&cluster, None), None);
        card(&mut cluster, 0, None, Some(64));
        assert_eq!(size(&cluster, None), Some((64, BlockSizeSource::ModelCard)));
        assert_eq!(size(&cluster, Some(0)), Some((64, BlockSizeSource::ModelCard)));
        assert_eq!(size(&cluster, Some(32)), Some((32, BlockSizeSource::Requests)));
    }

    #[test]
    fn frontends_that_contradict_each_other_report_nothing() {
        let mut cluster = cluster();
        scrape(&mut cluster, "a", ProcessRole::Frontend, 16, 900);
        scrape(&mut cluster, "b", ProcessRole::Frontend, 32, 900);
        assert_eq!(size(&cluster, 0), None);
        assert_eq!(cluster.capacity(WorkerIx(0)).map(|capacity| capacity.value), Some(900));
    }

    /// A frontend that serves models of two sizes.
    fn two_models(cluster: &mut Cluster) {
        let model = |name: &str, size, blocks| ModelFigures {
            name: name.into(),
            block_size_tokens: Some(size),
            total_kv_blocks: Some(blocks),
            max_num_seqs: None,
            max_num_batched_tokens: None,
            context_length: None,
        };
        let models = vec![model("small", 16, 900), model("large", 32, 450)];
        fold(cluster, Record::Scrape(Box::new(Scrape { models, ..Scrape::new("f", ProcessRole::Frontend) })));
    }

    #[test]
    fn of_two_models_the_figures_of_a_workers_own_count() {
        let mut cluster = cluster();
        two_models(&mut cluster);
        let capacity =
            |cluster: &Cluster, worker| cluster.capacity(WorkerIx(worker)).map(|capacity| capacity.value);
        assert_eq!((size(&cluster, 0), capacity(&cluster, 0)), (None, None), "which is its is not known");
        fold(&mut cluster, Record::Model { worker: WorkerIx(1), name: "small".into() });
        fold(&mut cluster, Record::Model { worker: WorkerIx(2), name: "large".into() });
        for (worker, tokens, blocks) in [(0, 16, 900), (1, 16, 900), (2, 32, 450)] {
            assert_eq!(size(&cluster, worker), Some((tokens, BlockSizeSource::Frontend)), "{worker}");
            assert_eq!(capacity(&cluster, worker.into()), Some(blocks), "{worker}");
        }
        assert_eq!(cluster.models_in(PoolIx(0)), ["small"]);
    }

    #[test]
    fn a_frontends_only_model_is_that_of_every_pool() {
        let mut cluster = cluster();
        scrape(&mut cluster, "f", ProcessRole::Frontend, 16, 900);
        assert_eq!((cluster.models_in(PoolIx(0)), cluster.models_in(PoolIx(1))), (vec!["m"], vec!["m"]));
        two_models(&mut cluster);
        assert!(cluster.models_in(PoolIx(0)).is_empty(), "one of two is not known");
    }

    #[test]
    fn a_size_of_0_is_none() {
        let mut cluster = cluster();
        card(&mut cluster, 0, Some(0), Some(0));
        assert_eq!((size(&cluster, 0), cluster.capacity(WorkerIx(0))), (None, None));
    }

    #[test]
    fn the_engines_own_total_counts_before_what_was_registered() {
        let mut cluster = cluster();
        let capacity = |cluster: &Cluster| {
            cluster.capacity(WorkerIx(0)).map(|capacity| (capacity.value, capacity.source))
        };
        scrape(&mut cluster, "f", ProcessRole::Frontend, 16, 900);
        assert_eq!(capacity(&cluster), Some((900, CapacitySource::Frontend)));
        card(&mut cluster, 0, Some(800), None);
        assert_eq!(capacity(&cluster), Some((800, CapacitySource::ModelCard)));
        scrape(&mut cluster, "w", ProcessRole::Worker, 16, 700);
        assert_eq!(capacity(&cluster), Some((700, CapacitySource::Engine)));
    }
}
