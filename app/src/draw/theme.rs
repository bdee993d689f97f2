//! What all charts have in common, as ECharts' theme, and their time axis. Pure.

use charming::component::Axis;
use charming::element::{AxisLabel, AxisType, Trigger};

use super::option::ChartOption;
use super::palette::{Palette, css};

/// The theme: JSON, as `charming` knows none but ECharts' own. What `charming`'s tooltip cannot say is here too.
const THEME: &str = r#"{
    "animation": false,
    "tooltip": {
        "order": "valueDesc",
        "confine": true,
        "transitionDuration": 0,
        "backgroundColor": "$ground",
        "borderColor": "$line",
        "textStyle": {"color": "$text", "fontSize": $px}
    },
    "categoryAxis": {
        "axisLabel": {"color": "$quiet", "fontSize": $px, "alignMinLabel": "left"},
        "axisLine": {"lineStyle": {"color": "$line"}},
        "axisTick": {"show": false}
    },
    "valueAxis": {
        "axisLabel": {"color": "$quiet", "fontSize": $px},
        "nameTextStyle": {"color": "$quiet", "fontSize": $px},
        "axisLine": {"lineStyle": {"color": "$line"}},
        "splitLine": {"lineStyle": {"color": "$line"}}
    },
    "scatter": {"label": {"fontSize": $px}},
    "line": {"label": {"fontSize": $px}, "markLine": {"label": {"color": "$quiet", "fontSize": $px}}}
}"#;

/// The theme in the page's colours. Where a tooltip has no room for all lines the largest are seen; the first mark of time
/// stands within the chart.
pub fn theme(palette: &Palette, font_px: f64) -> String {
    let values = [
        ("$ground", css(palette.ground)),
        ("$line", css(palette.line)),
        ("$text", css(palette.text)),
        ("$quiet", css(palette.quiet)),
        ("$px", font_px.to_string()),
    ];
    values.iter().fold(THEME.to_owned(), |theme, (name, value)| theme.replace(name, value))
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

#[cfg(test)]
mod tests {
    use super::theme;
    use crate::draw::testing::palette;

    #[test]
    fn the_theme_is_json_with_every_value_in_it() {
        let text = theme(&palette(), 11.05);
        let theme: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(!text.contains('$'), "{text}");
        assert_eq!(theme["line"]["markLine"]["label"]["fontSize"], 11.05);
        assert_eq!(theme["tooltip"]["borderColor"], theme["valueAxis"]["splitLine"]["lineStyle"]["color"]);
    }
}
