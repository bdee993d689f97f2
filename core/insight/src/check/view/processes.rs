//! What scraped processes report: their counters and gauges added up, queues, requests in flight.

use super::View;
use radixscope_model::id::{Worker, WorkerIx};
use radixscope_model::record::{Counter, Gauge, HistogramKind, ProcessRole};
use radixscope_state::cluster::ProcessState;

use crate::queues::{self, Queues, STALE_MS};

impl<'v> View<'v> {
    /// Processes that were scraped lately.
    pub(in crate::check) fn fresh(&self) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
        let now = self.now;
        self.processes().filter(move |process| now.since(process.last_ms) <= STALE_MS)
    }

    /// Processes of a role that were scraped lately.
    pub(in crate::check) fn scraped(
        &self,
        role: ProcessRole,
    ) -> impl Iterator<Item = &'v ProcessState> + use<'v> {
        self.fresh().filter(move |process| process.role == role)
    }

    /// What a counter of all frontends rose by over the last `ms`; `None`: none has it.
    pub(in crate::check) fn counted(&self, counter: Counter, ms: u64) -> Option<f64> {
        self.rise_of(self.scraped(ProcessRole::Frontend), counter, ms)
    }

    /// What a counter of some processes rose by over the last `ms`; `None`: none has it.
    pub(in crate::check) fn rise_of(
        &self,
        processes: impl Iterator<Item = &'v ProcessState>,
        counter: Counter,
        ms: u64,
    ) -> Option<f64> {
        let since = self.ago(ms);
        processes.filter_map(|process| process.counted_since(counter, since)).reduce(|a, b| a + b)
    }

    /// Sum of a gauge over all processes of a role; `None`: none has it.
    pub(in crate::check) fn gauge(&self, role: ProcessRole, gauge: Gauge) -> Option<f64> {
        self.scraped(role).filter_map(|process| process.gauge(gauge)).reduce(|a, b| a + b)
    }

    /// Requests that frontends answered lately, by their own metrics; `None`: no frontend is scraped.
    pub(in crate::check) fn requests_served(&self, ms: u64) -> Option<u64> {
        let frontends = self.processes().filter(|process| process.role == ProcessRole::Frontend);
        self.rise_of(frontends, Counter::RequestsOk, ms).map(|requests| requests as u64)
    }

    /// Prompt tokens that engines found in their caches lately, by the frontends' histogram, else by the engines'
    /// counters; `None`: not reported.
    pub(in crate::check) fn cached_tokens(&self, ms: u64) -> Option<u64> {
        let (since, now) = (self.ago(ms), self.now);
        let of = |process: &ProcessState| process.distribution(HistogramKind::CachedTokens, since, now);
        let by_frontends = self.processes().filter_map(of).map(|tokens| tokens.sum()).reduce(|a, b| a + b);
        let by_engines = self.rise_of(self.processes(), Counter::EnginePrefixHits, ms);
        let tokens = by_frontends.into_iter().chain(by_engines).reduce(f64::max);
        tokens.map(|tokens| tokens.max(0.0) as u64)
    }

    /// The scraped process of a worker, where its metrics carry its id (≥ 1.0).
    pub(in crate::check) fn process_of(&self, worker: WorkerIx) -> Option<&'v ProcessState> {
        let id = self.worker(worker)?.id.id.0;
        self.scraped(ProcessRole::Worker).find(|process| process.instance() == Some(id))
    }

    /// The same, be it scraped lately or not.
    pub(in crate::check) fn known_process_of(&self, worker: WorkerIx) -> Option<&'v ProcessState> {
        let id = self.worker(worker)?.id.id.0;
        self.processes().find(|process| process.instance() == Some(id))
    }

    /// The worker of a rank of a scraped process.
    pub(in crate::check) fn worker_of(&self, process: &ProcessState, dp_rank: u32) -> Option<WorkerIx> {
        self.cluster.worker_ix(Worker::new(process.instance()?, dp_rank))
    }

    /// Most requests that a worker runs at once, by the frontends' metrics; `None` where they serve several models or none
    /// reports it.
    pub(in crate::check) fn batch_limit(&self) -> Option<u64> {
        let mut models = self.scraped(ProcessRole::Frontend).flat_map(|process| process.models());
        let first = models.next()?;
        let is_one = models.all(|m| m.name == first.name && m.max_num_seqs == first.max_num_seqs);
        first.max_num_seqs.filter(|&limit| is_one && limit > 0)
    }

    /// Most tokens that a worker computes in one step, by the frontends' metrics; `None` where they serve several models or
    /// none reports it.
    pub(in crate::check) fn step_tokens(&self) -> Option<u64> {
        let mut models = self.scraped(ProcessRole::Frontend).flat_map(|process| process.models());
        let first = models.next()?;
        let is_one =
            models.all(|m| m.name == first.name && m.max_num_batched_tokens == first.max_num_batched_tokens);
        first.max_num_batched_tokens.filter(|&tokens| is_one && tokens > 0)
    }

    /// Most requests that one worker runs at once: where frontends serve several models, by its own.
    pub(in crate::check) fn batch_limit_of(&self, worker: WorkerIx) -> Option<u64> {
        queues::batch_limit_of(self.cluster, worker)
    }

    /// Requests in flight on a worker.
    pub(in crate::check) fn in_flight(&self, worker: WorkerIx) -> Option<u64> {
        queues::in_flight(self.cluster, worker, self.now)
    }

    /// Requests that wait now, in routers and on workers, as panels show them. With the source; `None`: no source reports it.
    pub(in crate::check) fn waiting(&self) -> Option<(u64, &'static str)> {
        let queues = Queues::of(self.cluster, self.present(), self.now);
        Some((queues.all()?, queues.source()))
    }
}
