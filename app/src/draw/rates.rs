//! The chart of rates: stored upward, removed downward, one band per worker. Pure.

use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisLabel, AxisLine, AxisPointer, AxisPointerLink, AxisType, ItemStyle, LineStyle, Symbol,
};
use charming::series::Line;
use radixscope_icicle::palette::{Palette, css};

use super::option::ChartOption;
use super::theme::{Insets, over, over_time, time_axis};
use radixscope_export::panel::rates::{RatesChart, band_name};
use radixscope_panels::rates::drawn;

/// More bands than this are drawn without lines, which would hide them.
const MAX_LINES: usize = 8;
/// Where its area is.
pub const INSETS: Insets = Insets { left: 48, right: 18, bottom: 22 };

/// The chart of `rates`. Both halves reach to the same rate; in a low one only their ends are numbered.
pub fn option(rates: &RatesChart, is_low: bool, palette: &Palette) -> ChartOption {
    let rates = drawn(rates);
    let top = top_of_scale(rates.highest());
    let grid = || Grid::new().left(INSETS.left).right(INSETS.right);
    let is_written = |show: bool| AxisLabel::new().show(show);
    // The axis of the lower half is written below it, not at its zero, which is at its top.
    let below = AxisLine::new().on_zero(false);
    let chart = over_time()
        // Both halves show the same second.
        .axis_pointer(AxisPointer::new().link(vec![AxisPointerLink::new().x_axis_index("all")]))
        // They meet, so that their zeros are one and not written one over the other.
        .grid(grid().top(8).bottom("50%"))
        .grid(grid().top("50%").bottom(INSETS.bottom))
        .x_axis(time_axis(0, rates.span).axis_label(is_written(false)))
        .x_axis(time_axis(1, rates.span).axis_label(is_written(true)).axis_line(below))
        .y_axis(rate_axis(top, is_low))
        .y_axis(rate_axis(top, is_low).grid_index(1).inverse(true));
    let width = if rates.bands.len() > MAX_LINES { 0.0 } else { 1.0 };
    rates.bands.iter().fold(chart, |chart, band| {
        let name = band_name(band);
        let colour = band.worker.map_or(palette.shared, |worker| palette.worker(worker.slot()));
        let line = |half: i32, what: &str, data: &[Option<f64>]| {
            Line::new()
                .name(format!("{name} {what}"))
                .x_axis_index(half)
                .y_axis_index(half)
                .stack(what)
                .symbol(Symbol::None)
                .line_style(LineStyle::new().width(width))
                .area_style(AreaStyle::new().opacity(0.75))
                .item_style(ItemStyle::new().color(css(colour)))
                .data(over(&rates.times, data.iter().copied()))
        };
        chart.line(line(0, "stored", &band.stored)).line(line(1, "removed", &band.removed))
    })
}

/// Without a name: in a low panel the two would touch. What is up and what is down stands beside the legend.
fn rate_axis(top: f64, is_low: bool) -> Axis {
    // Blocks are whole: an axis up to one or three has no line at its half.
    let half = Some(top / 2.0).filter(|half| half.fract() == 0.0 && !is_low);
    Axis::new().type_(AxisType::Value).interval(half.unwrap_or(top)).min(0).max(top)
}

/// The least short number from `highest` on whose half is short too: the chart mostly writes both.
fn top_of_scale(highest: f64) -> f64 {
    let decade = 10_f64.powf(highest.max(1.0).log10().floor());
    let tops = [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|digit| digit * decade);
    tops.into_iter().find(|&top| top >= highest && top.fract() == 0.0).unwrap_or(highest)
}

#[cfg(test)]
mod tests {
    use radixscope_export::panel::rates::RatesChart;
    use radixscope_insight::block_rates::BlockRates;
    use radixscope_insight::time_range::TimeSpan;
    use radixscope_model::id::{Millis, WorkerIx};

    use super::{option, top_of_scale};
    use radixscope_icicle::testing::palette;

    #[test]
    fn a_second_that_is_not_known_is_a_gap_and_no_zero() {
        let band = BlockRates {
            worker: Some(WorkerIx(0)),
            stored: vec![Some(7.0), None, Some(0.0)],
            removed: vec![None; 3],
        };
        let rates = RatesChart {
            bands: vec![band],
            times: [1_000, 2_000, 3_000].map(Millis).to_vec(),
            step_ms: 1_000,
            span: TimeSpan { from: Millis(0), until: Millis(4_000) },
        };
        let option = serde_json::to_value(option(&rates, false, &palette())).expect("an option");
        let data = |at: usize| option["series"][at]["data"].to_string();
        assert_eq!(
            [data(0), data(1)],
            ["[[1000,7.0],[2000,null],[3000,0.0]]", "[[1000,null],[2000,null],[3000,null]]"]
        );
        assert_eq!(option["series"][1]["name"], "W1 removed");
        assert_eq!(option["yAxis"][1]["inverse"], true);
        assert_eq!([&option["yAxis"][0]["max"], &option["yAxis"][1]["max"]], [8.0, 8.0], "one scale");
    }

    #[test]
    fn a_scale_ends_at_a_short_number_above_what_is_drawn() {
        let tops = [0.0, 0.4, 1.0, 1.1, 3.0, 5.5, 6.5, 10.0, 999.0, 1_001.0].map(top_of_scale);
        assert_eq!(tops, [1.0, 1.0, 1.0, 2.0, 3.0, 6.0, 8.0, 10.0, 1_000.0, 1_200.0]);
    }
}
