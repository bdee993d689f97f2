//! A chart of one line over time, with its target; a band where a value is known by its bucket only.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::chart::{Chart, Shape, before_now, label, line_style, list, n, object, s, set, tooltip};
use super::palette::{Palette, Rgb, css};

/// A line and what it is held against.
pub struct Line<'l> {
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

/// Shows `line` in `chart`.
pub fn show(chart: &Chart, line: &Line<'_>, palette: &Palette, font_px: f64) {
    let lines = vec![
        ("at least, ms".to_owned(), line.colour),
        ("bucket, ms wide".to_owned(), line.colour),
        (line.name.to_owned(), line.colour),
        ("target".to_owned(), line.target_colour),
    ];
    let shape = Shape { lines, palette: palette.clone(), font_px };
    chart.put(shape, |_| frame(line, palette, font_px), |whole| series(line, whole));
}

fn frame(line: &Line<'_>, palette: &Palette, font_px: f64) -> JsValue {
    let points = line.values.len();
    let names: Array = (0..points).map(|at| s(&before_now((points - at) * line.step_s))).collect();
    let per_minute = 60 / line.step_s.max(1);
    let x_axis = object(&[
        ("type", s("category")),
        ("boundaryGap", JsValue::FALSE),
        ("data", names.into()),
        ("axisLabel", label(palette, font_px, &[("interval", n(per_minute as f64 - 1.0))])),
        ("axisTick", object(&[("show", JsValue::FALSE)])),
        ("axisLine", line_style(palette)),
    ]);
    let y_axis = object(&[
        ("type", s("value")),
        ("min", n(0.0)),
        ("splitNumber", n(3.0)),
        ("axisLabel", label(palette, font_px, &[])),
        ("splitLine", line_style(palette)),
    ]);
    let grid =
        [("left", 52.0), ("right", 24.0), ("top", 10.0), ("bottom", 24.0)].map(|(side, px)| (side, n(px)));
    object(&[
        ("animation", JsValue::FALSE),
        ("grid", object(&grid)),
        ("xAxis", x_axis),
        ("yAxis", y_axis),
        ("tooltip", tooltip(palette, font_px)),
    ])
}

fn series(line: &Line<'_>, whole: bool) -> JsValue {
    let tenths = |v: f64| n((v * 10.0).round() / 10.0);
    let of = |value: fn((f64, f64)) -> f64| -> Array {
        line.values.iter().map(|known| known.map_or(JsValue::NULL, |known| tenths(value(known)))).collect()
    };
    let (low, band) = (of(|(low, _)| low), of(|(low, high)| high - low));
    let exact: Array = line
        .values
        .iter()
        .map(|known| known.filter(|(low, high)| low == high).map_or(JsValue::NULL, |(low, _)| tenths(low)))
        .collect();
    let target: Array = line.values.iter().map(|_| n(line.target)).collect();
    let one = |name: &str, data: Array, colour: Rgb, width: f64, kind: &str| {
        let one = object(&[("id", s(name)), ("data", data.into())]);
        if whole {
            set(&one, "type", &s("line"));
            set(&one, "name", &s(name));
            set(&one, "symbol", &s("none"));
            set(&one, "lineStyle", &object(&[("width", n(width)), ("type", s(kind))]));
            set(&one, "itemStyle", &object(&[("color", s(&css(colour)))]));
        }
        one
    };
    let lower = one("at least, ms", low, line.colour, 0.0, "solid");
    let upper = one("bucket, ms wide", band, line.colour, 0.0, "solid");
    if whole {
        for series in [&lower, &upper] {
            set(series, "stack", &s("bucket"));
            set(series, "step", &s("end"));
        }
        set(&upper, "areaStyle", &object(&[("color", s(&css(line.colour))), ("opacity", n(0.3))]));
    }
    list([
        lower,
        upper,
        one(line.name, exact, line.colour, 2.0, "solid"),
        one("target", target, line.target_colour, 1.0, "dashed"),
    ])
}
