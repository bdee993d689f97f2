//! Latencies: from each request where most were told one by one, else from the frontends' histograms.

use super::{Known, Pair, Source, Span};
use crate::baseline::Figure;
use crate::cluster::Decided;
use crate::id::Millis;
use crate::record::HistogramKind;

/// Single requests stand for all if they are at least this share of what the histogram counted, in percent.
const MOST_PERCENT: u64 = 90;

/// A latency of one request: when it was known, the value, and whether the frontend measured it.
type Told = (Millis, f64, bool);

pub(super) fn times(span: &Span<'_>) -> Vec<Pair> {
    use Figure::{E2eP50, E2eP95, ItlP50, ItlP95, TtftP50, TtftP95};
    let mut pairs = both(span, (TtftP50, TtftP95), HistogramKind::Ttft, 1e3, ttft_ms);
    pairs.extend(both(span, (ItlP50, ItlP95), HistogramKind::Itl, 1e3, itl_ms));
    pairs.extend(both(span, (E2eP50, E2eP95), HistogramKind::Duration, 1.0, e2e_s));
    pairs
}

/// Median and 95th percentile. `scale` brings the histogram's seconds into the figures' unit.
fn both(
    span: &Span<'_>,
    (p50, p95): (Figure, Figure),
    kind: HistogramKind,
    scale: f64,
    of: fn(&Decided) -> Option<Told>,
) -> Vec<Pair> {
    let told: Vec<Told> =
        span.cluster.decisions().newest_first().filter_map(of).filter(|told| span.holds(told.0)).collect();
    let scraped = span.scraped(kind);
    // A mean over a request is one value; the histogram has one for each token.
    let has_most = |counted: u64| told.len() as u64 * 100 >= counted * MOST_PERCENT;
    let is_exact = match &scraped {
        Some(_) if kind == HistogramKind::Itl => false,
        Some(scraped) => told.iter().all(|told| told.2) && has_most(scraped.count()),
        None => true,
    };
    if is_exact && !told.is_empty() {
        let source = if told.iter().all(|told| told.2) { Source::Requests } else { Source::Told };
        let mut values: Vec<f64> = told.iter().map(|told| told.1).collect();
        values.sort_by(f64::total_cmp);
        let known = |q| Some(Known { value: quantile(&values, q), samples: values.len() as u64, source });
        return vec![(p50, known(0.5)), (p95, known(0.95))];
    }
    let known = |q| {
        let scraped = scraped.as_ref()?;
        let value = scraped.quantile(q)?.estimate * scale;
        Some(Known { value, samples: scraped.count(), source: Source::Scraped })
    };
    vec![(p50, known(0.5)), (p95, known(0.95))]
}

/// The value that the share `q` of `sorted` does not exceed; of an empty list 0.
pub(super) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied().unwrap_or_default()
}

fn ttft_ms(decided: &Decided) -> Option<Told> {
    let (ms, is_measured) = decided.time_to_first_token_ms()?;
    let at = decided.progress.first_token_ms.unwrap_or(Millis(decided.decided_ms().0 + ms.max(0.0) as u64));
    Some((at, ms, is_measured))
}

fn itl_ms(decided: &Decided) -> Option<Told> {
    Some((decided.progress.ended_ms?, decided.progress.itl_us? as f64 / 1e3, true))
}

fn e2e_s(decided: &Decided) -> Option<Told> {
    let ended = decided.progress.ended_ms?;
    Some((ended, ended.since(decided.decided_ms()) as f64 / 1e3, false))
}
