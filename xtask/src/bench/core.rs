//! Rows for the table out of the report that the comparison with Dynamo's own router writes.

use serde_json::{Value, json};

/// Least ratio of throughputs, decoding included.
const LEAST_RATIO: f64 = 2.0;
/// Largest share of their memory per resident block.
const LARGEST_SHARE: f64 = 0.45;
/// Captures of fewer resident blocks have no budget: fixed parts are most of their memory.
const LEAST_RESIDENT: u64 = 10_000;
/// Longest time to score a thousand workers for a long prompt, look-up included.
const SCORING_MS: f64 = 2.0;
/// Longest time to judge ten thousand decisions once; a browser takes two to three times as long and may take 50 ms.
const EVALUATE_MS: f64 = 20.0;

/// Throughput and memory of each input and scoring, against Dynamo's; counterfactuals.
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
        if memory["resident"].as_u64().is_some_and(|resident| resident <= LEAST_RESIDENT) {
            return json!({
                "what": format!("memory per resident block, {}", text(&memory["what"])),
                "value": share,
                "unit": "of RadixTree",
            });
        }
        json!({
            "what": format!("memory per resident block, {}", text(&memory["what"])),
            "value": share,
            "unit": "of RadixTree",
            "budget": format!("≤ {LARGEST_SHARE}"),
            "within": share.as_f64().map(|share| share <= LARGEST_SHARE),
        })
    });
    let scoring = list(&report["scoring"]).iter().flat_map(|scoring| {
        let what = format!("score {} workers, {}", scoring["workers"], text(&scoring["what"]));
        [
            within(what.clone(), &scoring["ours_ms"], SCORING_MS),
            json!({"what": what, "value": scoring["duel"]["ratio"], "unit": "× Dynamo's selector"}),
        ]
    });
    // A sweep has no budget of its own: it is many evaluations.
    let counterfactual = list(&report["counterfactual"]).iter().map(|judged| {
        let what = format!("judge {} decisions again, {}", judged["decisions"], text(&judged["what"]));
        if text(&judged["what"]).starts_with("one setting") {
            within(what, &judged["median_ms"], EVALUATE_MS)
        } else {
            json!({"what": what, "value": judged["median_ms"], "unit": "ms"})
        }
    });
    duels.chain(shares).chain(scoring).chain(counterfactual).collect()
}

fn within(what: String, value: &Value, budget_ms: f64) -> Value {
    json!({
        "what": what,
        "value": value,
        "unit": "ms",
        "budget": format!("≤ {budget_ms} ms"),
        "within": value.as_f64().map(|ms| ms <= budget_ms),
    })
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
            "memory": [
                {"what": "a", "resident": 20_000, "share": 0.4},
                {"what": "b", "resident": 20_000, "share": 0.46},
                {"what": "c", "resident": 10_000, "share": 0.5},
            ],
        });
        let rows = rows(&report);
        let within: Vec<&Value> = rows.iter().map(|row| &row["within"]).collect();
        assert_eq!(within, [&json!(false), &json!(true), &json!(false), &Value::Null]);
    }

    #[test]
    fn times_have_budgets_and_a_sweep_has_none() {
        let report = json!({
            "scoring": [{"what": "a", "workers": 1000, "ours_ms": 2.1, "duel": {"ratio": 3.0}}],
            "counterfactual": [
                {"what": "one setting, b", "decisions": 10, "median_ms": 3.0},
                {"what": "sweep of 24 settings", "decisions": 10, "median_ms": 80.0},
            ],
        });
        let rows = rows(&report);
        let within: Vec<&Value> = rows.iter().map(|row| &row["within"]).collect();
        assert_eq!(within, [&json!(false), &Value::Null, &json!(true), &Value::Null]);
    }
}
