//! What HTTP clients may rely on: paths, shapes, errors in words, ids as strings, headers, the base path, the socket's
//! guard, metrics that Prometheus can read.

use std::collections::BTreeSet;

use hyper::Method;
use radixscope_tests::capture::Capture;
use radixscope_tests::figures::number;
use radixscope_tests::http::{Http, HttpResponse};
use radixscope_tests::nats::Nats;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{metrics, replay, wait};
use serde_json::Value;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

async fn demo(more: &[&str]) -> Radixscope {
    let server = Radixscope::start(["demo", "--warm-up", "10"].iter().chain(more)).await;
    server.until_source_is("live").await;
    server
}

/// Every number in `value` must be one that a JavaScript reader keeps; `path` is for the message.
fn check_numbers(value: &Value, path: &str) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(n) => assert!(n.as_f64().unwrap().abs() < EXACT, "{path} = {n} needs to be a string"),
        Value::Array(items) => items.iter().for_each(|item| check_numbers(item, path)),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, v)| check_numbers(v, &format!("{path}.{key}")))
        }
        _ => {}
    }
}

fn fields(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("not an object: {value}")).keys().map(String::as_str).collect()
}

fn has(value: &Value, names: &str) {
    let have = fields(value);
    let missing: Vec<&str> = names.split(' ').filter(|name| !have.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in {value}");
}

#[tokio::test]
async fn responses_have_the_promised_shape_and_ids_are_strings() {
    let server = demo(&[]).await;
    let cluster = server.cluster().await;
    has(&cluster, "seq at_ms digest sources workers processes routers tree");
    has(&cluster["sources"][0], "name kind state detail received dropped last_ms");
    has(
        &cluster["workers"][0],
        "worker_id dp_rank blocks unattached_blocks capacity_blocks used_blocks stored_total removed_total \
         cleared_total missed last_event_ms state in_flight lines gone block_ages",
    );
    has(&cluster["tree"], "nodes resident shared copies max_depth shown total");
    let tree = server.json("/api/v1/tree?limit=50").await;
    has(&tree, "seq at_ms root sort blocks shared_blocks copies totals rows truncated next");
    has(
        &tree["rows"][0],
        "block_hash tokens_hash len last_block_hash workers branches subtree_blocks last_touch_ms position level \
         subtree_shared_blocks subtree_copies subtree_depth_blocks hits first_stored_ms subtree_last_touch_ms",
    );
    let decisions = server.json("/api/v1/decisions?limit=5").await;
    assert_eq!(decisions["decisions"].as_array().unwrap().len(), 5);
    let decision = &decisions["decisions"][0];
    has(
        decision,
        "seq at_ms request_id worker_id dp_rank isl_tokens isl_blocks overlap_blocks formula candidates source \
         completeness not_reconstructed session decided_by",
    );
    has(
        &decision["candidates"][0],
        "worker_id dp_rank overlap_blocks prefill_blocks decode_blocks cost probability selected",
    );
    for response in [&cluster, &tree, &decisions] {
        check_numbers(response, "$");
    }
    for id in [
        &cluster["digest"],
        &cluster["workers"][0]["worker_id"],
        &tree["rows"][0]["block_hash"],
        &tree["rows"][0]["tokens_hash"],
        &decision["worker_id"],
    ] {
        let text = id.as_str().unwrap_or_else(|| panic!("{id} is no string"));
        assert!(text.parse::<u64>().is_ok(), "{text} is no decimal u64");
    }
}

#[tokio::test]
async fn findings_and_latency_have_the_promised_shape() {
    let server = demo(&["--fault", "block-size"]).await;
    let found = |response: &Value| {
        let all = response["findings"].as_array().expect("findings");
        all.iter()
            .find(|finding| finding["code"] == "block_size_mismatch")
            .cloned()
            .ok_or_else(|| response.to_string())
    };
    let (response, finding) = wait::until("the fault is found", async || {
        let response = server.json("/api/v1/findings").await;
        found(&response).map(|finding| (response, finding))
    })
    .await;
    has(&response, "seq at_ms findings checked");
    let finding = &finding;
    has(
        finding,
        "code severity title explanation evidence fix workers first_seen_ms last_seen_ms state panel selects_worker",
    );
    has(&finding["evidence"][0], "label value unit");
    has(&finding["fix"][0], "text setting value");
    has(&finding["workers"][0], "worker_id dp_rank");
    has(&response["checked"][0], "code subject status missing");
    assert!(finding["workers"][0]["worker_id"].as_str().is_some_and(|id| id.parse::<u64>().is_ok()));
    check_numbers(&response, "$");
    let samples = metrics::parse(server.get("/metrics").await.text()).expect("our own figures");
    let labels = [("code", finding["code"].as_str().unwrap())];
    assert_eq!(metrics::value(&samples, "radixscope_findings", &labels), Some(1.0));
    let latency = server.json("/api/v1/latency?window_s=30").await;
    has(
        &latency,
        "seq at_ms window_s ttft itl duration input_tokens output_tokens router_overhead client_results",
    );
    has(&latency["ttft"], "unit figure histogram requests");
    check_numbers(&latency, "$");
}

#[tokio::test]
async fn every_response_has_the_same_capacity_and_block_size_of_a_worker() {
    let server = demo(&[]).await;
    let (cluster, memory) = (server.cluster().await, server.json("/api/v1/memory").await);
    let size = &memory["workers"][0]["block_size_tokens"];
    assert!(size.is_u64(), "{memory}");
    for (at, worker) in cluster["workers"].as_array().expect("workers").iter().enumerate() {
        let other = &memory["workers"][at];
        for key in ["worker_id", "capacity_blocks", "block_size_tokens", "block_size_source"] {
            assert_eq!(worker[key], other[key], "{key}");
        }
        assert_eq!(worker["capacity_source"], other["capacities"][0]["source"]);
    }
    assert_eq!(server.json("/api/v1/tree").await["totals"]["block_size_tokens"], *size);
}

#[tokio::test]
async fn decisions_come_newest_first_and_can_be_narrowed_to_a_worker() {
    let server = demo(&["--speed", "0.000001"]).await;
    let all = server.json("/api/v1/decisions?limit=10000").await;
    let rows = all["decisions"].as_array().unwrap();
    assert!(rows.windows(2).all(|pair| number(&pair[0], "seq") > number(&pair[1], "seq")));
    let id = rows[0]["worker_id"].as_str().unwrap();
    let of_one = server.json(&format!("/api/v1/decisions?limit=10000&worker={id}")).await;
    let expected: Vec<&Value> = rows.iter().filter(|row| row["worker_id"] == id).collect();
    assert_eq!(of_one["decisions"].as_array().unwrap().iter().collect::<Vec<_>>(), expected);
}

/// Blocks of the rows of a tree that a worker holds.
fn blocks_of_worker(rows: &Value, worker: &str) -> u64 {
    let is_held = |row: &&Value| row["workers"].as_array().unwrap().iter().any(|w| w["worker_id"] == worker);
    rows.as_array().unwrap().iter().filter(is_held).map(|row| number(row, "len")).sum()
}

#[tokio::test]
async fn the_tree_holds_exactly_the_blocks_that_the_workers_are_reported_to_hold() {
    let server = demo(&["--speed", "0.000001"]).await;
    let cluster = server.cluster().await;
    let tree = server.json("/api/v1/tree?limit=100000&depth=120").await;
    assert_eq!(tree["truncated"], false);
    for worker in cluster["workers"].as_array().unwrap() {
        let id = worker["worker_id"].as_str().unwrap();
        assert_eq!(blocks_of_worker(&tree["rows"], id), number(worker, "blocks"), "worker {id}");
        let own = server.json(&format!("/api/v1/tree?limit=100000&depth=120&worker={id}")).await;
        assert_eq!(number(&own, "blocks"), number(worker, "blocks"), "worker {id} alone");
    }
    let root = tree["rows"][0]["block_hash"].as_str().unwrap();
    let below = server.json(&format!("/api/v1/tree?root={root}&limit=1")).await;
    assert_eq!((&below["root"], &below["rows"][0]["block_hash"]), (&root.into(), &root.into()));
}

fn is_error(response: &HttpResponse, status: u16, code: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    let body = response.json();
    assert_eq!(body["error"]["code"], code, "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.len() > 10 && !message.ends_with('!'), "{message}");
    assert_eq!(fields(&body), BTreeSet::from(["error"]));
}

#[tokio::test]
async fn errors_say_what_is_wrong_in_one_form() {
    let server = demo(&[]).await;
    for path in [
        "/api/v1/tree?limit=0",
        "/api/v1/tree?limit=many",
        "/api/v1/tree?depth=-1",
        "/api/v1/tree?root=18446744073709551616",
        "/api/v1/tree?limt=5",
        "/api/v1/tree?limit=5&limit=6",
        "/api/v1/decisions?worker=abc",
        "/api/v1/cluster?x=1",
        "/api/v1/findings?severity=bad",
        "/api/v1/findings?state=over",
        "/api/v1/latency?window_s=0",
        "/api/v1/latency?window_s=301",
    ] {
        is_error(&server.get(path).await, 400, "bad_parameter");
    }
    for path in
        ["/api", "/api/v1", "/api/v1/nothing", "/api/v2/cluster", "/nothing.js", "/../Cargo.toml", "/a/b/c"]
    {
        is_error(&server.get(path).await, 404, "not_found");
    }
    is_error(&server.get("/api/v1/tree?root=1").await, 404, "not_found");
    is_error(&server.get("/ws").await, 426, "upgrade_required");
    let http = Http::default();
    let refused = http.send(Method::DELETE, &server.url("/api/v1/cluster"), &[], Vec::new()).await.unwrap();
    is_error(&refused, 405, "method_not_allowed");
    let long = format!("/api/v1/tree?root={}", "9".repeat(5000));
    let response = server.get(&long).await;
    assert!(
        response.status == 400 && response.body.len() < 1000,
        "a long value is not sent back: {}",
        response.text()
    );
}

/// The value of a directive of the page's policy.
fn directive<'p>(policy: &'p str, name: &str) -> &'p str {
    let mut parts = policy.split(';').map(str::trim);
    parts
        .find_map(|part| part.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("no {name}: {policy}"))
}

#[tokio::test]
async fn the_page_lets_nothing_run_but_its_own_scripts_and_may_be_framed_as_stated() {
    let grafana = "'self' https://grafana.example.org";
    for (flags, ancestors) in [(&[][..], "'self'"), (&["--frame-ancestors", grafana][..], grafana)] {
        let server = demo(flags).await;
        let page = server.get("/").await;
        assert_eq!(page.status, 200, "{}", page.text());
        assert!(page.header("content-type").starts_with("text/html"), "{:?}", page.headers);
        assert_eq!(page.header("cache-control"), "no-store");
        let policy = page.header("content-security-policy");
        let scripts = directive(policy, "script-src");
        assert!(scripts.contains("'self'") && scripts.contains("'wasm-unsafe-eval'"), "{policy}");
        assert!(!scripts.contains("'unsafe-inline'") && !scripts.contains("'unsafe-eval'"), "{policy}");
        assert_eq!(directive(policy, "default-src"), "'self'");
        assert_eq!(directive(policy, "connect-src"), "'self'");
        assert_eq!(directive(policy, "frame-ancestors"), ancestors);
        for path in ["/", "/api/v1/cluster", "/healthz", "/metrics", "/nothing"] {
            let response = server.get(path).await;
            assert_eq!(
                response.header("x-frame-options"),
                "",
                "{path}: it would forbid what frame-ancestors allows"
            );
            assert_eq!(response.header("x-content-type-options"), "nosniff", "{path}");
        }
    }
}

/// Addresses of the page's own files, relative to its base.
fn files_of(page: &str) -> Vec<String> {
    let mut files = Vec::new();
    for mark in ["href=\"", "src=\"", "from '", "module_or_path: '"] {
        for (at, _) in page.match_indices(mark) {
            let rest = &page[at + mark.len()..];
            let end = rest.find(['"', '\'']).unwrap();
            files.push(rest[..end].to_owned());
        }
    }
    files.retain(|file| [".js", ".css", ".wasm", ".svg"].iter().any(|end| file.ends_with(end)));
    files
}

#[tokio::test]
async fn files_with_a_hash_in_their_name_are_kept_for_ever_and_sent_compressed() {
    let server = demo(&[]).await;
    let page = server.get("/").await;
    let files = files_of(page.text());
    assert!(
        files.iter().any(|f| f.ends_with(".wasm")) && files.iter().any(|f| f.ends_with(".js")),
        "{files:?}"
    );
    let http = Http::default();
    for file in &files {
        let url = server.url(&format!("/{}", file.trim_start_matches("./")));
        let plain = http.get(&url).await.unwrap();
        assert_eq!(plain.status, 200, "{url}");
        if file.ends_with(".wasm") {
            assert_eq!(plain.header("content-type"), "application/wasm");
        }
        if file.ends_with(".wasm") || file.ends_with(".js") || file.ends_with(".css") {
            let keep = "public, max-age=31536000, immutable";
            assert_eq!(plain.header("cache-control"), keep, "{file}");
            let accept = [("accept-encoding", "gzip, br")];
            let packed = http.send(Method::GET, &url, &accept, Vec::new()).await.unwrap();
            let is_small = plain.body.len() < 1024;
            assert!(is_small || packed.header("content-encoding") == "br", "{file}: {:?}", packed.headers);
            assert!(
                is_small || packed.body.len() < plain.body.len() * 3 / 4,
                "{file}: {} bytes",
                packed.body.len()
            );
            assert!(packed.header("vary").to_lowercase().contains("accept-encoding"), "{file}");
            let known = [("accept-encoding", "gzip, br"), ("if-none-match", packed.header("etag"))];
            let again = http.send(Method::GET, &url, &known, Vec::new()).await.unwrap();
            assert_eq!((again.status, again.body.len()), (304, 0), "{file}");
        }
    }
}

#[tokio::test]
async fn files_without_a_hash_in_their_name_are_requested_again_and_sent_once() {
    let server = demo(&[]).await;
    let http = Http::default();
    for file in
        ["worker.js", "worker_bg.wasm", "worker_loader.js", "player.js", "player_bg.wasm", "player_loader.js"]
    {
        let url = server.url(&format!("/{file}"));
        let response = http.get(&url).await.unwrap();
        assert_eq!((response.status, response.header("cache-control")), (200, "no-cache"), "{file}");
        let known = [("if-none-match", response.header("etag"))];
        let again = http.send(Method::GET, &url, &known, Vec::new()).await.unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{file}");
    }
}

#[tokio::test]
async fn below_a_base_path_everything_is_found_with_and_without_it() {
    let server = demo(&["--base-path", "/tools/radix/"]).await;
    let http = Http::default();
    let at = |path: &str| format!("{}{path}", server.origin());
    for prefix in ["/tools/radix", ""] {
        for path in ["/", "/healthz", "/readyz", "/metrics", "/api/v1/cluster"] {
            let response = http.get(&at(&format!("{prefix}{path}"))).await.unwrap();
            assert_eq!(response.status, 200, "{prefix}{path}");
        }
    }
    for path in ["/tools/radix", "/tools/radix/", "/"] {
        let page = http.get(&at(path)).await.unwrap();
        assert!(page.text().contains("<base href=\"/tools/radix/\""), "{path}: {}", page.text());
    }
    server
        .viewer()
        .await
        .until("it is served", |seen| seen.state.as_ref().map(|_| ()).ok_or_else(String::new))
        .await;
}

#[tokio::test]
async fn a_proxy_that_strips_its_prefix_says_so_in_a_header() {
    let server = demo(&[]).await;
    let http = Http::default();
    for (forwarded, base) in [("/d/x", "/d/x/"), ("//evil.example", "/"), ("/\"><script>", "/")] {
        let headers = [("x-forwarded-prefix", forwarded)];
        let page = http.send(Method::GET, &server.url("/"), &headers, Vec::new()).await.unwrap();
        assert!(page.text().contains(&format!("<base href=\"{base}\"")), "{forwarded}: {}", page.text());
    }
}

async fn open_socket(server: &Radixscope, origin: Option<&str>) -> Result<(), u16> {
    let mut request = server.socket_url().into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    match tokio_tungstenite::connect_async(request).await {
        Ok(_) => Ok(()),
        Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn pages_of_other_origins_may_not_open_the_socket_unless_allowed() {
    let server = demo(&["--allow-origin", "https://portal.example.org"]).await;
    let own = server.origin();
    for origin in [None, Some(own.as_str()), Some("https://portal.example.org")] {
        assert_eq!(open_socket(&server, origin).await, Ok(()), "{origin:?}");
    }
    let port = server.port();
    let lookalike = format!("http://127.0.0.1.evil.example:{port}");
    for origin in
        ["https://evil.example", "null", "http://portal.example.org", &lookalike, "http://127.0.0.1:1"]
    {
        assert_eq!(open_socket(&server, Some(origin)).await, Err(403), "{origin}");
    }
}

#[tokio::test]
async fn metrics_can_be_read_by_prometheus_and_agree_with_the_api() {
    let nats = Nats::start().await;
    let server = Radixscope::serve(&nats.url()).await;
    server.until_ready().await;
    let capture = Capture::load("0.9.1-log-jsonl-info");
    replay::publish(&nats.client().await, &capture.messages).await;
    let cluster = server.until_quiet(capture.publications() as u64).await;
    let response =
        server.get_with("/metrics", &[("accept", "application/openmetrics-text;version=1.0.0")]).await;
    assert!(
        response.header("content-type").starts_with("application/openmetrics-text"),
        "{:?}",
        response.headers
    );
    let classic = server.get("/metrics").await;
    assert!(classic.header("content-type").starts_with("text/plain; version=0.0.4"), "{:?}", classic.headers);
    let names = |text: &str| -> BTreeSet<String> {
        metrics::parse(text).unwrap_or_else(|e| panic!("{e}:\n{text}")).into_iter().map(|s| s.name).collect()
    };
    assert_eq!(names(classic.text()), names(response.text()), "both forms have the same samples");
    let samples = metrics::parse(response.text()).unwrap_or_else(|e| panic!("{e}:\n{}", response.text()));
    let value = |name: &str, labels: &[(&str, &str)]| metrics::value(&samples, name, labels);
    for worker in cluster["workers"].as_array().unwrap() {
        let id = [("worker_id", worker["worker_id"].as_str().unwrap())];
        for (metric, field) in [
            ("radixscope_worker_blocks", "blocks"),
            ("radixscope_worker_stored_blocks_total", "stored_total"),
            ("radixscope_worker_removed_blocks_total", "removed_total"),
        ] {
            assert_eq!(value(metric, &id), Some(number(worker, field) as f64), "{metric}");
        }
        assert_eq!(value("radixscope_worker_capacity_blocks", &id), None, "what is unknown is absent");
    }
    assert_eq!(value("radixscope_tree_nodes", &[]), Some(number(&cluster["tree"], "nodes") as f64));
    assert_eq!(value("radixscope_viewers", &[]), Some(0.0));
    let messages = number(&cluster["sources"][0], "received") as f64;
    assert_eq!(value("radixscope_ingest_messages_total", &[]), Some(messages));
}
