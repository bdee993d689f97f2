//! The source against publishers and rings on real sockets, and against peers that are none; what it hands over is taken into a state.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use radixscope_captures::publisher::Publisher;
use radixscope_captures::{EngineRecording, Replayer};
use radixscope_intake::{EngineInput, Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx, WorkerIx};
use radixscope_model::record::{KnowledgeWhy, Replay, SourceKind, TreeKnowledge};
use radixscope_state::cluster::Cluster;

use super::*;
use crate::hub::{LoneInbox, QueueLimits};

/// Short waits, where waiting is the point.
const SHORT: Timeouts = Timeouts {
    connect: Duration::from_millis(2_000),
    effective: Duration::from_millis(20),
    ping: Duration::from_secs(5),
    dead: Duration::from_secs(12),
};
const FIRST: WorkerIx = WorkerIx(0);

/// A source at work, and the state that it leads to.
struct Running {
    handed: LoneInbox,
    stop: watch::Sender<bool>,
    intake: Intake,
    cluster: Cluster,
    replay: Option<Replay>,
    batches: Vec<(u32, u64)>,
}

impl Running {
    fn start(engines: &[String]) -> Self {
        let engines = engines.iter().map(|engine| engine.parse().unwrap()).collect();
        let mut source = EngineSource::new(engines, &Gate::of_this_machine()).unwrap();
        source.timeouts = SHORT;
        let (to, handed) = LoneInbox::new(QueueLimits { messages: 100_000, bytes: 64 << 20 });
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(source.run(to, stopped));
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        intake.source("engines", SourceKind::Engines, Millis(1), &mut cluster).unwrap();
        Self { handed, stop, intake, cluster, replay: None, batches: Vec::new() }
    }

    /// Takes one thing that was handed over into the state.
    async fn step(&mut self) {
        let (payload, missing) = self.handed.payload().await;
        if let Some(missing) = missing {
            self.intake.missing(SourceIx(0), &missing);
        }
        if let Payload::Engine { input, .. } = &payload {
            match input {
                EngineInput::Batch { run, sequence, .. } => self.batches.push((*run, *sequence)),
                EngineInput::Replay(replay) => self.replay = Some(*replay),
                _ => {}
            }
        }
        let received = Received { source: SourceIx(0), at_ms: crate::time::now(), payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    /// Until so many batches were handed over.
    async fn batches(&mut self, count: usize) {
        while self.batches.len() < count {
            self.step().await;
        }
    }

    async fn subscribed(&mut self) {
        loop {
            let (payload, _) = self.handed.payload().await;
            let is_subscribed = matches!(payload, Payload::Subscribed { .. });
            let received = Received { source: SourceIx(0), at_ms: crate::time::now(), payload };
            self.intake.handle(&received, &mut self.cluster);
            if is_subscribed {
                return;
            }
        }
    }

    fn flush(&mut self) {
        for _ in 0..2 {
            self.intake.flush(crate::time::now(), &mut self.cluster);
        }
    }

    fn knowledge(&self) -> (TreeKnowledge, KnowledgeWhy) {
        let knowledge = &self.cluster.worker(FIRST).unwrap().knowledge;
        (knowledge.state, knowledge.why)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

fn publish(publisher: &Publisher, frames: &[Bytes]) {
    publisher.publish(frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_era_is_received_whole_however_late_one_comes() {
    for (name, engine) in EngineRecording::ALL.iter().map(|name| (*name, name.split('-').next().unwrap())) {
        let recorded = EngineRecording::of(name);
        let has_topic = recorded.replay[0].len() == 4;
        let (publisher, ring) = (Publisher::bind(1), Replayer::bind(has_topic));
        // Half of it was published before anybody listened, and one batch does not arrive.
        let (before, after) = recorded.live.split_at(recorded.live.len() / 2);
        let keep = |frames: &[Bytes], at: usize| ring.keep(at as u64, &frames[2]);
        before.iter().enumerate().for_each(|(at, frames)| keep(frames, at));
        let mut running =
            Running::start(&[format!("{engine}={},replay={}", publisher.endpoint(), ring.endpoint())]);
        publisher.wait_for_subscribers("", 1);
        for (at, frames) in after.iter().enumerate() {
            keep(frames, before.len() + at);
            if at != 7 {
                publish(&publisher, frames);
            }
        }
        running.batches(recorded.live.len()).await;
        running.flush();
        let in_order: Vec<(u32, u64)> = (0..recorded.live.len() as u64).map(|at| (0, at)).collect();
        assert_eq!(running.batches, in_order, "{name}");
        assert_eq!(running.cluster.blocks(FIRST), Some(recorded.expected.held as u64), "{name}");
        let worker = running.cluster.worker(FIRST).unwrap();
        assert_eq!(
            (worker.stored_total, worker.removed_total),
            (recorded.expected.stored, recorded.expected.removed)
        );
        assert_eq!((running.cluster.missed_total(), running.cluster.rejected_total()), (0, 0), "{name}");
        assert_eq!(running.knowledge(), (TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent));
        assert!(running.cluster.engines()[0].replayed as usize >= before.len(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_break_costs_nothing_and_another_process_is_recognised() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let (publisher, ring) = (Publisher::bind(1), Replayer::bind(true));
    let mut running = Running::start(&[format!("vllm={},replay={}", publisher.endpoint(), ring.endpoint())]);
    let send = |publisher: &Publisher, at: usize, arrives: bool| {
        ring.keep(at as u64, &recorded.live[at][2]);
        if arrives {
            publish(publisher, &recorded.live[at]);
        }
    };
    publisher.wait_for_subscribers("", 1);
    (0..10).for_each(|at| send(&publisher, at, true));
    running.batches(10).await;
    // A break in which three batches are published.
    let address = publisher.address();
    drop(publisher);
    let publisher = Publisher::at(address, 1);
    (10..13).for_each(|at| send(&publisher, at, false));
    publisher.wait_for_subscribers("", 1);
    (13..15).for_each(|at| send(&publisher, at, true));
    running.batches(15).await;
    running.flush();
    assert_eq!(running.batches.last(), Some(&(0, 14)));
    assert_eq!((running.cluster.missed_total(), running.cluster.gaps_total()), (0, 0));
    assert_eq!(running.knowledge(), (TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent));
    // Another process has published as many when the connection is back, and others.
    drop(publisher);
    ring.clear();
    let second = &recorded.live[20..];
    for (at, frames) in second.iter().take(16).enumerate() {
        ring.keep(at as u64, &frames[2]);
    }
    let publisher = Publisher::at(address, 1);
    publisher.wait_for_subscribers("", 1);
    let mut frames = second[16].clone();
    frames[1] = Bytes::copy_from_slice(&16u64.to_be_bytes());
    ring.keep(16, &frames[2]);
    publish(&publisher, &frames);
    running.batches(15 + 17).await;
    running.flush();
    let anew: Vec<(u32, u64)> = (0..17).map(|at| (1, at)).collect();
    assert_eq!(running.batches[15..], anew);
    assert_eq!((running.cluster.missed_total(), running.cluster.gaps_total()), (0, 0));
    assert_eq!(running.knowledge(), (TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent));
    assert_eq!(running.cluster.engines()[0].restarts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn replies_that_a_full_queue_drops_are_requested_again() {
    let recorded = EngineRecording::of("sglang-0.5.21");
    let (publisher, ring) = (Publisher::bind(0), Replayer::bind(false));
    recorded.live.iter().enumerate().for_each(|(at, frames)| ring.keep(at as u64, &frames[2]));
    ring.send_at_most(20);
    let mut running =
        Running::start(&[format!("sglang={},replay={}", publisher.endpoint(), ring.endpoint())]);
    publisher.wait_for_subscribers("", 1);
    running.batches(20).await;
    let mut frames = recorded.live[0].clone();
    frames[1] = Bytes::copy_from_slice(&(recorded.live.len() as u64).to_be_bytes());
    ring.keep(recorded.live.len() as u64, &frames[2]);
    publish(&publisher, &frames);
    running.batches(recorded.live.len() + 1).await;
    assert!(ring.requests() >= 3);
    assert_eq!(running.cluster.missed_total(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_ring_an_engine_is_partial_and_losses_are_counted() {
    let recorded = EngineRecording::of("vllm-0.23.0");
    let publisher = Publisher::bind(1);
    let mut running = Running::start(&[format!("vllm={}", publisher.endpoint())]);
    publisher.wait_for_subscribers("", 1);
    running.subscribed().await;
    [5, 6, 9].into_iter().for_each(|at| publish(&publisher, &recorded.live[at]));
    running.batches(3).await;
    running.flush();
    assert_eq!(running.cluster.missed_total(), 2);
    assert_eq!(running.knowledge().0, TreeKnowledge::Partial);
    assert_eq!(running.cluster.engines()[0].replay, Replay::None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_that_does_not_answer_costs_no_live_batch() {
    let recorded = EngineRecording::of("vllm-0.25.0");
    let publisher = Publisher::bind(1);
    // Its port is closed.
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let mut running = Running::start(&[format!("vllm={},replay=tcp://{closed}", publisher.endpoint())]);
    publisher.wait_for_subscribers("", 1);
    running.subscribed().await;
    (3..6).for_each(|at| publish(&publisher, &recorded.live[at]));
    running.batches(3).await;
    assert_eq!(running.batches, [(0, 3), (0, 4), (0, 5)]);
    assert_eq!(running.replay, Some(Replay::Failed));
}

#[tokio::test(flavor = "multi_thread")]
async fn ranks_are_workers_of_one_engine() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    // Two ports in a row.
    let (first, second) = loop {
        let first = Publisher::bind(1);
        let next = SocketAddr::from(([127, 0, 0, 1], first.address().port() + 1));
        if TcpListener::bind(next).is_ok() {
            break (first, Publisher::at(next, 1));
        }
    };
    let mut running = Running::start(&[format!("vllm={},ranks=2,pool=chat", first.endpoint())]);
    [&first, &second].into_iter().for_each(|publisher| publisher.wait_for_subscribers("", 1));
    publish(&first, &recorded.live[0]);
    running.batches(1).await;
    // Its batches say that they are of rank 0.
    publish(&second, &recorded.live[0]);
    running.batches(2).await;
    running.flush();
    let ids: Vec<u32> = running.cluster.workers().iter().map(|worker| worker.id.dp_rank).collect();
    assert_eq!(ids, [0], "a batch of another rank is none of this publisher's");
    let pool = running.cluster.pool(running.cluster.pool_of(FIRST).unwrap()).unwrap();
    assert_eq!((&*pool.namespace, &*pool.component), ("engines", "chat"));
    let rejected: Vec<u64> = running.cluster.engines().iter().map(|feed| feed.rejected).collect();
    assert_eq!(rejected.iter().sum::<u64>(), 1);
}

/// Connects as an engine does whose endpoint names a host, and publishes.
fn dial(address: &str, messages: &[Vec<Bytes>]) -> TcpStream {
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => thread::yield_now(),
        }
    };
    let mut greeting = [0; 64];
    (greeting[0], greeting[8], greeting[9], greeting[10], greeting[11]) = (0xff, 1, 0x7f, 3, 1);
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting).unwrap();
    stream.read_exact(&mut greeting).unwrap();
    stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB").unwrap();
    // READY and the subscription to everything.
    let mut ready = [0; 27 + 12];
    stream.read_exact(&mut ready).unwrap();
    assert!(ready.ends_with(b"SUBSCRIBE"), "{ready:?}");
    for frames in messages {
        let frames: Vec<&[u8]> = frames.iter().map(|frame| &frame[..]).collect();
        stream.write_all(&radixscope_dynamo::zmtp::message(&frames)).unwrap();
    }
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_that_connect_here_are_known_by_their_topic() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let mut running = Running::start(&[format!("vllm=tcp://127.0.0.1:{port},bind=true")]);
    let address = format!("127.0.0.1:{port}");
    let one = dial(&address, &recorded.live[..5]);
    let mut other = recorded.live[..3].to_vec();
    other.iter_mut().for_each(|frames| frames[0] = Bytes::from_static(b"kv@pod-2@model"));
    let _two = dial(&address, &other);
    running.batches(8).await;
    // The first comes back, and goes on.
    drop(one);
    while running.cluster.engines().iter().all(|feed| feed.link == LinkState::Live) {
        running.step_or_flush().await;
    }
    let _one = dial(&address, &recorded.live[5..8]);
    running.batches(11).await;
    running.flush();
    assert_eq!(running.cluster.workers().len(), 2);
    assert_eq!(running.cluster.missed_total(), 0);
    let mut names: Vec<&str> = running.cluster.engines().iter().map(|feed| feed.name.as_str()).collect();
    names.sort_unstable();
    let expected = [format!("kv@pod-1@model at port {port}"), format!("kv@pod-2@model at port {port}")];
    assert_eq!(names, expected);
}

impl Running {
    async fn step_or_flush(&mut self) {
        self.step().await;
        self.intake.flush(crate::time::now(), &mut self.cluster);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_engine_is_bounded_counted_and_named() {
    let recorded = EngineRecording::of("vllm-0.32.0");
    let publisher = Publisher::bind(1);
    let mut running = Running::start(&[format!("vllm={}", publisher.endpoint())]);
    publisher.wait_for_subscribers("", 1);
    running.subscribed().await;
    publish(&publisher, &recorded.live[0]);
    // Garbage in a frame, other frames, a number beyond reason.
    publisher.publish(&[&b""[..], &1u64.to_be_bytes(), b"\xc1\xff garbage"]);
    publisher.publish(&[&b""[..], b"x"]);
    publisher.publish(&[&b""[..], &u64::MAX.to_be_bytes(), b"\x90"]);
    publish(&publisher, &recorded.live[2]);
    running.batches(3).await;
    running.flush();
    let feed = running.cluster.engines()[0].clone();
    assert_eq!((feed.rejected, feed.last_sequence), (3, Some(2)));
    // A frame of 16 TiB ends the connection before anything is reserved, and it is taken up again.
    publisher.send_raw(&[&[2][..], &(16u64 << 40).to_be_bytes()].concat());
    publisher.wait_for_connections(2);
    publisher.wait_for_subscribers("", 1);
    running.subscribed().await;
    publish(&publisher, &recorded.live[3]);
    running.batches(4).await;
    assert_eq!(running.batches.last(), Some(&(0, 3)));
}

/// Answers every request with this body.
fn http_server(body: String) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            let is_info = request[..read].starts_with(b"GET /server_info ");
            let status = if is_info { "200 OK" } else { "404 Not Found" };
            let length = body.len();
            let response =
                format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn sglang_says_itself_where_it_publishes() {
    let recorded = EngineRecording::of("sglang-0.5.23");
    let (publisher, ring) = (Publisher::bind(1), Replayer::bind(true));
    let replay_port: u16 = ring.endpoint().rsplit(':').next().unwrap().parse().unwrap();
    let server = http_server(format!(
        r#"{{"version":"0.5.23","kv_events":{{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":{},"topic":"","block_size":16,
            "dp_size":1,"replay_endpoint_port_base":{replay_port}}}}}"#,
        publisher.address().port()
    ));
    recorded.live[..10].iter().enumerate().for_each(|(at, frames)| ring.keep(at as u64, &frames[2]));
    let mut running = Running::start(&[format!("sglang=http://{server}")]);
    publisher.wait_for_subscribers("", 1);
    running.batches(10).await;
    recorded.live[10..].iter().for_each(|frames| publish(&publisher, frames));
    running.batches(recorded.live.len()).await;
    running.flush();
    assert_eq!(running.cluster.blocks(FIRST), Some(recorded.expected.held as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_publishes_nothing_says_what_to_set() {
    let server = http_server(r#"{"kv_events":null}"#.to_owned());
    let mut running = Running::start(&[format!("sglang=http://{server}")]);
    loop {
        let (state, detail) = running.handed.state().await;
        if detail.contains("--kv-events-config") {
            assert_eq!(state, LinkState::Refused);
            break;
        }
    }
}
