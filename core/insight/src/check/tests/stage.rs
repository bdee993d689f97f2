//! A small cluster for tests of rules: workers, decisions, scrapes, and time that passes.

use crate::check::{Criteria, History, Rule, RuleOutcome, View};
use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    Counter, Decision, DecisionSource, Engine, Entry, EventTransport, Finding, Gauge, Histogram,
    HistogramKind, LinkState, ModelFigures, ProcessRole, Progress, RankFigures, Record, Scrape, Severity,
    SourceKind, WorkerFigures,
};
use radixscope_state::cluster::Cluster;

/// Beginning of every stage.
const BEGIN: u64 = 1_800_000_000_000;

/// See the module.
pub(in crate::check) struct Stage {
    cluster: Cluster,
    history: History,
    pub(in crate::check) criteria: Criteria,
    now: u64,
    decisions: u64,
}

impl Stage {
    /// So many workers of one component, received over NATS.
    pub(in crate::check) fn new(workers: u16) -> Self {
        let (cluster, history, criteria) = (Cluster::default(), History::default(), Criteria::default());
        let mut stage = Self { cluster, history, criteria, now: BEGIN, decisions: 0 };
        let source = SourceIx(0);
        stage.record(Record::Source { source, name: "nats://n".into(), kind: SourceKind::Nats });
        stage.record(Record::SourceState { source, state: LinkState::Live, detail: "".into() });
        (0..workers).for_each(|worker| stage.worker(worker));
        stage
    }

    /// A worker comes.
    pub(in crate::check) fn worker(&mut self, worker: u16) {
        let id = Worker::new(100 + u64::from(worker), 0);
        self.record(Record::new_worker(WorkerIx(worker.into()), id, "dynamo", "backend"));
    }

    /// A record now.
    pub(in crate::check) fn record(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.now), record });
    }

    /// Time passes.
    pub(in crate::check) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + 1_000);
            self.history.sample(&self.cluster, Millis(self.now));
        }
    }

    /// Routers choose: how many requests of 100 blocks each worker gets, and how many of the blocks it held.
    pub(in crate::check) fn choose(&mut self, chosen: &[u64], overlap_blocks: u64) {
        for (worker, &count) in chosen.iter().enumerate() {
            for _ in 0..count {
                self.decide(worker as u16, 100, overlap_blocks);
            }
        }
    }

    /// A router chooses.
    pub(in crate::check) fn decide(
        &mut self,
        worker: u16,
        isl_blocks: u64,
        overlap_blocks: u64,
    ) -> DecisionId {
        self.decisions += 1;
        let id = DecisionId(self.decisions);
        let mut decision = Decision::new(id, WorkerIx(worker.into()), DecisionSource::KvHitRate);
        decision.isl_blocks = Some(isl_blocks);
        decision.overlap_blocks = Some(overlap_blocks);
        decision.block_size_tokens = Some(16);
        self.record(Record::Decision(Box::new(decision)));
        id
    }

    /// A router chooses, and the first token comes after that time. Blocks have 16 tokens.
    pub(in crate::check) fn prefilled(
        &mut self,
        worker: u16,
        isl_blocks: u64,
        overlap_blocks: u64,
        ttft_ms: u64,
    ) {
        let decision = self.decide(worker, isl_blocks, overlap_blocks);
        let first_token_ms = Some(Millis(self.now + ttft_ms));
        self.progress(decision, Progress { first_token_ms, ..Progress::default() });
    }

    /// How a request went on.
    pub(in crate::check) fn progress(&mut self, decision: DecisionId, progress: Progress) {
        self.record(Record::Progress { decision, progress: Box::new(progress) });
    }

    /// Requests in flight, worker by worker.
    pub(in crate::check) fn in_flight(&mut self, requests: &[u32]) {
        for (worker, &now) in requests.iter().enumerate() {
            self.record(Record::InFlight { worker: WorkerIx(worker as u32), now, most: now });
        }
    }

    /// A worker publishes its first KV event, so its cache is cold.
    pub(in crate::check) fn starts_to_publish(&mut self, worker: u16) {
        let line = EventTransport::Core;
        self.record(Record::EventTransport { worker: WorkerIx(worker.into()), line, first_event_id: 0 });
    }

    /// Blocks of running requests by the engine, and those there are.
    pub(in crate::check) fn used(&mut self, worker: u16, used_blocks: u64, capacity: u64) {
        let worker = WorkerIx(worker.into());
        let total_kv_blocks = Some(capacity);
        self.record(Record::ModelCard {
            worker,
            total_kv_blocks,
            block_size_tokens: Some(16),
            publishes_events: None,
        });
        self.record(Record::EngineLoad { worker, used_blocks });
    }

    /// A process is scraped.
    pub(in crate::check) fn scrape(&mut self, process: &Process) {
        self.record(Record::Scrape(Box::new(process.scrape())));
    }

    /// A finding of another rule holds.
    pub(in crate::check) fn holds(&mut self, code: &'static str) {
        let finding = Finding::new(Severity::Critical, "Of another rule", "One. Two.");
        let now = Millis(self.now);
        self.record(Record::Finding(Box::new(Finding {
            code: code.into(),
            first_ms: now,
            last_ms: now,
            ..finding
        })));
    }

    /// What is seen now.
    pub(in crate::check) fn view<T>(&self, evaluate: impl FnOnce(&View<'_>) -> T) -> T {
        let (cluster, now) = (&self.cluster, Millis(self.now));
        evaluate(&View { cluster, now, history: &self.history, criteria: &self.criteria })
    }

    /// What a rule says.
    pub(in crate::check) fn evaluate(&self, rule: &Rule) -> RuleOutcome {
        self.view(|view| (rule.evaluate)(view))
    }

    /// The finding that explains what a rule looks for.
    pub(in crate::check) fn explained_by(&self, rule: &Rule) -> Option<&'static str> {
        match self.evaluate(rule) {
            RuleOutcome::Explained(by) => Some(by),
            _ => None,
        }
    }

    /// What a rule finds. Whatever it is, it has to be complete.
    pub(in crate::check) fn found(&self, rule: &Rule) -> Option<Finding> {
        let RuleOutcome::Found(finding) = self.evaluate(rule) else { return None };
        let now = Millis(self.now);
        let finding = Finding { code: rule.code.into(), first_ms: now, last_ms: now, ..finding };
        let text = &finding.explanation;
        assert_eq!(text.matches(". ").count() + 1, 2, "two sentences: {text}");
        assert!(text.ends_with('.'), "{text}");
        assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:?}");
        assert!(!finding.selects_worker || !finding.workers.is_empty(), "{finding:?}");
        Some(finding)
    }

    pub(in crate::check) fn is_ok(&self, rule: &Rule) -> bool {
        matches!(self.evaluate(rule), RuleOutcome::Ok)
    }

    pub(in crate::check) fn is_unknown(&self, rule: &Rule) -> bool {
        matches!(self.evaluate(rule), RuleOutcome::NoData(missing) if !missing.is_empty())
    }
}

/// A process to be scraped: what it would say.
#[derive(Clone)]
pub(in crate::check) struct Process {
    name: &'static str,
    role: ProcessRole,
    engine: Option<Engine>,
    pub(in crate::check) instance: Option<u64>,
    pub(in crate::check) gauges: Vec<(Gauge, f64)>,
    pub(in crate::check) counters: Vec<(Counter, f64)>,
    pub(in crate::check) histograms: Vec<Histogram>,
    pub(in crate::check) models: Vec<ModelFigures>,
    pub(in crate::check) workers: Vec<WorkerFigures>,
    pub(in crate::check) ranks: Vec<RankFigures>,
}

impl Process {
    pub(in crate::check) fn new(name: &'static str, role: ProcessRole) -> Self {
        let (gauges, counters, histograms) = (Vec::new(), Vec::new(), Vec::new());
        let (models, workers, ranks) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            name,
            role,
            engine: None,
            instance: None,
            gauges,
            counters,
            histograms,
            models,
            workers,
            ranks,
        }
    }

    pub(in crate::check) fn frontend() -> Self {
        Self::new("frontend", ProcessRole::Frontend)
    }

    /// The process of a worker of the stage.
    pub(in crate::check) fn of_worker(worker: u16) -> Self {
        let mut process = Self::new("worker", ProcessRole::Worker);
        process.instance = Some(100 + u64::from(worker));
        process
    }

    /// Its metrics are those of an engine.
    pub(in crate::check) fn engine(mut self, engine: Engine) -> Self {
        self.engine = Some(engine);
        self
    }

    pub(in crate::check) fn gauge(mut self, gauge: Gauge, value: f64) -> Self {
        self.gauges.retain(|(known, _)| *known != gauge);
        self.gauges.push((gauge, value));
        self
    }

    pub(in crate::check) fn counter(mut self, counter: Counter, value: f64) -> Self {
        self.counters.retain(|(known, _)| *known != counter);
        self.counters.push((counter, value));
        self
    }

    pub(in crate::check) fn histogram(
        mut self,
        kind: HistogramKind,
        bounds: &[f64],
        counts: &[u64],
        sum: f64,
    ) -> Self {
        self.histograms.retain(|known| known.kind != kind);
        let (bounds, counts) = (bounds.to_vec(), counts.to_vec());
        self.histograms.push(Histogram { kind, bounds, counts, sum });
        self
    }

    /// It serves one model whose workers run so many requests at once.
    pub(in crate::check) fn batch_limit(mut self, max_num_seqs: u64) -> Self {
        self.models = vec![ModelFigures {
            name: "m".into(),
            block_size_tokens: Some(16),
            total_kv_blocks: None,
            max_num_seqs: Some(max_num_seqs),
            max_num_batched_tokens: None,
            context_length: None,
        }];
        self
    }

    fn scrape(&self) -> Scrape {
        Scrape {
            engine: self.engine,
            instance: self.instance,
            gauges: self.gauges.clone(),
            counters: self.counters.clone(),
            histograms: self.histograms.clone(),
            models: self.models.clone(),
            workers: self.workers.clone(),
            ranks: self.ranks.clone(),
            ..Scrape::new(self.name, self.role)
        }
    }
}
