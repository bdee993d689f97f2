//! The chart of rates: stored upward, removed downward, one band per worker. This file and `curves` alone know ECharts, which
//! is fetched from the page's own server when a chart is first shown.
//!
//! The option is built as a plain object: typed wrappers of ECharts cost a fifth of the page's size and have no words
//! for the tooltip's text, linked pointers or updates of the data alone.

use std::cell::RefCell;

use js_sys::{Array, Object, Promise, Reflect};
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{Element, HtmlScriptElement};

use super::palette::{Palette, Rgb, css};

/// Below whatever path the page is served at; the version is in the name, so that it may be cached for ever.
const SCRIPT: &str = "vendor/echarts-5.6.0.min.js";
/// More bands than this are drawn without lines, which would hide them.
const MAX_LINES: usize = 8;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = echarts)]
    pub(super) type Echarts;
    #[wasm_bindgen(js_namespace = echarts, js_name = init, catch)]
    pub(super) fn init(element: &Element) -> Result<Echarts, JsValue>;
    #[wasm_bindgen(method, js_name = setOption)]
    pub(super) fn set_option(this: &Echarts, option: &JsValue, how: &JsValue);
    #[wasm_bindgen(method)]
    pub(super) fn resize(this: &Echarts);
    #[wasm_bindgen(method)]
    pub(super) fn dispose(this: &Echarts);
}

/// One worker's band.
pub struct Band {
    /// Short label.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// Blocks stored in each second, oldest first.
    pub stored: Vec<f64>,
    /// Blocks removed in each second.
    pub removed: Vec<f64>,
}

/// What an update of the data alone must not change.
#[derive(PartialEq)]
struct Shape {
    bands: Vec<(String, Rgb)>,
    palette: Palette,
    font_px: f64,
}

/// A chart in an element.
pub struct RatesChart {
    echarts: Echarts,
    shown: RefCell<Option<Shape>>,
}

impl RatesChart {
    /// Fetches ECharts if it is not there yet and puts a chart into `element`.
    pub async fn new(element: &Element) -> Result<Self, JsValue> {
        load().await?;
        Ok(Self { echarts: init(element)?, shown: RefCell::default() })
    }

    /// Shows `bands`.
    pub fn show(&self, bands: &[Band], palette: &Palette, font_px: f64) {
        let names = bands.iter().map(|b| (b.name.clone(), b.colour)).collect();
        let shape = Shape { bands: names, palette: palette.clone(), font_px };
        let same = self.shown.borrow().as_ref() == Some(&shape);
        let series = object(&[("series", series(bands, !same))]);
        if !same {
            let whole = object(&[("notMerge", JsValue::TRUE)]);
            self.echarts.set_option(&frame(bands, palette, font_px), &whole);
            self.shown.replace(Some(shape));
        }
        self.echarts.set_option(&series, &object(&[("lazyUpdate", JsValue::TRUE)]));
    }

    /// Fits the element's new size.
    pub fn resize(&self) {
        self.echarts.resize();
    }
}

impl Drop for RatesChart {
    fn drop(&mut self) {
        self.echarts.dispose();
    }
}

/// Everything but the series.
fn frame(bands: &[Band], palette: &Palette, font_px: f64) -> JsValue {
    let seconds = bands.first().map_or(0, |b| b.stored.len());
    let grid = |top: &str, height: &str| {
        object(&[("left", n(46.0)), ("right", n(10.0)), ("top", s(top)), ("height", s(height))])
    };
    let tooltip = object(&[
        ("trigger", s("axis")),
        // Where not all have room, the largest are seen.
        ("order", s("valueDesc")),
        ("confine", JsValue::TRUE),
        ("transitionDuration", n(0.0)),
        ("backgroundColor", s(&css(palette.ground))),
        ("borderColor", s(&css(palette.line))),
        ("textStyle", object(&[("color", s(&css(palette.text))), ("fontSize", n(font_px))])),
    ]);
    object(&[
        ("animation", JsValue::FALSE),
        ("grid", list([grid("8", "44%"), grid("56%", "33%")])),
        ("xAxis", list([0, 1].map(|i| time_axis(i, seconds, palette, font_px)))),
        ("yAxis", list([0, 1].map(|i| rate_axis(i, palette, font_px)))),
        // Both halves show the same second.
        ("axisPointer", object(&[("link", list([object(&[("xAxisIndex", s("all"))])]))])),
        ("tooltip", tooltip),
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

fn before_now(seconds: usize) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes, 0) => format!("−{minutes} min"),
        (0, s) => format!("−{s} s"),
        (minutes, s) => format!("−{minutes} min {s} s"),
    }
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

pub(super) fn label(palette: &Palette, font_px: f64, more: &[(&str, JsValue)]) -> JsValue {
    let label = object(&[("color", s(&css(palette.quiet))), ("fontSize", n(font_px))]);
    more.iter().for_each(|(key, value)| set(&label, key, value));
    label
}

pub(super) fn line_style(palette: &Palette) -> JsValue {
    object(&[("lineStyle", object(&[("color", s(&css(palette.line)))]))])
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
            let data: Array = data.iter().copied().map(JsValue::from_f64).collect();
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

pub(super) fn s(text: &str) -> JsValue {
    JsValue::from_str(text)
}

pub(super) fn n(number: f64) -> JsValue {
    JsValue::from_f64(number)
}

pub(super) fn list<const N: usize>(items: [JsValue; N]) -> JsValue {
    items.into_iter().collect::<Array>().into()
}

pub(super) fn set(target: &JsValue, key: &str, value: &JsValue) {
    // Fails only for what is no object.
    let _ = Reflect::set(target, &s(key), value);
}

pub(super) fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new().into();
    entries.iter().for_each(|(key, value)| set(&object, key, value));
    object
}

pub(super) async fn load() -> Result<(), JsValue> {
    if Reflect::has(&js_sys::global(), &s("echarts")).unwrap_or(false) {
        return Ok(());
    }
    let document = document();
    let script: HtmlScriptElement = document.create_element("script")?.unchecked_into();
    let head = document.head().ok_or(JsValue::NULL)?;
    let promise = Promise::new(&mut |resolve, reject| {
        script.set_src(SCRIPT);
        script.set_onload(Some(&resolve));
        script.set_onerror(Some(&reject));
        let _ = head.append_child(&script);
    });
    let fetched = wasm_bindgen_futures::JsFuture::from(promise).await;
    if fetched.is_err() {
        // A script that failed does not load again.
        script.remove();
    }
    fetched.map(drop)
}
