//! CSV as every export writes it (RFC 4180): CRLF, quotes where a reader needs them; and text that a spreadsheet would run as a
//! formula, made harmless and read back.

use std::io::Write;

use csv::{Terminator, Writer, WriterBuilder};

/// Writes records to `to`. A field with `#` is quoted too: some readers skip what begins with it as a comment.
pub fn writer<W: Write>(to: W) -> Writer<W> {
    WriterBuilder::new().terminator(Terminator::CRLF).comment(Some(b'#')).from_writer(to)
}

/// `records` as text; all must have the same number of fields.
pub fn to_text<F: AsRef<[u8]>>(records: impl IntoIterator<Item = impl IntoIterator<Item = F>>) -> String {
    let mut writer = writer(Vec::new());
    for record in records {
        // Memory takes everything, so that only a record of another length would be left out.
        let written = writer.write_record(record);
        debug_assert!(written.is_ok(), "{written:?}");
    }
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Whether a spreadsheet would run `text` as a formula.
pub fn is_formula(text: &str) -> bool {
    text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// `text` with an apostrophe before it if a spreadsheet would run it, or if [`unguard`] would take such an apostrophe away.
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

#[cfg(test)]
mod tests {
    use super::to_text;

    #[test]
    fn fields_are_quoted_where_a_reader_needs_it() {
        let text = to_text([
            ["a", "", "b c", "d,e", "\"f\"g", "# h", "i\nj", "k\r"],
            ["", "ä", "", "", "", "", "", "l#"],
        ]);
        let first = "a,,b c,\"d,e\",\"\"\"f\"\"g\",\"# h\",\"i\nj\",\"k\r\"\r\n";
        assert_eq!(text, format!("{first},ä,,,,,,\"l#\"\r\n"));
    }
}
