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
use radixscope_insight::block_rates::BlockRates;
use radixscope_insight::time_range::TimeSpan;
use radixscope_state::cluster::TimeSteps;

/// More bands than this are drawn without lines, which would hide them.
const MAX_LINES: usize = 8;
/// So that ECharts does not hold up the page for long or often, as it draws anew with each point: 50 lines of 300 points take it 165 ms,
/// of 60 points 46 ms, of 30 points six tenths of that.
const MAX_POINTS: usize = 2_500;
/// So many steps are drawn as one point, where single ones are too many.
const STEPS_PER_POINT: [usize; 4] = [1, 2, 5, 10];

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

/// How many steps one point stands for, where so many bands have so many steps each.
fn steps_per_point(bands: usize, steps: usize) -> usize {
    let fits = |per_point: &&usize| (2 * bands * steps).div_ceil(**per_point) <= MAX_POINTS;
    let [.., most] = STEPS_PER_POINT;
    STEPS_PER_POINT.iter().find(fits).copied().unwrap_or(most)
}

/// Length of a point in a chart of `span` with so many bands, milliseconds.
pub fn point_ms(bands: usize, span: TimeSpan) -> u64 {
    let steps = TimeSteps::between(span.from, span.until, span.until);
    let of_step = steps.len_s() * 1_000;
    of_step * steps_per_point(bands, steps.begins().count()) as u64
}

/// The same with no more points than are drawn: each the mean of its steps that are known.
fn drawn(rates: &RatesChart) -> RatesChart {
    let steps = steps_per_point(rates.bands.len(), rates.times.len());
    // Points begin at whole multiples of their length: their values stay the same while time goes on.
    let step_ms = rates.step_ms.max(1) * steps as u64;
    let is_first = |at: &usize| *at == 0 || rates.times[*at].0 / step_ms != rates.times[at - 1].0 / step_ms;
    let firsts: Vec<usize> = (0..rates.times.len()).filter(is_first).collect();
    let means = |values: &[Option<f64>]| {
        let mean = |(at, &first): (usize, &usize)| {
            let end = firsts.get(at + 1).copied().unwrap_or(values.len());
            let known = values.get(first..end).into_iter().flatten().flatten();
            let (sum, count) = known.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        firsts.iter().enumerate().map(mean).collect()
    };
    let band = |band: &BlockRates| BlockRates {
        worker: band.worker,
        stored: means(&band.stored),
        removed: means(&band.removed),
    };
    RatesChart {
        bands: rates.bands.iter().map(band).collect(),
        times: firsts.iter().map(|&at| rates.times[at]).collect(),
        step_ms,
        span: rates.span,
    }
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

    use super::{option, point_ms, top_of_scale};
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
    fn many_bands_are_drawn_with_fewer_points() {
        let times: Vec<Millis> = (0..300).map(|s| Millis((s + 1_003) * 1_000)).collect();
        let band = |worker| BlockRates {
            worker: Some(WorkerIx(worker)),
            stored: (0..300)
                .map(|s| {
                    Some(if s == 20 { 10_000.0 } else { f64::from(s) })
                        .filter(|_| s != 3 && !(7..12).contains(&s))
                })
                .collect(),
            removed: vec![None; 300],
        };
        let of = |bands: u32| {
            let span = TimeSpan { from: Millis(1_003_000), until: Millis(1_303_000) };
            let rates = RatesChart {
                bands: (0..bands).map(band).collect(),
                times: times.clone(),
                step_ms: 1_000,
                span,
            };
            let option = serde_json::to_value(option(&rates, false, &palette())).expect("an option");
            (option["series"].as_array().expect("series").clone(), option["yAxis"][0]["max"].clone())
        };
        let minutes = |minutes: u64| TimeSpan { from: Millis(0), until: Millis(minutes * 60_000) };
        assert_eq!(
            [(4, 5), (5, 5), (20, 5), (24, 5), (24, 1)].map(|(n, m)| point_ms(n, minutes(m))),
            [1_000, 2_000, 5_000, 10_000, 2_000]
        );
        assert_eq!(of(4).0[0]["data"].as_array().map(Vec::len), Some(300));
        let (many, top) = of(20);
        // The scale is of what is drawn: 20 times the mean of the five seconds with the peak, 2,015.
        assert_eq!(top, 50_000.0);
        assert_eq!(many.len(), 40);
        // Points begin at multiples of 5 s; the first has the two seconds before the first such one.
        let data = many[0]["data"].as_array().expect("points");
        assert_eq!(data.len(), 61);
        let first: Vec<String> = data[..4].iter().map(ToString::to_string).collect();
        assert_eq!(first, ["[1003000,0.5]", "[1005000,4.25]", "[1010000,null]", "[1015000,14.0]"]);
        assert_eq!(many[1]["data"][60].to_string(), "[1300000,null]");
    }

    #[test]
    fn a_scale_ends_at_a_short_number_above_what_is_drawn() {
        let tops = [0.0, 0.4, 1.0, 1.1, 3.0, 5.5, 6.5, 10.0, 999.0, 1_001.0].map(top_of_scale);
        assert_eq!(tops, [1.0, 1.0, 1.0, 2.0, 3.0, 6.0, 8.0, 10.0, 1_000.0, 1_200.0]);
    }
}
