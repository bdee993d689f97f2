//! The page's document: elements marked `data-bundle` are replaced by what they name. Knows nothing of programs but their
//! names.
//!
//! | `data-bundle` | becomes |
//! |---|---|
//! | `inline` | the file itself: a style sheet in `<style>`, any other text as it is |
//! | `file` | the same element; the file is copied under a name with a digest |
//! | `program` | the elements that load and start the page's program |

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::program::{Names, digest};

const MARK: &str = " data-bundle=\"";

/// The document with everything in its place; the files it names are written to `out`.
pub(crate) fn assembled(document: &str, folder: &Path, out: &Path, names: &Names) -> Result<String> {
    let mut text = String::with_capacity(2 * document.len());
    let mut rest = document;
    while let Some(mark) = rest.find(MARK) {
        let from = rest[..mark].rfind('<').context("data-bundle stands in no element")?;
        let to = mark + rest[mark..].find('>').context("an element with data-bundle has no end")? + 1;
        text.push_str(&rest[..from]);
        text.push_str(&replaced(&rest[from..to], folder, out, names)?);
        rest = &rest[to..];
    }
    text.push_str(rest);
    Ok(text)
}

fn replaced(element: &str, folder: &Path, out: &Path, names: &Names) -> Result<String> {
    let kind = attribute(element, "data-bundle").unwrap_or_default();
    if kind == "program" {
        return Ok(start(names));
    }
    let href = attribute(element, "href").with_context(|| format!("{element} names no file"))?;
    let path = folder.join(href);
    let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    match kind {
        "inline" => {
            let content =
                String::from_utf8(content).with_context(|| format!("{} is no text", path.display()))?;
            let is_style = path.extension().is_some_and(|extension| extension == "css");
            Ok(if is_style { format!("<style>{content}</style>") } else { content })
        }
        "file" => {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).context("a file without a name")?;
            let extension =
                path.extension().and_then(|e| e.to_str()).context("a file without an extension")?;
            let name = format!("{stem}-{}.{extension}", digest(&content));
            fs::write(out.join(&name), content).with_context(|| format!("writing {name}"))?;
            let element = element.replacen(&format!("{MARK}{kind}\""), "", 1);
            Ok(element.replacen(&format!("href=\"{href}\""), &format!("href=\"./{name}\""), 1))
        }
        other => bail!("{element}: unknown data-bundle {other:?}; there are inline, file and program"),
    }
}

/// What loads and starts the page's program: asked for before the style sheets, since browsers fetch six files at a time. The
/// files that it loads later are named for a report, which holds them all; what is missing is named for the page.
fn start(names: &Names) -> String {
    let Names { script, program, parts, without } = names;
    let parts = parts.join(" ");
    let without = without.as_ref().map_or_else(String::new, |program| {
        format!("<meta name=\"radixscope-without\" content=\"{program}\">\n    ")
    });
    format!(
        r#"<link rel="modulepreload" href="./{script}" crossorigin="anonymous">
    <link rel="preload" href="./{program}" crossorigin="anonymous" as="fetch" type="application/wasm">
    <meta name="radixscope-parts" content="{parts}">
    {without}<script type="module">
      import init from './{script}';
      await init({{ module_or_path: './{program}' }});
    </script>"#
    )
}

fn attribute<'e>(element: &'e str, name: &str) -> Option<&'e str> {
    let (_, after) = element.split_once(&format!(" {name}=\""))?;
    after.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_elements_are_replaced_and_others_stay() {
        let folder = std::env::temp_dir().join(format!("radixscope-bundle-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.css"), "a{}").unwrap();
        fs::write(folder.join("b.html"), "<p>b</p>").unwrap();
        let (script, program) = ("page-0.js".to_owned(), "page-0_bg.wasm".to_owned());
        let names = Names { script, program, parts: Vec::new(), without: None };
        let document = "<base href=\"./\"><link data-bundle=\"inline\" href=\"a.css\" /><link data-bundle=\"program\" />\
             <link data-bundle=\"file\" rel=\"stylesheet\" href=\"a.css\" /><link data-bundle=\"inline\" href=\"b.html\" />";
        let text = assembled(document, &folder, &folder, &names).unwrap();
        let digest = digest(b"a{}");
        assert!(text.starts_with(
            "<base href=\"./\"><style>a{}</style><link rel=\"modulepreload\" href=\"./page-0.js\""
        ));
        let ends = format!("</script><link rel=\"stylesheet\" href=\"./a-{digest}.css\" /><p>b</p>");
        assert!(text.ends_with(&ends), "{text}");
        assert!(folder.join(format!("a-{digest}.css")).is_file());
        assert!(!text.contains("radixscope-without"), "{text}");
        let without = Names { without: Some("tokenizer".to_owned()), ..names };
        let text = assembled(document, &folder, &folder, &without).unwrap();
        assert!(text.contains("<meta name=\"radixscope-without\" content=\"tokenizer\">"), "{text}");
        let unknown = "<link data-bundle=\"else\" href=\"a.css\">";
        assert!(assembled(unknown, &folder, &folder, &without).is_err());
        assert!(
            assembled("<link data-bundle=\"file\">", &folder, &folder, &without).is_err(),
            "names no file"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
