//! What all charts have in common, as ECharts' theme, and their time axis. Pure.

use charming::component::Axis;
use charming::element::{AxisLabel, AxisType, Trigger};
use serde_json::json;

use super::option::ChartOption;
use super::palette::{Palette, css};

/// The theme: JSON, as `charming` knows none but ECharts' own. What `charming`'s tooltip cannot say is here too.
pub fn theme(palette: &Palette, font_px: f64) -> String {
    let label = json!({"color": css(palette.quiet), "fontSize": font_px});
    // The first mark of time stands within the chart.
    let marks = json!({"color": css(palette.quiet), "fontSize": font_px, "alignMinLabel": "left"});
    let line = json!({"lineStyle": {"color": css(palette.line)}});
    json!({
        "animation": false,
        "tooltip": {
            // Where not all have room, the largest are seen.
            "order": "valueDesc",
            "confine": true,
            "transitionDuration": 0,
            "backgroundColor": css(palette.ground),
            "borderColor": css(palette.line),
            "textStyle": {"color": css(palette.text), "fontSize": font_px},
        },
        "categoryAxis": {"axisLabel": marks, "axisLine": line, "axisTick": {"show": false}},
        "valueAxis": {"axisLabel": label, "nameTextStyle": label, "axisLine": line, "splitLine": line},
        "scatter": {"label": {"fontSize": font_px}},
        "line": {"label": {"fontSize": font_px}, "markLine": {"label": label}},
    })
    .to_string()
}

/// A chart whose tooltip shows all lines at the pointer's time.
pub(super) fn over_time() -> ChartOption {
    ChartOption::new(Trigger::Axis)
}

/// Time before now in `points` steps, from left to right, of the chart's `grid`. Only whole minutes are written.
pub(super) fn time_axis(grid: usize, points: usize, step_s: usize) -> Axis {
    let names: Vec<String> = (0..points).map(|at| before_now((points - at) * step_s)).collect();
    let per_minute = 60 / step_s.max(1);
    Axis::new()
        .id(format!("time-{grid}"))
        .grid_index(grid as i32)
        .type_(AxisType::Category)
        .boundary_gap(false)
        .axis_label(AxisLabel::new().interval(per_minute as f64 - 1.0))
        .data(names)
}

/// How long ago, as a mark of the time axis.
pub(super) fn before_now(seconds: usize) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes, 0) => format!("−{minutes} min"),
        (0, s) => format!("−{s} s"),
        (minutes, s) => format!("−{minutes} min {s} s"),
    }
}
