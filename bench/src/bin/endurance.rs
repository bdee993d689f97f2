//! Leaves the page open for hours, as people do: three views in a browser each, sampled every ten seconds, woken from sleep and taken
//! to other networks on the way. Does memory grow, is the main thread held up, is the page live again by itself.
//!
//! The server is one that runs already, or a demo in which time passes ten times as fast: over 1,000 KV events a second.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_bench::slope::slope;
use radixscope_tests::browser::{Page, with_unrecorded_page};
use radixscope_tests::figures::number;
use radixscope_tests::http::Http;
use radixscope_tests::process;
use radixscope_tests::proxy::Proxy;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The views, as the address calls them.
const VIEWS: [&str; 3] = ["overview", "tree", "decisions"];
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// A run that is ended early leaves its report of then.
const REPORTED_EVERY: Duration = Duration::from_secs(60);
/// Time from one interruption of a view to its next.
const INTERRUPTED_EVERY: Duration = Duration::from_secs(300);
/// How long it sleeps, or has no network.
const INTERRUPTED_FOR: Duration = Duration::from_secs(60);
/// The server records something new within so long.
const NEW_RECORDS_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take until it is live again.
const LIVE_WITHIN: Duration = Duration::from_secs(60);
/// By how much the memory of a view may grow after the warm-up, MB an hour: a tab that stays open for a day gets no heavier than
/// another page.
const MAX_SLOPE: f64 = 5.0;
/// It is known if its standard error is at most this.
const MAX_SLOPE_ERROR: f64 = 2.5;
/// Share of the time in which the main thread was held up for 50 ms or longer, percent.
const MAX_LONG_PERCENT: f64 = 2.0;

/// Counts tasks of 50 ms or longer, as browsers report them, but for those in which heaps are measured.
const WATCH: &str = "
    window.longTasks = { count: 0, ms: 0, most: 0 };
    window.measured = { from: 0, to: 0 };
    new PerformanceObserver(list => {
        for (const { startTime, duration } of list.getEntries()) {
            if (duration > 30_000) continue; // the machine slept
            if (startTime < measured.to && startTime + duration > measured.from) continue;
            longTasks.count += 1; longTasks.ms += duration; longTasks.most = Math.max(longTasks.most, duration);
        }
    }).observe({ type: 'longtask', buffered: true });
";

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Hours
    #[arg(long, default_value_t = 2.0)]
    hours: f64,
    /// Port of a server on this machine that runs already
    #[arg(long)]
    port: Option<u16>,
    /// Minutes until the page holds as much as it ever does: an hour of rates, decisions and findings
    #[arg(long, default_value_t = 60.0)]
    warm_up_minutes: f64,
}

/// How a view was at a moment.
struct Sample {
    at_s: f64,
    /// Memory of the process that runs the page, bytes: what it allocated.
    memory: u64,
    /// JavaScript heap after a collection, bytes.
    heap: f64,
    nodes: f64,
    long_tasks: Value,
}

/// What happens to a view on the way.
#[derive(Clone, Copy)]
enum Interruption {
    /// The machine sleeps: no process of the browser runs.
    Sleep,
    /// Connections go nowhere, new ones work.
    OtherNetwork,
    /// No connection for a while.
    NoNetwork,
}

impl Interruption {
    const ALL: [Self; 3] = [Self::Sleep, Self::OtherNetwork, Self::NoNetwork];

    const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep of 60 s",
            Self::OtherNetwork => "change of network",
            Self::NoNetwork => "60 s without network",
        }
    }
}

/// What was seen of a view.
#[derive(Default)]
struct Seen {
    samples: Vec<Sample>,
    /// What happened and how many seconds it took until the page was live again; `None`: it was not within a minute, or the server did not answer.
    interrupted: Vec<(&'static str, Option<f64>)>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = Options::parse();
    let own = match options.port {
        Some(_) => None,
        None => Some(Radixscope::start(["demo", "--speed", "10"]).await),
    };
    let port = options.port.or(own.as_ref().map(Radixscope::port)).expect("one of both");
    let began = Instant::now();
    let until = began + Duration::from_secs_f64(options.hours * 3_600.0);
    let all: Vec<Rc<RefCell<Seen>>> = VIEWS.iter().map(|_| Rc::default()).collect();
    let tasks = LocalSet::new();
    for (number, seen) in (0..).zip(&all) {
        let seen = Rc::clone(seen);
        tasks.spawn_local(async move {
            let watched = View { name: VIEWS[number as usize], port, began, until, seen };
            watched.watch(INTERRUPTED_EVERY * (number + 1) / VIEWS.len() as u32).await;
        });
    }
    let first_seq = seq_of(port).await;
    let report = async || {
        let records = seq_of(port).await.zip(first_seq).map(|(now, first)| now.saturating_sub(first));
        let records_per_s = records.map(|records| records as f64 / began.elapsed().as_secs_f64());
        let report = report(&all, records_per_s, options.warm_up_minutes * 60.0);
        options.report.write(&report);
        report
    };
    tasks
        .run_until(async {
            let mut every = interval(REPORTED_EVERY);
            every.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while Instant::now() < until {
                every.tick().await;
                report().await;
            }
        })
        .await;
    tasks.await;
    for row in report().await["rows"].as_array().into_iter().flatten() {
        println!("{row}");
    }
}

/// The server's last record; `None`: it does not answer.
async fn seq_of(port: u16) -> Option<u64> {
    let cluster = Http::default().get(&format!("http://127.0.0.1:{port}/api/v1/cluster")).await;
    Some(number(&cluster.ok()?.json(), "seq"))
}

struct View {
    name: &'static str,
    port: u16,
    began: Instant,
    until: Instant,
    seen: Rc<RefCell<Seen>>,
}

impl View {
    /// Opens it and leaves it open, with an interruption every now and then, the first after `first`.
    async fn watch(&self, first: Duration) {
        let proxy = Proxy::start(self.port).await;
        let url = format!("http://127.0.0.1:{}/?view={}", proxy.port(), self.name);
        with_unrecorded_page(async |page| {
            page.expect_complaints();
            page.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": WATCH})).await;
            page.devtools("Performance.enable", json!({})).await;
            page.open(&url).await;
            self.live_again(page).await.expect("a page that opens");
            let mut next = self.began + first;
            let mut kinds = Interruption::ALL.iter().cycle();
            let mut every = interval(SAMPLE_EVERY);
            every.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while Instant::now() < self.until {
                every.tick().await;
                let sample = self.sample(page).await;
                self.seen.borrow_mut().samples.push(sample);
                if Instant::now() < next {
                    continue;
                }
                next += INTERRUPTED_EVERY;
                let kind = *kinds.next().expect("without end");
                interrupt(kind, page, &proxy).await;
                let after_s = self.live_again(page).await;
                let what = kind.name();
                match after_s {
                    Some(s) => println!("{}: live {s:.1} s after {what}", self.name),
                    None => println!("{}: not live after {what}", self.name),
                }
                self.seen.borrow_mut().interrupted.push((what, after_s));
            }
        })
        .await;
    }

    /// Waits until the page is where the server is now; seconds that it took.
    async fn live_again(&self, page: &Page) -> Option<f64> {
        let since = Instant::now();
        // What a server that does not answer has recorded is not known.
        let there = seq_of(self.port).await?;
        while since.elapsed() < LIVE_WITHIN {
            let here = page.eval("document.body.dataset.seq").await;
            if here.as_str().and_then(|seq| seq.parse::<u64>().ok()).is_some_and(|here| here >= there) {
                return Some(since.elapsed().as_secs_f64());
            }
            sleep(Duration::from_millis(100)).await;
        }
        None
    }

    async fn sample(&self, page: &Page) -> Sample {
        page.eval("window.measured = { from: performance.now(), to: Infinity }").await;
        page.devtools("HeapProfiler.collectGarbage", json!({})).await;
        page.eval("window.measured.to = performance.now()").await;
        let metrics = page.devtools("Performance.getMetrics", json!({})).await;
        let metric = |name: &str| {
            let all = metrics["metrics"].as_array().expect("a list");
            all.iter().find(|metric| metric["name"] == name).and_then(|metric| metric["value"].as_f64())
        };
        let browser = page.browser_id().expect("a browser of ours");
        let renderers =
            process::family(browser).into_iter().filter(|(_, command)| command.contains("--type=renderer"));
        Sample {
            at_s: self.began.elapsed().as_secs_f64(),
            memory: renderers.filter_map(|(id, _)| process::anonymous_bytes(id)).sum(),
            heap: metric("JSHeapUsedSize").unwrap_or(f64::NAN),
            nodes: metric("Nodes").unwrap_or(f64::NAN),
            long_tasks: page.eval("window.longTasks").await,
        }
    }
}

async fn interrupt(kind: Interruption, page: &Page, proxy: &Proxy) {
    match kind {
        Interruption::Sleep => {
            let browser = process::family(page.browser_id().expect("a browser of ours"));
            // None of them ends while it stands still.
            browser.iter().for_each(|(id, _)| process::signal("STOP", *id));
            sleep(INTERRUPTED_FOR).await;
            browser.iter().for_each(|(id, _)| process::signal("CONT", *id));
        }
        Interruption::OtherNetwork => {
            proxy.change_network();
            // What is recorded from now on cannot come by the old connection.
            sleep(NEW_RECORDS_WITHIN).await;
        }
        Interruption::NoNetwork => {
            proxy.cut();
            sleep(INTERRUPTED_FOR).await;
            proxy.mend();
        }
    }
}

fn report(all: &[Rc<RefCell<Seen>>], records_per_s: Option<f64>, warm_up_s: f64) -> Value {
    let mut rows = vec![json!({"what": "records a second", "value": records_per_s, "unit": "records/s"})];
    let mut samples = Vec::new();
    for (name, seen) in VIEWS.iter().zip(all) {
        let seen = seen.borrow();
        rows.extend(rows_of(name, &seen, warm_up_s));
        samples.push(json!({
            "view": name,
            "at_s": seen.samples.iter().map(|s| s.at_s.round()).collect::<Vec<_>>(),
            "memory_bytes": seen.samples.iter().map(|s| s.memory).collect::<Vec<_>>(),
            "heap_bytes": seen.samples.iter().map(|s| s.heap).collect::<Vec<_>>(),
            "nodes": seen.samples.iter().map(|s| s.nodes).collect::<Vec<_>>(),
            "long_tasks_ms": seen.samples.iter().map(|s| s.long_tasks["ms"].as_f64()).collect::<Vec<_>>(),
        }));
    }
    json!({"rows": rows, "samples": samples})
}

fn rows_of(name: &str, seen: &Seen, warm_up_s: f64) -> Vec<Value> {
    let warm: Vec<&Sample> = seen.samples.iter().filter(|sample| sample.at_s >= warm_up_s).collect();
    let (Some(first), Some(last)) = (warm.first(), warm.last()) else { return Vec::new() };
    let grows = |of: &dyn Fn(&Sample) -> f64| {
        slope(&[warm.iter().map(|sample| (sample.at_s / 3_600.0, of(sample))).collect()])
    };
    let mut rows = Vec::new();
    for (what, of) in [
        ("memory of its process", &(|sample: &Sample| sample.memory as f64 / 1e6) as &dyn Fn(&Sample) -> f64),
        ("JavaScript heap", &|sample: &Sample| sample.heap / 1e6),
    ] {
        let Some(slope) = grows(of) else { continue };
        let level = of(last);
        let mut row = json!({
            "what": format!("{name}: {what} after the warm-up ({level:.0} MB at the end), standard error {:.2}", slope.error),
            "value": slope.per_x, "unit": "MB/h",
        });
        if what.starts_with("memory") && slope.error <= MAX_SLOPE_ERROR {
            row["budget"] = format!("≤ {MAX_SLOPE} MB/h").into();
            row["within"] = (slope.per_x <= MAX_SLOPE).into();
        }
        rows.push(row);
    }
    let fewest = |samples: &[&Sample]| samples.iter().map(|s| s.nodes).fold(f64::INFINITY, f64::min);
    let third = warm.len().div_ceil(3);
    rows.push(json!({
        "what": format!("{name}: DOM nodes, fewest of the first and the last third ({:.0})", fewest(&warm[..third])),
        "value": fewest(&warm[warm.len() - third..]), "unit": "nodes",
    }));
    let long = |sample: &Sample, key: &str| sample.long_tasks[key].as_f64().unwrap_or(f64::NAN);
    let lasted_s = last.at_s - first.at_s;
    let percent = (long(last, "ms") - long(first, "ms")) / 10.0 / lasted_s;
    rows.push(json!({
        "what": format!(
            "{name}: main thread held up for 50 ms or longer ({:.0} times, the longest {:.0} ms)",
            long(last, "count") - long(first, "count"), long(last, "most")
        ),
        "value": percent, "unit": "% of the time",
        "budget": format!("≤ {MAX_LONG_PERCENT} %"), "within": percent <= MAX_LONG_PERCENT,
    }));
    for kind in Interruption::ALL {
        let of =
            seen.interrupted.iter().filter(|(what, _)| *what == kind.name()).map(|(_, after_s)| *after_s);
        let times: Vec<Option<f64>> = of.collect();
        if times.is_empty() {
            continue;
        }
        let most = times.iter().copied().try_fold(0.0, |most: f64, s| Some(most.max(s?)));
        rows.push(json!({
            "what": format!("{name}: live again after {}, the longest of {}", kind.name(), times.len()),
            "value": most, "unit": "s",
            "budget": "≤ 60 s", "within": most.is_some(),
        }));
    }
    rows
}
