//! `/metrics`: our own figures for Prometheus, read from the state at the time of the scrape. An unknown value is
//! absent, never 0.

use std::fmt;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use radixscope_model::record::{Phase, Severity};
use radixscope_state::cluster::Cluster;
use radixscope_state::tree::Totals;

use super::error::{ApiError, code};
use crate::hub::{Hub, Stats, View};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) async fn metrics(State(hub): State<Hub>) -> Result<Response, ApiError> {
    let mut scrape = hub.read(|view| Scrape::of(view)).await?;
    let viewers = hub.viewers();
    scrape.viewers = viewers.now.load(Ordering::Relaxed) as u64;
    scrape.viewers_total = viewers.total.load(Ordering::Relaxed);
    scrape.resyncs = viewers.resyncs.load(Ordering::Relaxed);
    scrape.skipped_records = viewers.skipped_records.load(Ordering::Relaxed);
    let mut registry = Registry::with_prefix("radixscope");
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    encode(&mut text, &registry)
        .map_err(|_| ApiError::new(code::INTERNAL, "the figures could not be written"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

/// Everything one scrape shows. A copy, because the library takes only a `'static` collector and so cannot borrow the
/// state; copying it is quick, and the text is written outside the hub.
#[derive(Debug)]
struct Scrape {
    seq: u64,
    stats: Stats,
    tree: Totals,
    allocated: u32,
    limit: u32,
    heap_bytes: u64,
    decisions: u64,
    sources: Vec<Source>,
    workers: Vec<Worker>,
    processes: Vec<Process>,
    findings: Vec<Finding>,
    viewers: u64,
    viewers_total: u64,
    resyncs: u64,
    skipped_records: u64,
}

#[derive(Debug)]
struct Source {
    name: String,
    state: &'static str,
    lag_ms: Option<i64>,
    missed: Vec<(&'static str, &'static str, u64)>,
    missed_events: Vec<(&'static str, u64)>,
    gaps: Vec<(&'static str, u64)>,
    rejected: Vec<(&'static str, &'static str, u64)>,
}

#[derive(Debug)]
struct Worker {
    id: u64,
    dp_rank: u32,
    blocks: Option<u64>,
    unattached: u64,
    capacity: Option<u64>,
    used: Option<u64>,
    stored: u64,
    removed: u64,
    cleared: u64,
    missed: u64,
    decisions: u64,
    in_flight: Option<u32>,
}

/// A process whose own metrics we scrape.
#[derive(Debug)]
struct Process {
    name: String,
    role: &'static str,
    age_s: f64,
    restarts: u64,
}

#[derive(Debug)]
struct Finding {
    code: String,
    severity: &'static str,
    is_present: bool,
}

impl Scrape {
    fn of(view: &View<'_>) -> Self {
        let cluster: &Cluster = view.cluster;
        let source = |s: &radixscope_state::cluster::SourceState| Source {
            name: s.name.clone(),
            state: s.state.as_str(),
            lag_ms: s.lag_ms,
            missed: s
                .missed
                .iter()
                .filter(|m| !m.cause.counts_again())
                .map(|m| (m.topic.as_str(), m.cause.as_str(), m.count))
                .collect(),
            missed_events: s
                .missed
                .iter()
                .filter(|m| m.cause.counts_again())
                .map(|m| (m.topic.as_str(), m.count))
                .collect(),
            gaps: s.gaps.iter().map(|g| (g.topic.as_str(), g.count)).collect(),
            rejected: s.rejected.iter().map(|r| (r.topic.as_str(), r.reason.as_str(), r.count)).collect(),
        };
        let workers = cluster.workers_by_id().into_iter().filter_map(|ix| {
            let w = cluster.worker(ix)?;
            Some(Worker {
                id: w.id.id.0,
                dp_rank: w.id.dp_rank,
                blocks: cluster.blocks(ix),
                unattached: cluster.tree().holdings(ix).unattached,
                capacity: cluster.capacity(ix).map(|capacity| capacity.value),
                used: w.engine_used_blocks,
                stored: w.stored_total,
                removed: w.removed_total,
                cleared: w.cleared_total,
                missed: w.missed_total,
                decisions: cluster.decisions().totals_of(ix).count,
                in_flight: w.in_flight.now(),
            })
        });
        let process = |p: &radixscope_state::cluster::ProcessState| Process {
            name: p.name.clone(),
            role: p.role.as_str(),
            age_s: view.at_ms.since(p.last_ms) as f64 / 1_000.0,
            restarts: p.restarts.into(),
        };
        let finding = |f: &radixscope_model::record::Finding| Finding {
            code: f.code.to_string(),
            severity: f.severity.as_str(),
            is_present: f.phase != Phase::Cleared,
        };
        Self {
            seq: cluster.seq().0,
            stats: view.stats.clone(),
            tree: cluster.tree().totals(),
            allocated: cluster.tree().allocated(),
            limit: cluster.tree().limit(),
            heap_bytes: cluster.tree().heap_bytes() as u64,
            decisions: cluster.decisions().totals().count,
            sources: cluster.sources().iter().map(source).collect(),
            workers: workers.collect(),
            processes: cluster.processes().iter().map(process).collect(),
            findings: cluster.findings().iter().map(finding).collect(),
            viewers: 0,
            viewers_total: 0,
            resyncs: 0,
            skipped_records: 0,
        }
    }

    fn of_ourselves(&self, to: &mut Writer<'_>) -> fmt::Result {
        let stats = &self.stats;
        let build = [("version", env!("CARGO_PKG_VERSION"))];
        to.gauges("build_info", "Version of the server", [(build, 1.0)])?;
        to.gauge("uptime_seconds", "Time since the server started", stats.started.elapsed().as_secs_f64())?;
        to.gauge("queue_messages", "Messages that wait to be decoded", stats.queued_messages as f64)?;
        to.gauge("queue_bytes", "Bytes of messages that wait to be decoded", stats.queued_bytes as f64)?;
        let most = stats.queue_limits;
        to.gauge("queue_limit_messages", "Most messages that may wait", most.messages as f64)?;
        to.gauge("queue_limit_bytes", "Most bytes that may wait", most.bytes as f64)?;
        if let Some(lag) = stats.fold_lag {
            let help = "Longest time from a message's arrival to its fold, in the last second with messages";
            to.gauge("fold_lag_seconds", help, lag.as_secs_f64())?;
        }
        to.counter("records", "Records folded", self.seq)?;
        to.counter("batches", "Batches published", stats.batches)?;
        to.gauge(
            "log_bytes",
            "Bytes of recent batches kept for viewers that come back",
            stats.log_bytes as f64,
        )?;
        to.gauge("viewers", "Viewers connected", self.viewers as f64)?;
        to.counter("viewers_connected", "Viewers that ever connected", self.viewers_total)?;
        to.counter("viewer_resyncs", "Times a viewer fell behind and got a new snapshot", self.resyncs)?;
        let help = "Records not sent to viewers that fell behind";
        to.counter("viewer_skipped_records", help, self.skipped_records)
    }

    fn of_sources(&self, to: &mut Writer<'_>) -> fmt::Result {
        let named = || self.sources.iter().zip(&self.stats.sources);
        let by = |count: fn(&crate::hub::SourceStats) -> u64| {
            named().map(move |(s, stats)| ([("source", s.name.as_str())], count(stats)))
        };
        to.counters("ingest_messages", "Messages decoded", by(|s| s.messages))?;
        to.counters("ingest_bytes", "Payload bytes decoded", by(|s| s.bytes))?;
        to.counters("ingest_records", "Records that messages became", by(|s| s.records))?;
        let states = self.sources.iter().flat_map(|s| {
            ["connecting", "catching_up", "live", "partial", "refused", "ended"].map(|state| {
                ([("source", s.name.as_str()), ("state", state)], if s.state == state { 1.0 } else { 0.0 })
            })
        });
        to.gauges("source_state", "1 for the state that the link to the source is in", states)?;
        let lags = self
            .sources
            .iter()
            .filter_map(|s| s.lag_ms.map(|ms| ([("source", s.name.as_str())], ms as f64 / 1_000.0)));
        to.gauges(
            "source_lag_seconds",
            "Arrival minus publication of the slowest recent message, by two clocks",
            lags,
        )?;
        let missed = self.sources.iter().flat_map(|s| {
            s.missed.iter().map(|&(topic, cause, n)| {
                ([("source", s.name.as_str()), ("topic", topic), ("cause", cause)], n)
            })
        });
        let help = "Messages known to be lost, each under one cause; slow_consumer is a lower bound";
        to.counters("ingest_missed", help, missed)?;
        let by_topic = |of: fn(&Source) -> &Vec<(&'static str, u64)>| {
            self.sources.iter().flat_map(move |s| {
                of(s).iter().map(|&(topic, n)| ([("source", s.name.as_str()), ("topic", topic)], n))
            })
        };
        let help = "Events in lost messages, by the workers' event ids; their messages are in ingest_missed";
        to.counters("ingest_missed_events", help, by_topic(|s| &s.missed_events))?;
        let help =
            "Times without connection that cost an unknown number of messages; they are in no other count";
        let gaps = by_topic(|s| &s.gaps).map(|(labels, n)| (labels, n as f64));
        to.gauges("ingest_unknown_gaps", help, gaps)?;
        let rejected = self.sources.iter().flat_map(|s| {
            s.rejected.iter().map(|&(topic, reason, n)| {
                ([("source", s.name.as_str()), ("topic", topic), ("reason", reason)], n)
            })
        });
        to.counters("ingest_rejected", "Inputs that were not understood", rejected)
    }

    fn of_tree(&self, to: &mut Writer<'_>) -> fmt::Result {
        let tree = &self.tree;
        to.gauge("tree_nodes", "Distinct blocks held by at least one worker", tree.nodes as f64)?;
        to.gauge("tree_shared_nodes", "Distinct blocks held by two workers or more", tree.shared as f64)?;
        let help = "Holders beyond the first, over all distinct blocks";
        to.gauge("tree_copies", help, tree.copies() as f64)?;
        to.gauge("tree_blocks", "Sum of the blocks that each worker holds", tree.resident as f64)?;
        let shown = tree.resident - tree.hidden;
        to.gauge("tree_blocks_shown", "Of those, in the picture", shown as f64)?;
        to.gauge(
            "tree_blocks_unattached",
            "Of those, below a parent that was never seen",
            tree.unattached as f64,
        )?;
        to.gauge("tree_allocated_nodes", "Nodes in memory", f64::from(self.allocated))?;
        to.gauge("tree_limit_nodes", "Most nodes in memory", f64::from(self.limit))?;
        to.gauge("tree_heap_bytes", "Memory that the tree uses", self.heap_bytes as f64)?;
        to.counter("decisions", "Routing decisions heard", self.decisions)
    }

    fn of_workers(&self, to: &mut Writer<'_>) -> fmt::Result {
        let known = |value: fn(&Worker) -> Option<u64>| {
            self.workers.iter().filter_map(move |w| value(w).map(|v| (w.labels(), v as f64)))
        };
        let counted = |value: fn(&Worker) -> u64| self.workers.iter().map(move |w| (w.labels(), value(w)));
        to.gauges(
            "worker_blocks",
            "Blocks that the worker holds; absent while it is unknown",
            known(|w| w.blocks),
        )?;
        let help = "Of those, below a parent that was never seen";
        to.gauges("worker_unattached_blocks", help, known(|w| w.blocks.map(|_| w.unattached)))?;
        let help = "Blocks that its KV cache can hold, by its model card";
        to.gauges("worker_capacity_blocks", help, known(|w| w.capacity))?;
        to.gauges(
            "worker_used_blocks",
            "Blocks that running requests use, by its engine",
            known(|w| w.used),
        )?;
        to.counters("worker_stored_blocks", "Blocks in its stored events", counted(|w| w.stored))?;
        to.counters("worker_removed_blocks", "Blocks in its removed events", counted(|w| w.removed))?;
        to.counters("worker_cleared", "Times it dropped everything", counted(|w| w.cleared))?;
        to.counters("worker_missed", "Messages or events of it known to be lost", counted(|w| w.missed))?;
        to.counters("worker_decisions", "Routing decisions that chose it", counted(|w| w.decisions))?;
        let help = "Requests between choice and end; absent where no source tells when requests end";
        to.gauges("worker_in_flight_requests", help, known(|w| w.in_flight.map(u64::from)))
    }

    fn of_processes(&self, to: &mut Writer<'_>) -> fmt::Result {
        let labels = |p: &Process| [("process", p.name.clone()), ("role", p.role.to_owned())];
        let ages = self.processes.iter().map(|p| (labels(p), p.age_s));
        to.gauges("process_scrape_age_seconds", "Time since it last answered a scrape", ages)?;
        let restarts = self.processes.iter().map(|p| (labels(p), p.restarts));
        to.counters("process_restarts", "Times it was seen to have restarted", restarts)
    }

    fn of_findings(&self, to: &mut Writer<'_>) -> fmt::Result {
        let each = self.findings.iter().map(|f| {
            let labels = [("code", f.code.as_str()), ("severity", f.severity)];
            (labels, if f.is_present { 1.0 } else { 0.0 })
        });
        to.gauges("findings", "1 while the finding is present, 0 once it is over", each)?;
        let totals = [Severity::Info, Severity::Warning, Severity::Critical].map(|severity| {
            let severity = severity.as_str();
            let present = self.findings.iter().filter(|f| f.is_present && f.severity == severity).count();
            ([("severity", severity)], present as f64)
        });
        to.gauges("findings_present", "Findings that are present", totals)
    }
}

impl Worker {
    fn labels(&self) -> [(&'static str, String); 2] {
        [("worker_id", self.id.to_string()), ("dp_rank", self.dp_rank.to_string())]
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer(encoder);
        self.of_ourselves(&mut to)?;
        self.of_sources(&mut to)?;
        self.of_tree(&mut to)?;
        self.of_workers(&mut to)?;
        self.of_processes(&mut to)?;
        self.of_findings(&mut to)
    }
}

/// Writes one family after the other.
struct Writer<'e>(DescriptorEncoder<'e>);

impl Writer<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
