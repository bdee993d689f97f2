//! A chart of one line over time, with its target; a band where a value is known by its bucket only. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisType, ItemStyle, LineStyle, LineStyleType, NameLocation, Step, Symbol,
};
use charming::series::Line;

use super::option::ChartOption;
use super::palette::{Rgb, css};
use super::theme::{over_time, time_axis};

/// A line and what it is held against.
pub struct Trend<'l> {
    /// What it is, with its unit.
    pub name: &'l str,
    /// Colour of the line.
    pub colour: Rgb,
    /// Least and most each `step_s` seconds, oldest first, the same where the value is known; `None`: nothing is.
    pub values: &'l [Option<(f64, f64)>],
    /// Seconds between two values.
    pub step_s: usize,
    /// The same at all times.
    pub target: f64,
    /// Colour of the target.
    pub target_colour: Rgb,
}

/// The chart of `trend`, in milliseconds.
pub fn option(trend: &Trend<'_>) -> ChartOption {
    let of = |value: fn((f64, f64)) -> Option<f64>| -> Vec<Option<f64>> {
        trend.values.iter().map(|known| known.and_then(value).map(|v| (v * 10.0).round() / 10.0)).collect()
    };
    let line = |name: &str, colour: Rgb, width: f64, data: Vec<Option<f64>>| {
        Line::new()
            .name(name)
            .symbol(Symbol::None)
            .line_style(LineStyle::new().width(width))
            .item_style(ItemStyle::new().color(css(colour)))
            .data(data)
    };
    let target = vec![Some(trend.target); trend.values.len()];
    over_time()
        .grid(Grid::new().left(64).right(24).top(10).bottom(24))
        .x_axis(time_axis(0, trend.values.len(), trend.step_s))
        .y_axis(
            Axis::new()
                .type_(AxisType::Value)
                .name("ms")
                .name_location(NameLocation::Middle)
                .name_gap(46)
                .min(0)
                .split_number(3),
        )
        // The band is drawn upon a line that is not seen.
        .line(
            line("at least, ms", trend.colour, 0.0, of(|(low, _)| Some(low))).stack("bucket").step(Step::End),
        )
        .line(
            line("bucket, ms wide", trend.colour, 0.0, of(|(low, high)| Some(high - low)))
                .stack("bucket")
                .step(Step::End)
                .area_style(AreaStyle::new().opacity(0.3)),
        )
        .line(line(trend.name, trend.colour, 2.0, of(|(low, high)| (low == high).then_some(low))))
        .line(
            line("target", trend.target_colour, 1.0, target)
                .line_style(LineStyle::new().width(1.0).type_(LineStyleType::Dashed)),
        )
}

#[cfg(test)]
mod tests {
    use super::{Trend, option};

    #[test]
    fn a_bucket_is_a_band_and_what_is_not_known_a_gap() {
        let trend = Trend {
            name: "TTFT p95, ms",
            colour: [0; 3],
            values: &[Some((10.0, 25.0)), None, Some((30.04, 30.04))],
            step_s: 5,
            target: 600.0,
            target_colour: [0; 3],
        };
        let option = serde_json::to_value(option(&trend)).expect("an option");
        let data = [0, 1, 2, 3].map(|at| option["series"][at]["data"].to_string());
        assert_eq!(data, ["[10.0,null,30.0]", "[15.0,null,0.0]", "[null,null,30.0]", "[600.0,600.0,600.0]"]);
    }
}
