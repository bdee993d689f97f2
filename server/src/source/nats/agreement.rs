//! Finds the last position at which a stream still holds the messages that were received from it. A server that crashed may
//! have lost its latest messages after Radixscope received them, and reused their sequence numbers. So a position only counts
//! if the message there is one that was received.

/// Tolerance in messages: messages may be stored in a slightly different order than they arrived live.
pub(super) const NEAR: u64 = 1_024;
/// First step back from the last position; it doubles with each step.
const FIRST_STEP: u64 = 64;

/// The last position at which both agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Agreed {
    /// At least up to this sequence number.
    Upto(u64),
    /// Nothing to compare: all messages expired, or none was received yet.
    Unknown,
    /// None of the remembered messages is at its position.
    Nowhere,
}

/// A backward search from the last position.
pub(super) struct Search {
    end: u64,
    /// Number of remembered messages.
    remembered: u64,
    back: u64,
    has_compared: bool,
}

impl Search {
    /// Starts at sequence number `end`, with `remembered` messages to compare.
    pub(super) fn new(end: u64, remembered: u64) -> Self {
        Self { end, remembered: remembered.min(end), back: 0, has_compared: false }
    }

    /// The next sequence number to compare, or the result.
    pub(super) fn next(&self) -> Result<u64, Agreed> {
        if self.back < self.remembered {
            return Ok(self.end - self.back);
        }
        Err(if self.has_compared { Agreed::Nowhere } else { Agreed::Unknown })
    }

    /// The message there was not received (`Some(false)`), or does not exist (`None`).
    pub(super) fn is_not_there(&mut self, was_handed_over: Option<bool>) {
        self.has_compared |= was_handed_over.is_some();
        self.back = (self.back * 2).max(FIRST_STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(end: u64, remembered: u64, of: impl Fn(u64) -> Option<bool>) -> Agreed {
        let mut search = Search::new(end, remembered);
        loop {
            match search.next().map(|seq| (seq, of(seq))) {
                Ok((seq, Some(true))) => return Agreed::Upto(seq),
                Ok((_, other)) => search.is_not_there(other),
                Err(agreed) => return agreed,
            }
        }
    }

    #[test]
    fn the_place_itself_is_looked_at_first() {
        assert_eq!(look(10, 5, |_| Some(true)), Agreed::Upto(10));
    }

    #[test]
    fn what_was_written_anew_is_passed_over() {
        assert_eq!(look(10_000, 8_000, |seq| Some(seq <= 9_700)), Agreed::Upto(9_488));
        assert_eq!(look(10_000, 200, |seq| Some(seq <= 9_700)), Agreed::Nowhere);
    }

    #[test]
    fn what_cannot_be_compared_shows_nothing() {
        assert_eq!(look(10, 5, |_| None), Agreed::Unknown);
        assert_eq!(look(10, 0, |_| Some(false)), Agreed::Unknown);
        assert_eq!(look(1_000, 900, |seq| (seq > 950).then_some(false)), Agreed::Nowhere);
    }
}
