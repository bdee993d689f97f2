//! Viewers on the socket: whenever they come, and however often they are cut off, they end in the server's state.

use radixscope_tests::capture::Capture;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::replay;
use radixscope_tests::viewer;

#[tokio::test]
async fn two_hundred_viewers_get_the_same_and_a_stalled_one_holds_nobody_up() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    // It connects and never reads.
    let _stalled = viewer::stalled(&server.socket_url()).await;
    let mut viewers = Vec::new();
    for _ in 0..200 {
        viewers.push(server.viewer().await);
    }
    let capture = Capture::load("0.9.1-healthy-vllm");
    replay::publish(&nats.client().await, &capture.messages).await;
    server.until_quiet(capture.publications() as u64).await;
    for viewer in &viewers {
        viewer.agrees_with(&server).await;
        viewer
            .with(|seen| assert_eq!((seen.snapshots, seen.skipped), (1, 0), "no viewer was resynchronised"));
    }
}
