//! Curves over concurrency: lines between measured levels, points of live traffic, marks where lines cross. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AxisType, ItemStyle, Label, LabelPosition, LineStyle, LineStyleType, MarkLine, MarkLineData,
    MarkLineVariant, NameLocation, Symbol, Trigger,
};
use charming::series::{Line, Scatter};
use radixscope_icicle::palette::{Palette, Rgb, css};

use super::option::ChartOption;

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

/// The chart of `picture`.
pub fn option(picture: &Picture, palette: &Palette) -> ChartOption {
    let axis = |name: &str, gap: i32| {
        Axis::new().type_(AxisType::Value).name(name).name_location(NameLocation::Middle).name_gap(gap)
    };
    let mut chart = ChartOption::new(Trigger::Item)
        .grid(Grid::new().left(64).right(130).top(66).bottom(44))
        .x_axis(axis("Concurrency, requests in flight", 26).scale(true))
        .y_axis(axis(&picture.values, 46));
    for (at, curve) in picture.curves.iter().enumerate() {
        let mut line = line(curve);
        if at == 0 {
            line = line.mark_line(marks(picture, palette));
        }
        chart = chart.line(line).scatter(end(curve));
        chart = curve.spreads.iter().fold(chart, |chart, spread| chart.line(whisker(curve, *spread)));
    }
    picture.live.iter().fold(chart, |chart, points| chart.line(live(points, palette)))
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

/// The name at the end of a line.
fn end(curve: &Curve) -> Scatter {
    // A dashed line is a solid one's p95, and may end close to it: their names stand above and below.
    let aside = if curve.dashed { -6.0 } else { 6.0 };
    let name = Label::new()
        .show(true)
        .position(LabelPosition::Right)
        .offset((0.0, aside))
        .formatter("{a}")
        .color(css(curve.colour));
    Scatter::new()
        .name(&curve.name)
        .symbol_size(0.0)
        .item_style(ItemStyle::new().opacity(1.0))
        .label(name)
        .data(curve.points.last().iter().map(|&&(x, y)| vec![x, y]).collect::<Vec<_>>())
}

/// A point, or the ends of a range with a line between them.
fn live(points: &[(f64, f64, String)], palette: &Palette) -> Line {
    let (symbol, size, place) = match points.len() {
        0 | 1 => (Symbol::Diamond, 14.0, LabelPosition::Top),
        _ => (Symbol::Circle, 7.0, LabelPosition::Bottom),
    };
    let name =
        Label::new().show(true).position(place).formatter("{b}").color(css(palette.text)).font_weight("bold");
    Line::new()
        .name("Live")
        .symbol(symbol)
        .symbol_size(size)
        .z(10)
        .item_style(ItemStyle::new().color(css(palette.text)))
        .line_style(LineStyle::new().width(3.0))
        .label(name)
        .data(points.iter().map(|(x, y, name)| (vec![*x, *y], name.as_str())).collect())
}

fn marks(picture: &Picture, palette: &Palette) -> MarkLine {
    let mark = |(place, (at, status_text)): (usize, &(f64, String))| {
        // Neighbours stand on different heights, so that they can be read.
        let distance = 4.0 + (place % 4) as f64 * 14.0;
        let label = Label::new().formatter(status_text.as_str()).distance(distance);
        MarkLineVariant::Simple(MarkLineData::new().x_axis(*at).label(label))
    };
    MarkLine::new()
        .silent(true)
        .symbol(vec![Symbol::None, Symbol::None])
        .line_style(LineStyle::new().color(css(palette.quiet)).type_(LineStyleType::Dotted))
        .data(picture.marks.iter().enumerate().map(mark).collect())
}
