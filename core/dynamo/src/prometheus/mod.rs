//! `/metrics` of a process, in the exposition text of Prometheus: the names of all versions of Dynamo and of its engines
//! become the same figures (reference §4).
//!
//! # How it works
//!
//! A scrape reaches the hub like a message, with the subject `metrics/NAME`. Lines are parsed one by one, because
//! real frontends put samples of a metric apart from its others and a bad line must cost no other. One table
//! (`alias`) maps names and labels to figures; of several names that a process offers for a figure
//! the best counts, so that a frontend's time to first token goes before its router's. A figure of which a line was
//! bad is left out and counted: half of a sum would look like a restart. In a disaggregated deployment a request is routed
//! twice; of figures of a prompt that name the phase (1.6), those of the decode phase are left out, so that a prompt counts
//! once. The fold keeps what counters and histograms
//! rose by, scrape by scrape for five minutes and over the session; a counter that falls, a shorter uptime or another
//! id is a restart. A counter that appears after a whole scrape without it rose from 0, because Dynamo shows most of
//! them only once they have counted.
//!
//! Beside `/metrics` a frontend of 0.8 to 1.6 is asked for `/health` every five seconds, and less often while it
//! answers 503, for which it logs an error. A worker that a frontend leaves out of two lists in a row, and that no
//! other frontend lists, has left; the list of a frontend that is not ready is ignored. From 1.7 on the list is in the
//! metrics (`router_worker_state`), and a worker whose every router counts it as unavailable is suspect before it has
//! left. Without either, `router_worker_registered` is a list that has to be without the worker for 10 s. Half a
//! scrape, an empty list and a restarted frontend do not mark workers as left.

mod alias;
mod buckets;
mod gather;
mod line;

use memchr::{memchr, memmem, memrchr};

use super::error::{DecodeError, Faults, Reason};
use gather::Gather;
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{
    Counter, Engine, Gauge, Histogram, ModelFigures, PolicyClassFigures, ProcessRole, QueueFigures,
    RankFigures, Role, RoutingState, WorkerFigures,
};

/// Most samples that are read of one scrape; Dynamo's own have about a thousand.
const MAX_SAMPLES: u64 = 100_000;
/// Most lines of comments before the first sample.
const MAX_HEADER_LINES: usize = 10_000;
/// Longest prefix of a frontend's metrics.
const MAX_PREFIX_BYTES: usize = 128;
/// What follows a frontend's prefix in every version, as soon as it has a model.
const AFTER_PREFIX: &str = "_model_kv_cache_block_size{";

/// The contents of one scrape, see [`radixscope_model::record::Scrape`].
#[derive(Clone, PartialEq, Debug)]
pub struct Scraped {
    /// What the process turned out to be.
    pub role: ProcessRole,
    /// The engine that it runs, by the names of its metrics.
    pub engine: Option<Engine>,
    /// Its connection id.
    pub instance: Option<u64>,
    /// Present values.
    pub gauges: Vec<(Gauge, f64)>,
    /// Counters.
    pub counters: Vec<(Counter, f64)>,
    /// Distributions.
    pub histograms: Vec<Histogram>,
    /// A frontend's metrics of its models.
    pub models: Vec<ModelFigures>,
    /// A frontend's metrics of workers.
    pub workers: Vec<WorkerFigures<Worker>>,
    /// A worker's metrics of its ranks.
    pub ranks: Vec<RankFigures>,
    /// A frontend's metrics of its routers' queues.
    pub queues: Vec<QueueFigures>,
    /// A frontend's metrics of its classes of policy, in order of name; none where it has Dynamo's own one alone.
    pub policy_classes: Vec<PolicyClassFigures>,
    /// What workers are to a frontend's router, all that it knows (≥ 1.7).
    pub states: Vec<RouterWorkerState>,
    /// How many workers its router knows (≥ 1.7).
    pub discovered: Option<u64>,
    /// What another router's metrics tell of engines, in order of URL.
    pub servers: Vec<Server>,
}

/// An engine as a router other than Dynamo's counts it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Server {
    /// Where the router sends its requests.
    pub url: String,
    /// Requests that run there.
    pub requests: Option<u64>,
    /// Whether the router sends requests there.
    pub is_healthy: Option<bool>,
}

/// What a worker is to a frontend's router (≥ 1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouterWorkerState {
    /// The worker process.
    pub id: WorkerId,
    /// Whether it gets requests.
    pub state: RoutingState,
    /// See [`WorkerFigures::role`].
    pub role: Option<Role>,
    /// See [`WorkerFigures::model`].
    pub model: Option<u16>,
}

/// Reads one scrape: what was understood, and what was not. The former is `None` if no line was one of metrics.
pub fn decode(text: &[u8]) -> (Option<Scraped>, Result<(), Faults>) {
    let mut faults = Faults::default();
    let mut gather = Gather::new(custom_prefix(text));
    let mut left = text;
    while !left.is_empty() {
        if gather.samples() == MAX_SAMPLES {
            let text = format!("more than {MAX_SAMPLES} samples");
            return (None, Err(DecodeError::new(Reason::TooLarge, text).into()));
        }
        let end = memchr(b'\n', left);
        let (line, after) = end.map_or((left, &left[left.len()..]), |end| (&left[..end], &left[end + 1..]));
        left = after;
        match line::read(line) {
            // The format ends every line with a line feed: of one without it a part may be missing.
            Ok(Some(sample)) if end.is_none() => {
                gather.bad_line(&sample.name);
                faults.count(Reason::Truncated, || {
                    DecodeError::new(
                        Reason::Truncated,
                        format!("ends in {}, without a line feed", sample.name),
                    )
                });
            }
            Ok(Some(sample)) => gather.take(&sample, &mut faults),
            Ok(None) => {}
            Err(bad) => {
                if let Some(name) = bad.name {
                    gather.bad_line(name);
                }
                faults.count(bad.error.reason, || bad.error);
            }
        }
    }
    if gather.samples() == 0 {
        if faults.total() == 0 {
            let reason = Reason::Malformed;
            faults.count(reason, || DecodeError::new(reason, "no metrics in it"));
        }
        return (None, faults.into_result());
    }
    let scraped = gather.finish(&mut faults);
    (Some(scraped), faults.into_result())
}

/// Whether a text may be metrics: decided by its first line that is not empty. For callers that fetch it without decoding it.
pub fn may_be_metrics(text: &[u8]) -> bool {
    let first = text.split(|&byte| byte == b'\n').take(MAX_HEADER_LINES).map(line::read);
    first.filter_map(Result::transpose).next().is_some_and(|first| first.is_ok())
}

/// Where a process lists the workers that it knows, for who fetches its metrics and does not read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkerList {
    /// Nowhere: it is no frontend, or has nothing to say yet.
    Nowhere,
    /// In its metrics (≥ 1.7).
    InMetrics,
    /// At `/health` (0.8 to 1.6).
    AtHealth,
}

/// See [`WorkerList`].
pub fn worker_list(text: &[u8]) -> WorkerList {
    let has_sample = |name: &str| {
        text.starts_with(name.as_bytes()) || memmem::find(text, format!("\n{name}").as_bytes()).is_some()
    };
    let prefix = custom_prefix(text).unwrap_or(alias::FRONTEND);
    if has_sample(&format!("{prefix}{}{{", alias::WORKER_STATE)) {
        WorkerList::InMetrics
    } else if has_sample(prefix) {
        WorkerList::AtHealth
    } else {
        WorkerList::Nowhere
    }
}

/// The prefix of a frontend's metrics, with its underscore, if `DYN_METRICS_PREFIX` made it another than Dynamo's.
fn custom_prefix(text: &[u8]) -> Option<&str> {
    let mut prefixes = memmem::find_iter(text, AFTER_PREFIX).filter_map(|at| {
        let from = at.saturating_sub(MAX_PREFIX_BYTES);
        let start = memrchr(b'\n', &text[from..at]).map_or(from, |line_feed| from + line_feed + 1);
        let prefix = &text[start..at];
        (!prefix.is_empty() && prefix.iter().all(|&byte| line::is_of_name(byte))).then_some(&text[start..=at])
    });
    std::str::from_utf8(prefixes.next()?).ok().filter(|prefix| *prefix != alias::FRONTEND)
}

/// A value that is a whole number.
fn whole(value: f64) -> Option<u64> {
    // Above 2^53 an f64 is not exact; no count here gets there.
    (value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
mod tests;
