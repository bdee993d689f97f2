//! A reader's hand over the tree: a steady wheel to a place and back, and the picture drawn to and fro in between. Real
//! inputs of the browser, one a frame.

use std::time::Duration;

use radixscope_tests::devtools::Devtools;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};

/// Between two inputs: a frame.
const FRAME: Duration = Duration::from_micros(16_667);
/// Inputs of each part of a round: in, one way, back, out.
const PART: u32 = 30;
/// Of each round: how far right the place is, and how far the wheel turns a frame, CSS pixels.
const ROUNDS: [(f64, f64); 5] = [(0.30, 20.0), (0.55, 40.0), (0.12, 80.0), (0.70, 40.0), (0.45, 120.0)];
/// How far down the place is: where most of the tree is.
const DOWN: f64 = 0.25;
/// Pixels that the picture is drawn a frame.
const DRAWN: f64 = 12.0;

/// Moves for so long within a rectangle (left, top, width, height); gives the number of inputs.
pub(crate) async fn make(
    devtools: &Devtools,
    (left, top, width, height): (f64, f64, f64, f64),
    duration: Duration,
) -> u64 {
    let mut tick = tokio::time::interval(FRAME);
    // A slow page is not owed what it missed.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let since = Instant::now();
    let mut inputs = 0;
    for (right, turn) in ROUNDS.into_iter().cycle() {
        let (x, y) = (left + width * right, top + height * DOWN);
        let drawn = |n: u32| x + DRAWN * f64::from(n);
        let wheel = |turn: f64| json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": turn});
        let ins = (0..PART).map(|_| wheel(-turn));
        let to = (0..=PART).map(|n| mouse(if n == 0 { "mousePressed" } else { "mouseMoved" }, drawn(n), y));
        let fro =
            (0..=PART).rev().map(|n| mouse(if n == 0 { "mouseReleased" } else { "mouseMoved" }, drawn(n), y));
        let outs = (0..PART).map(|_| wheel(turn));
        for input in ins.chain(to).chain(fro).chain(outs) {
            if since.elapsed() > duration && input["type"] == "mouseWheel" {
                return inputs;
            }
            tick.tick().await;
            devtools.call("Input.dispatchMouseEvent", input).await.expect("the mouse moves");
            inputs += 1;
        }
    }
    inputs
}

fn mouse(kind: &str, x: f64, y: f64) -> Value {
    json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1})
}
