//! JSON for [`Wire`].

use std::borrow::Cow;

use super::{Fault, Kind, PlainEvent, PlainRun, Remaining, Wire};
use crate::error::Reason;

/// Deepest nesting inside a skipped value; as deep as `serde_json` goes.
const MAX_DEPTH: u32 = 128;

/// Reads JSON.
pub(crate) struct Json<'a> {
    rest: &'a [u8],
    len: usize,
}

/// The digits at the front of `bytes`: their value (`None` beyond 2⁶⁴−1) and what follows them.
#[inline]
fn digits(bytes: &[u8]) -> (Option<u64>, &[u8]) {
    let (mut value, mut rest) = (0u64, bytes);
    // A hash has at most 20 digits.
    for _ in 0..3 {
        let Some(eight) = rest.first_chunk() else { break };
        let (front, count) = digits_of_eight(u64::from_le_bytes(*eight));
        let longer = value.checked_mul(POWERS[count]).and_then(|value| value.checked_add(front));
        let (Some(longer), Some(after)) = (longer, rest.get(count..)) else { break };
        (value, rest) = (longer, after);
        if count < 8 {
            return (Some(value), rest);
        }
    }
    // One by one where fewer than eight characters follow, or too many digits.
    let mut value = Some(value);
    while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
        let digit = u64::from(digit - b'0');
        value = value.and_then(|value| value.checked_mul(10)?.checked_add(digit));
        rest = after;
    }
    (value, rest)
}

/// 10 to the power of its index.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits at the front of eight characters, the first of which is the lowest byte: their value, and how many they are.
#[inline]
fn digits_of_eight(eight: u64) -> (u64, usize) {
    const LOW: u64 = 0x0000_00ff_0000_00ff;
    let high = eight & 0xf0f0_f0f0_f0f0_f0f0;
    let carry = (eight.wrapping_add(0x0606_0606_0606_0606) & 0xf0f0_f0f0_f0f0_f0f0) >> 4;
    // Right up to the first byte that is no digit.
    let others = (high | carry) ^ 0x3333_3333_3333_3333;
    let count = others.trailing_zeros() / 8;
    // What follows the digits goes, and zeros come in front of them.
    let eight = (eight & 0x0f0f_0f0f_0f0f_0f0f).checked_shl(64 - 8 * count).unwrap_or(0);
    // Neighbours joined: digits to pairs, pairs to the number.
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    let upper = (pairs & LOW).wrapping_mul(0x000f_4240_0000_0064);
    let lower = ((pairs >> 16) & LOW).wrapping_mul(0x0000_2710_0000_0001);
    (upper.wrapping_add(lower) >> 32, count as usize)
}

/// How many bytes come before a quote, a backslash or a control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut rest = bytes;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        let eight = u64::from_le_bytes(*eight);
        // The high bit of each byte that is below `limit`, exact up to the first such byte.
        let below = |value: u64, limit: u64| value.wrapping_sub(limit * ONES) & !value;
        let quote = below(eight ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(eight ^ (ONES * u64::from(b'\\')), 1);
        let found = (quote | backslash | below(eight, 0x20)) & (ONES << 7);
        if found != 0 {
            return bytes.len() - rest.len() + found.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let tail = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)).count();
    bytes.len() - rest.len() + tail
}

/// A number exactly as Dynamo writes one, and what follows it.
#[inline]
fn plain_u64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (value, rest) = digits(bytes);
    let length = bytes.len() - rest.len();
    (length == 1 || (length > 1 && bytes[0] != b'0')).then_some((value?, rest))
}

impl<'a> Json<'a> {
    #[inline]
    fn space(&mut self) {
        while let Some((b' ' | b'\t' | b'\n' | b'\r', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    /// The next byte that is not white space; stays unread.
    #[inline]
    fn peek(&mut self) -> Result<u8, Fault> {
        self.space();
        self.rest.first().copied().ok_or_else(|| self.truncated())
    }

    #[cold]
    fn truncated(&self) -> Fault {
        Fault::new(Reason::Truncated, "the message ends here", self.len)
    }

    #[cold]
    fn malformed(&self, problem: &'static str) -> Fault {
        if self.rest.is_empty() {
            return self.truncated();
        }
        Fault::new(Reason::Malformed, problem, self.at())
    }

    /// Reads a byte that has been peeked at.
    #[inline]
    fn bump(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    #[inline]
    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), Fault> {
        if self.peek()? != byte {
            return Err(self.malformed(problem));
        }
        self.bump();
        Ok(())
    }

    /// The text between the quotes, as it is sent, and whether it has escapes.
    #[inline]
    fn quoted(&mut self) -> Result<(&'a [u8], bool), Fault> {
        self.expect(b'"', "expected a quote")?;
        let text = self.rest;
        let mut escaped = false;
        loop {
            self.rest = self.rest.get(plain_length(self.rest)..).unwrap_or_default();
            match self.rest {
                [b'"', rest @ ..] => {
                    let length = text.len() - self.rest.len();
                    self.rest = rest;
                    return Ok((&text[..length], escaped));
                }
                [b'\\', rest @ ..] => {
                    escaped = true;
                    self.rest = rest;
                    self.escape()?;
                }
                _ => return Err(self.malformed("control character in a text")),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<(), Fault> {
        let digits = match self.rest.first() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 0,
            Some(b'u') => 4,
            _ => return Err(self.malformed("no escape of JSON")),
        };
        self.bump();
        for _ in 0..digits {
            if !self.rest.first().is_some_and(u8::is_ascii_hexdigit) {
                return Err(self.malformed("no escape of JSON"));
            }
            self.bump();
        }
        Ok(())
    }

    fn literal(&mut self, literal: &'static [u8]) -> Result<(), Fault> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => self.rest = rest,
            None if literal.starts_with(self.rest) => return Err(self.truncated()),
            None => return Err(self.malformed("no JSON")),
        }
        Ok(())
    }

    /// The integer part of a number: its value (`None` beyond 2⁶⁴−1), and whether it has a minus sign.
    #[inline]
    fn whole(&mut self) -> Result<(Option<u64>, bool), Fault> {
        let negative = self.rest.first() == Some(&b'-');
        if negative {
            self.bump();
        }
        let start = self.rest;
        let (value, rest) = digits(start);
        let length = start.len() - rest.len();
        if length == 0 || (length > 1 && start[0] == b'0') {
            return Err(self.malformed("no number of JSON"));
        }
        self.rest = rest;
        Ok((value, negative))
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.whole()?;
        if self.rest.first() == Some(&b'.') {
            self.bump();
            self.some_digits()?;
        }
        if matches!(self.rest.first(), Some(b'e' | b'E')) {
            self.bump();
            if matches!(self.rest.first(), Some(b'+' | b'-')) {
                self.bump();
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), Fault> {
        let (_, rest) = digits(self.rest);
        if rest.len() == self.rest.len() {
            return Err(self.malformed("no number of JSON"));
        }
        self.rest = rest;
        Ok(())
    }

    /// After the opening bracket of a map or array or after a value in it: whether another one comes.
    #[inline]
    fn more(&mut self, left: &mut Remaining, close: u8) -> Result<bool, Fault> {
        // As Dynamo writes it: a comma and no space.
        if let ([b',', rest @ ..], 1) = (self.rest, left.0)
            && matches!(rest.first(), Some(b'"' | b'{' | b'0'..=b'9'))
        {
            self.rest = rest;
            return Ok(true);
        }
        let next = self.peek()?;
        if next == close {
            self.bump();
            return Ok(false);
        }
        if left.0 == 0 {
            left.0 = 1;
            return Ok(true);
        }
        if next != b',' {
            return Err(self.malformed("expected a comma or a closing bracket"));
        }
        self.bump();
        // A comma promises something: `[1,]` is no JSON.
        if self.peek()? == close {
            return Err(self.malformed("expected something after the comma"));
        }
        Ok(true)
    }

    #[inline]
    fn key(&mut self) -> Result<&'a [u8], Fault> {
        let (key, _) = self.quoted()?;
        self.expect(b':', "expected a colon")?;
        Ok(key)
    }

    /// A block exactly as Dynamo writes it; else reads nothing that matters.
    #[inline]
    fn plain_block(&mut self) -> Option<(u64, u64)> {
        let rest = self.rest.strip_prefix(br#"{"block_hash":"#)?;
        let (block_hash, rest) = plain_u64(rest)?;
        let rest = rest.strip_prefix(br#","tokens_hash":"#)?;
        let (tokens_hash, rest) = plain_u64(rest)?;
        self.rest = rest.strip_prefix(br#","mm_extra_info":null}"#)?;
        Some((block_hash, tokens_hash))
    }

    /// Reads a value that holds no other.
    fn scalar(&mut self, first: u8) -> Result<(), Fault> {
        match first {
            b'"' => self.quoted().map(|_| ()),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.malformed("no JSON")),
        }
    }
}

impl<'a> Wire<'a> for Json<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    fn mark(&self) -> &'a [u8] {
        self.rest
    }

    fn rewind(&mut self, mark: &'a [u8]) {
        self.rest = mark;
    }

    fn kind(&mut self) -> Result<Kind, Fault> {
        Ok(match self.peek()? {
            b'{' => Kind::Map,
            b'[' => Kind::Array,
            b'"' => Kind::Text,
            b't' | b'f' => Kind::Bool,
            b'n' => Kind::Nil,
            b'-' | b'0'..=b'9' => {
                let sign = self.rest.strip_prefix(b"-").unwrap_or(self.rest);
                match digits(sign).1.first() {
                    Some(b'.' | b'e' | b'E') => Kind::Float,
                    _ => Kind::Integer,
                }
            }
            _ => return Err(self.malformed("no JSON")),
        })
    }

    #[inline]
    fn nil(&mut self) -> Result<bool, Fault> {
        if self.peek()? != b'n' {
            return Ok(false);
        }
        self.literal(b"null")?;
        Ok(true)
    }

    fn bool(&mut self) -> Result<bool, Fault> {
        match self.peek()? {
            b't' => self.literal(b"true").map(|()| true),
            b'f' => self.literal(b"false").map(|()| false),
            _ => Err(self.unexpected("expected a boolean")),
        }
    }

    #[inline]
    fn hash(&mut self) -> Result<u64, Fault> {
        if let Some((value, rest @ [b',' | b']' | b'}', ..])) = plain_u64(self.rest) {
            self.rest = rest;
            return Ok(value);
        }
        self.integer().map(|(value, _)| value)
    }

    #[inline]
    fn integer(&mut self) -> Result<(u64, bool), Fault> {
        if !matches!(self.peek()?, b'0'..=b'9' | b'-') {
            return Err(self.unexpected("expected an integer"));
        }
        let mark = self.rest;
        let (value, negative) = self.whole()?;
        if matches!(self.rest.first(), Some(b'.' | b'e' | b'E')) {
            self.rest = mark;
            return Err(self.unexpected("expected an integer"));
        }
        let value = match (value, negative) {
            (Some(value), false) => Some(value),
            (Some(value), true) if value <= 1 << 63 => Some(value.wrapping_neg()),
            _ => None,
        };
        let at = self.len - mark.len();
        let value = value.ok_or(Fault::new(Reason::WrongType, "expected an integer of 64 bits", at))?;
        Ok((value, negative && value != 0))
    }

    fn word(&mut self) -> Result<&'a [u8], Fault> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("expected text"));
        }
        self.quoted().map(|(text, _)| text)
    }

    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("expected text"));
        }
        let (mark, at) = (self.rest, self.at());
        let (text, escaped) = self.quoted()?;
        if escaped {
            // Surrogate pairs and the like: rare, so left to the library.
            let with_quotes = &mark[..text.len() + 2];
            return serde_json::from_slice::<String>(with_quotes)
                .map(Cow::Owned)
                .map_err(|_| Fault::new(Reason::Malformed, "expected text in UTF-8", at));
        }
        std::str::from_utf8(text)
            .map(Cow::Borrowed)
            .map_err(|_| Fault::new(Reason::Malformed, "expected text in UTF-8", at))
    }

    #[inline]
    fn map(&mut self) -> Result<Remaining, Fault> {
        if self.peek()? != b'{' {
            return Err(self.unexpected("expected a map"));
        }
        self.bump();
        Ok(Remaining(0))
    }

    #[inline]
    fn next_key(&mut self, left: &mut Remaining) -> Result<Option<&'a [u8]>, Fault> {
        if self.more(left, b'}')? { self.key().map(Some) } else { Ok(None) }
    }

    #[inline]
    fn array(&mut self) -> Result<Remaining, Fault> {
        if self.peek()? != b'[' {
            return Err(self.unexpected("expected an array"));
        }
        self.bump();
        Ok(Remaining(0))
    }

    #[inline]
    fn next_element(&mut self, left: &mut Remaining) -> Result<bool, Fault> {
        self.more(left, b']')
    }

    fn skip(&mut self) -> Result<(), Fault> {
        // One bit for each open bracket takes the place of a stack: 1 for a map, 0 for an array.
        let (mut open, mut depth): (u128, u32) = (0, 0);
        let mut left = Remaining(0);
        loop {
            match self.peek()? {
                first @ (b'{' | b'[') => {
                    if depth == MAX_DEPTH {
                        return Err(Fault::new(Reason::TooLarge, "nested too deep", self.at()));
                    }
                    self.bump();
                    open = open << 1 | u128::from(first == b'{');
                    depth += 1;
                    left = Remaining(0);
                }
                first => self.scalar(first)?,
            }
            // Close what ends here, until another value comes.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let in_map = open & 1 == 1;
                if self.more(&mut left, if in_map { b'}' } else { b']' })? {
                    if in_map {
                        self.key()?;
                    }
                    left = Remaining(1);
                    break;
                }
                open >>= 1;
                depth -= 1;
                left = Remaining(1);
            }
        }
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(self.malformed("something follows the message"))
    }

    #[inline]
    fn plain_blocks(&mut self, left: &mut Remaining, most: usize, mut each: impl FnMut(u64, u64)) {
        for _ in 0..most {
            let mark = self.rest;
            if left.0 > 0 {
                let Some(rest) = self.rest.strip_prefix(b",") else { return };
                self.rest = rest;
            }
            let Some((block_hash, tokens_hash)) = self.plain_block() else {
                self.rest = mark;
                return;
            };
            left.0 = 1;
            each(block_hash, tokens_hash);
        }
    }

    #[inline]
    fn plain_hashes(&mut self, left: &mut Remaining, most: usize, mut each: impl FnMut(u64)) {
        for _ in 0..most {
            let hash = match (self.rest, left.0) {
                ([b',', rest @ ..], 1) => rest,
                (rest, 0) => rest,
                _ => return,
            };
            let Some((hash, rest @ [b',' | b']', ..])) = plain_u64(hash) else { return };
            (self.rest, left.0) = (rest, 1);
            each(hash);
        }
    }

    #[inline]
    fn plain_event(&mut self) -> Option<PlainEvent> {
        let (worker_id, rest) = plain_u64(self.rest.strip_prefix(br#"{"worker_id":"#)?)?;
        let (event_id, rest) = plain_u64(rest.strip_prefix(br#","event":{"event_id":"#)?)?;
        let rest = rest.strip_prefix(br#","data":{"#)?;
        let (run, rest) = match rest.strip_prefix(br#""stored":{"parent_hash":"#) {
            None => (PlainRun::Removed, rest.strip_prefix(br#""removed":{"block_hashes":["#)?),
            Some(rest) => {
                let (parent, rest) = match rest.strip_prefix(b"null") {
                    Some(rest) => (None, rest),
                    None => plain_u64(rest).map(|(parent, rest)| (Some(parent), rest))?,
                };
                let run = PlainRun::Stored { parent, start_position: None };
                (run, rest.strip_prefix(br#","blocks":["#)?)
            }
        };
        self.rest = rest;
        Some(PlainEvent { worker_id, event_id, run, left: Remaining(0) })
    }

    #[inline]
    fn plain_rank(&mut self) -> Option<u32> {
        let (rank, rest) = plain_u64(self.rest.strip_prefix(br#"}},"dp_rank":"#)?)?;
        self.rest = rest.strip_prefix(b"}}")?;
        u32::try_from(rank).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn digits_of_any_length_are_read_up_to_what_follows_them() {
        for text in
            ["", "0", "7", "00012", "9999999", "10000000", "18446744073709551615", "18446744073709551616"]
        {
            expect(text);
        }
        (0..25).for_each(|length| expect(&"9876543210987654321098765"[..length]));
        (0..25).for_each(|length| expect(&"0".repeat(length)));
    }

    /// That the digits of `text` are its number, whatever follows them.
    #[track_caller]
    fn expect(text: &str) {
        for after in ["", ",", "}}", "/:;\u{ff}", "x12345678", " 12345678", ".5", "-"] {
            let number = if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
            let whole = format!("{text}{after}");
            assert_eq!(digits(whole.as_bytes()), (number, after.as_bytes()), "of {whole:?}");
        }
    }
}
