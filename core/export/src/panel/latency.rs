//! TTFT and ITL: percentiles against the target, and the 95th over time.

use radixscope_insight::latency::{self, ENABLE_FRONTEND, Quantity};
use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;
use radixscope_model::number_format::{UNKNOWN, count, percent, plural};
use radixscope_model::range::Range;
use radixscope_state::cluster::Cluster;

use super::EmptyText;

/// Its heading.
pub const TITLE: &str = "Latency";
/// What the line and the bands of a chart are.
pub const TREND_NOTE: &str = "p95 over the 60 s before each point, ms, every 5 s (15 s in longer ranges); a band: the bucket that \
                              it lies in";
/// Where there is no sample.
pub const NO_SAMPLE: &str = "no sample in 60 s";

/// One of the two quantities that have targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuantityLabels {
    /// Which.
    pub quantity: Quantity,
    /// Its name in the page's document.
    pub id: &'static str,
    /// Short name.
    pub name: &'static str,
    /// Long name.
    pub long: &'static str,
    /// Name of its empty text in the page's document.
    empty_id: &'static str,
    /// Head of its empty text.
    empty_head: &'static str,
}

/// Time to first token.
pub const TTFT: QuantityLabels = QuantityLabels {
    quantity: Quantity::Ttft,
    id: "ttft",
    name: "TTFT",
    long: "time to first token",
    empty_id: "ttft-absent",
    empty_head: "Not reported: time to first token",
};
/// Inter-token latency.
pub const ITL: QuantityLabels = QuantityLabels {
    quantity: Quantity::Tpot,
    id: "tpot",
    name: "ITL",
    long: "inter-token latency",
    empty_id: "tpot-absent",
    empty_head: "Not reported: inter-token latency",
};

/// What stands where the quantity is not reported.
pub fn empty(labels: &QuantityLabels) -> EmptyText {
    not_reported(labels.empty_id, labels.empty_head)
}

/// What stands where neither is reported.
pub fn empty_both() -> EmptyText {
    not_reported("latency-absent", "Not reported: time to first token, inter-token latency")
}

fn not_reported(id: &'static str, head: &'static str) -> EmptyText {
    EmptyText {
        id,
        head,
        paragraphs: vec![
            format!("Scrape a frontend's metrics: `{ENABLE_FRONTEND}`").into(),
            "Or read a frontend's log, which reports each request: `--logs FILE` (Dynamo ≥ 1.5)".into(),
        ],
    }
}

/// What clients measured of the requests that ended within the last minute, and how many of their results are joined with decisions.
/// `None`: no result of a client has the quantity.
pub fn client_line(cluster: &Cluster, quantity: Quantity, now: Millis) -> Option<String> {
    let times = latency::client(cluster, quantity, now, latency::WINDOW_MS)?;
    let (joined, unknown) = (cluster.clients().joined(), cluster.clients().unknown());
    let figures = match times.quantiles {
        Some([p50, p95, p99]) => {
            let text = |range| quantity.range_text(range);
            format!(
                "Client: p95 {}, p50 {}, p99 {} of {}",
                text(&p95),
                text(&p50),
                text(&p99),
                plural(times.samples, "request", "requests")
            )
        }
        None => format!("Client: {NO_SAMPLE}"),
    };
    let share = cluster.clients().joined_share().map_or(UNKNOWN.to_owned(), percent);
    Some(format!(
        "{figures}, as clients measured it. {} of {} results joined with decisions ({share}).",
        count(joined),
        count(joined + unknown)
    ))
}

/// The 95th percentile over time, milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct TrendSeries {
    /// Times of the points, oldest first.
    pub times: Vec<Millis>,
    /// Least and most at each of them, equal where the value is known exactly; `None`: not known.
    pub values: Vec<Option<(f64, f64)>>,
    /// The last point; `None`: not known.
    pub last: Option<Range>,
    /// Time between two points, milliseconds.
    pub step_ms: u64,
}

impl TrendSeries {
    /// Within `span`. `None`: not reported.
    pub fn of(cluster: &Cluster, quantity: Quantity, span: TimeSpan, now: Millis) -> Option<Self> {
        let trend = latency::trend(cluster, quantity, (span.from, span.until), now)?;
        let ends = |range: Range| (range.low(), range.high().unwrap_or(range.low()));
        let (times, values) = trend.points().map(|(at, p95)| (at, p95.map(ends))).unzip();
        Some(Self { times, values, last: trend.p95.last().copied().flatten(), step_ms: trend.step_ms })
    }

    /// Where the value is known exactly: the line.
    pub fn line(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.values.iter().map(|known| known.filter(|(low, high)| low == high).map(|(low, _)| low))
    }

    /// Where its bucket is known: the bands.
    pub fn bands(&self) -> impl Iterator<Item = Option<(f64, f64)>> + '_ {
        self.values.iter().map(|known| known.filter(|(low, high)| low != high))
    }
}
