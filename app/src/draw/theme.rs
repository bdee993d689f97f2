//! What all charts have in common, as ECharts' theme, and their time axis. Pure.

use charming::component::Axis;
use charming::datatype::CompositeValue;
use charming::element::{AxisType, Trigger};
use radixscope_icicle::palette::{Palette, css};
use radixscope_model::id::Millis;

use super::option::ChartOption;
use crate::time_range::TimeSpan;

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
    "timeAxis": {
        "axisLabel": {"color": "$quiet", "fontSize": $px, "hideOverlap": true, "rich": {"primary": {"fontWeight": "normal"}}},
        "axisLine": {"lineStyle": {"color": "$line"}},
        "axisTick": {"show": false},
        "splitLine": {"show": false}
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

/// The theme in the page's colours. Where a tooltip has no room for all lines the largest are seen.
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

/// How far the area of a chart with a time axis is from the edges of its box, CSS pixels: what lies over it has its place by
/// them.
#[derive(Clone, Copy)]
pub struct Insets {
    /// From the left.
    pub left: i32,
    /// From the right.
    pub right: i32,
    /// From below: the room of the axis.
    pub bottom: i32,
}

/// The time axis of the chart's `grid`, in the browser's time zone.
pub(super) fn time_axis(grid: usize, span: TimeSpan) -> Axis {
    Axis::new()
        .id(format!("time-{grid}"))
        .grid_index(grid as i32)
        .type_(AxisType::Time)
        .min(span.from.0 as i64)
        .max(span.until.0 as i64)
}

/// Values with their times, as a line's data; `None`: a hole.
pub(super) fn over(
    times: &[Millis],
    values: impl IntoIterator<Item = Option<f64>>,
) -> Vec<Vec<CompositeValue>> {
    let point = |(at, value): (&Millis, Option<f64>)| vec![CompositeValue::from(at.0 as i64), value.into()];
    times.iter().zip(values).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::theme;
    use radixscope_icicle::testing::palette;

    #[test]
    fn the_theme_is_json_with_every_value_in_it() {
        let text = theme(&palette(), 11.05);
        let theme: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(!text.contains('$'), "{text}");
        assert_eq!(theme["line"]["markLine"]["label"]["fontSize"], 11.05);
        assert_eq!(theme["tooltip"]["borderColor"], theme["valueAxis"]["splitLine"]["lineStyle"]["color"]);
    }
}
