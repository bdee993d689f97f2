//! `POST /api/v1/counterfactual` and `GET /api/v1/arrivals`: figures that anyone can count from the decisions, strict
//! about what is asked, bounded in what is computed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use radixscope_model::id::Millis;
use radixscope_state::requests::Arrivals;
use radixscope_tests::figures::number;
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::wait;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const PATH: &str = "/api/v1/counterfactual";

/// A simulated minute, then hardly any time: nothing changes while it is asked.
async fn paused() -> Radixscope {
    // Whose settings are flags; from 1.6 on they are lines of a file.
    let args = ["demo", "--topology", "aggregated-0.9", "--warm-up", "60", "--speed", "0.000001"];
    let server = Radixscope::start(args).await;
    server.until_source_is("live").await;
    server
}

async fn ask(server: &Radixscope, body: Value) -> Value {
    let response = server.post(PATH, &body.to_string(), &[]).await;
    assert_eq!(response.status, 200, "{body}: {}", response.text());
    assert_eq!(response.header("cache-control"), "no-store");
    response.json()
}

/// Decisions that go elsewhere at weight `weight` and temperature 0 for certain, counted from the decisions' terms.
fn changed_choices(decisions: &[Value], weight: f64) -> u64 {
    let changed = decisions.iter().filter(|decision| {
        let costs: Vec<(bool, f64)> = decision["candidates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                let term = |name: &str| c[name].as_f64().unwrap();
                (c["selected"] == true, weight * term("prefill_blocks") + term("decode_blocks"))
            })
            .collect();
        let least = costs.iter().map(|(_, cost)| *cost).fold(f64::INFINITY, f64::min);
        !costs.iter().any(|(selected, cost)| *selected && *cost == least)
    });
    changed.count() as u64
}

#[tokio::test]
async fn its_changed_choices_are_those_that_anyone_counts_from_the_decisions() {
    let server = paused().await;
    let decisions = server.json("/api/v1/decisions?limit=150").await;
    let decisions = decisions["decisions"].as_array().unwrap();
    assert_eq!(decisions.len(), 150);
    for weight in [0.25, 1.0, 3.0] {
        let result = ask(
            &server,
            json!({"mode": "frozen", "last": 150, "settings": {"overlap_score_weight": weight}}),
        )
        .await;
        let tried = &result["tried"];
        assert_eq!((number(&result["decisions"], "considered"), number(tried, "decisions")), (150, 150));
        // Ties at temperature 0 go to the smaller tree, which can only add to what the costs alone tell.
        let counted = changed_choices(decisions, weight);
        let certain = number(tried, "flips_certain");
        assert!(
            (counted..=counted + number(tried, "ties")).contains(&certain),
            "{weight}: {certain}, {counted}"
        );
        let listed = result["flips"].as_array().unwrap();
        assert!(listed.len() as u64 >= certain, "{weight}");
        let ids: Vec<&Value> = decisions.iter().map(|decision| &decision["id"]).collect();
        assert!(
            listed
                .iter()
                .all(|changed| ids.contains(&&changed["decision"]) && changed["decision"].is_string())
        );
    }
    let present = ask(&server, json!({"mode": "frozen", "last": 150})).await;
    assert_eq!(present["tried"]["flips_certain"], 0, "the recorded setting changes nothing");
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for decision in decisions {
        *shares.entry(decision["worker_id"].as_str().unwrap().to_owned()).or_default() += 1.0 / 150.0;
    }
    for of in present["actual"]["shares"].as_array().unwrap() {
        let counted = shares[of["worker_id"].as_str().unwrap()];
        assert!((of["share"].as_f64().unwrap() - counted).abs() < 1e-9, "{of}");
    }
}

#[tokio::test]
async fn a_sweep_recommends_what_it_tried_or_says_why_not() {
    let server = paused().await;
    let (weights, temperatures) = ([0.5, 1.0, 2.0], [0.0, 0.3]);
    let body = json!({"mode": "frozen", "last": 200, "sweep": {"overlap_score_weight": weights, "router_temperature": temperatures}});
    let result = ask(&server, body).await;
    assert_eq!(result["mode"], "sweep");
    assert_eq!(result["outcomes"].as_array().unwrap().len(), 6);
    assert_eq!(
        result["outcomes"][2]["flips_certain"], 0,
        "weight 1 at temperature 0 is the recorded setting"
    );
    assert!(
        result["present"].as_str().unwrap().contains("--kv-overlap-score-weight 1."),
        "{}",
        result["present"]
    );
    assert!(result["recommendation"]["why"].as_str().unwrap().len() > 20);
}

#[tokio::test]
async fn the_model_gives_what_core_gives_for_the_arrivals_that_are_served() {
    let server = paused().await;
    let response = server.get("/api/v1/arrivals?last=160").await;
    assert_eq!((response.status, response.header("content-type")), (200, "application/octet-stream"));
    assert_eq!(response.header("cache-control"), "no-store");
    let arrivals: Arrivals = postcard::from_bytes(&response.body).unwrap();
    assert_eq!(arrivals.iter().len(), 160);
    let body = json!({"mode": "resimulated", "last": 80, "settings": {"router_mode": "round-robin"}});
    let result = ask(&server, body).await;
    assert_eq!((number(&result, "arrivals"), number(&result["recorded"], "requests")), (160, 80));
    assert!(result["tried"]["overlap_share"].is_null(), "round-robin keeps no index");
    assert!(result["assumptions"].as_array().unwrap().len() >= 8);
    assert_eq!(
        result["fits"].as_bool().unwrap(),
        result["misfits"].as_array().unwrap().is_empty(),
        "{result}"
    );
    assert!(result["calibration"]["ttft_ms"]["simulated"]["p95"].as_f64().unwrap() > 0.0, "{result}");

    let viewer = server.viewer().await;
    let seq = number(&server.cluster().await, "seq");
    let report = viewer
        .until("the viewer is where the server is", |seen| {
            use radixscope_insight::counterfactual::{DecisionRange, Facts, Selection, resimulate};
            let state = seen.state.as_ref().filter(|state| state.seq().0 >= seq).ok_or("not yet")?;
            let facts = Facts::of(state, Selection::of(DecisionRange::Last(80)));
            let go = |_: usize, _: usize| ControlFlow::Continue(());
            resimulate(
                &arrivals,
                &facts,
                DecisionRange::Last(80),
                radixscope_router::RouterOverrides::round_robin(),
                go,
            )
            .map_err(|e| e.to_string())
        })
        .await;
    assert_eq!(number(&result["tried"], "prefill_tokens"), report.tried.prefill_tokens);
    assert_eq!(number(&result["recorded"], "prefill_tokens"), report.recorded.prefill_tokens);
    assert_eq!(result["tried"]["ttft_ms"]["p95"].as_f64(), report.tried.ttft_ms.map(|t| t.p95_ms));
}

#[tokio::test]
async fn the_arrivals_of_a_moment_are_the_latest_before_it() {
    let server = paused().await;
    let ask = async |query: &str| server.get(&format!("/api/v1/arrivals?{query}")).await;
    let arrivals = async |query: &str| -> Arrivals {
        let response = ask(query).await;
        assert_eq!(response.status, 200, "{query}: {}", response.text());
        postcard::from_bytes(&response.body).unwrap()
    };
    let all = arrivals("last=10000").await;
    let retained: Vec<_> = all.iter().map(|arrival| (arrival.decision, arrival.at_ms)).collect();
    assert!(retained.len() > 100, "{} requests", retained.len());
    let moment = retained[retained.len() / 2].1;
    let end = Millis(retained.iter().map(|(_, at_ms)| at_ms.0).max().unwrap() + 1_000);
    for (last, at) in [(7, moment), (10_000, moment), (10_000, end)] {
        let then = arrivals(&format!("last={last}&at_ms={at}")).await;
        let before: Vec<_> = retained.iter().filter(|(_, at_ms)| *at_ms <= at).copied().collect();
        let got: Vec<_> = then.iter().map(|arrival| (arrival.decision, arrival.at_ms)).collect();
        assert_eq!(got, before[before.len().saturating_sub(last)..], "last {last} at {at}");
        // Each with its own prompt, block by block.
        let (mut prompt, mut whole) = (Vec::new(), Vec::new());
        for arrival in then.iter() {
            then.prompt(arrival, &mut prompt);
            all.prompt(all.of(arrival.decision).unwrap(), &mut whole);
            assert!(!prompt.is_empty() && prompt == whole, "{:?}", arrival.decision);
        }
    }
    let begin = retained[0].1.0;
    let response = ask(&format!("at_ms={}", begin - 1)).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (404, &"not_found".into()));
    assert!(response.text().contains(&format!("retained ones begin at {begin}")), "{}", response.text());
    assert_eq!(ask("at_ms=yesterday").await.status, 400);
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let server = paused().await;
    let large = format!(r#"{{"mode":"frozen","worker":"{}"}}"#, "9".repeat(70_000));
    let deep = "[".repeat(50_000);
    let cases: [(&str, u16, &str); 10] = [
        ("", 400, "bad_parameter"),
        ("{", 400, "bad_parameter"),
        (&deep, 400, "bad_parameter"),
        (r#"{"mode":"frozen","last":10001}"#, 400, "bad_parameter"),
        (r#"{"mode":"frozen","last":-1}"#, 400, "bad_parameter"),
        (r#"{"mode":"frozen","settings":{"router_temperature":-0.1}}"#, 400, "bad_parameter"),
        (r#"{"mode":"frozen","settings":{"overlap_score_weight":1e400}}"#, 400, "bad_parameter"),
        (r#"{"mode":"frozen","worker":"4711"}"#, 404, "not_found"),
        (r#"{"mode":"resimulated","settings":{"overlap_score_credit":0.5}}"#, 422, "not_computable"),
        (&large, 413, "too_large"),
    ];
    for (body, status, code) in cases {
        let response = server.post(PATH, body, &[]).await;
        let start: String = body.chars().take(60).collect();
        assert_eq!(response.status, status, "{start}: {}", response.text());
        assert_eq!(response.json()["error"]["code"], code, "{start}");
    }
    let response = server.post(PATH, r#"{"mode":"frozen"}"#, &[("origin", "http://elsewhere.example")]).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (403, &"foreign_origin".into()));
    assert_eq!(server.get(PATH).await.status, 405);
    assert_eq!(server.get("/api/v1/arrivals?last=0").await.status, 400);
    assert_eq!(server.get("/api/v1/arrivals?lst=1").await.status, 400);
}

#[tokio::test]
async fn without_decisions_it_names_the_missing_setting() {
    let server = Radixscope::serve("nats://127.0.0.1:1").await;
    let result = ask(&server, json!({"mode": "frozen"})).await;
    assert_eq!(result["headline"], "None of 0 decisions can be judged.");
    assert!(result["decisions"]["hint"].as_str().unwrap().contains("--router-replica-sync"));
    let response = server.post(PATH, r#"{"mode":"resimulated"}"#, &[]).await;
    assert_eq!(response.status, 422);
    assert!(response.text().contains("DYN_REQUEST_TRACE"), "{}", response.text());
}

#[tokio::test]
async fn more_runs_than_slots_are_refused_with_a_time_to_retry() {
    let server = paused().await;
    let body = r#"{"mode":"resimulated","last":10000,"settings":{"router_mode":"round-robin"}}"#;
    let run = || server.post(PATH, body, &[]);
    let (a, b, c, d, e, f) = tokio::join!(run(), run(), run(), run(), run(), run());
    let answers = [a, b, c, d, e, f];
    let refused: Vec<_> = answers.iter().filter(|response| response.status == 503).collect();
    assert!(!refused.is_empty() && answers.iter().any(|response| response.status == 200));
    for response in refused {
        assert_eq!(
            (response.header("retry-after"), &response.json()["error"]["code"]),
            ("2", &"too_many_runs".into())
        );
    }
    assert_eq!(run().await.status, 200, "the places are free again");
}

#[tokio::test]
async fn a_client_that_goes_away_gives_its_place_back() {
    let server = paused().await;
    let body = r#"{"mode":"resimulated","last":10000}"#;
    for _ in 0..4 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }
    wait::until("a place is free", async || {
        let response = server.post(PATH, body, &[]).await;
        wait::expect(response.status == 200, || response.text().to_owned())
    })
    .await;
}
