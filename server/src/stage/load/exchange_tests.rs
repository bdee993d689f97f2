//! Answers of a real frontend, whole and damaged, in whatever pieces they arrive.

use std::io;

use futures_util::{StreamExt as _, stream};
use proptest::prelude::*;

use super::*;

/// Dynamo 1.6.1's frontend: a whole answer, and one whose workers were killed.
const WHOLE: &[u8] = include_bytes!("../../../../tests/fixtures/chat/1.6.1/whole.sse");
const WORKERS_KILLED: &[u8] = include_bytes!("../../../../tests/fixtures/chat/1.6.1/workers-killed.sse");

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn read_now(pieces: Vec<Bytes>) -> Result<Response, Failure> {
    let body = stream::iter(pieces.into_iter().map(Ok::<_, io::Error>));
    let mut read = Read::default();
    block_on(read.all(Events::new(body, 8)))?;
    Ok(Response { text: read.text, usage: read.usage })
}

fn whole(body: &[u8]) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(body)]
}

fn expected() -> Response {
    let usage = Some(Usage { prompt_tokens: 23, completion_tokens: 5 });
    Response { text: " full functions]]cor fol".to_owned(), usage }
}

fn failure_of(body: &[u8]) -> (Reason, String) {
    let failure = read_now(whole(body)).expect_err("no whole answer");
    (failure.reason, failure.detail)
}

#[test]
fn a_recorded_answer_has_its_text_and_tokens() {
    assert_eq!(read_now(whole(WHOLE)), Ok(expected()));
}

#[test]
fn workers_that_are_killed_end_the_stream_with_the_frontends_words() {
    let (reason, detail) = failure_of(WORKERS_KILLED);
    assert_eq!((reason, &*detail), (Reason::InStream, "status 503: Service temporarily unavailable"));
}

#[test]
fn a_stream_without_its_end_is_cut_off_unless_it_said_why_it_ends() {
    let body = std::str::from_utf8(WHOLE).unwrap();
    let without_done = body.replace("data: [DONE]\n\n", "");
    assert_eq!(read_now(whole(without_done.as_bytes())), Ok(expected()));
    let in_the_middle = &body[..body.find("finish_reason\":\"length").unwrap()];
    assert_eq!(failure_of(in_the_middle.as_bytes()).0, Reason::Cut);
    assert_eq!(failure_of(b"").0, Reason::Cut);
    let reset = vec![Ok(Bytes::from_static(b"data: {}\n\n")), Err(io::Error::other("connection reset"))];
    let mut read = Read::default();
    let ended = block_on(read.all(Events::new(stream::iter(reset), 8)));
    assert_eq!(ended, Err(Failure { reason: Reason::Cut, detail: "connection reset".to_owned() }));
}

#[test]
fn what_is_hostile_is_refused_before_it_is_held() {
    let long =
        vec![Bytes::from_static(b"data: "), Bytes::from(vec![b'a'; 40_000]), Bytes::from(vec![b'a'; 40_000])];
    assert_eq!(read_now(long).unwrap_err().detail, "a line is longer than 64 KiB");
    // An event that never ends, in short lines.
    let line = Bytes::from_static(b"data: 0123456789abcdef0123456789abcdef\n");
    let endless = vec![line; 100_000];
    assert_eq!(read_now(endless).unwrap_err().detail, "it is larger than 272 KiB");
    assert_eq!(failure_of(b"data: \xff\xfe\n\n"), (Reason::Invalid, "it is not UTF-8".to_owned()));
    assert_eq!(failure_of(b"data: nonsense\n\n").0, Reason::Invalid);
    assert_eq!(failure_of(b"event: error\n: why\n\n").0, Reason::InStream);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_is_given_up() {
    let mut read = Read::default();
    let silent =
        stream::iter([Ok::<_, io::Error>(Bytes::from_static(b": alive\n\n"))]).chain(stream::pending());
    let failure = read.all(Events::new(silent, 8)).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "no response in time: the next part of a stream did not come within 60 s"
    );
    // One that is done and is not closed is an answer.
    let kept = stream::iter([Ok::<_, io::Error>(Bytes::from_static(WHOLE))]).chain(stream::pending());
    assert_eq!(Read::default().all(Events::new(kept, 8)).await, Ok(()));
}

#[test]
fn what_others_say_is_quoted_on_one_bounded_line() {
    let text = Failure::new(Reason::Status(500), &format!("a\r\n\u{1b}[31m b {}", "c".repeat(10_000))).detail;
    assert!(text.starts_with("a [31m b ccc") && text.ends_with('…'), "{text}");
    assert_eq!(text.chars().count(), MAX_QUOTE_CHARS + 1);
}

proptest! {
    #[test]
    fn it_is_the_same_in_whatever_pieces_it_arrives(cuts in prop::collection::vec(0..WHOLE.len(), 0..40)) {
        let mut cuts = cuts;
        cuts.extend([0, WHOLE.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| Bytes::copy_from_slice(&WHOLE[pair[0]..pair[1]])).collect();
        prop_assert_eq!(read_now(pieces), Ok(expected()));
    }

    #[test]
    fn damaged_bytes_end_in_words(at in 0..WHOLE.len(), with: u8, cut in 0..WHOLE.len()) {
        let mut damaged = WHOLE.to_vec();
        damaged[at] = with;
        damaged.truncate(cut);
        if let Err(failure) = read_now(whole(&damaged)) {
            prop_assert!(failure.to_string().chars().count() <= 200);
        }
    }
}
