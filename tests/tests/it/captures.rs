//! Captures of real Dynamo, replayed through a real NATS server, come to the figures counted from them by other means: received
//! live, and half of it read from a stream's history.

use radixscope_tests::capture::Capture;
use radixscope_tests::counted::{from_history, live};

#[tokio::test]
async fn jetstream_line_of_0_9_1() {
    live("0.9.1-healthy").await;
}

#[tokio::test]
async fn healthy_1_6_1() {
    live("1.6.1-healthy").await;
}

#[tokio::test]
async fn half_history_half_live_counts_nothing_twice_and_misses_nothing() {
    let capture = Capture::load("0.9.1-worker-restart");
    let (retained, rest) = capture.split_by_stream();
    let (before, after) = retained.split_at(retained.len() / 2);
    from_history(&capture, before, after, &rest).await;
}
