//! Hand-written scrapes: versions and engines that no recording contains, and malformed text.

use super::*;
use radixscope_model::record::HistogramKind;

fn read(text: &str) -> Scraped {
    let (scraped, understood) = decode(text.as_bytes());
    assert_eq!(understood, Ok(()));
    scraped.expect("metrics")
}

fn gauge(scraped: &Scraped, gauge: Gauge) -> Option<f64> {
    scraped.gauges.iter().find(|(known, _)| *known == gauge).map(|(_, value)| *value)
}

fn counter(scraped: &Scraped, counter: Counter) -> Option<f64> {
    scraped.counters.iter().find(|(known, _)| *known == counter).map(|(_, value)| *value)
}

fn reasons(understood: Result<(), Faults>) -> Vec<(Reason, u64)> {
    let of = |faults: Faults| faults.iter().map(|(error, count)| (error.reason, count)).collect();
    understood.err().map(of).unwrap_or_default()
}

fn rank(dp_rank: u32, kv_usage: Option<f64>, used: Option<u64>, total: Option<u64>) -> RankFigures {
    RankFigures { dp_rank, kv_usage, used_blocks: used, total_blocks: total }
}

#[test]
fn a_worker_of_0_8_says_how_full_its_cache_is() {
    let scraped = read(
        "# TYPE dynamo_component_kvstats_active_blocks gauge\n\
         dynamo_component_kvstats_active_blocks{dynamo_component=\"backend\",dynamo_namespace=\"dynamo\"} 412\n\
         dynamo_component_kvstats_total_blocks{dynamo_component=\"backend\",dynamo_namespace=\"dynamo\"} 1600\n\
         dynamo_component_kvstats_gpu_cache_usage_percent{dynamo_component=\"backend\"} 0.2575\n\
         dynamo_component_kvstats_gpu_prefix_cache_hit_rate{dynamo_component=\"backend\"} 0.5\n\
         dynamo_component_requests_total{dynamo_component=\"backend\",dynamo_endpoint=\"generate\"} 7\n\
         dynamo_component_uptime_seconds 12.5\n",
    );
    assert_eq!(scraped.role, ProcessRole::Worker);
    assert_eq!(scraped.ranks, [rank(0, Some(0.2575), Some(412), Some(1600))]);
    assert_eq!(counter(&scraped, Counter::HandledRequests), Some(7.0));
    assert_eq!(gauge(&scraped, Gauge::UptimeSeconds), Some(12.5));
    assert_eq!(scraped.instance, None);
}

#[test]
fn a_worker_of_1_2_says_the_same_for_each_rank_and_names_itself() {
    let scraped = read(
        "dynamo_component_gpu_cache_usage_percent{dp_rank=\"0\",model=\"m\",worker_id=\"6a6ca1fa22d56d08\"} 0.5\n\
         dynamo_component_gpu_cache_usage_percent{dp_rank=\"1\",model=\"m\",worker_id=\"6a6ca1fa22d56d08\"} 0.25\n\
         dynamo_component_total_blocks{dp_rank=\"0\",model=\"m\",worker_id=\"6a6ca1fa22d56d08\"} 800\n\
         dynamo_component_total_blocks{dp_rank=\"1\",model=\"m\",worker_id=\"6a6ca1fa22d56d08\"} 800\n\
         vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.125\n\
         dynamo_component_requests_total{dynamo_endpoint=\"worker_kv_query_source_cd5\"} 3\n\
         dynamo_component_requests_total{dynamo_endpoint=\"generate\"} 80\n\
         dynamo_component_kv_publisher_zmq_events_total{event_type=\"stored\",stage=\"received\"} 257\n\
         dynamo_component_kv_publisher_zmq_events_total{event_type=\"removed\",stage=\"received\"} 228\n",
    );
    assert_eq!(scraped.role, ProcessRole::Worker);
    assert_eq!(scraped.instance, Some(0x6a6c_a1fa_22d5_6d08));
    assert_eq!(scraped.ranks, [rank(0, Some(0.5), None, Some(800)), rank(1, Some(0.25), None, Some(800))]);
    assert_eq!(counter(&scraped, Counter::HandledRequests), Some(80.0));
    assert_eq!(counter(&scraped, Counter::PublisherReceived), Some(485.0));
    assert_eq!(counter(&scraped, Counter::PublisherAccepted), Some(0.0), "offered, and none so far");
    assert_eq!(counter(&scraped, Counter::PublisherSuspicious), None, "not offered");
}

#[test]
fn engines_are_understood_by_their_own_names() {
    let vllm = read(
        "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n\
         vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\n\
         vllm:gpu_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.75\n\
         vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.5\n\
         vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 1000.0\n\
         vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 640.0\n\
         vllm:cache_config_info{block_size=\"16\",x=\"a,b\"} 1.0\n",
    );
    assert_eq!((vllm.role, gauge(&vllm, Gauge::EngineRunningRequests)), (ProcessRole::Worker, Some(3.0)));
    assert_eq!(gauge(&vllm, Gauge::EngineWaitingRequests), Some(2.0));
    assert_eq!(vllm.ranks, [rank(0, Some(0.5), None, None)]);
    assert_eq!(counter(&vllm, Counter::EnginePrefixHits), Some(640.0));

    let sglang = read(
        "sglang:num_running_reqs{dp_rank=\"1\",model_name=\"m\",tp_rank=\"0\"} 4\n\
         sglang:num_queue_reqs{dp_rank=\"1\",model_name=\"m\",tp_rank=\"0\"} 1\n\
         sglang:token_usage{dp_rank=\"1\",model_name=\"m\",tp_rank=\"0\"} 0.28\n\
         sglang:prompt_tokens_total{model_name=\"m\"} 8.128902e+06\n\
         sglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} 500\n\
         sglang:cached_tokens_total{cache_source=\"host\",model_name=\"m\"} 20\n",
    );
    assert_eq!(sglang.ranks, [rank(1, Some(0.28), None, None)]);
    assert_eq!(gauge(&sglang, Gauge::EngineRunningRequests), Some(4.0));
    assert_eq!(counter(&sglang, Counter::EnginePrefixQueries), Some(8_128_902.0));
    assert_eq!(counter(&sglang, Counter::EnginePrefixHits), Some(520.0));

    let trtllm = read(
        "trtllm_kv_cache_utilization{engine_type=\"trtllm\",model_name=\"m\"} 0.125\n\
         trtllm_kv_cache_used_blocks{engine_type=\"trtllm\",model_name=\"m\"} 100\n\
         trtllm_kv_cache_max_blocks{engine_type=\"trtllm\",model_name=\"m\"} 800\n\
         trtllm_time_to_first_token_seconds_bucket{le=\"0.1\"} 2\n\
         trtllm_time_to_first_token_seconds_bucket{le=\"+Inf\"} 3\n\
         trtllm_time_to_first_token_seconds_count 3\n\
         trtllm_time_to_first_token_seconds_sum 0.5\n",
    );
    assert_eq!(trtllm.ranks, [rank(0, Some(0.125), Some(100), Some(800))]);
    let ttft = &trtllm.histograms[0];
    assert_eq!((ttft.kind, &*ttft.bounds, &*ttft.counts), (HistogramKind::Ttft, &[0.1][..], &[2, 1][..]));
}

#[test]
fn a_frontend_with_a_prefix_of_its_own_reads_like_any_other() {
    let text = |prefix: &str| {
        format!(
            "# TYPE {prefix}_model_kv_cache_block_size gauge\n\
             {prefix}_model_kv_cache_block_size{{model=\"Org/Model\"}} 16\n\
             {prefix}_requests_total{{model=\"org/model\",status=\"success\"}} 9\n\
             {prefix}_requests_total{{model=\"org/model\",status=\"error\"}} 1\n\
             {prefix}_queued_requests{{model=\"org/model\"}} 2\n"
        )
    };
    let (custom, usual) = (text("my:llm"), text("dynamo_frontend"));
    let (custom, usual) = (read(&custom), read(&usual));
    assert_eq!(custom, usual);
    assert_eq!(custom.role, ProcessRole::Frontend);
    assert_eq!(custom.models.len(), 1);
    assert_eq!((&*custom.models[0].name, custom.models[0].block_size_tokens), ("Org/Model", Some(16)));
    assert_eq!(counter(&custom, Counter::RequestsOk), Some(9.0));
    assert_eq!(counter(&custom, Counter::RequestsFailed), Some(1.0));
    assert_eq!(gauge(&custom, Gauge::HttpQueuedRequests), Some(2.0));
}

#[test]
fn a_frontends_first_token_counts_before_the_routers_in_any_order() {
    let histogram = |name: &str, count: u64| {
        format!("{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum 1\n{name}_count {count}\n")
    };
    let frontend = histogram("dynamo_frontend_time_to_first_token_seconds", 5);
    let router = histogram("dynamo_component_router_time_to_first_token_seconds", 4);
    for text in [format!("{frontend}{router}"), format!("{router}{frontend}")] {
        let scraped = read(&text);
        assert_eq!(scraped.histograms.len(), 1);
        assert_eq!(*scraped.histograms[0].counts, [5]);
    }
    assert_eq!(*read(&router).histograms[0].counts, [4]);
}

#[test]
fn histograms_are_summed_over_models() {
    let model = |name: &str, low: u64, all: u64| {
        format!(
            "dynamo_frontend_cached_tokens_bucket{{model=\"{name}\",le=\"+Inf\"}} {all}\n\
             dynamo_frontend_cached_tokens_bucket{{model=\"{name}\",le=\"100\"}} {low}\n\
             dynamo_frontend_cached_tokens_sum{{model=\"{name}\"}} 50\n"
        )
    };
    let text = format!("{}{}", model("a", 1, 3), model("b", 2, 2));
    let scraped = read(&text);
    let cached = &scraped.histograms[0];
    assert_eq!((&*cached.bounds, &*cached.counts, cached.sum), (&[100.0][..], &[3, 2][..], 100.0));
}

#[test]
fn what_a_frontend_says_of_workers_keeps_every_digit_of_their_ids() {
    let scraped = read(
        "dynamo_frontend_worker_active_decode_blocks{dp_rank=\"0\",worker_id=\"18446744073709551615\"} 12\n\
         dynamo_frontend_worker_active_prefill_tokens{dp_rank=\"0\",worker_id=\"18446744073709551615\"} 34\n\
         dynamo_component_router_worker_registered{dp_rank=\"0\",router_worker_id=\"18446744073709551615\",worker_id=\"6a6ca1fa3e75d627\"} 1\n\
         dynamo_component_router_worker_registered{dp_rank=\"1\",router_worker_id=\"7\"} 0\n",
    );
    let whole = WorkerFigures {
        decode_blocks: Some(12),
        prefill_tokens: Some(34),
        registered: Some(true),
        ..WorkerFigures::new(Worker::new(u64::MAX, 0))
    };
    let other = WorkerFigures { registered: Some(false), ..WorkerFigures::new(Worker::new(7, 1)) };
    assert_eq!(scraped.workers, [other, whole]);
    assert_eq!(scraped.role, ProcessRole::Frontend);
    assert_eq!(scraped.instance, Some(0x6a6c_a1fa_3e75_d627));
}

#[test]
fn a_bad_line_costs_the_figure_it_is_about_and_no_other() {
    let text = "dynamo_component_uptime_seconds 5\n\
         dynamo_frontend_requests_total{status=\"success\",model=\"a\"} 9\n\
         dynamo_frontend_requests_total{status=\"success\",model=\"b} 9\n\
         dynamo_frontend_output_tokens_total NaN\n\
         dynamo_frontend_inflight_requests -1\n\
         vllm:gpu_cache_usage_perc 37.5\n\
         <html>\n\
         process_something_else NaN\n\
         dynamo_frontend_queued_requests 4\n";
    let (scraped, understood) = decode(text.as_bytes());
    let scraped = scraped.expect("metrics");
    assert_eq!(counter(&scraped, Counter::RequestsOk), None, "half of a sum would look like a restart");
    assert_eq!(counter(&scraped, Counter::OutputTokens), None);
    assert_eq!(gauge(&scraped, Gauge::InFlightRequests), None);
    assert_eq!(gauge(&scraped, Gauge::UptimeSeconds), Some(5.0));
    assert_eq!(gauge(&scraped, Gauge::HttpQueuedRequests), Some(4.0));
    assert_eq!(reasons(understood), [(Reason::Malformed, 2), (Reason::WrongType, 3)]);
}

#[test]
fn histograms_that_cannot_be_are_refused() {
    let of = |lines: &[(&str, &str)]| {
        let line = |(of, value): &(&str, &str)| format!("dynamo_frontend_cached_tokens_{of} {value}\n");
        let text: String = lines.iter().map(line).collect();
        let (scraped, understood) = decode(text.as_bytes());
        assert!(scraped.is_some_and(|scraped| scraped.histograms.is_empty()));
        reasons(understood)
    };
    let inf = ("bucket{le=\"+Inf\"}", "3");
    assert_eq!(of(&[("sum", "1"), ("count", "3")]), [(Reason::MissingField, 1)]);
    assert_eq!(of(&[inf, ("count", "3")]), [(Reason::MissingField, 1)]);
    assert_eq!(of(&[inf, ("sum", "1"), ("count", "4")]), [(Reason::Malformed, 1)]);
    assert_eq!(of(&[inf, ("sum", "1"), ("bucket{le=\"1\"}", "4")]), [(Reason::Malformed, 1)]);
    assert_eq!(of(&[inf, ("sum", "1"), ("bucket{le=\"x\"}", "1")]), [(Reason::WrongType, 1)]);
    assert_eq!(of(&[inf, ("sum", "1"), ("bucket{le=\"1\"}", "0.5")]), [(Reason::WrongType, 1)]);
    assert_eq!(of(&[inf, ("sum", "1"), ("bucket", "1")]), [(Reason::MissingField, 1)]);
    let bounds: Vec<String> = (0..65).map(|i| format!("bucket{{le=\"{i}\"}}")).collect();
    let many: Vec<(&str, &str)> =
        bounds.iter().map(|of| (of.as_str(), "0")).chain([inf, ("sum", "1")]).collect();
    assert_eq!(of(&many), [(Reason::TooLarge, 1)]);
}

#[test]
fn a_text_that_breaks_off_loses_its_last_figure() {
    let whole = "dynamo_component_uptime_seconds 5\ndynamo_frontend_output_tokens_total 123456\n";
    let (scraped, understood) = decode(&whole.as_bytes()[..whole.len() - 4]);
    assert_eq!(counter(&scraped.expect("metrics"), Counter::OutputTokens), None);
    assert_eq!(reasons(understood), [(Reason::Truncated, 1)]);
}

#[test]
fn what_is_no_metrics_at_all_is_one_fault_a_reason() {
    for (text, reason) in [
        (&b""[..], Reason::Malformed),
        (b"# only comments\n", Reason::Malformed),
        (b"<!doctype html>\n<html>\n</html>\n", Reason::Malformed),
        (b"\xff\xfe\n", Reason::Malformed),
    ] {
        let (scraped, understood) = decode(text);
        assert_eq!(scraped, None);
        assert!(!may_be_metrics(text));
        assert_eq!(reasons(understood).first().map(|(reason, _)| *reason), Some(reason));
    }
    let many = "x 1\n".repeat(MAX_SAMPLES as usize + 1);
    let (scraped, understood) = decode(many.as_bytes());
    assert_eq!((scraped, reasons(understood)), (None, vec![(Reason::TooLarge, 1)]));
}

#[test]
fn metrics_are_distinguished_from_pages_by_their_first_line() {
    assert!(may_be_metrics(b"# HELP up .\n# TYPE up gauge\nup 1\n"));
    assert!(!may_be_metrics(b"{\"status\":\"healthy\"}\nup 1\n"));
}

#[test]
fn roles_follow_from_what_is_offered() {
    for (text, role) in [
        ("up 1\n", ProcessRole::Other),
        ("dynamo_component_uptime_seconds 3\n", ProcessRole::Other),
        (
            "dynamo_component_kv_cache_events_applied{event_type=\"stored\",status=\"ok\"} 3\n",
            ProcessRole::Router,
        ),
        ("dynamo_component_requests_total{dynamo_endpoint=\"generate\"} 3\n", ProcessRole::Worker),
        ("dynamo_component_requests_total{dynamo_endpoint=\"other\"} 3\n", ProcessRole::Other),
        ("vllm:num_requests_running 3\ndynamo_component_router_requests_total 1\n", ProcessRole::Worker),
        ("dynamo_frontend_disconnected_clients 0\nvllm:num_requests_running 3\n", ProcessRole::Frontend),
    ] {
        assert_eq!(read(text).role, role, "{text}");
    }
}

#[test]
fn only_a_frontend_lists_workers_and_only_from_1_7_on_in_its_metrics() {
    let worker =
        "# HELP dynamo_frontend_x y\ndynamo_component_requests_total{dynamo_endpoint=\"generate\"} 1\n";
    let old = "dynamo_frontend_inflight_requests{model=\"m\"} 1\n";
    let named = "acme_model_kv_cache_block_size{model=\"m\"} 16\n";
    let state = "_router_worker_state{router_worker_id=\"7\",state=\"available\",reason=\"none\"} 1\n";
    for (text, list) in [
        (worker.to_owned(), WorkerList::Nowhere),
        (format!("{worker}{old}"), WorkerList::AtHealth),
        (named.to_owned(), WorkerList::AtHealth),
        (format!("{old}dynamo_frontend{state}"), WorkerList::InMetrics),
        (format!("{named}acme{state}"), WorkerList::InMetrics),
    ] {
        assert_eq!(worker_list(text.as_bytes()), list, "{text}");
    }
}

#[test]
fn what_a_router_makes_of_workers_is_read_and_what_is_not_known_says_nothing() {
    use radixscope_model::id::WorkerId;
    use radixscope_model::record::RoutingState::{Available, Excluded, Pending, Unavailable};
    let row = |id, state, reason, value| {
        format!(
            "dynamo_frontend_router_worker_state{{router_worker_id=\"{id}\",state=\"{state}\",reason=\"{reason}\"}} {value}\n"
        )
    };
    let text = [
        row(1, "available", "none", 1),
        row(2, "excluded", "unavailable", 1),
        row(3, "pending", "initializing", 1),
        row(4, "excluded", "overloaded", 1),
        row(5, "excluded", "unavailable", 0),
        row(6, "excluded", "unavailable", 1),
        row(6, "available", "none", 1),
        row(7, "resting", "none", 1),
        "dynamo_frontend_router_workers{state=\"discovered\",worker_type=\"decode\"} 6\n".to_owned(),
        "dynamo_frontend_router_workers{state=\"available\",worker_type=\"decode\"} 2\n".to_owned(),
    ];
    let text = text.concat();
    let scraped = read(&text);
    let states = [Available, Unavailable, Pending, Excluded, Available, Excluded];
    let ids = [1, 2, 3, 4, 6, 7].map(WorkerId);
    let found: Vec<_> = scraped.states.iter().map(|of| (of.id, of.state)).collect();
    assert_eq!(found, ids.into_iter().zip(states).collect::<Vec<_>>());
    assert_eq!(scraped.discovered, Some(6));
}

#[test]
fn requests_on_a_worker_are_summed_over_their_phases() {
    let row = |phase, n| {
        format!(
            "dynamo_frontend_worker_active_requests{{dp_rank=\"0\",request_phase=\"{phase}\",worker_id=\"7\"}} {n}\n"
        )
    };
    let text = [row("decode", 3), row("prefill", 1)].concat();
    assert_eq!(read(&text).workers[0].active_requests, Some(4));
}
