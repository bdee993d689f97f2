//! One program: cut at its split points, given its JavaScript side, freed of what only tools read.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest as _, Sha256};
use wasm_bindgen_cli_support::Bindgen;

/// The module that loads chunks, under the name that the first program imports it by.
const LOADER: &str = "./__wasm_split.js";
/// What several parts share, in one file.
const SHARED: &str = "shared";
/// How the splitter's names of shared chunks begin.
const SHARED_CHUNK: &str = "chunk_";
/// Bytes of a digest in a file's name: no two files of a page share one by chance.
const DIGEST_BYTES: usize = 8;

/// A program, ready to be written.
pub(crate) struct Program {
    name: String,
    script: String,
    wasm: Vec<u8>,
    /// What is loaded when it is needed, each under its name without ending.
    chunks: Vec<(String, Vec<u8>)>,
}

/// What the document calls the page's program.
pub(crate) struct Names {
    pub(crate) script: String,
    pub(crate) program: String,
    /// The files that the script loads later.
    pub(crate) parts: Vec<String>,
    /// The program of a Web Worker that the page does without.
    pub(crate) without: Option<String>,
}

impl Program {
    /// A program in one piece.
    ///
    /// # Errors
    /// It is none, or was linked with another version of wasm-bindgen.
    pub(crate) fn whole(name: &str, program: &[u8]) -> Result<Self> {
        let (script, wasm) = bound(name, program.to_vec(), false)?;
        Ok(Self { name: name.to_owned(), script, wasm, chunks: Vec::new() })
    }

    /// A program that is cut at its split points. It has to be linked with `--emit-relocs` and its names.
    ///
    /// # Errors
    /// Those of [`Program::whole`], and what cannot be cut.
    pub(crate) fn split(name: &str, program: &[u8]) -> Result<Self> {
        let folder = tempfile::tempdir().context("a folder for the chunks")?;
        let main = folder.path().join("main.wasm");
        let main_module = format!("./{name}.js");
        let mut options = wasm_split_cli_support::Options::new(program);
        options.output_dir = folder.path();
        options.main_out_path = &main;
        options.link_name = LOADER;
        options.main_module = &main_module;
        options.emit_dwarf = false;
        let split = wasm_split_cli_support::transform(options)
            .map_err(|error| anyhow!("{error:#}"))
            .with_context(|| format!("cutting {name}"))?;
        let mut chunks = Vec::new();
        for path in split.split_modules {
            let stem = path.file_stem().and_then(|stem| stem.to_str()).context("a chunk without a name")?;
            let chunk = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            chunks.push((stem.to_owned(), without_custom_sections(&chunk)?));
        }
        chunks.sort();
        let loader =
            fs::read_to_string(folder.path().join(LOADER)).context("reading the loader of chunks")?;
        let (script, wasm) = bound(name, fs::read(&main).context("reading the first program")?, true)?;
        Ok(Self { name: name.to_owned(), script: with_loader(&script, &loader)?, wasm, chunks })
    }

    /// Writes the program and its chunks under names with digests.
    ///
    /// The splitter makes a chunk of what each combination of parts shares: dozens, most of a few kilobytes. They travel as one
    /// file, [`SHARED`], so that a part takes two requests.
    pub(crate) fn write_with_digests(self, out: &Path) -> Result<Names> {
        let (mut files, mut parts) = (Vec::new(), Vec::new());
        let (mut shared, mut slices) = (Vec::new(), Vec::new());
        for (stem, chunk) in &self.chunks {
            if !self.script.contains(&format!("fetchChunk(\"{stem}.wasm\")")) {
                bail!("the script does not load the chunk {stem}");
            }
            if stem.starts_with(SHARED_CHUNK) {
                let from = shared.len();
                shared.extend_from_slice(chunk);
                slices.push(format!("\"{stem}.wasm\": [{from}, {}]", shared.len()));
            } else {
                let name = format!("{stem}-{}.wasm", digest(chunk));
                write(out, &name, chunk)?;
                files.push(format!("\"{stem}.wasm\": \"{name}\""));
                parts.push(name);
            }
        }
        let shared_name = format!("{SHARED}-{}.bin", digest(&shared));
        write(out, &shared_name, &shared)?;
        parts.push(shared_name.clone());
        let head = format!(
            "const chunkFiles = {{ {} }};\nconst sharedFile = \"{shared_name}\";\nconst sharedChunks = {{ {} }};\n",
            files.join(", "),
            slices.join(", ")
        );
        let program = format!("{}-{}_bg.wasm", self.name, digest(&self.wasm));
        write(out, &program, &self.wasm)?;
        let script = format!("{head}{}", self.script);
        let name = format!("{}-{}.js", self.name, digest(script.as_bytes()));
        write(out, &name, script.as_bytes())?;
        Ok(Names { script: name, program, parts, without: None })
    }

    /// Writes the program, and a script that a Web Worker starts it with.
    pub(crate) fn write_as_worker(&self, out: &Path) -> Result<()> {
        let name = &self.name;
        write(out, &format!("{name}.js"), self.script.as_bytes())?;
        write(out, &format!("{name}_bg.wasm"), &self.wasm)?;
        let loader = format!(
            "import init from './{name}.js';\nawait init({{ module_or_path: './{name}_bg.wasm' }});\n"
        );
        write(out, &format!("{name}_loader.js"), loader.as_bytes())
    }
}

fn write(out: &Path, name: &str, content: &[u8]) -> Result<()> {
    fs::write(out.join(name), content).with_context(|| format!("writing {name}"))
}

/// What a file's name holds of its content, hexadecimal.
pub(crate) fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// A program with its JavaScript side. `has_chunks`: what they link to stays exported.
fn bound(name: &str, program: Vec<u8>, has_chunks: bool) -> Result<(String, Vec<u8>)> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_bytes(name, program)
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .keep_lld_exports(has_chunks);
    let mut output = bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate_output())
        .with_context(|| format!("binding {name}"))?;
    let mut snippets = output.snippets().iter().filter(|(_, scripts)| !scripts.is_empty()).map(|(of, _)| of);
    if let Some(of) = snippets.next().or(output.local_modules().keys().next()) {
        bail!("{name} brings JavaScript of its own, which nothing here copies: {of}");
    }
    let wasm = output.wasm_mut().emit_wasm();
    Ok((output.js().to_owned(), without_custom_sections(&wasm)?))
}

/// How the script gets a chunk: from the server, or from the page where that is one file (`radixscopeFile`).
const FETCH: &str = "\
const fetchFile = (name) =>
    globalThis.radixscopeFile ? globalThis.radixscopeFile(name) : fetch(new URL(name, import.meta.url));
let shared = undefined;
async function fetchShared() {
    const response = await fetchFile(sharedFile);
    if (!response.ok) throw new Error(`${sharedFile}: ${response.status}`);
    return response.arrayBuffer();
}
async function fetchChunk(name) {
    const slice = sharedChunks[name];
    if (!slice) return fetchFile(chunkFiles[name]);
    shared ??= fetchShared();
    try {
        const headers = { 'content-type': 'application/wasm' };
        return new Response((await shared).slice(...slice), { headers });
    } catch (error) {
        // Asked for again by the next try.
        shared = undefined;
        throw error;
    }
}
";

/// The script with the loader of chunks inside: one file, since in a page that is one file no script can name another.
///
/// # Errors
/// One of them has another form than their makers gave them so far.
fn with_loader(script: &str, loader: &str) -> Result<String> {
    let mut text = FETCH.to_owned();
    let mut loaders = Vec::new();
    for line in loader.lines() {
        if line.starts_with("import { initSync }") {
            continue;
        }
        let line = match line.strip_prefix("export const ") {
            Some(rest) => {
                loaders.push(rest.split(' ').next().unwrap_or_default().to_owned());
                format!("const {rest}")
            }
            None => line.to_owned(),
        };
        let line = line.replace("fetch(new URL(\"./", "fetchChunk(\"").replace(", import.meta.url))", ")");
        text.push_str(&line);
        text.push('\n');
    }
    if loaders.is_empty() {
        bail!("the page's program has no split points");
    }
    text.push_str(&format!("const chunkLoaders = {{ {} }};\n", loaders.join(", ")));
    let mut is_linked = false;
    for line in script.lines() {
        let line = line.trim_end();
        if line.starts_with("import * as import") && line.contains(LOADER) {
            continue;
        }
        if line.trim_start().starts_with(&format!("\"{LOADER}\": import")) {
            // The script names the same module once for each of its functions.
            if !std::mem::replace(&mut is_linked, true) {
                text.push_str(&format!("        \"{LOADER}\": chunkLoaders,\n"));
            }
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    if !is_linked || text.matches(LOADER).count() != 1 {
        bail!("the script does not link to its chunks as expected");
    }
    Ok(text)
}

/// A program without custom sections, which only tools read: wasm-bindgen describes each closure in words and says who made
/// the program.
fn without_custom_sections(program: &[u8]) -> Result<Vec<u8>> {
    let mut bare = wasm_encoder::Module::new();
    for payload in wasmparser::Parser::new(0).parse_all(program) {
        let payload = payload.context("reading a program")?;
        if matches!(&payload, wasmparser::Payload::CustomSection(_)) {
            continue;
        }
        if let Some((id, range)) = payload.as_section() {
            bare.section(&wasm_encoder::RawSection {
                id,
                data: &program[range.start as usize..range.end as usize],
            });
        }
    }
    Ok(bare.finish())
}

#[cfg(test)]
mod tests {
    use super::without_custom_sections;

    #[test]
    fn what_only_tools_read_is_left_out_of_a_program() {
        // A type, names before and after it, and another custom section.
        let header = b"\0asm\x01\0\0\0";
        let (names, types) = (b"\x00\x06\x04name\x01", b"\x01\x04\x01\x60\0\0");
        let other = b"\x00\x06\x04made\x01";
        let program = [&header[..], names, types, other, names].concat();
        assert_eq!(without_custom_sections(&program).expect("a program"), [&header[..], types].concat());
        assert!(without_custom_sections(&program[..20]).is_err(), "cut");
        assert!(without_custom_sections(b"no program").is_err());
    }
}
