//! What the checks make of real Dynamo: recorded deployments replayed through a real NATS server, real scrapes and
//! growing logs, several times as fast as they were. `cargo xtask test findings` does the same at the recorded pace.

use radixscope_tests::recording::expected::{Expected, of};
use radixscope_tests::recording::{Recording, Replayed, rank};
use radixscope_tests::{figures, traffic};

/// Recorded seconds a second. Rules wait by our clock before they report, so what they report comes recorded seconds
/// later than it would: order is judged here, times at the recorded pace.
const FAST: f64 = 6.0;

async fn replayed(name: &'static str, speed: f64) -> Replayed {
    let replayed = Recording::prepare(name, speed).await.replay().await;
    if let Err(what) = of(name).check_codes(&replayed) {
        panic!("{name}: {what}");
    }
    replayed
}

/// Percentiles as shown lie within a bucket of what the clients' own clocks say.
async fn check_latency(replayed: &Replayed, capture: &str) {
    let latency = replayed.server.json("/api/v1/latency?window_s=300").await;
    let clients = traffic::ttft_s(capture);
    let session = &latency["ttft"]["histogram"]["session"];
    let counted = figures::number(session, "count");
    assert!(counted >= clients.len() as u64, "{capture}: {counted} of at least {}: {latency}", clients.len());
    for (name, q) in [("p50", 0.5), ("p95", 0.95)] {
        let by_client = traffic::quantile(&clients, q);
        let shown = &session[name];
        let [lower, upper] = ["lower", "upper"].map(|side| shown[side].as_f64().expect("a bound"));
        let bucket = upper - lower;
        let is_near = lower - bucket < by_client && by_client <= upper + bucket;
        assert!(is_near, "{capture}: {name} by the clients {by_client} s, shown {shown}");
    }
}

#[tokio::test]
async fn nothing_is_wrong_with_a_healthy_0_9_1_and_its_latency_is_that_of_its_clients() {
    let replayed = replayed("0.9.1-healthy", FAST).await;
    check_latency(&replayed, "0.9.1-healthy").await;
}

#[tokio::test]
async fn nothing_is_wrong_with_a_healthy_1_6_1_and_its_latency_is_that_of_its_clients() {
    let replayed = replayed("1.6.1-healthy", FAST).await;
    check_latency(&replayed, "1.6.1-healthy").await;
}

#[tokio::test]
async fn a_router_that_was_restarted_is_noted() {
    let replayed = replayed("1.6.1-router-restart", FAST).await;
    let cluster = replayed.server.cluster().await;
    let processes = cluster["processes"].as_array().expect("processes");
    let frontend = processes.iter().find(|process| process["name"] == "frontend").expect("it is scraped");
    assert_eq!(figures::number(frontend, "restarts"), 1, "{frontend}");
    let seen = replayed.finding("router_restarted");
    assert!(seen.at_s > replayed.event_s("kill_frontend"), "not before it was ended");
    assert_eq!(rank(&seen.severity), 0);
}

#[test]
fn what_is_expected_names_recordings_that_are_there() {
    for Expected { capture, .. } in radixscope_tests::recording::expected::ALL {
        assert!(radixscope_captures::fixtures().join(capture).is_dir(), "{capture}");
    }
}
