//! What others ask of the server does not hold viewers up: the time between two batches, while large questions are posted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use hyper::Method;
use radixscope_tests::http::Http;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use tokio_tungstenite::tungstenite::Message;

/// Longest that 99 of 100 gaps between batches may be; ten come a second. A debug build computes many times as long.
const P99_WITHIN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 600 } else { 250 });
/// Questions at a time.
const AT_ONCE: usize = 16;
/// Rounds of each kind of question.
const ROUNDS: usize = 6;
const BODY_BYTES: usize = 8 * 1024 * 1024 - 1024;

/// A list of about eight million bytes.
fn list(name: &str, mut item: impl FnMut(u64) -> String) -> Vec<u8> {
    let mut body = format!("{{\"{name}\":[");
    for n in 0.. {
        if n > 0 {
            body.push(',');
        }
        body.push_str(&item(n));
        if body.len() > BODY_BYTES - 64 {
            break;
        }
    }
    body.push_str("]}");
    body.into_bytes()
}

fn hash(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// Times between frames.
struct Gaps(Vec<Duration>);

impl Gaps {
    fn figures(mut self) -> (Duration, Duration) {
        self.0.sort_unstable();
        let at = (self.0.len() * 99).div_ceil(100).max(1) - 1;
        (self.0[at], self.0[self.0.len() - 1])
    }
}

/// Follows the socket until stopped.
async fn watch(url: String, stop: Arc<AtomicBool>, seen: Arc<AtomicUsize>) -> Gaps {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.expect("it takes viewers");
    let mut gaps = Vec::new();
    let mut last = None;
    while !stop.load(Ordering::Relaxed) {
        let message =
            wait::within("a frame comes", socket.next()).await.expect("it goes on").expect("a frame");
        if let Message::Binary(_) = message {
            let now = Instant::now();
            gaps.extend(last.replace(now).map(|last| now - last));
            seen.fetch_add(1, Ordering::Relaxed);
        }
    }
    Gaps(gaps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_questions_in_parallel_do_not_hold_viewers_up() {
    let server = Radixscope::start(["demo", "--warm-up", "60"]).await;
    server.until_source_is("live").await;
    let (mut asked, mut refused) = (0, 0);
    let bodies = [
        ("token ids", list("token_ids", |n| (n % 128_000).to_string())),
        ("block hashes", list("block_hashes", |n| format!("\"{}\"", hash(n)))),
        ("chain hashes", list("chain_hashes", |n| format!("\"{}\"", hash(n)))),
        ("no JSON", vec![b'['; BODY_BYTES]),
    ];
    for (what, body) in bodies {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let watching = tokio::spawn(watch(server.socket_url(), Arc::clone(&stop), Arc::clone(&seen)));
        wait::until("the viewer is served", async || {
            wait::expect(seen.load(Ordering::Relaxed) > 5, || "not yet".to_owned())
        })
        .await;
        for _ in 0..ROUNDS {
            let posts: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let (url, body) = (server.url("/api/v1/score"), body.clone());
                    tokio::spawn(async move { Http::default().send(Method::POST, &url, &[], body).await })
                })
                .collect();
            for post in posts {
                // A refusal may come before the body is sent, which some clients take for a broken connection.
                let Ok(response) = post.await.expect("it ran") else {
                    refused += 1;
                    continue;
                };
                match response.status {
                    503 => {
                        assert_eq!(response.header("retry-after"), "1");
                        assert!(response.text().contains("try again"), "{}", response.text());
                        refused += 1;
                    }
                    200 | 400 => asked += 1,
                    status => panic!("{what}: {status} {}", response.text()),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let (p99, longest) = watching.await.expect("it ran").figures();
        println!("{what}: p99 gap {p99:?}, longest {longest:?}, {asked} answered, {refused} refused so far");
        assert!(p99 <= P99_WITHIN, "{what}: p99 gap {p99:?}, longest {longest:?}");
    }
    assert!(asked > 0 && refused > 0, "some are answered and some are too many: {asked}, {refused}");
}
