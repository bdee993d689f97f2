//! Routes, headers and errors as a client sees them.

use axum::body::Body;
use axum::http::StatusCode;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt as _;

use radixscope_insight::check::Checks;
use radixscope_intake::NatsSubjects;
use radixscope_model::record::{LinkState, SourceKind};

use axum::http::HeaderMap;
use radixscope_model::id::Millis;
use radixscope_recording::{Recording, SeekTo};

use super::*;
use crate::hub::{HubConfig, QueueLimits, SourceHandle, Started};

struct Server {
    hub: Hub,
    source: SourceHandle,
    options: ServeOptions,
    shutdown: watch::Sender<bool>,
}

impl Server {
    fn start(base_path: &str) -> Self {
        let (shutdown, stopped) = watch::channel(false);
        let queue = QueueLimits { messages: 100, bytes: 1 << 20 };
        let config = HubConfig {
            max_nodes: 1_000,
            queue,
            log_bytes: 1 << 20,
            history: crate::hub::HistoryLimits {
                max_age: std::time::Duration::from_secs(900),
                max_bytes: 1 << 26,
            },
            tree_dumps: radixscope_intake::TreeDumps::Off,
            verify_every_ms: None,
        };
        let Started { hub, sources, .. } =
            Hub::start(config, Checks::default(), &[("test".into(), SourceKind::Nats)], stopped);
        let options = ServeOptions {
            base_path: base_path.parse().unwrap(),
            frame_ancestors: "'self'".parse().unwrap(),
            allow_origin: Vec::new(),
            allow_host: Vec::new(),
            listen: "127.0.0.1:8321".parse().unwrap(),
            access: AccessRules::default(),
            notice: None,
            trace_url: None,
            baselines: std::sync::Arc::default(),
            stage: None,
            max_viewers: 1,
            max_connections: 2,
        };
        Self { hub, source: sources.into_iter().next().unwrap(), options, shutdown }
    }

    async fn bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, Vec<u8>) {
        let service = service(self.hub.clone(), self.options.clone(), None, self.shutdown.subscribe());
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().to_vec())
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, String) {
        let (status, headers, body) = self.bytes(method, path, headers).await;
        (status, headers, String::from_utf8(body).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        self.send("GET", path, &[]).await
    }

    async fn error(&self, path: &str) -> (u16, String, String) {
        let (status, _, body) = self.get(path).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
        (status.as_u16(), text("code"), text("message"))
    }
}

#[tokio::test]
async fn with_a_base_path_every_address_works_with_and_without_it() {
    let server = Server::start("/x/");
    for path in ["/x/api/v1/cluster", "/api/v1/cluster", "/x/healthz", "/x/api/v1/tree?limit=3"] {
        assert_eq!(server.get(path).await.0, StatusCode::OK, "{path}");
    }
    for path in ["/x", "/x/", "/"] {
        assert!(server.get(path).await.2.contains("<base href=\"/x/\">"), "{path}");
    }
}

#[tokio::test]
async fn every_error_has_one_form_and_names_the_parameter() {
    let server = Server::start("/");
    let (status, code, message) = server.error("/api/v1/nothing").await;
    assert_eq!((status, code.as_str()), (404, "not_found"));
    assert!(message.contains("/api/v1/nothing"));
    for (path, name) in [
        ("/api/v1/tree?limit=0", "limit="),
        ("/api/v1/tree?limit=100001", "limit="),
        ("/api/v1/decisions?limit=10001", "limit="),
        ("/api/v1/tree?root=x", "root="),
        ("/api/v1/decisions?worker=x", "worker="),
        ("/api/v1/cluster?x=1", "\"x\""),
        ("/ws?after=-1", "after="),
        ("/history?after_ms=x", "after_ms="),
        ("/history/segment", "at_ms="),
        ("/history/segment?at_ms=1&after=x", "after="),
    ] {
        let (status, code, message) = server.error(path).await;
        assert_eq!((status, code.as_str()), (400, "bad_parameter"), "{path}");
        assert!(message.contains(name), "{path}: {message}");
    }
    assert_eq!(server.error("/api/v1/tree?root=5").await.0, 404);
    assert_eq!(server.error("/api/v1/decisions?worker=5").await.0, 404);
    let (status, _, message) = server.error("/history/segment?at_ms=5").await;
    assert!(
        status == 404 && message.contains("5 is not retained") && message.contains("--history"),
        "{message}"
    );
    assert_eq!(server.error("/ws").await.0, 426);
    assert_eq!(server.error("/no/such/file.js").await.0, 404);
    let (status, _, body) = server.send("POST", "/api/v1/cluster", &[]).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(body.contains("method_not_allowed"));
    let (status, ..) = server.send("DELETE", "/", &[]).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_page_of_another_origin_is_turned_away() {
    let server = Server::start("/");
    let headers = [("origin", "https://evil.example"), ("host", "127.0.0.1:8321")];
    let (status, _, body) = server.send("GET", "/ws", &headers).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains("--allow-origin"), "{body}");
}

#[tokio::test]
async fn what_happened_is_kept_from_the_start_on() {
    let server = Server::start("/");
    let index: Value = serde_json::from_str(&server.get("/history").await.2).unwrap();
    let from = index["kept"]["from_ms"].as_u64().unwrap();
    assert_eq!(index["segments"][0]["from_ms"], from);
    assert_eq!(index["segments"][0]["first_seq"], 1);
    assert!(index["rows"].is_array() && index["epoch"].is_string(), "{index}");
    let (status, headers, _) = server.bytes("GET", &format!("/history/segment?at_ms={from}"), &[]).await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::OK, &"application/octet-stream".parse().unwrap())
    );
    let cluster: Value = serde_json::from_str(&server.get("/api/v1/cluster").await.2).unwrap();
    assert_eq!(cluster["history"]["from_ms"], from);
    assert!(server.get("/metrics").await.2.contains("radixscope_history_bytes"));
}

#[tokio::test]
async fn a_recording_of_what_is_kept_folds_to_the_state() {
    let server = Server::start("/");
    server.source.state(LinkState::Live, "it is there").await.unwrap();
    let recorded = async {
        loop {
            let (status, headers, body) = server.bytes("GET", "/api/v1/recording", &[]).await;
            assert_eq!(status, StatusCode::OK);
            assert!(headers["content-disposition"].to_str().unwrap().contains(".mcap"));
            let mut recording = Recording::open(std::io::Cursor::new(body)).unwrap();
            assert!(recording.is_finished());
            let (_, end) = recording.range().unwrap();
            let folded = recording.state_at(SeekTo::At(end)).unwrap();
            // It is published within a tenth of a second.
            if folded.cluster.sources().first().is_some_and(|source| source.detail == "it is there") {
                return recording.range().unwrap();
            }
        }
    };
    let within = std::time::Duration::from_secs(30);
    let (from, _) = tokio::time::timeout(within, recorded).await.expect("it is recorded");
    let (status, _, message) = server.error(&format!("/api/v1/recording?to_ms={}", from.0 - 1)).await;
    assert!(status == 404 && message.contains(&format!("begins at {from}")), "{message}");
    assert_eq!(server.error("/api/v1/recording?from_ms=x").await.0, 400);
}

#[tokio::test]
async fn it_is_ready_only_once_the_source_is_live() {
    let server = Server::start("/");
    server.source.state(LinkState::Refused, "wrong password").await.unwrap();
    let (status, body) = loop {
        let (status, _, body) = server.get("/readyz").await;
        if body.contains("wrong password") {
            break (status, body);
        }
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("\"state\":\"refused\""), "{body}");
    assert_eq!(server.get("/readyz?once").await.0, StatusCode::SERVICE_UNAVAILABLE, "it never was");
    server.source.state(LinkState::Live, "").await.unwrap();
    while server.get("/readyz").await.0 != StatusCode::OK {}
}

#[tokio::test]
async fn what_no_source_reported_is_unknown_and_not_zero() {
    let server = Server::start("/");
    let load = br#"{"worker_id":18446744073709551615,"dp_rank":0,"active_decode_blocks":7}"#;
    let mut subjects = NatsSubjects::default();
    let load = subjects.publication("namespace.dynamo.kv_metrics", None, load.to_vec().into()).unwrap();
    server.source.deliver(Millis(1), load).await.unwrap();
    let worker = loop {
        let cluster: Value = serde_json::from_str(&server.get("/api/v1/cluster").await.2).unwrap();
        if let Some(worker) = cluster["workers"].get(0) {
            break worker.clone();
        }
    };
    assert_eq!(worker["worker_id"], "18446744073709551615");
    assert_eq!((&worker["blocks"], &worker["capacity_blocks"]), (&Value::Null, &Value::Null));
    assert_eq!(worker["stored_total"], 0);
    let metrics = server.get("/metrics").await.2;
    assert!(metrics.contains("radixscope_worker_stored_blocks_total{worker_id=\"18446744073709551615\""));
    assert!(!metrics.contains("radixscope_worker_blocks{"), "unknown is absent: {metrics}");
    let decisions: Value = serde_json::from_str(&server.get("/api/v1/decisions").await.2).unwrap();
    let settings = decisions["hint"]["settings"].as_array().unwrap();
    assert!(settings.iter().any(|setting| setting["set"][0] == "--router-replica-sync"), "{settings:?}");
}

/// A stage whose changes are made by nobody, or as they come.
fn stage_of(server: &mut Server) -> crate::stage::Driver {
    let config = radixscope_sim::Config::default();
    let (controls, driver) = crate::stage::stage(crate::stage::simulator::report(&config));
    server.options.stage = Some(controls);
    driver
}

impl Server {
    async fn post_stage(&self, body: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
        let service = service(self.hub.clone(), self.options.clone(), None, self.shutdown.subscribe());
        let mut request = Request::builder().method("POST").uri("/api/v1/stage").header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = service.oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        (status, String::from_utf8(body).unwrap())
    }
}

#[tokio::test]
async fn without_a_stage_its_routes_and_its_mark_in_the_page_do_not_exist() {
    let server = Server::start("/");
    let (status, code, message) = server.error("/api/v1/stage").await;
    assert_eq!((status, code.as_str()), (404, "not_found"));
    assert!(!message.contains(", stage"), "{message}");
    let (status, body) = server.post_stage(r#"{"concurrency":7}"#, &[]).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
    assert!(!server.get("/").await.2.contains("radixscope-stage"));
}

#[tokio::test]
async fn a_stage_is_read_and_changed_by_its_own_page_alone() {
    let mut server = Server::start("/");
    server.options.allow_origin = vec!["https://portal.example".parse().unwrap()];
    let driver = stage_of(&mut server);
    driver.is_ready();
    assert!(server.get("/").await.2.contains("<meta name=\"radixscope-stage\" content=\"simulator\">"));
    let (status, headers, body) = server.get("/api/v1/stage").await;
    assert_eq!((status, headers["cache-control"].to_str().unwrap()), (StatusCode::OK, "no-store"));
    let report: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&report["concurrency"]["value"], &report["seed"]), (&120.into(), &"1".into()));
    for origin in ["https://evil.example", "https://portal.example", "null", "http://localhost:9"] {
        let (status, body) = server.post_stage(r#"{"concurrency":7}"#, &[("origin", origin)]).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{origin}: {body}");
    }
    for (body, why) in [
        (r#"{"concurrency":201}"#, "concurrency is 201; it must be 1 to 200"),
        (r#"{"concurrency":"7"}"#, "invalid type: string"),
        (r#"{"concurrency":7,"paused":true}"#, "the body is not valid"),
        (r#"{"coffee":1}"#, "unknown variant"),
        (r#"{"restart":{"seed":7}}"#, "seed"),
        (r#"{"break":"churn"}"#, "restart with it"),
        ("[]", "the body is not valid"),
    ] {
        let (status, response) = server.post_stage(body, &[("origin", "http://localhost")]).await;
        let message: Value = serde_json::from_str(&response).unwrap();
        let message = message["error"]["message"].as_str().unwrap();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {message}");
        assert!(message.contains(why) && message.len() < 400, "{body}: {message}");
    }
    let (status, _) = server.post_stage(&" ".repeat(2_000), &[]).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, ..) = server.send("DELETE", "/api/v1/stage", &[]).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_change_is_made_before_it_is_answered() {
    let mut server = Server::start("/");
    let mut driver = stage_of(&mut server);
    let (status, body) = server.post_stage(r#"{"concurrency":7}"#, &[]).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    driver.is_ready();
    let answered = tokio::spawn(async move {
        loop {
            if let Some(order) = driver.next_order() {
                return driver.answer(
                    order,
                    Ok(|report: &mut radixscope_export::stage::StageReport| {
                        report.concurrency.value = 7;
                    }),
                );
            }
            tokio::task::yield_now().await;
        }
    });
    let (status, body) = server.post_stage(r#"{"concurrency":7}"#, &[("origin", "http://localhost")]).await;
    answered.await.unwrap();
    let report: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &report["concurrency"]["value"]), (StatusCode::OK, &7.into()));
    assert_eq!(report["latest"]["text"], "Concurrency 120 → 7");
}

#[tokio::test]
async fn a_stage_needs_the_token_too() {
    let mut server = Server::start("/");
    let driver = stage_of(&mut server);
    driver.is_ready();
    let access = crate::config::Access {
        access_token: Some("a-long-and-secret-token".to_owned().into()),
        ..Default::default()
    };
    server.options.access = AccessRules::of(&access).unwrap();
    assert_eq!(server.get("/api/v1/stage").await.0, StatusCode::UNAUTHORIZED);
    let (status, _) = server.post_stage(r#"{"concurrency":7}"#, &[]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let (status, _) = server
        .post_stage(r#"{"concurrency":0}"#, &[("authorization", "Bearer a-long-and-secret-token")])
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "it is let in");
}
