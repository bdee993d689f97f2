//! The report of a measuring program: `cargo xtask bench` names a file for it, and puts its rows into one table.

use std::path::PathBuf;

use serde_json::{Value, json};

/// Where the report goes, as an option of a measuring program.
#[derive(clap::Args, Clone, Debug)]
// Else the help of every program would begin with the line above.
#[command(about = None, long_about = None)]
pub struct ReportFile {
    /// Write the figures as JSON
    #[arg(long = "json", value_name = "FILE", env = "RADIXSCOPE_BENCH_OUT")]
    path: Option<PathBuf>,
}

impl ReportFile {
    /// Writes the report, if a file was named.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, report: &Value) {
        if let Some(path) = &self.path {
            std::fs::write(path, format!("{report:#}\n"))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// A row of a report: a duration in milliseconds, and whether it is within its budget where it has one.
pub fn milliseconds(what: &str, value: f64, budget: Option<f64>) -> Value {
    let mut row = json!({"what": what, "value": value, "unit": "ms"});
    if let Some(most) = budget {
        row["budget"] = format!("≤ {most} ms").into();
        row["within"] = (value <= most).into();
    }
    row
}
