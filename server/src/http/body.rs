//! The bodies of requests: within a size and a time, in turn with other tasks.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::task::yield_now;
use tokio::time::timeout;

/// How long a body may take.
pub(crate) const BODY_WITHIN: Duration = Duration::from_secs(20);
/// How much is read until other tasks have their turn. A sender on the same machine never has to be waited for: a few of them would hold all
/// threads for tens of MB at a time.
const TURN_BYTES: usize = 256 * 1024;

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is longer than it may be.
    TooLarge,
    /// It did not arrive within [`BODY_WITHIN`].
    TooSlow,
    /// It ended before its end.
    Broken(axum::Error),
}

/// A body of at most `most` bytes.
///
/// # Errors
/// It is longer, takes too long, or breaks off.
pub(crate) async fn read_body(body: Body, most: usize) -> Result<Bytes, BodyError> {
    let mut pieces = Pieces { body, in_turn: 0 };
    let whole = async {
        let (mut all, mut length) = (Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(BodyError::Broken)?;
            length += piece.len();
            if length > most {
                return Err(BodyError::TooLarge);
            }
            all.push(piece);
        }
        Ok(match <[Bytes; 1]>::try_from(all) {
            Ok([whole]) => whole,
            Err(all) => all.concat().into(),
        })
    };
    timeout(BODY_WITHIN, whole).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Reads and discards a body of at most `most` bytes: many clients read no response before they have sent everything.
pub(crate) async fn discard_body(body: Body, most: usize) {
    let mut pieces = Pieces { body, in_turn: 0 };
    let all = async {
        let mut left = most;
        while let Some(Ok(piece)) = pieces.next().await {
            match left.checked_sub(piece.len()) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    // One that is too slow is left.
    let _ = timeout(BODY_WITHIN, all).await;
}

struct Pieces {
    body: Body,
    /// Bytes read since other tasks had their turn.
    in_turn: usize,
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            if self.in_turn >= TURN_BYTES {
                self.in_turn = 0;
                yield_now().await;
            }
            match self.body.frame().await?.map(|frame| frame.into_data()) {
                Ok(Ok(piece)) => {
                    self.in_turn += piece.len();
                    return Some(Ok(piece));
                }
                // Trailers.
                Ok(Err(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use axum::body::Body;
    use futures_util::stream;

    use super::*;

    fn of(pieces: &[usize]) -> Body {
        let pieces: Vec<_> = pieces.iter().map(|&length| Ok::<_, Infallible>(vec![7; length])).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_bound() {
        let read = async |pieces: &[usize]| read_body(of(pieces), 10).await;
        for pieces in [&[][..], &[10], &[4, 6], &[0, 4, 0, 6]] {
            assert_eq!(read(pieces).await.unwrap(), vec![7; pieces.iter().sum()]);
        }
        assert!(matches!(read(&[4, 7]).await, Err(BodyError::TooLarge)));
        let cut = stream::iter([Ok("half"), Err("cut")]);
        assert!(matches!(read_body(Body::from_stream(cut), 10).await, Err(BodyError::Broken(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_given_up() {
        let endless = || Body::from_stream(stream::pending::<Result<&str, Infallible>>());
        assert!(matches!(read_body(endless(), 10).await, Err(BodyError::TooSlow)));
        discard_body(endless(), 10).await;
    }

    /// A body that is there at once is not read in one go.
    #[tokio::test]
    async fn other_tasks_have_their_turn_while_a_body_is_read() {
        let turns = Cell::new(0);
        let others = async {
            loop {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        };
        let body = || of(&[TURN_BYTES; 8]);
        let both = async {
            read_body(body(), 8 * TURN_BYTES).await.unwrap();
            assert!(turns.replace(0) >= 8);
            discard_body(body(), 8 * TURN_BYTES).await;
            assert!(turns.get() >= 8);
        };
        tokio::select! {
            biased;
            () = both => {}
            () = others => {}
        }
    }
}
