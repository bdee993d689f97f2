//! How a page looks, asked of the browser that laid it out: what cannot be read, and what has too little contrast.

use serde_json::Value;

use crate::browser::Page;

/// What is cut, covered or overlapping now: what and where, and by how much.
pub async fn layout_faults(page: &Page) -> Vec<(String, String)> {
    let faults = page.eval(include_str!("layout.js").trim_end()).await;
    serde_json::from_value(faults).expect("pairs of texts")
}

/// Waits until nothing has moved for some frames: the size was changed, charts and tables follow.
pub async fn settled(page: &Page) {
    let moved = page.eval(include_str!("settled.js").trim_end()).await;
    assert_eq!(moved, Value::Null, "the layout never comes to rest: {moved}");
}
