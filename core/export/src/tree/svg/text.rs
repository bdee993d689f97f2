//! Text within XML.

use std::fmt::{self, Write as _};

/// Text whose characters mean nothing to an XML reader; those that XML does not allow become U+FFFD.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' | '\r' => f.write_char(' ')?,
                '\0'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A length in pixels, to a hundredth.
pub(crate) struct Px(pub(crate) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100.0).round() as i64;
        let (mut whole, part) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
        // From the right, by hand: a picture has tens of thousands of lengths, and a float's shortest form takes long.
        let mut text = [0; LONGEST_PX];
        let mut at = text.len();
        let mut put = |byte: u8| {
            at -= 1;
            text[at] = byte;
        };
        if !part.is_multiple_of(10) {
            put(b'0' + (part % 10) as u8);
        }
        if part > 0 {
            put(b'0' + (part / 10) as u8);
            put(b'.');
        }
        loop {
            put(b'0' + (whole % 10) as u8);
            whole /= 10;
            if whole == 0 {
                break;
            }
        }
        if hundredths < 0 {
            put(b'-');
        }
        f.write_str(str::from_utf8(&text[at..]).unwrap_or_default())
    }
}

/// A sign, the digits of the largest number of hundredths, and a point.
const LONGEST_PX: usize = 24;

/// Width of a character of 11 pixels in a wide font of this kind: an estimate, because fonts differ.
fn char_px(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '|' | '\'' | '.' | ',' | ':' | ';' | ' ' | '!' => 3.7,
        'f' | 't' | 'r' | '(' | ')' | '/' | '-' | '·' => 4.7,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '—' | '…' | '→' | '≥' | '≈' => 10.8,
        'A'..='Z' => 8.4,
        '\u{2e80}'.. => 11.5,
        _ => 7.1,
    }
}

/// Width of text, rather too much than too little.
pub(crate) fn width_px(text: &str) -> f64 {
    text.chars().map(char_px).sum()
}

/// As much of `text` as fits.
pub(crate) fn cut(text: &str, width: f64) -> String {
    if width_px(text) <= width {
        return text.to_owned();
    }
    let mut room = width - char_px('…');
    let fits = |c: &char| {
        room -= char_px(*c);
        room >= 0.0
    };
    text.chars().take_while(fits).chain(std::iter::once('…')).collect()
}

/// `text` in lines that are at most so wide in letters of `size` pixels, cut after `most` lines.
pub(crate) fn wrap(text: &str, width: f64, size: f64, most: usize) -> Vec<String> {
    let width = width * 11.0 / size;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = lines.len() == most;
        match lines.last_mut() {
            Some(line) if width_px(line) + width_px(word) + char_px(' ') <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if is_last => {
                line.push(' ');
                line.push_str(word);
                break;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, width)).collect()
}
