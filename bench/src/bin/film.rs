//! A film of the tree for the README, `target/screens/tree.webm`: requests as lights, a zoom with its map, a decision's candidates, and
//! back to the beginning, so that it can loop. `cargo xtask screens --film` runs it.
//!
//! Frames are those that Chromium paints, taken at their times; they are encoded once the show is over, because both together are too
//! much for two cores.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::devtools::Devtools;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, wait};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

const SIZE: (u32, u32) = (1280, 720);
const FRAMES_A_SECOND: u32 = 25;
const SECONDS: u32 = 20;
/// The README loads it: what is larger is not looked at.
const MAX_BYTES: u64 = 4_000_000;

/// What is done at which second of the film.
const SCRIPT: [(f64, Act); 11] = [
    (2.6, Act::Click("zoom-in")),
    (3.2, Act::Click("zoom-in")),
    (3.8, Act::Click("zoom-in")),
    (4.6, Act::Move(0.2)),
    (5.4, Act::Move(0.45)),
    (6.2, Act::Move(0.7)),
    (7.2, Act::Click("zoom-fit")),
    (8.4, Act::Click("side-decision")),
    (8.8, Act::Click("decision-latest")),
    (17.4, Act::Click("painted-close")),
    (17.8, Act::Click("zoom-fit")),
];

#[derive(Clone, Copy)]
enum Act {
    /// A button, by its id for tests.
    Click(&'static str),
    /// The window of the map, to this share of the whole across.
    Move(f64),
}

/// A picture, and when it was painted, in seconds.
struct Frame {
    at: f64,
    jpeg: Vec<u8>,
}

#[tokio::main]
async fn main() {
    let server = Radixscope::start([
        "demo",
        "--seed",
        "20",
        "--warm-up",
        "150",
        "--workers",
        "5",
        "--concurrency",
        "50",
    ])
    .await;
    server.until_source_is("live").await;
    with_unrecorded_page(async |page| {
        page.size(SIZE.0, SIZE.1).await;
        page.open(&server.url("/?view=tree&theme=dark")).await;
        page.until("the tree is drawn in many colours", async |page| {
            let colours = page.colours("#tree canvas.picture").await;
            wait::expect(colours > 4, || format!("{colours} colours"))
        })
        .await;
        page.until_true("a request is lit", "document.querySelector('[data-testid=light]') !== null").await;
        let frames = take(page).await;
        encode(&frames);
    })
    .await;
}

/// Plays the script and gives what was painted meanwhile.
async fn take(page: &Page) -> Vec<Frame> {
    let devtools = Devtools::of(page).await;
    let cast =
        json!({"format": "jpeg", "quality": 90, "maxWidth": SIZE.0, "maxHeight": SIZE.1, "everyNthFrame": 1});
    devtools.call("Page.enable", json!({})).await.expect("Chromium takes it");
    devtools.call("Page.startScreencast", cast).await.expect("Chromium takes it");
    let begin = Instant::now();
    let mut frames = Vec::new();
    tokio::select! {
        () = gather(&devtools, &mut frames) => {}
        () = play(page, begin) => {}
    }
    devtools.call("Page.stopScreencast", json!({})).await.expect("Chromium takes it");
    frames
}

async fn gather(devtools: &Devtools, frames: &mut Vec<Frame>) {
    loop {
        for event in devtools.until("Page.screencastFrame").await {
            let params = &event["params"];
            let (Some(data), Some(at)) = (params["data"].as_str(), params["metadata"]["timestamp"].as_f64())
            else {
                continue;
            };
            let jpeg = base64::engine::general_purpose::STANDARD.decode(data).expect("base64");
            frames.push(Frame { at, jpeg });
            let session = json!({"sessionId": params["sessionId"]});
            devtools.call("Page.screencastFrameAck", session).await.expect("Chromium takes it");
        }
    }
}

async fn play(page: &Page, begin: Instant) {
    let at = |seconds: f64| begin + Duration::from_secs_f64(seconds);
    for (seconds, act) in SCRIPT {
        sleep_until(at(seconds)).await;
        match act {
            Act::Click(id) => page.click(id).await,
            Act::Move(across) => {
                let (x, y, width, height) = page.rectangle("[data-testid=minimap]").await;
                page.click_at(x + width * across, y + height * 0.3).await;
            }
        }
    }
    // The newest frame is shown to the end.
    sleep_until(at(f64::from(SECONDS))).await;
}

/// Gives the encoder each frame as long as it was seen.
fn encode(frames: &[Frame]) {
    let file = paths::screens().join("tree.webm");
    let rate = FRAMES_A_SECOND.to_string();
    let mut encoder = Command::new("ffmpeg")
        .args([
            "-y",
            "-loglevel",
            "error",
            "-f",
            "image2pipe",
            "-c:v",
            "mjpeg",
            "-framerate",
            &rate,
            "-i",
            "-",
        ])
        .args([
            "-c:v",
            "libvpx-vp9",
            "-b:v",
            "0",
            "-crf",
            "38",
            "-deadline",
            "good",
            "-cpu-used",
            "3",
            "-row-mt",
            "1",
        ])
        .args(["-pix_fmt", "yuv420p", "-an"])
        .arg(&file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("ffmpeg, as `cargo xtask screens --film` installs it");
    let mut to = encoder.stdin.take().expect("it is piped");
    let begin = frames.first().expect("something was painted").at;
    for tick in 0..SECONDS * FRAMES_A_SECOND {
        let at = begin + f64::from(tick) / f64::from(FRAMES_A_SECOND);
        let seen = frames.partition_point(|frame| frame.at <= at).max(1) - 1;
        to.write_all(&frames[seen].jpeg).expect("the encoder takes it");
    }
    drop(to);
    assert!(encoder.wait().expect("it was started").success(), "the encoder failed");
    let bytes = std::fs::metadata(&file).expect("the film").len();
    println!(
        "{}: {} s, {:.1} MB, {} frames painted",
        file.display(),
        SECONDS,
        bytes as f64 / 1e6,
        frames.len()
    );
    assert!(bytes <= MAX_BYTES, "{bytes} bytes are too many");
}
