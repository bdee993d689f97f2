//! Text as numbers. The browser reads decimal fractions: the standard library's tables for that are ten kilobytes. Never
//! for ids and hashes, which are whole and do not fit a JavaScript number.

use wasm_bindgen::JsValue;

/// The decimal number that `text` is; `None` if it is none, or one that is too large.
pub fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_decimal = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    // JavaScript takes nothing for 0, and reads hexadecimal.
    if text.is_empty() || !text.bytes().all(is_decimal) {
        return None;
    }
    Some(JsValue::from_str(text).unchecked_into_f64()).filter(|number| number.is_finite())
}
