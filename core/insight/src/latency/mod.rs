//! How long requests take and how many there are: times to first token and between tokens against their targets,
//! throughput, errors, queues, lengths. Everything names its source; what is not reported is `None`, never 0.
//!
//! Two kinds of source: single requests by logs and traces (exact as far as they are all known), and the frontends'
//! histograms (known by bucket). What is shown, compared and coloured is a range, and the same everywhere. Knows no screen.
//!
//! # How it works
//!
//! A quantity may be reported twice: by single requests (logs, traces) and by the frontends' histograms. A percentile is
//! a `Range` (`core/model/src/range`): of a histogram its bucket; of single requests exact over those that are known, with
//! their share, if they are 95 % or more, else from all that are missing below to all of them above; of times from
//! decision to first token a lower bound, because what the frontend does before, a queue included, is not in them. Single
//! requests are the figure where they are 95 % of those that ended between the same scrapes by the frontends' counters,
//! else the histogram; the other stands beside it. `latency::figure` decides that for panels, rules, Compare and API, and a range that has the target inside
//! stands nowhere: no colour, no finding, no "worse". `cargo xtask bench colours` holds it against what the simulator
//! measured. The chart over time has points at fixed times, five seconds apart, so that a point once drawn stays, and
//! a band where only the bucket is known. A spike is a worker above its batch limit, or well above the mean, for
//! three seconds; spikes on other workers that begin within 90 s after one has peaked are one episode. Rules and
//! panel call the same functions.

mod clients;
mod counts;
mod quantity;
mod request_values;
mod times;
mod trend;

pub use clients::{ClientTimes, client, ttft_before_frontend, ttft_difference, ttft_on_both_sides};
pub(crate) use counts::covered_s;
pub use counts::{Counts, Errors, EventCount, RequestGauge, Throughput, counts, request_gauges};
pub use quantity::Quantity;
pub(crate) use times::frontends;
pub use times::{
    Burn, MIN_SAMPLES, Times, TimingSource, burn, engines, figure, latest, merged, requests, requests_of,
    share_above, source_text, within,
};
pub use trend::{Side, TREND_STEP_MS, Trend, trend};

/// Figures are taken over this long, milliseconds.
pub const WINDOW_MS: u64 = 60_000;
/// What makes a frontend's metrics known; shown wherever they are missing.
pub const ENABLE_FRONTEND: &str = "--prometheus frontend=http://HOST:8000/metrics";
/// The same of a worker.
pub const ENABLE_WORKER: &str = "--prometheus worker1=http://HOST:PORT/metrics";

#[cfg(test)]
mod tests;
