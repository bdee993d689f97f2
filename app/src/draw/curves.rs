//! Curves over concurrency: lines between measured levels, points of live traffic, marks where lines cross.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::chart::{Chart, label, line_style, list, n, object, s};
use super::palette::{Palette, Rgb, css};

/// A line between measured levels.
#[derive(Clone, PartialEq)]
pub struct Curve {
    /// Name at its end.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// Whether it is dashed.
    pub dashed: bool,
    /// ECharts' name of the points' shape.
    pub symbol: &'static str,
    /// Concurrency and value, by rising concurrency.
    pub points: Vec<(f64, f64)>,
}

/// What is drawn.
#[derive(Clone, PartialEq, Default)]
pub struct Picture {
    /// Lines.
    pub curves: Vec<Curve>,
    /// Live figures, each with its point, or with both ends where it is a range: concurrency, value, name.
    pub live: Vec<Vec<(f64, f64, String)>>,
    /// Concurrencies at which lines cross, with what happens there.
    pub marks: Vec<(f64, String)>,
    /// Name and unit of the values.
    pub values: String,
}

/// Shows `picture` in `chart`.
pub fn show(chart: &Chart, picture: &Picture, palette: &Palette, font_px: f64) {
    chart.put_whole(&option(picture, palette, font_px));
}

fn option(picture: &Picture, palette: &Palette, font_px: f64) -> JsValue {
    let axis = |name: &str, gap: f64, more: &[(&str, JsValue)]| {
        let axis = object(&[
            ("type", s("value")),
            ("name", s(name)),
            ("nameLocation", s("middle")),
            ("nameGap", n(gap)),
            ("nameTextStyle", label(palette, font_px, &[])),
            ("axisLabel", label(palette, font_px, &[])),
            ("splitLine", line_style(palette)),
            ("axisLine", line_style(palette)),
        ]);
        more.iter().for_each(|(key, value)| super::chart::set(&axis, key, value));
        axis
    };
    let text = object(&[("color", s(&css(palette.text))), ("fontSize", n(font_px))]);
    let tooltip = object(&[
        ("trigger", s("item")),
        ("confine", JsValue::TRUE),
        ("transitionDuration", n(0.0)),
        ("backgroundColor", s(&css(palette.ground))),
        ("borderColor", s(&css(palette.line))),
        ("textStyle", text),
    ]);
    let grid = object(&[("left", n(64.0)), ("right", n(130.0)), ("top", n(56.0)), ("bottom", n(44.0))]);
    object(&[
        ("animation", JsValue::FALSE),
        ("grid", grid),
        ("tooltip", tooltip),
        ("xAxis", axis("Concurrency, requests in flight", 26.0, &[("scale", JsValue::TRUE)])),
        ("yAxis", axis(&picture.values, 46.0, &[])),
        ("series", series(picture, palette, font_px)),
    ])
}

fn series(picture: &Picture, palette: &Palette, font_px: f64) -> JsValue {
    let all = Array::new();
    for (at, curve) in picture.curves.iter().enumerate() {
        let colour = s(&css(curve.colour));
        let end = object(&[
            ("show", JsValue::TRUE),
            ("formatter", s(&curve.name)),
            ("color", colour.clone()),
            ("fontSize", n(font_px)),
        ]);
        let style = object(&[
            ("color", colour.clone()),
            ("type", s(if curve.dashed { "dashed" } else { "solid" })),
            ("width", n(2.0)),
        ]);
        let points: Array = curve.points.iter().map(|&(x, y)| list([n(x), n(y)])).collect();
        let line = object(&[
            ("type", s("line")),
            ("name", s(&curve.name)),
            ("data", points.into()),
            ("symbol", s(curve.symbol)),
            ("symbolSize", n(6.0)),
            ("itemStyle", object(&[("color", colour)])),
            ("lineStyle", style),
            ("endLabel", end),
            // Labels at the ends would lie on each other where lines end close together.
            ("labelLayout", object(&[("moveOverlap", s("shiftY"))])),
        ]);
        if at == 0 {
            super::chart::set(&line, "markLine", &marks(picture, palette, font_px));
        }
        all.push(&line);
    }
    picture.live.iter().for_each(|points| {
        all.push(&live(points, palette, font_px));
    });
    all.into()
}

/// A point, or the ends of a range with a line between them.
fn live(points: &[(f64, f64, String)], palette: &Palette, font_px: f64) -> JsValue {
    let data: Array = points
        .iter()
        .map(|(x, y, name)| {
            let tag = object(&[
                ("show", (!name.is_empty()).into()),
                ("formatter", s(name)),
                ("position", s(if points.len() > 1 { "bottom" } else { "top" })),
                ("color", s(&css(palette.text))),
                ("fontWeight", s("bold")),
                ("fontSize", n(font_px)),
            ]);
            object(&[("value", list([n(*x), n(*y)])), ("name", s(name)), ("label", tag)])
        })
        .collect();
    let colour = s(&css(palette.text));
    object(&[
        ("type", s("line")),
        ("name", s("Live")),
        ("data", data.into()),
        ("symbol", s(if points.len() > 1 { "circle" } else { "diamond" })),
        ("symbolSize", n(if points.len() > 1 { 7.0 } else { 14.0 })),
        ("z", n(10.0)),
        ("itemStyle", object(&[("color", colour.clone())])),
        ("lineStyle", object(&[("color", colour), ("width", n(3.0))])),
    ])
}

fn marks(picture: &Picture, palette: &Palette, font_px: f64) -> JsValue {
    let data: Array = picture
        .marks
        .iter()
        .enumerate()
        .map(|(place, (at, said))| {
            // Neighbours stand on different heights, so that they can be read.
            let distance = n(4.0 + (place % 3) as f64 * font_px * 1.2);
            let tag = label(
                palette,
                font_px,
                &[("formatter", s(said)), ("position", s("end")), ("distance", distance)],
            );
            object(&[("xAxis", n(*at)), ("label", tag)])
        })
        .collect();
    object(&[
        ("silent", JsValue::TRUE),
        ("symbol", s("none")),
        ("lineStyle", object(&[("color", s(&css(palette.quiet))), ("type", s("dotted"))])),
        ("data", data.into()),
    ])
}
