//! TTFT and ITL: percentiles against the target, and the 95th over time.

use radixscope_insight::latency::{self, ClientTimes, ENABLE_FRONTEND, Quantity, Side, Times};
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

/// What was measured on one side.
#[derive(Clone, PartialEq, Debug)]
pub struct SideRow {
    /// For the page's document.
    pub id: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Median, 95th and 99th percentile; `None` without a sample.
    pub quantiles: Option<[Range; 3]>,
    /// What they are of: `208 of 209 requests`.
    pub share: String,
    /// Where they are from, as a sentence.
    pub source: String,
}

impl SideRow {
    /// A percentile as text.
    pub fn text(&self, at: usize, quantity: Quantity) -> String {
        match self.quantiles {
            // Of one clock subtracted from another.
            Some(all) if all[at].low() < 0.0 => format!("−{}", quantity.to_text(-all[at].low())),
            Some(all) => quantity.range_text(&all[at]),
            None => UNKNOWN.to_owned(),
        }
    }

    fn new(side: Side, times: &Times) -> Self {
        let name = match side {
            Side::Client => "at the client",
            Side::Frontend => "at the frontend",
            Side::Engine => "in the engines",
        };
        let (id, source) = (side.as_str(), times.source.to_text());
        Self { id, name, quantiles: times.quantiles, share: times.share_text(), source }
    }

    fn of_clients(id: &'static str, name: &'static str, times: &ClientTimes, source: String) -> Self {
        let share = plural(times.samples, "request", "requests");
        Self { id, name, quantiles: times.quantiles, share, source }
    }
}

/// The figures of the last minute wherever the quantity is measured, from outside inwards, and what lies between client and
/// frontend. Empty if only the frontend's is known.
pub fn sides(cluster: &Cluster, quantity: Quantity, now: Millis) -> Vec<SideRow> {
    let client = latency::client(cluster, quantity, now, latency::WINDOW_MS);
    let engine = latency::engines(cluster, quantity, now, latency::WINDOW_MS);
    if client.is_none() && engine.is_none() {
        return Vec::new();
    }
    let clients = cluster.clients();
    let joined = format!(
        "As clients measured it. {} of {} results are joined with decisions ({})",
        count(clients.joined()),
        count(clients.joined() + clients.unknown()),
        clients.joined_share().map_or(UNKNOWN.to_owned(), percent)
    );
    let before = (quantity == Quantity::Ttft)
        .then(|| latency::ttft_before_frontend(cluster, now, latency::WINDOW_MS))
        .flatten();
    let between = "Time to first token at the client minus that at the frontend, request by request: the network, the client, and what \
                   waits before the frontend";
    let rows = [
        client.map(|times| SideRow::of_clients("client", "at the client", &times, joined)),
        before.map(|times| SideRow::of_clients("before", "between the two", &times, between.to_owned())),
        latency::figure(cluster, quantity, now).map(|times| SideRow::new(Side::Frontend, &times)),
        engine.map(|times| SideRow::new(Side::Engine, &times)),
    ];
    rows.into_iter().flatten().collect()
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
    /// As measured on that side, within `span`. `None`: not reported.
    pub fn of(
        cluster: &Cluster,
        quantity: Quantity,
        side: Side,
        span: TimeSpan,
        now: Millis,
    ) -> Option<Self> {
        let trend = latency::trend(cluster, quantity, side, (span.from, span.until), now)?;
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
