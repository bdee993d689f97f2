//! `/metrics`: our own figures for Prometheus, read from the state at the time of the scrape. An unknown value is
//! absent, never 0.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use radixscope_model::id::WorkerIx;
use radixscope_model::record::{LinkState, Phase, Severity, TreeKnowledge};
use radixscope_state::cluster::{Cluster, PoolState, ProcessState, SourceState, WorkerState};
use radixscope_state::tree::{Totals, Tree};

use super::App;
use super::error::{ApiError, code};
use super::listen::Places;
use crate::hub::{SourceStats, View, ViewerCounts};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const STATES: [LinkState; 6] = [
    LinkState::Connecting,
    LinkState::CatchingUp,
    LinkState::Live,
    LinkState::Partial,
    LinkState::Refused,
    LinkState::Ended,
];
const SEVERITIES: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

pub(super) async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let viewers = Arc::clone(app.hub.viewers());
    let mut families = app.hub.read(move |view| Families::of(view, &viewers)).await?;
    if let Some(places) = &app.places {
        families.of_connections(places);
    }
    let mut registry = Registry::with_prefix("radixscope");
    registry.register_collector(Box::new(families));
    let mut text = String::new();
    encode(&mut text, &registry)
        .map_err(|_| ApiError::new(code::INTERNAL, "the figures could not be written"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// One scrape. The library takes only a `'static` collector and so cannot borrow the state; the text is written outside
/// the hub.
#[derive(Debug, Default)]
struct Families(Vec<Family>);

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, Number)>,
}

/// Names and values; several samples of one thing share them.
type Labels = Arc<[(&'static str, String)]>;

#[derive(Clone, Copy, Debug)]
enum Number {
    Gauge(f64),
    Counter(u64),
}

fn labels<const N: usize>(pairs: [(&'static str, &str); N]) -> Labels {
    pairs.map(|(name, value)| (name, value.to_owned())).into()
}

impl Families {
    fn of(view: &View<'_>, viewers: &ViewerCounts) -> Self {
        let mut all = Self::default();
        all.of_ourselves(view, viewers);
        all.of_sources(view);
        all.of_tree(view.cluster);
        all.of_workers(view.cluster);
        all.of_completeness(view.cluster);
        all.of_processes(view);
        all.of_findings(view.cluster);
        all
    }

    fn of_ourselves(&mut self, view: &View<'_>, viewers: &ViewerCounts) {
        let stats = view.stats;
        let build = labels([("version", env!("CARGO_PKG_VERSION"))]);
        self.gauges("build_info", "Version of the server", [(build, 1.0)]);
        self.gauge("uptime_seconds", "Time since the server started", stats.started.elapsed().as_secs_f64());
        self.gauge("queue_messages", "Messages queued for decoding", stats.queued_messages as f64);
        self.gauge("queue_bytes", "Bytes of messages queued for decoding", stats.queued_bytes as f64);
        let most = stats.queue_limits;
        self.gauge("queue_limit_messages", "Maximum of queued messages", most.messages as f64);
        self.gauge("queue_limit_bytes", "Maximum of queued bytes", most.bytes as f64);
        if let Some(lag) = stats.fold_lag {
            let help = "Longest time from a message's arrival to its fold, in the last second with messages";
            self.gauge("fold_lag_seconds", help, lag.as_secs_f64());
        }
        self.counter("records", "Records folded", view.cluster.seq().0);
        self.counter("batches", "Batches published", stats.batches);
        let help = "Bytes of recent batches kept for viewers that come back";
        self.gauge("log_bytes", help, stats.log_bytes as f64);
        self.gauge("viewers", "Viewers connected", viewers.now.load(Ordering::Relaxed) as f64);
        let total = viewers.total.load(Ordering::Relaxed);
        self.counter("viewers_connected", "Viewers connected since the start", total);
        let help = "Times a viewer fell behind and got a new snapshot";
        self.counter("viewer_resyncs", help, viewers.resyncs.load(Ordering::Relaxed));
        let help = "Records not sent to viewers that fell behind";
        self.counter("viewer_skipped_records", help, viewers.skipped_records.load(Ordering::Relaxed));
    }

    fn of_connections(&mut self, places: &Places) {
        self.gauge("connections", "Connections open, viewers and others", places.len() as f64);
        self.gauge("connections_limit", "Most connections at once", places.most() as f64);
        let counted = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let help = "Idle connections closed for others";
        self.counter("connections_gave_way", help, counted(&places.gave_way));
        let help = "Connections refused because all allowed ones were in use";
        self.counter("connections_refused", help, counted(&places.refused));
        let help = "Times that the system refused a connection";
        self.counter("connections_not_accepted", help, counted(&places.not_accepted));
    }

    fn of_sources(&mut self, view: &View<'_>) {
        let sources = || view.cluster.sources().iter();
        let name = |source: &SourceState| labels([("source", &source.name)]);
        let by = |count: fn(&SourceStats) -> u64| {
            sources().zip(&view.stats.sources).map(move |(source, stats)| (name(source), count(stats)))
        };
        self.counters("ingest_messages", "Messages decoded", by(|s| s.messages));
        self.counters("ingest_bytes", "Payload bytes decoded", by(|s| s.bytes));
        self.counters("ingest_records", "Records that messages became", by(|s| s.records));
        let states = sources().flat_map(|source| {
            STATES.map(|state| {
                let labels = labels([("source", &source.name), ("state", state.as_str())]);
                (labels, f64::from(u8::from(source.state == state)))
            })
        });
        self.gauges("source_state", "1 for the current state of the source", states);
        let lags = sources().filter_map(|source| Some((name(source), source.lag_ms? as f64 / 1_000.0)));
        let help = "Arrival minus publication of the slowest recent message, by two clocks";
        self.gauges("source_lag_seconds", help, lags);
        let missed = |again| {
            let each = sources().flat_map(|source| source.missed.iter().map(move |missed| (source, missed)));
            each.filter(move |(_, missed)| missed.cause.counts_again() == again)
        };
        let by_cause = missed(false).map(|(source, missed)| {
            let (topic, cause) = (missed.topic.as_str(), missed.cause.as_str());
            (labels([("source", &source.name), ("topic", topic), ("cause", cause)]), missed.count)
        });
        let help = "Messages lost, each under one cause; slow_consumer is a lower bound";
        self.counters("ingest_missed", help, by_cause);
        let events = missed(true).map(|(source, missed)| {
            (labels([("source", &source.name), ("topic", missed.topic.as_str())]), missed.count)
        });
        let recovered = missed(false).filter(|(_, missed)| missed.recovered > 0).map(|(source, missed)| {
            let (topic, cause) = (missed.topic.as_str(), missed.cause.as_str());
            (labels([("source", &source.name), ("topic", topic), ("cause", cause)]), missed.recovered)
        });
        let help = "Of ingest_missed, those recovered by queries to workers";
        self.counters("ingest_recovered", help, recovered);
        let help = "Events in lost messages, by the workers' event ids; their messages are in ingest_missed";
        self.counters("ingest_missed_events", help, events);
        let gaps = sources().flat_map(|source| {
            let of = |topic: &str| labels([("source", &source.name), ("topic", topic)]);
            source.gaps.iter().map(move |gaps| (of(gaps.topic.as_str()), gaps.count as f64))
        });
        let help = "Connection losses with an unknown number of messages lost, which are in no other count";
        self.gauges("ingest_unknown_gaps", help, gaps);
        let rejected = sources().flat_map(|source| {
            source.rejected.iter().map(|rejected| {
                let (topic, reason) = (rejected.topic.as_str(), rejected.reason.as_str());
                (labels([("source", &source.name), ("topic", topic), ("reason", reason)]), rejected.count)
            })
        });
        self.counters("ingest_rejected", "Invalid inputs", rejected);
    }

    fn of_tree(&mut self, cluster: &Cluster) {
        let pools: Vec<(Labels, &Tree)> = cluster
            .pools_in_use()
            .into_iter()
            .filter_map(|ix| Some((labels([("pool", &cluster.pool(ix)?.name())]), cluster.tree(ix))))
            .collect();
        let mut blocks = |name, help, number: fn(&Totals) -> u64| {
            let samples =
                pools.iter().map(|(labels, tree)| (Arc::clone(labels), number(&tree.totals()) as f64));
            self.gauges(name, help, samples);
        };
        blocks("tree_nodes", "Distinct blocks cached on at least one worker of the pool", |totals| {
            totals.nodes
        });
        blocks("tree_shared_nodes", "Distinct blocks cached on two workers or more", |totals| totals.shared);
        blocks(
            "tree_copies",
            "Duplicate blocks: copies beyond the first, over all distinct blocks",
            Totals::copies,
        );
        blocks("tree_blocks", "Sum of the blocks that each worker holds", |totals| totals.resident);
        blocks("tree_blocks_shown", "Of those, in the tree", |totals| totals.resident - totals.hidden);
        let help = "Of those, unattached: below a parent that was never received";
        blocks("tree_blocks_unattached", help, |totals| totals.unattached);
        let sum = |of: fn(&Tree) -> u64| cluster.trees().map(|(_, tree)| of(tree)).sum::<u64>() as f64;
        self.gauge("tree_allocated_nodes", "Nodes in memory", sum(|tree| tree.allocated().into()));
        self.gauge("tree_limit_nodes", "Maximum of nodes in memory", cluster.limit_nodes().into());
        self.gauge("tree_heap_bytes", "Memory that the trees use", sum(|tree| tree.heap_bytes() as u64));
        self.counter("decisions", "Routing decisions received", cluster.decisions().totals().count);
    }

    /// How much of what workers hold is known, and what asking them came to.
    fn of_completeness(&mut self, cluster: &Cluster) {
        let present = |(_, worker, _): &(WorkerIx, &WorkerState, Labels)| worker.gone.is_none();
        let workers: Vec<_> = labelled(cluster).filter(present).collect();
        let publishes = workers.iter().filter(|(ix, ..)| cluster.publishes(*ix));
        let complete = publishes.map(|(_, worker, labels)| {
            (Arc::clone(labels), f64::from(u8::from(worker.knowledge.is_complete())))
        });
        let help = "1 while every block of the worker is known, 0 while some or all are not";
        self.gauges("worker_tree_complete", help, complete);
        let is_known = |worker: &WorkerState| worker.knowledge.state != TreeKnowledge::Unknown;
        let known = workers.iter().filter(|(_, worker, _)| is_known(worker));
        let known = known.map(|(ix, _, labels)| (Arc::clone(labels), cluster.known_of_used(*ix).0 as f64));
        let help = "Blocks of the worker that are known; absent while nothing of it is";
        self.gauges("worker_tree_known_blocks", help, known);
        let used = workers.iter().filter_map(|(ix, _, labels)| {
            Some((Arc::clone(labels), cluster.known_of_used(*ix).1?.value as f64))
        });
        let help = "Cached blocks of the worker: all known ones where the tree is complete, else its capacity once it removes \
                    blocks; absent while it is unknown";
        self.gauges("worker_tree_used_blocks", help, used);
        let queries = workers.iter().flat_map(|(_, worker, labels)| {
            let queries = worker.knowledge.queries;
            [("applied", queries.applied), ("failed", queries.failed)].map(|(outcome, count)| {
                let outcome = ("outcome", outcome.to_owned());
                (labels.iter().cloned().chain([outcome]).collect::<Labels>(), count)
            })
        });
        let help =
            "Queries to the worker for its blocks or for lost events, by whether their answers were applied";
        self.counters("tree_queries", help, queries);
        let drift = workers.iter().filter_map(|(_, worker, labels)| {
            let drift = worker.knowledge.drift?;
            Some((Arc::clone(labels), (drift.missing_blocks + drift.surplus_blocks) as f64))
        });
        let help =
            "Blocks by which two answers of the worker differed from the tree; absent while they do not";
        self.gauges("worker_tree_drift_blocks", help, drift);
        let coverage = cluster.coverage(cluster.pools_in_use());
        if let Some(share) = coverage.share() {
            let help = "Known blocks ÷ cached blocks, 0 to 1; absent while that is unknown";
            self.gauge("tree_known_ratio", help, share);
        }
    }

    fn of_workers(&mut self, cluster: &Cluster) {
        let workers: Vec<_> = labelled(cluster).collect();
        let known = |value: fn(&Cluster, WorkerIx, &WorkerState) -> Option<u64>| {
            let value = move |&(ix, worker, _): &_| value(cluster, ix, worker);
            workers.iter().filter_map(move |of| Some((Arc::clone(&of.2), value(of)? as f64)))
        };
        let counted = |value: fn(&WorkerState) -> u64| {
            workers.iter().map(move |(_, worker, labels)| (Arc::clone(labels), value(worker)))
        };
        let help = "Cached blocks of the worker; absent while unknown";
        self.gauges("worker_blocks", help, known(|cluster, ix, _| cluster.blocks(ix)));
        let help = "Of those, unattached: below a parent that was never received";
        let unattached =
            known(|cluster, ix, _| cluster.blocks(ix).map(|_| cluster.tree_of(ix).holdings(ix).unattached));
        self.gauges("worker_unattached_blocks", help, unattached);
        let help = "Capacity of its KV cache in blocks, by its model card";
        let capacity = known(|cluster, ix, _| cluster.capacity(ix).map(|capacity| capacity.value));
        self.gauges("worker_capacity_blocks", help, capacity);
        let help = "Blocks that running requests use, by its engine";
        self.gauges("worker_used_blocks", help, known(|_, _, worker| worker.engine_used_blocks));
        self.counters("worker_stored_blocks", "Blocks in its stored events", counted(|w| w.stored_total));
        self.counters("worker_removed_blocks", "Blocks in its removed events", counted(|w| w.removed_total));
        self.counters("worker_cleared", "Times it cleared all blocks", counted(|w| w.cleared_total));
        let help = "Messages or events of it known to be lost";
        self.counters("worker_missed", help, counted(|w| w.missed_total));
        let help = "Of those, the ones recovered by queries to it";
        self.counters("worker_recovered", help, counted(|w| w.recovered_total));
        let decisions = workers
            .iter()
            .map(|(ix, _, labels)| (Arc::clone(labels), cluster.decisions().totals_of(*ix).count));
        self.counters("worker_decisions", "Routing decisions that chose it", decisions);
        let help =
            "Requests in flight, from decision to end; absent where no source reports when requests end";
        let in_flight = known(|_, _, worker| worker.in_flight.now().map(u64::from));
        self.gauges("worker_in_flight_requests", help, in_flight);
    }

    fn of_processes(&mut self, view: &View<'_>) {
        let processes = || view.cluster.processes().iter();
        let name = |p: &ProcessState| labels([("process", &p.name), ("role", p.role.as_str())]);
        let ages = processes().map(|p| (name(p), view.at_ms.since(p.last_ms) as f64 / 1_000.0));
        self.gauges("process_scrape_age_seconds", "Time since it last answered a scrape", ages);
        let restarts = processes().map(|p| (name(p), p.restarts.into()));
        self.counters("process_restarts", "Restarts seen", restarts);
    }

    fn of_findings(&mut self, cluster: &Cluster) {
        let findings = || cluster.findings().iter().map(|f| (f, f.phase != Phase::Cleared));
        let each = findings().map(|(finding, is_present)| {
            let labels = labels([("code", &finding.code), ("severity", finding.severity.as_str())]);
            (labels, f64::from(u8::from(is_present)))
        });
        self.gauges("findings", "1 while the finding is active, 0 once it is resolved", each);
        let totals = SEVERITIES.map(|severity| {
            let present = findings().filter(|(f, is_present)| *is_present && f.severity == severity).count();
            (labels([("severity", severity.as_str())]), present as f64)
        });
        self.gauges("findings_present", "Active findings", totals);
    }

    fn gauge(&mut self, name: &'static str, help: &'static str, value: f64) {
        self.gauges(name, help, [(Labels::default(), value)]);
    }

    fn counter(&mut self, name: &'static str, help: &'static str, value: u64) {
        self.counters(name, help, [(Labels::default(), value)]);
    }

    fn gauges(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, f64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| (labels, Number::Gauge(value))).collect();
        self.0.push(Family { name, help, kind: MetricType::Gauge, samples });
    }

    fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = (Labels, u64)>,
    ) {
        let samples = samples.into_iter().map(|(labels, value)| (labels, Number::Counter(value))).collect();
        self.0.push(Family { name, help, kind: MetricType::Counter, samples });
    }
}

/// Workers with the labels of their samples.
fn labelled(cluster: &Cluster) -> impl Iterator<Item = (WorkerIx, &WorkerState, Labels)> {
    cluster.workers_by_id().into_iter().filter_map(|ix| {
        let worker = cluster.worker(ix)?;
        let (id, rank) = (worker.id.id.to_string(), worker.id.dp_rank.to_string());
        let pool = cluster.pool(worker.pool).map(PoolState::name).unwrap_or_default();
        Some((ix, worker, labels([("worker_id", &id), ("dp_rank", &rank), ("pool", &pool)])))
    })
}

impl Collector for Families {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, help, kind, samples } in &self.0 {
            let mut family = to.encode_descriptor(name, help, None, *kind)?;
            for (labels, number) in samples {
                if labels.is_empty() {
                    number.encode(family)?;
                    break;
                }
                number.encode(family.encode_family(&&labels[..])?)?;
            }
        }
        Ok(())
    }
}

impl Number {
    fn encode(self, to: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Gauge(value) => ConstGauge::new(value).encode(to),
            Self::Counter(value) => ConstCounter::new(value).encode(to),
        }
    }
}
