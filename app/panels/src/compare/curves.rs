//! The figures by concurrency as a chart, and what it shows as text.

use radixscope_insight::baseline::{
    Baseline, Direction, Figure, SweepLevel, crossover, standing, standing_text,
};
use radixscope_insight::recent_window::RecentFigures;

use super::table::{digits, range_text};
use crate::format;
use crate::legend::{Hidden, LegendEntry};
use crate::url::Address;

/// Key of the chart's figure in the address.
pub const FIGURE_KEY: &str = "cmp.figure";

/// Key of the lines that are hidden, by name.
pub const HIDDEN_KEY: &str = "cmp.hide";
/// Both baselines: name and colour.
const LOOKS: [(&str, &str); 2] = [("KV-aware", "--cost-prefill"), ("Round-robin", "--cost-decode")];

/// Figures that are drawn together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureChoice {
    /// Value in the address.
    pub key: &'static str,
    /// Name.
    pub name: &'static str,
    figures: &'static [Figure],
}

impl FigureChoice {
    /// All, in their order.
    pub const ALL: [Self; 6] = [
        Self::new("ttft", "TTFT", &[Figure::TtftP50, Figure::TtftP95]),
        Self::new("itl", "ITL", &[Figure::ItlP50, Figure::ItlP95]),
        Self::new("e2e", "E2E", &[Figure::E2eP50, Figure::E2eP95]),
        Self::new("tokens", "Output tokens", &[Figure::OutputTokens]),
        Self::new("requests", "Requests", &[Figure::Requests]),
        Self::new("hits", "Hit rate", &[Figure::HitRate]),
    ];

    const fn new(key: &'static str, name: &'static str, figures: &'static [Figure]) -> Self {
        Self { key, name, figures }
    }

    /// The one that the address names, else the first.
    pub fn of(address: &Address) -> Self {
        let key = address.other(FIGURE_KEY);
        let [first, ..] = Self::ALL;
        Self::ALL.into_iter().find(|choice| key.as_deref() == Some(choice.key)).unwrap_or(first)
    }
}

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

/// A line between measured levels.
#[derive(Clone, PartialEq, Debug)]
pub struct CurveLine {
    /// Its name.
    pub name: String,
    /// Its colour: a token's name.
    pub colour: &'static str,
    /// Whether it is dashed.
    pub is_dashed: bool,
    /// Whether its points are squares, else circles.
    pub has_squares: bool,
    /// Concurrency and value, by rising concurrency.
    pub points: Vec<(f64, f64)>,
    /// Concurrency and both ends of the spread of its runs, where that is known.
    pub spreads: Vec<(f64, f64, f64)>,
}

/// The chart, and its texts.
#[derive(Clone, PartialEq, Debug)]
pub struct Curves {
    choice: FigureChoice,
    /// A line for each figure of each baseline.
    pub lines: Vec<CurveLine>,
    /// Live figures, each with its point, or with both ends where it is a range: concurrency, value, name.
    pub live: Vec<Vec<(f64, f64, String)>>,
    /// Concurrencies at which lines cross, with what happens there.
    pub marks: Vec<(f64, String)>,
    /// Name and unit of the values.
    pub values: String,
    /// Where the baselines cross.
    pub crossovers: String,
    /// Which of the two is better as far as their runs bear it.
    pub standing: String,
}

impl Curves {
    /// Of live traffic and the baselines that play the roles.
    pub fn of(choice: FigureChoice, live: &RecentFigures, playing: &[Option<Baseline>; 2]) -> Self {
        let FigureChoice { name, figures, .. } = choice;
        let crossings: Vec<_> = figures.iter().flat_map(|&figure| crossings(figure, playing)).collect();
        let crossovers: Vec<&str> = crossings.iter().map(|(.., text)| text.as_str()).collect();
        let crossovers = match crossovers.is_empty() {
            true if !standings_of(figures, playing).is_empty() => {
                format!("{name}: no crossover that the runs bear out.")
            }
            true => format!("{name}: the baselines do not cross."),
            false => format!("Crossovers: {}.", crossovers.join("; ")),
        };
        let unit = figures.first().map_or("", |figure| figure.unit());
        Self {
            choice,
            lines: lines(figures, playing),
            live: live_points(figures, live),
            crossovers,
            marks: crossings.into_iter().map(|(at, mark, _)| (at, mark)).collect(),
            values: format!("{name}, {unit}"),
            standing: standings(figures, playing),
        }
    }

    /// A button for each line.
    pub fn legend(&self) -> Vec<LegendEntry> {
        let of = |line: &CurveLine| LegendEntry {
            id: line.name.clone(),
            name: line.name.clone(),
            swatch: "",
            colour: line.colour.to_owned(),
        };
        self.lines.iter().map(of).collect()
    }

    /// The same without lines that are hidden. Crossings of a hidden line are not marked.
    #[must_use]
    pub fn drawn(mut self, hidden: &Hidden) -> Self {
        let all = self.lines.len();
        self.lines.retain(|line| !hidden.has(&line.name));
        if self.lines.len() < all {
            self.marks.clear();
        }
        self
    }

    /// What is seen, for those who do not see it.
    pub fn description(&self) -> String {
        format!(
            "{} by concurrency. {} {} The table has the figures.",
            self.choice.name, self.crossovers, self.standing
        )
    }
}

fn lines(figures: &[Figure], playing: &[Option<Baseline>; 2]) -> Vec<CurveLine> {
    let mut lines = Vec::new();
    for ((baseline, (who, colour)), has_squares) in playing.iter().zip(LOOKS).zip([false, true]) {
        let rows: &[SweepLevel] = baseline.as_ref().map_or(&[], Baseline::rows);
        for (at, &figure) in figures.iter().enumerate() {
            let points = rows.iter().filter_map(|row| Some((row.concurrency, row.figures.get(figure)?)));
            let spreads = rows.iter().filter_map(|row| {
                let bounds = row.bounds.get(figure)?;
                Some((row.concurrency, bounds.low, bounds.high))
            });
            let end = if figures.len() > 1 { [" p50", " p95"][at.min(1)] } else { "" };
            lines.push(CurveLine {
                name: format!("{who}{end}"),
                colour,
                is_dashed: at == 1,
                has_squares,
                points: points.collect(),
                spreads: spreads.collect(),
            });
        }
    }
    lines
}

fn live_points(figures: &[Figure], live: &RecentFigures) -> Vec<Vec<(f64, f64, String)>> {
    let concurrency = live.concurrency.map(|(mean, _)| mean);
    let points = |&figure: &Figure| {
        let (x, range) = (concurrency?, live.window.figures.get(figure)?);
        let end = if figures.len() > 1 { figure.label().rsplit(' ').next().unwrap_or("") } else { "" };
        // Rounded, so that what is not seen draws nothing anew.
        let at = |y: f64| format::decimal(&digits(figure, y)).unwrap_or(y);
        let name = format!("Live {end} {}", range_text(figure, &range)).replace("  ", " ");
        let low = (x.round(), at(range.low()), name);
        // Of a range both ends, with a line between them.
        let high =
            range.high().filter(|_| range.value().is_none()).map(|high| (x.round(), at(high), String::new()));
        Some([Some(low), high])
    };
    figures.iter().filter_map(points).map(|ends| ends.into_iter().flatten().collect()).collect()
}
