//! Sizes of what the browser loads, raw and compressed as the server sends it.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::page;

/// What every viewer loads first, compressed.
const PAGE_BUDGET_BYTES: usize = 450_000;
/// A part of the page that is loaded when it is opened, compressed.
const PART_BUDGET_BYTES: usize = 250_000;
/// The page's programs, the one with the budget first; the others are loaded when they are needed.
const PROGRAMS: [&str; 4] = ["page", "worker", "player", "tokenizer"];
/// What else the browser loads.
const OTHERS: [&str; 3] =
    ["JavaScript of all programs", "HTML, styles, icon", "charts, loaded when first shown"];

/// What a file counts as.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Index in [`PROGRAMS`] and then [`OTHERS`].
    Summed(usize),
    /// A part of the page, by its name.
    Part(String),
}

/// Two rows for each program's WASM and for each other kind of file, one for each part of the page.
///
/// # Errors
/// When the page is not built.
pub(super) fn measure(dist: &Path) -> Result<Vec<Value>> {
    let mut sums = [(0, 0); PROGRAMS.len() + OTHERS.len()];
    let mut parts = Vec::new();
    for path in page::files(dist, None)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        match kind(path.strip_prefix(dist)?)? {
            Kind::Summed(at) => {
                let (raw, compressed) = &mut sums[at];
                *raw += bytes.len();
                *compressed += brotli_len(&bytes)?;
            }
            Kind::Part(name) => {
                let len = brotli_len(&bytes)?;
                parts.push(json!({
                    "what": format!("part of the page, {name}, brotli"), "value": kilobytes(len), "unit": "kB",
                    "budget": format!("≤ {} kB", PART_BUDGET_BYTES / 1000), "within": len <= PART_BUDGET_BYTES
                }));
            }
        }
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
    rows.append(&mut parts);
    Ok(rows)
}

/// A file's kind, by its path in the page.
///
/// # Errors
/// When it is the WASM of no program that is known.
fn kind(path: &Path) -> Result<Kind> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let part = name.strip_prefix("split_").unwrap_or(name).split('-').next().unwrap_or_default();
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        _ if path.starts_with("vendor") => Kind::Summed(PROGRAMS.len() + 2),
        Some("bin") => Kind::Part(part.to_owned()),
        Some("wasm") if name.starts_with("split_") => Kind::Part(part.to_owned()),
        Some("wasm") => {
            let program = name.split(['-', '_']).next().unwrap_or_default();
            let of = PROGRAMS.iter().position(|known| *known == program);
            Kind::Summed(of.with_context(|| format!("{name} belongs to no program that is measured"))?)
        }
        Some("js") => Kind::Summed(PROGRAMS.len()),
        _ => Kind::Summed(PROGRAMS.len() + 1),
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
        let summed = |at| Some(Kind::Summed(at));
        assert_eq!(kind("page-00_bg.wasm"), summed(0));
        assert_eq!(kind("worker_bg.wasm"), summed(1));
        assert_eq!(kind("player_bg.wasm"), summed(2));
        assert_eq!(kind("tokenizer_bg.wasm"), summed(3));
        assert_eq!(kind("split_whatif-00.wasm"), Some(Kind::Part("whatif".to_owned())));
        assert_eq!(kind("shared-00.bin"), Some(Kind::Part("shared".to_owned())));
        assert_eq!(kind("other_bg.wasm"), None);
        assert_eq!(kind("page-00.js"), summed(4));
        assert_eq!(kind("index.html"), summed(5));
        assert_eq!(kind("vendor/echarts-5.6.0.min.js"), summed(6), "a vendored script is not the page's");
    }
}
