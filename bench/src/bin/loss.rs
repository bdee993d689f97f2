//! Measures what is lost and whether it is reported: bursts of KV events from a real NATS server to a real
//! `radixscope serve`, and connections that break in the middle of one.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::time::{Duration, Instant};

use async_nats::Client;
use bytes::Bytes;
use clap::Parser as _;
use radixscope_bench::report::ReportFile;
use radixscope_tests::figures::number;
use radixscope_tests::flood::{self, Form, Receipts, WORKERS};
use radixscope_tests::nats::{Nats, Options as NatsOptions};
use radixscope_tests::proxy::Proxy;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

/// Nothing has changed for this long: everything under way has arrived.
const QUIET_FOR: Duration = Duration::from_secs(8);
/// Longest time that a run may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Least events per second that one core of the server has to do.
const BUDGET_EVENTS_PER_CORE_S: f64 = 100_000.0;

/// What breaks in the middle of a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Nothing,
    /// The connection is cut and mended.
    Cut,
    /// The server is killed and started again.
    Kill,
}

/// One run.
#[derive(Debug)]
struct Run {
    form: Form,
    fault: Fault,
    /// Published; into a stream: published with a receipt that says it is stored.
    sent: u64,
    /// Published into a stream, and no receipt came: stored or not.
    unacknowledged: u64,
    /// What the stream holds in the end; `None` without one.
    stored: Option<u64>,
    received: u64,
    /// Reported as lost, by exact counts.
    exact: u64,
    /// By counts that are lower bounds.
    at_least: u64,
    /// Gaps of unknown size.
    gaps: u64,
    publish_s: f64,
    /// Processor time of the server.
    cpu_s: f64,
    rss_mib: f64,
}

impl Run {
    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Whether what is reported is the truth. Of a stream everything it holds must be there.
    fn is_true(&self) -> bool {
        let reported = self.exact + self.at_least;
        let is_exact = self.at_least == 0 && self.gaps == 0;
        let (least, most) = (self.lost(), self.lost() + self.unacknowledged);
        let is_bound = if is_exact { reported >= least && reported <= most } else { reported <= most };
        is_bound && self.stored.is_none_or(|stored| self.received + reported >= stored)
    }

    fn row(&self) -> Value {
        let Self { form, fault, sent, .. } = self;
        let what = format!("lost and not reported, {sent} events, {form:?}, {fault:?}");
        let value = self.lost() as f64 - (self.exact + self.at_least) as f64;
        json!({"what": what, "value": value, "unit": "events", "budget": "0, or a gap of unknown size", "within": self.is_true()})
    }

    fn show(&self) {
        println!(
            "| {:?} | {:?} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.0} |",
            self.form,
            self.fault,
            self.sent,
            self.unacknowledged,
            self.stored.map_or_else(|| "–".to_owned(), |stored| stored.to_string()),
            self.received,
            self.lost(),
            self.exact,
            self.at_least,
            self.gaps,
            if self.is_true() { "true" } else { "FALSE" },
            self.sent as f64 / self.publish_s,
            self.received as f64 / self.cpu_s,
            self.rss_mib,
        );
    }
}

#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    report: ReportFile,
    /// Events of a burst
    #[arg(long, value_delimiter = ',', default_values_t = [200_000, 500_000, 800_000, 1_200_000])]
    bursts: Vec<u64>,
    /// Bursts of each size
    #[arg(long, default_value_t = 5)]
    runs: u64,
    /// Forms of KV events: json, stream, envelope
    #[arg(long, value_delimiter = ',', default_values_t = Form::ALL)]
    forms: Vec<Form>,
    /// Connections that break during a burst
    #[arg(long, default_value_t = 5)]
    breaks: u64,
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    println!(
        "| form | fault | sent | unacknowledged | in the stream | received | lost | reported exactly | at least | gaps | | sent/s | received per core-s | RSS MiB |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|"
    );
    let mut runs = Vec::new();
    for &form in &options.forms {
        let most = options.bursts.iter().copied().max().unwrap_or(0);
        let messages: Vec<Bytes> = (0..most + WORKERS).map(|n| form.message(n)).collect();
        for (&burst, _) in
            options.bursts.iter().flat_map(|burst| (0..options.runs).map(move |run| (burst, run)))
        {
            runs.push(run(form, Fault::Nothing, burst, &messages).await);
        }
        // Larger ones break no differently.
        for &burst in options.bursts.iter().take(2) {
            for fault in [Fault::Cut, Fault::Kill] {
                for _ in 0..options.breaks {
                    runs.push(run(form, fault, burst, &messages).await);
                }
            }
        }
    }
    let mut rows: Vec<Value> = runs.iter().map(Run::row).collect();
    let (received, cpu_s) = runs.iter().fold((0, 0.0), |(n, s), run| (n + run.received, s + run.cpu_s));
    let per_core = received as f64 / cpu_s;
    rows.push(json!({
        "what": "events received per second of one core", "value": per_core, "unit": "events/s",
        "budget": format!("≥ {BUDGET_EVENTS_PER_CORE_S}"), "within": per_core >= BUDGET_EVENTS_PER_CORE_S,
    }));
    options.report.write(&json!({ "rows": rows }));
}

async fn run(form: Form, fault: Fault, burst: u64, messages: &[Bytes]) -> Run {
    let mut nats =
        Nats::with(NatsOptions { jetstream: form == Form::Stream, ..NatsOptions::default() }).await;
    if form == Form::Stream {
        flood::create_stream(&nats.jetstream().await).await;
    }
    let proxy = Proxy::start(nats.port()).await;
    // Bursts go the plain way: only a run that cuts it needs the proxy.
    let url = if fault == Fault::Cut { proxy.url() } else { nats.url() };
    let server = Radixscope::serve(&url).await;
    server.until_ready().await;
    let cpu = server.process().cpu_time();
    let mut publisher = Publisher::new(&nats, form).await;
    let (mut sent, mut unacknowledged) = (0, 0);
    let started = Instant::now();
    let half = if fault == Fault::Nothing { burst } else { burst / 2 };
    publisher.send(messages, 0..half).await;
    if fault != Fault::Nothing {
        break_it(fault, &mut nats, &proxy, &server).await;
        if fault == Fault::Kill {
            let (stored, unknown) = publisher.end().await;
            (sent, unacknowledged) = (stored, unknown);
            publisher = Publisher::new(&nats, form).await;
        }
        // A tenth has no receiver.
        let unseen = if fault == Fault::Cut { half + burst / 10 } else { half };
        publisher.send(messages, half..unseen).await;
        proxy.mend();
        until_connected(&server).await;
        publisher.send(messages, unseen..burst).await;
    }
    let publish_s = started.elapsed().as_secs_f64();
    publisher.send(messages, burst..burst + WORKERS).await;
    let (stored, unknown) = publisher.end().await;
    sent += stored;
    unacknowledged += unknown;
    let source = quiet(&server).await;
    let stored = match form {
        Form::Stream => Some(flood::stored(&nats.jetstream().await).await),
        Form::Json | Form::Envelope => None,
    };
    let (mut exact, mut at_least) = (0, 0);
    for missed in source["missed"].as_array().into_iter().flatten().filter(|m| m["counts_again"] != true) {
        let is_bound = missed["cause"] == "slow_consumer";
        *(if is_bound { &mut at_least } else { &mut exact }) += number(missed, "count");
    }
    let gaps = source["gaps"].as_array().into_iter().flatten().map(|gaps| number(gaps, "gaps")).sum();
    let run = Run {
        form,
        fault,
        sent,
        unacknowledged,
        stored,
        received: number(&source, "received"),
        exact,
        at_least,
        gaps,
        publish_s,
        cpu_s: (server.process().cpu_time() - cpu).as_secs_f64(),
        rss_mib: server.process().rss_bytes() as f64 / (1024.0 * 1024.0),
    };
    run.show();
    run
}

/// Who publishes, with receipts where there is a stream to give them.
enum Publisher {
    Plain(Client, Form, u64),
    Stream(Receipts),
}

impl Publisher {
    async fn new(nats: &Nats, form: Form) -> Self {
        let client = nats.client().await;
        match form {
            Form::Stream => Self::Stream(Receipts::new(client).await),
            Form::Json | Form::Envelope => Self::Plain(client, form, 0),
        }
    }

    async fn send(&mut self, messages: &[Bytes], range: Range<u64>) {
        let of = messages[range.start as usize..range.end as usize].iter().cloned();
        match self {
            Self::Plain(client, form, sent) => {
                *sent += range.end - range.start;
                flood::send(client, *form, range, of).await;
            }
            Self::Stream(receipts) => receipts.send(of).await,
        }
    }

    /// How many were sent, and how many are in doubt.
    async fn end(self) -> (u64, u64) {
        match self {
            Self::Plain(_, _, sent) => (sent, 0),
            Self::Stream(receipts) => {
                let (sent, stored) = receipts.end().await;
                (stored, sent - stored)
            }
        }
    }
}

async fn break_it(fault: Fault, nats: &mut Nats, proxy: &Proxy, server: &Radixscope) {
    match fault {
        Fault::Nothing => {}
        Fault::Cut => proxy.cut(),
        Fault::Kill => {
            nats.stop();
            server.until_source_is("connecting").await;
            nats.start_again().await;
            until_connected(server).await;
        }
    }
}

async fn until_connected(server: &Radixscope) {
    server
        .until_cluster("it is connected again", |cluster| {
            let state = cluster["sources"][0]["state"].as_str().unwrap_or_default();
            if ["live", "catching_up"].contains(&state) { Ok(()) } else { Err(state.to_owned()) }
        })
        .await;
}

/// Waits until nothing changes any more.
async fn quiet(server: &Radixscope) -> Value {
    let started = Instant::now();
    let (mut since, mut last) = (Instant::now(), Value::Null);
    loop {
        // Busy is a response too.
        if let Ok(response) = server.try_get("/api/v1/cluster").await
            && response.status == 200
        {
            let source = response.json()["sources"][0].clone();
            let now = json!([source["received"], source["missed"], source["gaps"], source["state"]]);
            if now != last || source["state"] != "live" {
                (since, last) = (Instant::now(), now);
            }
            if since.elapsed() >= QUIET_FOR {
                return source;
            }
        }
        assert!(started.elapsed() < PATIENCE, "not quiet: {last}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}
