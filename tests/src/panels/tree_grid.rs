//! The tree as a table, and the same rows from the API.

use std::collections::BTreeMap;

use crate::browser::Page;
use crate::radixscope::Radixscope;
use crate::wait;
use serde_json::Value;

/// The recorded traffic of these tests.
pub const CAPTURE: &str = "0.9.1-healthy";

/// A row of the API's tree and the rows right below it.
pub struct Element {
    /// The row.
    pub row: Value,
    /// Hashes of the rows right below it, in order.
    pub children: Vec<String>,
}

/// Rows of the API's tree by the hash of their first block: those at the top, and all.
pub fn elements(rows: &[Value]) -> (Vec<Value>, BTreeMap<String, Element>) {
    let mut all: BTreeMap<String, Element> = BTreeMap::new();
    let mut path: Vec<String> = Vec::new();
    for row in rows {
        let hash = row["block_hash"].as_str().unwrap().to_owned();
        path.truncate(row["level"].as_u64().unwrap() as usize);
        if let Some(parent) = path.last().and_then(|parent| all.get_mut(parent)) {
            parent.children.push(hash.clone());
        }
        path.push(hash.clone());
        all.insert(hash, Element { row: row.clone(), children: Vec::new() });
    }
    (rows.iter().filter(|row| row["level"] == 0).cloned().collect(), all)
}

/// Opens the table; gives the rows of the API at the top, and all by their hash.
pub async fn open(page: &Page, server: &Radixscope) -> (Vec<Value>, BTreeMap<String, Element>) {
    let tree = server.json("/api/v1/tree?limit=100000&depth=100").await;
    let (top, all) = elements(tree["rows"].as_array().unwrap());
    page.open(&server.url("/?view=tree&tree.table=1")).await;
    page.until("there are lines", async |page| {
        let lines = lines(page).await;
        wait::expect(!lines.is_empty(), || format!("{lines:?}"))
    })
    .await;
    (top, all)
}

/// Hashes of the lines in the document, from above.
pub async fn lines(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=tree-line][data-hash]')].map(r => r.dataset.hash)";
    serde_json::from_value(page.eval(all).await).unwrap()
}
