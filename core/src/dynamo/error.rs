//! Why bytes from outside were not understood.

pub use crate::record::RejectReason as Reason;

/// Input that was not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{detail}")]
pub struct DecodeError {
    /// Kind of fault, as it is counted.
    pub reason: Reason,
    /// The fault in words, at most [`DecodeError::MAX_DETAIL_CHARS`] long; may quote the input.
    pub detail: String,
}

impl DecodeError {
    /// Longest `detail`.
    pub const MAX_DETAIL_CHARS: usize = 200;
}
