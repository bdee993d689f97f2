//! Holds what Radixscope's API said against what a recording of the same traffic says.

use std::{collections::BTreeMap, fmt::Display, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::capture::{Capture, Worker};

/// One line of the comparison.
struct Line {
    what: String,
    recorded: String,
    shown: String,
}

/// Prints the comparison of the files in `answers` with `capture`.
///
/// # Errors
/// When a figure differs or an answer is missing.
pub(super) fn run(capture: &Capture, answers: &Path) -> Result<()> {
    let cluster = answer(answers, "cluster")?;
    let decisions = answer(answers, "decisions")?;
    let mut lines = cluster_lines(capture, &cluster);
    lines.extend(decision_lines(capture, decisions["decisions"].as_array().context("no decisions")?));
    let width = lines.iter().map(|line| line.what.len()).max().unwrap_or(0);
    println!("{:width$}  {:>12}  {:>12}", "", "recording", "Radixscope");
    let mut differing = 0;
    for Line { what, recorded, shown } in &lines {
        let verdict = if recorded == shown { "" } else { "  differs" };
        differing += usize::from(recorded != shown);
        println!("{what:width$}  {recorded:>12}  {shown:>12}{verdict}");
    }
    if differing > 0 {
        bail!("{differing} of {} figures differ from the recording", lines.len());
    }
    println!("all {} figures are equal", lines.len());
    Ok(())
}

fn cluster_lines(capture: &Capture, cluster: &Value) -> Vec<Line> {
    let empty = Vec::new();
    let shown = cluster["workers"].as_array().unwrap_or(&empty);
    let shown: BTreeMap<Worker, &Value> = shown.iter().filter_map(|row| Some((worker(row)?, row))).collect();
    let mut lines = vec![line("workers", capture.workers.len(), shown.len())];
    for (id, figures) in &capture.workers {
        let row = shown.get(id).copied().unwrap_or(&Value::Null);
        for (what, recorded) in [
            ("blocks", figures.blocks()),
            ("stored_total", figures.stored_total),
            ("removed_total", figures.removed_total),
        ] {
            lines.push(line(format!("worker {} rank {} {what}", id.0, id.1), recorded, &row[what]));
        }
        let prefilled = capture.prefilled.values().filter(|at| *at == id).count();
        let what = "requests prefilled";
        let shown = &row["requests"]["prefilled_total"];
        lines.push(line(format!("worker {} rank {} {what}", id.0, id.1), prefilled, shown));
    }
    let tree = &cluster["tree"];
    let resident: u64 = capture.workers.values().map(super::capture::WorkerFigures::blocks).sum();
    lines.push(line("tree nodes", capture.nodes_held_by(1), &tree["nodes"]));
    lines.push(line("tree nodes shared", capture.nodes_held_by(2), &tree["shared"]));
    lines.push(line("tree resident blocks", resident, &tree["resident"]));
    lines
}

/// Dynamo 0.9 publishes every decision with its overlap. Later versions do not unless routers are replicated, and
/// then there is nothing to compare.
fn decision_lines(capture: &Capture, newest_first: &[Value]) -> Vec<Line> {
    if capture.hit_rates.is_empty() {
        return Vec::new();
    }
    let shown: Vec<_> = newest_first
        .iter()
        .rev()
        .map(|row| (worker(row), row["isl_blocks"].as_u64(), row["overlap_blocks"].as_u64()))
        .collect();
    let pairs = capture.hit_rates.iter().zip(&shown);
    let same =
        pairs.filter(|(hit, row)| (Some(hit.0), Some(hit.1), Some(hit.2)) == (row.0, row.1, row.2)).count();
    let overlap: u64 = capture.hit_rates.iter().map(|hit| hit.2).sum();
    vec![
        line("decisions", capture.hit_rates.len(), shown.len()),
        line("of these equal, in order", capture.hit_rates.len(), same),
        line("overlap blocks of all", overlap, shown.iter().filter_map(|row| row.2).sum::<u64>()),
    ]
}

fn line(what: impl Into<String>, recorded: impl Display, shown: impl Display) -> Line {
    Line { what: what.into(), recorded: recorded.to_string(), shown: shown.to_string() }
}

fn worker(row: &Value) -> Option<Worker> {
    Some((row["worker_id"].as_str()?.parse().ok()?, row["dp_rank"].as_u64()?))
}

fn answer(folder: &Path, name: &str) -> Result<Value> {
    let path = folder.join(format!("{name}.json"));
    let text = fs::read_to_string(&path).with_context(|| {
        format!("Radixscope did not answer; its output is in serve.log beside {}", path.display())
    })?;
    serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differing(cluster: &Value) -> Vec<String> {
        let mut capture = Capture::default();
        capture.workers.entry((7, 0)).or_default().stored_total = 12;
        let lines = cluster_lines(&capture, cluster).into_iter();
        lines.filter(|line| line.recorded != line.shown).map(|line| line.what).collect()
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
