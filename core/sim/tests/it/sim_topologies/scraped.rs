//! What frontends and workers of 1.6 answer to a scrape, against what was published.

use std::collections::BTreeMap;

use radixscope_dynamo::active_sequence::SequenceChange;
use radixscope_dynamo::prometheus;
use radixscope_model::record::{Counter, ProcessRole};
use radixscope_sim::{Channel, Topology};

use crate::sim_topologies::OF_1_6;
use crate::sim_topologies::seen::{Folded, Message, run, small};

/// The last response of each process.
fn last(messages: &[Message]) -> BTreeMap<&str, &str> {
    let scraped = messages.iter().filter(|m| m.channel == Channel::Metrics);
    scraped.map(|m| (&*m.name, std::str::from_utf8(&m.payload).expect("text"))).collect()
}

/// Sum of the samples of a name that carry all of `labels`.
fn sum(text: &str, name: &str, labels: &[&str]) -> f64 {
    let samples =
        text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
    let with = samples.filter(|line| labels.iter().all(|label| line.contains(label)));
    with.map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number"))
        .sum()
}

#[test]
fn every_process_answers_and_is_understood() {
    for topology in OF_1_6 {
        let (simulation, messages) = run(small(topology), 60);
        let last = last(&messages);
        assert_eq!(last.len(), 1 + usize::from(simulation.workers()));
        for (name, text) in last {
            let (scraped, faults) = prometheus::decode(text.as_bytes());
            faults.expect("understood");
            let scraped = scraped.expect("metrics");
            let (role, id) = match name.strip_prefix("worker-") {
                Some(at) => {
                    let at: u16 = at.parse().expect("a number");
                    (ProcessRole::Worker, simulation.worker_id(at - 1))
                }
                None => (ProcessRole::Frontend, simulation.router_id()),
            };
            assert_eq!((scraped.role, scraped.instance), (role, Some(id)), "{name}");
        }
    }
}

#[test]
fn a_frontend_reports_each_pool_by_role_and_phase() {
    let (simulation, messages) = run(small(Topology::Disaggregated), 60);
    let (seen, last) = (Folded::of(&messages), last(&messages));
    let text = last["frontend"];
    let added = |component: &str| {
        let of = |reported: &&crate::sim_topologies::seen::Reported| {
            reported.component == component && matches!(reported.step, SequenceChange::Added(_))
        };
        seen.reported.iter().filter(of).count() as f64
    };
    let router = |rest: &str, labels: &[&str]| sum(text, &format!("dynamo_component_router_{rest}"), labels);
    assert_eq!(router("input_sequence_tokens_count", &["phase=\"prefill\""]), added("prefill"));
    assert_eq!(router("input_sequence_tokens_count", &["phase=\"decode\""]), added("backend"));
    assert_eq!(router("requests_total", &[]), added("prefill") + added("backend"));
    assert_eq!(router("worker_registered", &["worker_type=\"prefill\""]), 3.0);
    assert_eq!(router("worker_registered", &["worker_type=\"decode\""]), 3.0);
    // What the prefill router found, by its own log.
    let found: f64 = seen
        .selected()
        .filter_map(|selected| selected.cached_blocks)
        .map(|blocks| (0..2_000).map(f64::from).find(|&n| blocks.reads_as(n)).expect("whole blocks"))
        .sum();
    let selected = |phase| router("kv_selected_cached_prefix_tokens_total", &[phase]);
    assert!(found > 100.0);
    assert_eq!((selected("phase=\"prefill\""), selected("phase=\"decode\"")), (found * 16.0, 0.0));
    let hit_rates = router("kv_hit_rate_count", &[]);
    assert_eq!(hit_rates, 2.0 * added("prefill"), "both choices observe what was found");
    // Blocks and tokens are each counted where they load.
    let active =
        |what: &str, role: &str| sum(text, &format!("dynamo_frontend_worker_active_{what}"), &[role]);
    assert_eq!(active("decode_blocks", "worker_type=\"prefill\""), 0.0);
    assert!(active("decode_blocks", "worker_type=\"decode\"") > 0.0);
    assert_eq!(active("prefill_tokens", "worker_type=\"decode\""), 0.0);
    let events: usize = simulation.workers().into();
    assert_eq!(events, 6);
    let (scraped, _) = prometheus::decode(text.as_bytes());
    let scraped = scraped.expect("metrics");
    let stored = scraped.counters.iter().find(|(counter, _)| *counter == Counter::StoredOk);
    assert!(stored.is_some_and(|(_, count)| *count > 50.0), "{stored:?}");
}

#[test]
fn a_frontend_of_two_models_reports_each() {
    let (_, messages) = run(small(Topology::TwoModels), 60);
    let last = last(&messages);
    let (scraped, _) = prometheus::decode(last["frontend"].as_bytes());
    let scraped = scraped.expect("metrics");
    let models: Vec<&str> = scraped.models.iter().map(|model| &*model.name).collect();
    assert_eq!(models, ["simulated/Llama-70B-FP8", "simulated/Qwen-72B-FP8"]);
    for model in models {
        let label = format!("model=\"{model}\"");
        let count = |name: &str| sum(last["frontend"], name, &[&label]);
        assert!(count("dynamo_frontend_time_to_first_token_seconds_count") > 20.0);
        assert!(count("dynamo_frontend_requests_total") > 20.0);
        assert!(count("dynamo_component_router_input_sequence_tokens_count") > 20.0);
    }
    assert!(last["worker-1"].contains("Llama") && last["worker-6"].contains("Qwen"));
}

/// Type, labels and help of a family, as recorded.
struct Family<'a> {
    kind: &'a str,
    labels: Vec<&'a str>,
    help: &'a str,
}

#[test]
fn every_family_is_written_as_recorded() {
    let recorded: BTreeMap<(&str, &str), Family<'_>> = include_str!("../../fixtures/metrics_1_6_1.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let [process, name, kind, labels, help] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("five columns: {line}");
            };
            ((process, name), Family { kind, labels: labels.split(';').collect(), help })
        })
        .collect();
    let mut compared = 0;
    for topology in OF_1_6 {
        let (_, messages) = run(small(topology), 30);
        for (name, text) in last(&messages) {
            let process = if name.starts_with("worker") { "worker" } else { "frontend" };
            // What an engine reports is its own.
            for line in text.lines().filter(|line| !line.contains("vllm:")) {
                if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
                {
                    assert_eq!(recorded[&(process, name)].help, help);
                } else if let Some((name, kind)) =
                    line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
                {
                    assert_eq!(recorded[&(process, name)].kind, kind);
                } else {
                    let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
                    let family = ["_bucket", "_sum", "_count"]
                        .into_iter()
                        .find_map(|end| recorded.get(&(process, name.strip_suffix(end)?)))
                        .unwrap_or_else(|| &recorded[&(process, name)]);
                    let labels: Vec<&str> = rest
                        .split(['{', ',', '}'])
                        .filter_map(|label| label.split_once("=\""))
                        .map(|(label, _)| label)
                        .filter(|label| *label != "le")
                        .collect();
                    assert!(family.labels.contains(&&*labels.join(",")), "{line}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
