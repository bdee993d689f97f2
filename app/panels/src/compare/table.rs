//! The three layers side by side: live, and both baselines at the same concurrency.

use radixscope_insight::baseline::{AgainstBaseline, Baseline, Bounds, Difference, Figure, difference};
use radixscope_insight::recent_window::RecentFigures;
use radixscope_model::range::Range;

use crate::format::{self, UNKNOWN};

/// Figures with as many digits as their unit bears.
pub(super) fn digits(figure: Figure, value: f64) -> String {
    match figure.unit() {
        "ms" => format!("{value:.0}"),
        "req/s" => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// A baseline's value and the spread of its runs.
type Reading = (f64, Option<Bounds>);

/// A baseline's figure at a concurrency: text, explanation, value.
fn at(
    baseline: Option<&Baseline>,
    figure: Figure,
    concurrency: Option<f64>,
) -> (String, String, Option<Reading>) {
    let none = |text: String, why: String| (text, why, None);
    let Some(baseline) = baseline else { return none(UNKNOWN.to_owned(), "No such baseline".to_owned()) };
    let Some(concurrency) = concurrency else {
        return none(UNKNOWN.to_owned(), "The current concurrency is unknown".to_owned());
    };
    match (baseline.interpolate(concurrency, figure), baseline.range(figure)) {
        (Some(read), _) => {
            let (from, to) = read.between;
            let why = if from == to {
                format!("Measured at {from}")
            } else {
                format!("Interpolated linearly between concurrency {from} and {to}")
            };
            let bounds = baseline.bounds_at(concurrency, figure);
            let value = digits(figure, read.value);
            let text = match bounds {
                Some(bounds) => {
                    format!("{value} ({}–{})", digits(figure, bounds.low), digits(figure, bounds.high))
                }
                None => value,
            };
            (text, format!("{why}{}", runs_of(baseline, from)), Some((read.value, bounds)))
        }
        (None, Some((least, most))) => {
            let why = format!("Measured from {least} to {most} only, not extrapolated");
            none("outside".to_owned(), why)
        }
        (None, None) => none(UNKNOWN.to_owned(), "Not measured in this baseline".to_owned()),
    }
}

/// What is known of the runs of a level, after another explanation.
fn runs_of(baseline: &Baseline, level: f64) -> String {
    let Some(row) = baseline.rows().iter().find(|row| row.concurrency == level) else { return String::new() };
    let runs = row.runs.finished.map(|runs| format!("; {} at {level}", format::plural(runs, "run", "runs")));
    let spread = row.spread.map(|kind| format!(", in brackets {kind}"));
    format!("{}{}", runs.unwrap_or_default(), spread.unwrap_or_default())
}

/// A live figure in its unit's digits: a number, or its range.
pub(super) fn range_text(figure: Figure, range: &Range) -> String {
    if range.is_unbounded() { UNKNOWN.to_owned() } else { range.to_text(|value| digits(figure, value)) }
}

/// How live stands to a baseline: percent with sign, in a word, with an icon; class. "Worse" and "better" only where the
/// baseline lies outside of what live can be.
fn difference_text(figure: Figure, live: Option<Range>, base: Option<Reading>) -> (String, &'static str) {
    let difference = live.zip(base).and_then(|(live, (base, bounds))| difference(figure, live, base, bounds));
    let Some(Difference { share, verdict }) = difference else { return (UNKNOWN.to_owned(), "") };
    let percent = share.to_text(|share| {
        let percent = (share * 100.0).round();
        let sign = if percent < 0.0 { '−' } else { '+' };
        format!("{sign}{:.0} %", percent.abs())
    });
    let percent = percent.replace(" %–", " to ");
    match verdict {
        AgainstBaseline::Equal => ("= equal".to_owned(), ""),
        AgainstBaseline::Better => (format!("{percent} ▲ better"), "better"),
        AgainstBaseline::Worse => (format!("{percent} ▼ worse"), "worse"),
        AgainstBaseline::WithinSpread => (format!("{percent}: within its runs' spread"), "quiet"),
        AgainstBaseline::Unknown => (format!("{percent}: baseline within range"), "quiet"),
    }
}

/// A figure, live and of both baselines.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureRow {
    /// Which.
    pub figure: Figure,
    /// Live: the value, and what it is of.
    pub live: (String, String),
    /// KV-aware and round-robin: the value at the same concurrency, and how it is known.
    pub base: [(String, String); 2],
    /// How live compares to each of them, and the class of that.
    pub differences: [(String, &'static str); 2],
}

impl FigureRow {
    /// All figures, live beside the baselines that play the roles.
    pub fn all(live: &RecentFigures, playing: &[Option<Baseline>; 2]) -> Vec<Self> {
        let concurrency = live.concurrency.map(|(mean, _)| mean);
        let row = |figure: Figure| {
            let value = live.window.figures.get(figure);
            let samples = live.window.samples.get(figure);
            let live_text = match (value, live.sources.get(figure)) {
                (Some(value), Some(source)) => (
                    range_text(figure, &value),
                    format!("{}, {}", format::plural(samples, "sample", "samples"), source.label()),
                ),
                _ => (UNKNOWN.to_owned(), "no data".to_owned()),
            };
            let read = playing.each_ref().map(|baseline| at(baseline.as_ref(), figure, concurrency));
            let differences = read.each_ref().map(|(_, _, base)| difference_text(figure, value, *base));
            Self { figure, live: live_text, base: read.map(|(text, why, _)| (text, why)), differences }
        };
        Figure::ALL.into_iter().map(row).collect()
    }
}
