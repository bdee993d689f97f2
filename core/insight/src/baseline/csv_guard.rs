//! Text in CSV that a spreadsheet would run as a formula, made harmless and read back.

/// Whether a spreadsheet would take `text` for a formula.
pub fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// `text` with an apostrophe before it if it would be taken for a formula, or for such an apostrophe by [`unguard`].
pub fn guard(text: &str) -> String {
    if is_formula(text) || text.starts_with('\'') { format!("'{text}") } else { text.to_owned() }
}

/// The text that [`guard`] was given.
pub fn unguard(text: &str) -> &str {
    match text.strip_prefix('\'') {
        Some(guarded) if is_formula(guarded) || guarded.starts_with('\'') => guarded,
        _ => text,
    }
}
