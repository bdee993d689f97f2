//! What routers were started with, by the real logs of 1.6.1: a frontend at DEBUG writes its configuration, and one with a prefill pool the
//! settings of the prefill router.

use radixscope_captures::Recording;
use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Role, RouterNumbers, SettingsSource, SourceKind};
use radixscope_state::cluster::Cluster;

/// Dynamo's defaults of that version, which both lines have.
const DEFAULTS: RouterNumbers = RouterNumbers {
    overlap_score_weight: None,
    prefill_load_scale: Some(1.0),
    overlap_score_credit: Some(1.0),
    overlap_score_credit_decay: Some(0.0),
    host_cache_hit_weight: Some(0.75),
    disk_cache_hit_weight: Some(0.25),
    shared_cache_multiplier: None,
    decode_active_request_weight: Some(0.0),
    router_temperature: Some(0.0),
};

/// Roles and numbers that the log of a recording's frontend shows, with `changed` replacing a text in its lines.
fn settings(recording: &Recording, changed: (&str, &str)) -> Vec<(Option<Role>, RouterNumbers)> {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    intake.source("log", SourceKind::Logs, Millis(0), &mut cluster).unwrap();
    for (at, line) in recording.log("frontend").enumerate() {
        let line = line.replace(changed.0, changed.1).into();
        let payload = Payload::LogLine { log: "frontend".into(), line };
        intake.handle(&Received { source: SourceIx(0), at_ms: Millis(at as u64), payload }, &mut cluster);
    }
    assert!(cluster.sources()[0].rejected.is_empty(), "{:?}", cluster.sources()[0].rejected);
    let started = cluster.settings().iter().filter(|state| state.source == SettingsSource::StartUpLog);
    started.map(|state| (state.of.role, state.latest.numbers)).collect()
}

#[test]
fn a_configuration_in_the_log_is_that_of_routers_that_compute_prompts() {
    let both = |numbers| vec![(Some(Role::Aggregated), numbers), (Some(Role::Prefill), numbers)];
    let jsonl = |changed| settings(&Recording::fixture("1.6.1-log-jsonl-debug"), changed);
    assert_eq!(jsonl(("", "")), both(DEFAULTS));
    let scaled = RouterNumbers { prefill_load_scale: Some(2.5), ..DEFAULTS };
    let scale = (r#"\"prefill_load_scale\":1.0"#, r#"\"prefill_load_scale\":2.5"#);
    assert_eq!(jsonl(scale), both(scaled));
    let file = (r#"\"router_policy_config\":null"#, r#"\"router_policy_config\":\"policy.yaml\""#);
    assert_eq!(jsonl(file), [], "the file has the numbers");
    // In text, and with the line of the prefill router behind it.
    let text = |changed| settings(&Recording::topology("1.6.1-disagg-default"), changed);
    assert_eq!(text(("", "")), both(DEFAULTS));
    let of_prefill = text(("overlap_score_credit: 1.0", "overlap_score_credit: 0.5"));
    let half = RouterNumbers { overlap_score_credit: Some(0.5), ..DEFAULTS };
    assert_eq!(of_prefill, [(Some(Role::Aggregated), DEFAULTS), (Some(Role::Prefill), half)]);
}

#[test]
fn a_prefill_router_s_settings_are_logged_at_info() {
    let of_prefill = settings(&Recording::topology("1.6.1-disagg"), ("", ""));
    assert_eq!(of_prefill, [(Some(Role::Prefill), DEFAULTS)]);
}

#[test]
fn a_log_that_names_workers_of_a_pool_was_written_by_its_router() {
    let recording = Recording::topology("1.6.1-disagg");
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    intake.source("all", SourceKind::Nats, Millis(0), &mut cluster).unwrap();
    let mut handle = |payload, cluster: &mut Cluster| {
        intake.handle(&Received { source: SourceIx(0), at_ms: Millis(1), payload }, cluster);
    };
    let mut subjects = NatsSubjects::default();
    for message in recording.subscribed() {
        let payload = subjects.publication(&message.subject, message.reply.as_deref(), message.payload);
        payload.into_iter().for_each(|payload| handle(payload, &mut cluster));
    }
    for change in recording.discovery() {
        let change: serde_json::Value = serde_json::from_str(&change).unwrap();
        for entry in change["kvs"].as_array().unwrap() {
            let (key, value) = (entry["key"].as_str().unwrap(), Some(entry["value"].to_string().into()));
            handle(Payload::Discovery { key: key.into(), value, lease: None }, &mut cluster);
        }
    }
    let named = |cluster: &Cluster| -> Vec<(String, Option<Role>, RouterNumbers)> {
        let started = cluster.settings().iter().filter(|state| state.source == SettingsSource::StartUpLog);
        let named = started.filter(|state| !state.of.component.is_empty() && state.left_ms.is_none());
        named.map(|state| (state.of.component.clone(), state.of.role, state.latest.numbers)).collect()
    };
    let line = |line: String| Payload::LogLine { log: "frontend".into(), line: line.into() };
    let lines: Vec<String> = recording.log("frontend").collect();
    let stops = lines.iter().position(|line| line.contains("Runtime shutdown initiated")).unwrap();
    lines[..stops].iter().for_each(|of_log| handle(line(of_log.clone()), &mut cluster));
    assert_eq!(named(&cluster), [("prefill".to_owned(), Some(Role::Prefill), DEFAULTS)]);
    handle(line(lines[stops].clone()), &mut cluster);
    assert_eq!(named(&cluster), [], "the next process may run with others");
}
