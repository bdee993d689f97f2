//! Every capture with a stream comes to the figures counted from it, read from its history, or half and half.

use radixscope_tests::capture::{self, Capture};
use radixscope_tests::counted::{from_history, live};

#[tokio::test]
async fn short_run_of_0_9_1() {
    live("0.9.1-log-jsonl-info").await;
}

#[tokio::test]
async fn short_run_of_1_6_1() {
    live("1.6.1-log-jsonl-debug").await;
}

#[tokio::test]
async fn history_of_a_stream_comes_to_the_same() {
    for name in capture::JETSTREAM {
        let capture = Capture::load(name);
        let (retained, rest) = capture.split_by_stream();
        from_history(&capture, &retained, &[], &rest).await;
    }
}

#[tokio::test]
async fn half_history_half_live_counts_nothing_twice_and_misses_nothing() {
    for name in capture::JETSTREAM {
        let capture = Capture::load(name);
        let (retained, rest) = capture.split_by_stream();
        let (before, after) = retained.split_at(retained.len() / 2);
        from_history(&capture, before, after, &rest).await;
    }
}
