//! A router of 1.7.0.dev20261026 whose settings were changed twice while it ran, with its log and what its frontend returned at
//! `/router_policy` every 5 s: each decision is computed with the settings that it was made with.

use std::collections::BTreeMap;

use serde::Deserialize;

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Completeness, NotReconstructed, SourceKind, same_cost};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::captures::replay::{millis, received};

const NAME: &str = "../routing/1.7.0.dev20261026-policy";
/// Scales of the prefill term, one after the other.
const SCALES: [f64; 3] = [1.0, 2.0, 0.5];
/// What the frontend logs of a change.
const CHANGED: &str = "Updated router policy parameters";

/// A response, and when it was received.
#[derive(Deserialize)]
struct Reading {
    #[serde(rename = "t")]
    at_s: f64,
    response: String,
}

fn readings() -> Vec<Reading> {
    let lines = Recording::fixture(NAME).lines_of("router_policy.jsonl.gz");
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

#[derive(Clone, Copy, Default)]
struct Sources {
    log: bool,
    policies: bool,
}

fn play(with: Sources) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    let nats = intake.source("nats", SourceKind::Nats, Millis(1), &mut cluster).unwrap();
    let log = intake.source("log", SourceKind::Logs, Millis(1), &mut cluster).unwrap();
    let metrics = intake.source("metrics", SourceKind::Prometheus, Millis(1), &mut cluster).unwrap();
    let mut all = received(NAME, if with.log { &["frontend"] } else { &[] });
    if with.policies {
        all.extend(readings().into_iter().map(|Reading { at_s, response }| {
            (millis(at_s), Payload::RouterPolicy { frontend: "frontend".into(), response: response.into() })
        }));
    }
    all.sort_by_key(|(at, _)| *at);
    let mut flushed = 0;
    for (at_ms, payload) in all {
        if at_ms.0 / 100 > flushed {
            flushed = at_ms.0 / 100;
            intake.flush(at_ms, &mut cluster);
        }
        let source = match payload {
            Payload::LogLine { .. } => log,
            Payload::RouterPolicy { .. } => metrics,
            _ => nats,
        };
        intake.handle(&Received { source, at_ms, payload }, &mut cluster);
    }
    intake.flush(Millis(2_000_000_000_000), &mut cluster);
    assert_eq!(cluster.rejected_total(), 0, "{:?}", cluster.sources());
    cluster
}

/// Scale by request, by the order of the log's lines.
fn scales() -> BTreeMap<String, f64> {
    let mut changes = 0;
    let mut scales = BTreeMap::new();
    for line in Recording::fixture(NAME).log("frontend") {
        changes += usize::from(line.contains(CHANGED));
        if line.contains("Selected worker router_mode=\"kv\"") {
            let (_, id) = line.split_once("request_id=\"").unwrap();
            let (id, _) = id.split_once('"').unwrap();
            scales.insert(id.to_owned(), SCALES[changes]);
        }
    }
    assert_eq!(changes, 2);
    scales
}

/// Decisions with the scale that each was made with.
fn decided<'c>(
    cluster: &'c Cluster,
    scales: &BTreeMap<String, f64>,
) -> impl Iterator<Item = (&'c DecisionEntry, f64)> {
    cluster
        .decisions()
        .newest_first()
        .filter_map(move |entry| Some((entry, *scales.get(entry.decision.request_id.as_deref()?)?)))
}

#[test]
fn every_decision_is_computed_with_the_settings_of_its_time() {
    let scales = scales();
    let cluster = play(Sources { log: true, policies: true });
    let mut by_scale: BTreeMap<String, usize> = BTreeMap::new();
    for (entry, scale) in decided(&cluster, &scales) {
        let decision = &entry.decision;
        assert_eq!(decision.completeness, Completeness::Reconstructed, "{decision:?}");
        assert_eq!(decision.prefill_factor, Some(scale), "{decision:?}");
        let computed = entry.chosen().unwrap().cost;
        assert!(decision.logit.is_some_and(|reported| same_cost(computed, reported)), "{decision:?}");
        *by_scale.entry(scale.to_string()).or_default() += 1;
    }
    println!("{by_scale:?}");
    assert_eq!(by_scale.values().sum::<usize>(), scales.len());
    assert!(by_scale.len() == 3 && by_scale.values().all(|&count| count >= 5), "{by_scale:?}");
    let [state] = cluster.settings() else { panic!("one router: {:?}", cluster.settings()) };
    let steps: Vec<_> = state.steps().map(|step| step.numbers.prefill_load_scale.unwrap()).collect();
    assert_eq!(steps, SCALES);
    assert_eq!(state.latest.numbers.router_temperature, Some(0.4));
}

#[test]
fn without_the_settings_other_scales_are_not_explained() {
    let scales = scales();
    for (entry, scale) in decided(&play(Sources { log: true, policies: false }), &scales) {
        let decision = &entry.decision;
        let expected = (scale != 1.0).then_some(NotReconstructed::Cost);
        // A prompt that is cached whole costs the same with any scale.
        if scale == 1.0 || decision.completeness != Completeness::Reconstructed {
            assert_eq!(decision.not_reconstructed, expected, "{decision:?}");
        }
    }
}

#[test]
fn messages_alone_are_computed_with_them_where_it_is_known_which_applied() {
    let scales = scales();
    let cluster = play(Sources { log: false, policies: true });
    let (mut known, mut all) = (0, 0);
    for (entry, scale) in decided(&cluster, &scales) {
        all += 1;
        if let Some(factor) = entry.decision.prefill_factor {
            known += 1;
            assert_eq!(factor, scale, "{:?}", entry.decision);
        }
    }
    println!("{known} of {all}");
    // Those between two readings of which the settings differ are left out.
    assert!(all + 1 >= scales.len() && known * 10 >= all * 5, "{known} of {all}");
}
