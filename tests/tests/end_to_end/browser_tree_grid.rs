//! The tree as a table: its lines are the API's elements, the keyboard alone reaches all of them, and who hears the
//! page exposes level, position and state.

use std::collections::BTreeMap;

use radixscope_tests::browser::{Page, with_page};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{replay, wait};
use serde_json::{Value, json};

const CAPTURE: &str = "0.9.1-healthy";

/// A row of the API's tree and the rows right below it.
struct Element {
    row: Value,
    children: Vec<String>,
}

/// Rows of the API's tree by the hash of their first block: those at the top, and all.
fn elements(rows: &[Value]) -> (Vec<Value>, BTreeMap<String, Element>) {
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

async fn open(page: &Page, server: &Radixscope) -> (Vec<Value>, BTreeMap<String, Element>) {
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
async fn lines(page: &Page) -> Vec<String> {
    let all = "[...document.querySelectorAll('[data-testid=tree-line][data-hash]')].map(r => r.dataset.hash)";
    serde_json::from_value(page.eval(all).await).unwrap()
}

/// Hash of the line that the keyboard is on.
async fn cursor(page: &Page) -> Option<String> {
    let of = "document.getElementById(document.getElementById('tree-grid').getAttribute('aria-activedescendant') ?? '')?.dataset.hash ?? null";
    serde_json::from_value(page.eval(of).await).unwrap()
}

async fn press_until(page: &Page, key: &str, what: &str, done: impl AsyncFn(&Page) -> Result<(), String>) {
    page.press(key).await;
    page.until(what, done).await;
}

#[tokio::test]
async fn its_lines_are_the_elements_of_the_api() {
    let (_nats, server, _) = replay::replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let (top, all) = open(page, &server).await;
        let mut wanted: Vec<&Value> = top.iter().collect();
        wanted.sort_by_key(|e| std::cmp::Reverse(e["subtree_blocks"].as_u64()));
        let shown = lines(page).await;
        let sizes = |hashes: &[String]| -> Vec<u64> {
            hashes.iter().map(|hash| all[hash].row["subtree_blocks"].as_u64().unwrap()).collect()
        };
        let by_size: Vec<u64> = wanted.iter().map(|e| e["subtree_blocks"].as_u64().unwrap()).collect();
        assert_eq!(sizes(&shown), by_size[..shown.len()], "largest first");
        let blocks = page.texts("[data-testid=tree-line][data-hash] .g-blocks").await;
        for (hash, text) in shown.iter().zip(&blocks) {
            assert_eq!(text.replace(',', ""), all[hash].row["subtree_blocks"].to_string());
        }
        let owners = page.texts("[data-testid=tree-line][data-hash] .g-owners").await;
        for (hash, text) in shown.iter().zip(&owners) {
            let held = all[hash].row["workers"].as_array().unwrap().len();
            assert_eq!(
                text.split_whitespace().filter(|word| word.starts_with('W')).count(),
                held.min(3),
                "{text}"
            );
        }
        let rows = page.attribute("[data-testid=tree-grid]", "aria-rowcount").await.unwrap();
        assert_eq!(rows, (top.len() + 1).to_string());
    })
    .await;
}

#[tokio::test]
async fn the_keyboard_alone_reaches_a_block_and_shows_it_in_the_picture() {
    let (_nats, server, _) = replay::replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let (_, all) = open(page, &server).await;
        page.eval("document.getElementById('tree-grid').focus()").await;
        let branching = lines(page)
            .await
            .iter()
            .position(|hash| !all[hash].children.is_empty())
            .expect("some prompt goes on in several ways");
        for _ in 0..=branching {
            page.press("ArrowDown").await;
        }
        let parent = lines(page).await[branching].clone();
        page.until("the cursor is there", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&parent), || format!("{at:?}"))
        })
        .await;
        let children = &all[&parent].children;
        press_until(page, "ArrowRight", "it is open", async |page| {
            let next = lines(page).await.get(branching + 1).cloned();
            let is_child = next.as_ref().is_some_and(|next| children.contains(next));
            wait::expect(is_child, || format!("{next:?}"))
        })
        .await;
        let first_child = lines(page).await[branching + 1].clone();
        press_until(page, "ArrowRight", "the first child has the cursor", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&first_child), || format!("{at:?}"))
        })
        .await;
        let level = format!("[data-hash='{first_child}']");
        assert_eq!(page.attribute(&level, "aria-level").await.as_deref(), Some("2"));
        assert_eq!(page.attribute(&level, "aria-setsize").await, Some(children.len().to_string()));
        press_until(page, "ArrowLeft", "the parent has the cursor again", async |page| {
            let at = cursor(page).await;
            wait::expect(at.as_deref() == Some(&parent), || format!("{at:?}"))
        })
        .await;
        press_until(page, "ArrowLeft", "it is closed", async |page| {
            let shown = lines(page).await;
            wait::expect(!shown.contains(&first_child), || format!("{shown:?}"))
        })
        .await;
        page.press("Enter").await;
        page.until_true(
            "the picture is back",
            "document.querySelector('[data-testid=tree] canvas') !== null",
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_screen_reader_announces_what_a_line_is() {
    let (_nats, server, _) = replay::replayed(CAPTURE, &[]).await;
    with_page(async |page| {
        let (top, all) = open(page, &server).await;
        let tree = page.devtools("Accessibility.getFullAXTree", json!({})).await;
        let nodes = tree["nodes"].as_array().unwrap();
        let with_role = |role: &str| -> Vec<&Value> {
            nodes.iter().filter(|node| node["role"]["value"] == role && node["ignored"] != true).collect()
        };
        let grids = with_role("treegrid");
        assert_eq!(grids.len(), 1, "one treegrid");
        assert!(grids[0]["name"]["value"].as_str().unwrap().contains("Prefix tree"));
        assert_eq!(with_role("columnheader").len(), 7);
        let rows = with_role("row");
        assert!(rows.len() > 1, "a head and lines");
        let property = |row: &Value, name: &str| {
            let properties = row["properties"].as_array().cloned().unwrap_or_default();
            properties.into_iter().find(|p| p["name"] == name).map(|p| p["value"]["value"].clone())
        };
        let levels = rows.iter().filter(|row| property(row, "level") == Some(json!(1))).count();
        let shown = lines(page).await;
        assert_eq!(levels, shown.len(), "every line tells its level");
        let expandable = rows.iter().filter(|row| property(row, "expanded").is_some()).count();
        let wanted = shown.iter().filter(|hash| !all[*hash].children.is_empty()).count();
        assert_eq!(expandable, wanted, "only lines with something below them can be opened");
        assert!(top.len() >= shown.len());
    })
    .await;
}
