//! Blocks, workers, pools and tree, as `/api/v1/cluster` shows them of a cluster that is at rest.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Figure;
use super::pairs::worker_of;
use crate::Worker;
use crate::discovery::Role;
use crate::recording::Recording;
use crate::router::{Decision, Fact};

/// Every figure of a response beside what the recording reports.
pub fn figures(recording: &Recording, cluster: &Value) -> Vec<Figure> {
    let empty = Vec::new();
    let shown = cluster["workers"].as_array().unwrap_or(&empty);
    let shown: BTreeMap<Worker, &Value> =
        shown.iter().filter_map(|row| Some((worker_of(row)?, row))).collect();
    let workers = recording.workers();
    let mut lines = vec![Figure::new("workers", workers.len(), shown.len())];
    for (id, pool) in &workers {
        let row = shown.get(id).copied().unwrap_or(&Value::Null);
        worker(recording, *id, pool, row, &mut lines);
    }
    let shown = cluster["pools"].as_array().unwrap_or(&empty);
    let pools = recording.pools();
    lines.push(Figure::new("pools", pools.len(), shown.len()));
    for name in pools {
        let row = shown.iter().find(|row| row["pool"] == name).unwrap_or(&Value::Null);
        pool(recording, name, row, &mut lines);
    }
    let capture = &recording.capture;
    let tree = &cluster["tree"];
    let resident: u64 = capture.workers.values().map(crate::capture::WorkerFigures::blocks).sum();
    lines.push(Figure::new("tree nodes", capture.nodes_held_by(1), &tree["nodes"]));
    lines.push(Figure::new("tree nodes shared", capture.nodes_held_by(2), &tree["shared"]));
    lines.push(Figure::new("tree resident blocks", resident, &tree["resident"]));
    lines
}

fn worker(recording: &Recording, id: Worker, pool: &str, row: &Value, lines: &mut Vec<Figure>) {
    let mut line = |what: &str, recorded: String, shown: String| {
        lines.push(Figure::new(format!("worker {} rank {} {what}", id.0, id.1), recorded, shown));
    };
    line("pool", pool.to_owned(), text(&row["pool"]));
    line("role", role(recording, pool), role_of(row));
    let figures = recording.capture.workers.get(&id);
    let blocks = figures.map_or("null".to_owned(), |figures| figures.blocks().to_string());
    line("blocks", blocks, row["blocks"].to_string());
    for (what, recorded) in [
        ("stored_total", figures.map_or(0, |figures| figures.stored_total)),
        ("removed_total", figures.map_or(0, |figures| figures.removed_total)),
    ] {
        line(what, recorded.to_string(), row[what].to_string());
    }
    let none = Vec::new();
    let tiers = row["tiers"].as_array().unwrap_or(&none);
    line("tiers", figures.map_or(0, |figures| figures.tiers.len()).to_string(), tiers.len().to_string());
    for (name, tier) in figures.into_iter().flat_map(|figures| &figures.tiers) {
        let row = tiers.iter().find(|row| row["tier"] == **name).unwrap_or(&Value::Null);
        for (what, recorded) in [
            ("blocks", tier.blocks()),
            ("stored_total", tier.stored_total),
            ("removed_total", tier.removed_total),
        ] {
            line(&format!("{name} {what}"), recorded.to_string(), row[what].to_string());
        }
    }
    let prefilled = recording.capture.prefilled.values().filter(|at| **at == id).count();
    line("requests prefilled", prefilled.to_string(), row["requests"]["prefilled_total"].to_string());
}

fn pool(recording: &Recording, name: &str, row: &Value, lines: &mut Vec<Figure>) {
    let mut line = |what: &str, recorded: String, shown: String| {
        lines.push(Figure::new(format!("pool {name} {what}"), recorded, shown));
    };
    let capture = &recording.capture;
    line("role", role(recording, name), role_of(row));
    for (what, recorded) in [
        ("nodes", capture.nodes_of(name, 1)),
        ("shared", capture.nodes_of(name, 2)),
        ("resident", capture.resident_of(name)),
    ] {
        line(what, recorded.to_string(), row[what].to_string());
    }
    if !recording.discovery.cards.is_empty() {
        let cards = recording.discovery.cards.values();
        let there = cards.filter(|card| card.is_there && card.pool == name).count();
        line("workers", there.to_string(), row["workers"].to_string());
    }
    let of_pool = || recording.decisions.iter().filter(|decision| decision.pool.as_deref() == Some(name));
    line("requests", of_pool().count().to_string(), row["decisions_total"].to_string());
    // Only pools that look for held blocks, and only choices that were no mere queries.
    let is_counted =
        |decision: &&Decision| decision.role != Role::Decode && decision.is_dispatched != Some(false);
    // On its device and below.
    let prompt = |decision: &Decision| {
        let below = decision.below.map_or(0, |(host, disk)| host + disk);
        Some((*decision.isl_blocks.reported()?, *decision.overlap_blocks.reported()? + below))
    };
    let prompts: Vec<(u64, u64)> = of_pool().filter(is_counted).filter_map(prompt).collect();
    // Which of two decisions a line is about may be unsure here, and certain by what is received in order there.
    let unsure = of_pool().filter(is_counted).filter(|decision| decision.isl_blocks == Fact::Unsure).count();
    let mut sum = |what: &str, of: fn(&(u64, u64)) -> u64, shown: &Value| {
        let least = prompts.iter().map(of).sum::<u64>();
        let longest = prompts.iter().map(of).max().unwrap_or(0);
        let most = least + unsure as u64 * longest;
        let is_within = shown.as_u64().is_some_and(|shown| (least..=most).contains(&shown));
        match unsure {
            0 => line(what, least.to_string(), shown.to_string()),
            _ if is_within => line(what, shown.to_string(), shown.to_string()),
            _ => line(what, format!("{least} to {most}"), shown.to_string()),
        }
    };
    sum("prompt blocks", |of| of.0, &row["isl_blocks"]);
    sum("overlap blocks", |of| of.1, &row["overlap_blocks"]);
}

fn role(recording: &Recording, pool: &str) -> String {
    recording.discovery.role(pool).as_str().to_owned()
}

/// Where nothing tells a role, nothing is apart.
fn role_of(row: &Value) -> String {
    row["role"].as_str().unwrap_or(Role::Aggregated.as_str()).to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("null").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differing(cluster: &Value) -> Vec<String> {
        let mut recording = Recording::default();
        let figures = recording.capture.workers.entry((7, 0)).or_default();
        (figures.stored_total, figures.pool) = (12, "n/c".into());
        recording.capture.pools.insert((7, 0), "n/c".into());
        let lines = figures_of(&recording, cluster).into_iter();
        lines.filter(|line| !line.is_equal).map(|line| line.what).collect()
    }

    use super::figures as figures_of;

    #[test]
    fn a_figure_that_is_missing_or_different_is_named() {
        let mut worker = json!({"worker_id": "7", "dp_rank": 0, "pool": "n/c", "role": null, "blocks": 0, "stored_total": 12,
            "removed_total": 0, "tiers": [], "requests": {"prefilled_total": 0}});
        let mut pool = json!({"pool": "n/c", "role": "aggregated", "nodes": 0, "shared": 0, "resident": 0, "decisions_total": 0,
            "isl_blocks": 0, "overlap_blocks": 0});
        let tree = json!({"nodes": 0, "shared": 0, "resident": 0});
        let response =
            |worker: &Value, pool: &Value| json!({"workers": [worker], "pools": [pool], "tree": tree});
        assert_eq!(differing(&response(&worker, &pool)), [""; 0]);
        worker["stored_total"] = 11.into();
        pool["shared"] = 1.into();
        let differ = differing(&response(&worker, &pool));
        assert_eq!(differ, ["worker 7 rank 0 stored_total", "pool n/c shared"]);
        assert!(differing(&json!({})).contains(&"workers".to_owned()));
    }
}
