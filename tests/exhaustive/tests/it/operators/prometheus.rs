//! A real Prometheus scrapes simulated clusters with and without faults: names, rules and every query of the dashboard.

use std::fs;

use radixscope_exhaustive::prometheus::{Prometheus, promtool};
use radixscope_tests::radixscope::Radixscope;
use radixscope_tests::{metrics, paths, wait};
use serde_json::Value;

use super::grafana::dashboard;

const RULES: &str = "deploy/prometheus/radixscope.rules.yaml";
const FLEET_RULES: &str = "deploy/prometheus/radixscope-fleet.rules.yaml";

/// A query as Grafana asks it: of one job, else with everything chosen. Prometheus scrapes every second here.
fn asked_of(job: &str, query: &str) -> String {
    let mut query = query.replace("$__rate_interval", "10s").replace("$job", job);
    for variable in ["$namespace", "$pool", "$worker", "$cluster"] {
        query = query.replace(variable, ".*");
    }
    assert!(!query.contains('$'), "a variable is not known here: {query}");
    query
}

fn asked(query: &str) -> String {
    asked_of(".*", query)
}

/// Every query of a dashboard: of panels, of annotations and of variables.
fn queries(name: &str) -> Vec<String> {
    let dashboard = dashboard(name);
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

/// Waits until each query has a response.
async fn until_answered(prometheus: &Prometheus, mut queries: Vec<String>) {
    wait::until("every query has a response", async || {
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
async fn every_query_of_dashboard_and_rules_has_a_response_in_a_real_prometheus() {
    let usual = Radixscope::start(["demo", "--warm-up", "60"]).await;
    let lossy = Radixscope::start(["demo", "--warm-up", "60", "--fault", "gap"]).await;
    let silent = Radixscope::start(["demo", "--warm-up", "10", "--fault", "no-events"]).await;
    let jobs: [(&str, &[&Radixscope]); 3] =
        [("usual", &[&usual]), ("lossy", &[&lossy]), ("silent", &[&silent])];
    let prometheus = Prometheus::start(&jobs, &paths::checkout().join(RULES)).await;
    until_answered(&prometheus, queries("radixscope.json")).await;
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
async fn the_history_of_many_clusters_has_every_figure_in_a_real_prometheus() {
    let one = Radixscope::start(["demo", "--warm-up", "60"]).await;
    let slow = Radixscope::start(["demo", "--warm-up", "60", "--fault", "slow"]).await;
    let member = format!("one={}", one.origin());
    let fleet = Radixscope::start(["fleet", "--member", &member, "--member", "gone=127.0.0.1:9"]).await;
    let jobs: [(&str, &[&Radixscope]); 3] = [("one", &[&one]), ("slow", &[&slow]), ("fleet", &[&fleet])];
    let prometheus = Prometheus::start(&jobs, &paths::checkout().join(FLEET_RULES)).await;
    until_answered(&prometheus, queries("radixscope-fleet.json")).await;
    let rules = prometheus.rules().await;
    let recorded = rules.iter().filter(|rule| rule["type"] == "recording");
    let recorded: Vec<String> =
        recorded.map(|rule| rule["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(recorded.len(), 8, "{recorded:?}");
    until_answered(&prometheus, recorded).await;
    let fires = "ALERTS{alertname=\"RadixscopeFleetMemberDown\",cluster=\"gone\"}";
    until_answered(&prometheus, vec![fires.to_owned()]).await;
    assert!(prometheus.rules().await.iter().all(|rule| rule["health"] == "ok"));
    let (is_good, reported) = promtool(&["check", "metrics"], fleet.get("/metrics").await.text());
    assert!(is_good && reported.is_empty(), "{reported}");
}

/// The only value that a panel with one figure shows of a job.
async fn figure(prometheus: &Prometheus, job: &str, title: &str) -> Result<f64, String> {
    let dashboard = dashboard("radixscope.json");
    let panels = dashboard["panels"].as_array().expect("panels");
    let panel = panels.iter().find(|panel| panel["type"] == "stat" && panel["title"] == title).expect(title);
    let query = asked_of(job, panel["targets"][0]["expr"].as_str().expect("a query"));
    match &prometheus.query(&query).await?[..] {
        [one] => Ok(one["value"][1].as_str().and_then(|value| value.parse().ok()).expect("a number")),
        other => Err(format!("{title}: {other:?}")),
    }
}

#[tokio::test]
async fn replicas_of_one_deployment_count_once() {
    let replica = async || {
        Radixscope::start(["demo", "--warm-up", "120", "--speed", "0.000001", "--fault", "gap"]).await
    };
    let (one, two, other) = (replica().await, replica().await, Radixscope::standing_demo().await.0);
    for server in [&one, &two] {
        server.until_source_is("live").await;
    }
    let jobs: [(&str, &[&Radixscope]); 2] = [("replicated", &[&one, &two]), ("other", &[&other])];
    let prometheus = Prometheus::start(&jobs, &paths::checkout().join(RULES)).await;
    wait::until("the dashboard shows what each replica says by itself", async || {
        let cluster = one.cluster().await;
        let workers = cluster["workers"].as_array().expect("workers");
        let sum =
            |field: &str| workers.iter().filter_map(|worker| worker[field].as_u64()).sum::<u64>() as f64;
        let findings = one.json("/api/v1/findings").await;
        let findings = findings["findings"].as_array().expect("findings");
        let active = |severity: &str| findings.iter().filter(|f| f["severity"] == severity).count();
        wait::expect(active("warning") > 0, || "no warning yet".to_owned())?;
        let expected = [
            ("Workers", workers.len() as f64),
            ("Active critical findings", active("critical") as f64),
            ("Active warnings", active("warning") as f64),
            ("KV cache occupancy", sum("blocks") / sum("capacity_blocks")),
        ];
        for (title, of_one) in expected {
            let shown = figure(&prometheus, "replicated", title).await?;
            wait::expect((shown - of_one).abs() < 1e-9, || format!("{title}: {shown}, of one {of_one}"))?;
        }
        // Each alert about Dynamo comes once, whether it waits for its time or fires.
        let alerts =
            "sum by (code) (ALERTS{alertname=~\"Radixscope(Critical|Warning)Finding\",job=\"replicated\"})";
        let alerts = prometheus.query(alerts).await?;
        let (bad, counts) =
            (active("critical") + active("warning"), alerts.iter().map(|alert| &alert["value"][1]));
        wait::expect(alerts.len() == bad && counts.clone().all(|count| count == "1"), || {
            format!("{alerts:?}")
        })
    })
    .await;
    let both = figure(&prometheus, ".*", "Workers").await.expect("a figure");
    let of_other = figure(&prometheus, "other", "Workers").await.expect("a figure");
    let of_one = figure(&prometheus, "replicated", "Workers").await.expect("a figure");
    assert_eq!(both, of_one + of_other, "deployments add up");
}

#[tokio::test]
async fn names_follow_the_conventions_of_prometheus() {
    let server = Radixscope::start(["demo", "--warm-up", "10"]).await;
    server.until_source_is("live").await;
    let text = server.get("/metrics").await.text().to_owned();
    let (is_good, reported) = promtool(&["check", "metrics"], &text);
    assert!(is_good && reported.is_empty(), "{reported}");
    let (is_good, reported) =
        promtool(&["check", "metrics"], "# TYPE radixscope_x counter\nradixscope_x 1\n");
    assert!(!is_good && reported.contains("_total"), "a counter without its suffix is seen: {reported}");
    let samples = metrics::parse(&text).expect("our own figures");
    assert!(samples.iter().all(|sample| sample.name.starts_with("radixscope_")));
}

#[test]
fn the_rules_are_valid_and_the_same_for_the_operator() {
    let read = |path: &str| fs::read_to_string(paths::checkout().join(path)).expect("it is in the checkout");
    let path = paths::checkout().join(RULES);
    let (is_good, reported) = promtool(&["check", "rules", path.to_str().expect("text")], "");
    assert!(is_good, "{reported}");
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
    let of_chart = |file: &str| read(&format!("deploy/helm/radixscope/files/{file}"));
    assert_eq!(of_chart("radixscope.rules.yaml"), read(RULES), "the chart has the rules file");
    assert_eq!(
        of_chart("dashboard.json"),
        read("deploy/grafana/radixscope.json"),
        "the chart has the dashboard"
    );
}
