//! Topics that are not hot, read by serde into derived types, from JSON or MessagePack. Errors are put into the same classes as
//! those of the own reader (`wire`), which KV events need for their speed. Must not know of topics.
//!
//! Both libraries bound what they recurse into; nothing is reserved by a claimed length, see [`Bounded`].

use std::borrow::Cow;
use std::fmt;
use std::io::ErrorKind;
use std::marker::PhantomData;

use serde::de::{Error, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::envelope::Format;
use crate::error::{DecodeError, Reason};

/// Deepest nesting; as deep as `serde_json` goes.
const MAX_DEPTH: usize = 128;

/// Begins the message of an error that is [`Reason::TooLarge`].
const TOO_LARGE: &str = "too large: ";

/// An error of [`Reason::TooLarge`], for types that bound what they read.
pub(crate) fn too_large<E: Error>(what: impl fmt::Display) -> E {
    E::custom(format_args!("{TOO_LARGE}{what}"))
}

/// An error with its class, before it is described.
#[derive(Debug)]
pub(crate) struct TypedFault {
    pub(crate) reason: Reason,
    problem: String,
    /// Bytes read until then; `None`: MessagePack's reader does not count them.
    at: Option<usize>,
}

/// Reads a message.
pub(crate) fn decode<'a, T: Deserialize<'a>>(
    topic: &str,
    bytes: &'a [u8],
    format: Format,
) -> Result<T, DecodeError> {
    read(bytes, format).map_err(|fault| describe::<T>(topic, bytes, format, fault, 0))
}

/// Reads a JSON document that stands in another one, `outer`, if it does.
pub(crate) fn decode_json<'a, T: Deserialize<'a>>(
    topic: &str,
    json: &'a [u8],
    outer: &[u8],
) -> Result<T, DecodeError> {
    let at = (json.as_ptr() as usize).saturating_sub(outer.as_ptr() as usize).min(outer.len());
    read(json, Format::Json).map_err(|fault| describe::<T>(topic, json, Format::Json, fault, at))
}

/// Reads a message; the error does not name its place yet. Bytes after MessagePack are ignored, as Dynamo ignores them.
pub(crate) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], format: Format) -> Result<T, TypedFault> {
    match format {
        Format::Json => serde_json::from_slice(bytes).map_err(|error| TypedFault::of_json(bytes, &error)),
        Format::MsgPack => {
            let mut from = rmp_serde::Deserializer::from_read_ref(bytes);
            from.set_max_depth(MAX_DEPTH);
            T::deserialize(&mut from).map_err(|error| TypedFault::of_msgpack(&error))
        }
    }
}

/// The error in words, with the field in which it happened, which is looked for by reading again; `base` is where `bytes` begin.
#[cold]
pub(crate) fn describe<'a, T: Deserialize<'a>>(
    topic: &str,
    bytes: &'a [u8],
    format: Format,
    fault: TypedFault,
    base: usize,
) -> DecodeError {
    let (path, at) = match format {
        Format::Json => {
            let from = &mut serde_json::Deserializer::from_slice(bytes);
            (
                serde_path_to_error::deserialize::<_, T>(from).err().map(|error| error.path().to_string()),
                fault.at,
            )
        }
        Format::MsgPack => {
            let from = &mut rmp_serde::Deserializer::new(bytes);
            from.set_max_depth(MAX_DEPTH);
            let path = serde_path_to_error::deserialize::<_, T>(&mut *from).err();
            (path.map(|error| error.path().to_string()), Some(bytes.len() - from.get_ref().len()))
        }
    };
    let TypedFault { reason, problem, .. } = fault;
    // `.` is the message itself, `?` a key that no field has.
    let path = path.filter(|path| path != "." && path != "?");
    let path = path.map(|path| format!("{}: ", shortened(&path))).unwrap_or_default();
    let (problem, at) = (shortened(&problem), base + at.unwrap_or_default());
    DecodeError::new(reason, format!("{topic}: {path}{problem} (byte {at})"))
}

/// The front of what quotes the input: what follows it in an error has to stay visible.
fn shortened(text: &str) -> &str {
    const MAX_CHARS: usize = 72;
    text.char_indices().nth(MAX_CHARS).map_or(text, |(end, _)| &text[..end])
}

impl TypedFault {
    #[cold]
    fn of_json(bytes: &[u8], error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let problem = text.rsplit_once(" at line ").map_or(&*text, |(problem, _)| problem);
        let line = bytes.split_inclusive(|&byte| byte == b'\n').take(error.line().saturating_sub(1));
        let at = (line.map(<[u8]>::len).sum::<usize>() + error.column()).min(bytes.len());
        // A number that is cut is an invalid one to the library where it only skips it.
        let is_cut = problem == "invalid number" && bytes.last().is_some_and(|last| b".eE+-".contains(last));
        if is_cut || error.classify() == Category::Eof {
            let problem = "the message ends here".to_owned();
            return Self { reason: Reason::Truncated, problem, at: Some(bytes.len()) };
        }
        Self::of_text(problem, Some(at))
    }

    #[cold]
    fn of_msgpack(error: &rmp_serde::decode::Error) -> Self {
        use rmp_serde::decode::Error as Of;
        let (reason, problem) = match error {
            Of::InvalidMarkerRead(io) | Of::InvalidDataRead(io) if io.kind() == ErrorKind::UnexpectedEof => {
                (Reason::Truncated, "the message ends here".to_owned())
            }
            Of::TypeMismatch(_) | Of::OutOfRange => (Reason::WrongType, error.to_string()),
            Of::DepthLimitExceeded => (Reason::TooLarge, "nested too deep".to_owned()),
            Of::Syntax(text) => return Self::of_text(text, None),
            Of::Utf8Error(_) => (Reason::Malformed, "expected text in UTF-8".to_owned()),
            _ => (Reason::Malformed, error.to_string()),
        };
        Self { reason, problem, at: None }
    }

    /// serde's own errors are known by their first words only.
    fn of_text(text: &str, at: Option<usize>) -> Self {
        if let Some(field) = text.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
            return Self { reason: Reason::MissingField, problem: format!("{field}: is missing"), at };
        }
        if let Some(field) = text.strip_prefix("duplicate field `").and_then(|rest| rest.strip_suffix('`')) {
            return Self { reason: Reason::Malformed, problem: format!("{field}: is given twice"), at };
        }
        const WRONG_TYPE: [&str; 4] =
            ["invalid type", "invalid value", "invalid length", "number out of range"];
        let reason = match text {
            _ if text.starts_with(TOO_LARGE) || text.starts_with("recursion limit") => Reason::TooLarge,
            _ if text.starts_with("unknown variant") => Reason::UnknownKind,
            _ if WRONG_TYPE.iter().any(|prefix| text.starts_with(prefix)) => Reason::WrongType,
            _ => Reason::Malformed,
        };
        Self { reason, problem: text.to_owned(), at }
    }
}

/// At most `MAX` elements. No room is reserved before they are there.
#[derive(Debug)]
pub(crate) struct Bounded<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T, const MAX: usize> Default for Bounded<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for Bounded<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Elements<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Elements<T, MAX> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(element) = from.next_element()? {
                    if all.len() == MAX {
                        return Err(too_large(format_args!("more than {MAX} elements")));
                    }
                    all.push(element);
                }
                Ok(all)
            }
        }
        from.deserialize_seq(Elements::<T, MAX>(PhantomData)).map(Self)
    }
}

/// A hash of 64 bits. A negative number counts by its bits: some engines hash to signed numbers.
pub(crate) struct Hash(pub(crate) u64);

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bits;
        impl Visitor<'_> for Bits {
            type Value = u64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer of 64 bits")
            }

            fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
                Ok(value)
            }

            fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
                Ok(value.cast_unsigned())
            }
        }
        from.deserialize_u64(Bits).map(Self)
    }
}

/// Text that is borrowed if it has no escapes.
#[derive(Deserialize, Debug)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Text, or a value of another type, which costs no message.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub(crate) enum TextOrOther<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Other(IgnoredAny),
}

impl<'a> TextOrOther<'a> {
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(IgnoredAny) => None,
        }
    }
}

/// A part of a JSON document if it can be read; a form that is not known costs no more than this part.
pub(crate) fn or_default<'a, T: Deserialize<'a> + Default>(json: Option<&'a RawValue>) -> T {
    json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default()
}
