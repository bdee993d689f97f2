//! What the page and its tokenizer worker say to each other, in postcard. The file itself is no message: the page hands
//! the browser's handle of it over, and its bytes are only ever in the worker.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Largest `tokenizer.json` that is read. The largest published ones have about half of it.
pub const MAX_FILE_BYTES: u64 = 64 << 20;
/// Longest text: beyond any model's context, and tokenized in seconds.
pub const MAX_TEXT_BYTES: usize = 4 << 20;
/// Most token ids of a response. A byte of text gives at most one token, unless a normalizer makes the text longer.
pub const MAX_TOKENS: usize = 4 << 20;

/// Text to be tokenized by the file loaded last.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Text {
    /// The text, at most [`MAX_TEXT_BYTES`].
    pub text: String,
    /// Whether the file's post-processor adds its special tokens, as a begin-of-text token. Dynamo adds none.
    pub add_special_tokens: bool,
}

/// What the worker says. Each file and each text has one response, in order; the errors are texts for the reader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TokenizerResponse {
    /// It has started and listens; what was sent before is lost.
    Ready,
    /// Of a file.
    Loaded(Result<Summary, String>),
    /// Of a [`Text`]: its token ids.
    Tokens(Result<Vec<u32>, String>),
}

/// What a `tokenizer.json` says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Size of the file.
    pub file_bytes: u64,
    /// SHA-256 of the file.
    pub sha256: [u8; 32],
    /// Tokens that it knows, added ones included.
    pub vocabulary_tokens: u64,
    /// Kind of model, as `BPE`.
    pub model: String,
    /// What it does to the text first; `None` for nothing.
    pub normalizer: Option<String>,
    /// How it cuts the text into words; `None` for not at all.
    pub pre_tokenizer: Option<String>,
    /// What it adds in the end; `None` for nothing.
    pub post_processor: Option<String>,
    /// The first special tokens, as they are written in a text.
    pub special_tokens: Vec<String>,
    /// How many special tokens there are.
    pub special_tokens_total: u64,
    /// The file cuts every text after so many tokens.
    pub truncates_after_tokens: Option<u64>,
    /// The file fills short texts up with padding.
    pub pads: bool,
}
