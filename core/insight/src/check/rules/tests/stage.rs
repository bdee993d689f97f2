//! A state that gets records one by one and looked at every second.

use std::borrow::Cow;

use crate::check::Checks;
use radixscope_model::id::{BlockHash, DecisionId, Millis, Seq, SourceIx, TokensHash, Worker, WorkerIx};
use radixscope_model::record::{
    Block, CheckStatus, Counter, Decision, DecisionSource, Entry, EventTransport, Finding, Gauge, Histogram,
    KnowledgeWhy, LinkState, LogSignal, Phase, ProcessRole, QueryState, Record, RoutingMode, Scrape,
    Severity, SourceKind, TreeKnowledge,
};
use radixscope_state::cluster::Cluster;

const BEGIN_MS: u64 = 1_800_000_000_000;

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    checks: Checks,
    now_ms: u64,
    decisions: u64,
}

impl Stage {
    /// Connected to NATS, where something was published.
    pub(super) fn new() -> Self {
        let mut stage = Self::mute();
        stage.record(Record::Traffic { source: SourceIx(0), received: 1, lag_ms: None });
        stage
    }

    /// Connected to NATS, and nothing published yet.
    pub(super) fn mute() -> Self {
        let mut stage = Self::unconnected();
        stage.source("nats://n", SourceKind::Nats);
        stage
    }

    /// Without any source.
    pub(super) fn unconnected() -> Self {
        Self { cluster: Cluster::default(), checks: Checks::default(), now_ms: BEGIN_MS, decisions: 0 }
    }

    pub(super) fn source(&mut self, name: &'static str, kind: SourceKind) -> SourceIx {
        let source = SourceIx(self.cluster.sources().len() as u8);
        self.record(Record::Source { source, name: name.into(), kind });
        self.link(source, LinkState::Live);
        source
    }

    pub(super) fn link(&mut self, source: SourceIx, state: LinkState) {
        self.record(Record::SourceState { source, state, detail: "set by a test".into() });
    }

    pub(super) fn record(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.now_ms), record });
    }

    /// What time it is.
    pub(super) fn now(&self) -> Millis {
        Millis(self.now_ms)
    }

    /// Lets seconds pass, each with a look.
    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now_ms += 1_000;
            for record in self.checks.tick(&self.cluster, Millis(self.now_ms)) {
                self.record(record);
            }
        }
    }

    /// What came of a rule, and the finding that explains it.
    pub(super) fn status(&self, code: &str) -> (CheckStatus, &str) {
        let rule = self.cluster.checked().iter().find(|rule| rule.code == code).expect("a rule");
        (rule.status, &rule.explained_by)
    }

    /// A worker that publishes over plain NATS and was received from its first event on.
    pub(super) fn worker(&mut self, id: u64) -> WorkerIx {
        let worker = self.quiet_worker(id);
        self.add_transport(worker, EventTransport::Core, 1);
        self.knows(worker, TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent);
        worker
    }

    /// A worker of which nothing but its name is known.
    pub(super) fn quiet_worker(&mut self, id: u64) -> WorkerIx {
        let worker = WorkerIx(self.cluster.workers().len() as u32);
        self.record(Record::new_worker(worker, Worker::new(id, 0), "dynamo", "backend"));
        worker
    }

    pub(super) fn add_transport(&mut self, worker: WorkerIx, line: EventTransport, first_event_id: u64) {
        self.record(Record::EventTransport { worker, line, first_event_id });
    }

    pub(super) fn knows(&mut self, worker: WorkerIx, knowledge: TreeKnowledge, why: KnowledgeWhy) {
        self.record(Record::Knowledge { worker, knowledge, why });
    }

    pub(super) fn asks(&mut self, worker: WorkerIx, state: QueryState, detail: &'static str) {
        self.record(Record::QueryState { worker, state, detail: detail.into() });
    }

    /// Stores a chain of blocks named by `tokens`, of which the first continues `parent`.
    pub(super) fn store(
        &mut self,
        worker: WorkerIx,
        parent: Option<u64>,
        tokens: impl IntoIterator<Item = u64>,
    ) {
        let block = |n| Block { block_hash: BlockHash(n), tokens_hash: TokensHash(n) };
        let blocks = Cow::Owned(tokens.into_iter().map(block).collect());
        self.record(Record::Stored { worker, parent: parent.map(BlockHash), blocks });
    }

    pub(super) fn remove(&mut self, worker: WorkerIx, names: impl IntoIterator<Item = u64>) {
        self.record(Record::Removed {
            worker,
            hashes: Cow::Owned(names.into_iter().map(BlockHash).collect()),
        });
    }

    pub(super) fn used(&mut self, worker: WorkerIx, used_blocks: u64) {
        self.record(Record::EngineLoad { worker, used_blocks });
    }

    pub(super) fn decide(&mut self, worker: WorkerIx, isl_blocks: u64, overlap_blocks: u64) {
        self.decisions += 1;
        let id = DecisionId(self.decisions);
        let decision = Decision {
            isl_blocks: Some(isl_blocks),
            overlap_blocks: Some(overlap_blocks),
            block_size_tokens: Some(16),
            ..Decision::new(id, worker, DecisionSource::KvHitRate)
        };
        self.record(Record::Decision(Box::new(decision)));
    }

    /// A choice of a mode that looks at no cache.
    pub(super) fn choose_by(&mut self, mode: RoutingMode, worker: WorkerIx) {
        self.decisions += 1;
        let decision = Decision::new(DecisionId(self.decisions), worker, DecisionSource::Log);
        self.record(Record::Decision(Box::new(Decision {
            mode: Some(mode),
            isl_blocks: Some(20),
            ..decision
        })));
    }

    pub(super) fn log_signal(&mut self, sign: LogSignal, count: u64) {
        self.record(Record::LogSignal { worker: None, sign, count });
    }

    pub(super) fn scrape(
        &mut self,
        role: ProcessRole,
        counters: &[(Counter, f64)],
        gauges: &[(Gauge, f64)],
        histograms: Vec<Histogram>,
    ) {
        self.record(Record::Scrape(Box::new(Scrape {
            gauges: gauges.to_vec(),
            counters: counters.to_vec(),
            histograms,
            ..Scrape::new(role.as_str(), role)
        })));
    }

    /// What holds under a code.
    pub(super) fn finding(&self, code: &str) -> Option<&Finding> {
        self.cluster.findings().iter().find(|f| f.code == code && f.phase != Phase::Cleared)
    }

    /// What holds under a code, or a panic that says what holds instead.
    pub(super) fn found(&self, code: &str) -> &Finding {
        self.finding(code).unwrap_or_else(|| panic!("no {code}, but {:#?}", self.cluster.findings()))
    }

    /// Codes of everything that holds.
    pub(super) fn codes(&self) -> Vec<&str> {
        let holds = self.cluster.findings().iter().filter(|f| f.phase != Phase::Cleared);
        holds.map(|f| &*f.code).collect()
    }

    /// Codes of what holds and is at least a warning.
    pub(super) fn grave(&self) -> Vec<&str> {
        let holds = self.cluster.findings().iter().filter(|f| f.phase != Phase::Cleared);
        holds.filter(|f| f.severity >= Severity::Warning).map(|f| &*f.code).collect()
    }
}

/// A row of evidence whose label contains some words.
pub(super) fn evidence<'f>(finding: &'f Finding, label: &str) -> &'f str {
    let row = finding.evidence.iter().find(|row| row.label.contains(label));
    row.map_or_else(|| panic!("no {label:?} in {finding:#?}"), |row| &row.value)
}
