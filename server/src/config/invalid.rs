//! The error for an option with an unusable value.

/// An option whose file, address or token cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{option}: {why}")]
pub struct InvalidOption {
    option: String,
    why: String,
}

impl InvalidOption {
    /// `option` as given, without secrets.
    pub(crate) fn new(option: impl Into<String>, why: impl ToString) -> Self {
        Self { option: option.into(), why: why.to_string() }
    }
}
