//! Lines of CSV by RFC 4180: quotes where needed, CRLF at the end.

/// Adds a line with `fields` to `text`. A field with `#` is quoted too: some readers take what begins with it for a comment.
pub fn push_line<T: AsRef<str>>(text: &mut String, fields: impl IntoIterator<Item = T>) {
    for (at, field) in fields.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        push_field(text, field.as_ref());
    }
    text.push_str("\r\n");
}

fn push_field(text: &mut String, field: &str) {
    if !field.contains([',', '"', '#', '\r', '\n']) {
        return text.push_str(field);
    }
    text.push('"');
    for (at, part) in field.split('"').enumerate() {
        if at > 0 {
            text.push_str("\"\"");
        }
        text.push_str(part);
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::push_line;

    #[test]
    fn quotes_stand_where_a_reader_needs_them() {
        let mut text = String::new();
        push_line(&mut text, ["a", "", "b c", "d,e", "\"f\"g", "# h", "i\nj", "k\r"]);
        push_line(&mut text, [String::new(), "ä".to_owned()]);
        assert_eq!(text, "a,,b c,\"d,e\",\"\"\"f\"\"g\",\"# h\",\"i\nj\",\"k\r\"\r\n,ä\r\n");
    }
}
