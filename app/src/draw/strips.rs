//! Narrow strips over time one below the other, all on one scale. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisLabel, AxisLine, AxisPointer, AxisPointerLink, AxisType, ItemStyle, Label, LineStyle,
    LineStyleType, MarkArea, MarkAreaData, MarkLine, MarkLineData, MarkLineVariant, Step, Symbol,
};
use charming::series::Line;
use radixscope_icicle::palette::{Palette, css};

use super::option::ChartOption;
use super::theme::{Insets, over, over_time, time_axis};
use radixscope_export::finding_ticket;
use radixscope_export::panel::in_flight::StripsChart;
use radixscope_model::id::Millis;

/// Height of a strip with what is free below it, CSS pixels: as the style sheet's row beside it.
const STRIP_PX: usize = 38;

/// More strips than this show the values at the pointer one by one: the tooltip would be higher than the chart.
const MAX_LINKED: usize = 9;

/// Where its area is.
pub const INSETS: Insets = Insets { left: 20, right: 14, bottom: 22 };

/// The chart of `shown`.
pub fn option(shown: &StripsChart, palette: &Palette) -> ChartOption {
    let strips = &shown.strips;
    let mut chart = over_time();
    if strips.len() <= MAX_LINKED {
        // All strips show the same time.
        let all = AxisPointerLink::new().x_axis_index("all");
        chart = chart.axis_pointer(AxisPointer::new().link(vec![all]));
    }
    for (at, strip) in strips.iter().enumerate() {
        let grid = Grid::new()
            .left(INSETS.left)
            .right(INSETS.right)
            .top((at * STRIP_PX) as i32)
            .height(STRIP_PX as i32 - 3)
            .show(true)
            .border_width(0)
            .background_color(css(palette.raised));
        let is_last = at + 1 == strips.len();
        let time = time_axis(at, shown.span)
            .split_number(3)
            .axis_label(AxisLabel::new().show(is_last))
            .axis_line(AxisLine::new().show(is_last));
        let range =
            Axis::new().type_(AxisType::Value).grid_index(at as i32).show(false).min(0).max(shown.highest);
        let colour = strip.worker.map_or(palette.shared, |worker| palette.worker(worker.slot()));
        let data = over(&shown.times, strip.values.iter().map(|value| value.map(f64::from)));
        let mut line = Line::new()
            .name(format!("{}, requests", strip.name()))
            .x_axis_index(at as i32)
            .y_axis_index(at as i32)
            .symbol(Symbol::None)
            .step(Step::End)
            .line_style(LineStyle::new().width(1.0))
            .area_style(AreaStyle::new().opacity(1.0))
            .item_style(ItemStyle::new().color(css(colour)))
            .data(data);
        if !strip.spikes.is_empty() {
            let end = |at: Millis| MarkAreaData::new().x_axis(utc(at));
            let spikes = strip.spikes.iter().map(|&(from, until)| (end(from), end(until))).collect();
            let style = ItemStyle::new().color(css(palette.bad)).opacity(0.28);
            line = line.mark_area(MarkArea::new().silent(true).item_style(style).data(spikes));
        }
        if let Some(limit) = shown.limit.filter(|_| strip.worker.is_some()) {
            line = line.mark_line(dashed(limit, palette));
        }
        chart = chart.grid(grid).x_axis(time).y_axis(range).line(line);
    }
    chart
}

/// A time as `charming` has it for marks: text that ECharts reads, where all else is Unix milliseconds.
fn utc(at: Millis) -> String {
    finding_ticket::utc(at).replace(" UTC", "Z")
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
    use radixscope_export::panel::in_flight::{Strip, StripsChart};
    use radixscope_model::id::{Millis, WorkerIx};

    use super::option;
    use crate::time_range::TimeSpan;
    use radixscope_icicle::testing::palette;

    #[test]
    fn what_is_not_known_is_a_hole_and_a_spike_has_its_seconds() {
        let strip = Strip {
            worker: Some(WorkerIx(0)),
            values: vec![None, Some(7), Some(0)],
            spikes: vec![(Millis(1_000), Millis(2_000))],
        };
        let chart = StripsChart {
            strips: vec![strip],
            times: [0, 1_000, 2_000].map(Millis).to_vec(),
            step_ms: 1_000,
            span: TimeSpan { from: Millis(0), until: Millis(3_000) },
            limit: Some(4.0),
            highest: 8.0,
        };
        let option = option(&chart, &palette());
        let option = serde_json::to_value(option).expect("an option");
        let line = &option["series"][0];
        assert_eq!(line["data"].to_string(), "[[0,null],[1000,7.0],[2000,0.0]]");
        let spike = r#"[[{"xAxis":"1970-01-01 00:00:01Z"},{"xAxis":"1970-01-01 00:00:02Z"}]]"#;
        assert_eq!(line["markArea"]["data"].to_string(), spike);
        assert_eq!(line["markLine"]["data"][0]["yAxis"], 4.0);
        assert_eq!(
            [&option["yAxis"][0]["max"], &option["xAxis"][0]["max"]],
            [&serde_json::json!(8.0), &serde_json::json!(3_000)]
        );
    }
}
