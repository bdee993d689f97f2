//! Words that a reader would have to look up: none may stand in a public name, and none in a text on the screen.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use proc_macro2::{TokenStream, TokenTree};

/// Words of public names, and what to write instead.
const IN_NAMES: [(&str, &str); 17] = [
    ("ages", "block_lifetime"),
    ("dearer", "higher_cost"),
    ("erased", "what is kept"),
    ("given", "criteria, or what it is"),
    ("hear", "receive"),
    ("heard", "received"),
    ("hears", "receives"),
    ("journal", "RecordSink"),
    ("said", "reported, or what it is"),
    ("scene", "workload, or what it is"),
    ("sight", "what is visible"),
    ("spread", "in_flight"),
    ("told", "reported, or what it is"),
    ("tells", "reports"),
    ("troubles", "fault_events"),
    ("unheard", "not received"),
    ("verdict", "CacheOutcome, or what it is"),
];

/// Phrases of texts on the screen, in findings and on the command line, and what to write instead.
const IN_TEXTS: [(&str, &str); 44] = [
    ("by the engine's word", "reported by the engine"),
    ("cannot be meant", "invalid"),
    ("dearer", "higher cost"),
    ("let go", "clear"),
    ("not enough known", "no data"),
    ("could not judge", "no data"),
    ("tpot", "ITL"),
    ("wait for a place", "queued"),
    ("heard", "received"),
    ("held by nobody", "evicted parent"),
    ("lost affinity", "better-cached worker skipped"),
    ("no prompt told", "prompts not visible"),
    ("still run", "in flight"),
    ("believed to be", "estimated"),
    ("choice and end", "tracked from decisions"),
    ("choices and ends", "tracked from decisions"),
    ("greater share of the memory", "KV memory fraction"),
    ("unheard", "not received"),
    ("wanted again", "used again"),
    ("anew", "again"),
    ("anybody", "who or what it is"),
    ("as blind as", "routing ignores what is cached"),
    ("believes", "estimates, counts"),
    ("broke off", "failed, was lost"),
    ("by turns", "round-robin"),
    ("carries far more", "has far more"),
    ("emptiest", "least loaded"),
    ("fullest", "most loaded"),
    ("got back", "recovered"),
    ("guesses", "predicts"),
    ("handed over", "transferred"),
    ("held by", "cached on"),
    ("are in the picture", "are shown"),
    ("kept for re-use", "cached, evictable"),
    ("the ledger", "Decisions"),
    ("likeliest worker", "most likely"),
    ("margin unknown", "cost gap unknown"),
    ("nobody tells", "not reported"),
    ("is not kept any", "is no longer retained"),
    ("pick it out", "select it"),
    ("picked out", "selected"),
    ("tells", "reports"),
    ("told", "reported"),
    ("would tell", "reports it"),
];

/// Where public names are looked at.
const SOURCES: [&str; 3] = ["core", "server/src", "app/src"];
/// Where texts are looked at.
const TEXTS: [&str; 6] = [
    "app/src/view",
    "core/insight/src",
    "core/state/src/cluster",
    "core/export/src",
    "server/src/cli",
    "server/src/http",
];
/// Words after `pub` that a name follows.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];

/// Looks through the checkout at `root`.
///
/// # Errors
/// A file cannot be read, or a word stands where it must not: all of them are named.
pub(super) fn check(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for file in files(root, &SOURCES, "rs")? {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file);
        let has_texts = TEXTS.iter().any(|folder| name.starts_with(folder)) && !is_test(name);
        let Ok(tokens) = text.parse::<TokenStream>() else { bail!("{} is no Rust", name.display()) };
        let mut words = Vec::new();
        look(tokens, has_texts, &mut words);
        found.extend(words.into_iter().map(|word| format!("{}: {word}", name.display())));
    }
    for file in files(root, &TEXTS, "csv")? {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        found.extend(text.lines().filter_map(in_text).map(|word| format!("{name}: {word}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!("words that need a glossary:\n{}", found.join("\n"))
}

fn is_test(name: &Path) -> bool {
    name.components().any(|part| part.as_os_str() == "tests")
        || name.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
}

/// Files of a kind that belong to libraries and programs: what lies below a folder `src`.
fn files(root: &Path, folders: &[&str], kind: &str) -> Result<Vec<PathBuf>> {
    let mut todo: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let mut files = Vec::new();
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let is_wanted = path.extension().is_some_and(|extension| extension == kind)
                && path.components().any(|part| part.as_os_str() == "src");
            if path.is_dir() {
                todo.push(path);
            } else if is_wanted {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn look(tokens: TokenStream, has_texts: bool, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Ident(word) if word == "pub" => {
                if let Some(name) = name_after(&tokens[at + 1..]) {
                    found.extend(in_name(&name));
                }
            }
            TokenTree::Literal(text) if has_texts && !is_doc(&tokens[..at]) => {
                found.extend(in_text(&text.to_string()));
            }
            TokenTree::Group(group) => look(group.stream(), has_texts, found),
            _ => {}
        }
    }
}

/// Whether what follows `before` is a comment for those who read the code: the compiler makes it `doc = "…"`.
fn is_doc(before: &[TokenTree]) -> bool {
    matches!(before, [TokenTree::Ident(name), TokenTree::Punct(_)] if name == "doc")
}

/// The name that `pub` makes public; what is visible in parts of a crate only is not.
fn name_after(tokens: &[TokenTree]) -> Option<String> {
    let mut words = tokens.iter().map_while(|token| match token {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    words.find(|word| ITEMS.contains(&word.as_str()))?;
    words.find(|word| !ITEMS.contains(&word.as_str()))
}

fn in_name(name: &str) -> Option<String> {
    let parts = parts(name);
    let (word, instead) = IN_NAMES.iter().find(|(word, _)| parts.iter().any(|part| part == word))?;
    Some(format!("`{name}`: not \"{word}\" but {instead}"))
}

/// Words of a name in snake case, camel case or capitals.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
        if letter != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

fn in_text(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    // Addresses, codes and class names are no texts.
    if !lower.contains(' ') && text != "\"TPOT\"" {
        return None;
    }
    let (phrase, instead) = IN_TEXTS.iter().find(|(phrase, _)| has_words(&lower, phrase))?;
    Some(format!("{text}: not \"{phrase}\" but \"{instead}\""))
}

/// Whether `phrase` stands in `text` as whole words.
fn has_words(text: &str, phrase: &str) -> bool {
    let is_edge =
        |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
    text.match_indices(phrase).any(|(at, _)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::{look, parts};

    fn found(source: &str) -> Vec<String> {
        let mut found = Vec::new();
        look(source.parse::<TokenStream>().unwrap(), true, &mut found);
        found
    }

    #[test]
    fn public_names_are_found_in_every_spelling_and_private_ones_are_not() {
        assert_eq!(parts("KvHitRATE_of9Lives"), ["kv", "hit", "rate", "of9", "lives"]);
        assert_eq!(
            found("pub struct HeardEvents; pub const fn is_told() {} mod a { pub mod scene; }").len(),
            3
        );
        assert!(
            found("pub(crate) struct Heard; fn told() {} pub fn scenery() {} struct S { pub told: u8 }")
                .is_empty()
        );
    }

    #[test]
    fn texts_are_found_by_whole_words() {
        assert_eq!(found("fn f() { g(\"No worker was heard\"); }").len(), 1);
        assert!(found("fn f() { g(\"tpot_slo\"); h(\"somebody retells\"); i(\"ledger-row\"); }").is_empty());
    }
}
