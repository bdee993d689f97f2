//! ZMTP 3, the protocol of ZeroMQ sockets, as far as a subscriber needs it: greeting, READY, subscription, frames,
//! PING and PONG. No security mechanism: Dynamo uses none.
//!
//! Bytes in and bytes out; connects to nothing. A frame that claims to be larger than [`MAX_MESSAGE_BYTES`] is an error
//! when its length is read: nothing is reserved for it.

use std::ops::Range;

use super::error::{DecodeError, Reason};

/// Length of the greeting that both sides begin with, in bytes.
pub const GREETING_BYTES: usize = 64;
/// Largest message that is read, in bytes, all of its frames together. Dynamo's own stay far below 1 MiB.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024 * 1024;
/// Most frames of a message; Dynamo's have four.
pub const MAX_FRAMES: usize = 16;
/// Most bytes of the context of a PING, by the protocol.
const MAX_PING_CONTEXT: usize = 16;

/// Reserved for a read at first, in bytes, and at most: a busy peer fills what there is.
const FIRST_READ_BYTES: usize = 8 * 1024;
const MOST_READ_BYTES: usize = 256 * 1024;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Our greeting: version 3.1, mechanism NULL.
pub const GREETING: [u8; GREETING_BYTES] = {
    let mut bytes = [0; GREETING_BYTES];
    bytes[0] = 0xff;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[11] = 1;
    bytes[12] = b'N';
    bytes[13] = b'U';
    bytes[14] = b'L';
    bytes[15] = b'L';
    bytes
};

/// Version of the protocol that a peer speaks, 3 and later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version {
    /// Before the dot.
    pub major: u8,
    /// After the dot.
    pub minor: u8,
}

impl Version {
    /// Whether it has commands for subscriptions and heartbeats (3.1).
    pub const fn has_commands(self) -> bool {
        self.major > 3 || self.minor >= 1
    }
}

/// Reads a peer's greeting.
///
/// # Errors
/// It is no ZeroMQ socket, one older than ZMTP 3, or one that asks for a security mechanism.
pub fn read_greeting(bytes: &[u8; GREETING_BYTES]) -> Result<Version, DecodeError> {
    // What lies between is free: libzmq fills it.
    if bytes[0] != 0xff || bytes[9] & 1 == 0 {
        return Err(DecodeError::new(Reason::Malformed, "greeting: not a ZeroMQ socket"));
    }
    let version = Version { major: bytes[10], minor: bytes[11] };
    if version.major < 3 {
        let text = format!("greeting: ZMTP {}; at least 3.0 is needed", version.major);
        return Err(DecodeError::new(Reason::UnknownKind, text));
    }
    let mechanism = bytes[12..32].split(|byte| *byte == 0).next().unwrap_or_default();
    if mechanism != b"NULL" {
        let name = String::from_utf8_lossy(mechanism);
        let text = format!("greeting: the socket asks for {name} security, which Dynamo does not use");
        return Err(DecodeError::new(Reason::UnknownKind, text));
    }
    Ok(version)
}

/// READY of a socket of this type, such as `SUB`.
pub fn ready(socket_type: &str) -> Vec<u8> {
    let mut data = vec![b"Socket-Type".len() as u8];
    data.extend_from_slice(b"Socket-Type");
    data.extend_from_slice(&(socket_type.len() as u32).to_be_bytes());
    data.extend_from_slice(socket_type.as_bytes());
    command("READY", &data)
}

/// Subscribes to topics that begin with `prefix`, at a peer of this version.
pub fn subscribe(prefix: &str, peer: Version) -> Vec<u8> {
    if peer.has_commands() {
        return command("SUBSCRIBE", prefix.as_bytes());
    }
    let mut body = vec![1];
    body.extend_from_slice(prefix.as_bytes());
    let mut bytes = Vec::new();
    frame(0, &body, &mut bytes);
    bytes
}

/// A heartbeat that the peer answers. `ttl` is how long it waits for our next before it gives us up, in tenths of a
/// second; 0: for ever.
pub fn ping(ttl: u16) -> Vec<u8> {
    command("PING", &ttl.to_be_bytes())
}

/// The response to a PING with this context.
pub fn pong(context: &[u8]) -> Vec<u8> {
    command("PONG", context)
}

/// A message of these frames.
pub fn message(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, body) in frames.iter().enumerate() {
        let flags = if at + 1 < frames.len() { MORE } else { 0 };
        frame(flags, body, &mut bytes);
    }
    bytes
}

fn command(name: &str, data: &[u8]) -> Vec<u8> {
    let mut body = vec![name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(data);
    let mut bytes = Vec::new();
    frame(COMMAND, &body, &mut bytes);
    bytes
}

fn frame(flags: u8, body: &[u8], bytes: &mut Vec<u8>) {
    match u8::try_from(body.len()) {
        Ok(len) => bytes.extend_from_slice(&[flags, len]),
        Err(_) => {
            bytes.push(flags | LONG);
            bytes.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(body);
}

/// What a peer sends after its greeting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit<'a> {
    /// A command.
    Command(Command<'a>),
    /// A whole message.
    Message(Frames<'a>),
}

/// A command of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    /// The peer is ready; the type of its socket, "" if it names none.
    Ready {
        /// As `PUB`.
        socket_type: &'a [u8],
    },
    /// The peer refuses us.
    Error {
        /// Why.
        reason: &'a [u8],
    },
    /// A heartbeat, to be answered with its context.
    Ping {
        /// At most 16 bytes.
        context: &'a [u8],
    },
    /// Our heartbeat answered.
    Pong,
    /// A subscription, which a publisher gets.
    Subscribe {
        /// What topics begin with.
        prefix: &'a [u8],
    },
    /// Anything else: nothing for us.
    Other,
}

/// The frames of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    parts: &'a [Range<usize>],
}

impl<'a> Frames<'a> {
    /// How many there are; at least one, at most [`MAX_FRAMES`].
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(self) -> usize {
        self.parts.len()
    }

    /// One of them.
    pub fn get(self, at: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.parts.get(at)?.clone())
    }
}

/// Takes what a peer sends apart, however it is cut on the way.
#[derive(Debug)]
pub struct Inbound {
    bytes: Vec<u8>,
    /// Where the message begins that is being read.
    start: usize,
    /// Where its next frame begins.
    next: usize,
    /// Its frames so far.
    parts: Vec<Range<usize>>,
    /// Whether it was handed out.
    is_taken: bool,
    read_bytes: usize,
}

impl Default for Inbound {
    fn default() -> Self {
        let read_bytes = FIRST_READ_BYTES;
        Self { bytes: Vec::new(), start: 0, next: 0, parts: Vec::new(), is_taken: false, read_bytes }
    }
}

impl Inbound {
    /// Where to append what was received. Call it when [`Self::next`] has nothing more.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.forget_taken();
        // A peer that fills what there is has more to say.
        if self.bytes.len() >= self.read_bytes {
            self.read_bytes = (2 * self.read_bytes).min(MOST_READ_BYTES);
        }
        let Self { start, next, .. } = *self;
        self.bytes.drain(..start);
        self.parts.iter_mut().for_each(|part| *part = part.start - start..part.end - start);
        (self.start, self.next) = (0, next - start);
        // One large message does not hold its memory for good.
        if self.bytes.len() < self.read_bytes && self.bytes.capacity() > 2 * MOST_READ_BYTES {
            self.bytes.shrink_to(2 * self.read_bytes);
        }
        self.bytes.reserve(self.read_bytes);
        &mut self.bytes
    }

    /// The next command or whole message. `None`: it is not all there yet.
    ///
    /// # Errors
    /// The peer breaks the protocol or a bound; nothing more can be read from it.
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from it")]
    pub fn next(&mut self) -> Result<Option<Unit<'_>>, DecodeError> {
        self.forget_taken();
        loop {
            let Some((flags, body)) = self.header()? else { return Ok(None) };
            if self.bytes.len() < body.end {
                return Ok(None);
            }
            self.next = body.end;
            if flags & COMMAND != 0 {
                return read_command(&self.bytes[body]).map(|command| Some(Unit::Command(command)));
            }
            if self.parts.len() == MAX_FRAMES {
                let text = format!("message of more than {MAX_FRAMES} frames");
                return Err(DecodeError::new(Reason::TooLarge, text));
            }
            self.parts.push(body);
            if flags & MORE == 0 {
                self.is_taken = true;
                return Ok(Some(Unit::Message(Frames { bytes: &self.bytes, parts: &self.parts })));
            }
        }
    }

    /// Flags of the next frame and where its body is.
    fn header(&self) -> Result<Option<(u8, Range<usize>)>, DecodeError> {
        let rest = &self.bytes[self.next..];
        let (flags, header, len) = match rest {
            [flags, rest @ ..] if flags & LONG != 0 => match rest.first_chunk::<8>() {
                Some(len) => (*flags, 9, u64::from_be_bytes(*len)),
                None => return Ok(None),
            },
            [flags, len, ..] => (*flags, 2, u64::from(*len)),
            _ => return Ok(None),
        };
        if flags & !(MORE | LONG | COMMAND) != 0 {
            return Err(DecodeError::new(Reason::Malformed, format!("frame: flags {flags:#04x}")));
        }
        let before = self.next - self.start + header;
        match usize::try_from(len) {
            Ok(len) if len <= MAX_MESSAGE_BYTES.saturating_sub(before) => {
                let begin = self.next + header;
                Ok(Some((flags, begin..begin + len)))
            }
            _ => {
                let text = format!("frame of {len} bytes; messages of at most {MAX_MESSAGE_BYTES} are read");
                Err(DecodeError::new(Reason::TooLarge, text))
            }
        }
    }

    fn forget_taken(&mut self) {
        if std::mem::take(&mut self.is_taken) {
            self.parts.clear();
        }
        if self.parts.is_empty() {
            self.start = self.next;
        }
    }
}

fn read_command(body: &[u8]) -> Result<Command<'_>, DecodeError> {
    let cut = || DecodeError::new(Reason::Truncated, "command cut short");
    let (name, data) = short(body).ok_or_else(cut)?;
    Ok(match name {
        b"READY" => Command::Ready { socket_type: socket_type(data).ok_or_else(cut)? },
        b"ERROR" => Command::Error { reason: short(data).ok_or_else(cut)?.0 },
        b"PING" => match data.get(2..) {
            Some(context) if context.len() <= MAX_PING_CONTEXT => Command::Ping { context },
            Some(_) => return Err(DecodeError::new(Reason::TooLarge, "context of a PING")),
            None => return Err(cut()),
        },
        b"PONG" => Command::Pong,
        b"SUBSCRIBE" => Command::Subscribe { prefix: data },
        _ => Command::Other,
    })
}

/// A text after its length in one byte, and what follows.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// The type among a socket's properties, "" if it is not there.
fn socket_type(mut data: &[u8]) -> Option<&[u8]> {
    while !data.is_empty() {
        let (name, rest) = short(data)?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        data = rest;
    }
    Some(b"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What libzmq 4.3 greeted us with: its padding is not empty.
    const LIBZMQ: [u8; GREETING_BYTES] = {
        let mut bytes = GREETING;
        bytes[8] = 1;
        bytes
    };

    /// Everything in `bytes`, handed over `step` bytes at a time, in words.
    fn read(bytes: &[u8], step: usize) -> (Vec<String>, Option<DecodeError>) {
        let (mut inbound, mut units) = (Inbound::default(), Vec::new());
        for some in bytes.chunks(step) {
            inbound.room().extend_from_slice(some);
            loop {
                match inbound.next() {
                    Ok(None) => break,
                    Ok(Some(Unit::Command(command))) => units.push(format!("{command:?}")),
                    Ok(Some(Unit::Message(frames))) => {
                        let frames: Vec<_> =
                            (0..frames.len()).map(|at| frames.get(at).unwrap().to_vec()).collect();
                        units.push(format!("{frames:?}"));
                    }
                    Err(error) => return (units, Some(error)),
                }
            }
        }
        (units, None)
    }

    #[test]
    fn a_greeting_names_the_version() {
        assert_eq!(read_greeting(&GREETING).unwrap(), Version { major: 3, minor: 1 });
        assert_eq!(read_greeting(&LIBZMQ).unwrap(), Version { major: 3, minor: 1 });
        let mut old = GREETING;
        old[11] = 0;
        assert!(!read_greeting(&old).unwrap().has_commands());
    }

    #[test]
    fn what_is_no_plain_zmtp_3_is_refused_with_a_reason() {
        let changed = |at: usize, with: &[u8]| {
            let mut bytes = GREETING;
            bytes[at..at + with.len()].copy_from_slice(with);
            read_greeting(&bytes).unwrap_err().detail
        };
        assert_eq!(changed(0, b"HTTP/1.1 4"), "greeting: not a ZeroMQ socket");
        assert_eq!(changed(10, &[2]), "greeting: ZMTP 2; at least 3.0 is needed");
        assert!(changed(12, b"CURVE").contains("CURVE"));
    }

    #[test]
    fn bytes_are_the_protocols_own() {
        assert_eq!(&ready("PUB")[..], b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
        assert_eq!(&subscribe("kv-events", Version { major: 3, minor: 0 })[..], b"\x00\x0a\x01kv-events");
        let with_command = subscribe("kv-events", Version { major: 3, minor: 1 });
        assert_eq!(&with_command[..], b"\x04\x13\x09SUBSCRIBEkv-events");
        assert_eq!(message(&[b"a", b""]), b"\x01\x01a\x00\x00");
        let long = message(&[&[7; 256]]);
        assert_eq!(&long[..10], b"\x02\0\0\0\0\0\0\x01\0\x07");
    }

    #[test]
    fn units_are_the_same_however_they_are_cut() {
        let mut bytes = ready("PUB");
        bytes.extend(ping(0));
        bytes.extend(message(&[b"kv-events", &[1; 8], &[2; 8], &[3; 700]]));
        // A heartbeat between two frames of a message.
        bytes.extend(b"\x01\x01a");
        bytes.extend(command("PING", b"\0\x05here"));
        bytes.extend(b"\x00\x01b");
        bytes.extend(command("ERROR", b"\x02no"));
        bytes.extend(command("NEW", b""));
        bytes.extend(pong(b""));
        let (whole, error) = read(&bytes, bytes.len());
        assert_eq!((whole.len(), error), (8, None), "{whole:?}");
        assert_eq!(whole[3], format!("{:?}", Command::Ping { context: b"here" }));
        assert_eq!(whole[4], format!("{:?}", [b"a", b"b"]));
        for step in [1, 2, 3, 9, 64, 701] {
            assert_eq!(read(&bytes, step).0, whole, "{step} bytes at a time");
        }
    }

    #[test]
    fn a_claim_of_a_huge_frame_reserves_nothing() {
        for claim in [MAX_MESSAGE_BYTES as u64, 1 << 44, u64::MAX] {
            let mut inbound = Inbound::default();
            inbound.room().push(LONG);
            inbound.room().extend_from_slice(&claim.to_be_bytes());
            assert_eq!(inbound.next().unwrap_err().reason, Reason::TooLarge, "{claim}");
            assert!(inbound.bytes.capacity() < 4 * FIRST_READ_BYTES);
        }
    }

    #[test]
    fn many_frames_together_are_bounded_too() {
        let part = [&[LONG | MORE][..], &(5u64 << 20).to_be_bytes(), &vec![0; 5 << 20]].concat();
        let (units, error) = read(&[part.clone(), part].concat(), 1 << 20);
        assert_eq!((units.len(), error.unwrap().reason), (0, Reason::TooLarge));
        let (units, error) = read(&[MORE, 0].repeat(MAX_FRAMES + 1), 7);
        assert_eq!((units.len(), error.unwrap().reason), (0, Reason::TooLarge));
    }

    #[test]
    fn a_large_message_gives_its_memory_back() {
        let mut inbound = Inbound::default();
        inbound.room().extend_from_slice(&message(&[&vec![0; 4 << 20]]));
        assert!(matches!(inbound.next(), Ok(Some(Unit::Message(_)))));
        inbound.room();
        assert!(
            inbound.bytes.capacity() <= 2 * MOST_READ_BYTES + FIRST_READ_BYTES,
            "{}",
            inbound.bytes.capacity()
        );
    }

    #[test]
    fn nonsense_is_an_error_and_nothing_worse() {
        assert_eq!(read(b"\x80\x00", 1).1.unwrap().reason, Reason::Malformed);
        for short in [&b"\x04\x00"[..], b"\x04\x01\x05", b"\x04\x06\x04PING\x01", b"\x04\x07\x05READY\x01"] {
            assert_eq!(read(short, 2).1.unwrap().reason, Reason::Truncated, "{short:?}");
        }
        let long_context = command("PING", &[0; 19]);
        assert_eq!(read(&long_context, 50).1.unwrap().reason, Reason::TooLarge);
    }
}
