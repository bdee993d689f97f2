//! Throughput, errors, queues and what became of KV events, as far as anybody counts them.

use std::collections::BTreeMap;

use radixscope_model::id::Millis;
use radixscope_model::number_format::{self, UNKNOWN};
use radixscope_model::record::{Counter, Gauge, Outcome, PolicyClassFigures, ProcessRole, Role};
use radixscope_state::cluster::{Cluster, ProcessState};

use super::times::frontends;
use super::{ENABLE_FRONTEND, ENABLE_WORKER, WINDOW_MS};

/// Requests and tokens per second over the last [`WINDOW_MS`].
#[derive(Clone, PartialEq, Debug)]
pub struct Throughput {
    /// Requests that ended, per second.
    pub requests_per_s: f64,
    /// Output tokens per second; `None`: not reported.
    pub output_tokens_per_s: Option<f64>,
    /// Where from.
    pub source: &'static str,
}

/// Requests that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errors {
    /// Failed.
    pub failed: u64,
    /// Ended, well or not.
    pub of: u64,
}

impl Errors {
    /// 0 to 1; `None` before any request ended.
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.failed as f64 / self.of as f64)
    }
}

/// What is counted of requests.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    /// `None`: not reported.
    pub throughput: Option<Throughput>,
    /// Over the last [`WINDOW_MS`].
    pub errors: Option<Errors>,
    /// Since the first scrape, or over the decisions that are retained.
    pub session_errors: Option<Errors>,
    /// What became of KV events in the router, by its own count; empty: it does not say (before 1.0).
    pub events: Vec<EventCount>,
}

/// KV events of one kind and fate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EventCount {
    /// For people.
    pub what: &'static str,
    /// Whether it is how things should be.
    pub is_good: bool,
    /// Over the last [`WINDOW_MS`].
    pub latest: f64,
    /// Since the first scrape.
    pub session: f64,
}

/// A number of requests that are somewhere now.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestGauge {
    /// Name for programs.
    pub id: String,
    /// Where they are.
    pub what: String,
    /// How many; `None`: not reported.
    pub requests: Option<f64>,
    /// Its source; where it is not reported, what would make it known.
    pub source: String,
}

/// Throughput, errors and events at `now`.
pub fn counts(cluster: &Cluster, now: Millis) -> Counts {
    let scraped = of_metrics(cluster, now);
    let (throughput, errors, session_errors) = scraped.unwrap_or_else(|| of_decisions(cluster, now));
    Counts { throughput, errors, session_errors, events: events(cluster, now) }
}

type OfRequests = (Option<Throughput>, Option<Errors>, Option<Errors>);

fn of_metrics(cluster: &Cluster, now: Millis) -> Option<OfRequests> {
    let counting =
        |p: &&ProcessState| p.counted(Counter::RequestsOk).or(p.counted(Counter::RequestsFailed)).is_some();
    let mut processes = frontends(cluster).filter(counting).peekable();
    processes.peek()?;
    let since = Millis(now.0.saturating_sub(WINDOW_MS));
    let (mut per_s, mut tokens_per_s, mut has_tokens) = (0.0, 0.0, false);
    let (mut recent, mut session) = ([0.0; 2], [0.0; 2]);
    for process in processes {
        // Both are one metric with a label: one that never occurred is not written, and is 0.
        let rise = |counter| process.counted_since(counter, since).unwrap_or(0.0);
        let total = |counter| process.counted(counter).unwrap_or(0.0);
        let (ok, failed) = (rise(Counter::RequestsOk), rise(Counter::RequestsFailed));
        let seconds = covered_s(process, since);
        if seconds > 0.0 {
            per_s += (ok + failed) / seconds;
            if let Some(tokens) = process.counted_since(Counter::OutputTokens, since) {
                tokens_per_s += tokens / seconds;
                has_tokens = true;
            }
        }
        recent = [recent[0] + failed, recent[1] + ok + failed];
        let failed = total(Counter::RequestsFailed);
        session = [session[0] + failed, session[1] + failed + total(Counter::RequestsOk)];
    }
    let errors = |[failed, of]: [f64; 2]| Errors { failed: failed.round() as u64, of: of.round() as u64 };
    let throughput = Throughput {
        requests_per_s: per_s,
        output_tokens_per_s: has_tokens.then_some(tokens_per_s),
        source: "the frontends' counters",
    };
    Some((Some(throughput), Some(errors(recent)), Some(errors(session))))
}

/// Seconds that the scrapes after `since` cover: from the one before them to the last.
pub(crate) fn covered_s(process: &ProcessState, since: Millis) -> f64 {
    let (from, until) = process.covered(since);
    until.since(from) as f64 / 1_000.0
}

fn of_decisions(cluster: &Cluster, now: Millis) -> OfRequests {
    let ended = |d: &&radixscope_state::cluster::DecisionEntry| {
        d.progress.ended_ms.is_some() && d.progress.outcome.is_some()
    };
    let mut all = cluster.decisions().newest_first().filter(ended).peekable();
    if all.peek().is_none() {
        return (None, None, None);
    }
    let since = cluster.decisions().newest_first().last().map_or(now, |oldest| oldest.at_ms);
    let seconds = now.since(since).min(WINDOW_MS) as f64 / 1_000.0;
    let (mut tokens, mut recent, mut session) =
        (None, Errors { failed: 0, of: 0 }, Errors { failed: 0, of: 0 });
    for decided in all {
        let failed = u64::from(decided.progress.outcome == Some(Outcome::Failed));
        session = Errors { failed: session.failed + failed, of: session.of + 1 };
        if decided.progress.ended_ms.is_some_and(|at| now.since(at) < WINDOW_MS) {
            recent = Errors { failed: recent.failed + failed, of: recent.of + 1 };
            if let Some(more) = decided.progress.output_tokens {
                tokens = Some(tokens.unwrap_or(0) + more);
            }
        }
    }
    let throughput = (seconds > 0.0).then(|| Throughput {
        requests_per_s: recent.of as f64 / seconds,
        output_tokens_per_s: tokens.map(|tokens| tokens as f64 / seconds),
        source: "per request, from logs and traces",
    });
    (throughput, Some(recent), Some(session))
}

fn events(cluster: &Cluster, now: Millis) -> Vec<EventCount> {
    const ALL: [(Counter, &str, bool); 8] = [
        (Counter::StoredOk, "Stored, applied", true),
        (Counter::StoredParentUnknown, "Stored, parent unknown", false),
        (Counter::StoredOther, "Stored, other failure", false),
        (Counter::RemovedOk, "Removed, applied", true),
        (Counter::RemovedUnknown, "Removed, block unknown", false),
        (Counter::RemovedOther, "Removed, other failure", false),
        (Counter::Cleared, "Cleared", true),
        (Counter::DuplicateStores, "Stored again", true),
    ];
    let since = Millis(now.0.saturating_sub(WINDOW_MS));
    let one = |(counter, what, is_good)| {
        let sum = |of: &dyn Fn(&ProcessState) -> Option<f64>| {
            frontends(cluster).filter_map(of).reduce(|a, b| a + b)
        };
        let session = sum(&|process| process.counted(counter))?;
        let latest = sum(&|process| process.counted_since(counter, since)).unwrap_or(0.0);
        Some(EventCount { what, is_good, latest, session })
    };
    ALL.into_iter().filter_map(one).collect()
}

/// Requests in flight and waiting, each place with its source.
pub fn request_gauges(cluster: &Cluster) -> Vec<RequestGauge> {
    let of_gauge = |id, what, gauge, role: ProcessRole, missing: &str| {
        let is_meant = |p: &&ProcessState| (p.role == ProcessRole::Worker) == (role == ProcessRole::Worker);
        let known: Vec<f64> =
            cluster.processes().iter().filter(is_meant).filter_map(|p| p.gauge(gauge)).collect();
        let source = match known.len() {
            0 => missing.to_owned(),
            1 => "1 scraped process".to_owned(),
            n => format!("{n} scraped processes"),
        };
        let (id, what): (&str, &str) = (id, what);
        RequestGauge {
            id: id.to_owned(),
            what: what.to_owned(),
            requests: known.into_iter().reduce(|a, b| a + b),
            source,
        }
    };
    let routed: Vec<u32> = cluster.workers().iter().filter_map(|w| w.in_flight.now()).collect();
    let by_routing = RequestGauge {
        id: "in-flight-routing".to_owned(),
        what: "In flight, tracked from decisions".to_owned(),
        requests: (!routed.is_empty()).then(|| routed.iter().copied().map(f64::from).sum()),
        source: if routed.is_empty() {
            "no log, trace or active_sequences_events reports when requests end".to_owned()
        } else {
            "requests followed from decision to end".to_owned()
        },
    };
    let (frontend, worker) = (ProcessRole::Frontend, ProcessRole::Worker);
    let of_frontend = ENABLE_FRONTEND;
    let of_router = format!("only from Dynamo 1.1; {ENABLE_FRONTEND}");
    let of_worker = format!("{ENABLE_WORKER} of every worker");
    let classes = policy_classes(cluster);
    let mut gauges = vec![
        of_gauge("in-flight", "In flight, frontends", Gauge::InFlightRequests, frontend, of_frontend),
        by_routing,
        of_gauge("http-queue", "HTTP queue", Gauge::HttpQueuedRequests, frontend, of_frontend),
        of_gauge("router-queue", "Router queue", Gauge::RouterQueuedRequests, frontend, &of_router),
        of_gauge("running", "Engines, running", Gauge::EngineRunningRequests, worker, &of_worker),
        of_gauge("waiting", "Engines, waiting", Gauge::EngineWaitingRequests, worker, &of_worker),
    ];
    let behind = gauges.iter().position(|gauge| gauge.id == "router-queue").map_or(gauges.len(), |at| at + 1);
    gauges.splice(behind..behind, classes);
    gauges
}

/// Requests in the queue of each class of policy, summed over frontends. Which class a request is of, no source reports.
fn policy_classes(cluster: &Cluster) -> Vec<RequestGauge> {
    let mut classes: BTreeMap<(String, Option<Role>), PolicyClassFigures> = BTreeMap::new();
    for of in cluster.policy_classes().iter().flat_map(|of| &of.classes) {
        let sum = classes.entry((of.class.clone(), of.role)).or_default();
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = sum.map_or(more, |sum| Some(sum.saturating_add(more.unwrap_or(0))));
        };
        add(&mut sum.queued_requests, of.queued_requests);
        add(&mut sum.received, of.received);
        add(&mut sum.refused, of.refused);
    }
    // A router of aggregated workers calls them decode.
    let has_prefill = classes.keys().any(|(_, role)| *role == Some(Role::Prefill));
    let gauge = |((class, role), of): ((String, Option<Role>), PolicyClassFigures)| {
        let role = role.filter(|_| has_prefill).map_or(String::new(), |role| format!(", {}", role.as_str()));
        let figure = |n: Option<u64>| n.map_or(UNKNOWN.to_owned(), number_format::count);
        RequestGauge {
            id: format!("class-{class}{}", role.replace(", ", "-")),
            what: format!("Router queue, class {class}{role}"),
            requests: of.queued_requests.map(|n| n as f64),
            source: format!(
                "frontends' metrics; {} received and {} refused since they started",
                figure(of.received),
                figure(of.refused)
            ),
        }
    };
    classes.into_iter().map(gauge).collect()
}
