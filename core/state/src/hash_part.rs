//! A part of a hash, as people copy it from logs: a beginning, digits from its midst, or what `…` or `...` has left of it.
//! Pure; knows no tree.

/// Fewest digits that are looked for: with fewer, a tree of some thousand blocks has hundreds of them.
pub const MIN_DIGITS: usize = 4;
/// Most digits that a hash has, in decimal.
const MAX_DIGITS: usize = 20;

/// Where in a hash the digits are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DigitPosition {
    /// It begins with them, or with those before the dots.
    Beginning,
    /// They are somewhere in it.
    Midst,
}

/// Digits of a hash. In all numeral systems at once that they may be meant in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HashPart {
    head: Vec<u8>,
    /// What followed the dots; `None`: there were none.
    tail: Option<Vec<u8>>,
    is_signed: bool,
    is_decimal: bool,
    is_hex: bool,
}

impl HashPart {
    /// Reads a text: digits of either system, with `0x` or `-` before them or not, with dots at the end, at the beginning
    /// or in the midst. `None`: it is none of that, or has fewer than [`MIN_DIGITS`].
    pub fn parse(text: &str) -> Option<Self> {
        let (head, tail) = match text.split_once('…').or_else(|| text.split_once("...")) {
            Some((head, tail)) => (head, Some(tail.as_bytes().to_ascii_lowercase())),
            None => (text, None),
        };
        let (is_signed, head) = head.strip_prefix('-').map_or((false, head), |rest| (true, rest));
        let bare = head.strip_prefix("0x").or_else(|| head.strip_prefix("0X"));
        let is_hex_alone = bare.is_some();
        let head = bare.unwrap_or(head).as_bytes().to_ascii_lowercase();
        let digits = || head.iter().chain(tail.iter().flatten());
        let count = digits().count();
        let is_hex = digits().all(u8::is_ascii_hexdigit) && !is_signed && count <= 16;
        let is_decimal = digits().all(u8::is_ascii_digit) && !is_hex_alone;
        let fits = (MIN_DIGITS..=MAX_DIGITS).contains(&count) && (is_hex || is_decimal);
        fits.then_some(Self { head, tail, is_signed, is_decimal, is_hex })
    }

    /// Whether `hash` has these digits, and where.
    pub fn place_in(&self, hash: u64) -> Option<DigitPosition> {
        let decimal = self.place_in_decimal(hash);
        if decimal == Some(DigitPosition::Beginning) || !self.is_hex {
            return decimal;
        }
        self.place_in_hex(hash).or(decimal)
    }

    fn place_in_decimal(&self, hash: u64) -> Option<DigitPosition> {
        let mut room = [0; MAX_DIGITS];
        let signed = hash.cast_signed();
        match self.is_signed {
            true if signed < 0 => self.place(written(signed.unsigned_abs(), 10, &mut room)),
            false if self.is_decimal => self.place(written(hash, 10, &mut room)),
            _ => None,
        }
    }

    /// The page writes sixteen digits, engines as many as it takes.
    fn place_in_hex(&self, hash: u64) -> Option<DigitPosition> {
        let mut room = [0; MAX_DIGITS];
        let digits = written(hash, 16, &mut room);
        let zeros = 16 - digits.len().min(16);
        let begins_with_zeros = self.head.split_at_checked(zeros).is_some_and(|(before, rest)| {
            before.iter().all(|&digit| digit == b'0') && digits.starts_with(rest) && self.ends(digits)
        });
        if begins_with_zeros { Some(DigitPosition::Beginning) } else { self.place(digits) }
    }

    fn place(&self, digits: &[u8]) -> Option<DigitPosition> {
        let fits = digits.len() >= self.head.len() + self.tail.as_ref().map_or(0, Vec::len);
        if fits && digits.starts_with(&self.head) && self.ends(digits) {
            return Some(DigitPosition::Beginning);
        }
        let is_anywhere = self.tail.is_none() && !self.is_signed;
        (is_anywhere && digits.windows(self.head.len()).any(|some| some == self.head))
            .then_some(DigitPosition::Midst)
    }

    fn ends(&self, digits: &[u8]) -> bool {
        self.tail.as_ref().is_none_or(|tail| digits.ends_with(tail))
    }
}

/// The digits of a number. `std`'s formatting takes several times as long, and a tree has millions of hashes.
fn written(mut number: u64, base: u64, room: &mut [u8; MAX_DIGITS]) -> &[u8] {
    let mut at = room.len();
    while at > 0 {
        at -= 1;
        room[at] = b"0123456789abcdef"[(number % base) as usize];
        number /= base;
        if number == 0 {
            break;
        }
    }
    &room[at..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(text: &str, hash: u64) -> Option<DigitPosition> {
        HashPart::parse(text)?.place_in(hash)
    }

    const HASH: u64 = 12_345_678_901_234_567_890;

    #[test]
    fn a_beginning_and_digits_from_the_midst_are_found() {
        assert_eq!(place("12345", HASH), Some(DigitPosition::Beginning));
        assert_eq!(place("9012", HASH), Some(DigitPosition::Midst));
        assert_eq!(place("1235", HASH), None);
        // ab54a98ceb1f0ad2
        assert_eq!(place("0xab54", HASH), Some(DigitPosition::Beginning));
        assert_eq!(place("AB54A9", HASH), Some(DigitPosition::Beginning));
        assert_eq!(place("0xceb1f", HASH), Some(DigitPosition::Midst));
        assert_eq!(place("0xab55", HASH), None);
    }

    #[test]
    fn what_dots_have_left_is_found() {
        for text in ["12345…", "12345...", "…67890", "...7890", "123…890", "0xab5…ad2", "ab54…", "…0ad2"]
        {
            assert_eq!(place(text, HASH), Some(DigitPosition::Beginning), "{text}");
        }
        for text in ["12346…", "…6789", "2345…", "123…891", "0xab5…ad3"] {
            assert_eq!(place(text, HASH), None, "{text}");
        }
        assert_eq!(place("123456789…34567890", 1_234_567_890), None, "both ends do not overlap");
    }

    #[test]
    fn negative_numbers_are_the_same_64_bits() {
        // -6101065172474983726
        assert_eq!(place("-61010", HASH), Some(DigitPosition::Beginning));
        assert_eq!(place("-6101…3726", HASH), Some(DigitPosition::Beginning));
        assert_eq!(place("-0106", HASH), None);
        assert_eq!(place("-1234", 1234), None);
    }

    #[test]
    fn leading_zeros_of_the_page_are_no_obstacle() {
        assert_eq!(place("0x00ab", 0x00ab_1234_5678_9abc), Some(DigitPosition::Beginning));
        assert_eq!(place("00ab12…", 0x00ab_1234_5678_9abc), Some(DigitPosition::Beginning));
        assert_eq!(place("0xab12", 0x00ab_1234_5678_9abc), Some(DigitPosition::Beginning));
        assert_eq!(place("0x0ab1", 0x00ab_1234_5678_9abc), None);
    }

    #[test]
    fn what_is_no_part_of_a_hash_is_none() {
        for text in
            ["", "123", "0x12", "…", "12…3", "xyzw", "12 34", "-ab12", "123456789012345678901", "1…2…3456"]
        {
            assert_eq!(HashPart::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_part_of_a_hash_finds_it(hash: u64, from in 0usize..12, len in 4usize..20) {
            for text in [hash.to_string(), format!("{hash:016x}")] {
                let part: String = text.chars().skip(from).take(len).collect();
                if part.len() < MIN_DIGITS {
                    continue;
                }
                // Zeros that only the page writes are no part of the number where they do not begin it.
                let is_padding = from > 0 && part.starts_with('0') && text.len() == 16;
                let place = HashPart::parse(&part).and_then(|part| part.place_in(hash));
                prop_assert!(place.is_some() || is_padding, "{} of {}", part, text);
                if from == 0 && text.len() > len {
                    prop_assert_eq!(HashPart::parse(&format!("{part}…")).and_then(|p| p.place_in(hash)), Some(DigitPosition::Beginning));
                }
            }
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC*", hash: u64) {
            let _ = HashPart::parse(&text).map(|part| part.place_in(hash));
        }
    }
}
