//! Token ids of a text by the reader's own `tokenizer.json`, with the library that Dynamo's frontend uses too. What is
//! here runs on the host as in the browser; `bin/tokenizer.rs` is the Web Worker around it. Knows nothing of blocks and hashes.
#![forbid(unsafe_code)]

mod head;
#[cfg(target_arch = "wasm32")]
pub mod serve;

use radixscope_tokenizer_messages::{MAX_FILE_BYTES, MAX_TEXT_BYTES, MAX_TOKENS, Summary, Text};
use sha2::{Digest as _, Sha256};
use tokenizers::{ModelWrapper, Tokenizer};

use crate::head::Head;

/// Special tokens that a summary names.
const MAX_SHOWN: usize = 12;
/// Characters of one special token, and of what the library says, that are shown.
const MAX_SHOWN_CHARS: usize = 200;
/// Longest run of white space. The patterns that cut a text into words step back over such runs character by character;
/// after a million steps the regular expressions of WebAssembly give up, the library does not say so, and the ids are wrong.
const MAX_WHITE_SPACE: usize = 100_000;

/// A tokenizer that was read.
#[derive(Debug)]
pub struct Loaded(Tokenizer);

impl Loaded {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// As text: the file is too large, or not a `tokenizer.json`, or needs what the library does not have.
    pub fn read(file: &[u8]) -> Result<(Self, Summary), String> {
        let file_bytes = file.len() as u64;
        check_size(file_bytes)?;
        let head = Head::read(file)?;
        let tokenizer = Tokenizer::from_bytes(file)
            .map_err(|error| format!("The tokenizer cannot be built: {}", shown(&error.to_string())))?;
        let mut special: Vec<_> =
            tokenizer.get_added_tokens_decoder().into_iter().filter(|(_, token)| token.special).collect();
        special.sort_unstable_by_key(|(id, _)| *id);
        let model = match tokenizer.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
            ModelWrapper::Unigram(_) => "Unigram",
        };
        let summary = Summary {
            file_bytes,
            sha256: Sha256::digest(file).into(),
            vocabulary_tokens: tokenizer.get_vocab_size(true) as u64,
            model: model.to_owned(),
            normalizer: head.normalizer(),
            pre_tokenizer: head.pre_tokenizer(),
            post_processor: head.post_processor(),
            special_tokens: special.iter().take(MAX_SHOWN).map(|(_, token)| shown(&token.content)).collect(),
            special_tokens_total: special.len() as u64,
            truncates_after_tokens: tokenizer.get_truncation().map(|truncation| truncation.max_length as u64),
            pads: tokenizer.get_padding().is_some(),
        };
        Ok((Self(tokenizer), summary))
    }

    /// The token ids of a text.
    ///
    /// # Errors
    /// As text: the text or what comes of it is too long, or the library gives up.
    pub fn tokens(&self, text: &Text) -> Result<Vec<u32>, String> {
        let Text { text, add_special_tokens } = text;
        if text.len() > MAX_TEXT_BYTES {
            let (bytes, most) = (text.len(), MAX_TEXT_BYTES);
            return Err(format!("The text has {bytes} bytes; at most {most} are tokenized."));
        }
        if longest_white_space(text) > MAX_WHITE_SPACE {
            let most = MAX_WHITE_SPACE / 1000;
            return Err(format!(
                "The text has more than {most} thousand spaces or line ends in a row; it cannot be cut into words reliably."
            ));
        }
        // Positions in the text are not requested: without them it is faster, and the ids are the same.
        let encoding = self
            .0
            .encode_fast(text.as_str(), *add_special_tokens)
            .map_err(|error| format!("The text cannot be tokenized: {}", shown(&error.to_string())))?;
        let ids = encoding.get_ids();
        if ids.len() > MAX_TOKENS {
            return Err(format!("The text has {} tokens; at most {MAX_TOKENS} are shown.", ids.len()));
        }
        Ok(ids.to_vec())
    }
}

/// Whether a file of that size is read; checked before its bytes are.
///
/// # Errors
/// As text, if not.
pub fn check_size(file_bytes: u64) -> Result<(), String> {
    if file_bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(format!("The file has {} MiB; at most {} MiB are read.", mib(file_bytes), mib(MAX_FILE_BYTES)))
}

/// Characters of the longest run of white space.
fn longest_white_space(text: &str) -> usize {
    let runs = text.chars().scan(0, |run, c| {
        *run = if c.is_whitespace() { *run + 1 } else { 0 };
        Some(*run)
    });
    runs.max().unwrap_or_default()
}

/// The beginning of a text of others.
fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
