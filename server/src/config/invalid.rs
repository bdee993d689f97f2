//! What is said of an option that was read and cannot be used.

/// An option that cannot be used: its file, its address, its token.
#[derive(Debug, thiserror::Error)]
#[error("{option}: {why}")]
pub struct InvalidOption {
    option: String,
    why: String,
}

impl InvalidOption {
    /// `option` as it was given, but for secrets.
    pub(crate) fn new(option: impl Into<String>, why: impl ToString) -> Self {
        Self { option: option.into(), why: why.to_string() }
    }
}
