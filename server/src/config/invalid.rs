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

    /// What was asked for needs a cargo feature that this binary was built without.
    pub fn needs_feature(option: impl Into<String>, feature: &str) -> Self {
        let why = format!(
            "this binary was built without the cargo feature {feature}, which the released one has; build with --features full"
        );
        Self::new(option, why)
    }
}
