//! Latencies: the best source of each, as everywhere else.

use super::{FigureSource, Pair, SourcedFigure, WindowView};
use crate::baseline::Figure;
use crate::latency::{self, Quantity};

pub(super) fn times(span: &WindowView<'_>) -> Vec<Pair> {
    use Figure::{E2eP50, E2eP95, ItlP50, ItlP95, TtftP50, TtftP95};
    let mut pairs = both(span, (TtftP50, TtftP95), Quantity::Ttft, 1.0).to_vec();
    pairs.extend(both(span, (ItlP50, ItlP95), Quantity::Tpot, 1.0));
    pairs.extend(both(span, (E2eP50, E2eP95), Quantity::EndToEnd, 1e3));
    pairs
}

/// Median and 95th percentile; `per` milliseconds are one of the figures' unit.
fn both(span: &WindowView<'_>, (p50, p95): (Figure, Figure), quantity: Quantity, per: f64) -> [Pair; 2] {
    let all = latency::within(span.cluster, quantity, span.now, span.ms);
    let best = all.into_iter().find_map(|times| times.quantiles.map(|quantiles| (quantiles, times)));
    let known = |at: usize| {
        let (quantiles, times) = best.as_ref()?;
        let source = match times.source {
            latency::TimingSource::Histograms { .. } => FigureSource::Scraped,
            latency::TimingSource::Measured => FigureSource::Requests,
            latency::TimingSource::Derived => FigureSource::Derived,
        };
        Some(SourcedFigure { value: quantiles[at].times(1.0 / per), samples: times.samples, source })
    };
    [(p50, known(0)), (p95, known(1))]
}
