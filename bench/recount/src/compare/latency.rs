//! Times and lengths, as `/api/v1/latency` shows them after the traffic: histograms by their means, single requests by
//! their number and quantiles.

use serde_json::Value;

use super::Figure;
use crate::recording::Recording;

/// Name in the response, Dynamo's histogram, and what begins the names of processes that have it.
const HISTOGRAMS: [(&str, &str, &str); 4] = [
    ("ttft", "dynamo_frontend_time_to_first_token_seconds", "frontend"),
    ("itl", "dynamo_frontend_inter_token_latency_seconds", "frontend"),
    ("input_tokens", "dynamo_frontend_input_sequence_tokens", "frontend"),
    ("hit_rate", "dynamo_component_router_kv_hit_rate", "frontend"),
];
/// Digits in which two means of the same samples agree.
const DIGITS: usize = 9;

/// Every figure of a response, single requests where its window holds the whole traffic, beside what logs and metrics report.
pub fn figures(recording: &Recording, latency: &Value) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, series, processes) in HISTOGRAMS {
        let Some(reported) = recording.histogram(series, processes) else { continue };
        let shown = &latency[name]["histogram"]["session"];
        figures.push(Figure::new(format!("{name}, histogram: count"), reported.count, &shown["count"]));
        let mean = |mean: Option<f64>| mean.map_or("null".to_owned(), |mean| format!("{mean:.DIGITS$}"));
        let (reported, shown) = (mean(reported.mean()), mean(shown["mean"].as_f64()));
        figures.push(Figure::new(format!("{name}, histogram: mean"), reported, shown));
    }
    let times = &recording.times_ms;
    let of: [(&str, Vec<f64>); 2] = [
        ("ttft", times.iter().filter_map(|times| times.0).collect()),
        ("itl", times.iter().filter_map(|times| times.1).collect()),
    ];
    for (name, mut reported) in of {
        if reported.is_empty() || !holds_all(recording, latency) {
            continue;
        }
        reported.sort_by(f64::total_cmp);
        let shown = &latency[name]["requests"];
        figures.push(Figure::new(format!("{name}, requests: count"), reported.len(), &shown["count"]));
        for (quantile, at) in [("p50", 0.5), ("p95", 0.95)] {
            figures.push(quantile_of(
                &reported,
                at,
                &format!("{name}, requests: {quantile} (s)"),
                &shown[quantile],
            ));
        }
    }
    figures
}

/// Whether the response's window holds every request: single requests are shown of that alone.
fn holds_all(recording: &Recording, latency: &Value) -> bool {
    let from_s = || Some(latency["at_ms"].as_f64()? / 1_000.0 - latency["window_s"].as_f64()?);
    let first = recording.decisions.first();
    from_s().zip(first).is_none_or(|(from_s, first)| first.at_s > from_s)
}

/// A quantile lies between the two samples around its rank, whichever way it is defined.
fn quantile_of(sorted_ms: &[f64], at: f64, what: &str, shown: &Value) -> Figure {
    let last = sorted_ms.len() - 1;
    let rank = at * sorted_ms.len() as f64;
    let below = (rank.floor() as usize).saturating_sub(1).min(last);
    let above = (rank.ceil() as usize).min(last);
    let (low_s, high_s) = (sorted_ms[below] / 1_000.0, sorted_ms[above] / 1_000.0);
    // What is shown is a range, too, where some requests are not known: without an upper bound if the slowest may be among them.
    let shown_s = shown["low"].as_f64().map(|low| (low, shown["high"].as_f64().unwrap_or(f64::INFINITY)));
    let is_equal = shown_s.is_some_and(|(low, high)| low <= high_s + 1e-6 && high >= low_s - 1e-6);
    Figure {
        what: what.to_owned(),
        recorded: format!("{low_s:.5} … {high_s:.5}"),
        shown: shown_s.map_or("null".to_owned(), |(low, high)| format!("{low:.5} … {high:.5}")),
        is_equal,
    }
}
