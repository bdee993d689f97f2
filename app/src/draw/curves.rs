//! Curves over concurrency: lines between measured levels, points of live traffic, marks where lines cross. Pure.
//!
//! The axes are those of the measured levels: live traffic far beyond them, or a level at which a queue built up, would squeeze all else
//! into a corner. It is then named at the edge, with an arrow to where it is.

use std::cmp::Ordering;

use charming::component::{Axis, Grid};
use charming::element::{
    AxisType, ItemStyle, Label, LabelPosition, LineStyle, LineStyleType, MarkLine, MarkLineData,
    MarkLineVariant, NameLocation, Symbol, Trigger,
};
use charming::series::{Line, Scatter};
use radixscope_icicle::palette::{Palette, Rgb, css};

use super::option::ChartOption;
use crate::format;

/// A line between measured levels.
#[derive(Clone, PartialEq)]
pub struct Curve {
    /// Name at its end.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Whether its points are squares, else circles.
    pub squares: bool,
    /// Concurrency and value, by rising concurrency.
    pub points: Vec<(f64, f64)>,
    /// Concurrency and both ends of the spread of its runs, where that is known.
    pub spreads: Vec<(f64, f64, f64)>,
}

/// What is drawn.
#[derive(Clone, PartialEq, Default)]
pub struct Picture {
    /// Lines.
    pub curves: Vec<Curve>,
    /// Live figures, each with its point, or with both ends where it is a range: concurrency, value, name.
    pub live: Vec<Vec<(f64, f64, String)>>,
    /// Concurrencies at which lines cross, with what happens there.
    pub marks: Vec<(f64, String)>,
    /// Name and unit of the values.
    pub values: String,
}

/// Height that the plot has at least, CSS pixels: `.cmp-chart` of the style sheet leaves as much.
const MIN_PLOT_PX: f64 = 220.0;
/// Two names at least as far apart can both be read, CSS pixels.
const NAME_PX: f64 = 15.0;
/// A value so many times as high as nine tenths of the others is an outlier: the axis ends below it.
const OUTLIER: f64 = 2.0;
/// Marks stand on so many heights at most, each as high as a name.
const MARK_ROWS: usize = 4;

/// The chart of `picture`.
pub fn option(picture: &Picture, palette: &Palette) -> ChartOption {
    let scales = Scales::of(&picture.curves);
    let (x_axis, y_axis) = (axis("Concurrency, requests in flight", 26), axis(&picture.values, 46));
    let (x_axis, y_axis) = match scales {
        Some(Scales { x, y }) => (x.bound(x_axis), y.bound(y_axis)),
        None => (x_axis.scale(true), y_axis),
    };
    let top = 12.0 + NAME_PX * picture.marks.len().min(MARK_ROWS) as f64;
    let mut chart = ChartOption::new(Trigger::Item)
        .grid(Grid::new().left(64).right(130).top(top).bottom(44))
        .x_axis(x_axis)
        .y_axis(y_axis);
    let nearest = |value: f64| scales.map_or(value, |scales| scales.y.nearest(value));
    let ends: Vec<f64> =
        picture.curves.iter().filter_map(|curve| Some(nearest(curve.points.last()?.1))).collect();
    let mut shifts = scales.map_or(Vec::new(), |scales| scales.y.apart(&ends)).into_iter();
    for (at, curve) in picture.curves.iter().enumerate() {
        let mut line = line(curve);
        if at == 0 {
            line = line.mark_line(marks(picture, palette));
        }
        chart = chart.line(line);
        if let Some((last, others)) = curve.points.split_last() {
            let shift = shifts.next().unwrap_or_default();
            chart = chart.scatter(end(curve, *last, nearest(last.1), shift));
            let above = others.iter().filter(|(_, y)| *y > nearest(*y));
            chart =
                above.fold(chart, |chart, &(x, y)| chart.scatter(above_the_plot(curve, (x, y), nearest(y))));
        }
        chart = curve.spreads.iter().fold(chart, |chart, spread| chart.line(whisker(curve, *spread)));
    }
    let (beyond, within): (Vec<_>, Vec<_>) =
        picture.live.iter().filter(|points| !points.is_empty()).partition(|points| {
            scales.is_some_and(|scales| points.iter().any(|point| scales.has_not(point)))
        });
    let places: Vec<f64> = within.iter().map(|points| points[0].1).collect();
    let mut shifts = scales.map_or(Vec::new(), |scales| scales.y.apart(&places)).into_iter();
    let chart = within
        .into_iter()
        .fold(chart, |chart, points| chart.line(live(points, shifts.next().unwrap_or_default(), palette)));
    let Some(scales) = scales else { return chart };
    let edges: Vec<f64> = beyond.iter().map(|points| scales.y.nearest(points[0].1)).collect();
    let shifts = scales.y.apart(&edges);
    beyond
        .into_iter()
        .zip(shifts)
        .fold(chart, |chart, (points, shift)| chart.scatter(beside(points, scales, shift, palette)))
}

fn axis(name: &str, gap: i32) -> Axis {
    Axis::new().type_(AxisType::Value).name(name).name_location(NameLocation::Middle).name_gap(gap)
}

/// What the axes reach over.
#[derive(Clone, Copy)]
struct Scales {
    x: Scale,
    y: Scale,
}

impl Scales {
    /// Over everything measured; `None`: nothing is.
    fn of(curves: &[Curve]) -> Option<Self> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let highs = curves.iter().flat_map(|curve| &curve.spreads).map(|&(.., high)| high);
        let values = points().map(|point| point.1).chain(highs).collect();
        let y = Scale::over(without_outliers(values).into_iter().chain([0.0]))?;
        Some(Self { x: Scale::over(points().map(|point| point.0))?, y })
    }

    fn has_not(self, &(x, y, _): &(f64, f64, String)) -> bool {
        self.x.nearest(x) != x || self.y.nearest(y) != y
    }
}

/// The values without the few that are far above all others.
fn without_outliers(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return values };
    // One in ten may be above this one.
    let high = values[last - values.len() / 10];
    values.retain(|value| *value <= high * OUTLIER);
    values
}

/// What an axis reaches over.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    from: f64,
    to: f64,
    /// Between two of its numbers.
    step: f64,
}

impl Scale {
    /// Over `values` and a margin, from one of its numbers to another.
    fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        if !low.is_finite() || !high.is_finite() {
            return None;
        }
        // A single level has no width of its own.
        let span = if high > low { high - low } else { high.abs().max(1.0) };
        let rough = span / 5.0;
        let decade = 10_f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade).into_iter().find(|&step| step >= rough)?;
        let margin = span / 20.0;
        // Neither concurrency nor a figure is below zero.
        let from = (((low - margin) / step).floor() * step).max(0.0);
        Some(Self { from, to: ((high + margin) / step).ceil() * step, step })
    }

    fn bound(self, axis: Axis) -> Axis {
        axis.min(self.from).max(self.to).interval(self.step)
    }

    fn nearest(self, value: f64) -> f64 {
        value.clamp(self.from, self.to)
    }

    /// How far names beside `values` move down, CSS pixels, so that none covers another. In a higher plot they are further apart.
    fn apart(self, values: &[f64]) -> Vec<f64> {
        let place = |value: f64| (self.to - value) / (self.to - self.from) * MIN_PLOT_PX;
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let mut places: Vec<f64> = order.iter().map(|&at| place(values[at])).collect();
        for at in 1..places.len() {
            places[at] = places[at].max(places[at - 1] + NAME_PX);
        }
        // Pushed below the plot, they move up again.
        let mut lowest = MIN_PLOT_PX;
        for place in places.iter_mut().rev() {
            *place = place.min(lowest);
            lowest = *place - NAME_PX;
        }
        let mut shifts = vec![0.0; values.len()];
        for (&at, moved) in order.iter().zip(places) {
            shifts[at] = moved - place(values[at]);
        }
        shifts
    }
}

fn line(curve: &Curve) -> Line {
    let kind = if curve.dashed { LineStyleType::Dashed } else { LineStyleType::Solid };
    Line::new()
        .name(&curve.name)
        .symbol(if curve.squares { Symbol::Rect } else { Symbol::Circle })
        .symbol_size(6.0)
        .item_style(ItemStyle::new().color(css(curve.colour)))
        .line_style(LineStyle::new().width(2.0).type_(kind))
        .data(curve.points.iter().map(|&(x, y)| vec![x, y]).collect())
}

/// The spread of a level's runs, as a bar with ends.
fn whisker(curve: &Curve, (at, low, high): (f64, f64, f64)) -> Line {
    Line::new()
        .name(&curve.name)
        .silent(true)
        .symbol(Symbol::Rect)
        .symbol_size(4.0)
        .item_style(ItemStyle::new().color(css(curve.colour)).opacity(0.75))
        .line_style(LineStyle::new().width(1.5).opacity(0.75))
        .data(vec![vec![at, low], vec![at, high]])
}

/// The name at the end of a line; of one that ends above the plot, at the edge with its value.
fn end(curve: &Curve, (x, y): (f64, f64), nearest_y: f64, shift: f64) -> Scatter {
    let text = match y > nearest_y {
        true => format!("{} {} ↑", curve.name, short(y)),
        false => curve.name.clone(),
    };
    named(curve, (x, nearest_y), &text, shift)
}

/// The value of a point above the plot, at the edge.
fn above_the_plot(curve: &Curve, (x, y): (f64, f64), nearest_y: f64) -> Scatter {
    named(curve, (x, nearest_y), &format!("{} ↑", short(y)), NAME_PX / 2.0)
}

fn named(curve: &Curve, (x, y): (f64, f64), text: &str, shift: f64) -> Scatter {
    let name = Label::new()
        .show(true)
        .position(LabelPosition::Right)
        .offset((0.0, shift))
        .formatter("{b}")
        .color(css(curve.colour));
    Scatter::new()
        .name(&curve.name)
        .symbol_size(0.0)
        .item_style(ItemStyle::new().opacity(1.0))
        .label(name)
        .data(vec![(vec![x, y], text)])
}

/// A value that is far above others, as text.
fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format::count(value.round() as u64) }
}

/// The name of live traffic beyond the axes, at the edge where it is nearest, with an arrow that leads there.
fn beside(points: &[(f64, f64, String)], scales: Scales, shift: f64, palette: &Palette) -> Scatter {
    let (x, y, name) = &points[0];
    let highest = points.iter().fold(*y, |highest, point| highest.max(point.1));
    let (at_x, at_y) = (scales.x.nearest(*x), scales.y.nearest(*y));
    let arrow = match (x.partial_cmp(&at_x), highest > scales.y.to) {
        (Some(Ordering::Greater), false) => "→",
        (Some(Ordering::Greater), true) => "↗",
        (Some(Ordering::Less), false) => "←",
        (Some(Ordering::Less), true) => "↖",
        _ => "↑",
    };
    let text = match at_x == *x {
        true => format!("{name} {arrow}"),
        false if *x < at_x => format!("{arrow} {name} at {x:.0}"),
        false => format!("{name} at {x:.0} {arrow}"),
    };
    // It reads away from the edge.
    let is_right = at_x > (scales.x.from + scales.x.to) / 2.0;
    let place = if is_right { LabelPosition::Left } else { LabelPosition::Right };
    let label = live_name(palette).position(place).offset((0.0, shift));
    Scatter::new()
        .name("Live")
        .symbol_size(0.0)
        .item_style(ItemStyle::new().opacity(1.0))
        .label(label)
        .data(vec![(vec![at_x, at_y], text.as_str())])
}

/// A point, or the ends of a range with a line between them. Their names hide the lines that run behind them.
fn live(points: &[(f64, f64, String)], shift: f64, palette: &Palette) -> Line {
    let (symbol, size, place, shift) = match points.len() {
        0 | 1 => (Symbol::Diamond, 14.0, LabelPosition::Right, shift),
        _ => (Symbol::Circle, 7.0, LabelPosition::Bottom, 0.0),
    };
    Line::new()
        .name("Live")
        .symbol(symbol)
        .symbol_size(size)
        .z(10)
        .item_style(ItemStyle::new().color(css(palette.text)))
        .line_style(LineStyle::new().width(3.0))
        .label(live_name(palette).position(place).offset((0.0, shift)))
        .data(points.iter().map(|(x, y, name)| (vec![*x, *y], name.as_str())).collect())
}

fn live_name(palette: &Palette) -> Label {
    Label::new()
        .show(true)
        .formatter("{b}")
        .color(css(palette.text))
        .background_color(css(palette.ground))
        .padding((1.0, 3.0, 1.0, 3.0))
        .font_weight("bold")
}

fn marks(picture: &Picture, palette: &Palette) -> MarkLine {
    let mark = |(place, (at, status_text)): (usize, &(f64, String))| {
        // Neighbours stand on different heights, so that they can be read.
        let distance = 4.0 + (place % MARK_ROWS) as f64 * NAME_PX;
        let label = Label::new().formatter(status_text.as_str()).distance(distance);
        MarkLineVariant::Simple(MarkLineData::new().x_axis(*at).label(label))
    };
    MarkLine::new()
        .silent(true)
        .symbol(vec![Symbol::None, Symbol::None])
        .line_style(LineStyle::new().color(css(palette.quiet)).type_(LineStyleType::Dotted))
        .data(picture.marks.iter().enumerate().map(mark).collect())
}

#[cfg(test)]
mod tests {
    use radixscope_icicle::testing::palette;

    use super::{Curve, MIN_PLOT_PX, NAME_PX, Picture, Scale, option, without_outliers};

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            colour: Default::default(),
            dashed: false,
            squares: false,
            points: points.to_vec(),
            spreads: Vec::new(),
        }
    }

    fn drawn(live: (f64, f64)) -> serde_json::Value {
        let picture = Picture {
            curves: vec![curve("KV-aware", &[(60.0, 100.0), (180.0, 400.0)])],
            live: vec![vec![(live.0, live.1, "Live p95".to_owned())]],
            ..Picture::default()
        };
        serde_json::to_value(option(&picture, &palette())).expect("plain data")
    }

    #[test]
    fn the_axes_are_those_of_the_baselines_wherever_live_is() {
        for live in [(100.0, 200.0), (1_800.0, 200.0), (100.0, 9_000.0), (1.0, 1.0)] {
            let chart = drawn(live);
            let [x, y] =
                ["xAxis", "yAxis"].map(|axis| (chart[axis][0]["min"].clone(), chart[axis][0]["max"].clone()));
            assert_eq!(x, (50.0.into(), 200.0.into()), "{live:?}");
            assert_eq!(y, (0.0.into(), 500.0.into()), "{live:?}");
        }
    }

    #[test]
    fn live_beyond_the_axes_is_named_at_the_edge_with_an_arrow() {
        for (live, place, text) in [
            ((100.0, 200.0), [100.0, 200.0], "Live p95"),
            ((800.0, 200.0), [200.0, 200.0], "Live p95 at 800 →"),
            ((800.0, 900.0), [200.0, 500.0], "Live p95 at 800 ↗"),
            ((100.0, 900.0), [100.0, 500.0], "Live p95 ↑"),
            ((4.0, 200.0), [50.0, 200.0], "← Live p95 at 4"),
        ] {
            let chart = drawn(live);
            let of =
                chart["series"].as_array().expect("series").iter().find(|series| series["name"] == "Live");
            let point = &of.expect("live")["data"][0];
            assert_eq!(point["value"], serde_json::json!(place), "{live:?}");
            assert_eq!(point["name"], text);
        }
    }

    #[test]
    fn a_level_far_above_all_others_ends_above_the_plot_and_is_named_there() {
        let levels = |values: [f64; 8]| -> Vec<(f64, f64)> {
            (0_u32..).zip(values).map(|(at, value)| (60.0 + 20.0 * f64::from(at), value)).collect()
        };
        let curves = vec![
            curve("KV-aware p95", &levels([450.0, 510.0, 550.0, 520.0, 650.0, 710.0, 720.0, 3_150.0])),
            curve("Round-robin p95", &levels([660.0, 640.0, 660.0, 640.0, 650.0, 720.0, 3_000.0, 700.0])),
            curve("KV-aware p50", &levels([255.0, 270.0, 340.0, 390.0, 400.0, 420.0, 480.0, 300.0])),
        ];
        let picture = Picture { curves, ..Picture::default() };
        let chart = serde_json::to_value(option(&picture, &palette())).expect("plain data");
        assert_eq!(chart["yAxis"][0]["max"], 800.0);
        let series = chart["series"].as_array().expect("series").iter();
        let names: Vec<_> = series
            .filter(|series| series["type"] == "scatter")
            .map(|series| (series["data"][0]["value"].clone(), series["data"][0]["name"].clone()))
            .collect();
        let expected = [
            (200.0, 800.0, "KV-aware p95 3,150 ↑"),
            (200.0, 700.0, "Round-robin p95"),
            (180.0, 800.0, "3,000 ↑"),
            (200.0, 300.0, "KV-aware p50"),
        ];
        assert_eq!(names, expected.map(|(x, y, text)| (serde_json::json!([x, y]), text.into())));
        assert_eq!(without_outliers(vec![1.0, 9.0]), [1.0, 9.0], "of a few, none is one");
    }

    #[test]
    fn names_beside_each_other_stand_apart_and_within_the_plot() {
        let scale = Scale::over([0.0, 400.0].into_iter()).expect("a scale");
        for values in [&[400.0, 398.0, 396.0, 10.0][..], &[0.0, 0.0, 0.0, 0.0], &[200.0], &[]] {
            let shifts = scale.apart(values);
            let place =
                |at: usize| (scale.to - values[at]) / (scale.to - scale.from) * MIN_PLOT_PX + shifts[at];
            let mut places: Vec<f64> = (0..values.len()).map(place).collect();
            places.sort_by(f64::total_cmp);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= NAME_PX - 1e-9), "{places:?}");
            assert!(places.iter().all(|place| (0.0..=MIN_PLOT_PX).contains(place)), "{places:?}");
        }
        assert_eq!(scale.apart(&[400.0, 100.0]), [0.0, 0.0], "far apart, none moves");
    }

    #[test]
    fn a_scale_is_of_round_numbers_and_none_of_nothing() {
        let of = |values: &[f64]| Scale::over(values.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0.0, 0.0]), Some(Scale { from: 0.0, to: 0.2, step: 0.2 }));
        assert_eq!(of(&[60.0, 180.0]), Some(Scale { from: 50.0, to: 200.0, step: 50.0 }));
    }
}
