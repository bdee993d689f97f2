//! A chart in an element. The only file that knows ECharts, which is fetched from the page's own server when a chart is
//! first shown.
//!
//! What a chart shows is an option of `charming`'s types. What all charts have in common, their text, lines and tooltip,
//! is ECharts' theme: `charming` has no types for one.

use std::cell::RefCell;

use js_sys::{JSON, Promise, Reflect};
use leptos::prelude::*;
use wasm_bindgen::prelude::*;
use web_sys::{Element, HtmlScriptElement};

use super::option::ChartOption;

/// Below whatever path the page is served at; the version is in the name, so that it may be cached for ever.
const SCRIPT: &str = "vendor/echarts-5.6.0.min.js";
/// An option takes the place of the one before, lines that are no longer there included; what the pointer shows stays, which
/// it does not when ECharts is set to merge nothing. Not in the next frame: until then ECharts fails where it is pointed at.
const HOW: &str = r#"{"replaceMerge": ["series", "grid", "xAxis", "yAxis"]}"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = echarts)]
    type Echarts;
    #[wasm_bindgen(js_namespace = echarts, js_name = init, catch)]
    fn init(element: &Element, theme: &JsValue) -> Result<Echarts, JsValue>;
    #[wasm_bindgen(method, js_name = dispatchAction)]
    fn dispatch_action(this: &Echarts, action: &JsValue);
    #[wasm_bindgen(method, js_name = setOption)]
    fn set_option(this: &Echarts, option: &JsValue, how: &JsValue);
    #[wasm_bindgen(method)]
    fn resize(this: &Echarts);
    #[wasm_bindgen(method)]
    fn dispose(this: &Echarts);
}

/// An element and what is drawn in it.
pub struct Drawing {
    element: Element,
    drawn: Option<EchartsInstance>,
}

struct EchartsInstance {
    echarts: Echarts,
    theme: String,
    option: String,
}

impl Drawing {
    /// Fetches ECharts if it is not there yet.
    pub async fn new(element: &Element) -> Result<Self, JsValue> {
        load().await?;
        Ok(Self { element: element.clone(), drawn: None })
    }

    /// Shows `option`, if it is not what is shown already. ECharts takes a theme only where a chart begins.
    pub fn show(&mut self, option: &ChartOption, theme: String) {
        if self.drawn.as_ref().is_none_or(|drawn| drawn.theme != theme) {
            self.drawn = None;
            self.drawn = JSON::parse(&theme)
                .and_then(|parsed| init(&self.element, &parsed))
                .ok()
                .map(|echarts| EchartsInstance { echarts, theme, option: String::new() });
        }
        let option = serde_json::to_string(option).unwrap_or_default();
        if let Some(drawn) = self.drawn.as_mut().filter(|drawn| drawn.option != option)
            && let (Ok(parsed), Ok(how)) = (JSON::parse(&option), JSON::parse(HOW))
        {
            drawn.echarts.set_option(&parsed, &how);
            drawn.option = option;
        }
    }

    /// Shows what it shows where the pointer is, as if it were at this place, CSS pixels; `None`: no longer. ECharts' own way
    /// to connect charts takes the same place in the data of each, and these have values at other times.
    pub fn point(&self, at: Option<(f64, f64)>) {
        let action = match at {
            Some((x, y)) => format!(r#"{{"type": "showTip", "x": {x}, "y": {y}}}"#),
            None => r#"{"type": "updateAxisPointer", "currTrigger": "leave"}"#.to_owned(),
        };
        if let (Some(drawn), Ok(action)) = (&self.drawn, JSON::parse(&action)) {
            drawn.echarts.dispatch_action(&action);
        }
    }

    /// Fits the element's new size.
    pub fn resize(&self) {
        self.drawn.iter().for_each(|drawn| drawn.echarts.resize());
    }
}

impl Drop for EchartsInstance {
    fn drop(&mut self) {
        self.echarts.dispose();
    }
}

thread_local! {
    /// The script on its way: all charts of a page wait for one, since a second would take the place of its instances.
    static LOADING: RefCell<Option<Promise>> = const { RefCell::new(None) };
}

async fn load() -> Result<(), JsValue> {
    if Reflect::has(&js_sys::global(), &"echarts".into()).unwrap_or(false) {
        return Ok(());
    }
    let promise = match LOADING.with_borrow(Option::clone) {
        Some(promise) => promise,
        None => {
            let promise = fetch()?;
            LOADING.set(Some(promise.clone()));
            promise
        }
    };
    let fetched = wasm_bindgen_futures::JsFuture::from(promise).await;
    LOADING.set(None);
    fetched.map(drop)
}

/// Asks for the script; a failed one does not load again, so that each call makes a new one.
fn fetch() -> Result<Promise, JsValue> {
    let document = document();
    let script: HtmlScriptElement = document.create_element("script")?.unchecked_into();
    let head = document.head().ok_or(JsValue::NULL)?;
    Ok(Promise::new(&mut |resolve, reject| {
        script.set_src(&crate::asset::address(SCRIPT));
        script.set_onload(Some(&resolve));
        script.set_onerror(Some(&reject));
        let _ = head.append_child(&script);
    }))
}
