//! Rows for the table out of the report that the comparison with Dynamo's own router writes.

use serde_json::{Value, json};

/// Least ratio of throughputs, decoding included.
const LEAST_RATIO: f64 = 2.0;
/// Largest share of their memory per resident block.
const LARGEST_SHARE: f64 = 0.5;

/// Throughput and memory of each input, against Dynamo's.
pub(super) fn rows(report: &Value) -> Vec<Value> {
    let duels = list(&report["throughput"]).iter().map(|duel| {
        let ratio = &duel["decode_and_apply"]["ratio"];
        json!({
            "what": format!("decode and apply, {}, {}", text(&duel["capture"]), text(&duel["wire"])),
            "value": ratio,
            "unit": "× RadixTree",
            "budget": format!("≥ {LEAST_RATIO}"),
            "within": ratio.as_f64().map(|ratio| ratio >= LEAST_RATIO),
        })
    });
    let shares = list(&report["memory"]).iter().map(|memory| {
        let share = &memory["share"];
        json!({
            "what": format!("memory per resident block, {}", text(&memory["what"])),
            "value": share,
            "unit": "of RadixTree",
            "budget": format!("≤ {LARGEST_SHARE}"),
            "within": share.as_f64().map(|share| share <= LARGEST_SHARE),
        })
    });
    duels.chain(shares).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_below_the_budget_is_not_within() {
        let report = json!({
            "throughput": [{"capture": "a", "wire": "json", "decode_and_apply": {"ratio": 1.9}}],
            "memory": [{"what": "a", "share": 0.4}],
        });
        let rows = rows(&report);
        assert_eq!((&rows[0]["within"], &rows[1]["within"]), (&json!(false), &json!(true)));
    }
}
