//! What the simulated processes answer to a scrape, against what really happened to requests.

use std::collections::{BTreeMap, HashSet};

use radixscope_model::id::Millis;
use radixscope_sim::{Channel, Config, RequestRecord, Simulation};

use crate::observed::START;

/// Value of each series of a text, by its name and labels.
type Series = BTreeMap<String, f64>;

fn series(text: &str) -> Series {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        (name.to_owned(), value.parse().expect("a number"))
    };
    let (count, series) = (samples.clone().count(), samples.map(sample).collect::<Series>());
    assert_eq!(series.len(), count, "no series comes twice");
    series
}

/// The last response of each process, and when each process answered.
fn scraped(config: Config, seconds: u64) -> (Simulation, BTreeMap<String, String>, Vec<(u64, String)>) {
    let mut simulation = Simulation::new(config, START).expect("valid");
    let (mut last, mut times) = (BTreeMap::new(), Vec::new());
    simulation.run_until(Millis(START.0 + seconds * 1_000), &mut |m| {
        if m.channel == Channel::Metrics {
            times.push((m.at_ms.since(START), m.name.to_owned()));
            let text = String::from_utf8(m.payload.to_vec()).expect("text");
            last.insert(m.name.to_owned(), text);
        }
    });
    (simulation, last, times)
}

const OF_REQUESTS: &str = "model=\"simulated/llama-70b-fp8\"";
const OF_MODEL: &str = "model=\"simulated/Llama-70B-FP8\"";
const HANDLER: &str = "dynamo_component=\"backend\",dynamo_endpoint=\"generate\",dynamo_namespace=\"dynamo\"";
const ENGINE: &str = "engine=\"0\",model_name=\"simulated/Llama-70B-FP8\"";

#[test]
fn every_process_answers_every_two_seconds() {
    let (_, last, times) = scraped(Config::default(), 20);
    let names: Vec<&str> = last.keys().map(String::as_str).collect();
    assert_eq!(names, ["frontend", "worker-1", "worker-2", "worker-3"]);
    assert_eq!(times.len(), 4 * 10);
    assert!(times.iter().enumerate().all(|(at, (ms, _))| *ms == (at as u64 / 4 + 1) * 2_000));
    let config = Config { metrics: false, ..Config::default() };
    assert!(scraped(config, 20).2.is_empty());
}

#[test]
fn the_frontend_counts_what_happened_to_requests() {
    let (simulation, last, _) = scraped(Config::default(), 120);
    let text = series(&last["frontend"]);
    let of = |name: &str| text[&format!("dynamo_frontend_{name}{{{OF_REQUESTS}}}")];
    let report = simulation.report();
    let requests: Vec<&RequestRecord> = report.requests.iter().collect();
    assert!(requests.len() > 200);
    let sum = |value: fn(&RequestRecord) -> u64| requests.iter().map(|r| value(r)).sum::<u64>() as f64;
    let count = requests.len() as f64;
    assert_eq!(of("request_duration_seconds_count"), count);
    assert!((of("request_duration_seconds_sum") - sum(|r| r.e2e_us) / 1e6).abs() < 1e-3);
    assert_eq!(of("output_sequence_tokens_sum"), sum(|r| r.osl_tokens.into()));
    let success = format!(
        "dynamo_frontend_requests_total{{endpoint=\"chat_completions\",{OF_REQUESTS},request_type=\"stream\",status=\"success\"}}"
    );
    assert_eq!(text[&success], count);
    assert!(!last["frontend"].contains("status=\"error\""));
    // Those that still run have had their first token, too.
    let running = of("time_to_first_token_seconds_count") - count;
    assert!((1.0..=120.0).contains(&running), "{running}");
    assert!(of("time_to_first_token_seconds_sum") > sum(|r| r.ttft_us) / 1e6);
    assert!(of("cached_tokens_sum") > sum(|r| r.cached_tokens.into()));
    assert!(of("cached_tokens_sum") < of("input_sequence_tokens_sum"));
    assert_eq!(of("input_sequence_tokens_count"), of("cached_tokens_count"));
    // Every token but the first of each request follows another.
    assert_eq!(
        of("output_tokens_total"),
        of("inter_token_latency_seconds_count") + of("time_to_first_token_seconds_count")
    );
    let itl_ms = 1e3 * of("inter_token_latency_seconds_sum") / of("inter_token_latency_seconds_count");
    let mean_ms = report.summary(START, Millis(START.0 + 120_000)).itl_ms.mean;
    assert!((itl_ms - mean_ms).abs() < 2.0, "{itl_ms} ms of {mean_ms} ms");
    assert!((80.0..=120.0).contains(&of("inflight_requests")));
}

#[test]
fn the_model_is_described_with_its_name_as_written_and_requests_in_lower_case() {
    let (_, last, _) = scraped(Config::default(), 60);
    let text = series(&last["frontend"]);
    let of_model = |name: &str| text[&format!("dynamo_frontend_model_{name}{{{OF_MODEL}}}")];
    assert_eq!(of_model("kv_cache_block_size"), 32.0);
    assert_eq!(of_model("total_kv_blocks"), 10_738.0);
    assert_eq!((of_model("max_num_seqs"), of_model("max_num_batched_tokens")), (64.0, 16_384.0));
    assert_eq!((of_model("context_length"), of_model("migration_limit")), (32_768.0, 0.0));
    let labelled = text.keys().filter(|name| name.contains("model=\""));
    assert!(labelled.clone().count() > 80);
    assert!(labelled.clone().all(|name| name.contains("frontend_model_") == name.contains(OF_MODEL)));
}

#[test]
fn workers_publish_their_engines_load() {
    let (simulation, last, _) = scraped(Config::default(), 120);
    let (mut hits, mut handled) = (0.0, 0.0);
    for worker in 0..3_u16 {
        let text = series(&last[&format!("worker-{}", worker + 1)]);
        let (running, queued) = simulation.running_and_queued(worker);
        assert_eq!(text[&format!("vllm:num_requests_running{{{ENGINE}}}")], f64::from(running));
        assert_eq!(text[&format!("vllm:num_requests_waiting{{{ENGINE}}}")], f64::from(queued));
        let in_flight = text[&format!("dynamo_component_inflight_requests{{{HANDLER}}}")];
        assert_eq!(in_flight, f64::from(running + queued));
        let usage = f64::from(simulation.used_blocks(worker)) / 10_738.0;
        assert!((text[&format!("vllm:kv_cache_usage_perc{{{ENGINE}}}")] - usage).abs() < 1e-4);
        assert_eq!(text["dynamo_component_uptime_seconds"], 120.0);
        let queried = text[&format!("vllm:prefix_cache_queries_total{{{ENGINE}}}")];
        let hit = text[&format!("vllm:prefix_cache_hits_total{{{ENGINE}}}")];
        assert!(hit > 0.0 && hit < queried);
        hits += hit;
        handled += text[&format!("dynamo_component_requests_total{{{HANDLER}}}")];
    }
    let frontend = series(&last["frontend"]);
    assert_eq!(hits, frontend[&format!("dynamo_frontend_cached_tokens_sum{{{OF_REQUESTS}}}")]);
    assert_eq!(handled, simulation.report().routed_total as f64);
}

#[test]
fn every_family_is_introduced_once_and_before_its_samples() {
    let (_, last, _) = scraped(Config::default(), 60);
    for text in last.values() {
        let mut known = HashSet::new();
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                assert!(known.insert(kind.split(' ').next().expect("a name").to_owned()), "{line}");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().expect("a name");
                let part = |end: &str| name.strip_suffix(end).is_some_and(|family| known.contains(family));
                assert!(
                    known.contains(name) || ["_bucket", "_sum", "_count"].into_iter().any(part),
                    "{line}"
                );
            }
        }
    }
}
