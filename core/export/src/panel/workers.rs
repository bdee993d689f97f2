//! The workers: what each has cached, how fast it changes, and facts about it that may point at a fault.

use radixscope_insight::block_rates::MEAN_SECONDS;
use radixscope_insight::completeness::{known_text, query_text, why_text};
use radixscope_insight::occupancy::Occupancy;
use radixscope_insight::queues;
use radixscope_insight::view_context::{Unit, ViewContext};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::number_format::{UNKNOWN, bound, count, percent, plural, rate, short, tail};
use radixscope_model::record::{QueryState, Tier};
use radixscope_state::cluster::{Cluster, DecisionTotals, Liveness, TierCounts, WorkerState};

use super::EmptyText;

/// Head of an empty panel before the first worker.
pub const NO_WORKER: &str = "No worker known yet";
/// Why blocks of several pools cannot be summed.
pub const UNKNOWN_SIZES: &str =
    "Pools have blocks of different size, and the size of some is unknown: choose a pool";

/// Cached blocks of the workers shown, summed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CachedTotal {
    /// The figure with its unit, unless that is blocks.
    pub value: String,
    /// What it counts.
    pub what: &'static str,
}

impl CachedTotal {
    /// Of the workers shown.
    pub fn of(shown: &ViewContext<'_>) -> Self {
        let held = shown.held();
        let what = match held {
            Some((.., Unit::Blocks)) => "Cached blocks, summed over the workers",
            Some((.., Unit::Tokens)) => {
                "Tokens in cached blocks, summed over the workers: pools have blocks of different size"
            }
            None => UNKNOWN_SIZES,
        };
        let value = match held.filter(|_| shown.has_kv_events()) {
            Some((blocks, _, Unit::Blocks)) => count(blocks),
            Some((tokens, _, Unit::Tokens)) => format!("{} tokens", short(tokens)),
            None => UNKNOWN.to_owned(),
        };
        Self { value, what }
    }
}

/// One worker. Texts that are figures are `–` where the figure is unknown.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerFigures {
    /// End of its id, and its rank where that is not 0.
    pub tail: String,
    /// Its whole id.
    pub id: String,
    /// Cached blocks against the capacity.
    pub occupancy: Occupancy,
    /// Requests in flight on it.
    pub in_flight: String,
    /// Those of them that are queued there, in brackets; empty: none, or not reported.
    pub queued: String,
    /// Where both are known from.
    pub in_flight_title: String,
    /// Blocks that running requests use, by the engine.
    pub used: String,
    /// Blocks stored per second.
    pub stored: String,
    /// Blocks removed per second.
    pub removed: String,
    /// KV hit rate over its decisions.
    pub hit_rate: String,
    /// What that is of, and over what.
    pub hit_rate_title: String,
    /// Its last KV event.
    pub last_event_ms: Option<Millis>,
    /// Whether anything is received from it.
    pub liveness: Liveness,
    /// Facts that are zero on a healthy worker, with their names in the page's document.
    pub facts: Vec<(&'static str, String)>,
    /// How much of its blocks is known, and why not all.
    pub lacks: Option<String>,
    /// What is done about that.
    pub query: Option<String>,
    /// Whether the reader may query it for its blocks.
    pub can_query: bool,
}

impl WorkerFigures {
    /// Of a worker at `now`; without a connection (`is_current` is false) its rates are unknown.
    pub fn of(cluster: &Cluster, ix: WorkerIx, now: Millis, is_current: bool) -> Option<Self> {
        let state = cluster.worker(ix)?;
        let rates = cluster.rate_per_second(ix, now, MEAN_SECONDS).filter(|_| is_current);
        let per_second = |blocks: Option<f64>| blocks.map_or(UNKNOWN.to_owned(), rate);
        let totals = cluster.decisions().totals_of(ix);
        let (in_flight, queued, in_flight_title) = in_flight(cluster, ix, state, now);
        let (is_incomplete, knowledge) = (cluster.is_incomplete(ix), &state.knowledge);
        let rank = if state.id.dp_rank > 0 { format!(" dp {}", state.id.dp_rank) } else { String::new() };
        Some(Self {
            tail: format!("{}{rank}", tail(state.id.id.0)),
            id: state.id.to_string(),
            occupancy: Occupancy::of(cluster, ix),
            in_flight,
            queued,
            in_flight_title,
            used: state.engine_used_blocks.map_or(UNKNOWN.to_owned(), short),
            stored: per_second(rates.map(|(stored, _)| stored)),
            removed: per_second(rates.map(|(_, removed)| removed)),
            hit_rate: totals.overlap_share().map_or(UNKNOWN.to_owned(), percent),
            hit_rate_title: hit_rate_title(totals),
            last_event_ms: state.last_event_ms,
            liveness: state.sign(now),
            facts: facts(cluster, ix, state),
            lacks: is_incomplete
                .then(|| format!("Known {}: {}", known_text(cluster, ix), why_text(knowledge.why))),
            query: query_text(knowledge, now).filter(|_| is_incomplete),
            can_query: is_incomplete
                && is_current
                && matches!(knowledge.asking, QueryState::OnRequest | QueryState::Failed { .. }),
        })
    }

    /// Cached share of the capacity; unknown without one.
    pub fn share_text(&self) -> String {
        let occupancy = &self.occupancy;
        occupancy.share.filter(|_| occupancy.capacity.is_some()).map_or(UNKNOWN.to_owned(), percent)
    }
}

/// Requests on it, those of them that are queued there, and where both are from.
fn in_flight(cluster: &Cluster, ix: WorkerIx, state: &WorkerState, at: Millis) -> (String, String, String) {
    let now = state.in_flight.now().map(|n| count(n.into()));
    let tracked = match now {
        Some(_) => "In flight: tracked from decision to end",
        None => {
            "In flight: not reported; active_sequences_events (routers with --router-replica-sync) or a frontend's log (--logs) reports it"
        }
    };
    let text = now.unwrap_or(UNKNOWN.to_owned());
    let Some(queued) = queues::on_worker(cluster, ix, at) else {
        let title = format!(
            "{tracked}. Queued: not reported for this worker; its scraped engine reports it (Dynamo ≥ 1.0)"
        );
        return (text, String::new(), title);
    };
    let requests = count(queued.requests);
    let in_brackets = if queued.requests > 0 { format!("({requests} queued)") } else { String::new() };
    (text, in_brackets, format!("{tracked}. {requests} of them queued: {}", queued.source))
}

fn hit_rate_title(totals: DecisionTotals) -> String {
    format!(
        "{} of {} prompt blocks over {}, as the router counted them, since the server started",
        count(totals.overlap_blocks),
        count(totals.isl_blocks),
        plural(totals.count, "decision", "decisions")
    )
}

/// Each is zero on a healthy worker, and says nothing by itself about why it is not.
fn facts(cluster: &Cluster, ix: WorkerIx, state: &WorkerState) -> Vec<(&'static str, String)> {
    let unattached = cluster.holdings(ix).unattached;
    let mut facts = Vec::new();
    let mut add = |id, n: u64, one: &str, many: &str| {
        if n > 0 {
            facts.push((id, plural(n, one, many)));
        }
    };
    add("fact-unattached", unattached, "block unattached", "blocks unattached");
    add(
        "fact-unknown-removals",
        state.unexplained_removed_total(),
        "removal of an unknown block",
        "removals of unknown blocks",
    );
    add("fact-empty-stores", state.empty_stores_total, "empty store", "empty stores");
    add("fact-recovered", state.recovered_total, "missed event recovered", "missed events recovered");
    add("fact-cleared", state.cleared_total, "time cleared", "times cleared");
    let missed = state.missed_total - state.recovered_total.min(state.missed_total);
    if missed > 0 {
        let missed = plural(missed, "event missed", "events missed");
        facts.push(("fact-missed", bound(missed, cluster.is_missed_at_least(ix))));
    }
    facts.extend(tier_facts(cluster, ix, state));
    facts
}

/// What it has cached below device memory.
fn tier_facts(cluster: &Cluster, ix: WorkerIx, state: &WorkerState) -> Vec<(&'static str, String)> {
    let changes =
        |counts: TierCounts| format!("{} stored, {} removed", short(counts.stored), short(counts.removed));
    let mut facts = Vec::new();
    for (tier, counts) in Tier::ALL.into_iter().zip(state.tiers) {
        let id = match tier {
            Tier::Host => "tier-host",
            Tier::Disk => "tier-disk",
            Tier::External => "tier-external",
        };
        if let Some(blocks) = cluster.tier_blocks(ix, tier) {
            let blocks = plural(blocks, "block", "blocks");
            facts.push((id, format!("{}: {blocks}, {}", tier.label(), changes(counts))));
        }
    }
    if state.other_tier != TierCounts::default() {
        facts.push(("tier-other", format!("shared or unknown tiers: {}", changes(state.other_tier))));
    }
    facts
}

/// That the capacity of some of `workers` is unknown, what reports it, and what their bars show meanwhile.
pub fn capacity_note(cluster: &Cluster, workers: impl IntoIterator<Item = WorkerIx>) -> Option<String> {
    let is_unsized = |ix: &WorkerIx| {
        cluster.worker(*ix).is_some_and(|state| state.last_event_ms.is_some())
            && cluster.capacity(*ix).is_none()
    };
    let (engines, workers): (Vec<_>, Vec<_>) =
        workers.into_iter().filter(is_unsized).partition(|&worker| cluster.engine_of(worker).is_some());
    let note = |count: usize, (one, more): (&str, &str), reported: &str| match count {
        0 => String::new(),
        count => format!("Capacity unknown for {}: {reported}. ", plural(count as u64, one, more)),
    };
    let by_card = "total_kv_blocks of the model card, read with --discovery, reports it";
    let by_engine =
        "the engines' own metrics report it (metrics=URL of --engine-events, or found with --kubernetes)";
    let notes = note(workers.len(), ("worker", "workers"), by_card)
        + &note(engines.len(), ("engine", "engines"), by_engine);
    (!notes.is_empty()).then(|| format!("{notes}Bars compare with the worker with most blocks."))
}

/// Why there is no worker.
pub fn empty() -> EmptyText {
    EmptyText::new(
        "workers-empty",
        NO_WORKER,
        "Workers appear with their first KV event, load report or routing decision, or at once with `--discovery` (etcd, \
         Kubernetes or a folder), which also finds the ZeroMQ publishers of Dynamo 1.3 and later. On NATS, set \
         `DYN_EVENT_PLANE=nats` on frontends and workers alike. KV events need `--kv-events-config` (vLLM) or \
         `--publish-events-and-metrics` (TensorRT-LLM). `radixscope sources` lists what a cluster offers.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{BlockHash, Millis, Seq, TokensHash, Worker};
    use radixscope_model::record::{Block, EngineFeed, Entry, Record};

    #[test]
    fn what_would_report_a_capacity_depends_on_whose_it_is() {
        let mut cluster = Cluster::default();
        let mut fold = |record: Record<'_>| {
            let seq = Seq(cluster.seq().0 + 1);
            cluster.fold(seq, &Entry { at_ms: Millis(1), record });
        };
        for (ix, component) in [(0, "backend"), (1, "chat"), (2, "chat")] {
            let worker = WorkerIx(ix);
            fold(Record::new_worker(worker, Worker::new(u64::from(ix) + 1, 0), "ns", component));
            let blocks = [Block { block_hash: BlockHash(1), tokens_hash: TokensHash(1) }];
            fold(Record::Stored { worker, parent: None, blocks: (&blocks[..]).into() });
        }
        for ix in [1, 2] {
            let feed = EngineFeed { worker: Some(WorkerIx(ix)), ..EngineFeed::new(ix.to_string(), None) };
            fold(Record::EngineFeed(Box::new(feed)));
        }
        let note = |workers: &[u32]| capacity_note(&cluster, workers.iter().copied().map(WorkerIx));
        assert_eq!(note(&[]), None);
        let bars = "Bars compare with the worker with most blocks.";
        let by_card = "Capacity unknown for 1 worker: total_kv_blocks of the model card, read with --discovery, reports it. ";
        assert_eq!(note(&[0]), Some(format!("{by_card}{bars}")));
        let by_engine = "Capacity unknown for 2 engines: the engines' own metrics report it (metrics=URL of --engine-events, or found \
                         with --kubernetes). ";
        assert_eq!(note(&[1, 2]), Some(format!("{by_engine}{bars}")));
        assert_eq!(note(&[0, 1, 2]), Some(format!("{by_card}{by_engine}{bars}")));
        let explained = |ix| Occupancy::of(&cluster, WorkerIx(ix)).explain();
        assert!(explained(0).contains("model card") && explained(1).contains("own metrics"));
    }
}
