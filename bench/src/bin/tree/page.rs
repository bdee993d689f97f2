//! The real page with the tree alone: what it costs to open it, to move in it, and to let it live.

use std::time::{Duration, Instant};

use radixscope_tests::browser::Page;
use radixscope_tests::devtools::Devtools;
use radixscope_tests::figures::number;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

use crate::gestures;
use crate::stage::Stage;
use crate::trace::{self, FrameTimes, Trace};

/// What is looked at.
pub(crate) const TREE: &str = "[data-testid=tree]";
/// Window, CSS pixels.
pub(crate) const WINDOW: (u32, u32) = (1920, 1080);
/// Times the page is opened.
const OPENINGS: usize = 3;
/// How long nothing happens, for comparison.
const IDLE: Duration = Duration::from_secs(3);
/// How long the page may take for its first picture, and to be where the server is after live updates.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds of live updates before they are measured.
const WARM_UP_S: u64 = 2;

/// Opening the page.
pub(crate) struct Opening {
    /// From the start of the navigation to the frame after the tree was put on its canvas.
    pub(crate) shown_ms: f64,
    /// Bytes on the socket until then: the snapshot, and what came beside it.
    pub(crate) socket_bytes: f64,
    /// The same with its steps: WebAssembly started, the socket's last message received, the picture drawn.
    pub(crate) steps: Value,
}

/// A page with the hooks.
pub(crate) struct Viewer<'a> {
    page: &'a Page,
    pub(crate) devtools: Devtools,
}

/// What the page's main thread did while something went on.
pub(crate) struct Measured {
    pub(crate) trace: Trace,
    /// Of the same time, by Chromium's own counters: milliseconds of tasks, of these in scripts.
    pub(crate) tasks_ms: f64,
    pub(crate) scripts_ms: f64,
    /// Times between frames; none where frames were not counted.
    pub(crate) frames_ms: Vec<f64>,
    /// Times the tree was put on its canvas.
    pub(crate) draws: u64,
}

/// Live updates and what became of them.
pub(crate) struct Lived {
    pub(crate) measured: Measured,
    pub(crate) events: u64,
    /// What was wrong, if anything.
    pub(crate) complaint: Option<String>,
}

impl<'a> Viewer<'a> {
    pub(crate) async fn new(page: &'a Page) -> Self {
        page.size(WINDOW.0, WINDOW.1).await;
        let hooks = json!({"source": include_str!("hooks.js")});
        page.devtools("Page.addScriptToEvaluateOnNewDocument", hooks).await;
        let devtools = Devtools::of(page).await;
        devtools.call("Performance.enable", json!({})).await.expect("counters");
        Self { page, devtools }
    }

    /// Opens the page a few times; stays there.
    pub(crate) async fn open(&self, server: &Radixscope) -> Vec<Opening> {
        let mut openings = Vec::new();
        for _ in 0..OPENINGS {
            self.page.open("about:blank").await;
            self.page.open(&server.url("/?view=tree")).await;
            let content = self.until("the tree is shown", "__seen.content?.shownMs && __seen.content").await;
            openings.push(Opening {
                shown_ms: float(&content["shownMs"]),
                socket_bytes: float(&content["bytes"]),
                steps: content,
            });
        }
        openings
    }

    /// Nothing happens: per cent of the main thread that go away by themselves, and the frame clock.
    pub(crate) async fn idle(&self) -> (f64, Vec<f64>) {
        let still = self.measured(false, async || tokio::time::sleep(IDLE).await).await;
        let counting = self.measured(true, async || tokio::time::sleep(IDLE).await).await;
        (still.trace.percent().0, counting.frames_ms)
    }

    /// Moves in the tree as a reader does. Gives the inputs too.
    pub(crate) async fn moved(&self, duration: Duration) -> (Measured, u64) {
        // The driver may come back from opening a page before its document is read.
        self.until("the tree is in the page", &format!("document.querySelector('{TREE}') && {{}}")).await;
        self.eval(&format!("document.querySelector('{TREE}').focus()")).await;
        self.page.press("Home").await;
        let rectangle = self.page.rectangle(TREE).await;
        // The browser compiles what runs often once more, beside the first movements.
        gestures::make(&self.devtools, rectangle, Duration::from_secs(WARM_UP_S)).await;
        let mut inputs = 0;
        let measured = self
            .measured(true, async || inputs = gestures::make(&self.devtools, rectangle, duration).await)
            .await;
        (measured, inputs)
    }

    /// Looks on while events come.
    pub(crate) async fn live(&self, stage: &mut Stage, events_per_s: u64, seconds: u64) -> Lived {
        let before = (self.seq().await, resyncs(&stage.server).await, stage.received().await);
        let publishing = stage.live(events_per_s, WARM_UP_S + seconds + 1);
        let looking = async {
            tokio::time::sleep(Duration::from_secs(WARM_UP_S)).await;
            self.measured(false, async || tokio::time::sleep(Duration::from_secs(seconds)).await).await
        };
        let (published_events, measured) = tokio::join!(publishing, looking);
        stage.until_received(0).await;
        let (seq, resyncs_before, received_before) = before;
        let received_count = stage.received().await - received_before;
        let behind = resyncs(&stage.server).await - resyncs_before;
        let complaint = if received_count != published_events.messages {
            Some(format!("{received_count} of {} messages received", published_events.messages))
        } else if behind > 0 {
            Some(format!("fell behind {behind} times"))
        } else {
            self.agreement(&stage.server, seq).await.err()
        };
        Lived { measured, events: published_events.events, complaint }
    }

    /// Bytes of all WebAssembly memories of the page, and of its JavaScript heap without garbage.
    pub(crate) async fn heap_bytes(&self) -> (f64, f64) {
        self.devtools.call("HeapProfiler.collectGarbage", json!({})).await.expect("a collection");
        let memories = "__seen.memories.map((memory) => memory.deref()?.buffer.byteLength ?? 0)";
        let memories: Vec<f64> = serde_json::from_value(self.eval(memories).await).expect("numbers");
        (memories.iter().sum(), self.metrics().await.heap_bytes)
    }

    /// The tree's canvas, device pixels.
    pub(crate) async fn canvas(&self) -> (f64, f64) {
        let size = format!(
            "((tree) => (tree.matches('canvas') ? [tree] : [...tree.querySelectorAll('canvas')])
            .map((canvas) => [canvas.width, canvas.height])
            .reduce((a, b) => (a[0] * a[1] > b[0] * b[1] ? a : b)))(document.querySelector('{TREE}'))"
        );
        serde_json::from_value(self.eval(&size).await).expect("a canvas")
    }

    async fn measured(&self, counts_frames: bool, work: impl AsyncFnOnce()) -> Measured {
        if counts_frames {
            self.eval("__seen.count()").await;
        }
        let draws = number(&self.eval("({draws: __seen.draws})").await, "draws");
        // The counters are read within the trace: to begin and to end it costs the main thread something too.
        let counted = async || {
            let before = self.metrics().await;
            work().await;
            (before, self.metrics().await)
        };
        let ((before, after), trace) = trace::record(&self.devtools, counted).await;
        let draws = number(&self.eval("({draws: __seen.draws})").await, "draws") - draws;
        let stopped = self.eval("__seen.stop()").await;
        let times: FrameTimes = serde_json::from_value(stopped.clone()).expect("times of frames");
        Measured {
            trace: trace.with_frames(times),
            tasks_ms: after.tasks_ms - before.tasks_ms,
            scripts_ms: after.scripts_ms - before.scripts_ms,
            frames_ms: serde_json::from_value(stopped["intervals"].clone()).expect("numbers"),
            draws,
        }
    }

    /// Waits until the page is where the server is, beyond `seq`, and holds the same state.
    async fn agreement(&self, server: &Radixscope, seq: u64) -> Result<(), String> {
        let since = Instant::now();
        loop {
            let page = self.eval("({...document.body.dataset})").await;
            let cluster = server.cluster().await;
            let at = |key: &str| page[key].as_str().and_then(|n| n.parse::<u64>().ok());
            let now = Some(number(&cluster, "seq"));
            if at("seq") == now && at("digestSeq") == now {
                return match page["connection"] == "live" {
                    _ if cluster["digest"] != page["digest"] => Err("page and server differ".to_owned()),
                    _ if now <= Some(seq) => Err("no events arrived".to_owned()),
                    true => Ok(()),
                    false => Err(format!("the page is {}", page["connection"])),
                };
            }
            if since.elapsed() > PATIENCE {
                return Err(format!("the page is at {:?}, the server at {now:?}", at("seq")));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn seq(&self) -> u64 {
        let seq = self.eval("document.body.dataset.seq").await;
        seq.as_str().and_then(|seq| seq.parse().ok()).unwrap_or(0)
    }

    async fn until(&self, what: &str, expression: &str) -> Value {
        let since = Instant::now();
        loop {
            let found = self.eval(expression).await;
            if found.is_object() {
                return found;
            }
            assert!(since.elapsed() < PATIENCE, "gave up waiting until {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn eval(&self, expression: &str) -> Value {
        let value = self.devtools.eval(expression, PATIENCE.as_millis() as u64).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    async fn metrics(&self) -> Metrics {
        let response = self.devtools.call("Performance.getMetrics", json!({})).await.expect("counters");
        let all = response["metrics"].as_array().expect("a list of counters");
        let metric = |name: &str| {
            let found = all.iter().find(|metric| metric["name"] == name);
            found.and_then(|metric| metric["value"].as_f64()).unwrap_or_else(|| panic!("no {name}"))
        };
        Metrics {
            tasks_ms: metric("TaskDuration") * 1e3,
            scripts_ms: metric("ScriptDuration") * 1e3,
            heap_bytes: metric("JSHeapUsedSize"),
        }
    }
}

struct Metrics {
    tasks_ms: f64,
    scripts_ms: f64,
    heap_bytes: f64,
}

/// Times that a viewer fell behind and was given a new snapshot.
async fn resyncs(server: &Radixscope) -> u64 {
    let response = server.get("/metrics").await;
    let line = response.text().lines().find_map(|line| line.strip_prefix("radixscope_viewer_resyncs_total "));
    line.and_then(|count| count.trim().parse().ok()).expect("the server counts resynchronisations")
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} should be a number"))
}

#[cfg(test)]
mod tests {
    use radixscope_tests::browser::with_unrecorded_page;
    use radixscope_tests::pages::Site;

    use super::*;

    /// Follows the wheel and the pointer, with five milliseconds of work for each picture.
    const FOLLOWER: &str = "<!doctype html><link rel=icon href='data:,'><style>canvas { touch-action: none }</style>\
        <canvas data-testid=tree tabindex=0 width=800 height=400></canvas><script>\
        const canvas = document.querySelector('canvas'), context = canvas.getContext('2d');\
        const image = context.createImageData(800, 400); let asked = false;\
        const draw = () => { asked = false; const until = performance.now() + 5; while (performance.now() < until);\
        context.putImageData(image, 0, 0); };\
        const ask = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };\
        canvas.addEventListener('wheel', e => { e.preventDefault(); ask(); }, {passive: false});\
        canvas.addEventListener('pointermove', ask);</script>";

    #[tokio::test]
    async fn a_page_that_follows_is_measured_with_all_its_work() {
        let site = Site::of_page(FOLLOWER).await;
        with_unrecorded_page(async |page| {
            let viewer = Viewer::new(page).await;
            page.open(&site.url()).await;
            let (measured, inputs) = viewer.moved(Duration::from_secs(1)).await;
            assert!(measured.draws * 4 > inputs, "{} pictures after {inputs} inputs", measured.draws);
            let work = measured.trace.drawn_frames_ms();
            assert!(work.len() as u64 * 2 > measured.draws, "{} frames", work.len());
            assert!(work.iter().all(|&(wall, _)| wall >= 5.0), "{work:?}");
            assert!(measured.tasks_ms >= 5.0 * measured.draws as f64, "{}", measured.tasks_ms);
        })
        .await;
    }

    #[tokio::test]
    async fn a_page_that_stays_still_has_no_pictures() {
        let site = Site::of_page(&FOLLOWER.replace("asked = true;", "return;")).await;
        with_unrecorded_page(async |page| {
            let viewer = Viewer::new(page).await;
            page.open(&site.url()).await;
            let (measured, inputs) = viewer.moved(Duration::from_secs(1)).await;
            assert!(inputs > 0 && measured.draws == 0);
            assert!(measured.trace.drawn_frames_ms().is_empty());
        })
        .await;
    }
}
