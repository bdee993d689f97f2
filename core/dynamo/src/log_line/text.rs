//! What stands around a message in text: colours, a container runtime's prefix, time, level, spans, target.

use super::Level;
use super::clock::unix_us;

/// Words before the level that are looked at: a runtime's prefix is a few.
const MAX_PREFIX_WORDS: usize = 16;

/// A line in text, taken apart.
pub(super) struct TextLine<'a> {
    pub(super) at_us: Option<i64>,
    pub(super) level: Level,
    /// Spans and target, with their colons.
    pub(super) scope: &'a str,
    /// The message and the fields behind it.
    pub(super) message: &'a str,
}

/// Takes `<prefix> <time> <level> <span>:<span>: <target>: <message>` apart. `None`: it is no such line.
pub(super) fn head(line: &str) -> Option<TextLine<'_>> {
    let (mut rest, mut at_us) = (line, None);
    let level = (0..MAX_PREFIX_WORDS).find_map(|_| {
        let (word, after) = word(rest);
        rest = after;
        // The last time before the level is Dynamo's own; one before it is when a runtime took the line.
        at_us = unix_us(word).or(at_us);
        Level::of(word)
    })?;
    let scope_and_message = rest.trim_start();
    let mut message = scope_and_message;
    loop {
        let (word, after) = word(message);
        if !word.ends_with(':') {
            break;
        }
        message = after.trim_start();
    }
    let scope = &scope_and_message[..scope_and_message.len() - message.len()];
    (!scope.is_empty()).then_some(TextLine { at_us, level, scope, message })
}

/// The first word of a text and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(' ').unwrap_or(text.len()))
}

/// The object of a line of JSONL, without what a container runtime put in front of it. In text, braces come behind a
/// target and its colon.
pub(super) fn object(line: &str) -> Option<&str> {
    const MAX_PREFIX_BYTES: usize = 256;
    let at = line.find('{').filter(|at| *at <= MAX_PREFIX_BYTES)?;
    let (prefix, object) = line.split_at(at);
    (prefix.is_empty() || prefix.ends_with([' ', '\t']) && !prefix.contains(": ")).then_some(object)
}

/// The line without sequences of colour, also cut ones: `ESC [ … letter`.
pub(super) fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut parts = line.split('\x1b');
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let Some(sequence) = part.strip_prefix('[') else {
            plain.push_str(part);
            continue;
        };
        let end = sequence.find(|c: char| !matches!(c, '\x20'..='\x3f'));
        // The byte that ends a sequence is a letter or one of `@[\]^_{|}~`; anything else is text already.
        if let Some((at, last)) = end.and_then(|at| Some((at, sequence[at..].chars().next()?))) {
            let is_last = matches!(last, '\x40'..='\x7e');
            plain.push_str(&sequence[at + usize::from(is_last)..]);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_also_where_they_are_cut() {
        for (line, plain) in [
            ("\x1b[2ma\x1b[0m \x1b[32m INFO\x1b[0m", "a  INFO"),
            ("\x1b[38;5;208morange\x1b[0m", "orange"),
            ("a\x1b", "a"),
            ("a\x1b[", "a"),
            ("a\x1b[3", "a"),
            ("a\x1b[3é", "aé"),
            ("\x1b\x1b[0mb", "b"),
            ("é\x1bé", "éé"),
        ] {
            assert_eq!(without_colours(line), plain, "{line:?}");
        }
    }

    #[test]
    fn a_runtimes_prefix_is_no_part_of_the_line() {
        let line = "2026-11-20T18:06:54.000001Z  INFO http-request: dynamo_llm::x: Selected worker a=1";
        for prefix in
            ["", "2026-11-20T20:00:00.123456789Z stderr F ", "[pod/frontend-0/main] ", "frontend-1  | "]
        {
            let line = format!("{prefix}{line}");
            let head = head(&line).unwrap();
            assert_eq!(head.at_us, Some(1_795_198_014_000_001), "{line}");
            assert_eq!((head.level, head.scope), (Level::Info, "http-request: dynamo_llm::x: "));
            assert_eq!(head.message, "Selected worker a=1");
            assert!(object(&line).is_none());
            let json = format!(r#"{prefix}{{"level":"INFO","a":"b: {{"}}"#);
            assert_eq!(object(&json), Some(r#"{"level":"INFO","a":"b: {"}"#));
        }
        for no_line in
            ["", " ", "INFO", "INFO message without target", "2026-11-20T18:06:54Z target: message"]
        {
            assert!(head(no_line).is_none(), "{no_line:?}");
        }
    }
}
