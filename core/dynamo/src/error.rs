//! Why bytes from outside were not understood.

use std::fmt;

pub use radixscope_model::record::RejectReason as Reason;

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

    /// A fault in words; what is longer than [`Self::MAX_DETAIL_CHARS`] is cut between characters.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if let Some((end, _)) = detail.char_indices().nth(Self::MAX_DETAIL_CHARS) {
            detail.truncate(end);
        }
        Self { reason, detail }
    }
}

/// What a message held beside that which was understood: never empty, one sample for each reason.
///
/// At most as many entries as there are reasons, however many parts of a message are bad.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    kinds: Vec<(DecodeError, u64)>,
}

impl Faults {
    /// The first fault of each reason, and how many parts of the message had a fault of that reason.
    pub fn iter(&self) -> impl Iterator<Item = (&DecodeError, u64)> {
        self.kinds.iter().map(|(error, count)| (error, *count))
    }

    /// How many parts of the message were not understood.
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|(_, count)| count).sum()
    }

    /// Counts a fault; `error` is asked for only if it is the first of its reason.
    pub(super) fn count(&mut self, reason: Reason, error: impl FnOnce() -> DecodeError) {
        match self.kinds.iter_mut().find(|(known, _)| known.reason == reason) {
            Some((_, count)) => *count += 1,
            None => self.kinds.push((error(), 1)),
        }
    }

    /// `Ok` if nothing was counted.
    pub(super) fn into_result(self) -> Result<(), Faults> {
        if self.kinds.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<DecodeError> for Faults {
    fn from(error: DecodeError) -> Self {
        Self { kinds: vec![(error, 1)] }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (error, count)) in self.kinds.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
            if *count > 1 {
                write!(f, " (and {} like it)", count - 1)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        let error = DecodeError::new(Reason::Malformed, "é".repeat(DecodeError::MAX_DETAIL_CHARS + 5));
        assert_eq!(error.detail, "é".repeat(DecodeError::MAX_DETAIL_CHARS));
    }

    #[test]
    fn faults_keep_one_sample_for_each_reason_and_count_all() {
        let mut faults = Faults::default();
        for (reason, detail) in [(Reason::WrongType, "a"), (Reason::Malformed, "b"), (Reason::WrongType, "c")]
        {
            faults.count(reason, || DecodeError::new(reason, detail));
        }
        assert_eq!(faults.to_string(), "a (and 1 like it); b");
        assert_eq!(faults.total(), 3);
    }
}
