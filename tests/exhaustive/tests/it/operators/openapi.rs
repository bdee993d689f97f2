//! The API by its description: every path is asked for, and every response holds what is described, no more and no less.

use std::collections::BTreeSet;

use radixscope_tests::http::HttpResponse;
use radixscope_tests::radixscope::Radixscope;
use serde_json::{Value, json};

/// What is asked for and where it is described: `GET` without a body, else `POST`.
type Asked = (&'static str, String, Option<Value>);

fn get(path: &'static str, query: &str) -> Asked {
    (path, format!("{path}{query}"), None)
}

fn post(path: &'static str, body: Value) -> Asked {
    (path, path.to_owned(), Some(body))
}

async fn response(server: &Radixscope, (_, url, body): &Asked) -> HttpResponse {
    match body {
        None => server.get(url).await,
        Some(body) => server.post(url, &body.to_string(), &[("content-type", "application/json")]).await,
    }
}

/// The description as it is served, closed: a field that is not described is a mistake here, though clients have to
/// ignore it.
struct Description(Value);

impl Description {
    async fn of(server: &Radixscope) -> Self {
        let mut openapi = server.json("/api/v1/openapi.json").await;
        close(&mut openapi["components"]["schemas"]);
        Self(openapi)
    }

    fn operation(&self, (path, _, body): &Asked) -> &Value {
        let method = if body.is_some() { "post" } else { "get" };
        let operation = &self.0["paths"][path][method];
        assert!(operation.is_object(), "{method} {path} is not described");
        operation
    }

    /// What is wrong with `value` by a schema that stands in the description.
    fn check(&self, schema: &Value, value: &Value) -> Vec<String> {
        let schema = json!({"allOf": [schema], "components": self.0["components"]});
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// What is wrong with a response of this status.
    fn check_response(&self, asked: &Asked, response: &HttpResponse) -> Vec<String> {
        let described = &self.operation(asked)["responses"][response.status.to_string()];
        let described = match described["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).expect("what is referred to is there"),
            None => described,
        };
        let Some(content) = described["content"].as_object() else {
            return vec![format!("status {} is not described: {}", response.status, response.text())];
        };
        let given = response.header("content-type").split(';').next().unwrap_or_default();
        match content.get(given) {
            Some(described) if given == "application/json" => {
                self.check(&described["schema"], &response.json())
            }
            Some(_) => Vec::new(),
            None => vec![format!("{given} is not described")],
        }
    }

    /// Asks, and holds the response against the description.
    async fn ask(&self, server: &Radixscope, asked: &Asked, status: u16) -> HttpResponse {
        let response = response(server, asked).await;
        assert_eq!(response.status, status, "{asked:?}: {}", String::from_utf8_lossy(&response.body));
        let wrong = self.check_response(asked, &response);
        assert!(
            wrong.is_empty(),
            "{asked:?}, {} problems, such as {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(9)]
        );
        response
    }
}

/// Allows no field but those described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.values_mut().for_each(close);
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("additionalProperties")
            {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Every path, with parameters; ids are those of this server.
async fn everything(server: &Radixscope) -> Vec<Asked> {
    let rows = server.json("/api/v1/tree?limit=5").await;
    let decisions = server.json("/api/v1/decisions?limit=100").await;
    let mut all = vec![
        get("/api/v1/cluster", ""),
        get("/api/v1/tree", "?limit=200&sort=blocks&kv_bytes_per_token=1000&window_s=60"),
        get("/api/v1/tree/prefixes", "?by=hits&limit=5"),
        get("/api/v1/tree.svg", "?theme=dark&heat=recency"),
        get("/api/v1/decisions", "?limit=500"),
        get("/api/v1/baselines.csv", ""),
        get("/api/v1/findings", "?state=all&severity=info"),
        get("/api/v1/latency", "?window_s=60&ttft_slo=600&tpot_slo=60"),
        get("/api/v1/memory", ""),
        get("/api/v1/reuse", "?window_s=60"),
        get("/api/v1/summary", ""),
        get("/api/v1/arrivals", "?last=5"),
        get("/api/v1/mooncake", "?last=5"),
        get("/api/v1/recording", ""),
        get("/api/v1/report", ""),
        get("/api/v1/openapi.json", ""),
        post("/api/v1/score", json!({"example": true})),
        post("/api/v1/counterfactual", json!({"mode": "frozen", "settings": {"overlap_score_weight": 0.5}})),
        post(
            "/api/v1/counterfactual",
            json!({"mode": "frozen", "sweep": {"overlap_score_weight": [0.5, 1.0], "router_temperature": [0.0]}}),
        ),
        post("/api/v1/tree-dumps", json!({})),
        get("/api/v1/stage", ""),
        post("/api/v1/stage", json!({"concurrency": 100})),
    ];
    if let Some(hash) = rows["rows"][0]["block_hash"].as_str() {
        all.push(get("/api/v1/tree/block", &format!("?hash={hash}")));
    }
    let decisions = decisions["decisions"].as_array().expect("decisions");
    if let Some(id) = decisions.first().and_then(|decision| decision["id"].as_str()) {
        all.push(get("/api/v1/prompt", &format!("?decision={id}")));
    }
    // Only those of which all candidates are known can be decided again.
    let is_known = |decision: &&Value| decision["candidates"].as_array().is_some_and(|all| all.len() > 1);
    if let Some(decision) = decisions.iter().find(is_known) {
        all.push(post("/api/v1/score", json!({"decision": decision["id"]})));
    }
    all
}

#[tokio::test]
async fn every_response_is_as_described_in_every_kind_of_deployment() {
    let mut asked_for = BTreeSet::new();
    let (mut description, mut wrong) = (None, Vec::new());
    for flags in [
        &["--warm-up", "60"][..],
        &["--warm-up", "60", "--topology", "disaggregated"],
        &["--warm-up", "60", "--topology", "tiers", "--fault", "gap"],
        &["--warm-up", "10", "--fault", "no-events"],
    ] {
        let server = Radixscope::steered_demo(flags).await;
        let description = match &description {
            Some(known) => known,
            None => description.insert(Description::of(&server).await),
        };
        for asked in everything(&server).await {
            if let Some(body) = &asked.2 {
                let schema =
                    &description.operation(&asked)["requestBody"]["content"]["application/json"]["schema"];
                assert_eq!(description.check(schema, body), Vec::<String>::new(), "{asked:?}");
            }
            let response = response(&server, &asked).await;
            // Not every deployment reports the hashes of prompts.
            assert!(
                response.status < 300
                    || response.status == 404 && matches!(asked.0, "/api/v1/prompt" | "/api/v1/mooncake"),
                "{asked:?}"
            );
            wrong.extend(
                description
                    .check_response(&asked, &response)
                    .into_iter()
                    .map(|what| format!("{}{what}", asked.0)),
            );
            if response.status < 300 {
                asked_for.insert(asked.0.to_owned());
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    let description = description.expect("servers were asked").0;
    let described: BTreeSet<String> =
        description["paths"].as_object().expect("paths").keys().cloned().collect();
    assert_eq!(asked_for, described, "every path is asked for");
}

#[tokio::test]
async fn what_a_fleet_answers_is_as_described() {
    let member = Radixscope::start(["demo", "--warm-up", "60"]).await;
    let member = format!("one={}", member.origin());
    let fleet = Radixscope::start(["fleet", "--member", &member, "--member", "gone=127.0.0.1:9"]).await;
    fleet.until_ready().await;
    let description = Description::of(&fleet).await;
    for (asked, status) in [
        (get("/api/v1/fleet", ""), 200),
        (get("/api/v1/fleet", "?after_ms=9"), 200),
        (get("/api/v1/openapi.json", ""), 200),
        (get("/api/v1/fleet", "?after=9"), 400),
    ] {
        description.ask(&fleet, &asked, status).await;
    }
}

#[tokio::test]
async fn every_error_is_as_described() {
    let server = Radixscope::steered_demo(&["--warm-up", "10"]).await;
    let description = Description::of(&server).await;
    let paths = description.0["paths"].as_object().expect("paths").clone();
    for (path, methods) in &paths {
        let path: &'static str = path.clone().leak();
        let asked = match methods.get("get") {
            Some(_) => get(path, "?no_such_parameter=1"),
            None => post(path, json!({"no_such_field": 1})),
        };
        let response = description.ask(&server, &asked, 400).await;
        assert_eq!(response.json()["error"]["code"], "bad_parameter", "{path}");
        if let Some(body) = &asked.2 {
            let schema =
                &description.operation(&asked)["requestBody"]["content"]["application/json"]["schema"];
            assert!(!description.check(schema, body).is_empty(), "{path}: the description refuses it too");
            // Asked with the other method, by the description of the one that is answered.
            let other = server.get(path).await;
            assert_eq!(other.status, 405, "{path}");
            assert_eq!(description.check_response(&asked, &other), Vec::<String>::new(), "{path}");
        }
        let foreign = server.get_with(path, &[("host", "evil.example")]).await;
        assert_eq!(foreign.status, 403, "{path}");
        assert_eq!(description.check_response(&asked, &foreign), Vec::<String>::new(), "{path}");
    }
    for (path, query) in [
        ("/api/v1/decisions", "?worker=1"),
        ("/api/v1/tree", "?pool=no/such"),
        ("/api/v1/tree/block", "?hash=1"),
        ("/api/v1/tree/prefixes", "?model=none"),
        ("/api/v1/tree.svg", "?pool=no/such"),
        ("/api/v1/prompt", "?decision=18446744073709551615"),
        ("/api/v1/arrivals", "?model=none"),
        ("/api/v1/mooncake", "?model=none"),
    ] {
        description.ask(&server, &get(path, query), 404).await;
    }
    let large = post("/api/v1/tree-dumps", json!({"workers": vec![json!({"worker_id": "1"}); 40_000]}));
    description.ask(&server, &large, 413).await;
    // The model's router is of a Dynamo that has no such setting.
    let unknown = json!({"mode": "resimulated", "settings": {"overlap_score_credit": 0.5}});
    let refused = description.ask(&server, &post("/api/v1/counterfactual", unknown), 422).await;
    assert_eq!(refused.json()["error"]["code"], "not_computable");
    let closed = Radixscope::start(["demo", "--warm-up", "0", "--access-token", "a-long-enough-token"]).await;
    description.ask(&closed, &get("/api/v1/cluster", ""), 401).await;
}
