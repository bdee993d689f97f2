//! The chart of rates: stored upward, removed downward, one band per worker. The only file that knows ECharts, which
//! is fetched from the page's own server when a chart is first shown.

use charming::Chart;
use charming::component::{Axis, Grid};
use charming::element::{
    AreaStyle, AxisLabel, AxisLine, AxisLineStyle, AxisPointer, AxisPointerType, AxisTick, AxisType, Color, ItemStyle,
    LineStyle, SplitLine, Symbol, Tooltip, Trigger,
};
use charming::series::Line;
use js_sys::{Object, Promise, Reflect};
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

/// One worker's band.
pub struct Band {
    /// Short label.
    pub name: String,
    /// Colour.
    pub colour: Rgb,
    /// Whether another worker has the same hue.
    pub dashed: bool,
    /// Blocks stored in each second, oldest first.
    pub stored: Vec<f64>,
    /// Blocks removed in each second.
    pub removed: Vec<f64>,
}

/// A chart in an element.
pub struct RatesChart(Echarts);

impl RatesChart {
    /// Fetches ECharts if it is not there yet and puts a chart into `element`.
    pub async fn new(element: &Element) -> Result<Self, JsValue> {
        load().await?;
        init(element).map(Self)
    }

    /// Shows `bands`; everything that was shown before goes.
    pub fn show(&self, bands: &[Band], palette: &Palette, font: f64) {
        let chart = chart(bands, palette, font);
        let Ok(option) = serde_wasm_bindgen::to_value(&chart) else { return };
        complete(&option, palette, font);
        let how = object(&[("notMerge", JsValue::TRUE), ("lazyUpdate", JsValue::TRUE)]);
        self.0.set_option(&option, &how);
    }

    /// Fits the element's new size.
    pub fn resize(&self) {
        self.0.resize();
    }
}

impl Drop for RatesChart {
    fn drop(&mut self) {
        self.0.dispose();
    }
}

fn chart(bands: &[Band], palette: &Palette, font: f64) -> Chart {
    let seconds = bands.first().map_or(0, |b| b.stored.len());
    let top = Grid::new().left(46).right(10).top(8).height("44%");
    let bottom = Grid::new().left(46).right(10).bottom(18).height("34%");
    let mut chart = Chart::new()
        .animation(false)
        .grid(top)
        .grid(bottom)
        .x_axis(time_axis(0, seconds, palette, font))
        .x_axis(time_axis(1, seconds, palette, font))
        .y_axis(rate_axis(0, palette, font))
        .y_axis(rate_axis(1, palette, font).inverse(true))
        .tooltip(
            Tooltip::new()
                .trigger(Trigger::Axis)
                .axis_pointer(AxisPointer::new().type_(AxisPointerType::Line)),
        );
    for band in bands {
        chart = chart.series(line(band, "stored", 0)).series(line(band, "removed", 1));
    }
    chart
}

/// Seconds before now, from left to right. Only whole minutes are written.
fn time_axis(grid: usize, seconds: usize, palette: &Palette, font: f64) -> Axis {
    let names: Vec<String> = (0..seconds).map(|i| before_now(seconds - i)).collect();
    Axis::new()
        .type_(AxisType::Category)
        .grid_index(grid as f64)
        .boundary_gap(false)
        .data(names)
        .axis_label(
            AxisLabel::new()
                .show(grid == 1)
                .interval(59.0)
                .color(Color::from(css(palette.quiet)))
                .font_size(font),
        )
        .axis_tick(AxisTick::new().show(false))
        .axis_line(AxisLine::new().line_style(AxisLineStyle::new().color((1.0, Color::from(css(palette.line))))))
}

fn before_now(seconds: usize) -> String {
    match (seconds / 60, seconds % 60) {
        (minutes, 0) => format!("−{minutes} min"),
        (0, s) => format!("−{s} s"),
        (minutes, s) => format!("−{minutes} min {s} s"),
    }
}

fn rate_axis(grid: usize, palette: &Palette, font: f64) -> Axis {
    Axis::new()
        .type_(AxisType::Value)
        .grid_index(grid as f64)
        .split_number(2.0)
        .min_interval(1.0)
        .axis_label(AxisLabel::new().color(Color::from(css(palette.quiet))).font_size(font))
        .split_line(SplitLine::new().line_style(LineStyle::new().color(Color::from(css(palette.line)))))
}

fn line(band: &Band, what: &str, grid: usize) -> Line {
    let colour = || Color::from(css(band.colour));
    let mut style = LineStyle::new().width(1.0).color(colour());
    if band.dashed {
        style = style.type_(charming::element::LineStyleType::Dashed);
    }
    let data = if grid == 0 { &band.stored } else { &band.removed };
    Line::new()
        .id(format!("{}-{what}", band.name))
        .name(format!("{} {what}", band.name))
        .x_axis_index(grid as f64)
        .y_axis_index(grid as f64)
        .stack(what)
        .symbol(Symbol::None)
        .line_style(style)
        .area_style(AreaStyle::new().color(colour()).opacity(0.55))
        .item_style(ItemStyle::new().color(colour()))
        .data(data.clone())
}

/// Sets what charming has no words for.
fn complete(option: &JsValue, palette: &Palette, font: f64) {
    let set = |target: &JsValue, key: &str, value: &JsValue| {
        let _ = Reflect::set(target, &JsValue::from_str(key), value);
    };
    let Ok(tooltip) = Reflect::get(option, &JsValue::from_str("tooltip")) else { return };
    let text =
        object(&[("color", JsValue::from_str(&css(palette.text))), ("fontSize", JsValue::from_f64(font))]);
    set(&tooltip, "textStyle", &text);
    set(&tooltip, "backgroundColor", &JsValue::from_str(&css(palette.ground)));
    set(&tooltip, "borderColor", &JsValue::from_str(&css(palette.line)));
    set(&tooltip, "confine", &JsValue::TRUE);
    set(&tooltip, "transitionDuration", &JsValue::from_f64(0.0));
    // Both halves show the same second.
    let link = object(&[("xAxisIndex", JsValue::from_str("all"))]);
    let pointer = object(&[("link", js_sys::Array::of1(&link).into())]);
    set(option, "axisPointer", &pointer);
    // Read aloud by the table of workers; the picture itself stays quiet.
    set(option, "aria", &object(&[("enabled", JsValue::FALSE)]));
}

fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (key, value) in entries {
        let _ = Reflect::set(&object, &JsValue::from_str(key), value);
    }
    object.into()
}

async fn load() -> Result<(), JsValue> {
    let there = || Reflect::has(&js_sys::global(), &JsValue::from_str("echarts")).unwrap_or(false);
    if there() {
        return Ok(());
    }
    let promise = Promise::new(&mut |resolve, reject| {
        let document = document();
        let script =
            document.create_element("script").ok().and_then(|e| e.dyn_into::<HtmlScriptElement>().ok());
        if let (Some(script), Some(head)) = (script, document.head()) {
            script.set_src(SCRIPT);
            script.set_onload(Some(&resolve));
            script.set_onerror(Some(&reject));
            let _ = head.append_child(&script);
        }
    });
    wasm_bindgen_futures::JsFuture::from(promise).await?;
    Ok(())
}
