//! Lengths of sequences, prompt and output together, for the capacity calculator.

use super::{FigureSource, WindowView};
use radixscope_model::id::Millis;
use radixscope_model::percentile::nearest_rank;
use radixscope_model::record::HistogramKind;
use radixscope_state::cluster::{Cluster, SCRAPE_WINDOW_MS};

/// Enough finished requests for a 95th percentile.
const ENOUGH: usize = 20;

/// Lengths of finished sequences in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lengths {
    /// Median.
    pub p50: u64,
    /// 95th percentile.
    pub p95: u64,
    /// Sequences behind them.
    pub samples: u64,
    /// Of single requests they are exact. Of histograms they are the quantile of the prompts and that of the outputs
    /// added, for nothing tells which belong together.
    pub source: FigureSource,
}

/// Lengths of the sequences that ended lately; `None`: not reported.
pub fn lengths(cluster: &Cluster, now: Millis) -> Option<Lengths> {
    let each = cluster.decisions().newest_first().filter_map(|decided| {
        Some(decided.decision.isl_tokens?.saturating_add(decided.progress.output_tokens?))
    });
    let ended = cluster
        .requests()
        .newest_first()
        .filter_map(|request| Some(request.isl_tokens?.saturating_add(request.progress.output_tokens?)));
    let mut known: Vec<u64> = each.chain(ended).collect();
    if known.len() >= ENOUGH {
        known.sort();
        return Some(Lengths {
            p50: nearest_rank(&known, 50)?,
            p95: nearest_rank(&known, 95)?,
            samples: known.len() as u64,
            source: FigureSource::Requests,
        });
    }
    let span = WindowView { cluster, now, ms: SCRAPE_WINDOW_MS };
    let (prompts, outputs) =
        (span.scraped(HistogramKind::InputTokens)?, span.scraped(HistogramKind::OutputTokens)?);
    let at =
        |q| Some((prompts.quantile(q)?.estimate + outputs.quantile(q)?.estimate).round().max(1.0) as u64);
    Some(Lengths {
        p50: at(0.5)?,
        p95: at(0.95)?,
        samples: prompts.count().min(outputs.count()),
        source: FigureSource::Scraped,
    })
}
