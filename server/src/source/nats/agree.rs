//! How far a stream and what was handed over of it agree: usually up to where we were.
//!
//! A server that died may have lost its latest messages, which we had received, and have given their numbers to new
//! ones since. So a place is believed only where the message at it was handed over.

/// Messages may stand in the stream in a slightly other order than they arrived live: so near to the place is the place.
pub(super) const NEAR: u64 = 1_024;
/// First step back from where we were; each further one doubles it.
const FIRST_STEP: u64 = 64;

/// Where a stream and what was handed over agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Agreed {
    /// Up to here at least.
    Upto(u64),
    /// Nothing is left to compare with: all of it expired, or nothing was handed over yet.
    Unknown,
    /// Nothing that is remembered is where it was.
    Nowhere,
}

/// A search back from where we were.
pub(super) struct Search {
    end: u64,
    /// How far back there is something to compare with.
    remembered: u64,
    back: u64,
    has_compared: bool,
}

impl Search {
    /// Back from number `end`, where so many are remembered.
    pub(super) fn new(end: u64, remembered: u64) -> Self {
        Self { end, remembered: remembered.min(end), back: 0, has_compared: false }
    }

    /// The number to look at next, or how the search ended.
    pub(super) fn next(&self) -> Result<u64, Agreed> {
        if self.back < self.remembered {
            return Ok(self.end - self.back);
        }
        Err(if self.has_compared { Agreed::Nowhere } else { Agreed::Unknown })
    }

    /// The message there was not handed over, or (`None`) there is none.
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
    fn what_cannot_be_compared_tells_nothing() {
        assert_eq!(look(10, 5, |_| None), Agreed::Unknown);
        assert_eq!(look(10, 0, |_| Some(false)), Agreed::Unknown);
        assert_eq!(look(1_000, 900, |seq| (seq > 950).then_some(false)), Agreed::Nowhere);
    }
}
