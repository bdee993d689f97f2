//! A real Prometheus scrapes simulated clusters with and without faults: names, rules and every query of the dashboard.

use std::fs;

use radixscope_tests::prometheus::{Prometheus, promtool};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{metrics, paths, wait};
use serde_json::Value;

use super::grafana::dashboard;

const RULES: &str = "deploy/prometheus/radixscope.rules.yaml";

/// A query as Grafana asks it, with everything chosen. Prometheus scrapes every second here.
fn asked(query: &str) -> String {
    let mut query = query.replace("$__rate_interval", "10s");
    for variable in ["$instance", "$pool", "$worker"] {
        query = query.replace(variable, ".+");
    }
    assert!(!query.contains('$'), "a variable is not known here: {query}");
    query
}

/// Every query of the dashboard: of panels, of annotations and of variables.
fn queries() -> Vec<String> {
    let dashboard = dashboard("radixscope.json");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let targets = list(&dashboard["panels"]).into_iter().flat_map(|panel| list(&panel["targets"]));
    let marks = list(&dashboard["annotations"]["list"]);
    let mut queries: Vec<String> =
        targets.chain(marks).map(|of| asked(of["expr"].as_str().expect("a query"))).collect();
    for variable in list(&dashboard["templating"]["list"]) {
        let Some(values) = variable["query"]["query"].as_str() else { continue };
        let inner = values.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
        let (family, label) = inner.and_then(|inner| inner.rsplit_once(", ")).expect("values of a label");
        queries.push(asked(&format!("count by ({label}) ({family})")));
    }
    queries
}

/// What an alert compares: all of its sums and ratios without their limits.
fn compared(alert: &str) -> Vec<String> {
    let absent = alert.strip_prefix("absent(").and_then(|rest| rest.strip_suffix(')'));
    let side = |part: &str| {
        let at = [" == ", " < ", " > "].iter().filter_map(|sign| part.find(sign)).min();
        part[..at.unwrap_or(part.len())].to_owned()
    };
    absent.unwrap_or(alert).split(" or ").map(side).collect()
}

/// Waits until each query has an answer.
async fn until_answered(prometheus: &Prometheus, mut queries: Vec<String>) {
    wait::until("every query has an answer", async || {
        let mut without = Vec::new();
        for query in std::mem::take(&mut queries) {
            if prometheus.query(&query).await?.is_empty() {
                without.push(query);
            }
        }
        queries = without;
        wait::expect(queries.is_empty(), || queries.join("\n"))
    })
    .await;
}

#[tokio::test]
async fn every_query_of_dashboard_and_rules_has_an_answer_in_a_real_prometheus() {
    let usual = Radixscope::start(["demo", "--warm-up", "60"]).await;
    let lossy = Radixscope::start(["demo", "--warm-up", "60", "--fault", "gap"]).await;
    let silent = Radixscope::start(["demo", "--warm-up", "10", "--fault", "no-events"]).await;
    let targets = [&usual, &lossy, &silent].map(|server| format!("127.0.0.1:{}", server.port()));
    let prometheus = Prometheus::start(&targets, &paths::checkout().join(RULES)).await;
    until_answered(&prometheus, queries()).await;
    let rules = prometheus.rules().await;
    assert!(rules.len() >= 12, "{rules:?}");
    let mut asked = Vec::new();
    for rule in &rules {
        match rule["type"].as_str() {
            Some("recording") => asked.push(rule["name"].as_str().expect("a name").to_owned()),
            _ => asked.extend(compared(rule["query"].as_str().expect("a query"))),
        }
    }
    until_answered(&prometheus, asked).await;
    for rule in prometheus.rules().await {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    until_answered(
        &prometheus,
        vec!["ALERTS{alertname=\"RadixscopeMessagesLost\",alertstate=\"firing\"}".into()],
    )
    .await;
}

#[tokio::test]
async fn names_follow_the_conventions_of_prometheus() {
    let server = Radixscope::start(["demo", "--warm-up", "10"]).await;
    server.until_source_is("live").await;
    let text = server.get("/metrics").await.text().to_owned();
    let (is_good, said) = promtool(&["check", "metrics"], &text);
    assert!(is_good && said.is_empty(), "{said}");
    let (is_good, said) = promtool(&["check", "metrics"], "# TYPE radixscope_x counter\nradixscope_x 1\n");
    assert!(!is_good && said.contains("_total"), "a counter without its suffix is seen: {said}");
    let samples = metrics::parse(&text).expect("our own figures");
    assert!(samples.iter().all(|sample| sample.name.starts_with("radixscope_")));
}

#[test]
fn the_rules_are_valid_and_the_same_for_the_operator() {
    let read = |path: &str| fs::read_to_string(paths::checkout().join(path)).expect("it is in the checkout");
    let path = paths::checkout().join(RULES);
    let (is_good, said) = promtool(&["check", "rules", path.to_str().expect("text")], "");
    assert!(is_good, "{said}");
    let groups = |text: &str| {
        let from = text.lines().skip_while(|line| line.trim() != "groups:");
        from.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>()
    };
    let resource: Vec<String> =
        groups(&read("deploy/kubernetes/components/prometheus-rule/prometheusrule.yaml"))
            .iter()
            .map(|line| line.get(2..).unwrap_or_default().to_owned())
            .collect();
    assert_eq!(resource, groups(&read(RULES)), "PrometheusRule and rules file have the same groups");
}
