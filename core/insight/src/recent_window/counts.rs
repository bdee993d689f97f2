//! What is counted: requests and tokens a second, and the share of prompts that was cached.

use super::{FigureSource, Pair, SourcedFigure, WindowView};
use crate::baseline::Figure;
use radixscope_model::record::{Counter, HistogramKind};

/// A histogram of cached tokens stands for all prompts if it has at least this share of their samples, in percent.
const MOST_PERCENT: u64 = 90;

pub(super) fn counts(span: &WindowView<'_>) -> [Pair; 3] {
    [
        (Figure::HitRate, cached(span).or_else(|| decided(span)).or_else(|| routed(span))),
        (
            Figure::OutputTokens,
            scraped_rate(span, Counter::OutputTokens, HistogramKind::OutputTokens).or_else(|| tokens(span)),
        ),
        (
            Figure::Requests,
            scraped_rate(span, Counter::RequestsOk, HistogramKind::Duration).or_else(|| ended(span)),
        ),
    ]
}

/// By the engines' own word: cached tokens over prompt tokens.
fn cached(span: &WindowView<'_>) -> Option<SourcedFigure> {
    let (cached, prompts) =
        (span.scraped(HistogramKind::CachedTokens)?, span.scraped(HistogramKind::InputTokens)?);
    let is_whole = cached.count() * 100 >= prompts.count() * MOST_PERCENT && prompts.sum() > 0.0;
    let value = (100.0 * cached.sum() / prompts.sum()).min(100.0);
    is_whole.then(|| SourcedFigure::exact(value, cached.count(), FigureSource::Scraped))
}

/// By the router's own count, in blocks.
fn decided(span: &WindowView<'_>) -> Option<SourcedFigure> {
    let totals = span.cluster.decisions().window(span.now, span.ms);
    let value = totals.overlap_share()? * 100.0;
    Some(SourcedFigure::exact(value.min(100.0), totals.count, FigureSource::Decisions))
}

/// The router's histogram: the mean of the requests' shares, long and short ones alike.
fn routed(span: &WindowView<'_>) -> Option<SourcedFigure> {
    let rate = span.scraped(HistogramKind::HitRate)?;
    Some(SourcedFigure::exact(rate.mean()? * 100.0, rate.count(), FigureSource::Scraped))
}

/// What a counter rose by in a second; samples are those of a histogram that has one for each request.
fn scraped_rate(span: &WindowView<'_>, counter: Counter, requests: HistogramKind) -> Option<SourcedFigure> {
    let value = span.per_s(|process| process.counted_since(counter, span.after()))?;
    let samples = span.scraped(requests).map_or(0, |scraped| scraped.count());
    Some(SourcedFigure::exact(value, samples, FigureSource::Scraped))
}

/// Output tokens of the requests that ended in the window.
fn tokens(span: &WindowView<'_>) -> Option<SourcedFigure> {
    let ended = finished(span);
    let known: Vec<u64> = ended.filter_map(|decided| decided.progress.output_tokens).collect();
    let sum = known.iter().map(|&tokens| tokens as f64).sum::<f64>();
    known_rate(span, sum, known.len() as u64, FigureSource::Requests)
}

fn ended(span: &WindowView<'_>) -> Option<SourcedFigure> {
    let count = finished(span).count() as u64;
    known_rate(span, count as f64, count, FigureSource::Derived)
}

fn finished<'s>(
    span: &'s WindowView<'_>,
) -> impl Iterator<Item = &'s radixscope_state::cluster::DecisionEntry> {
    let all = span.cluster.decisions().newest_first();
    all.filter(|decided| decided.progress.ended_ms.is_some_and(|at| span.holds(at)))
}

/// `None` without a sample: no request ended, or ends are not reported.
fn known_rate(span: &WindowView<'_>, sum: f64, samples: u64, source: FigureSource) -> Option<SourcedFigure> {
    (samples > 0).then(|| SourcedFigure::exact(sum / (span.ms as f64 / 1e3), samples, source))
}
