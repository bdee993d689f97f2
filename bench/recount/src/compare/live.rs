//! What Radixscope answered beside a stack, held against the recording of the same run.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Figure, Ratio, cluster, decisions::Agreement, latency, table};
use crate::recording::Recording;

/// Differences between single decisions shown; the rest are most often of the same kind.
const MAX_SHOWN: usize = 12;

/// What came of a comparison.
pub struct Compared {
    /// A row of the table below [`table::HEADING`].
    pub row: String,
    /// How many figures and choices are equal.
    pub sum: String,
    /// For the reader.
    pub text: String,
    /// How many figures and kinds of words differ.
    pub differing: usize,
}

impl Compared {
    /// Compares the responses in the folder `rx` of the recording in `folder` with the recording; `name` is how the row calls it.
    ///
    /// # Errors
    /// When either cannot be read.
    pub fn of(name: &str, folder: &Path) -> Result<Self> {
        let recording = Recording::read(folder)?;
        let response = |page: &str| response(&folder.join(format!("rx/end.{page}.json")));
        let agreement = Agreement::of(&recording, &response("decisions")?, Default::default());
        let mut figures = cluster::figures(&recording, &response("cluster")?);
        figures.extend(latency::figures(&recording, &response("latency")?));
        let row = table::row(name, &agreement);
        let wrong: Vec<&Figure> = figures.iter().filter(|figure| !figure.is_equal).collect();
        let mut text = format!("{}\n{row}\n", table::HEADING);
        for difference in agreement.differences.iter().take(MAX_SHOWN) {
            let _ = writeln!(text, "  {difference}");
        }
        if let Some(more) = agreement.differences.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
            let _ = writeln!(text, "  and {more} more");
        }
        let equal = Ratio { n: figures.len() - wrong.len(), m: figures.len() };
        let right = agreement.right;
        let sum =
            format!("{name}: equal {} of {} figures, {} of {} choices", equal.n, equal.m, right.n, right.m);
        let _ = write!(text, "{sum}");
        for Figure { what, recorded, shown, .. } in &wrong {
            let _ = write!(text, "\n  {what}: {shown}, recorded {recorded}");
        }
        let differing = wrong.len() + usize::from(!agreement.is_whole());
        Ok(Self { row, sum, text, differing })
    }

    /// As the program `recount` prints it.
    pub fn json(&self) -> Value {
        let Self { row, sum, text, differing } = self;
        json!({"heading": table::HEADING, "row": row, "sum": sum, "text": text, "differing": differing})
    }
}

fn response(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("no response {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
}
