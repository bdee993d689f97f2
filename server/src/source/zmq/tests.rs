//! The source against publishers and brokers on real sockets, and against peers that are none.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use radixscope_captures::publisher::{Publisher, frames};
use radixscope_captures::{Recording, ZmqMessage};
use radixscope_dynamo::Reason;
use radixscope_dynamo::subject;
use radixscope_intake::Payload;

use super::*;
use crate::hub::{LoneInbox, QueueLimits};

const PLACE: &str = "namespace.dynamo.component.backend.endpoint.generate";
const KV_EVENTS: &str = "kv-events";
/// Short waits, where waiting is the point.
const SHORT: Timeouts = Timeouts {
    connect: Duration::from_millis(300),
    effective: Duration::from_millis(20),
    ping: Duration::from_millis(50),
    dead: Duration::from_millis(400),
};

/// A source at work, and what it hands over.
struct Running {
    handed: LoneInbox,
    stop: watch::Sender<bool>,
}

impl Running {
    fn start(source: ZmqSource) -> Self {
        Self::with(source, QueueLimits { messages: 100_000, bytes: 64 << 20 })
    }

    fn with(source: ZmqSource, limits: QueueLimits) -> Self {
        let (to, handed) = LoneInbox::new(limits);
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(source.run(to, stopped));
        Self { handed, stop }
    }

    /// To publishers that commands name.
    fn direct() -> Self {
        Self::start(ZmqSource::new(Vec::new(), None, &Gate::of_this_machine()))
    }

    fn impatient() -> Self {
        Self::start(ZmqSource {
            timeouts: SHORT,
            ..ZmqSource::new(Vec::new(), None, &Gate::of_this_machine())
        })
    }

    fn brokers(brokers: &[&Publisher]) -> Self {
        let endpoints = brokers.iter().map(|broker| broker.endpoint().parse().unwrap()).collect();
        Self::start(ZmqSource::new(endpoints, None, &Gate::of_this_machine()))
    }

    async fn listen(&self, endpoint: String, publisher_id: u64, topic: &str) {
        let subject = Arc::new(subject::parse(&format!("{PLACE}.{topic}")).expect("one that is read"));
        self.handed.command(Command::Listen(ZmqChannel { endpoint, publisher_id, subject })).await;
    }

    async fn subscribed(&mut self) -> Option<u64> {
        match self.handed.payload().await {
            (Payload::Subscribed { publisher_id }, _) => publisher_id,
            (other, _) => panic!("{other:?}"),
        }
    }

    async fn unsubscribed(&mut self) -> Option<u64> {
        match self.handed.payload().await {
            (Payload::Unsubscribed { publisher_id }, _) => publisher_id,
            (other, _) => panic!("{other:?}"),
        }
    }

    /// The next message, by its sequence, and whether something is missing before it.
    async fn message(&mut self) -> (u64, bool) {
        match self.handed.payload().await {
            (Payload::Nats { message, .. }, missing) => (sequence_of(&message), missing.is_some()),
            (other, _) => panic!("{other:?}"),
        }
    }

    async fn rejected(&mut self) -> (Reason, String) {
        match self.handed.payload().await {
            (Payload::Unreadable { error, .. }, _) => (error.reason, error.detail),
            (other, _) => panic!("{other:?}"),
        }
    }

    /// Waits until the source's description contains all of `detail`.
    async fn reaches(&mut self, detail: &[&str]) -> LinkState {
        loop {
            let (state, sent) = self.handed.state().await;
            if detail.iter().all(|word| sent.contains(word)) {
                return state;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Message `sequence` of a publisher, without any event.
fn envelope(publisher_id: u64, sequence: u64) -> Vec<u8> {
    let number = |number: u64| [&[0xcf][..], &number.to_be_bytes()].concat();
    [
        &b"\x85\xacpublisher_id"[..],
        &number(publisher_id),
        b"\xa8sequence",
        &number(sequence),
        b"\xacpublished_at\x05\xa5topic\xa9kv-events\xa7payload\xc4\x01\x90",
    ]
    .concat()
}

fn sequence_of(message: &[u8]) -> u64 {
    let body = radixscope_dynamo::envelope::open(message).expect("an envelope");
    body.envelope().expect("an envelope").sequence
}

fn publish(publisher: &Publisher, topic: &str, publisher_id: u64, sequence: u64) {
    publisher.publish(&frames(topic, publisher_id, sequence, &envelope(publisher_id, sequence)));
}

fn recorded(name: &str) -> Vec<ZmqMessage> {
    let messages: Vec<_> = Recording::zmq_fixture(name).zmq_messages().collect();
    assert!(messages.len() > 400, "{}", messages.len());
    messages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_messages_come_through_real_sockets_byte_for_byte() {
    let messages = recorded("1.6.1-zmq-default");
    for minor in [0, 1] {
        let mut running = Running::direct();
        let mut publishers = BTreeMap::new();
        for message in &messages {
            if !publishers.contains_key(&message.endpoint) {
                let publisher = Publisher::bind(minor);
                let (topic, id) = (message.topic(), message.publisher_id());
                // Not subscribed to; see `SUBSCRIPTIONS`.
                if topic != "forward-pass-metrics" {
                    running.listen(publisher.endpoint(), id, topic).await;
                    publisher.wait_for_subscribers(topic, 1);
                }
                publishers.insert(message.endpoint.clone(), publisher);
            }
        }
        assert_eq!(publishers.len(), 12);
        for message in &messages {
            publishers[&message.endpoint].publish(&message.frames);
        }
        let is_wanted = |message: &&ZmqMessage| message.topic() != "forward-pass-metrics";
        let mut left: BTreeMap<u64, Vec<&ZmqMessage>> = BTreeMap::new();
        for message in messages.iter().filter(is_wanted).rev() {
            left.entry(message.publisher_id()).or_default().push(message);
        }
        let mut subscribed = 0;
        while !left.values().all(Vec::is_empty) || subscribed < 9 {
            match running.handed.payload().await {
                (Payload::Nats { subject, message }, None) => {
                    let body = radixscope_dynamo::envelope::open(&message).expect("an envelope");
                    let id = body.envelope().expect("an envelope").publisher_id;
                    let next = left.get_mut(&id).and_then(Vec::pop).expect("one that was sent");
                    assert_eq!(message, next.envelope());
                    let expected = subject::parse(&format!("{PLACE}.{}", next.topic())).unwrap();
                    assert_eq!(*subject, Subject { transport: Transport::Zmq, ..expected });
                }
                (Payload::Subscribed { publisher_id: Some(id) }, None) => {
                    assert!(left.contains_key(&id));
                    subscribed += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_messages_come_once_over_two_brokers() {
    let messages = recorded("1.6.1-zmq-broker");
    let brokers = [Publisher::bind(1), Publisher::bind(1)];
    let mut running = Running::brokers(&[&brokers[0], &brokers[1]]);
    brokers.iter().for_each(|broker| broker.wait_for_subscribers("namespace.", 1));
    // The second is behind, and each has lost what the other has.
    for (at, message) in messages.iter().enumerate() {
        if at % 7 != 0 {
            brokers[0].publish(&message.frames);
        }
        if let Some(late) = at.checked_sub(50).filter(|late| late % 7 != 1) {
            brokers[1].publish(&messages[late].frames);
        }
    }
    for message in &messages[messages.len() - 50..] {
        brokers[1].publish(&message.frames);
    }
    let mut left: BTreeMap<_, _> = messages
        .iter()
        .filter(|message| !message.topic().ends_with("forward-pass-metrics"))
        .map(|message| ((message.publisher_id(), message.sequence()), message))
        .collect();
    while !left.is_empty() {
        match running.handed.payload().await {
            (Payload::Nats { subject, message }, None) => {
                let body = radixscope_dynamo::envelope::open(&message).expect("an envelope");
                let envelope = body.envelope().expect("an envelope");
                let sent = left.remove(&(envelope.publisher_id, envelope.sequence)).expect("not taken yet");
                assert_eq!(message, sent.envelope());
                assert_eq!((subject.transport, &*subject.component), (Transport::Zmq, "backend"));
                assert!(sent.topic().ends_with(subject.topic.as_str()));
            }
            (Payload::Subscribed { publisher_id: None }, None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_break_is_of_the_publisher_whose_connection_ended() {
    let (one, other) = (Publisher::bind(1), Publisher::bind(1));
    let mut running = Running::direct();
    running.listen(one.endpoint(), 1, KV_EVENTS).await;
    assert_eq!(running.subscribed().await, Some(1));
    running.listen(other.endpoint(), 2, KV_EVENTS).await;
    assert_eq!(running.subscribed().await, Some(2));
    publish(&one, KV_EVENTS, 1, 0);
    assert_eq!(running.message().await, (0, false));
    let address = one.address();
    drop(one);
    assert_eq!(running.unsubscribed().await, Some(1));
    // While it is away another goes on, and nothing is missing of that.
    publish(&other, KV_EVENTS, 2, 0);
    assert_eq!(running.message().await, (0, false));
    let one = Publisher::at(address, 0);
    one.wait_for_subscribers(KV_EVENTS, 1);
    publish(&one, KV_EVENTS, 1, 5);
    let (payload, missing) = running.handed.payload().await;
    assert_eq!(payload, Payload::Subscribed { publisher_id: Some(1) });
    assert!(format!("{:?}", missing.expect("the break")).contains("(KvEvents, 1)"));
    assert_eq!(running.message().await, (5, false));
    // A connection that is cut while the publisher stays.
    one.disconnect();
    assert_eq!(running.unsubscribed().await, Some(1));
    one.wait_for_subscribers(KV_EVENTS, 1);
    let (payload, missing) = running.handed.payload().await;
    assert_eq!((payload, missing.is_some()), (Payload::Subscribed { publisher_id: Some(1) }, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_break_of_brokers_is_one_when_none_is_left() {
    let mut brokers = [Publisher::bind(1), Publisher::bind(1)];
    let mut running = Running::brokers(&[&brokers[0], &brokers[1]]);
    let topic = format!("{PLACE}.{KV_EVENTS}");
    for broker in &brokers {
        broker.wait_for_subscribers(&topic, 1);
        assert_eq!(running.subscribed().await, None);
    }
    let addresses = brokers.each_ref().map(Publisher::address);
    brokers[0].disconnect();
    publish(&brokers[1], &topic, 1, 0);
    assert_eq!(running.message().await, (0, false), "the other carries the same");
    brokers[0].wait_for_subscribers(&topic, 1);
    assert_eq!(running.subscribed().await, None);
    publish(&brokers[0], &topic, 1, 1);
    assert_eq!(running.message().await, (1, false));
    // Both at once.
    for (broker, address) in brokers.iter_mut().zip(addresses) {
        let elsewhere = Publisher::bind(1);
        drop(std::mem::replace(broker, elsewhere));
        drop(TcpStream::connect(address).expect_err("it is gone"));
    }
    running.reaches(&["0 of 2 brokers connected", "not reachable"]).await;
    let back = Publisher::at(addresses[0], 1);
    back.wait_for_subscribers(&topic, 1);
    let (payload, missing) = running.handed.payload().await;
    assert_eq!((payload, missing.is_some()), (Payload::Subscribed { publisher_id: None }, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_discovery_names_is_listened_to_until_it_is_withdrawn() {
    let broker = Publisher::bind(1);
    let mut running = Running::direct();
    let endpoint = broker.endpoint();
    running.handed.command(Command::ListenToBroker { endpoint: endpoint.clone() }).await;
    let topic = format!("{PLACE}.{KV_EVENTS}");
    broker.wait_for_subscribers(&topic, 1);
    assert_eq!(running.subscribed().await, None);
    publish(&broker, &topic, 1, 0);
    assert_eq!(running.message().await, (0, false));
    running.handed.command(Command::LeaveBroker { endpoint }).await;
    assert_eq!(running.unsubscribed().await, None, "nothing comes that way any more");
    broker.wait_for_no_subscriber();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_withdrawn_is_left_and_whoever_takes_a_port_over_is_another() {
    let publisher = Publisher::bind(1);
    let mut running = Running::direct();
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    assert_eq!(running.subscribed().await, Some(1));
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    // Another publisher at that endpoint, whose topic is not known yet.
    publish(&publisher, KV_EVENTS, 2, 0);
    assert_eq!(
        running.rejected().await,
        (Reason::UnknownKind, "publisher 2 instead of 1, which discovery names".to_owned())
    );
    running.listen(publisher.endpoint(), 2, "kv_metrics").await;
    assert_eq!(running.subscribed().await, Some(2));
    publisher.wait_for_subscribers("kv_metrics", 1);
    publisher.wait_for_connections(2);
    // The first is withdrawn only now, as leases have it: the second stays.
    let unlisten = |publisher_id| Command::Unlisten { endpoint: publisher.endpoint(), publisher_id };
    running.handed.command(unlisten(1)).await;
    publish(&publisher, "kv_metrics", 2, 0);
    assert_eq!(running.message().await, (0, false));
    running.handed.command(unlisten(2)).await;
    publisher.wait_for_no_subscriber();
    running.listen(publisher.endpoint(), 3, KV_EVENTS).await;
    assert_eq!(running.subscribed().await, Some(3));
    publisher.wait_for_connections(3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_not_dynamos_are_bad_input_and_the_next_is_read() {
    let publisher = Publisher::bind(1);
    let mut running = Running::direct();
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    assert_eq!(running.subscribed().await, Some(1));
    publisher.publish(&["kv-events"]);
    assert_eq!(running.rejected().await.0, Reason::Malformed);
    publisher.publish(&frames(KV_EVENTS, 1, 7, &envelope(1, 8)));
    let (reason, detail) = running.rejected().await;
    assert_eq!(reason, Reason::Malformed);
    assert!(detail.contains("name message 7"), "{detail}");
    publish(&publisher, KV_EVENTS, 1, 9);
    assert_eq!(running.message().await, (9, false));
    publisher.wait_for_connections(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_publisher_is_queried_and_one_that_is_dead_is_left() {
    let publisher = Publisher::bind(1);
    let mut running = Running::impatient();
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    publisher.wait_for_pings(12);
    publish(&publisher, KV_EVENTS, 1, 0);
    assert_eq!(running.subscribed().await, Some(1));
    assert_eq!(running.message().await, (0, false), "an answered heartbeat keeps the connection");
    publisher.be_mute();
    running.reaches(&["not reachable", "timed out"]).await;
    publisher.wait_for_connections(2);
    // Our side answers too.
    publisher.send_raw(b"\x04\x09\x04PING\x00\x00ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_finds_no_room_is_counted_and_reported_with_the_next_message() {
    let publisher = Publisher::bind(1);
    let source = ZmqSource::new(Vec::new(), None, &Gate::of_this_machine());
    let mut running = Running::with(source, QueueLimits { messages: 20, bytes: 1 << 20 });
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    publisher.wait_for_subscribers(KV_EVENTS, 1);
    (0..2_000).for_each(|sequence| publish(&publisher, KV_EVENTS, 1, sequence));
    let mut sent = 2_000;
    let mut is_told = false;
    while !is_told {
        publish(&publisher, KV_EVENTS, 1, sent);
        sent += 1;
        let (_, missing) = running.handed.payload().await;
        is_told = missing.is_some();
    }
}

/// A peer on a real socket that does as `behave` says with each connection.
fn peer(behave: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(behave));
    endpoint
}

/// Reads to the end, so that the other side decides when it comes.
fn to_the_end(mut stream: TcpStream) {
    let _ = stream.read_to_end(&mut Vec::new());
}

const GREETING: &[u8; 64] = &radixscope_dynamo::zmtp::GREETING;
const READY: &[u8] = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_peers_are_disconnected_and_do_not_affect_others() {
    let mut curve = *GREETING;
    curve[12..17].copy_from_slice(b"CURVE");
    let pull = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PULL";
    let huge = [&GREETING[..], READY, b"\x02", &(1u64 << 44).to_be_bytes()].concat();
    let many = [&GREETING[..], READY, &b"\x01\x00".repeat(100)].concat();
    let early = [&GREETING[..], b"\x00\x01x"].concat();
    for (bytes, detail) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"[..],
            "not a ZeroMQ socket",
        ),
        (&curve[..], "asks for CURVE security"),
        (&[&GREETING[..], pull].concat(), "type \"PULL\" does not publish"),
        (&[&GREETING[..], b"\x04\x0a\x05ERROR\x03no!"].concat(), "rejected by the peer: no!"),
        (&huge, "frame of 17592186044416 bytes"),
        (&many, "more than 16 frames"),
        (&early, "before READY"),
    ] {
        let bytes = bytes.to_vec();
        let hostile = peer(move |mut stream| {
            let _ = stream.write_all(&bytes);
            to_the_end(stream);
        });
        let publisher = Publisher::bind(1);
        let mut running = Running::impatient();
        running.listen(hostile.clone(), 1, KV_EVENTS).await;
        assert_eq!(running.reaches(&[hostile.as_str(), detail]).await, LinkState::Refused, "{detail}");
        running.listen(publisher.endpoint(), 2, KV_EVENTS).await;
        publisher.wait_for_subscribers(KV_EVENTS, 1);
        assert_eq!(running.reaches(&["1 of 2 publishers connected", detail]).await, LinkState::Live);
        publish(&publisher, KV_EVENTS, 2, 0);
        loop {
            match running.handed.payload().await {
                (Payload::Nats { message, .. }, _) => break assert_eq!(sequence_of(&message), 0),
                (Payload::Subscribed { .. }, _) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_never_ready_is_left_after_a_while() {
    for bytes in [&b""[..], &GREETING[..30], GREETING, b"\xff\x00\x00"] {
        let (connected, mut connections) = mpsc::channel(100);
        let bytes = bytes.to_vec();
        let silent = peer(move |mut stream| {
            let _ = connected.try_send(());
            let _ = stream.write_all(&bytes);
            to_the_end(stream);
        });
        let mut running = Running::impatient();
        running.listen(silent, 1, KV_EVENTS).await;
        assert_eq!(
            running.reaches(&["0 of 1 publishers connected", "timed out"]).await,
            LinkState::Connecting
        );
        // And tried again.
        for _ in 0..2 {
            assert!(connections.recv().await.is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_namespaces_topics_and_transports_are_not_listened_to() {
    let publisher = Publisher::bind(1);
    let mut running =
        Running::start(ZmqSource::new(Vec::new(), Some("other".to_owned()), &Gate::of_this_machine()));
    running.listen(publisher.endpoint(), 1, KV_EVENTS).await;
    running.reaches(&["Waiting for discovery"]).await;
    let mut running = Running::direct();
    running.listen("ipc:///tmp/socket".to_owned(), 1, KV_EVENTS).await;
    assert_eq!(running.reaches(&["ZeroMQ over ipc is not supported; only tcp"]).await, LinkState::Refused);
}
