//! Numbers out of text that was pasted from anywhere: logs, JSON, Python, a spreadsheet. What is no number is counted and
//! named, never silently dropped. Knows no page.

use std::str::FromStr;

/// Most bytes of text that are read.
pub const MAX_BYTES: usize = 8 << 20;
/// Most numbers that are taken: as many tokens as no context has.
pub const MAX_NUMBERS: usize = 2_000_000;
/// Pieces that are named when they were not understood.
const NAMED: usize = 3;
/// Characters of a named piece.
const NAMED_CHARS: usize = 24;

/// What was found in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pasted<T> {
    /// The numbers, in their order.
    pub numbers: Vec<T>,
    /// Pieces that are no such number.
    pub not_understood: usize,
    /// The first of them, shortened.
    pub named: Vec<String>,
    /// Whether there was more than is taken.
    pub is_cut: bool,
}

impl<T> Default for Pasted<T> {
    fn default() -> Self {
        Self { numbers: Vec::new(), not_understood: 0, named: Vec::new(), is_cut: false }
    }
}

/// Finds the whole numbers in a text. Between them may stand spaces, commas, semicolons, brackets, quotes, line ends.
pub fn numbers<T: FromStr>(text: &str) -> Pasted<T> {
    let mut pasted = Pasted::default();
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    pasted.is_cut = end < text.len();
    let between = |c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '[' | ']' | '(' | ')' | '{' | '}' | '"' | '\'')
    };
    for piece in text[..end].split(between).filter(|piece| !piece.is_empty()) {
        // A sign is no part of an id or hash, even a plus.
        let number = if piece.bytes().all(|byte| byte.is_ascii_digit()) { piece.parse().ok() } else { None };
        match number {
            Some(_) if pasted.numbers.len() == MAX_NUMBERS => {
                pasted.is_cut = true;
                break;
            }
            Some(number) => pasted.numbers.push(number),
            None => {
                pasted.not_understood += 1;
                if pasted.named.len() < NAMED {
                    pasted.named.push(piece.chars().take(NAMED_CHARS).collect());
                }
            }
        }
    }
    pasted
}

impl<T> Pasted<T> {
    /// What is wrong with the text, as text; `None` where nothing is.
    pub fn complaint(&self) -> Option<String> {
        let mut faults = Vec::new();
        if self.not_understood > 0 {
            let named: Vec<String> = self.named.iter().map(|piece| format!("“{piece}”")).collect();
            let more = if self.not_understood > self.named.len() { " …" } else { "" };
            let pieces = if self.not_understood == 1 { "piece is" } else { "pieces are" };
            faults.push(format!(
                "{} {pieces} not a whole number and ignored: {}{more}",
                self.not_understood,
                named.join(", ")
            ));
        }
        if self.is_cut {
            faults.push("the text is longer than 8 MiB or 2,000,000 numbers; the rest is ignored".to_owned());
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_between_whatever_people_paste() {
        for text in ["1, 2,3", "[1 2\n3]", "{\"token_ids\": [1,2,3]}", "('1';'2';'3')"] {
            assert_eq!(numbers::<u32>(text).numbers, [1, 2, 3], "{text}");
        }
        assert_eq!(numbers::<u64>("18446744073709551615").numbers, [u64::MAX]);
    }

    #[test]
    fn what_is_no_number_is_counted_and_named() {
        let pasted = numbers::<u32>("1 two -3 4294967296 5.0 6");
        assert_eq!((pasted.numbers.as_slice(), pasted.not_understood), ([1, 6].as_slice(), 4));
        let complaint = pasted.complaint().unwrap();
        assert_eq!(complaint, "4 pieces are not a whole number and ignored: “two”, “-3”, “4294967296” …");
        assert_eq!(numbers::<u32>("1 2").complaint(), None);
    }

    #[test]
    fn a_huge_text_is_read_up_to_its_bound() {
        let pasted = numbers::<u32>(&"é1 ".repeat(MAX_BYTES / 3));
        assert!(pasted.is_cut && pasted.numbers.is_empty());
        assert!(numbers::<u32>(&"1 ".repeat(MAX_NUMBERS + 1)).is_cut);
    }
}
