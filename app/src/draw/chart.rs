//! A chart in an element, and what the options of all charts share. The only file that knows ECharts, which is fetched
//! from the page's own server when a chart is first shown.
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

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = echarts)]
    type Echarts;
    #[wasm_bindgen(js_namespace = echarts, js_name = init, catch)]
    fn init(element: &Element) -> Result<Echarts, JsValue>;
    #[wasm_bindgen(method, js_name = setOption)]
    fn set_option(this: &Echarts, option: &JsValue, how: &JsValue);
    #[wasm_bindgen(method)]
    fn resize(this: &Echarts);
    #[wasm_bindgen(method)]
    fn dispose(this: &Echarts);
}

/// What an update of the data alone must not change.
#[derive(PartialEq)]
pub struct Shape {
    /// Names of the lines with their colours.
    pub lines: Vec<(String, Rgb)>,
    /// Colours of everything else.
    pub palette: Palette,
    /// Size of text, CSS pixels.
    pub font_px: f64,
}

/// A chart in an element.
pub struct Chart {
    echarts: Echarts,
    shown: RefCell<Option<Shape>>,
}

impl Chart {
    /// Fetches ECharts if it is not there yet and puts a chart into `element`.
    pub async fn new(element: &Element) -> Result<Self, JsValue> {
        load().await?;
        Ok(Self { echarts: init(element)?, shown: RefCell::default() })
    }

    /// Shows `series`, which is told whether to say everything of each line or its data alone; `frame` is the rest, of
    /// which only a chart of another shape is told.
    pub(super) fn put(
        &self,
        shape: Shape,
        frame: impl FnOnce(&Shape) -> JsValue,
        series: impl FnOnce(bool) -> JsValue,
    ) {
        let same = self.shown.borrow().as_ref() == Some(&shape);
        let series = object(&[("series", series(!same))]);
        if !same {
            self.echarts.set_option(&frame(&shape), &object(&[("notMerge", JsValue::TRUE)]));
            self.shown.replace(Some(shape));
        }
        self.echarts.set_option(&series, &object(&[("lazyUpdate", JsValue::TRUE)]));
    }

    /// Shows `option` instead of what was shown.
    pub(super) fn put_whole(&self, option: &JsValue) {
        self.shown.take();
        self.echarts.set_option(option, &object(&[("notMerge", JsValue::TRUE)]));
    }

    /// Fits the element's new size.
    pub fn resize(&self) {
        self.echarts.resize();
    }
}

impl Drop for Chart {
    fn drop(&mut self) {
        self.echarts.dispose();
    }
}

/// What is shown beside the pointer.
pub(super) fn tooltip(palette: &Palette, font_px: f64) -> JsValue {
    object(&[
        ("trigger", s("axis")),
        // Where not all have room, the largest are seen.
        ("order", s("valueDesc")),
        ("confine", JsValue::TRUE),
        ("transitionDuration", n(0.0)),
        ("backgroundColor", s(&css(palette.ground))),
        ("borderColor", s(&css(palette.line))),
        ("textStyle", object(&[("color", s(&css(palette.text))), ("fontSize", n(font_px))])),
    ])
}

/// How long ago, as a mark of the time axis.
pub(super) fn before_now(seconds: usize) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes, 0) => format!("−{minutes} min"),
        (0, s) => format!("−{s} s"),
        (minutes, s) => format!("−{minutes} min {s} s"),
    }
}

pub(super) fn label(palette: &Palette, font_px: f64, more: &[(&str, JsValue)]) -> JsValue {
    let label = object(&[("color", s(&css(palette.quiet))), ("fontSize", n(font_px))]);
    more.iter().for_each(|(key, value)| set(&label, key, value));
    label
}

pub(super) fn line_style(palette: &Palette) -> JsValue {
    object(&[("lineStyle", object(&[("color", s(&css(palette.line)))]))])
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

async fn load() -> Result<(), JsValue> {
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
