//! Viewers on the socket: whenever they come, and however often they are cut off, they end in the server's state.

use radixscope_tests::capture::Capture;
use radixscope_tests::figures::number;
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::viewer::{self, Viewer};
use radixscope_tests::{metrics, replay, wait};
use serde_json::json;

#[tokio::test]
async fn early_late_and_resumed_viewers_end_in_the_state_of_the_api() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("0.9.1-worker-restart");
    let (first, second) = capture.messages.split_at(capture.messages.len() / 2);
    let client = nats.client().await;

    let (early, cut) = (server.viewer().await, server.viewer().await);
    replay::publish(&client, first).await;
    cut.until("it saw half of the messages", |seen| {
        wait::expect(seen.records > 3000, || seen.records.to_string())
    })
    .await;
    let resume = cut.cut();
    let stopped_at = resume.seq();
    let middle = server.viewer().await;
    replay::publish(&client, second).await;
    let resumed = server.viewer_after(resume).await;

    let cluster = server.until_quiet(capture.publications() as u64).await;
    let late = server.viewer().await;
    for viewer in [&early, &middle, &resumed, &late] {
        assert!(viewer.agrees_with(&server).await.0 >= number(&cluster, "seq"));
    }
    resumed.with(|seen| {
        assert_eq!(seen.snapshots, 0, "a short absence needs no snapshot");
        let at = seen.state.as_ref().expect("a state").seq();
        assert_eq!(seen.records, at.0 - stopped_at.0, "exactly the records after the cut");
    });
    early.with(|seen| {
        assert!(seen.checks > 0, "digests came along and were compared");
        assert_eq!((seen.snapshots, seen.skipped), (1, 0));
    });
}

#[tokio::test]
async fn after_a_restart_of_the_server_a_returning_viewer_is_given_the_new_state() {
    let nats = Nats::start().await;
    let mut server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("1.6.1-log-jsonl-debug");
    let client = nats.client().await;
    replay::publish(&client, &capture.messages).await;
    let before = server.until_quiet(capture.publications() as u64).await;
    let viewer = server.viewer().await;
    assert!(viewer.agrees_with(&server).await.0 >= number(&before, "seq"));
    let resume = viewer.cut();

    server.start_again().await;
    server.until_ready().await;
    let capture = Capture::load("1.6.1-mismatch");
    replay::publish(&client, &capture.messages).await;
    let after = server.until_quiet(capture.publications() as u64).await;
    let viewer = server.viewer_after(resume).await;
    viewer
        .until("it is given a snapshot", |seen| {
            seen.state.as_ref().filter(|_| seen.snapshots > 0).map(drop).ok_or("none yet".to_owned())
        })
        .await;
    // Nothing of the run before is left.
    assert!(viewer.agrees_with(&server).await.0 >= number(&after, "seq"));
}

#[tokio::test]
async fn a_viewer_that_fell_behind_is_notified_and_gets_the_state_anew() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let stalled = viewer::stalled(&server.socket_url()).await;
    let quick = server.viewer().await;
    // Far more than the connection's buffers and the server's queue for viewers hold: 8 kB a record, again and again.
    let blocks: Vec<_> =
        (1..=500).map(|n: u64| json!({"block_hash": n << 40, "tokens_hash": n << 41})).collect();
    let data = json!({"stored": {"parent_hash": null, "blocks": blocks}});
    let event = json!({"worker_id": 1, "event": {"event_id": 0, "data": data}}).to_string();
    let client = nats.client().await;
    let mut sent = 0;
    wait::until("the server has sent more than a stalled viewer can be owed", async || {
        let (records, batches) = quick.with(|seen| (seen.records, seen.batches));
        // No faster than the server takes it, or its own queue would drop what this is about.
        if sent < records + 1000 {
            for _ in 0..100 {
                let subject = "namespace-dynamo-component-backend-kv-events.kv-events";
                client.publish(subject, event.clone().into()).await.unwrap();
                sent += 1;
            }
            client.flush().await.unwrap();
        }
        wait::expect(sent >= 6000 && batches > 200, || format!("{sent} events, {batches} batches"))
    })
    .await;
    server.until_quiet(sent).await;
    let late = Viewer::follow(stalled, None);
    let seq = late.agrees_with(&server).await;
    late.with(|seen| {
        assert!(seen.skipped > 0, "it gets the number of missed records");
        assert!(seen.records < seq.0, "and did not get it: {} records", seen.records);
    });
    quick.agrees_with(&server).await;
    quick.with(|seen| assert_eq!((seen.snapshots, seen.skipped), (1, 0), "the quick one noticed nothing"));
    let metrics = metrics::parse(server.get("/metrics").await.text()).unwrap();
    assert_eq!(metrics::value(&metrics, "radixscope_viewer_resyncs_total", &[]), Some(1.0));
}

#[tokio::test]
async fn more_viewers_than_allowed_are_turned_away_with_a_reason() {
    let server = Radixscope::start(["demo", "--warm-up", "0", "--max-viewers", "2"]).await;
    let (_one, two) = (server.viewer().await, server.viewer().await);
    let error = tokio_tungstenite::connect_async(server.socket_url()).await.unwrap_err();
    let tokio_tungstenite::tungstenite::Error::Http(response) = error else { panic!("{error}") };
    assert_eq!(response.status(), 503);
    let body = String::from_utf8(response.body().clone().unwrap_or_default()).unwrap();
    assert!(body.contains("--max-viewers"), "{body}");
    drop(two);
    wait::until("the free seat is given away", async || {
        tokio_tungstenite::connect_async(server.socket_url()).await.map(drop).map_err(|e| e.to_string())
    })
    .await;
}
