//! What routers other than Dynamo's count of their requests and choices, by their metrics.
//!
//! AIBrix counts its choices by reason and by the share of the prompt that was matched; production-stack's router counts requests by engine.
//! Neither reports a single decision.

use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::{Counter, Gauge, ProcessRole};
use radixscope_state::cluster::{Cluster, ProcessState};

use crate::latency::{WINDOW_MS, covered_s};

/// A router of another make.
#[derive(Clone, PartialEq, Debug)]
pub struct OtherRouter {
    /// As the operator named it.
    pub name: String,
    /// Which make.
    pub role: ProcessRole,
    /// Last scrape.
    pub last_ms: Millis,
    /// Seconds that [`Tally::latest`] covers.
    pub window_s: f64,
    /// Its choices by reason; empty: it does not count them. Together they are all.
    pub choices: Vec<Tally>,
    /// Its choices by the share of the prompt that the chosen engine had by its index; empty: it does not count them.
    pub matched: Vec<Tally>,
    /// What else it counts.
    pub counts: Vec<Tally>,
    /// Publishers of KV events that it is connected to; `None`: not reported.
    pub publishers: Option<u64>,
    /// Whether its index follows KV events, or else its own choices; `None`: not reported.
    pub follows_events: Option<bool>,
    /// The engines that it routes to, as it counts them.
    pub engines: Vec<RoutedEngine>,
}

/// Something that is counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tally {
    /// What.
    pub counter: Counter,
    /// Over the last [`WINDOW_MS`], or less where it is not scraped for that long.
    pub latest: u64,
    /// Since it was first scraped.
    pub session: u64,
}

/// An engine as such a router counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoutedEngine {
    /// Which worker.
    pub worker: WorkerIx,
    /// Requests that run there; `None`: not reported, which is so before the first.
    pub requests: Option<u64>,
    /// Whether the router sends requests there; `None`: not reported.
    pub is_healthy: Option<bool>,
}

const CHOICES: [Counter; 3] = [Counter::ChosenByPrefix, Counter::PrefixSkipped, Counter::NoPrefix];
const MATCHED: [Counter; 5] = [
    Counter::MatchedNothing,
    Counter::MatchedQuarter,
    Counter::MatchedHalf,
    Counter::MatchedThreeQuarters,
    Counter::MatchedMore,
];
const COUNTS: [Counter; 6] = [
    Counter::ReceivedRequests,
    Counter::RequestsOk,
    Counter::RequestsFailed,
    Counter::ChoicesFailed,
    Counter::LoadsUnbalanced,
    Counter::EventsMissed,
];

impl OtherRouter {
    /// All that are scraped, in the order of their first scrape.
    pub fn all(cluster: &Cluster, now: Millis) -> Vec<Self> {
        let scraped = cluster.processes().iter().filter(|process| process.role.is_other_router());
        scraped.map(|process| Self::of(process, now)).collect()
    }

    fn of(process: &ProcessState, now: Millis) -> Self {
        let since = Millis(now.0.saturating_sub(WINDOW_MS));
        let tally = |counter| {
            let session = whole(process.counted(counter)?);
            let latest = process.counted_since(counter, since).map_or(0, whole);
            Some(Tally { counter, latest, session })
        };
        let tallies = |of: &[Counter]| of.iter().copied().filter_map(tally).collect();
        let engine = |of: &radixscope_model::record::WorkerFigures| RoutedEngine {
            worker: of.worker,
            requests: of.active_requests,
            is_healthy: of.registered,
        };
        Self {
            name: process.name.clone(),
            role: process.role,
            last_ms: process.last_ms,
            window_s: covered_s(process, since),
            choices: tallies(&CHOICES),
            matched: tallies(&MATCHED),
            counts: tallies(&COUNTS),
            publishers: process.gauge(Gauge::ConnectedPublishers).map(whole),
            follows_events: process.gauge(Gauge::IndexFollowsEvents).map(|follows| follows > 0.0),
            engines: process.workers().iter().map(engine).collect(),
        }
    }
}

/// Counters are whole and far below 2^53.
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{Seq, Worker};
    use radixscope_model::record::{Entry, Record, Scrape, WorkerFigures};

    fn fold(cluster: &mut Cluster, at_ms: u64, record: Record<'_>) {
        let seq = Seq(cluster.seq().0 + 1);
        cluster.fold(seq, &Entry { at_ms: Millis(at_ms), record });
    }

    #[test]
    fn what_a_router_counts_is_over_the_window_and_over_the_session() {
        let mut cluster = Cluster::default();
        fold(&mut cluster, 1, Record::new_worker(WorkerIx(0), Worker::new(7, 0), "", ""));
        let engine = WorkerFigures {
            active_requests: Some(2),
            registered: Some(true),
            ..WorkerFigures::new(WorkerIx(0))
        };
        for (at_ms, prefix, none) in [(10_000, 5.0, 1.0), (340_000, 9.0, 1.0), (390_000, 12.0, 4.0)] {
            let counters = vec![(Counter::ChosenByPrefix, prefix), (Counter::NoPrefix, none)];
            let role = ProcessRole::AibrixGateway;
            let scrape = Scrape { counters, workers: vec![engine], ..Scrape::new("gateway", role) };
            fold(&mut cluster, at_ms, Record::Scrape(Box::new(scrape)));
        }
        fold(&mut cluster, 400_001, Record::Scrape(Box::new(Scrape::new("frontend", ProcessRole::Frontend))));
        let all = OtherRouter::all(&cluster, Millis(401_000));
        let [router] = &all[..] else { panic!("one: {all:?}") };
        let tally = |counter, latest, session| Tally { counter, latest, session };
        let expected = [tally(Counter::ChosenByPrefix, 3, 7), tally(Counter::NoPrefix, 3, 3)];
        assert_eq!(router.choices, expected, "what is not offered is left out");
        assert_eq!((&router.matched, &router.counts), (&Vec::new(), &Vec::new()));
        assert_eq!((router.publishers, router.follows_events), (None, None));
        let engine = RoutedEngine { worker: WorkerIx(0), requests: Some(2), is_healthy: Some(true) };
        assert_eq!(router.engines, [engine]);
    }
}
