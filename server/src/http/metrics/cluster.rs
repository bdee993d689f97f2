//! Metrics of the deployment and its pools: trees, decisions, latencies, findings.

use std::sync::Arc;

use radixscope_insight::in_flight::{self, Gap, Series};
use radixscope_insight::latency::{self, Quantity, TimingSource};
use radixscope_insight::reuse::{Funnel, LossCause, Step};
use radixscope_model::id::{Millis, PoolIx};
use radixscope_model::record::{Phase, Severity};
use radixscope_state::cluster::{Cluster, DecisionTotals, WorkerState};
use radixscope_state::tree::{Totals, Tree};

use super::{Families, Labels, labels};

const SEVERITIES: [Severity; 3] = [Severity::Info, Severity::Warning, Severity::Critical];

/// Pools with series of their own.
const MOST_POOLS: usize = 64;
/// In-flight imbalance lasts seconds and a scrape comes every 15 or 30 s.
const IMBALANCE_S: u64 = 60;
/// Reuse is of the decisions of so long.
const REUSE_MS: u64 = 60_000;
/// Latency metrics: quantity, its name in `latency_samples`, name and help of the family.
const LATENCIES: [(Quantity, &str, &str, &str); 3] = [
    (
        Quantity::Ttft,
        "ttft",
        "ttft_seconds",
        "Time to first token over the last 60 s; bounds differ where only the bucket of a histogram is known",
    ),
    (
        Quantity::Tpot,
        "itl",
        "itl_seconds",
        "Time between output tokens (ITL) over the last 60 s; bounds differ where only the bucket of a histogram is known",
    ),
    (
        Quantity::EndToEnd,
        "request",
        "request_seconds",
        "Duration of requests over the last 60 s; bounds differ where only the bucket of a histogram is known",
    ),
];

/// The pools with series, and their labels.
fn listed_pools(cluster: &Cluster) -> impl Iterator<Item = (PoolIx, Labels)> + '_ {
    let pools = cluster.pools_in_use().into_iter().take(MOST_POOLS);
    pools.filter_map(|ix| Some((ix, labels([("pool", &cluster.pool(ix)?.name())]))))
}

impl Families {
    pub(super) fn of_tree(&mut self, cluster: &Cluster) {
        let pools: Vec<(Labels, &Tree)> =
            listed_pools(cluster).map(|(ix, labels)| (labels, cluster.tree(ix))).collect();
        let mut blocks = |name, help, number: fn(&Totals) -> u64| {
            let samples =
                pools.iter().map(|(labels, tree)| (Arc::clone(labels), number(&tree.totals()) as f64));
            self.gauges(name, help, samples);
        };
        blocks("tree_nodes", "Distinct blocks cached on at least one worker of the pool", |totals| {
            totals.nodes
        });
        blocks("tree_shared_nodes", "Distinct blocks cached on two workers or more", |totals| totals.shared);
        blocks("tree_copies", "Former name of tree_duplicate_blocks", Totals::copies);
        blocks(
            "tree_duplicate_blocks",
            "Duplicate blocks: copies beyond the first, over all distinct blocks",
            Totals::copies,
        );
        blocks("tree_blocks", "Cached blocks, summed over workers", |totals| totals.resident);
        blocks("tree_blocks_shown", "Of those, in the tree", |totals| totals.resident - totals.hidden);
        let help = "Of those, unattached: below a parent that was never received";
        blocks("tree_blocks_unattached", help, |totals| totals.unattached);
        let sum = |of: fn(&Tree) -> u64| cluster.trees().map(|(_, tree)| of(tree)).sum::<u64>() as f64;
        self.gauge("tree_allocated_nodes", "Nodes in memory", sum(|tree| tree.allocated().into()));
        self.gauge("tree_limit_nodes", "Maximum of nodes in memory", cluster.limit_nodes().into());
        self.gauge("tree_heap_bytes", "Memory that the trees use", sum(|tree| tree.heap_bytes() as u64));
        let coverage = cluster.coverage(cluster.pools_in_use());
        if let Some(share) = coverage.share() {
            let help = "Known blocks ÷ cached blocks, 0 to 1; absent while that is unknown";
            self.gauge("tree_known_ratio", help, share);
        }
    }

    /// Decisions and in-flight imbalance per pool.
    pub(super) fn of_pools(&mut self, cluster: &Cluster, now: Millis) {
        let pools: Vec<(PoolIx, Labels)> = listed_pools(cluster).collect();
        self.gauge(
            "pools",
            "Pools with workers; the first 64 have series",
            cluster.pools_in_use().len() as f64,
        );
        let workers = pools.iter().map(|(ix, labels)| {
            let here = |worker: &&WorkerState| worker.departure.is_none() && worker.pool == *ix;
            (Arc::clone(labels), cluster.workers().iter().filter(here).count() as f64)
        });
        self.gauges("workers", "Present workers", workers);
        self.counter("decisions", "Routing decisions received", cluster.decisions().totals().count);
        let mut totals = |name, help, number: fn(&DecisionTotals) -> u64| {
            let of = |(ix, labels): &(PoolIx, Labels)| {
                (Arc::clone(labels), number(&cluster.decisions().totals_in(*ix)))
            };
            self.counters(name, help, pools.iter().map(of));
        };
        totals("pool_decisions", "Routing decisions of the pool", |totals| totals.count);
        let help = "Blocks of routed prompts, of decisions that report both these and cached blocks";
        totals("pool_prompt_blocks", help, |totals| totals.isl_blocks);
        let help = "Of those, blocks cached on the chosen worker; divided by them the KV hit rate";
        totals("pool_hit_blocks", help, |totals| totals.overlap_blocks);
        let series = in_flight::series(cluster, now, IMBALANCE_S);
        let imbalance = pools.iter().filter_map(|(pool, labels)| {
            let workers = series.workers.iter().filter(|(ix, _)| cluster.pool_of(*ix) == Some(*pool));
            let of_pool = Series { first_s: series.first_s, workers: workers.cloned().collect() };
            let widest = of_pool.gaps().into_iter().flatten().map(Gap::width).max()?;
            Some((Arc::clone(labels), f64::from(widest)))
        });
        let help = "In-flight imbalance: most requests on one worker minus fewest on another in one second, the largest of the \
                    last 60 s; absent where unknown";
        self.gauges("pool_in_flight_imbalance_requests", help, imbalance);
    }

    /// Where the reuse of prompts is lost, of the decisions of the last minute.
    pub(super) fn of_reuse(&mut self, cluster: &Cluster, now: Millis) {
        let recent = || {
            let decisions = cluster.decisions().newest_first();
            decisions.take_while(move |decided| now.since(decided.at_ms) <= REUSE_MS)
        };
        let funnel = |(pool, labels): (PoolIx, Labels)| {
            let funnel = Funnel::of(recent().filter(|decided| decided.pool == pool));
            (funnel.decisions > 0).then_some((labels, funnel))
        };
        let funnels: Vec<(Labels, Funnel)> = listed_pools(cluster).filter_map(funnel).collect();
        let decisions =
            funnels.iter().map(|(labels, funnel)| (Arc::clone(labels), f64::from(funnel.decisions)));
        let help = "Decisions of the last 60 s whose prompts are visible";
        self.gauges("pool_reuse_decisions", help, decisions);
        let of = |labels: &Labels, name: &'static str, value: &str| -> Labels {
            labels.iter().cloned().chain([(name, value.to_owned())]).collect()
        };
        let steps = funnels.iter().flat_map(|(labels, funnel)| {
            let known = Step::ALL.into_iter().zip(funnel.steps);
            known.map(move |(step, tokens)| (of(labels, "step", step.as_str()), tokens as f64))
        });
        let help = "Tokens of the prompts of these decisions, and of those how many were cached where";
        self.gauges("pool_reuse_tokens", help, steps);
        let losses = funnels.iter().flat_map(|(labels, funnel)| {
            let tokens = |cause| {
                let loss = funnel.losses.iter().find(|loss| loss.cause == cause);
                loss.map_or(0.0, |loss| loss.tokens as f64)
            };
            LossCause::ALL.map(|cause| (of(labels, "cause", cause.as_str()), tokens(cause)))
        });
        let help = "Of these tokens, those that had to be computed, by cause";
        self.gauges("pool_reuse_lost_tokens", help, losses);
    }

    /// Latencies as on the page: over the last minute, each percentile as a lower and an upper bound.
    pub(super) fn of_latency(&mut self, cluster: &Cluster, now: Millis) {
        let mut samples = Vec::new();
        for (quantity, figure, name, help) in LATENCIES {
            let Some(times) = latency::figure(cluster, quantity, now) else {
                self.gauges(name, help, []);
                continue;
            };
            let by = if matches!(times.source, TimingSource::Histograms { .. }) {
                "histogram"
            } else {
                "requests"
            };
            samples.push((labels([("figure", figure), ("by", by)]), times.samples as f64));
            let percentiles = ["50", "95", "99"].into_iter().zip(times.quantiles.into_iter().flatten());
            let bounds = percentiles.flat_map(|(percentile, range)| {
                [("lower", range.low()), ("upper", range.high().unwrap_or(f64::INFINITY))]
                    .map(|(bound, ms)| (labels([("percentile", percentile), ("bound", bound)]), ms / 1_000.0))
            });
            self.gauges(name, help, bounds);
        }
        let targets = cluster.targets();
        let targets = [("ttft", targets.ttft_ms), ("itl", targets.itl_ms)];
        let targets = targets.map(|(figure, ms)| (labels([("figure", figure)]), ms / 1_000.0));
        self.gauges("slo_target_seconds", "Targets of the 95th percentiles that checks judge by", targets);
        let help = "Requests or gaps between tokens that these figures rest on, and whether they are single requests or histograms";
        self.gauges("latency_samples", help, samples);
    }

    pub(super) fn of_findings(&mut self, cluster: &Cluster) {
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
}
