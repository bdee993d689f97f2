//! Metrics of routers other than Dynamo's.

use radixscope_dynamo::prometheus::{self, Scraped, Server};
use radixscope_model::record::{Counter, Gauge, HistogramKind, ProcessRole};

const PRODUCTION_STACK: &str = include_str!("../../fixtures/other_routers/production-stack.prom");
const AIBRIX: &str = include_str!("../../fixtures/other_routers/aibrix.prom");

fn scraped(text: &str) -> Scraped {
    let (scraped, understood) = prometheus::decode(text.as_bytes());
    assert_eq!(understood, Ok(()));
    scraped.expect("metrics")
}

fn server(url: &str, requests: u64) -> Server {
    Server { url: url.to_owned(), requests: Some(requests), is_healthy: Some(true) }
}

#[test]
fn the_router_of_production_stack_is_no_engine_although_its_metrics_are_named_as_an_engine_s() {
    let scraped = scraped(PRODUCTION_STACK);
    assert_eq!((scraped.role, scraped.engine), (ProcessRole::ProductionStackRouter, None));
    let expected = [server("http://127.0.0.1:9101", 0), server("http://127.0.0.1:9102", 1)];
    assert_eq!(scraped.servers, expected);
    // Its gauges of running and waiting requests are its engines', which report them themselves.
    assert_eq!(scraped.gauges, []);
    let expected =
        [(Counter::RequestsOk, 20.0), (Counter::RequestsFailed, 1.0), (Counter::ReceivedRequests, 23.0)];
    assert_eq!(scraped.counters, expected);
    let [duration] = &scraped.histograms[..] else { panic!("one: {:?}", scraped.histograms) };
    assert_eq!((duration.kind, duration.counts.iter().sum()), (HistogramKind::Duration, 21_u64));
    assert!(scraped.workers.is_empty() && scraped.ranks.is_empty(), "{scraped:?}");
}

#[test]
fn an_engine_s_own_metrics_of_the_same_names_remain_an_engine_s() {
    let scraped = scraped("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3\n");
    assert_eq!((scraped.role, scraped.servers.len()), (ProcessRole::Worker, 0));
    assert_eq!(scraped.gauges, [(Gauge::EngineRunningRequests, 3.0)]);
}

#[test]
fn aibrix_counts_its_choices_by_reason_and_by_what_matched() {
    let scraped = scraped(AIBRIX);
    assert_eq!((scraped.role, scraped.engine), (ProcessRole::AibrixGateway, None));
    let count = |counter| scraped.counters.iter().find(|(of, _)| *of == counter).map(|&(_, value)| value);
    let counts = |of: &[Counter]| of.iter().map(|&counter| count(counter)).collect::<Vec<_>>();
    let choices = [Counter::ChosenByPrefix, Counter::PrefixSkipped, Counter::NoPrefix];
    assert_eq!(counts(&choices), [Some(79.0), Some(6.0), Some(15.0)]);
    let matched = [
        Counter::MatchedNothing,
        Counter::MatchedQuarter,
        Counter::MatchedHalf,
        Counter::MatchedThreeQuarters,
        Counter::MatchedMore,
    ];
    // Of shares that never occurred there is no line, which is 0 where others are.
    assert_eq!(counts(&matched), [Some(21.0), Some(0.0), Some(0.0), Some(19.0), Some(60.0)]);
    let others = [Counter::ChoicesFailed, Counter::LoadsUnbalanced, Counter::EventsMissed];
    assert_eq!(counts(&others), [Some(2.0), Some(6.0), Some(7.0)]);
    let requests = [Counter::ReceivedRequests, Counter::RequestsOk, Counter::RequestsFailed];
    assert_eq!(counts(&requests), [Some(102.0), Some(98.0), Some(2.0)]);
    assert_eq!(scraped.gauges, [(Gauge::ConnectedPublishers, 2.0), (Gauge::IndexFollowsEvents, 1.0)]);
}

#[test]
fn another_gateway_s_requests_are_not_counted_as_aibrix_does() {
    let requests = "gateway_request_total 5\ngateway_output_tokens_total 9\n";
    let other = scraped(requests);
    assert_eq!((other.role, other.counters), (ProcessRole::Other, Vec::new()));
    let aibrix = scraped(&format!("{requests}aibrix_kvcache_zmq_connection_status{{pod=\"a\"}} 1\n"));
    let expected = [(Counter::ReceivedRequests, 5.0), (Counter::OutputTokens, 9.0)];
    for counted in expected {
        assert!(aibrix.counters.contains(&counted), "{:?}", aibrix.counters);
    }
}

#[test]
fn servers_are_bounded_in_length_and_number() {
    let line = |url: &str| format!("vllm:num_requests_running{{server=\"{url}\"}} 1\n");
    let (scraped, understood) = prometheus::decode(line(&"x".repeat(257)).as_bytes());
    assert!(scraped.expect("metrics").servers.is_empty() && understood.is_err());
    let many: String = (0..4_097).map(|n| line(&format!("http://{n}:80"))).collect();
    let (scraped, understood) = prometheus::decode(many.as_bytes());
    assert_eq!(scraped.expect("metrics").servers.len(), 4_096);
    assert_eq!(understood.expect_err("one too many").total(), 1);
}
