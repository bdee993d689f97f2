//! The dashboards: every query asks for something that is there, and nothing is in them that Grafana's schema does not know.

use std::fs;
use std::process::Command;

use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, wait};
use serde_json::Value;

/// Reads a dashboard into the classes that Grafana makes from its schema, and prints what did not come out again: fields
/// that the schema does not know or has elsewhere, and values of another shape.
const READ: &str = "
import json, sys
from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard
plugins.register_default_plugins()
def lost(a, b, at):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in a:
            lost(a[key], b[key], at + '.' + key) if key in b else print(at + '.' + key)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            lost(x, y, at + '[' + str(i) + ']')
    elif a != b:
        print(at, 'is', a, 'and became', b)
given = json.load(sys.stdin)
read = dashboard.Dashboard.from_json(given)
lost(given, json.loads(encoder.JSONEncoder().encode(read)), '$')
";

/// All dashboards.
const DASHBOARDS: [&str; 3] = ["radixscope.json", "radixscope-infinity.json", "radixscope-fleet.json"];
/// Fields of annotations that the Prometheus data source reads and the schema of dashboards leaves to it.
const OF_PROMETHEUS: [&str; 3] = ["titleFormat", "textFormat", "step"];

pub(super) fn dashboard(name: &str) -> Value {
    let path = paths::checkout().join("deploy/grafana").join(name);
    serde_json::from_str(&fs::read_to_string(&path).expect("it is in the checkout")).expect("JSON")
}

/// What is not of the schema.
fn unknown(dashboard: &Value) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a writable folder");
    let file = folder.path().join("dashboard.json");
    fs::write(&file, dashboard.to_string()).expect("a writable folder");
    let output = Command::new("python3")
        .args(["-c", READ])
        .env("PYTHONPATH", paths::grafana_schema())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(fs::File::open(&file).expect("written above"))
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_of_prometheus = |line: &&str| {
        line.starts_with("$.annotations.")
            && OF_PROMETHEUS.iter().any(|field| line.ends_with(&format!(".{field}")))
    };
    reported.lines().filter(|line| !is_of_prometheus(line)).map(str::to_owned).collect()
}

#[test]
fn the_dashboards_hold_nothing_that_grafanas_schema_does_not_know() {
    for name in DASHBOARDS {
        assert_eq!(unknown(&dashboard(name)), Vec::<String>::new(), "{name}");
    }
    let mut wrong = dashboard("radixscope.json");
    wrong["panels"][1]["fieldConfig"]["defaults"]["units"] = "s".into();
    assert_eq!(
        unknown(&wrong),
        ["$.panels[1].fieldConfig.defaults.units"],
        "a field that is misspelt is seen"
    );
}

/// Addresses in frames and images, as Grafana asks for them.
fn addresses(page: &str) -> Vec<String> {
    let dashboard = dashboard("radixscope.json");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let texts = panels
        .filter(|panel| panel["type"] == "text")
        .map(|panel| panel["options"]["content"].as_str().expect("a text").to_owned());
    let variables = [
        ("${radixscope}", page),
        ("${theme}", "dark"),
        ("${pool:text}", "All"),
        ("${__from}", "1800000000000"),
        ("${__to}", "1800000300000"),
    ];
    let address = |text: String| {
        let (_, from) = text.split_once("src=\"").expect("a frame or an image");
        let address = from.split_once('"').expect("the end of the address").0.to_owned();
        variables.iter().fold(address, |address, (name, value)| address.replace(name, value))
    };
    let addresses: Vec<String> = texts.map(address).collect();
    assert!(addresses.iter().all(|address| !address.contains('$')), "{addresses:?}");
    addresses
}

#[tokio::test]
async fn frames_and_pictures_of_the_dashboard_are_there() {
    let server = Radixscope::start(["demo", "--warm-up", "10"]).await;
    server.until_source_is("live").await;
    let addresses = addresses("/");
    assert_eq!(addresses.len(), 5, "a frame and four pictures");
    for address in addresses {
        let response = server.get_with(&address, &[("accept", "image/svg+xml,text/html")]).await;
        assert_eq!(response.status, 200, "{address}: {}", response.text());
        let is_picture = address.starts_with("/panel/");
        assert_eq!(is_picture, response.header("content-type") == "image/svg+xml", "{address}");
    }
}

#[tokio::test]
async fn every_column_of_the_infinity_dashboard_is_in_the_responses() {
    let server = Radixscope::start(["demo", "--warm-up", "120", "--fault", "gap"]).await;
    let dashboard = dashboard("radixscope-infinity.json");
    let targets = dashboard["panels"].as_array().expect("panels").iter().map(|panel| &panel["targets"][0]);
    for target in targets {
        let text = |name: &str| target[name].as_str().expect("a text").replace("${radixscope}", "/");
        let rows = wait::until("there are rows", async || {
            let response = server.json(&text("url")).await;
            let rows = response[text("root_selector")].as_array().cloned().unwrap_or_default();
            wait::expect(!rows.is_empty(), || response.to_string()).map(|()| rows)
        })
        .await;
        for column in target["columns"].as_array().expect("columns") {
            let name = column["selector"].as_str().expect("a field");
            for row in &rows {
                let value = row.get(name).unwrap_or_else(|| panic!("{} has no {name}: {row}", text("url")));
                let is_of_type = match column["type"].as_str() {
                    Some("string") => value.is_string(),
                    _ => value.is_number(),
                };
                assert!(is_of_type || value.is_null(), "{name} is {value}");
            }
        }
    }
}

#[test]
fn no_panel_lies_over_another_and_ids_are_unique() {
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        let panels = dashboard["panels"].as_array().expect("panels");
        let side = |panel: &Value, side: &str| panel["gridPos"][side].as_u64().expect("a number");
        for (at, one) in panels.iter().enumerate() {
            assert!(side(one, "x") + side(one, "w") <= 24, "{name}: {} is wider than the grid", one["title"]);
            for other in &panels[..at] {
                let apart = |from: &str, len: &str| {
                    side(one, from) >= side(other, from) + side(other, len)
                        || side(other, from) >= side(one, from) + side(one, len)
                };
                assert!(apart("x", "w") || apart("y", "h"), "{} lies over {}", one["title"], other["title"]);
                assert_ne!(one["id"], other["id"], "{name}");
            }
        }
    }
}
