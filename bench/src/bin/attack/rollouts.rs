//! Workers that come and go: whether memory grows with those that left, and whether what a broken connection cost is counted,
//! or said to be at least so much, though some joined or left meanwhile.
//!
//! Rollouts are as fast as the server takes them, so that minutes hold what takes hours in a deployment; memory is scaled
//! to [`LEFT_PER_HOUR`]. By default the server keeps no history, which grows until it is full and is bounded by its own
//! options.

use std::time::{Duration, Instant};

use async_nats::Client;
use radixscope_tests::discovery::{Folder, Registered};
use radixscope_tests::envelope::envelope;
use radixscope_tests::figures::number;
use radixscope_tests::flood::event;
use radixscope_tests::nats::{self, Nats};
use radixscope_tests::proxy::Proxy;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::Value;

use super::{MIB, row};

const SUBJECT: &str = "namespace.dynamo.component.backend.endpoint.generate.kv-events";
/// Workers at a time.
const PRESENT: usize = 16;
/// Of these, the ones that a step of a rollout replaces.
const REPLACED: usize = 4;
/// Time between two steps.
const STEP_EVERY: Duration = Duration::from_millis(500);
/// Messages of a worker in a step.
const MESSAGES: u64 = 4;
/// What the server keeps of the last minutes is full by then: samples for the checks reach back longest, three minutes.
const WARM_UP: Duration = Duration::from_secs(200);
/// Workers that leave in an hour of one rollout after another: eight processes of four ranks replaced each minute.
const LEFT_PER_HOUR: f64 = 1_920.0;

/// How rollouts are measured.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Minutes of rollouts in which memory is measured
    #[arg(long, default_value_t = 2)]
    rollout_minutes: u64,
    /// History that the server keeps meanwhile, as its `--history`
    #[arg(long, default_value = "0")]
    rollout_history: String,
}

/// What came and went, and what was published.
struct Deployment {
    client: Client,
    folder: Folder,
    present: Vec<Worker>,
    last_id: u64,
    left: u64,
    published: u64,
}

struct Worker {
    registered: Registered,
    /// Messages published.
    sequence: u64,
}

impl Deployment {
    fn new(client: Client) -> Self {
        let folder = Folder::default();
        Self { client, folder, present: Vec::new(), last_id: 0, left: 0, published: 0 }
    }

    fn joins(&mut self) {
        self.last_id += 1;
        let worker_id = self.last_id;
        let publisher_id = 1_000_000 + worker_id;
        let registered = Registered { worker_id, publisher_id, zmq_port: 9, tcp_port: 9 };
        for (key, value) in entries(registered) {
            self.folder.put(&key, &value);
        }
        self.present.push(Worker { registered, sequence: 0 });
    }

    /// The one that is there longest.
    fn leaves(&mut self) {
        let worker = self.present.remove(0);
        self.left += 1;
        entries(worker.registered).for_each(|(key, _)| self.folder.remove(&key));
    }

    /// Every worker from `from` on publishes so many messages.
    async fn publishes(&mut self, from: usize, messages: u64) {
        for worker in &mut self.present[from..] {
            let Registered { worker_id, publisher_id, .. } = worker.registered;
            for _ in 0..messages {
                let own = worker.sequence;
                let message = envelope(publisher_id, own, "kv-events", &[event(worker_id, own)]);
                self.client.publish(SUBJECT, message.into()).await.expect("NATS takes what it is sent");
                worker.sequence += 1;
                self.published += 1;
            }
        }
        self.client.flush().await.expect("NATS takes what it is sent");
    }

    async fn rolls_out(&mut self) {
        (0..REPLACED).for_each(|_| self.leaves());
        (0..REPLACED).for_each(|_| self.joins());
        self.publishes(0, MESSAGES).await;
    }
}

/// What a worker registers whose events come over NATS.
fn entries(worker: Registered) -> impl Iterator<Item = (String, Value)> {
    worker.entries().into_iter().filter(|(key, _)| !key.starts_with("v1/event_channels/"))
}

/// Memory over rollouts, and what a broken connection cost.
pub(super) async fn rows(options: &Options) -> Vec<Value> {
    let nats = Nats::with(nats::Options { jetstream: false, ..nats::Options::default() }).await;
    let proxy = Proxy::start(nats.port()).await;
    let mut deployment = Deployment::new(nats.client().await);
    (0..PRESENT).for_each(|_| deployment.joins());
    let more = [
        "--discovery",
        &deployment.folder.url(),
        "--tree-dumps",
        "off",
        "--history",
        &options.rollout_history,
    ];
    let server = Radixscope::serve_with(&proxy.url(), &more).await;
    server.until_ready().await;
    let mut rows = memory(&server, &mut deployment, options).await;
    rows.extend(outage(&server, &mut deployment, &proxy).await);
    rows
}

async fn memory(server: &Radixscope, deployment: &mut Deployment, options: &Options) -> Vec<Value> {
    let began = Instant::now();
    let until = WARM_UP + Duration::from_secs(60 * options.rollout_minutes);
    let mut samples = Vec::new();
    let mut every = tokio::time::interval(STEP_EVERY);
    while began.elapsed() < until {
        every.tick().await;
        deployment.rolls_out().await;
        if began.elapsed() > WARM_UP {
            samples.push((deployment.left as f64, server.process().rss_bytes() as f64));
        }
    }
    let per_hour = slope(&samples) * LEFT_PER_HOUR / MIB;
    let listed = server.cluster().await["workers"].as_array().map_or(0, Vec::len);
    let budget = Some(("≤ 1 MiB/h", 1.0));
    vec![
        row("memory over rollouts, 1,920 workers an hour", per_hour, "MiB/h", budget),
        row("memory after them", server.process().rss_bytes() as f64 / MIB, "MiB", None),
        row("workers that left", deployment.left as f64, "", None),
        row("workers listed, those that left included", listed as f64, "", Some(("≤ 256", 256.0))),
    ]
}

/// By how much the second rises with the first, by least squares.
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let (up, along) = samples
        .iter()
        .fold((0.0, 0.0), |(up, along), s| (up + (s.0 - x) * (s.1 - y), along + (s.0 - x) * (s.0 - x)));
    up / along
}

/// The connection breaks; meanwhile workers leave, join, and join and leave.
async fn outage(server: &Radixscope, deployment: &mut Deployment, proxy: &Proxy) -> Vec<Value> {
    received(server, deployment.published).await;
    let before = missed(server).await.0;
    proxy.cut();
    until_nats_is(server, "connecting").await;
    let published = deployment.published;
    deployment.publishes(0, 50).await;
    (0..REPLACED).for_each(|_| deployment.leaves());
    (0..REPLACED).for_each(|_| deployment.joins());
    deployment.publishes(PRESENT - REPLACED, 20).await;
    (0..2).for_each(|_| deployment.joins());
    deployment.publishes(PRESENT, 10).await;
    for last in deployment.present.split_off(PRESENT) {
        entries(last.registered).for_each(|(key, _)| deployment.folder.remove(&key));
    }
    let lost = deployment.published - published;
    proxy.mend();
    until_nats_is(server, "live").await;
    deployment.publishes(0, MESSAGES).await;
    received(server, deployment.published - lost).await;
    let stable_since = Instant::now();
    // A gap is a loss once nothing can come late any more: two flushes, a second each.
    while stable_since.elapsed() < Duration::from_secs(4) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (after, is_at_least) = missed(server).await;
    let counted = (after - before) as f64;
    let lost = lost as f64;
    let passed_for_exact = if is_at_least && counted <= lost { 0.0 } else { (lost - counted).abs() };
    vec![
        row("messages lost in an outage with joins and leaves", lost, "", None),
        row("of these counted", 100.0 * counted / lost, "%", None),
        row("not counted though the count passes for exact", passed_for_exact, "", Some(("0", 0.0))),
    ]
}

fn nats_of(cluster: &Value) -> &Value {
    let sources = cluster["sources"].as_array().expect("sources");
    sources.iter().find(|source| source["kind"] == "nats").expect("one of NATS")
}

async fn until_nats_is(server: &Radixscope, state: &str) {
    server
        .until_cluster(&format!("the connection to NATS is {state}"), |cluster| {
            let nats = nats_of(cluster);
            wait::expect(nats["state"] == state, || nats.to_string())
        })
        .await;
}

/// Waits until NATS delivered so many messages.
async fn received(server: &Radixscope, published: u64) {
    server
        .until_cluster("everything published is received", |cluster| {
            let got = number(nats_of(cluster), "received");
            wait::expect(got >= published, || format!("{got} of {published}"))
        })
        .await;
}

/// Messages reported as lost, and whether more may be.
async fn missed(server: &Radixscope) -> (u64, bool) {
    let cluster = server.cluster().await;
    let nats = nats_of(&cluster);
    (number(nats, "missed_total"), nats["missed_at_least"] == true)
}
