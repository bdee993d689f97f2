//! Engines in pods, by publishers on this machine at the end of tunnels, with batches that vLLM's own publisher wrote.

use std::io;
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use radixscope_captures::publisher::Publisher;
use radixscope_captures::{EngineRecording, Replayer};
use radixscope_intake::{Intake, Received};
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{DepartureCause, SourceKind};
use radixscope_state::cluster::Cluster;

use super::*;
use crate::config::{Cli, Command};
use crate::hub::{LoneInbox, QueueLimits};
use crate::source::gate::Dial;
use crate::source::kubernetes::pods::Selectors;

const FIRST: WorkerIx = WorkerIx(0);

/// Leads to sockets of this machine.
struct Tunnel(Vec<(SocketAddr, SocketAddr)>);

impl Dial for Tunnel {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        let leads_to = self.0.iter().find(|(at, _)| *at == to).map(|(_, to)| *to);
        Box::pin(async move {
            TcpStream::connect(leads_to.ok_or_else(|| io::Error::other("no pod has this address"))?).await
        })
    }
}

fn socket(endpoint: &str) -> SocketAddr {
    endpoint.strip_prefix("tcp://").unwrap().parse().unwrap()
}

fn pod(name: &str, ip: &str, command: &[&str]) -> PodInfo {
    let pod: Value = json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid of {name}")},
        "spec": {"containers": [{"name": "vllm", "command": command}]}, "status": {"podIP": ip}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    PodInfo::of(pod, &Selectors::default()).unwrap()
}

struct Running {
    handed: LoneInbox,
    stop: watch::Sender<bool>,
    pods: watch::Sender<Pods>,
    intake: Intake,
    cluster: Cluster,
}

impl Running {
    fn start(tunnel: Tunnel) -> Self {
        let (pods, of_source) = watch::channel(Pods::default());
        let cli: Cli = clap::Parser::try_parse_from(["radixscope", "serve", "--kubernetes"]).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("not serve") };
        let gate = Arc::new(Gate::new(&serve.from).through(Arc::new(tunnel)));
        let source = PodEngines::new(of_source, &gate, None, false).unwrap();
        let (to, handed) = LoneInbox::new(QueueLimits { messages: 100_000, bytes: 64 << 20 });
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(source.run(to, stopped));
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        intake.source("engines", SourceKind::Engines, Millis(1), &mut cluster).unwrap();
        Self { handed, stop, pods, intake, cluster }
    }

    fn set(&self, pods: &[PodInfo]) {
        self.pods.send_replace(Pods::found(pods));
    }

    /// Takes what is handed over until the state is so.
    async fn until(&mut self, is_so: impl Fn(&Cluster) -> bool) {
        let waiting = async {
            while !is_so(&self.cluster) {
                let (payload, missing) = self.handed.payload().await;
                assert!(missing.is_none(), "{missing:?}");
                let at_ms = crate::time::now();
                self.intake.handle(&Received { source: SourceIx(0), at_ms, payload }, &mut self.cluster);
                self.intake.flush(at_ms, &mut self.cluster);
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        waited.unwrap_or_else(|_| panic!("{:?}", self.cluster.engines()));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_are_there_as_long_as_their_pods() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let has_topic = recorded.replay[0].len() == 4;
    let (publisher, ring) = (Publisher::bind(1), Replayer::bind(has_topic));
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    let mut running = Running::start(Tunnel(vec![
        (at("10.0.0.31:5557"), socket(&publisher.endpoint())),
        (at("10.0.0.31:5558"), socket(&ring.endpoint())),
    ]));
    let config =
        r#"{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}"#;
    let vllm = pod("vllm-0", "10.0.0.31", &["vllm", "serve", "m/chat", "--kv-events-config", config]);
    running.set(&[pod("web-0", "10.0.0.32", &["vllm", "serve", "m/chat"]), vllm.clone()]);
    publisher.wait_for_subscribers("", 1);
    // Half of it was published before the pod was seen.
    let (_, after) = recorded.live.split_at(recorded.live.len() / 2);
    for (at, frames) in recorded.live.iter().enumerate() {
        ring.keep(at as u64, &frames[2]);
    }
    after.iter().for_each(|frames| publisher.publish(frames));
    let held = recorded.expected.held as u64;
    // On the way it holds as many now and then.
    let has_all = |cluster: &Cluster, ix| {
        cluster.worker(ix).is_some_and(|of| of.stored_total == recorded.expected.stored)
            && cluster.blocks(ix) == Some(held)
    };
    running.until(|cluster| has_all(cluster, FIRST)).await;
    let worker = running.cluster.worker(FIRST).unwrap();
    assert_eq!(running.cluster.pool(worker.pool).unwrap().component, "m-chat");
    let [feed] = running.cluster.engines() else { panic!("{:?}", running.cluster.engines()) };
    assert_eq!((&*feed.name, feed.worker), ("tcp://10.0.0.31:5557 of vllm-0", Some(FIRST)));
    // Its pod goes, and it with it.
    running.set(&[]);
    running.until(|cluster| cluster.engines().is_empty()).await;
    let departure = running.cluster.worker(FIRST).unwrap().departure.unwrap();
    assert_eq!((departure.why, running.cluster.blocks(FIRST)), (DepartureCause::Discovery, Some(0)));
    // Another pod of that name is another worker.
    let again = PodInfo { uid: "another".to_owned(), ..vllm };
    running.set(&[again]);
    running.until(|cluster| has_all(cluster, WorkerIx(1))).await;
    assert!(running.cluster.worker(FIRST).unwrap().departure.is_some());
    assert_eq!((running.cluster.missed_total(), running.cluster.rejected_total()), (0, 0));
}
