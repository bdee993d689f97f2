//! What Radixscope answered beside a stack, held against the recording of the same run.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use radixscope_recount::{
    compare::{Figure, Ratio, cluster, decisions::Agreement, latency, table},
    recording::Recording,
};
use serde_json::Value;

/// The table's heading.
pub(super) const HEADING: &str = table::HEADING;
/// Differences between single decisions shown; the rest are most often of the same kind.
const MAX_SHOWN: usize = 12;

/// What came of a comparison.
pub(super) struct Compared {
    /// A row of the table.
    pub(super) row: String,
    /// How many figures and choices are equal.
    pub(super) sum: String,
    /// For the reader.
    pub(super) text: String,
    /// How many figures and kinds of words differ.
    pub(super) differing: usize,
}

/// Compares the responses in the recording's folder `rx` with the recording.
///
/// # Errors
/// When either cannot be read.
pub(super) fn recording(name: &str, folder: &Path) -> Result<Compared> {
    let recording = Recording::read(folder)?;
    let response = |page: &str| response(&folder.join(format!("rx/end.{page}.json")));
    let agreement = Agreement::of(&recording, &response("decisions")?, Default::default());
    let mut figures = cluster::figures(&recording, &response("cluster")?);
    figures.extend(latency::figures(&recording, &response("latency")?));
    let row = table::row(name, &agreement);
    let wrong: Vec<&Figure> = figures.iter().filter(|figure| !figure.is_equal).collect();
    let mut text = format!("{HEADING}\n{row}\n");
    for difference in agreement.differences.iter().take(MAX_SHOWN) {
        let _ = writeln!(text, "  {difference}");
    }
    if let Some(more) = agreement.differences.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    let equal = Ratio { n: figures.len() - wrong.len(), m: figures.len() };
    let right = agreement.right;
    let sum = format!("{name}: equal {} of {} figures, {} of {} choices", equal.n, equal.m, right.n, right.m);
    let _ = write!(text, "{sum}");
    for Figure { what, recorded, shown, .. } in &wrong {
        let _ = write!(text, "\n  {what}: {shown}, recorded {recorded}");
    }
    let differing = wrong.len() + usize::from(!agreement.is_whole());
    Ok(Compared { row, sum, text, differing })
}

fn response(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("no response {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
}
