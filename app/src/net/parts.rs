//! Frames out of a body that comes in pieces: each stands after its length in four bytes, the least first. Pure.

/// A longer frame is none of ours: parts of a snapshot are far smaller.
const MAX_FRAME_BYTES: usize = 256 << 20;
/// Bytes of a length.
const LENGTH: usize = 4;

/// A length that no frame of ours has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// What came and was not taken yet.
#[derive(Default)]
pub struct Parts {
    bytes: Vec<u8>,
    taken: usize,
}

impl Parts {
    /// Adds what came.
    pub fn push(&mut self, more: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(more);
    }

    /// The next frame; `None` where it has not come in full.
    ///
    /// # Errors
    /// Its length is none.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME_BYTES {
            return Err(TooLong);
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        self.taken += LENGTH + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::{Parts, TooLong};

    #[test]
    fn frames_come_out_whole_however_the_body_is_cut() {
        let body = b"\x05\0\0\0hello\0\0\0\0\x05\0\0\0state";
        for piece in 1..=body.len() {
            let mut parts = Parts::default();
            let mut frames = Vec::new();
            for piece in body.chunks(piece) {
                parts.push(piece);
                while let Some(frame) = parts.next_frame().expect("short frames") {
                    frames.push(frame.to_vec());
                }
            }
            assert_eq!(frames, [&b"hello"[..], b"", b"state"], "in pieces of {piece}");
        }
    }

    #[test]
    fn a_frame_that_ends_too_early_never_comes() {
        let mut parts = Parts::default();
        parts.push(b"\x05\0\0\0hell");
        assert_eq!(parts.next_frame(), Ok(None));
    }

    #[test]
    fn a_length_that_no_frame_has_is_refused() {
        let mut parts = Parts::default();
        parts.push(b"<!doctype html>");
        assert_eq!(parts.next_frame(), Err(TooLong));
    }
}
