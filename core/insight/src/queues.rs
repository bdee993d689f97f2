//! Requests that wait: before a worker is chosen, and on each worker. One figure for panels, pictures and rules. What no source
//! reports is `None`, never 0. Knows no screen.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, count};
use radixscope_model::record::{Gauge, ProcessRole};
use radixscope_state::cluster::{Cluster, ProcessState};

/// A scrape older than this is outdated.
pub const STALE_MS: u64 = 30_000;

/// Requests that are queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// How many.
    pub requests: u64,
    /// By whom.
    pub source: &'static str,
}

/// Queued requests by place; each waits in one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queues {
    /// In routers, before a worker is chosen: not in flight on any worker.
    pub in_routers: Option<u64>,
    /// On workers: part of what is in flight there.
    pub on_workers: Option<Queued>,
}

/// Processes of a role that were scraped lately.
fn scraped(cluster: &Cluster, role: ProcessRole, now: Millis) -> impl Iterator<Item = &ProcessState> {
    let of_role = cluster.processes().iter().filter(move |process| process.role == role);
    of_role.filter(move |process| now.since(process.last_ms) <= STALE_MS)
}

/// Requests in flight on a worker: tracked from decisions, else by the one router there is (≥ 1.7). Of several routers each may
/// count its own alone.
pub fn in_flight(cluster: &Cluster, worker: WorkerIx, now: Millis) -> Option<u64> {
    let by_router = || {
        let counts = |process: &ProcessState| {
            process.workers().iter().find(|figures| figures.worker == worker)?.active_requests
        };
        let mut routers = scraped(cluster, ProcessRole::Frontend, now).filter_map(counts);
        routers.next().filter(|_| routers.next().is_none())
    };
    cluster.worker(worker)?.in_flight.now().map(u64::from).or_else(by_router)
}

/// Most requests that a worker runs at once, by the frontends' metrics: where they serve several models, that of its own.
pub fn batch_limit_of(cluster: &Cluster, worker: WorkerIx) -> Option<u64> {
    cluster.model_figure(worker, |model| model.max_num_seqs).filter(|&limit| limit > 0)
}

/// What a worker's process reports to be queued in its engine and before it.
fn by_engine(process: &ProcessState) -> Option<u64> {
    let queues = [Gauge::EngineWaitingRequests, Gauge::AdmissionQueuedRequests];
    let requests = queues.into_iter().filter_map(|gauge| process.gauge(gauge)).reduce(|a, b| a + b);
    requests.map(|n| n as u64)
}

/// What engines report to be queued whose metrics do not name their worker, as before Dynamo 1.0.
fn by_nameless_engines(cluster: &Cluster, now: Millis) -> Option<u64> {
    let nameless = scraped(cluster, ProcessRole::Worker, now).filter(|process| process.instance().is_none());
    nameless.filter_map(by_engine).reduce(|a, b| a + b)
}

/// What is queued on one worker, part of what is in flight there: by its engine's metrics, else what is in flight above its batch
/// limit. `None` where engines report their queues, and which of them is this worker's is not known.
pub fn on_worker(cluster: &Cluster, worker: WorkerIx, now: Millis) -> Option<Queued> {
    let id = cluster.worker(worker)?.id.id.0;
    let engine = scraped(cluster, ProcessRole::Worker, now).find(|process| process.instance() == Some(id));
    let above = || {
        let requests = in_flight(cluster, worker, now)?.saturating_sub(batch_limit_of(cluster, worker)?);
        Some(Queued { requests, source: "in flight above the batch limit, tracked from decisions" })
    };
    match engine.and_then(by_engine) {
        Some(requests) => Some(Queued { requests, source: "its engine's metrics" }),
        None if by_nameless_engines(cluster, now).is_some() => None,
        None => above(),
    }
}

impl Queues {
    /// In the routers and on `workers`, now.
    pub fn of(cluster: &Cluster, workers: impl Iterator<Item = WorkerIx>, now: Millis) -> Self {
        let frontends = cluster.processes().iter().filter(|process| process.role != ProcessRole::Worker);
        let in_routers = frontends
            .filter(|process| now.since(process.last_ms) <= STALE_MS)
            .filter_map(|process| process.gauge(Gauge::RouterQueuedRequests))
            .reduce(|a, b| a + b)
            .map(|n| n as u64);
        let workers: Vec<WorkerIx> = workers.collect();
        // Of a part of the workers it is not known which engines are theirs.
        let mut there = cluster.workers().indexed().filter(|(_, state)| state.departure.is_none());
        let are_all = there.all(|(worker, _)| workers.contains(&worker));
        let nameless = by_nameless_engines(cluster, now).filter(|_| are_all);
        let nameless = nameless.map(|requests| Queued { requests, source: "the engines' metrics" });
        let named = workers.into_iter().filter_map(|worker| on_worker(cluster, worker, now));
        let on_workers = nameless.into_iter().chain(named).reduce(|sum, more| Queued {
            requests: sum.requests + more.requests,
            source: if sum.source == more.source { sum.source } else { "metrics of engines, and decisions" },
        });
        Self { in_routers, on_workers }
    }

    /// How many in all; `None`: no source reports any.
    pub fn all(&self) -> Option<u64> {
        let on_workers = self.on_workers.map(|queued| queued.requests);
        self.in_routers.map_or(on_workers, |n| Some(n + on_workers.unwrap_or(0)))
    }

    /// Who reports [`Queues::all`].
    pub const fn source(&self) -> &'static str {
        match (self.in_routers, self.on_workers) {
            (Some(_), Some(_)) => "in routers and on workers",
            (Some(_), None) => "in routers",
            (None, _) => "on workers; routers do not report theirs",
        }
    }

    /// How many and where, in short: `42 queued on workers`.
    pub fn to_text(&self) -> String {
        let on_workers = self.on_workers.map(|queued| queued.requests);
        match (self.in_routers, on_workers) {
            (None, None) => format!("queued: {UNKNOWN}"),
            (Some(0) | None, Some(0)) | (Some(0), None) => "0 queued".to_owned(),
            (Some(0) | None, Some(n)) => format!("{} queued on workers", count(n)),
            (Some(n), Some(0) | None) => format!("{} queued in routers", count(n)),
            (Some(router), Some(worker)) => {
                format!("queued: {} in routers, {} on workers", count(router), count(worker))
            }
        }
    }

    /// The same with sources, in a sentence without its end.
    pub fn explain(&self) -> String {
        let in_routers = match self.in_routers {
            Some(n) => format!("{} in routers, before a worker is chosen", count(n)),
            None => "in routers not reported (a scraped frontend of Dynamo ≥ 1.1 reports it)".to_owned(),
        };
        let on_workers = match self.on_workers {
            Some(queued) => format!(
                "{} on workers, part of those in flight, by {}",
                count(queued.requests),
                queued.source
            ),
            None => "on workers not reported (a scraped worker reports it)".to_owned(),
        };
        format!("{in_routers}; {on_workers}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Millis, Seq, Worker};
    use radixscope_model::record::{Entry, ModelFigures, Record, Scrape};

    const NOW: u64 = 1_800_000_000_000;

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(NOW), record });
    }

    fn workers() -> Cluster {
        let mut cluster = Cluster::default();
        for worker in 0..2 {
            let id = Worker::new(u64::from(worker) + 1, 0);
            let of = Record::new_worker(WorkerIx(worker), id, "", "");
            fold(&mut cluster, of);
        }
        cluster
    }

    fn scrape(
        cluster: &mut Cluster,
        name: &'static str,
        role: ProcessRole,
        instance: Option<u64>,
        gauge: Gauge,
        n: f64,
    ) {
        let scrape = Scrape { gauges: vec![(gauge, n)], instance, ..Scrape::new(name, role) };
        fold(cluster, Record::Scrape(Box::new(scrape)));
    }

    #[test]
    fn what_is_not_reported_is_absent() {
        let cluster = workers();
        assert_eq!(on_worker(&cluster, WorkerIx(0), Millis(NOW)), None);
        assert_eq!((queues(&cluster).all(), queues(&cluster).to_text()), (None, "queued: –".to_owned()));
    }

    fn queues(cluster: &Cluster) -> Queues {
        Queues::of(cluster, [WorkerIx(0), WorkerIx(1)].into_iter(), Millis(NOW))
    }

    #[test]
    fn queues_of_routers_and_engines_add_up_and_are_named() {
        let mut cluster = workers();
        scrape(&mut cluster, "worker1", ProcessRole::Worker, Some(1), Gauge::EngineWaitingRequests, 3.0);
        assert_eq!(on_worker(&cluster, WorkerIx(0), Millis(NOW)).map(|queued| queued.requests), Some(3));
        assert_eq!(on_worker(&cluster, WorkerIx(1), Millis(NOW)), None, "the other's engine says nothing");
        assert_eq!((queues(&cluster).all(), &*queues(&cluster).to_text()), (Some(3), "3 queued on workers"));
        scrape(&mut cluster, "frontend", ProcessRole::Frontend, None, Gauge::RouterQueuedRequests, 2.0);
        let both = queues(&cluster);
        assert_eq!((both.all(), both.source()), (Some(5), "in routers and on workers"));
        assert_eq!(both.to_text(), "queued: 2 in routers, 3 on workers");
    }

    #[test]
    fn what_engines_without_a_name_report_is_of_no_certain_worker() {
        let mut cluster = workers();
        scrape(&mut cluster, "engine", ProcessRole::Worker, None, Gauge::EngineWaitingRequests, 13.0);
        assert_eq!(on_worker(&cluster, WorkerIx(0), Millis(NOW)), None, "and not none");
        assert_eq!(queues(&cluster).to_text(), "13 queued on workers");
        let of_one = Queues::of(&cluster, [WorkerIx(0)].into_iter(), Millis(NOW));
        assert_eq!(of_one.all(), None, "of a pool");
    }

    #[test]
    fn a_worker_has_the_batch_limit_of_its_own_model() {
        let mut cluster = workers();
        let model = |name: &str, limit| ModelFigures {
            name: name.to_owned(),
            block_size_tokens: None,
            total_kv_blocks: None,
            max_num_seqs: Some(limit),
            max_num_batched_tokens: None,
            context_length: None,
        };
        let scrape = Scrape {
            models: vec![model("small", 64), model("large", 8)],
            ..Scrape::new("frontend", ProcessRole::Frontend)
        };
        fold(&mut cluster, Record::Scrape(Box::new(scrape)));
        let named = |worker: u16, name: &'static str| Record::Model {
            worker: WorkerIx(worker.into()),
            name: name.into(),
        };
        for record in [named(0, "small"), named(1, "large")] {
            fold(&mut cluster, record);
        }
        assert_eq!([0, 1].map(|ix| batch_limit_of(&cluster, WorkerIx(ix))), [Some(64), Some(8)]);
    }

    #[test]
    fn an_old_scrape_says_nothing_of_now() {
        let mut cluster = workers();
        scrape(&mut cluster, "frontend", ProcessRole::Frontend, None, Gauge::RouterQueuedRequests, 2.0);
        let at = |ms| Queues::of(&cluster, [WorkerIx(0)].into_iter(), Millis(NOW + ms)).all();
        assert_eq!((at(STALE_MS), at(STALE_MS + 1)), (Some(2), None));
    }
}
