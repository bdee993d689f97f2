//! Sizes of what the browser loads, raw and compressed as the server sends it.

use std::{fs, io::Cursor, path::Path};

use anyhow::{Context, Result, bail};
use brotli::enc::BrotliEncoderParams;
use serde_json::{Value, json};

use crate::app;

/// The app's own WASM, compressed.
const WASM_BUDGET_BYTES: usize = 200_000;
/// The server's own setting for the form it sends from some seconds after its start on.
const BROTLI_QUALITY: i32 = 11;
/// What the browser loads, by what it is for; the WASM first.
const KINDS: [&str; 4] =
    ["app, WASM", "app, JavaScript", "page, styles, icon", "charts, loaded when first shown"];

/// Two rows for each kind of file.
///
/// # Errors
/// When the app is not built.
pub(super) fn measure(dist: &Path) -> Result<Vec<Value>> {
    let mut sums = [(0, 0); KINDS.len()];
    for path in app::files(dist, None)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let (raw, compressed) = &mut sums[kind(path.strip_prefix(dist)?)];
        *raw += bytes.len();
        *compressed += brotli_len(&bytes)?;
    }
    if sums[0].0 == 0 {
        bail!("{} holds no WASM", dist.display());
    }
    let mut rows = Vec::new();
    for (what, (raw, compressed)) in KINDS.iter().zip(sums) {
        rows.push(json!({"what": format!("{what}, raw"), "value": kilobytes(raw), "unit": "kB"}));
        rows.push(json!({"what": format!("{what}, brotli"), "value": kilobytes(compressed), "unit": "kB"}));
    }
    rows[1]["budget"] = format!("≤ {} kB", WASM_BUDGET_BYTES / 1000).into();
    rows[1]["within"] = (sums[0].1 <= WASM_BUDGET_BYTES).into();
    Ok(rows)
}

/// Index in [`KINDS`] of a file, by its path in the result.
fn kind(path: &Path) -> usize {
    match path.extension().and_then(|extension| extension.to_str()) {
        _ if path.starts_with("vendor") => 3,
        Some("wasm") => 0,
        Some("js") => 1,
        _ => 2,
    }
}

fn brotli_len(bytes: &[u8]) -> Result<usize> {
    let mut compressed = Vec::new();
    let parameters = BrotliEncoderParams { quality: BROTLI_QUALITY, ..BrotliEncoderParams::default() };
    brotli::BrotliCompress(&mut Cursor::new(bytes), &mut compressed, &parameters).context("compressing")?;
    Ok(compressed.len())
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendored_script_is_not_the_apps() {
        assert_eq!(KINDS[kind(Path::new("vendor/echarts-5.6.0.min.js"))], "charts, loaded when first shown");
        assert_eq!(KINDS[kind(Path::new("radixscope-app-00.js"))], "app, JavaScript");
        assert_eq!(KINDS[kind(Path::new("radixscope-app-00_bg.wasm"))], "app, WASM");
        assert_eq!(KINDS[kind(Path::new("index.html"))], "page, styles, icon");
    }
}
