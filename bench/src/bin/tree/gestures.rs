//! A reader's hand over the tree: a steady wheel to a place and back, and the picture drawn to and fro in between. Real
//! inputs of the browser, one a frame.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use radixscope_tests::devtools::Devtools;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};

/// Between two inputs: a frame.
const FRAME: Duration = Duration::from_micros(16_667);
/// Inputs of each part of a round: in, one way, back, out.
const PART: u32 = 30;
/// Of each round: how far right the place is, and how far the wheel turns a frame, CSS pixels.
const ROUNDS: [(f64, f64); 5] = [(0.30, 20.0), (0.55, 40.0), (0.12, 80.0), (0.70, 40.0), (0.45, 120.0)];
/// Inputs that the page may not have answered when the next one comes: the wheel is answered in the frame after.
const UNANSWERED: usize = 2;
/// How far down the place is: where most of the tree is.
const DOWN: f64 = 0.25;
/// Pixels that the picture is drawn a frame.
const DRAWN: f64 = 12.0;

/// Moves for so long within a rectangle (left, top, width, height); gives the number of inputs.
pub(crate) async fn make(devtools: &Devtools, rectangle: (f64, f64, f64, f64), duration: Duration) -> u64 {
    let mut tick = tokio::time::interval(FRAME);
    // A slow page is not owed what it missed.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let since = Instant::now();
    // A round is ended where the button is up.
    let is_on = |input: &Value| since.elapsed() < duration || input["type"] != "mouseWheel";
    let inputs = ROUNDS.into_iter().cycle().flat_map(|round| inputs(rectangle, round)).take_while(is_on);
    let paced = stream::unfold((inputs, &mut tick), async |(mut inputs, tick)| {
        let input = inputs.next()?;
        tick.tick().await;
        Some((input, (inputs, tick)))
    });
    let calls = paced.map(|input| devtools.call("Input.dispatchMouseEvent", input)).buffered(UNANSWERED);
    let taken = calls.map(|response| response.expect("the mouse moves"));
    taken.count().await as u64
}

/// What the hand does in a round.
fn inputs(
    (left, top, width, height): (f64, f64, f64, f64),
    (right, turn): (f64, f64),
) -> impl Iterator<Item = Value> {
    let (x, y) = (left + width * right, top + height * DOWN);
    let drawn = move |kind: &str, n: u32| mouse(kind, x + DRAWN * f64::from(n), y);
    let wheel = move |turn: f64| json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": turn});
    let ins = (0..PART).map(move |_| wheel(-turn));
    let to = (0..=PART).map(move |n| drawn(if n == 0 { "mousePressed" } else { "mouseMoved" }, n));
    let fro = (0..=PART).rev().map(move |n| drawn(if n == 0 { "mouseReleased" } else { "mouseMoved" }, n));
    let outs = (0..PART).map(move |_| wheel(turn));
    ins.chain(to).chain(fro).chain(outs)
}

fn mouse(kind: &str, x: f64, y: f64) -> Value {
    json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1})
}
