//! JSON out of the page (options of charts, lists that are saved) and into it (answers of the API). Numbers are written by
//! the standard library, which the page carries anyway: `serde_json` would bring ten kilobytes of tables of its own. What
//! comes in is read by the browser.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// `value` as JSON. Plain data always encodes.
pub fn text(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let _ = value.serialize(&mut Serializer::with_formatter(&mut bytes, Numbers));
    String::from_utf8(bytes).unwrap_or_default()
}

/// A field of an object of JavaScript, or an item of an array; undefined where there is none.
#[cfg(target_arch = "wasm32")]
pub fn field(of: &wasm_bindgen::JsValue, name: &str) -> wasm_bindgen::JsValue {
    js_sys::Reflect::get(of, &name.into()).unwrap_or_default()
}

/// As compact as `serde_json` writes it.
struct Numbers;

impl Formatter for Numbers {
    fn write_f32<W: Write + ?Sized>(&mut self, into: &mut W, value: f32) -> io::Result<()> {
        write!(into, "{value:?}")
    }

    fn write_f64<W: Write + ?Sized>(&mut self, into: &mut W, value: f64) -> io::Result<()> {
        write!(into, "{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn it_reads_as_what_serde_json_writes() {
        let numbers =
            [0.0, -0.0, 1.0, 0.1, -2.5e-9, 1e15, 1e16, 1.5e300, 5e-324, f64::MAX, f64::NAN, f64::INFINITY];
        let value = (numbers, [0.1_f32, 3e38], "a \"b\"\n", Some(u64::MAX), None::<i8>);
        let (ours, theirs) = (text(&value), serde_json::to_string(&value).expect("plain data"));
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&ours), read(&theirs), "{ours}");
        assert!(ours.starts_with("[[0.0,-0.0,1.0,0.1,"), "{ours}");
    }
}
