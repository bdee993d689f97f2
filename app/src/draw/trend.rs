//! A chart of lines over time, with their target; a band where a value is known by its bucket only. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisType, ItemStyle, LineStyle, LineStyleType, NameLocation, Step, Symbol,
};
use charming::series::Line;
use radixscope_icicle::palette::{Rgb, css};
use radixscope_model::id::Millis;

use super::option::ChartOption;
use super::theme::{Insets, over, over_time, time_axis};
use crate::time_range::TimeSpan;
use radixscope_export::panel::latency::TrendSeries;

/// A line.
pub struct TrendLine<'l> {
    /// What it is, with its unit.
    pub name: &'l str,
    /// Its colour.
    pub colour: Rgb,
    /// How it is drawn.
    pub style: LineStyleType,
    /// The values, milliseconds.
    pub series: &'l TrendSeries,
}

/// Lines and what they are held against.
pub struct Trend<'l> {
    /// What is shown, the most important first: it lies above the others.
    pub lines: Vec<TrendLine<'l>>,
    /// The same at all times; `None`: it is not drawn.
    pub target: Option<f64>,
    /// Colour of the target.
    pub target_colour: Rgb,
}

/// Where its area is.
pub const INSETS: Insets = Insets { left: 64, right: 24, bottom: 24 };

/// The chart of `trend`, in milliseconds.
pub fn option(trend: &Trend<'_>, span: TimeSpan) -> ChartOption {
    let chart = over_time()
        .grid(Grid::new().left(INSETS.left).right(INSETS.right).top(10).bottom(INSETS.bottom))
        .x_axis(time_axis(0, span))
        .y_axis(
            Axis::new()
                .type_(AxisType::Value)
                .name("ms")
                .name_location(NameLocation::Middle)
                .name_gap(46)
                .min(0)
                .split_number(3),
        );
    let chart = trend.target.into_iter().fold(chart, |chart, target| {
        let dashed = LineStyle::new().width(1.0).type_(LineStyleType::Dashed);
        let (times, all) = ([span.from, span.until], vec![Some(target); 2]);
        chart.line(line("target", trend.target_colour, 1.0, &times, all).line_style(dashed))
    });
    trend.lines.iter().rev().fold(chart, |chart, drawn| {
        let TrendLine { name, colour, style, series } = drawn;
        let low = series.values.iter().map(|known| known.map(|(low, _)| low)).collect();
        let width = series.values.iter().map(|known| known.map(|(low, high)| high - low)).collect();
        let stack = format!("bucket of {name}");
        let band = |of: &str, data| {
            line(&format!("{name}: {of}"), *colour, 0.0, &series.times, data)
                .stack(stack.as_str())
                .step(Step::End)
        };
        chart
            // The band is drawn upon a line that is not seen.
            .line(band("at least, ms", low))
            .line(band("bucket, ms wide", width).area_style(AreaStyle::new().opacity(0.3)))
            .line(
                line(name, *colour, 2.0, &series.times, series.line().collect())
                    .line_style(LineStyle::new().width(2.0).type_(*style)),
            )
    })
}

fn line(name: &str, colour: Rgb, width: f64, times: &[Millis], data: Vec<Option<f64>>) -> Line {
    let tenths = data.into_iter().map(|value| value.map(|ms| (ms * 10.0).round() / 10.0));
    Line::new()
        .name(name)
        .symbol(Symbol::None)
        .line_style(LineStyle::new().width(width))
        .item_style(ItemStyle::new().color(css(colour)))
        .data(over(times, tenths))
}

#[cfg(test)]
mod tests {
    use radixscope_export::panel::latency::TrendSeries;
    use radixscope_model::id::Millis;

    use super::{LineStyleType, Trend, TrendLine, option};
    use crate::time_range::TimeSpan;

    #[test]
    fn a_bucket_is_a_band_and_what_is_not_known_a_gap() {
        let series = TrendSeries {
            times: [1_000, 6_000, 11_000].map(Millis).to_vec(),
            values: vec![Some((10.0, 25.0)), None, Some((30.04, 30.04))],
            last: None,
            step_ms: 5_000,
        };
        let line =
            TrendLine { name: "TTFT p95, ms", colour: [0; 3], style: LineStyleType::Solid, series: &series };
        let trend = Trend { lines: vec![line], target: Some(600.0), target_colour: [0; 3] };
        let span = TimeSpan { from: Millis(1_000), until: Millis(11_000) };
        let option = serde_json::to_value(option(&trend, span)).expect("an option");
        let data = [0, 1, 2, 3].map(|at| option["series"][at]["data"].to_string());
        assert_eq!(data[0], "[[1000,600.0],[11000,600.0]]");
        assert_eq!(data[1], "[[1000,10.0],[6000,null],[11000,30.0]]");
        assert_eq!(data[2], "[[1000,15.0],[6000,null],[11000,0.0]]");
        assert_eq!(data[3], "[[1000,null],[6000,null],[11000,30.0]]");
        assert_eq!(option["xAxis"][0]["max"], 11_000);
    }
}
