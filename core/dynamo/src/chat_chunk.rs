//! What a frontend answers to a chat completion: the chunks of a streamed one (OpenAI's, as Dynamo 1.6 sends them), and the body of one
//! that failed. Only what a client measures is read.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::envelope::Format;
use super::error::DecodeError;
use super::typed::{self, Text, TextOrOther};

const TOPIC: &str = "chat completion";

/// The data of the event behind the last chunk.
pub const DONE: &str = "[DONE]";

/// A chunk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChatChunk<'a> {
    /// Text of the first choice: content, else reasoning. Empty: it brings none.
    pub text: Cow<'a, str>,
    /// Whether the first choice says why it ends.
    pub is_finished: bool,
    /// Tokens of the whole request, usually in the last chunk.
    pub usage: Option<Usage>,
    /// What went wrong after the status was sent.
    pub error: Option<ChatError<'a>>,
}

/// Tokens of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub struct Usage {
    /// Of its prompt, with what the chat template adds.
    pub prompt_tokens: u32,
    /// Of its response.
    pub completion_tokens: u32,
}

/// A failure, as the frontend words it. `None`: it does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChatError<'a> {
    /// In words.
    pub message: Option<Cow<'a, str>>,
    /// As HTTP numbers them.
    pub status: Option<u16>,
}

/// Reads the data of an event that is not [`DONE`].
///
/// # Errors
/// The first thing that was not understood.
pub fn decode(data: &[u8]) -> Result<ChatChunk<'_>, DecodeError> {
    let Chunk { choices, usage, error } = typed::decode(TOPIC, data, Format::Json)?;
    let first = choices.unwrap_or_default().into_iter().next().unwrap_or_default();
    let Delta { content, reasoning_content } = first.delta.unwrap_or_default();
    Ok(ChatChunk {
        text: match content {
            Some(Text(content)) if !content.is_empty() => content,
            _ => reasoning_content.map(|Text(text)| text).unwrap_or_default(),
        },
        is_finished: first.finish_reason.is_some(),
        usage,
        error: error.map(ErrorIn::into_error),
    })
}

/// What the body of a failed request says: `{"message":…,"code":…}` of Dynamo, `{"error":{"message":…}}` of OpenAI, `{"detail":…}`.
/// Nothing if it is of another form.
pub fn decode_error(body: &[u8]) -> ChatError<'_> {
    let Ok(Failed { message, code, error, detail }) = typed::decode(TOPIC, body, Format::Json) else {
        return ChatError::default();
    };
    let inner = error.map(ErrorIn::into_error).unwrap_or_default();
    let detail = || detail.and_then(TextOrOther::text);
    ChatError {
        message: message.and_then(TextOrOther::text).or(inner.message).or_else(detail),
        status: code.and_then(Code::status).or(inner.status),
    }
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Usage>,
    #[serde(borrow)]
    error: Option<ErrorIn<'a>>,
}

#[derive(Deserialize, Default)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize, Default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Failed<'a> {
    #[serde(borrow)]
    message: Option<TextOrOther<'a>>,
    code: Option<Code>,
    #[serde(borrow)]
    error: Option<ErrorIn<'a>>,
    #[serde(borrow)]
    detail: Option<TextOrOther<'a>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorIn<'a> {
    Fields {
        #[serde(borrow)]
        message: Option<TextOrOther<'a>>,
        code: Option<Code>,
    },
    #[serde(borrow)]
    Text(TextOrOther<'a>),
}

impl<'a> ErrorIn<'a> {
    fn into_error(self) -> ChatError<'a> {
        match self {
            Self::Fields { message, code } => ChatError {
                message: message.and_then(TextOrOther::text),
                status: code.and_then(Code::status),
            },
            Self::Text(text) => ChatError { message: text.text(), status: None },
        }
    }
}

/// A status, or something else of that name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Code {
    Number(u16),
    Other(IgnoredAny),
}

impl Code {
    fn status(self) -> Option<u16> {
        match self {
            Self::Number(number) if (100..1_000).contains(&number) => Some(number),
            Self::Number(_) | Self::Other(IgnoredAny) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(data: &str) -> ChatChunk<'_> {
        decode(data.as_bytes()).unwrap()
    }

    #[test]
    fn a_chunk_has_text_an_end_or_the_usage() {
        let first = chunk(
            r#"{"choices":[{"index":0,"delta":{"content":" full","role":"assistant"},"finish_reason":null}]}"#,
        );
        assert_eq!((&*first.text, first.is_finished, first.usage), (" full", false, None));
        let reasoning =
            chunk(r#"{"choices":[{"delta":{"content":"","reasoning_content":"hm"}}],"usage":null}"#);
        assert_eq!(&*reasoning.text, "hm");
        let end = chunk(r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#);
        assert_eq!((&*end.text, end.is_finished), ("", true));
        let usage =
            chunk(r#"{"choices":[],"usage":{"prompt_tokens":23,"completion_tokens":5,"total_tokens":28}}"#);
        assert_eq!(usage.usage, Some(Usage { prompt_tokens: 23, completion_tokens: 5 }));
        assert_eq!(chunk("{}"), ChatChunk::default());
    }

    #[test]
    fn an_error_has_its_words_in_whatever_form() {
        let in_stream = chunk(
            r#"{"error":{"message":"Service temporarily unavailable","type":"service_unavailable","code":503}}"#,
        );
        let unavailable = "Service temporarily unavailable";
        assert_eq!(in_stream.error, Some(ChatError { message: Some(unavailable.into()), status: Some(503) }));
        let says = |body: &str| {
            let error = decode_error(body.as_bytes());
            (error.message.map(Cow::into_owned), error.status)
        };
        let words = |text: &str| Some(text.to_owned());
        assert_eq!(
            says(r#"{"message":"Model not found","type":"Not Found","code":404}"#),
            (words("Model not found"), Some(404))
        );
        assert_eq!(says(r#"{"error":{"message":"no","code":"model_not_found"}}"#), (words("no"), None));
        assert_eq!(says(r#"{"error":"no"}"#), (words("no"), None));
        assert_eq!(says(r#"{"detail":"Not Found"}"#), (words("Not Found"), None));
        assert_eq!(says(r#"{"detail":[{"loc":[]}],"code":99999}"#), (None, None));
        assert_eq!(says("<html>"), (None, None));
    }

    #[test]
    fn what_is_no_chunk_is_refused_in_words() {
        for data in [
            "",
            "[]",
            "nonsense",
            r#"{"choices":{}}"#,
            r#"{"choices":[{"delta":{"content":7}}]}"#,
            r#"{"usage":{"prompt_tokens":-1,"completion_tokens":1}}"#,
        ] {
            let error = decode(data.as_bytes()).expect_err(data);
            assert!(error.detail.starts_with(TOPIC), "{}", error.detail);
        }
    }
}
