//! Blocks, workers and tree, as `/api/v1/cluster` shows them of a cluster that is at rest.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Figure;
use super::pairs::worker_of;
use crate::Worker;
use crate::capture::Capture;

/// Every figure of an answer beside what the messages report.
pub fn figures(capture: &Capture, cluster: &Value) -> Vec<Figure> {
    let empty = Vec::new();
    let shown = cluster["workers"].as_array().unwrap_or(&empty);
    let shown: BTreeMap<Worker, &Value> =
        shown.iter().filter_map(|row| Some((worker_of(row)?, row))).collect();
    let mut lines = vec![Figure::new("workers", capture.workers.len(), shown.len())];
    for (id, figures) in &capture.workers {
        let row = shown.get(id).copied().unwrap_or(&Value::Null);
        for (what, recorded) in [
            ("blocks", figures.blocks()),
            ("stored_total", figures.stored_total),
            ("removed_total", figures.removed_total),
        ] {
            lines.push(Figure::new(format!("worker {} rank {} {what}", id.0, id.1), recorded, &row[what]));
        }
        let prefilled = capture.prefilled.values().filter(|at| *at == id).count();
        let what = "requests prefilled";
        let shown = &row["requests"]["prefilled_total"];
        lines.push(Figure::new(format!("worker {} rank {} {what}", id.0, id.1), prefilled, shown));
    }
    let tree = &cluster["tree"];
    let resident: u64 = capture.workers.values().map(crate::capture::WorkerFigures::blocks).sum();
    lines.push(Figure::new("tree nodes", capture.nodes_held_by(1), &tree["nodes"]));
    lines.push(Figure::new("tree nodes shared", capture.nodes_held_by(2), &tree["shared"]));
    lines.push(Figure::new("tree resident blocks", resident, &tree["resident"]));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differing(cluster: &Value) -> Vec<String> {
        let mut capture = Capture::default();
        capture.workers.entry((7, 0)).or_default().stored_total = 12;
        let lines = figures(&capture, cluster).into_iter();
        lines.filter(|line| !line.is_equal).map(|line| line.what).collect()
    }

    #[test]
    fn a_figure_that_is_missing_or_different_is_named() {
        let mut worker = json!({"worker_id": "7", "dp_rank": 0, "blocks": 0, "stored_total": 12, "removed_total": 0,
            "requests": {"prefilled_total": 0}});
        let tree = json!({"nodes": 0, "shared": 0, "resident": 0});
        assert!(differing(&json!({"workers": [worker], "tree": tree})).is_empty());
        worker["stored_total"] = 11.into();
        assert_eq!(differing(&json!({"workers": [worker], "tree": tree})), ["worker 7 rank 0 stored_total"]);
        assert!(differing(&json!({})).contains(&"workers".to_owned()));
    }
}
