//! A reader of fixed phrases with numbers between them; knows no phrase itself.

use super::printed::Printed;
use crate::error::Reason;
use crate::wire::Fault;

/// Reads a message from its front.
pub(super) struct Scan<'a> {
    rest: &'a str,
    len: usize,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, len: text.len() }
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// Reads `phrase`, if it comes next.
    fn eat(&mut self, phrase: &str) -> bool {
        self.rest.strip_prefix(phrase).map(|rest| self.rest = rest).is_some()
    }

    /// Reads `phrase`, which has to come next.
    pub(super) fn expect(&mut self, phrase: &str) -> Result<(), Fault> {
        self.one_of(&[phrase]).map(drop)
    }

    /// Reads one of `phrases`, which has to come next, and gives its index.
    pub(super) fn one_of(&mut self, phrases: &[&str]) -> Result<usize, Fault> {
        self.choose(phrases)?.ok_or(self.fault(Reason::Malformed, "other words than Dynamo's"))
    }

    /// Reads one of `phrases` and gives its index. `None`, and nothing read: none of them comes next.
    pub(super) fn choose(&mut self, phrases: &[&str]) -> Result<Option<usize>, Fault> {
        if let Some(found) = phrases.iter().position(|phrase| self.eat(phrase)) {
            return Ok(Some(found));
        }
        if phrases.iter().any(|phrase| phrase.starts_with(self.rest)) {
            return Err(self.fault(Reason::Truncated, "the line ends here"));
        }
        Ok(None)
    }

    /// An integer of 0 to 2⁶⁴−1.
    pub(super) fn u64(&mut self) -> Result<u64, Fault> {
        let digits = self.take_while(|b| b.is_ascii_digit());
        if digits.is_empty() {
            return Err(self.nothing("expected an integer"));
        }
        digits.parse().map_err(|_| self.fault(Reason::WrongType, "expected an integer of 64 bits"))
    }

    /// An integer of 0 to 2³²−1.
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        let number = self.u64()?;
        u32::try_from(number).map_err(|_| self.fault(Reason::WrongType, "expected an integer below 2^32"))
    }

    /// A finite number.
    pub(super) fn number(&mut self) -> Result<Printed, Fault> {
        // Letters as well: `NaN` and `inf` are numbers of the wrong type, not other words.
        let text = self.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+'));
        if text.is_empty() {
            return Err(self.nothing("expected a number"));
        }
        Printed::parse(text).ok_or(self.fault(Reason::WrongType, "expected a finite number"))
    }

    /// What comes before `end`, which is read as well. `None`, and nothing read: it does not come.
    pub(super) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(text)
    }

    /// The end of the message, or of its words: fields may follow.
    pub(super) fn end(&self) -> Result<(), Fault> {
        if self.rest.is_empty() || self.rest.starts_with(' ') {
            return Ok(());
        }
        Err(self.fault(Reason::Malformed, "something follows the message"))
    }

    pub(super) fn fault(&self, reason: Reason, problem: &'static str) -> Fault {
        Fault::new(reason, problem, self.len - self.rest.len())
    }

    fn nothing(&self, problem: &'static str) -> Fault {
        self.fault(if self.rest.is_empty() { Reason::Truncated } else { Reason::Malformed }, problem)
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'a str {
        let end = self.rest.bytes().position(|b| !is_part(b)).unwrap_or(self.rest.len());
        // Only ASCII was passed, so `end` lies between characters.
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }
}
