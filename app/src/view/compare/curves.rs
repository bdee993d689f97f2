//! The figures by concurrency as a chart, and what it shows as text.

use leptos::prelude::*;
use radixscope_icicle::palette::{Palette, parse};
use radixscope_insight::baseline::{
    Baseline, Direction, Figure, SweepLevel, crossover, standing, standing_text,
};
use radixscope_insight::recent_window::RecentFigures;

use super::roles::{Baselines, Role};
use super::table::{digits, range_text};
use crate::draw::curves::{self, Curve, Picture};
use crate::store::Store;
use crate::theme;
use crate::view::charted::Charted;
use crate::view::control::view;
use crate::view::legend::{Hidden, Legend, LegendEntry};

/// Key of the chart's figure in the address.
const FIGURE_KEY: &str = "cmp.figure";

/// Key of the lines that are hidden, by name.
const HIDDEN_KEY: &str = "cmp.hide";
/// Both baselines: name and colour.
const LOOKS: [(&str, &str); 2] = [("KV-aware", "--cost-prefill"), ("Round-robin", "--cost-decode")];

/// Value in the address, name, figures that are drawn together.
type FigureChoice = (&'static str, &'static str, &'static [Figure]);
const CHOICES: [FigureChoice; 6] = [
    ("ttft", "TTFT", &[Figure::TtftP50, Figure::TtftP95]),
    ("itl", "ITL", &[Figure::ItlP50, Figure::ItlP95]),
    ("e2e", "E2E", &[Figure::E2eP50, Figure::E2eP95]),
    ("tokens", "Output tokens", &[Figure::OutputTokens]),
    ("requests", "Requests", &[Figure::Requests]),
    ("hits", "Hit rate", &[Figure::HitRate]),
];

/// Crossovers of a figure: concurrency, a mark in the chart, and what happens there.
fn crossings(figure: Figure, [kv, rr]: &[Option<Baseline>; 2]) -> Vec<(f64, String, String)> {
    let (Some(kv), Some(rr)) = (kv, rr) else { return Vec::new() };
    let all = crossover(kv, rr, figure).into_iter();
    all.map(|crossing| {
        let direction = match crossing.direction {
            Direction::FirstGetsWorse => "worse",
            Direction::FirstGetsBetter => "better",
        };
        let at = crossing.concurrency;
        let quantile = figure.label().rsplit(' ').next().filter(|word| word.starts_with('p')).unwrap_or("");
        (
            at,
            format!("{quantile} {direction} from {at:.0}").trim().to_owned(),
            format!("{} at {at:.0}: KV-aware gets {direction}", figure.label()),
        )
    })
    .collect()
}

/// Which of the two is better as far as their runs bear it, in a sentence for each figure of which repeated runs are known.
fn standings_of(figures: &[Figure], [kv, rr]: &[Option<Baseline>; 2]) -> Vec<String> {
    let (Some(kv), Some(rr)) = (kv, rr) else { return Vec::new() };
    let of = |&figure: &Figure| {
        let text = standing_text(figure, LOOKS.map(|(name, _)| name), &standing(kv, rr, figure))?;
        Some(format!("{}: {text}.", figure.label()))
    };
    figures.iter().filter_map(of).collect()
}

/// The same as one text, with what the bars are.
fn standings(figures: &[Figure], baselines: &[Option<Baseline>; 2]) -> String {
    let [Some(kv), Some(rr)] = baselines else { return String::new() };
    let all = standings_of(figures, baselines);
    if all.is_empty() {
        return "How far repeats of these baselines lie apart is unknown, so crossovers are of single measurements.".to_owned();
    }
    let kinds: Vec<String> = [kv, rr].map(spread_kinds).into_iter().flatten().collect();
    let kinds = match &kinds[..] {
        [a, b] if a != b => format!("{a}, and {b}"),
        [kind, ..] => kind.clone(),
        [] => "bounds".to_owned(),
    };
    format!("{} Bars: {kinds} of the runs.", all.join(" "))
}

/// What the bounds of a baseline's levels mean.
fn spread_kinds(baseline: &Baseline) -> Option<String> {
    let mut kinds: Vec<String> =
        baseline.rows().iter().filter_map(|row| row.spread).map(|kind| kind.to_string()).collect();
    kinds.dedup();
    (!kinds.is_empty()).then(|| kinds.join(" or "))
}

fn picture(
    choice: FigureChoice,
    live: &RecentFigures,
    playing: &[Option<Baseline>; 2],
    dark: bool,
) -> Picture {
    let (_, name, figures) = choice;
    let colour = |token: &str| parse(&theme::token(token), dark).unwrap_or_default();
    let mut curves = Vec::new();
    for ((baseline, (who, token)), squares) in playing.iter().zip(LOOKS).zip([false, true]) {
        let colour = colour(token);
        for (at, &figure) in figures.iter().enumerate() {
            let rows: &[SweepLevel] = baseline.as_ref().map_or(&[], Baseline::rows);
            let points: Vec<(f64, f64)> =
                rows.iter().filter_map(|row| Some((row.concurrency, row.figures.get(figure)?))).collect();
            let spreads = rows.iter().filter_map(|row| {
                let bounds = row.bounds.get(figure)?;
                Some((row.concurrency, bounds.low, bounds.high))
            });
            let spreads = spreads.collect();
            let end = if figures.len() > 1 { [" p50", " p95"][at.min(1)] } else { "" };
            curves.push(Curve {
                name: format!("{who}{end}"),
                colour,
                dashed: at == 1,
                squares,
                points,
                spreads,
            });
        }
    }
    let concurrency = live.concurrency.map(|(mean, _)| mean);
    let points = |&figure: &Figure| {
        let (x, range) = (concurrency?, live.window.figures.get(figure)?);
        let end = if figures.len() > 1 { figure.label().rsplit(' ').next().unwrap_or("") } else { "" };
        // Rounded, so that what is not seen draws nothing anew.
        let at = |y: f64| crate::format::decimal(&digits(figure, y)).unwrap_or(y);
        let name = format!("Live {end} {}", range_text(figure, &range)).replace("  ", " ");
        let low = (x.round(), at(range.low()), name);
        // Of a range both ends, with a line between them.
        let high =
            range.high().filter(|_| range.value().is_none()).map(|high| (x.round(), at(high), String::new()));
        Some([Some(low), high])
    };
    let unit = figures.first().map_or("", |figure| figure.unit());
    Picture {
        curves,
        live: figures.iter().filter_map(points).map(|ends| ends.into_iter().flatten().collect()).collect(),
        marks: figures
            .iter()
            .flat_map(|&figure| crossings(figure, playing))
            .map(|(at, mark, _)| (at, mark))
            .collect(),
        values: format!("{name}, {unit}"),
    }
}

#[component]
pub(super) fn Curves(
    store: Store,
    dark: Memo<bool>,
    live: Memo<RecentFigures>,
    baselines: Baselines,
) -> impl IntoView {
    let choice = Memo::new(move |_| {
        let name = store.address.with(|address| address.other(FIGURE_KEY));
        CHOICES.iter().position(|(key, ..)| name.as_deref() == Some(key)).unwrap_or(0)
    });
    let playing = Memo::new(move |_| Role::ALL.map(|role| baselines.playing(role)));
    let shown = Memo::new(move |_| {
        live.with(|live| playing.with(|playing| picture(CHOICES[choice.get()], live, playing, dark.get())))
    });
    let hidden = Hidden::of(store, HIDDEN_KEY);
    let legend = Memo::new(move |_| {
        let names: Vec<String> =
            shown.with(|shown| shown.curves.iter().map(|curve| curve.name.clone()).collect());
        let of = |name: String| {
            let kv = name.starts_with(LOOKS[0].0);
            let (_, colour) = LOOKS[usize::from(!kv)];
            LegendEntry { id: name.clone(), name, swatch: "", colour: colour.to_owned() }
        };
        names.into_iter().map(of).collect::<Vec<_>>()
    });
    let status_text = Memo::new(move |_| {
        let (_, name, figures) = CHOICES[choice.get()];
        let all: Vec<String> = playing.with(|playing| {
            figures
                .iter()
                .flat_map(|&figure| crossings(figure, playing))
                .map(|(.., status_text)| status_text)
                .collect()
        });
        let has_runs = || !playing.with(|playing| standings_of(figures, playing)).is_empty();
        match all.is_empty() {
            true if has_runs() => format!("{name}: no crossover that the runs bear out."),
            true => format!("{name}: the baselines do not cross."),
            false => format!("Crossovers: {}.", all.join("; ")),
        }
    });
    let standing = Memo::new(move |_| {
        let (.., figures) = CHOICES[choice.get()];
        playing.with(|playing| standings(figures, playing))
    });
    let option = move |palette: &Palette| {
        let mut picture = shown.get();
        let of = picture.curves.len();
        picture.curves.retain(|curve| !hidden.has(&curve.name));
        if picture.curves.len() < of {
            // Crossings of a hidden line are not listed.
            picture.marks.clear();
        }
        Some(curves::option(&picture, palette))
    };
    let description = move || {
        format!(
            "{} by concurrency. {} {} The table has the figures.",
            CHOICES[choice.get()].1,
            status_text.get(),
            standing.get()
        )
    };
    let choose =
        move |key: &'static str| store.address.update(|address| address.set_other(FIGURE_KEY, Some(key)));
    view! {
        <fieldset class="tabs"><legend class="hidden">"Figure of the chart"</legend>
            {CHOICES.iter().enumerate().map(|(at, &(key, name, _))| view! {
                <label class="tab"><input type="radio" name="cmp-figure" data-testid=format!("cmp-figure-{key}")
                    prop:checked=move || choice.get() == at on:change=move |_| choose(key)/><span>{name}</span></label>
            }).collect_view()}
        </fieldset>
        <Legend hidden all=legend/>
        <Charted store dark id="cmp-chart" class="chart-box cmp-chart" description=Memo::new(move |_| description()) option/>
        <p class="caption" data-testid="cmp-crossovers">{status_text}</p>
        <p class="caption" data-testid="cmp-standing">{standing}</p>
    }
}
