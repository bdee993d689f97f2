//! Narrow strips over time one below the other, all on one scale. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisType, ItemStyle, Label, LineStyle, LineStyleType, MarkArea, MarkAreaData, MarkLine,
    MarkLineData, MarkLineVariant, Step, Symbol,
};
use charming::series::Line;

use super::option::ChartOption;
use super::palette::{Palette, Rgb, css};
use super::theme::{before_now, over_time, time_axis};

/// Height of a strip with what is free below it, CSS pixels: as the style sheet's row beside it.
const STRIP_PX: usize = 38;

/// One strip.
pub struct Strip {
    /// What it is, with its unit.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// A value each second, oldest first; `None`: not known, and a hole.
    pub values: Vec<Option<u32>>,
    /// Stretches that are marked: seconds from the left.
    pub spikes: Vec<(usize, usize)>,
    /// Where a dashed line is drawn.
    pub limit: Option<f64>,
}

/// The chart of `strips` up to `most`.
pub fn option(strips: &[Strip], most: f64, palette: &Palette) -> ChartOption {
    let mut chart = over_time();
    for (at, strip) in strips.iter().enumerate() {
        let grid = Grid::new()
            .left(0)
            .right(14)
            .top((at * STRIP_PX) as i32)
            .height(STRIP_PX as i32 - 3)
            .show(true)
            .border_width(0)
            .background_color(css(palette.raised));
        let seconds = strip.values.len();
        let time = time_axis(at, seconds, 1).show(at + 1 == strips.len());
        let range = Axis::new().type_(AxisType::Value).grid_index(at as i32).show(false).min(0).max(most);
        let data = strip.values.iter().map(|value| value.map(f64::from)).collect::<Vec<_>>();
        let mut line = Line::new()
            .name(&strip.name)
            .x_axis_index(at as i32)
            .y_axis_index(at as i32)
            .symbol(Symbol::None)
            .step(Step::End)
            .line_style(LineStyle::new().width(1.0))
            .area_style(AreaStyle::new().opacity(1.0))
            .item_style(ItemStyle::new().color(css(strip.colour)))
            .data(data);
        if !strip.spikes.is_empty() {
            let end =
                |second: usize| MarkAreaData::new().x_axis(before_now(seconds - second.min(seconds - 1)));
            let spikes = strip.spikes.iter().map(|&(from, until)| (end(from), end(until))).collect();
            let style = ItemStyle::new().color(css(palette.bad)).opacity(0.28);
            line = line.mark_area(MarkArea::new().silent(true).item_style(style).data(spikes));
        }
        if let Some(limit) = strip.limit {
            line = line.mark_line(dashed(limit, palette));
        }
        chart = chart.grid(grid).x_axis(time).y_axis(range).line(line);
    }
    chart
}

fn dashed(at: f64, palette: &Palette) -> MarkLine {
    MarkLine::new()
        .silent(true)
        .symbol(vec![Symbol::None, Symbol::None])
        .label(Label::new().show(false))
        .line_style(LineStyle::new().color(css(palette.text)).type_(LineStyleType::Dashed).opacity(0.7))
        .data(vec![MarkLineVariant::Simple(MarkLineData::new().y_axis(at))])
}

#[cfg(test)]
mod tests {
    use super::{Strip, option};
    use crate::draw::testing::palette;

    #[test]
    fn what_is_not_known_is_a_hole_and_a_spike_has_its_seconds() {
        let strip = Strip {
            name: "W1, in flight".to_owned(),
            colour: [0; 3],
            values: vec![None, Some(7), Some(0)],
            spikes: vec![(1, 2)],
            limit: Some(4.0),
        };
        let option = serde_json::to_value(option(&[strip], 8.0, &palette())).expect("an option");
        let line = &option["series"][0];
        assert_eq!(line["data"].to_string(), "[null,7.0,0.0]");
        assert_eq!(line["markArea"]["data"].to_string(), r#"[[{"xAxis":"−2 s"},{"xAxis":"−1 s"}]]"#);
        assert_eq!(line["markLine"]["data"][0]["yAxis"], 4.0);
        assert_eq!(
            [&option["yAxis"][0]["max"], &option["xAxis"][0]["data"][1]],
            [&serde_json::json!(8.0), &serde_json::json!("−2 s")]
        );
    }
}
