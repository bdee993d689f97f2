//! The player: a recording that the reader opened, in a Web Worker with a program of its own, in the place of a server. It
//! answers the addresses that a server answers; its bodies are those of `core/replay`.
//!
//! The page sends an array of files, once, and then addresses, each after its number; each is responded to by a [`Reply`].

pub mod slices;

#[cfg(target_arch = "wasm32")]
pub mod serve;

/// Number of what the player says first: it listens.
pub const READY: u32 = 0;
/// Number of the response to the files: three `u64`, the least byte first: beginning and end in Unix milliseconds, bytes lost;
/// a text where they cannot be opened.
pub const OPENED: u32 = 1;
/// Bytes of a number and a status, the head of a message.
pub const HEAD: usize = 4 + 2;

/// What the player says.
pub struct Reply<'a> {
    /// Number of the request.
    pub number: u32,
    /// Status of HTTP.
    pub status: u16,
    /// The body.
    pub body: &'a [u8],
}

impl<'a> Reply<'a> {
    /// From a message.
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let (head, body) = message.split_first_chunk::<HEAD>()?;
        let [a, b, c, d, e, f] = *head;
        Some(Self { number: u32::from_le_bytes([a, b, c, d]), status: u16::from_le_bytes([e, f]), body })
    }

    /// The head of its message; the body follows.
    pub fn head(&self) -> [u8; HEAD] {
        let ([a, b, c, d], [e, f]) = (self.number.to_le_bytes(), self.status.to_le_bytes());
        [a, b, c, d, e, f]
    }
}

#[cfg(test)]
mod tests {
    use super::Reply;

    #[test]
    fn a_reply_arrives() {
        let head = Reply { number: 70_000, status: 404, body: b"why" }.head();
        let message = [&head[..], b"why"].concat();
        let reply = Reply::read(&message).expect("whole");
        assert_eq!((reply.number, reply.status, reply.body), (70_000, 404, &b"why"[..]));
        assert!(Reply::read(&message[..5]).is_none());
    }
}
