//! Requests that wait for a worker: of one worker, and of all. Each figure with its source; what nobody reports is `None`,
//! never 0. Knows no screen.

use radixscope_model::id::WorkerIx;
use radixscope_model::record::{Gauge, ProcessRole};
use radixscope_state::cluster::Cluster;

use crate::in_flight::batch_limit;

/// Requests that are queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queued {
    /// How many.
    pub requests: u64,
    /// By whom.
    pub source: &'static str,
}

/// What is queued on one worker: by its engine's metrics, else what is in flight there above the batch limit.
pub fn on_worker(cluster: &Cluster, worker: WorkerIx) -> Option<Queued> {
    let state = cluster.worker(worker)?;
    let mut processes = cluster.processes().iter().filter(|process| process.role == ProcessRole::Worker);
    let engine = processes.find(|process| process.instance() == Some(state.id.id.0));
    let waiting = engine.and_then(|process| process.gauge(Gauge::EngineWaitingRequests));
    let above = || {
        let in_flight = u64::from(state.in_flight.now()?);
        let requests = in_flight.saturating_sub(batch_limit(cluster)?);
        Some(Queued { requests, source: "in flight above the batch limit, tracked from decisions" })
    };
    waiting.map(|n| Queued { requests: n as u64, source: "its engine's metrics" }).or_else(above)
}

/// What is queued in all: in routers and on `workers`. A request waits in one place, so both are added.
pub fn in_all(cluster: &Cluster, workers: impl Iterator<Item = WorkerIx>) -> Option<Queued> {
    let frontends = cluster.processes().iter().filter(|process| process.role != ProcessRole::Worker);
    let in_routers = frontends
        .filter_map(|process| process.gauge(Gauge::RouterQueuedRequests))
        .reduce(|a, b| a + b)
        .map(|n| n as u64);
    let on_workers = workers
        .filter_map(|worker| on_worker(cluster, worker))
        .map(|queued| queued.requests)
        .reduce(|a, b| a + b);
    let source = match (in_routers, on_workers) {
        (Some(_), Some(_)) => "routers' queues and workers",
        (Some(_), None) => "routers' queues",
        (None, _) => "workers; routers do not report theirs",
    };
    let requests = in_routers.map_or(on_workers, |n| Some(n + on_workers.unwrap_or(0)))?;
    Some(Queued { requests, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Millis, Seq, Worker};
    use radixscope_model::record::{Entry, Record, Scrape};

    const NOW: u64 = 1_800_000_000_000;

    fn fold(cluster: &mut Cluster, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(NOW), record });
    }

    fn workers() -> Cluster {
        let mut cluster = Cluster::default();
        for worker in 0..2 {
            let id = Worker::new(u64::from(worker) + 1, 0);
            let of =
                Record::Worker { worker: WorkerIx(worker), id, namespace: "".into(), component: "".into() };
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
        fold(cluster, Record::Scrape(scrape));
    }

    #[test]
    fn what_nobody_reports_is_not_there() {
        let cluster = workers();
        assert_eq!(on_worker(&cluster, WorkerIx(0)), None);
        assert_eq!(in_all(&cluster, [WorkerIx(0), WorkerIx(1)].into_iter()), None);
    }

    #[test]
    fn queues_of_routers_and_engines_add_up() {
        let mut cluster = workers();
        scrape(&mut cluster, "worker1", ProcessRole::Worker, Some(1), Gauge::EngineWaitingRequests, 3.0);
        assert_eq!(on_worker(&cluster, WorkerIx(0)).map(|queued| queued.requests), Some(3));
        assert_eq!(on_worker(&cluster, WorkerIx(1)), None, "the other's engine says nothing");
        let all = |cluster: &Cluster| in_all(cluster, [WorkerIx(0), WorkerIx(1)].into_iter()).unwrap();
        assert_eq!(all(&cluster).requests, 3);
        scrape(&mut cluster, "frontend", ProcessRole::Frontend, None, Gauge::RouterQueuedRequests, 2.0);
        assert_eq!(all(&cluster), Queued { requests: 5, source: "routers' queues and workers" });
    }
}
