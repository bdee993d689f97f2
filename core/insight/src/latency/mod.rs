//! How long requests take and how many there are: times to first token and between tokens against their targets,
//! throughput, errors, queues, lengths. Everything names its source; what not reported is `None`, never 0.
//!
//! Two kinds of source: single requests by logs and traces (exact as far as they are all known), and the frontends'
//! histograms (known by bucket). What is shown, compared and coloured is a range, and the same everywhere. Knows no screen.

mod counts;
mod quantity;
mod single;
mod times;
mod trend;

pub(crate) use counts::covered_s;
pub use counts::{Counts, Errors, EventCount, Load, Loads, Throughput, counts, loads};
pub use quantity::Quantity;
pub(crate) use times::frontends;
pub use times::{
    Burn, MIN_SAMPLES, Source, Times, burn, figure, latest, merged, requests, share_above, within,
};
pub use trend::{TREND_STEP_MS, Trend, trend};

/// Figures are taken over this long, milliseconds.
pub const WINDOW_MS: u64 = 60_000;
/// What makes a frontend's metrics known; said wherever they are missing.
pub const ENABLE_FRONTEND: &str = "--prometheus frontend=http://HOST:8000/metrics";
/// The same of a worker.
pub const ENABLE_WORKER: &str = "--prometheus worker1=http://HOST:PORT/metrics";

#[cfg(test)]
mod tests;
