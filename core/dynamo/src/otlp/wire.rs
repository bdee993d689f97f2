//! Protocol Buffers as bytes: the fields of one message, without a schema and without allocation. Knows no message.

use crate::error::Reason;
use crate::wire::Fault;

/// The value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// Text, bytes or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// `None`: it is a number.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => None,
        }
    }
}

/// The fields of a message in their order. Ends after the first fault.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) const fn of(message: &'a [u8]) -> Self {
        Self { message, at: 0 }
    }

    /// The values of one field that are text, bytes or messages.
    pub(super) fn of_number(self, number: u64) -> impl Iterator<Item = Result<&'a [u8], Fault>> {
        self.filter_map(move |field| match field {
            Ok((found, value)) if found == number => value.bytes().map(Ok),
            Ok(_) => None,
            Err(fault) => Some(Err(fault)),
        })
    }

    fn fault(&self, reason: Reason, expected: &'static str) -> Fault {
        Fault::new(reason, expected, self.at)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.message.get(self.at) else {
                return Err(self.fault(Reason::Truncated, "expected the rest of a number"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault(Reason::Malformed, "expected a number of at most ten bytes"))
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Fault> {
        let rest = self.message.get(self.at..).unwrap_or_default();
        let Some(taken) = usize::try_from(len).ok().and_then(|len| rest.get(..len)) else {
            return Err(self.fault(Reason::Truncated, "expected as many bytes as the field's length says"));
        };
        self.at += taken.len();
        Ok(taken)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), Fault> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(little_endian(self.take(8)?)),
            2 => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
            // Four bytes make 32 bits.
            5 => Value::Fixed32(little_endian(self.take(4)?) as u32),
            _ => return Err(self.fault(Reason::Malformed, "expected a field of Protocol Buffers, no group")),
        };
        Ok((key >> 3, value))
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.message.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field)
    }
}

/// Appends a field of text.
pub(super) fn put_text(number: u64, text: &str, to: &mut Vec<u8>) {
    put_bytes(number, text.as_bytes(), to);
}

/// Appends a field of bytes or of a message.
pub(super) fn put_bytes(number: u64, bytes: &[u8], to: &mut Vec<u8>) {
    put_varint(number << 3 | 2, to);
    put_varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

/// Appends a field of a number.
pub(super) fn put_number(number: u64, value: u64, to: &mut Vec<u8>) {
    put_varint(number << 3, to);
    put_varint(value, to);
}

fn put_varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        // The lowest seven bits.
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}
