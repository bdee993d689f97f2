//! Sizes of what the browser loads, raw and compressed as the server sends it.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::app;

/// The page's WASM, which every viewer loads, compressed.
const PAGE_BUDGET_BYTES: usize = 700_000;
/// The app's programs, the one with the budget first; the others are loaded when they are needed.
const PROGRAMS: [&str; 4] = ["page", "worker", "player", "tokenizer"];
/// What else the browser loads.
const OTHERS: [&str; 3] =
    ["JavaScript of all programs", "HTML, styles, icon", "charts, loaded when first shown"];

/// Two rows for each program's WASM and for each other kind of file.
///
/// # Errors
/// When the app is not built.
pub(super) fn measure(dist: &Path) -> Result<Vec<Value>> {
    let mut sums = [(0, 0); PROGRAMS.len() + OTHERS.len()];
    for path in app::files(dist, None)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let (raw, compressed) = &mut sums[kind(path.strip_prefix(dist)?)?];
        *raw += bytes.len();
        *compressed += brotli_len(&bytes)?;
    }
    if let Some(missing) = PROGRAMS.iter().zip(sums).find_map(|(name, (raw, _))| (raw == 0).then_some(name)) {
        bail!("{} holds no WASM of the program {missing}", dist.display());
    }
    let mut rows = Vec::new();
    let names = PROGRAMS.iter().map(|name| format!("{name}, WASM"));
    for (what, (raw, compressed)) in names.chain(OTHERS.map(str::to_owned)).zip(sums) {
        rows.push(json!({"what": format!("{what}, raw"), "value": kilobytes(raw), "unit": "kB"}));
        rows.push(json!({"what": format!("{what}, brotli"), "value": kilobytes(compressed), "unit": "kB"}));
    }
    rows[1]["budget"] = format!("≤ {} kB", PAGE_BUDGET_BYTES / 1000).into();
    rows[1]["within"] = (sums[0].1 <= PAGE_BUDGET_BYTES).into();
    Ok(rows)
}

/// Index of a file's kind in [`PROGRAMS`] and then [`OTHERS`], by its path in the result.
///
/// # Errors
/// When it is the WASM of no program that is known.
fn kind(path: &Path) -> Result<usize> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        _ if path.starts_with("vendor") => PROGRAMS.len() + 2,
        Some("wasm") => {
            let program = name.split(['-', '_']).next().unwrap_or_default();
            let of = PROGRAMS.iter().position(|known| *known == program);
            of.with_context(|| format!("{name} belongs to no program that is measured"))?
        }
        Some("js") => PROGRAMS.len(),
        _ => PROGRAMS.len() + 1,
    })
}

fn brotli_len(bytes: &[u8]) -> Result<usize> {
    Ok(radixscope_compress::brotli(bytes, radixscope_compress::Effort::Most).context("compressing")?.len())
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_counted_where_it_belongs() {
        let kind = |path: &str| kind(Path::new(path)).ok();
        assert_eq!(kind("page-00_bg.wasm"), Some(0));
        assert_eq!(kind("worker_bg.wasm"), Some(1));
        assert_eq!(kind("player_bg.wasm"), Some(2));
        assert_eq!(kind("tokenizer_bg.wasm"), Some(3));
        assert_eq!(kind("other_bg.wasm"), None);
        assert_eq!(kind("page-00.js"), Some(4));
        assert_eq!(kind("index.html"), Some(5));
        assert_eq!(kind("vendor/echarts-5.6.0.min.js"), Some(6), "a vendored script is not the app's");
    }
}
