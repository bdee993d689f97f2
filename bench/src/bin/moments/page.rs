//! The page with a recording: opening it, going to moments, scrubbing. A jump ends with the frame after the one in which the
//! page says that it shows the moment, and what it shows then has the digest that was recorded.

use std::time::{Duration, Instant};

use radixscope_captures::recorded::random;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::devtools::Devtools;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

use crate::recording::Hour;
use crate::{at_most, quantile, row};

/// Every run goes to the same moments.
const SEED: u64 = 2_026;
/// How long anything may take, milliseconds.
const PATIENCE_MS: u64 = 300_000;
/// The longest that a jump may take, 95 of 100 times, by the size that it is for.
const BUDGET_JUMP_MS: [(u64, f64); 2] = [(100_000, 200.0), (1_000_000, 1_000.0)];
/// Least moments a second while somebody scrubs, and the size that it is for.
const BUDGET_SCRUB: (u64, f64) = (100_000, 15.0);
/// Scrubbing: from one end to the other and back, so often, each way in so many steps of a frame.
const WAYS: u32 = 6;
const STEPS: u32 = 120;
const FRAME: Duration = Duration::from_micros(16_667);

/// Hooks of this measurement.
const HOOKS: &str = r"(() => {
  const shown = () => document.body.dataset.at;
  const frame = () => new Promise(requestAnimationFrame);
  // The longest that the main thread was not there for anybody.
  let longest = 0;
  new PerformanceObserver(list => list.getEntries().forEach(task => { longest = Math.max(longest, task.duration); }))
    .observe({ type: 'longtask' });
  globalThis.__moments = {
    longest() { const found = longest; longest = 0; return found; },
    async jump(at) {
      const begun = performance.now();
      location.hash = `t=${at}`;
      while (shown() !== String(at)) await frame();
      await frame();
      return performance.now() - begun;
    },
    count() {
      const seen = { moments: 0, last: shown(), begun: performance.now(), is_on: true };
      const look = () => {
        if (shown() !== seen.last) { seen.last = shown(); seen.moments += 1; seen.last_ms = performance.now(); }
        if (seen.is_on) requestAnimationFrame(look);
      };
      look();
      this.seen = seen;
    },
    stop() { this.seen.is_on = false; return [this.seen.moments, performance.now() - this.seen.begun]; },
  };
})()";

/// A page that measures.
struct Viewer<'a> {
    page: &'a Page,
    devtools: Devtools,
}

impl Viewer<'_> {
    async fn eval(&self, expression: &str) -> Value {
        self.devtools.eval(expression, PATIENCE_MS).await.unwrap_or_else(|e| panic!("{expression}: {e}"))
    }

    async fn number(&self, expression: &str) -> f64 {
        self.eval(expression).await.as_f64().unwrap_or(f64::NAN)
    }

    /// Waits until an expression in the page is true; gives how long that took, in milliseconds.
    async fn until(&self, expression: &str) -> f64 {
        let wait = format!(
            "(async () => {{ const begun = performance.now();
             while (!({expression})) await new Promise(requestAnimationFrame);
             return performance.now() - begun; }})()"
        );
        self.number(&wait).await
    }
}

/// Everything about one recording.
pub(crate) async fn measure(hour: &Hour, moments: usize) -> Vec<Value> {
    let server = Radixscope::start(["demo", "--warm-up", "1", "--speed", "0.000001"]).await;
    server.until_source_is("live").await;
    let mut rows = Vec::new();
    with_unrecorded_page(async |page| {
        page.open(&server.url("/?view=tree")).await;
        let viewer = Viewer { page, devtools: Devtools::of(page).await };
        viewer.eval(HOOKS).await;
        rows.extend(opened(&viewer, hour).await);
        rows.extend(jumps(&viewer, hour, moments).await);
        rows.extend(scrubbed(&viewer, hour).await);
        rows.extend(compared(&viewer, hour).await);
    })
    .await;
    rows
}

fn what(hour: &Hour, label: &str) -> String {
    format!("an hour of {} blocks in the page: {label}", hour.blocks)
}

async fn opened(viewer: &Viewer<'_>, hour: &Hour) -> Vec<Value> {
    viewer.until("!!document.querySelector('[data-testid=recording-file]')").await;
    let since = Instant::now();
    viewer.page.choose_files("[data-testid=recording-file]", &[&hour.path]).await;
    let end = hour.states.last().expect("batches");
    viewer.until(&format!("document.body.dataset.digest === '{}'", end.digest)).await;
    let end_s = since.elapsed().as_secs_f64();
    viewer
        .until("!!document.querySelector('[data-testid=timeline-field]') && document.querySelector('[data-testid=timeline-field]').ariaValueMin !== null")
        .await;
    let timeline_s = since.elapsed().as_secs_f64();
    vec![
        row(&what(hour, "opened, until its end is shown"), end_s, "s", None),
        row(&what(hour, "opened, until the timeline is there"), timeline_s, "s", None),
    ]
}

async fn jumps(viewer: &Viewer<'_>, hour: &Hour, moments: usize) -> Vec<Value> {
    let (from, last) = (hour.states[0].at_ms, hour.states.last().expect("batches").at_ms);
    let (mut took, mut blocked) = (Vec::new(), Vec::new());
    viewer.eval("__moments.longest()").await;
    for (number, n) in random(SEED).take(moments).zip(0..) {
        let at = from.0 + number % (last.since(from) + 1);
        took.push(viewer.number(&format!("__moments.jump({at})")).await);
        blocked.push(viewer.number("__moments.longest()").await);
        if n % 10 == 0 {
            let state = hour.states.iter().rfind(|state| state.at_ms.0 <= at).expect("at the first at least");
            // What stands is compared by its digest.
            viewer.until(&format!("document.body.dataset.digest === '{}'", state.digest)).await;
        }
    }
    let budget = BUDGET_JUMP_MS.iter().find(|(blocks, _)| *blocks == hour.blocks);
    let p95 = quantile(&took, 0.95);
    let name = what(hour, "jump, p95");
    vec![
        row(&what(hour, "jump, p50"), quantile(&took, 0.5), "ms", None),
        match budget {
            Some((_, most)) => at_most(&name, p95, "ms", *most),
            None => row(&name, p95, "ms", None),
        },
        row(&what(hour, "jump, longest task of the main thread, p95"), quantile(&blocked, 0.95), "ms", None),
    ]
}

async fn scrubbed(viewer: &Viewer<'_>, hour: &Hour) -> Vec<Value> {
    let (left, top, width, height) = viewer.page.rectangle("[data-testid=timeline-field]").await;
    let y = top + height / 2.0;
    let mouse = async |kind: &str, share: f64| {
        let x = left + 2.0 + (width - 4.0) * share;
        let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
        viewer.devtools.call("Input.dispatchMouseEvent", event).await.expect("the mouse moves");
    };
    mouse("mousePressed", 1.0).await;
    let mut tick = tokio::time::interval(FRAME);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    viewer.eval("__moments.count()").await;
    for way in 0..WAYS {
        for step in 1..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            tick.tick().await;
            mouse("mouseMoved", if way % 2 == 0 { 1.0 - share } else { share }).await;
        }
    }
    let seen = viewer.eval("__moments.stop()").await;
    mouse("mouseReleased", 1.0).await;
    let rate = seen[0].as_f64().unwrap_or(0.0) / seen[1].as_f64().unwrap_or(f64::NAN) * 1e3;
    let budget = (hour.blocks == BUDGET_SCRUB.0)
        .then(|| (format!("≥ {} a second", BUDGET_SCRUB.1), rate >= BUDGET_SCRUB.1));
    vec![row(&what(hour, "scrubbing the whole hour, moments"), rate, "a second", budget)]
}

/// What changed in the middle half hour, from opening the view until it says so.
async fn compared(viewer: &Viewer<'_>, hour: &Hour) -> Vec<Value> {
    let at = |quarter: usize| hour.states[hour.states.len() * quarter / 4].at_ms;
    for (quarter, key) in [(1, "a"), (3, "b")] {
        viewer.eval(&format!("__moments.jump({})", at(quarter))).await;
        viewer.page.press(key).await;
    }
    viewer.eval("__moments.longest()").await;
    let since = Instant::now();
    viewer.eval("document.querySelector('[data-testid=nav-changes]').click()").await;
    viewer.until("!!document.querySelector('[data-testid=changes-sentence]')").await;
    let took = since.elapsed().as_secs_f64() * 1e3;
    // The picture is drawn in the frame after.
    viewer.eval("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))").await;
    let longest = viewer.number("__moments.longest()").await;
    vec![
        row(&what(hour, "changes over half an hour, until they are shown"), took, "ms", None),
        row(&what(hour, "changes, longest task of the main thread"), longest, "ms", None),
    ]
}
