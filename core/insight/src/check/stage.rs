//! A small cluster for tests of rules: workers, decisions, scrapes, and time that passes.

use super::{Given, History, Rule, RuleOutcome, View};
use radixscope_model::id::{DecisionId, Millis, Seq, SourceIx, Worker, WorkerIx};
use radixscope_model::record::{
    Counter, Decision, DecisionSource, Entry, Finding, Gauge, Histogram, HistogramKind, LinkState,
    ModelFigures, ProcessRole, Progress, RankFigures, Record, Scrape, Severity, SourceKind, WorkerFigures,
};
use radixscope_state::cluster::Cluster;

/// Beginning of every stage.
const BEGIN: u64 = 1_800_000_000_000;

/// See the module.
pub(super) struct Stage {
    cluster: Cluster,
    history: History,
    pub(super) given: Given,
    now: u64,
    decisions: u64,
}

impl Stage {
    /// So many workers of one component, heard over NATS.
    pub(super) fn new(workers: u16) -> Self {
        let (cluster, history, given) = (Cluster::default(), History::default(), Given::default());
        let mut stage = Self { cluster, history, given, now: BEGIN, decisions: 0 };
        let source = SourceIx(0);
        stage.tell(Record::Source { source, name: "nats://n".into(), kind: SourceKind::Nats });
        stage.tell(Record::SourceState { source, state: LinkState::Live, detail: "".into() });
        (0..workers).for_each(|worker| stage.worker(worker));
        stage
    }

    /// A worker comes.
    pub(super) fn worker(&mut self, worker: u16) {
        let id = Worker::new(100 + u64::from(worker), 0);
        let (namespace, component) = ("dynamo".into(), "backend".into());
        self.tell(Record::Worker { worker: WorkerIx(worker), id, namespace, component });
    }

    /// A record now.
    pub(super) fn tell(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.now), record });
    }

    /// Time passes.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + 1_000);
            self.history.sample(&self.cluster, Millis(self.now));
        }
    }

    /// Routers choose: how many requests of 100 blocks each worker gets, and how many of the blocks it held.
    pub(super) fn choose(&mut self, chosen: &[u64], overlap_blocks: u64) {
        for (worker, &count) in chosen.iter().enumerate() {
            for _ in 0..count {
                self.decide(worker as u16, 100, overlap_blocks);
            }
        }
    }

    /// A router chooses.
    pub(super) fn decide(&mut self, worker: u16, isl_blocks: u64, overlap_blocks: u64) -> DecisionId {
        self.decisions += 1;
        let id = DecisionId(self.decisions);
        let mut decision = Decision::new(id, WorkerIx(worker), DecisionSource::KvHitRate);
        decision.isl_blocks = Some(isl_blocks);
        decision.overlap_blocks = Some(overlap_blocks);
        decision.block_size_tokens = Some(16);
        self.tell(Record::Decision(decision));
        id
    }

    /// How a request went on.
    pub(super) fn progress(&mut self, decision: DecisionId, progress: Progress) {
        self.tell(Record::Progress { decision, progress });
    }

    /// Requests in flight, worker by worker.
    pub(super) fn in_flight(&mut self, requests: &[u32]) {
        for (worker, &now) in requests.iter().enumerate() {
            self.tell(Record::InFlight { worker: WorkerIx(worker as u16), now, most: now });
        }
    }

    /// Blocks of running requests by the engine, and those there are.
    pub(super) fn used(&mut self, worker: u16, used_blocks: u64, capacity: u64) {
        let worker = WorkerIx(worker);
        let total_kv_blocks = Some(capacity);
        self.tell(Record::ModelCard { worker, total_kv_blocks, block_size_tokens: Some(16) });
        self.tell(Record::EngineLoad { worker, used_blocks });
    }

    /// A process is scraped.
    pub(super) fn scrape(&mut self, process: &Process) {
        self.tell(Record::Scrape(process.scrape()));
    }

    /// A finding of another rule holds.
    pub(super) fn holds(&mut self, code: &'static str) {
        let finding = Finding::new(Severity::Critical, "Of another rule", "One. Two.");
        let now = Millis(self.now);
        self.tell(Record::Finding(Finding { code: code.into(), first_ms: now, last_ms: now, ..finding }));
    }

    /// What is seen now.
    pub(super) fn view<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        let (cluster, now) = (&self.cluster, Millis(self.now));
        look(&View { cluster, now, history: &self.history, given: &self.given })
    }

    /// What a rule says.
    pub(super) fn look(&self, rule: &dyn Rule) -> RuleOutcome {
        self.view(|view| rule.look(view))
    }

    /// The finding that explains what a rule looks for.
    pub(super) fn explained_by(&self, rule: &dyn Rule) -> Option<&'static str> {
        match self.look(rule) {
            RuleOutcome::Explained(by) => Some(by),
            _ => None,
        }
    }

    /// What a rule finds. Whatever it is, it has to be complete.
    pub(super) fn found(&self, rule: &dyn Rule) -> Option<Finding> {
        let RuleOutcome::Found(finding) = self.look(rule) else { return None };
        let now = Millis(self.now);
        let finding = Finding { code: rule.code().into(), first_ms: now, last_ms: now, ..finding };
        let text = &finding.explanation;
        assert_eq!(text.matches(". ").count() + 1, 2, "two sentences: {text}");
        assert!(text.ends_with('.'), "{text}");
        assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{finding:?}");
        assert!(finding.link.starts_with("view="), "{}", finding.link);
        Some(finding)
    }

    pub(super) fn is_ok(&self, rule: &dyn Rule) -> bool {
        matches!(self.look(rule), RuleOutcome::Ok)
    }

    pub(super) fn is_unknown(&self, rule: &dyn Rule) -> bool {
        matches!(self.look(rule), RuleOutcome::Unknown(missing) if !missing.is_empty())
    }
}

/// A process to be scraped: what it would say.
#[derive(Clone)]
pub(super) struct Process {
    name: &'static str,
    role: ProcessRole,
    pub(super) instance: Option<u64>,
    pub(super) gauges: Vec<(Gauge, f64)>,
    pub(super) counters: Vec<(Counter, f64)>,
    pub(super) histograms: Vec<Histogram>,
    pub(super) models: Vec<ModelFigures>,
    pub(super) workers: Vec<WorkerFigures>,
    pub(super) ranks: Vec<RankFigures>,
}

impl Process {
    pub(super) fn new(name: &'static str, role: ProcessRole) -> Self {
        let (gauges, counters, histograms) = (Vec::new(), Vec::new(), Vec::new());
        let (models, workers, ranks) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, role, instance: None, gauges, counters, histograms, models, workers, ranks }
    }

    pub(super) fn frontend() -> Self {
        Self::new("frontend", ProcessRole::Frontend)
    }

    /// The process of a worker of the stage.
    pub(super) fn of_worker(worker: u16) -> Self {
        let mut process = Self::new("worker", ProcessRole::Worker);
        process.instance = Some(100 + u64::from(worker));
        process
    }

    pub(super) fn gauge(mut self, gauge: Gauge, value: f64) -> Self {
        self.gauges.retain(|(known, _)| *known != gauge);
        self.gauges.push((gauge, value));
        self
    }

    pub(super) fn counter(mut self, counter: Counter, value: f64) -> Self {
        self.counters.retain(|(known, _)| *known != counter);
        self.counters.push((counter, value));
        self
    }

    pub(super) fn histogram(mut self, kind: HistogramKind, bounds: &[f64], counts: &[u64], sum: f64) -> Self {
        self.histograms.retain(|known| known.kind != kind);
        let (bounds, counts) = (bounds.to_vec(), counts.to_vec());
        self.histograms.push(Histogram { kind, bounds, counts, sum });
        self
    }

    /// It serves one model whose workers run so many requests at once.
    pub(super) fn batch_limit(mut self, max_num_seqs: u64) -> Self {
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
