//! Idle and slow connections: they delay neither others nor shutdown.

use std::time::{Duration, Instant};

use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::raw::SlowReader;
use radixscope_tests::{raw, wait};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Within this time of SIGTERM everything has ended. Generous in a debug build, which shares its machine with other tests.
const END_WITHIN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_500 } else { 1_000 });
const DEMO: [&str; 3] = ["demo", "--warm-up", "0"];

async fn demo(flags: &[&str]) -> Radixscope {
    Radixscope::start(DEMO.iter().chain(flags).copied()).await
}

/// A connection on which this was sent.
async fn begun(server: &Radixscope, start: &str) -> TcpStream {
    let mut socket = raw::connect(server.port()).await;
    socket.write_all(start.as_bytes()).await.expect("it takes the beginning");
    socket
}

/// A request whose header does not end.
fn half_a_header(server: &Radixscope) -> String {
    format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nX-More: ", server.port())
}

/// A request whose body does not end.
fn half_a_body(server: &Radixscope) -> String {
    let port = server.port();
    format!(
        "POST /api/v1/score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1000\r\n\r\n{{\"example\":"
    )
}

fn handshake(server: &Radixscope) -> String {
    let port = server.port();
    format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
}

#[tokio::test]
async fn with_few_file_descriptors_and_more_half_open_connections_it_still_answers() {
    let server = Radixscope::start_with_files(256, &DEMO).await;
    let mut held = Vec::new();
    for _ in 0..300 {
        held.push(begun(&server, &half_a_header(&server)).await);
    }
    wait::until("the flood is taken in", async || {
        let response = server.try_get("/healthz").await?;
        wait::expect(response.status == 200, || response.status.to_string())
    })
    .await;
    for _ in 0..20 {
        let since = Instant::now();
        let response = wait::within("it answers", server.try_get("/healthz")).await.expect("a response");
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(since.elapsed() < Duration::from_secs(2), "{:?}", since.elapsed());
        held.push(begun(&server, &half_a_header(&server)).await);
    }
    let viewer = server.viewer().await;
    viewer.until("it is served", |seen| seen.state.as_ref().map(drop).ok_or_else(String::new)).await;
    assert!(server.process().output().contains("ulimit -n"), "it is logged: {}", server.process().output());
}

#[tokio::test]
async fn a_header_or_body_that_does_not_end_is_waited_for_only_so_long() {
    let server = demo(&[]).await;
    let mut header = begun(&server, &half_a_header(&server)).await;
    let mut nothing = begun(&server, "").await;
    let mut body = begun(&server, &half_a_body(&server)).await;
    let since = Instant::now();
    let (header, nothing, body) =
        tokio::join!(raw::rest(&mut header), raw::rest(&mut nothing), raw::rest(&mut body));
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
    assert_eq!((header.status, nothing.status), (0, 0), "{header:?} {nothing:?}");
    assert_eq!(body.status, 408, "{body:?}");
    assert!(body.text.contains("too_slow"), "{body:?}");
}

#[tokio::test]
async fn bytes_that_drip_do_not_buy_time() {
    let server = demo(&[]).await;
    let mut socket = begun(&server, &half_a_header(&server)).await;
    let since = Instant::now();
    let mut drip = tokio::time::interval(Duration::from_millis(200));
    wait::within("it is cut off", async {
        // A connection that is gone takes nothing any more.
        while socket.write_all(b"x").await.is_ok() {
            drip.tick().await;
        }
    })
    .await;
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

#[tokio::test]
async fn sockets_that_never_join_give_their_places_back() {
    let server = demo(&["--max-viewers", "2"]).await;
    let mut silent = Vec::new();
    for _ in 0..2 {
        let (status, socket) = raw::answered(server.port(), &handshake(&server)).await;
        assert_eq!(status, 101);
        silent.push(socket);
    }
    assert_eq!(raw::status(server.port(), &handshake(&server)).await, 503, "all places are taken");
    let since = Instant::now();
    wait::until("there is a place again", async || {
        let status = raw::status(server.port(), &handshake(&server)).await;
        wait::expect(status == 101, || status.to_string())
    })
    .await;
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
}

#[tokio::test]
async fn who_asks_nothing_gives_way_and_who_is_served_does_not() {
    let server = demo(&["--max-connections", "4"]).await;
    let viewer = server.viewer().await;
    viewer.until("it is served", |seen| seen.state.as_ref().map(drop).ok_or_else(String::new)).await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(begun(&server, "").await);
        wait::until("an older one gives way", async || {
            let response = server.try_get("/healthz").await?;
            wait::expect(response.status == 200, || response.status.to_string())
        })
        .await;
    }
    let batches = viewer.with(|seen| seen.batches);
    viewer.until("more is seen", |seen| wait::expect(seen.batches > batches + 3, String::new)).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        busy.push(begun(&server, &half_a_body(&server)).await);
    }
    let refused = wait::until("all places are busy", async || {
        let response = server.try_get("/healthz").await?;
        wait::expect(response.status == 503, || response.status.to_string()).map(|()| response)
    })
    .await;
    assert!(refused.text().contains("--max-connections"), "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "2");
    drop(busy);
    wait::until("there are places again", async || {
        let response = server.try_get("/metrics").await?;
        wait::expect(response.status == 200, || response.status.to_string())?;
        let text = response.text();
        assert!(text.contains("radixscope_connections_limit 4"), "{text}");
        assert!(!text.contains("radixscope_connections_evicted_total 0\n"), "{text}");
        assert!(!text.contains("radixscope_connections_refused_total 0\n"), "{text}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn slow_readers_of_recordings_give_way_and_a_fast_one_gets_all() {
    let server = Radixscope::start(["demo", "--warm-up", "600"]).await;
    server.until_source_is("live").await;
    let whole = wait::until("the history can be recorded", async || {
        let response = server.try_get("/api/v1/recording").await?;
        wait::expect(response.status == 200, || response.text().to_owned()).map(|()| response.body.len())
    })
    .await;
    let mut slow = Vec::new();
    for number in 0..8 {
        let one = wait::until(&format!("slow reader {number} is served"), async || {
            let one = SlowReader::get(server.port(), "/api/v1/recording").await;
            wait::expect(one.status == 200, || one.status.to_string()).map(|()| one)
        })
        .await;
        slow.push(one);
    }
    for _ in 0..3 {
        wait::until("a fast reader is served", async || {
            let response = server.try_get("/api/v1/recording").await?;
            wait::expect(response.status == 200, || response.text().to_owned())?;
            assert!(response.body.len() >= whole, "{} of {whole} bytes", response.body.len());
            Ok(())
        })
        .await;
    }
    let metrics = server.get("/metrics").await;
    assert!(!metrics.text().contains("radixscope_recording_readers_evicted_total 0\n"), "{}", metrics.text());
}

#[tokio::test]
async fn it_ends_within_a_second_whoever_is_connected() {
    let mut server = demo(&[]).await;
    let viewer = server.viewer().await;
    viewer.until("it is served", |seen| seen.state.as_ref().map(drop).ok_or_else(String::new)).await;
    let mut held = Vec::new();
    for start in [String::new(), half_a_header(&server), half_a_body(&server), handshake(&server)] {
        for _ in 0..8 {
            held.push(begun(&server, &start).await);
        }
    }
    // One that asks for a lot and reads nothing.
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port());
    let many = format!("GET /api/v1/tree?limit=100000 HTTP/1.1\r\n{host}\r\n").repeat(40);
    held.push(begun(&server, &many).await);
    let stalled = radixscope_tests::viewer::stalled(&server.socket_url()).await;
    let since = Instant::now();
    server.process().terminate();
    let status = server.process_mut().ended().await;
    let took = since.elapsed();
    assert_eq!(status.code(), Some(0), "{}", server.process().output());
    assert!(took < END_WITHIN, "it took {took:?}");
    println!("ended within {took:?}");
    viewer
        .until("it was notified", |seen| match &seen.ended {
            Some(why) if why.contains("shutting down") => Ok(()),
            why => Err(format!("{why:?}")),
        })
        .await;
    drop((held, stalled));
}
