//! What passes the gate and what does not, row by row.

use std::time::Duration;

use tokio::net::TcpListener;

use radixscope_dynamo::request_plane::{Codec, RequestTransport};
use radixscope_model::id::Worker;

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
const ID: u64 = 0x6a6c_a1ff_ea91_1708;

fn endpoint(name: &str, transport: RequestTransport) -> QueryEndpoint {
    QueryEndpoint {
        worker: Worker::new(ID, 0),
        is_rank_known: false,
        namespace: "dynamo".to_owned(),
        component: "backend".to_owned(),
        endpoint: name.to_owned(),
        transport,
        codec: Codec::Json,
        publisher_id: None,
    }
}

fn tcp(path: &str) -> RequestTransport {
    RequestTransport::Tcp { address: "10.0.0.7:9000".to_owned(), path: path.to_owned() }
}

fn nats(subject: &str) -> RequestTransport {
    RequestTransport::Nats { subject: subject.to_owned() }
}

#[test]
fn endpoints_of_every_version_pass() {
    let long = format!("worker_kv_indexer_query_dp1_worker{ID}");
    for (name, transport) in [
        // 0.9
        ("worker_kv_indexer_query", tcp("6a6ca1ffea911708/worker_kv_indexer_query")),
        ("worker_kv_indexer_query", nats("dynamo_backend.worker_kv_indexer_query-6a6ca1ffea911708")),
        // 1.0 to 1.2
        ("worker_kv_indexer_query_dp0", tcp("6a6ca1ffea911708/worker_kv_indexer_query_dp0")),
        // 1.3
        (&long, tcp(&format!("6a6ca1ffea911708/{long}"))),
        // 1.4, 1.5
        (
            "worker_kv_query_source_bede294782624",
            tcp("6a6ca1ffea911708/worker_kv_query_source_bede294782624"),
        ),
        // 1.6, 1.7
        (
            "worker_kv_query_source_bede294782624",
            tcp("6a6ca1ffea911708/dynamo/backend/worker_kv_query_source_bede294782624"),
        ),
        (
            "worker_kv_query_source_bede294782624",
            nats("dynamo_backend.worker_kv_query_source_bede294782624-6a6ca1ffea911708"),
        ),
    ] {
        let endpoint = endpoint(name, transport.clone());
        let gate = Gate::default();
        let expected = match &transport {
            RequestTransport::Tcp { address, path } => Destination::Tcp { address, path: path.clone() },
            RequestTransport::Nats { subject } => Destination::Nats { subject: subject.clone() },
        };
        assert_eq!(gate.query(&endpoint), Ok(expected));
        assert!(gate.refusals().list().is_empty());
    }
}

#[test]
fn namespaces_below_others_pass_with_the_name_of_their_service() {
    let mut endpoint = endpoint(
        "worker_kv_query_source_1f",
        nats("team-a_prod_prefill.worker_kv_query_source_1f-6a6ca1ffea911708"),
    );
    (endpoint.namespace, endpoint.component) = ("Team-A.prod".to_owned(), "prefill".to_owned());
    assert!(Gate::default().query(&endpoint).is_ok());
    endpoint.transport = tcp("6a6ca1ffea911708/Team-A.prod/prefill/worker_kv_query_source_1f");
    assert!(Gate::default().query(&endpoint).is_ok());
}

#[test]
fn what_is_no_endpoint_of_dynamos_does_not_pass() {
    const QUERY: &str = "worker_kv_query_source_1f";
    let rows: Vec<(&str, &str, &str, RequestTransport)> = vec![
        // Subjects that write, delete or reach others.
        ("dynamo", "backend", QUERY, nats("$KV.cfg.limit")),
        ("dynamo", "backend", QUERY, nats("$JS.API.STREAM.PURGE.KV_cfg")),
        ("dynamo", "backend", QUERY, nats("$SYS.REQ.SERVER.PING")),
        ("dynamo", "backend", QUERY, nats("_INBOX.a.b")),
        ("dynamo", "backend", QUERY, nats("dynamo_backend.generate-6a6ca1ffea911708")),
        ("dynamo", "backend", QUERY, nats("dynamo_backend.worker_kv_query_source_1f-7")),
        ("dynamo", "backend", QUERY, nats("*.worker_kv_query_source_1f-6a6ca1ffea911708")),
        ("dynamo", "backend", QUERY, nats(">")),
        ("dynamo", "backend", QUERY, nats("")),
        ("$KV", "cfg", QUERY, nats("$KV_cfg.worker_kv_query_source_1f-6a6ca1ffea911708")),
        ("dynamo\r\nPUB x 1", "backend", QUERY, tcp("6a6ca1ffea911708/worker_kv_query_source_1f")),
        // Paths that another protocol reads.
        ("dynamo", "backend", QUERY, tcp("\r\nGET /latest/meta-data HTTP/1.1\r\n\r\n")),
        ("dynamo", "backend", QUERY, tcp("\r\nSET pwned 1\r\n")),
        ("dynamo", "backend", QUERY, tcp("6a6ca1ffea911708/generate")),
        ("dynamo", "backend", QUERY, tcp("7/worker_kv_query_source_1f")),
        ("dynamo", "backend", QUERY, tcp("6a6ca1ffea911708/other/backend/worker_kv_query_source_1f")),
        ("dynamo", "", QUERY, tcp("6a6ca1ffea911708/worker_kv_query_source_1f")),
        ("", "backend", QUERY, tcp("6a6ca1ffea911708/worker_kv_query_source_1f")),
        ("a..b", "backend", QUERY, tcp("6a6ca1ffea911708/worker_kv_query_source_1f")),
        ("dynamo", "back end", QUERY, tcp("6a6ca1ffea911708/worker_kv_query_source_1f")),
        ("dynamo", "a/b", QUERY, tcp("6a6ca1ffea911708/dynamo/a/b/worker_kv_query_source_1f")),
        // Names that another version would write otherwise.
        ("dynamo", "backend", "generate", tcp("6a6ca1ffea911708/generate")),
        (
            "dynamo",
            "backend",
            "worker_kv_query_source_01f",
            tcp("6a6ca1ffea911708/worker_kv_query_source_01f"),
        ),
        ("dynamo", "backend", "worker_kv_query_source_+1", tcp("6a6ca1ffea911708/worker_kv_query_source_+1")),
        (
            "dynamo",
            "backend",
            "worker_kv_indexer_query_dp00",
            tcp("6a6ca1ffea911708/worker_kv_indexer_query_dp00"),
        ),
        (
            "dynamo",
            "backend",
            "worker_kv_indexer_query_dp0_worker7",
            tcp("6a6ca1ffea911708/worker_kv_indexer_query_dp0_worker7"),
        ),
    ];
    for (namespace, component, name, transport) in rows {
        let mut endpoint = endpoint(name, transport);
        (endpoint.namespace, endpoint.component) = (namespace.to_owned(), component.to_owned());
        let gate = Gate::default();
        let refused = gate.query(&endpoint).expect_err(&format!("{endpoint:?}"));
        assert_eq!(refused.why, NOT_DYNAMO);
        assert!(!refused.detail.contains(char::is_control), "{}", refused.detail);
        let list = gate.refusals().list();
        assert_eq!((list[0].what, list[0].count), ("tree_query", 1));
    }
}

#[test]
fn subjects_and_streams_are_dynamos_or_do_not_pass() {
    for (subject, passes) in [
        ("namespace.dynamo.component.backend.endpoint.generate.kv-events", true),
        ("namespace.dynamo.component.backend.kv-events", true),
        ("namespace.a.b.component.backend.endpoint.generate.active_sequences_events", true),
        ("namespace.a.b.component.backend.endpoint.generate.session_affinity_events", true),
        ("namespace.dynamo.kv_metrics", true),
        ("namespace.dynamo.kv-hit-rate", true),
        ("namespace.dynamo.forward-pass-metrics", false),
        ("ours.of.them.kv-events", true),
        ("ours.kv-events.other", false),
        ("kv-events", false),
        ("namespace.*.kv-events", false),
        ("namespace.a.>.kv-events", false),
        ("namespace.a b.kv-events", false),
        ("$JS.API.STREAM.PURGE.kv-events", false),
        ("$KV.cfg.kv-events", false),
        ("$SYS.kv-events", false),
        ("_INBOX.x.kv-events", false),
        (">", false),
        ("", false),
    ] {
        let gate = Gate::default();
        assert_eq!(gate.subscription(subject).is_ok(), passes, "{subject}");
        assert_eq!(gate.refusals().list().is_empty(), passes, "{subject}");
    }
    for (stream, passes) in [
        ("namespace-dynamo-component-backend-kv-events", true),
        ("namespace-my-ns-component-c-kv-events", true),
        ("KV_cfg", false),
        ("namespace-a.b-component-c-kv-events", false),
        ("namespace-*-component-c-kv-events", false),
        ("namespace->-component-c-kv-events", false),
    ] {
        assert_eq!(Gate::default().is_stream(stream), passes, "{stream}");
    }
}

#[test]
fn hosts_and_ports_are_read_as_processes_register_them() {
    for (address, expected) in [
        ("10.0.0.7:9000", Some(("10.0.0.7", 9000))),
        ("worker-0.workers.svc:80", Some(("worker-0.workers.svc", 80))),
        ("[fd00::7]:9000", Some(("fd00::7", 9000))),
        ("10.0.0.7:0", None),
        ("10.0.0.7", None),
        ("[fe80::1%eth0]:9000", None),
        ("fd00::7:9000", None),
        ("user@host:80", None),
        ("a b:80", None),
        (":80", None),
    ] {
        assert_eq!(names::host_and_port(address), expected, "{address}");
    }
}

fn entry() -> NamedBy {
    NamedBy::Entry { key: "v1/instances/dynamo/backend/q/7".into(), lease: Some(0x1f) }
}

fn frontend(name: &str) -> NamedBy {
    NamedBy::Frontend { name: name.into() }
}

/// Whether a connection is made, or why not.
async fn connects(gate: &Gate, address: &str, by: &NamedBy) -> Result<(), String> {
    match gate.connect(Crossing::TreeQuery, address, Evidence::Named(by), LONG).await {
        Ok(_) => Ok(()),
        Err(NotConnected::Refused(refused)) => Err(refused.detail),
        Err(other) => panic!("{address}: {other:?}"),
    }
}

#[tokio::test]
async fn loopback_passes_only_if_what_names_it_is_on_this_machine_or_the_operator_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let spellings = [
        format!("127.0.0.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost:{port}"),
        format!("2130706433:{port}"),
    ];
    let far = Gate::default();
    for address in &spellings {
        for by in [entry(), frontend("fe")] {
            let detail = connects(&far, address, &by).await.unwrap_err();
            assert!(detail.contains("loopback") && detail.contains("--allow-target"), "{detail}");
            assert!(detail.contains(&by.to_string()), "{detail}");
        }
    }
    let list = far.refusals().list();
    assert_eq!((list[0].why, list[0].count), ("loopback_address", 2 * spellings.len() as u64));
    let near = Gate { is_discovery_here: true, ..Gate::default() };
    let frontends_here = [String::from("fe")].into();
    let by_frontend = Gate { frontends_here, ..Gate::default() };
    let allowed = Gate { allowed: vec!["127.0.0.0/8".parse().unwrap()], ..Gate::default() };
    for address in &spellings {
        connects(&near, address, &entry()).await.unwrap();
        connects(&near, address, &frontend("fe")).await.unwrap_err();
        connects(&by_frontend, address, &frontend("fe")).await.unwrap();
        connects(&by_frontend, address, &frontend("other")).await.unwrap_err();
        connects(&by_frontend, address, &entry()).await.unwrap_err();
        connects(&allowed, address, &entry()).await.unwrap();
    }
    let by_operator = far.connect(Crossing::ZmqConnection, &spellings[0], Evidence::Operator, LONG).await;
    assert!(by_operator.is_ok(), "what the operator names passes");
}

#[tokio::test]
async fn links_and_metadata_do_not_pass_whoever_names_them() {
    let near =
        Gate { is_discovery_here: true, frontends_here: [String::from("fe")].into(), ..Gate::default() };
    for address in [
        "169.254.169.254:80",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::a9fe:a9fe]:80",
        "[fe80::1]:80",
        "[fd00:ec2::254]:80",
        "100.100.100.200:80",
        "0.0.0.0:80",
        "[::]:80",
        "224.0.0.1:80",
    ] {
        for by in [entry(), frontend("fe")] {
            let detail = connects(&near, address, &by).await.unwrap_err();
            assert!(detail.starts_with("Not connected: "), "{detail}");
        }
    }
}

#[test]
fn evidence_is_read_from_the_options() {
    use clap::Parser as _;
    let gate = |args: &[&str]| {
        let cli = crate::config::Cli::try_parse_from(["radixscope", "serve"].iter().chain(args)).unwrap();
        let crate::config::Command::Serve(serve) = cli.command else { panic!("not serve") };
        Gate::new(&serve.from)
    };
    for (discovery, is_here) in [
        ("file:/tmp/kv", true),
        ("etcd://127.0.0.1:2379", true),
        ("etcd://localhost", true),
        ("etcd://[::1]:2379", true),
        ("etcd://127.0.0.1,192.0.2.7", false),
        ("etcd://etcd.dynamo.svc", false),
        ("etcd://192.0.2.7", false),
        // What answers at a port of this machine is `kubectl proxy`; the pods are elsewhere.
        ("kubernetes:ns@http://127.0.0.1:8001", false),
    ] {
        assert_eq!(gate(&["--discovery", discovery]).is_discovery_here, is_here, "{discovery}");
    }
    let of_frontends = gate(&["--prometheus", "fe=http://127.0.0.1:8000,far=http://192.0.2.7:8000"]);
    assert_eq!(of_frontends.frontends_here.into_iter().collect::<Vec<_>>(), ["fe"]);
    let allowed = gate(&["--nats", "nats://n", "--allow-target", "169.254.9.0/24", "--allow-target", "::1"]);
    assert_eq!(allowed.allowed.len(), 2);
}
