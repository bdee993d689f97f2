//! The three layers side by side: live, and both baselines at the same concurrency.

use leptos::prelude::*;
use radixscope_insight::baseline::{AgainstBaseline, Baseline, Bounds, Difference, Figure, difference};
use radixscope_insight::recent_window::RecentFigures;
use radixscope_model::range::Range;

use super::roles::{Baselines, Role};
use crate::format::{self, UNKNOWN};
use crate::view::control::view;

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

#[derive(Clone, PartialEq)]
struct FigureRow {
    figure: Figure,
    live: (String, String),
    base: [(String, String); 2],
    differences: [(String, &'static str); 2],
}

fn lines(live: &RecentFigures, baselines: &[Option<Baseline>; 2]) -> Vec<FigureRow> {
    let concurrency = live.concurrency.map(|(mean, _)| mean);
    let line = |figure: Figure| {
        let value = live.window.figures.get(figure);
        let source = live.sources.get(figure);
        let samples = live.window.samples.get(figure);
        let live_text = match (value, source) {
            (Some(value), Some(source)) => (
                range_text(figure, &value),
                format!("{}, {}", format::plural(samples, "sample", "samples"), source.label()),
            ),
            _ => (UNKNOWN.to_owned(), "no data".to_owned()),
        };
        let read = baselines.each_ref().map(|baseline| at(baseline.as_ref(), figure, concurrency));
        let differences = read.each_ref().map(|(_, _, base)| difference_text(figure, value, *base));
        FigureRow { figure, live: live_text, base: read.map(|(text, why, _)| (text, why)), differences }
    };
    Figure::ALL.into_iter().map(line).collect()
}

#[component]
pub(super) fn Table(live: Memo<RecentFigures>, baselines: Baselines) -> impl IntoView {
    let playing = Memo::new(move |_| Role::ALL.map(|role| baselines.playing(role)));
    let all = Memo::new(move |_| live.with(|live| playing.with(|playing| lines(live, playing))));
    let row = move |at: usize| {
        let figure = Figure::ALL[at];
        let of = move |read: fn(&FigureRow) -> String| {
            Memo::new(move |_| all.with(|all| all.get(at).map(read)).unwrap_or_default())
        };
        let id = |column: &str| format!("cmp-{}-{column}", figure.column());
        let (live_text, live_sub) = (of(|l| l.live.0.clone()), of(|l| l.live.1.clone()));
        let bases = [of(|l| l.base[0].0.clone()), of(|l| l.base[1].0.clone())];
        let whys = [of(|l| l.base[0].1.clone()), of(|l| l.base[1].1.clone())];
        let diffs = [of(|l| l.differences[0].0.clone()), of(|l| l.differences[1].0.clone())];
        let classes = [of(|l| l.differences[0].1.to_owned()), of(|l| l.differences[1].1.to_owned())];
        view! {
            <tr>
                <th scope="row">{figure.label()}" "<span class="quiet">{figure.unit()}</span></th>
                <td class="n" title=live_sub><b data-testid=id("live")>{live_text}</b></td>
                <td class="n" title=whys[0] data-testid=id("kv")>{bases[0]}</td>
                <td class=move || format!("n cmp-diff {}", classes[0].get()) data-testid=id("kv-diff")>{diffs[0]}</td>
                <td class="n" title=whys[1] data-testid=id("rr")>{bases[1]}</td>
                <td class=move || format!("n cmp-diff {}", classes[1].get()) data-testid=id("rr-diff")>{diffs[1]}</td>
            </tr>
        }
    };
    view! {
        <table class="cmp-table" data-testid="cmp-table">
            <thead><tr>
                <th scope="col">"Figure"</th>
                <th scope="col" class="n">"Live"</th>
                <th scope="col" class="n">"KV-aware"</th>
                <th scope="col" class="n" title="Live against the KV-aware baseline at the same concurrency">"Live vs baseline"</th>
                <th scope="col" class="n">"Round-robin"</th>
                <th scope="col" class="n" title="Live against the round-robin baseline at the same concurrency">"Live vs baseline"</th>
            </tr></thead>
            <tbody>{(0..Figure::ALL.len()).map(row).collect_view()}</tbody>
        </table>
    }
}
