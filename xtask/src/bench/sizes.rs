//! Sizes of what the browser loads, raw and compressed as the network carries it.

use std::{fs, io::Cursor, path::Path};

use anyhow::{Context, Result, bail};
use brotli::enc::BrotliEncoderParams;
use serde_json::{Value, json};

/// The app's own WASM, compressed with brotli.
const WASM_BUDGET_BYTES: usize = 200_000;

/// One row a file and form, the app's WASM first.
///
/// # Errors
/// When the app is not built.
pub(super) fn measure(dist: &Path) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    let mut open = vec![dist.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort_by_key(|path| (!is_wasm(path), path.clone()));
    if !files.first().is_some_and(|path| is_wasm(path)) {
        bail!("{} holds no WASM", dist.display());
    }
    let mut rows = Vec::new();
    for path in files {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let name = path.strip_prefix(dist).unwrap_or(&path).display().to_string();
        let compressed = brotli_len(&bytes)?;
        rows.push(json!({"what": format!("{name}, raw"), "value": kilobytes(bytes.len()), "unit": "kB"}));
        let mut row =
            json!({"what": format!("{name}, brotli"), "value": kilobytes(compressed), "unit": "kB"});
        if is_wasm(&path) {
            row["budget"] = format!("≤ {} kB", WASM_BUDGET_BYTES / 1000).into();
            row["within"] = (compressed <= WASM_BUDGET_BYTES).into();
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Length after brotli at its best quality, as the server sends it.
fn brotli_len(bytes: &[u8]) -> Result<usize> {
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut Cursor::new(bytes), &mut compressed, &BrotliEncoderParams::default())
        .context("compressing")?;
    Ok(compressed.len())
}

fn is_wasm(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "wasm")
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1000.0
}
