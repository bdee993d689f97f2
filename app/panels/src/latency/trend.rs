//! The 95th percentile over time: its lines, their legend, and the same in words.

use radixscope_export::panel::latency::{QuantityLabels, TrendSeries};
use radixscope_insight::latency::{Quantity, Side, TREND_STEP_MS};
use radixscope_insight::time_range::TimeSpan;
use radixscope_model::id::Millis;
use radixscope_state::cluster::Cluster;

use crate::legend::{Hidden, LegendEntry};

/// Id of the target in the legend.
pub const TARGET: &str = "target";

/// A line for each side that measures the quantity, the frontend's above the others.
#[derive(Clone, PartialEq, Debug)]
pub struct TrendLines(pub Vec<(Side, TrendSeries)>);

impl TrendLines {
    /// Within `span`, which begins and ends as [`step`](Self::step) says.
    pub fn of(cluster: &Cluster, quantity: Quantity, span: TimeSpan, now: Millis) -> Self {
        let sides = [Side::Frontend, Side::Client, Side::Engine].into_iter();
        Self(
            sides
                .filter_map(|side| Some((side, TrendSeries::of(cluster, quantity, side, span, now)?)))
                .collect(),
        )
    }

    /// `span` as points know it: they are five seconds apart or more and keep their place, so that between them nothing changes.
    pub fn step(span: TimeSpan) -> TimeSpan {
        let at = |at: Millis| Millis(at.0 / TREND_STEP_MS * TREND_STEP_MS);
        TimeSpan { from: at(span.from), until: at(span.until) }
    }

    /// Key in the address of the lines that are hidden.
    pub const fn hidden_key(quantity: Quantity) -> &'static str {
        match quantity {
            Quantity::Ttft => "ttft.hide",
            _ => "itl.hide",
        }
    }

    /// A button for each line and one for the target.
    pub fn legend(&self) -> Vec<LegendEntry> {
        let of = |id: &str, name: &str, colour: &str| LegendEntry {
            id: id.to_owned(),
            name: name.to_owned(),
            swatch: "",
            colour: colour.to_owned(),
        };
        let is_alone = self.0.len() == 1;
        let line = |(side, _): &(Side, TrendSeries)| match side {
            Side::Frontend if is_alone => of(id(*side), "p95", "--focus"),
            Side::Frontend => of(id(*side), "p95 at the frontend", "--focus"),
            Side::Client => of(id(*side), "at the client", "--text"),
            Side::Engine => of(id(*side), "in the engines", "--text-quiet"),
        };
        self.0.iter().map(line).chain([of(TARGET, "target", "--warn")]).collect()
    }

    /// The lines that are drawn, with their names.
    pub fn drawn(&self, title: &str, hidden: &Hidden) -> Vec<(String, Side, &TrendSeries)> {
        let is_shown = |(side, _): &&(Side, TrendSeries)| !hidden.has(id(*side));
        let name = |side: Side| format!("{title} p95, {}, ms", side.as_str());
        self.0.iter().filter(is_shown).map(|(side, series)| (name(*side), *side, series)).collect()
    }

    /// What is seen, for those who do not see it.
    pub fn description(&self, labels: &QuantityLabels, target_ms: f64) -> String {
        let QuantityLabels { quantity, name, .. } = labels;
        let last = |(side, series): &(Side, TrendSeries)| {
            let last = series.last.map_or("no sample".to_owned(), |p95| quantity.range_text(&p95));
            format!("{} {last}", side.as_str())
        };
        let last: Vec<String> = self.0.iter().map(last).collect();
        format!(
            "95th percentile of {name} over the 60 s before each point; at the end {}, target {}",
            last.join(", "),
            quantity.to_text(target_ms)
        )
    }
}

/// Name of a line in the address.
const fn id(side: Side) -> &'static str {
    match side {
        Side::Frontend => "p95",
        Side::Client | Side::Engine => side.as_str(),
    }
}
