//! HTML reports: one file with the page, its programs and a recording, which opens without a server. The recording is written
//! between head and tail. Its policy, in a `<meta>`, allows its own scripts by hash and programs from the data blocks in the
//! file. It sends no requests.

use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::write::EncoderWriter;
use bytes::Bytes;
use radixscope_compress::{Effort, gzip};

use super::assets::Assets;
use super::page;

/// The script that starts the page.
const BOOT: &str = include_str!("boot.js");
/// The chart library; the name contains the version.
const CHARTS: &str = "vendor/echarts-5.6.0.min.js";
/// Programs for Web Workers. The tokenizer is omitted: it is as large as all others, and recordings contain no prompts.
const WORKERS: [&str; 2] = ["player", "worker"];

/// The element that names the parts of the page's program.
const PARTS: &str = "<meta name=\"radixscope-parts\" ";

/// Why a report cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    /// The app is not in this build.
    #[error(
        "this build of Radixscope does not contain the page ({0} is missing); build it with cargo xtask dist"
    )]
    NoPage(String),
    /// The page lacks an expected element.
    #[error("no report can be created: the page has no {0}")]
    Unexpected(&'static str),
}

/// Query and fragment of a page's URL, which select what it shows.
#[derive(Default)]
pub(crate) struct View(String);

impl View {
    /// Maximum length in bytes.
    const MAX_BYTES: usize = 2_048;

    /// `None`: not a valid query or fragment.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let is_plain =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`');
        let begins = text.is_empty() || text.starts_with(['?', '#']);
        let is_ours = begins && text.len() <= Self::MAX_BYTES && text.bytes().all(is_plain);
        is_ours.then(|| Self(text.to_owned()))
    }
}

/// As an attribute's value.
impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.replace('&', "&amp;"))
    }
}

/// Writes what it is given in base64.
type Encoded<W> = EncoderWriter<'static, GeneralPurpose, W>;

/// The report before and after the recording.
pub(crate) struct IncidentReport {
    head: String,
    tail: String,
}

impl IncidentReport {
    /// Around a recording that is called `name`; it opens with `view`, the query and the fragment of the page's address.
    ///
    /// # Errors
    /// The app is not in this build.
    pub(crate) fn around(assets: &Assets, name: &str, view: &View) -> Result<Self, ReportError> {
        let file = |path: &str| {
            assets.plain(path).ok_or_else(|| ReportError::NoPage(path.to_owned())).map(|bytes| bytes.to_vec())
        };
        // The server already has them compressed; compressing again would dominate the time.
        let packed = |path: &str| {
            let is_there =
                || assets.plain(path).and_then(|plain| gzip(&plain, Effort::Least)).map(Bytes::from);
            assets.gzip(path).or_else(is_there).ok_or_else(|| ReportError::NoPage(path.to_owned()))
        };
        let text = |path: &str| Ok(String::from_utf8_lossy(&file(path)?).into_owned());
        let mut document = text("index.html")?;
        let mut programs = Vec::new();
        while let Some((from, to)) = element(&document, "<link ", ">") {
            let tag = document[from..to].to_owned();
            let path = attribute(&tag, "href").trim_start_matches("./").to_owned();
            let instead = match attribute(&tag, "rel") {
                "stylesheet" => ["<style>", &text(&path)?, "</style>"].concat(),
                "icon" => {
                    let icon = STANDARD.encode(file(&path)?);
                    // Not `<link `: it stays.
                    format!("<link\nrel=\"icon\" href=\"data:image/svg+xml;base64,{icon}\">")
                }
                "modulepreload" => {
                    programs.push(("page.js".to_owned(), packed(&path)?));
                    String::new()
                }
                "preload" => {
                    programs.push(("page.wasm".to_owned(), packed(&path)?));
                    String::new()
                }
                _ => String::new(),
            };
            document.replace_range(from..to, &instead);
        }
        if programs.len() != 2 {
            return Err(ReportError::Unexpected("program"));
        }
        let (from, to) = element(&document, PARTS, ">").ok_or(ReportError::Unexpected("parts"))?;
        for part in attribute(&document[from..to], "content").split_ascii_whitespace() {
            programs.push((part.to_owned(), packed(part)?));
        }
        for worker in WORKERS {
            for name in [format!("{worker}.js"), format!("{worker}_bg.wasm")] {
                let program = packed(&name)?;
                programs.push((name, program));
            }
        }
        programs.push(("charts.js".to_owned(), packed(CHARTS)?));
        for (begin, end, what) in [
            ("<base ", ">", "base"),
            ("<script type=\"module\">", "</script>", "start"),
            ("<noscript>", "</noscript>", "words for who runs no scripts"),
        ] {
            let (from, to) = element(&document, begin, end).ok_or(ReportError::Unexpected(what))?;
            document.replace_range(from..to, "");
        }
        let body = document.find("<body>").ok_or(ReportError::Unexpected("body"))?;
        let marks = text("nav.svg")?.replace(" id=\"", " id=\"mark-").replacen(
            "<svg ",
            "<svg style=\"display: none\" ",
            1,
        );
        let begin = format!(
            "<body data-recording=\"{name}\" data-charts=\"{CHARTS}\" data-view=\"{view}\">{marks}<noscript><p>This report of \
             Radixscope needs JavaScript and WebAssembly.</p></noscript>"
        );
        document.replace_range(body..body + "<body>".len(), &begin);
        let boot = format!("<script type=\"module\">{BOOT}</script>");
        let policy = format!(
            "default-src 'none'; script-src{} blob: 'wasm-unsafe-eval'; worker-src blob:; \
             style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'",
            page::script_hashes(&[document.as_str(), &boot].concat())
        );
        let meta = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
        let head = document.find("<meta charset").ok_or(ReportError::Unexpected("head"))?;
        let after = head + document[head..].find('>').map_or(0, |len| len + 1);
        document.insert_str(after, &meta);
        let end = document.rfind("</body>").ok_or(ReportError::Unexpected("end"))?;
        let tail = ["</script>", &boot, &document[end..]].concat();
        document.truncate(end);
        for (name, program) in programs {
            begin_block(&mut document, &name);
            STANDARD.encode_string(program, &mut document);
            document.push_str("</script>\n");
        }
        begin_block(&mut document, "recording");
        Ok(Self { head: document, tail })
    }

    /// Writes the page to `to`; `recording` writes the recording.
    ///
    /// # Errors
    /// The report cannot be written.
    pub(crate) fn write<W: Write, E: From<io::Error>>(
        &self,
        mut to: W,
        recording: impl FnOnce(Encoded<W>) -> Result<Encoded<W>, E>,
    ) -> Result<W, E> {
        to.write_all(self.head.as_bytes())?;
        let mut encoded = recording(EncoderWriter::new(to, &STANDARD))?;
        let mut to = encoded.finish()?;
        to.write_all(self.tail.as_bytes())?;
        to.flush()?;
        Ok(to)
    }
}

/// Begins a data block: a script element of a type that browsers do not run.
fn begin_block(document: &mut String, name: &str) {
    document.push_str("<script type=\"text/plain\" id=\"file:");
    document.push_str(name);
    document.push_str("\">");
}

/// Range of the first element with this begin and end.
fn element(document: &str, begin: &str, end: &str) -> Option<(usize, usize)> {
    let from = document.find(begin)?;
    let len = document[from..].find(end)?;
    Some((from, from + len + end.len()))
}

/// An attribute of a tag; empty: it has none of that name.
fn attribute<'t>(tag: &'t str, name: &str) -> &'t str {
    let after = tag.split_once(&format!(" {name}=\"")).map_or("", |(_, after)| after);
    after.split_once('"').map_or("", |(value, _)| value)
}
