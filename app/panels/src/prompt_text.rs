//! A prompt as text and the `tokenizer.json` that makes token ids of it: what the form says of both. Knows nothing of what is done with
//! the ids.

use radixscope_tokenizer_messages::{MAX_TEXT_BYTES, Summary};

use crate::format;

/// Digits of a digest that are shown.
const SHORT_DIGEST: usize = 12;

/// The file in use.
#[derive(Clone, PartialEq, Debug)]
pub enum FileState {
    /// No file.
    None,
    /// Its name.
    Loading(String),
    /// Its name and what it says of itself.
    Ready(String, Summary),
    /// Why it cannot be used.
    Failed(String),
}

impl FileState {
    /// Whether texts can be tokenized.
    pub const fn is_ready(&self) -> bool {
        matches!(self, FileState::Ready(..))
    }

    /// What the button that takes a file says.
    pub const fn button(&self) -> &'static str {
        if self.is_ready() { "Another tokenizer.json" } else { "Choose a tokenizer.json" }
    }

    /// Where token ids come from, as text.
    pub fn describe(&self, tokens: u64, bytes: u64) -> String {
        let (tokens, bytes) = (format::plural(tokens, "token", "tokens"), format::count(bytes));
        match self {
            FileState::Ready(name, summary) => {
                let digest = short(&hex(summary));
                format!(
                    "{tokens} of a text of {bytes} bytes, by {name} ({}, SHA-256 {digest})",
                    summary.model
                )
            }
            _ => format!("{tokens} of a text of {bytes} bytes"),
        }
    }
}

/// What came of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counted {
    /// There is no file or no text.
    Nothing,
    /// Under way.
    Counting,
    /// So many.
    Tokens {
        /// Tokens of the text.
        tokens: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// Why not.
    Failed(String),
}

/// What is said below the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountText {
    /// Why there are no tokens yet.
    Note(&'static str),
    /// The number of tokens, and of what.
    Tokens(String, String),
    /// What is wrong.
    Fault(String),
}

impl Counted {
    /// As text.
    pub fn to_text(&self, file: &FileState) -> CountText {
        match self {
            Counted::Nothing if file.is_ready() => CountText::Note("No text yet"),
            Counted::Nothing => CountText::Note("No tokenizer yet"),
            Counted::Counting if !file.is_ready() => CountText::Note("No tokenizer yet"),
            Counted::Counting => CountText::Note("Counting"),
            Counted::Tokens { tokens, bytes } => CountText::Tokens(
                format::plural(*tokens, "token", "tokens"),
                format!(" of a text of {} bytes", format::count(*bytes)),
            ),
            Counted::Failed(why) => CountText::Fault(why.clone()),
        }
    }

    /// Of a text that has more bytes than are tokenized.
    pub fn too_long(bytes: usize) -> Option<Self> {
        let most = format::count(MAX_TEXT_BYTES as u64);
        let text =
            || format!("The text has {} bytes; at most {most} are tokenized.", format::count(bytes as u64));
        (bytes > MAX_TEXT_BYTES).then(|| Self::Failed(text()))
    }
}

/// What a file says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileFacts {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: String,
    /// SHA-256, all digits.
    pub digest: String,
    /// The first digits of it.
    pub short_digest: String,
    /// Term and value.
    pub rows: [(&'static str, String); 5],
    /// What makes its tokens others than those of the model.
    pub faults: Vec<String>,
}

impl FileFacts {
    /// Of a file that was read.
    pub fn of(name: &str, summary: &Summary) -> Self {
        let none = || "none".to_owned();
        let special = match summary.special_tokens_total - summary.special_tokens.len() as u64 {
            0 if summary.special_tokens.is_empty() => none(),
            0 => summary.special_tokens.join("  "),
            more => format!("{}  and {} more", summary.special_tokens.join("  "), format::count(more)),
        };
        let cut = summary
            .truncates_after_tokens
            .map(|tokens| format!("This file cuts every text after {} tokens.", format::count(tokens)));
        let pads = summary.pads.then(|| "This file fills short texts up with padding tokens.".to_owned());
        let digest = hex(summary);
        Self {
            name: name.to_owned(),
            bytes: format::count(summary.file_bytes),
            short_digest: short(&digest),
            digest,
            rows: [
                ("Model", format!("{}, {} tokens", summary.model, format::count(summary.vocabulary_tokens))),
                ("Normalizer", summary.normalizer.clone().unwrap_or_else(none)),
                ("Pre-tokenizer", summary.pre_tokenizer.clone().unwrap_or_else(none)),
                ("Post-processor", summary.post_processor.clone().unwrap_or_else(none)),
                ("Special tokens", special),
            ],
            faults: cut.into_iter().chain(pads).collect(),
        }
    }
}

fn hex(summary: &Summary) -> String {
    summary.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn short(digest: &str) -> String {
    format!("{}…", digest.get(..SHORT_DIGEST).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            file_bytes: 9_085_657,
            sha256: [0xab; 32],
            vocabulary_tokens: 128_256,
            model: "BPE".to_owned(),
            normalizer: None,
            pre_tokenizer: Some("Sequence".to_owned()),
            post_processor: None,
            special_tokens: vec!["<s>".to_owned(), "</s>".to_owned()],
            special_tokens_total: 256,
            truncates_after_tokens: Some(8_192),
            pads: true,
        }
    }

    #[test]
    fn a_file_says_what_it_is_and_what_is_wrong_with_it() {
        let facts = FileFacts::of("tokenizer.json", &summary());
        assert_eq!(facts.bytes, "9,085,657");
        assert_eq!((facts.digest.len(), facts.short_digest.as_str()), (64, "abababababab…"));
        let values = facts.rows.each_ref().map(|(_, value)| value.as_str());
        assert_eq!(values, ["BPE, 128,256 tokens", "none", "Sequence", "none", "<s>  </s>  and 254 more"]);
        assert_eq!(
            facts.faults,
            [
                "This file cuts every text after 8,192 tokens.",
                "This file fills short texts up with padding tokens."
            ]
        );
        let plain = Summary {
            special_tokens: Vec::new(),
            special_tokens_total: 0,
            truncates_after_tokens: None,
            pads: false,
            ..summary()
        };
        let facts = FileFacts::of("t", &plain);
        assert_eq!((facts.rows[4].1.as_str(), facts.faults.len()), ("none", 0));
    }

    #[test]
    fn without_a_tokenizer_nothing_is_counted() {
        let (none, ready) = (FileState::None, FileState::Ready("t.json".to_owned(), summary()));
        let note = |counted: &Counted, file| match counted.to_text(file) {
            CountText::Note(note) => note,
            other => panic!("{other:?}"),
        };
        assert_eq!(note(&Counted::Nothing, &none), "No tokenizer yet");
        assert_eq!(note(&Counted::Counting, &none), "No tokenizer yet");
        assert_eq!(note(&Counted::Nothing, &ready), "No text yet");
        assert_eq!(note(&Counted::Counting, &ready), "Counting");
        let counted = Counted::Tokens { tokens: 1, bytes: 1_234 };
        assert_eq!(
            counted.to_text(&ready),
            CountText::Tokens("1 token".to_owned(), " of a text of 1,234 bytes".to_owned())
        );
        assert_eq!([none.button(), ready.button()], ["Choose a tokenizer.json", "Another tokenizer.json"]);
        assert_eq!(
            ready.describe(2, 9),
            "2 tokens of a text of 9 bytes, by t.json (BPE, SHA-256 abababababab…)"
        );
        assert_eq!(none.describe(2, 9), "2 tokens of a text of 9 bytes");
    }

    #[test]
    fn a_text_is_counted_up_to_its_bound() {
        assert_eq!(Counted::too_long(MAX_TEXT_BYTES), None);
        assert_eq!(
            Counted::too_long(MAX_TEXT_BYTES + 1),
            Some(Counted::Failed(
                "The text has 4,194,305 bytes; at most 4,194,304 are tokenized.".to_owned()
            ))
        );
    }
}
