//! What discovery can make this program send and show, and what it may do in NATS: nothing that is not Dynamo's.

use std::sync::{Arc, Mutex};

use radixscope_exhaustive::kubernetes::Kubernetes;
use radixscope_tests::discovery::{Folder, Registered, event_channel};
use radixscope_tests::fake_worker::Script;
use radixscope_tests::nats::{Access, Nats, Options};
use radixscope_tests::one_worker::{Deployment, PUBLISHER, WORKER, response, stored, tree};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{paths, wait};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Number of the last event before anybody attached.
const LAST: u64 = 40;

/// The worker's entries with another place to send queries to.
fn leading_to(transport: &Value) -> Vec<(String, Value)> {
    let registered = Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: 1, tcp_port: 1 };
    let entries = registered.entries().into_iter().filter(|(key, _)| !key.contains("event_channels"));
    let lead = |mut value: Value| {
        let instance = match value["metadata"]["recovery_target"].is_object() {
            true => &mut value["metadata"]["recovery_target"],
            false => &mut value,
        };
        if instance["transport"].is_object() {
            instance["transport"] = transport.clone();
        }
        value
    };
    entries.map(|(key, value)| (key, lead(value))).collect()
}

/// How often something was refused for a reason, by `/api/v1/cluster`, and the last time as text.
fn refused(cluster: &Value, what: &str, why: &str) -> Option<(u64, String)> {
    let all = cluster["refused"].as_array().expect("a list");
    let row = all.iter().find(|row| row["what"] == what && row["why"] == why)?;
    Some((row["count"].as_u64().expect("a count"), row["last"].as_str().expect("a text").to_owned()))
}

async fn until_refused(server: &Radixscope, what: &str, why: &str) -> String {
    let cluster = server
        .until_cluster(&format!("{what} is refused: {why}"), |cluster| {
            let is_so = refused(cluster, what, why).is_some();
            wait::expect(is_so, || {
                format!("{} {} {}", cluster["refused"], cluster["workers"], cluster["sources"])
            })
        })
        .await;
    let (_, text) = refused(&cluster, what, why).expect("it was there");
    let response = server.get("/metrics").await;
    let metrics = response.text();
    let sample = format!("radixscope_refused_total{{what=\"{what}\",why=\"{why}\"}} ");
    assert!(metrics.contains(&sample), "{metrics}");
    text
}

/// Somebody else's service: what it is sent, and what it answers.
async fn bystander(reply: &'static [u8]) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let sent = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                let mut bytes = vec![0; 65_536];
                let read = stream.read(&mut bytes).await.unwrap_or(0);
                sent.lock().expect("no test panicked with it").extend(&bytes[..read]);
                let _ = stream.write_all(reply).await;
                // As a server that keeps connections.
                let _ = stream.read_u8().await;
            });
        }
    });
    (port, received)
}

#[tokio::test]
async fn an_entry_with_a_subject_of_nats_itself_makes_no_request() {
    for subject in ["$KV.cfg.limit", "$JS.API.STREAM.PURGE.KV_cfg"] {
        let mut deployment = Deployment::start(|call| response(call, &tree(&[], LAST))).await;
        deployment.nats.make_bucket("cfg").await;
        deployment.keep(leading_to(&json!({"nats_tcp": subject})));
        let server = deployment.attach(&[]).await;
        deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
        let text = until_refused(&server, "tree_query", "not_dynamo").await;
        assert!(text.contains(subject), "{text}");
        assert_eq!(deployment.nats.bucket("cfg").await, (1, 1), "nothing was written or deleted");
    }
}

#[tokio::test]
async fn an_entry_with_a_path_of_another_protocol_makes_no_connection() {
    for path in ["\r\nGET /latest/meta-data HTTP/1.1\r\nHost: x\r\n\r\n", "\r\nSET pwned 1\r\n"] {
        let mut deployment = Deployment::start(|call| response(call, &tree(&[], LAST))).await;
        let (port, received) = bystander(b"").await;
        deployment.keep(leading_to(&json!({"tcp": format!("127.0.0.1:{port}/{path}")})));
        let server = deployment.attach(&[]).await;
        deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
        let text = until_refused(&server, "tree_query", "not_dynamo").await;
        assert!(text.contains("the path"), "{text}");
        assert!(received.lock().expect("no test panicked with it").is_empty());
    }
}

#[tokio::test]
async fn of_a_reply_that_is_none_of_dynamos_only_length_and_kind_are_shown() {
    const SECRET: &str = "AKIAEXAMPLE";
    for (reply, kind) in [
        (&br#"{"AccessKeyId":"AKIAEXAMPLE","SecretAccessKey":"AKIAEXAMPLE"}"#[..], "a 61-byte JSON reply"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nAKIAEXAMPLE", "a 39-byte HTTP reply"),
        // As long as it says, and none of Dynamo's texts.
        (b"\0\0\0\x0bAKIAEXAMPLE", "a 15-byte reply"),
    ] {
        let mut deployment = Deployment::start(|call| response(call, &tree(&[], LAST))).await;
        let (port, received) = bystander(reply).await;
        let path = format!("{WORKER:x}/dynamo/backend/worker_kv_query_source_{PUBLISHER:x}");
        deployment.keep(leading_to(&json!({"tcp": format!("127.0.0.1:{port}/{path}")})));
        let server = deployment.attach(&[]).await;
        deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
        let cluster = server
            .until_cluster("the reply is named", |cluster| {
                let message = cluster["workers"][0]["knowledge"]["message"].as_str().unwrap_or_default();
                let text = format!("{kind} that is no Dynamo response");
                wait::expect(message.contains(&text), || cluster["workers"].to_string())
            })
            .await;
        let everything = format!(
            "{cluster} {} {} {}",
            server.get("/readyz").await.text(),
            server.get("/api/v1/findings?state=all").await.text(),
            server.process().output()
        );
        assert!(!everything.contains(SECRET), "{everything}");
        let sent = received.lock().expect("no test panicked with it").clone();
        let length = path.len() as u16;
        assert_eq!(&sent[..2 + path.len()], [&length.to_be_bytes()[..], path.as_bytes()].concat());
    }
}

/// A deployment in Kubernetes whose pods name these places.
async fn in_kubernetes(entries: &[(String, Value)], more: &[&str]) -> (Kubernetes, Radixscope) {
    let api = Kubernetes::start().await;
    for (key, value) in entries {
        api.put("agg-worker-0", key, value);
    }
    api.set_ready("agg-worker-0", true);
    let url = api.url();
    let args = ["serve", "--discovery", &url].into_iter().chain(more.iter().copied());
    let server = Radixscope::start(args).await;
    (api, server)
}

#[tokio::test]
async fn an_entry_of_elsewhere_reaches_this_machine_only_if_the_operator_says_so() {
    let (port, received) = bystander(b"").await;
    let registered =
        Registered { worker_id: WORKER, publisher_id: PUBLISHER, zmq_port: port, tcp_port: port };
    let entries = registered.entries();
    let (_api, server) = in_kubernetes(&entries, &[]).await;
    let text = until_refused(&server, "zmq_connection", "loopback_address").await;
    assert!(text.contains("127.0.0.1") && text.contains("--allow-target"), "{text}");
    server
        .until_cluster("its source names it", |cluster| {
            let sources = cluster["sources"].as_array().expect("sources");
            let zmq = sources.iter().find(|source| source["kind"] == "zmq").expect("it is there");
            let detail = zmq["detail"].as_str().expect("a text");
            wait::expect(detail.contains("is a loopback address"), || zmq.to_string())
        })
        .await;
    assert!(received.lock().expect("no test panicked with it").is_empty());
    let (_api, allowed) = in_kubernetes(&entries, &["--allow-target", "127.0.0.0/8"]).await;
    wait::until("it connects", async || {
        let count = received.lock().expect("no test panicked with it").len();
        wait::expect(count > 0, || count.to_string())
    })
    .await;
    assert_eq!(allowed.cluster().await["refused"], json!([]));
}

#[tokio::test]
async fn links_and_metadata_are_not_connected_to_although_discovery_is_here() {
    let folder = Folder::default();
    for (number, endpoint) in
        (1_u64..).zip(["tcp://169.254.169.254:80", "tcp://[::ffff:100.100.100.200]:80", "tcp://[fe80::1]:80"])
    {
        let (key, value) = event_channel("kv-events", number, endpoint);
        folder.put(&key, &value);
    }
    let server = Radixscope::start(["serve", "--discovery", &folder.url()]).await;
    let text = until_refused(&server, "zmq_connection", "link_local_address").await;
    assert!(text.contains("named by discovery"), "{text}");
    until_refused(&server, "zmq_connection", "metadata_address").await;
}

#[tokio::test]
async fn a_flood_at_the_port_for_responses_leaves_few_lines_in_the_log() {
    const CONNECTIONS: usize = 600;
    let mut deployment = Deployment::start(|_| Script::silence()).await;
    let server = deployment.attach(&["--log", "debug"]).await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    let callback = deployment.until_queried().await.callback().to_owned();
    for _ in 0..CONNECTIONS {
        let mut stranger = TcpStream::connect(&callback).await.expect("it listens");
        let _ = stranger.write_all(b"GET / HTTP/1.1\r\n\r\n----").await;
    }
    let lines = wait::until("the lines are summed up", async || {
        let lines = server.process().lines();
        let is_sum =
            |line: &&String| line.contains("similar lines suppressed in 10 s: unexpected connection closed");
        let sum = lines.iter().find(is_sum).is_some();
        wait::expect(sum, || format!("{} lines", lines.len())).map(|()| lines)
    })
    .await;
    let written = lines.iter().filter(|line| line.contains("unexpected connection closed")).count();
    assert!(written < CONNECTIONS / 4, "{written} lines");
}

/// A subscription that the permission file grants, a subject that it matches, and the topic as `/metrics` names it.
const PROBES: [(&str, &str, &str); 10] = [
    ("namespace.*.component.*.kv-events", "namespace.d.component.b.kv-events", "kv-events"),
    (
        "namespace.*.component.*.endpoint.*.kv-events",
        "namespace.d.component.b.endpoint.e.kv-events",
        "kv-events",
    ),
    ("*.kv-events", "namespace-d-component-b-kv-events.kv-events", "kv-events"),
    ("namespace.*.kv_metrics", "namespace.d.kv_metrics", "kv_metrics"),
    (
        "namespace.*.component.*.endpoint.*.kv_metrics",
        "namespace.d.component.b.endpoint.e.kv_metrics",
        "kv_metrics",
    ),
    ("namespace.*.kv-hit-rate", "namespace.d.kv-hit-rate", "kv-hit-rate"),
    (
        "namespace.*.component.*.active_sequences_events",
        "namespace.d.component.b.active_sequences_events",
        "active_sequences_events",
    ),
    (
        "namespace.*.component.*.endpoint.*.active_sequences_events",
        "namespace.d.component.b.endpoint.e.active_sequences_events",
        "active_sequences_events",
    ),
    (
        "namespace.*.component.*.endpoint.*.session_affinity_events",
        "namespace.d.component.b.endpoint.e.session_affinity_events",
        "session_affinity_events",
    ),
    ("dynamo.request_trace.v1", "dynamo.request_trace.v1", "dynamo.request_trace.v1"),
];

/// Publishes a message that every decoder rejects, so that each one received is counted.
async fn probe(deployment: &Deployment, subject: &str) {
    deployment.client.publish(subject.to_owned(), "no JSON".into()).await.expect("the server lives");
    deployment.client.flush().await.expect("the server lives");
}

/// Invalid messages of a topic received over NATS.
async fn rejected(server: &Radixscope, topic: &str) -> u64 {
    let label = format!("topic=\"{topic}\"");
    let response = server.get("/metrics").await;
    let is_count =
        |line: &&str| line.starts_with("radixscope_ingest_rejected_total{") && line.contains(&label);
    let count = |line: &str| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
    response.text().lines().filter(is_count).filter_map(count).sum()
}

async fn until_rejected(server: &Radixscope, topic: &str, count: u64) {
    wait::until(&format!("{count} invalid messages of {topic} are counted"), async || {
        let rejected = rejected(server, topic).await;
        wait::expect(rejected == count, || rejected.to_string())
    })
    .await;
}

/// A line of the permission file that grants something.
fn grants(file: &str) -> Vec<(usize, String)> {
    let quoted = |line: &str| line.trim().strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
    file.lines().enumerate().filter_map(|(at, line)| Some((at, quoted(line)?))).collect()
}

/// The file without one of its lines.
fn without(file: &str, left_out: usize) -> String {
    let retained = file.lines().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| line);
    retained.collect::<Vec<_>>().join("\n")
}

const STREAM: &str = "namespace-dynamo-component-backend-kv-events";

/// A deployment on a NATS server that asks for rights: a stream with an event, and a worker that is queried over NATS.
async fn restricted(permissions: Vec<String>) -> (Nats, Deployment) {
    let mut deployment =
        Deployment::start(|call| response(call, &tree(&[stored(0, None, 1..=6)], LAST + 1))).await;
    let nats = Nats::with(Options { access: Access::Each(permissions), ..Options::default() }).await;
    let client = nats.client().await;
    let jetstream = nats.jetstream().await;
    let stream = async_nats::jetstream::stream::Config {
        name: STREAM.to_owned(),
        subjects: vec![format!("{STREAM}.*")],
        ..Default::default()
    };
    jetstream.create_stream(stream).await.expect("a stream");
    // Another worker, of Dynamo 0.9.
    let old = json!({"worker_id": 7, "event": {"event_id": 0, "dp_rank": 0, "data": {"stored":
        {"parent_hash": null, "blocks": [{"block_hash": 70, "tokens_hash": 70}]}}}});
    let sent = jetstream.publish(format!("{STREAM}.kv-events"), old.to_string().into()).await;
    sent.expect("it is sent").await.expect("it is kept");
    let subject = format!("dynamo_backend.worker_kv_query_source_{PUBLISHER:x}-{WORKER:x}");
    deployment.worker.listen(client.clone(), &subject).await;
    deployment.keep(leading_to(&json!({"nats_tcp": subject})));
    deployment.client = client;
    (nats, deployment)
}

async fn serve_as(nats: &Nats, deployment: &Deployment, user: usize) -> Radixscope {
    let (name, folder) = (format!("user{user}"), deployment.folder.url());
    let login = ["--nats-user", &name, "--nats-password", "user", "--discovery", &folder];
    Radixscope::serve_with(&nats.url(), &login).await
}

/// State and detail of the connection to NATS.
fn connection(cluster: &Value) -> (String, String) {
    let sources = cluster["sources"].as_array().expect("sources");
    let nats = sources.iter().find(|source| source["kind"] == "nats").expect("it is there");
    let text = |field: &str| nats[field].as_str().expect("text").to_owned();
    (text("state"), text("detail"))
}

/// What is known of a worker.
fn blocks(cluster: &Value, worker: u64) -> (u64, String) {
    let workers = cluster["workers"].as_array().expect("workers");
    let id = worker.to_string();
    let row = workers.iter().find(|row| row["worker_id"].as_str() == Some(&id));
    row.map_or((0, "absent".to_owned()), |row| {
        let known = row["knowledge"]["state"].as_str().expect("a state").to_owned();
        (row["blocks"].as_u64().unwrap_or(0), format!("{known} {}", row["knowledge"]["message"]))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_permission_file_everything_works_and_nothing_is_denied() {
    let file =
        std::fs::read_to_string(paths::checkout().join("deploy/nats/radixscope.conf")).expect("the file");
    let (nats, mut deployment) = restricted(vec![file]).await;
    let server = serve_as(&nats, &deployment, 0).await;
    server
        .until_cluster("NATS is read", |cluster| {
            let (state, text) = connection(cluster);
            wait::expect(state == "live" && text.contains("history read"), || text)
        })
        .await;
    deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
    let cluster = server
        .until_cluster("history, events and queries arrive", |cluster| {
            let (of_history, _) = blocks(cluster, 7);
            let (of_query, known) = blocks(cluster, WORKER);
            let is_so = of_history == 1 && of_query == 6 && known.starts_with("complete");
            wait::expect(is_so, || format!("{} {}", cluster["workers"], cluster["sources"]))
        })
        .await;
    let (_, text) = connection(&cluster);
    assert!(!text.contains("lacks") && !text.contains("denies"), "{text}");
    assert!(!deployment.worker.calls().is_empty(), "the worker was queried over NATS");
    for (_, subject, _) in PROBES {
        probe(&deployment, subject).await;
    }
    for (_, _, topic) in PROBES {
        let count = PROBES.iter().filter(|(_, _, of)| *of == topic).count();
        until_rejected(&server, topic, count as u64).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_one_line_of_the_permission_file_its_data_stops_and_the_missing_right_is_named() {
    let file =
        std::fs::read_to_string(paths::checkout().join("deploy/nats/radixscope.conf")).expect("the file");
    let documented = std::fs::read_to_string(paths::checkout().join("docs/security.md")).expect("the page");
    let lines = grants(&file);
    assert_eq!(lines.len(), 16);
    let permissions = lines.iter().map(|(at, _)| without(&file, *at)).collect();
    let (nats, mut deployment) = restricted(permissions).await;
    for (user, (at, subject)) in lines.iter().enumerate() {
        assert!(documented.contains(&format!("`{subject}`")), "{subject} is not in docs/security.md");
        let server = serve_as(&nats, &deployment, user).await;
        deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
        let is_publish =
            file.lines().position(|line| line.starts_with("publish")).is_some_and(|from| *at > from);
        let right = match (subject.as_str(), is_publish) {
            // Of a pattern the subject that was used is named.
            ("$JS.API.STREAM.INFO.*" | "$JS.API.STREAM.MSG.GET.*", _) => subject.replace('*', STREAM),
            ("dynamo_backend.*", _) => {
                format!("dynamo_backend.worker_kv_query_source_{PUBLISHER:x}-{WORKER:x}")
            }
            _ => subject.clone(),
        };
        let mut publishes = 0_u64;
        wait::until(&format!("{subject} is named as missing"), async || {
            let cluster = server.cluster().await;
            let (state, text) = connection(&cluster);
            let (_, known) = blocks(&cluster, WORKER);
            let reported = format!("{state}: {text} {known}");
            // An event that is received has the worker queried.
            publishes += 1;
            if publishes % 25 == 1 && subject.as_str() == "dynamo_backend.*" {
                deployment.publish(&[stored(LAST + 1, Some(5), [6])]).await;
            }
            wait::expect(reported.contains(&format!("\"{right}\"")) || known.contains(&right), || reported)
        })
        .await;
        let (state, _) = connection(&server.cluster().await);
        let expected =
            if is_publish || subject.starts_with("_INBOX") { "live catching_up" } else { "partial" };
        assert!(expected.contains(&state), "{subject}: {state}");
        if let Some((_, probed, topic)) = PROBES.iter().find(|(pattern, ..)| pattern == subject) {
            // Another topic, received on the same connection after the one that must not arrive.
            let (_, later, control) =
                PROBES[if *topic == "dynamo.request_trace.v1" { 5 } else { PROBES.len() - 1 }];
            probe(&deployment, probed).await;
            probe(&deployment, later).await;
            until_rejected(&server, control, 1).await;
            assert_eq!(rejected(&server, topic).await, 0, "{subject} is not received");
        } else {
            let cluster = server.cluster().await;
            let (of_history, _) = blocks(&cluster, 7);
            let (of_query, known) = blocks(&cluster, WORKER);
            match subject.as_str() {
                "dynamo_backend.*" => assert!(of_query < 6, "the worker was not queried: {known}"),
                // Only delays queries.
                "_INBOX.radixscope.>" if is_publish => {}
                _ => assert_eq!(of_history, 0, "{subject}: no history is read"),
            }
        }
    }
}
