//! The tree as a table: its lines are the API's elements, the keyboard alone reaches all of them, and who hears the
//! page exposes level, position and state.

use radixscope_tests::browser::with_page;
use radixscope_tests::panels::tree_grid::{CAPTURE, lines, open};
use radixscope_tests::replay;
use serde_json::{Value, json};

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
