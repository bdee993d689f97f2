//! The figures as rows of the table that all measurements end in, and what belongs beside them.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// All figures.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Value>,
    /// By size, then by name.
    pub(crate) details: Map<String, Value>,
}

impl Table {
    /// A figure without a budget.
    pub(crate) fn row(&mut self, size: &str, what: &str, value: f64, unit: &str) {
        println!("{size}: {what}: {value:.2} {unit}");
        self.rows.push(json!({"what": name(size, what), "value": value, "unit": unit}));
    }

    /// A figure that is to be at most `most`.
    pub(crate) fn budget(&mut self, size: &str, what: &str, value: f64, unit: &str, most: f64) {
        println!("{size}: {what}: {value:.2} {unit}, at most {most}");
        self.rows.push(json!({
            "what": name(size, what), "value": value, "unit": unit, "budget": format!("≤ {most} {unit}"),
            "within": value <= most,
        }));
    }

    /// What there is no figure of, and why.
    pub(crate) fn failed(&mut self, size: &str, what: &str, why: &str) {
        println!("{size}: {what}: none: {why}");
        self.rows.push(json!({"what": name(size, what), "value": null, "unit": why, "within": false}));
    }

    /// Something that is only in the file.
    pub(crate) fn detail(&mut self, size: &str, what: &str, value: impl Serialize) {
        let of_size = self.details.entry(size).or_insert_with(|| json!({}));
        of_size[what] = json!(value);
    }
}

fn name(size: &str, what: &str) -> String {
    format!("tree of {size} blocks: {what}")
}

/// A number as people say it, when that is shorter.
pub(crate) fn millions(number: u64) -> String {
    match number {
        n if n > 0 && n.is_multiple_of(1_000_000) => format!("{} M", n / 1_000_000),
        n if n > 0 && n.is_multiple_of(1_000) => format!("{} k", n / 1_000),
        n => n.to_string(),
    }
}

/// The value that the share `q` does not exceed; NaN of nothing.
pub(crate) fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    radixscope_tests::traffic::quantile(&sorted, q)
}
