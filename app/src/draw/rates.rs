//! The chart of rates: stored upward, removed downward, one band per worker.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::chart::{Chart, Shape, before_now, label, line_style, list, n, object, s, set, tooltip};
use super::palette::{Palette, Rgb, css};

/// More bands than this are drawn without lines, which would hide them.
const MAX_LINES: usize = 8;

/// One worker's band.
pub struct Band {
    /// Short label.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// Blocks stored in each second, oldest first; not a number: not known, and left blank.
    pub stored: Vec<f64>,
    /// Blocks removed in each second.
    pub removed: Vec<f64>,
}

/// Shows `bands` in `chart`.
pub fn show(chart: &Chart, bands: &[Band], palette: &Palette, font_px: f64) {
    let lines = bands.iter().map(|b| (b.name.clone(), b.colour)).collect();
    let shape = Shape { lines, palette: palette.clone(), font_px };
    chart.put(shape, |_| frame(bands, palette, font_px), |whole| series(bands, whole));
}

/// Everything but the series.
fn frame(bands: &[Band], palette: &Palette, font_px: f64) -> JsValue {
    let seconds = bands.first().map_or(0, |b| b.stored.len());
    let grid = |top: &str, height: &str| {
        object(&[("left", n(46.0)), ("right", n(10.0)), ("top", s(top)), ("height", s(height))])
    };
    object(&[
        ("animation", JsValue::FALSE),
        ("grid", list([grid("8", "44%"), grid("56%", "33%")])),
        ("xAxis", list([0, 1].map(|i| time_axis(i, seconds, palette, font_px)))),
        ("yAxis", list([0, 1].map(|i| rate_axis(i, palette, font_px)))),
        // Both halves show the same second.
        ("axisPointer", object(&[("link", list([object(&[("xAxisIndex", s("all"))])]))])),
        ("tooltip", tooltip(palette, font_px)),
    ])
}

/// Seconds before now, from left to right. Only whole minutes are written.
fn time_axis(grid: u32, seconds: usize, palette: &Palette, font_px: f64) -> JsValue {
    let names: Array = (0..seconds).map(|i| s(&before_now(seconds - i))).collect();
    object(&[
        ("type", s("category")),
        ("gridIndex", n(f64::from(grid))),
        ("boundaryGap", JsValue::FALSE),
        ("data", names.into()),
        ("axisLabel", label(palette, font_px, &[("show", (grid == 1).into()), ("interval", n(59.0))])),
        ("axisTick", object(&[("show", JsValue::FALSE)])),
        ("axisLine", line_style(palette)),
    ])
}

fn rate_axis(grid: u32, palette: &Palette, font_px: f64) -> JsValue {
    object(&[
        ("type", s("value")),
        ("gridIndex", n(f64::from(grid))),
        ("inverse", (grid == 1).into()),
        ("splitNumber", n(2.0)),
        ("minInterval", n(1.0)),
        ("axisLabel", label(palette, font_px, &[])),
        ("splitLine", line_style(palette)),
    ])
}

fn series(bands: &[Band], whole: bool) -> JsValue {
    let width = if bands.len() > MAX_LINES { 0.0 } else { 1.0 };
    let all: Array = bands
        .iter()
        .flat_map(|band| [(band, "stored", 0.0), (band, "removed", 1.0)])
        .map(|(band, what, grid)| {
            let data = if grid == 0.0 { &band.stored } else { &band.removed };
            let name = format!("{} {what}", band.name);
            // No typed array: ECharts reads such as pairs of x and y.
            let data: Array =
                data.iter().map(|&n| if n.is_nan() { JsValue::NULL } else { JsValue::from_f64(n) }).collect();
            let line = object(&[("id", s(&name)), ("data", data.into())]);
            if whole {
                let colour = object(&[("color", s(&css(band.colour)))]);
                let area = object(&[("color", s(&css(band.colour))), ("opacity", n(0.75))]);
                set(&line, "type", &s("line"));
                set(&line, "name", &s(&name));
                set(&line, "xAxisIndex", &n(grid));
                set(&line, "yAxisIndex", &n(grid));
                set(&line, "stack", &s(what));
                set(&line, "symbol", &s("none"));
                set(&line, "lineStyle", &object(&[("width", n(width))]));
                set(&line, "areaStyle", &area);
                set(&line, "itemStyle", &colour);
            }
            line
        })
        .collect();
    all.into()
}
