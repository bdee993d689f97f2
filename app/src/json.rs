//! Fields of JSON that the browser has read.

/// A field of an object of JavaScript, or an item of an array; undefined where there is none.
pub fn field(of: &wasm_bindgen::JsValue, name: &str) -> wasm_bindgen::JsValue {
    js_sys::Reflect::get(of, &name.into()).unwrap_or_default()
}
