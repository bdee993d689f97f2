//! What Radixscope answered beside a stack, held against the recording of the same run by the program `recount`.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    steps::Step,
    workspace::{Workspace, output},
};

/// What came of a comparison.
pub(super) struct Compared {
    /// The table's heading.
    pub(super) heading: String,
    /// A row of the table.
    pub(super) row: String,
    /// How many figures and choices are equal.
    pub(super) sum: String,
    /// For the reader.
    pub(super) text: String,
    /// How many figures and kinds of words differ.
    pub(super) differing: u64,
}

/// Builds the program that compares.
///
/// # Errors
/// When the compiler says so.
pub(super) fn build(step: &mut Step<'_>) -> Result<()> {
    let build = ["build", "--locked", "--package", "radixscope-recount", "--bin", "recount"];
    step.run(step.workspace.cargo(build))
}

/// Compares the responses in the recording's folder `rx` with the recording.
///
/// # Errors
/// When either cannot be read.
pub(super) fn recording(workspace: &Workspace, name: &str, folder: &Path) -> Result<Compared> {
    let program = workspace.target.join("debug/recount");
    let printed = output(workspace.command(program).arg(name).arg(folder))?;
    let compared: Value = serde_json::from_str(&printed).context("what recount printed")?;
    let text = |key: &str| {
        compared[key].as_str().map(str::to_owned).with_context(|| format!("recount printed no {key}"))
    };
    Ok(Compared {
        heading: text("heading")?,
        row: text("row")?,
        sum: text("sum")?,
        text: text("text")?,
        differing: compared["differing"].as_u64().context("recount printed no count of differences")?,
    })
}
