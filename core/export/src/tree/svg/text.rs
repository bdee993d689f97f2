//! Text within XML.

use std::fmt::{self, Write as _};

/// Text whose characters mean nothing to an XML reader; those that XML does not allow become U+FFFD.
pub(super) struct Escaped<'a>(pub(super) &'a str);

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
pub(super) struct Px(pub(super) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (self.0 * 100.0).round() as i64;
        write!(f, "{}", hundredths as f64 / 100.0)
    }
}

/// Width of a character of this size in a wide font of this kind: an estimate, because fonts differ.
const CHAR_PX: f64 = 6.9;

/// Width of text, rather too much than too little.
pub(super) fn width_px(text: &str) -> f64 {
    text.chars().count() as f64 * CHAR_PX
}

/// As much of `text` as fits.
pub(super) fn cut(text: &str, width: f64) -> String {
    if width_px(text) <= width {
        return text.to_owned();
    }
    let most = (width / CHAR_PX) as usize;
    text.chars().take(most.saturating_sub(1)).chain(std::iter::once('…')).collect()
}
