//! What recorded deployments say that are not one aggregated model: roles, tiers, pictures, modes of routing, workers that left.

use radixscope_captures::Message;
use radixscope_dynamo::active_sequence::{self, ActiveSequence, AddRequest, SequenceChange};
use radixscope_dynamo::discovery::ModelCard;
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::kv_event::{KvData, KvEvents, StorageTier};
use radixscope_dynamo::log_line::{self, LogEvent, LogRecord, UnreachableWhy};
use radixscope_dynamo::prometheus::{self, Scraped};
use radixscope_dynamo::subject;
use radixscope_model::id::{Worker, WorkerId};
use radixscope_model::record::{
    Counter, Gauge, HistogramKind, LogSignal, PolicyClassFigures, QueueFigures, Role, RoutingMode,
};

const CARDS: &str = include_str!("../../fixtures/topologies/cards.jsonl");
const LOG_LINES: &str = include_str!("../../fixtures/topologies/log_lines.tsv");
const MESSAGES: &str = include_str!("../../fixtures/topologies/messages.jsonl");

/// The payloads of a recording's messages, with their subjects.
fn messages(recording: &str) -> Vec<(String, Vec<u8>, Format)> {
    let of = format!("{{\"c\":\"{recording}\"");
    let lines: Vec<_> = MESSAGES.lines().filter(|line| line.starts_with(&of)).collect();
    assert!(!lines.is_empty(), "nothing of {recording}");
    let payload = |line: &&str| {
        let message = Message::read(line);
        let (payload, format) = open(&message.payload).expect("an envelope").payload();
        (message.subject.clone(), payload.to_vec(), format)
    };
    lines.iter().map(payload).collect()
}

fn log(recording: &str) -> Vec<Option<LogRecord<'static>>> {
    let lines = LOG_LINES.lines().filter_map(|line| line.strip_prefix(recording)?.strip_prefix('\t'));
    let decoded = |line: &str| -> Option<LogRecord<'static>> {
        log_line::decode(line.as_bytes()).expect("a real line decodes").map(LogRecord::into_owned)
    };
    let all: Vec<_> = lines.map(decoded).collect();
    assert!(!all.is_empty(), "nothing of {recording}");
    all
}

fn events(recording: &str) -> Vec<LogEvent<'static>> {
    log(recording).into_iter().flatten().map(|line| line.event).collect()
}

#[test]
fn cards_give_the_role_where_they_can() {
    let cards: Vec<ModelCard> = CARDS
        .lines()
        .map(|card| ModelCard::decode(card.as_bytes()).expect("a real card decodes").expect("a card"))
        .collect();
    let actual: Vec<_> = cards.iter().map(|card| (&*card.component, card.role())).collect();
    let (prefill, decode, aggregated) = (Some(Role::Prefill), Some(Role::Decode), Some(Role::Aggregated));
    let disaggregated = [("backend", decode), ("prefill", prefill)];
    // The card of a decode worker of 0.9 is that of an aggregated one.
    let old = [("backend", None), ("prefill", prefill)];
    let two_models = [("backend", aggregated), ("backend2", aggregated)];
    assert_eq!(actual, [disaggregated, old, two_models].concat());
    let needs: Vec<&[Role]> = cards.iter().map(|card| &*card.needs).collect();
    assert_eq!(needs, [&[Role::Prefill][..], &[Role::Decode], &[], &[], &[], &[]]);
    let types: Vec<_> = cards.iter().filter_map(|card| card.model_type.as_deref()).collect();
    let chat = "Chat | Completions";
    assert_eq!(types, [chat, "", chat, "Prefill", chat, chat]);
}

#[test]
fn what_a_card_needs_costs_no_card_in_another_form() {
    let line = CARDS.lines().next().expect("a card");
    for (needs, roles) in [
        (r#"[["prefill"],["Decode","prefill","encode"]]"#, vec![Role::Prefill, Role::Decode]),
        (r#"{"all":["prefill"]}"#, vec![]),
        (r#"["prefill"]"#, vec![]),
        ("null", vec![]),
        (&format!("[[{}\"prefill\"]]", "\"x\",".repeat(64)), vec![]),
    ] {
        let card = line.replace(r#""needs":[["prefill"]]"#, &format!(r#""needs":{needs}"#));
        let card = ModelCard::decode(card.as_bytes()).expect("decodes").expect("a card");
        assert_eq!((card.needs, card.worker_type.as_deref()), (roles, Some("decode")), "{needs}");
    }
    let card = line.replace(r#""model_type":"Chat | Completions""#, r#""model_type":3"#);
    let card = ModelCard::decode(card.as_bytes()).expect("decodes").expect("a card");
    assert_eq!((card.model_type.as_deref(), card.role()), (None, Some(Role::Decode)));
}

fn added(steps: &[ActiveSequence<'_>]) -> Vec<AddRequest> {
    let added = |step: &ActiveSequence<'_>| match &step.step {
        SequenceChange::Added(request) => Some(request.clone()),
        _ => None,
    };
    steps.iter().filter_map(added).collect()
}

#[test]
fn the_form_of_a_message_is_a_sign_of_the_role() {
    for (recording, prefill, decode) in [
        ("1.6.1-disagg", Some(Role::Prefill), Some(Role::Decode)),
        // Nothing of a decode worker's message differs from an aggregated one's in 0.9.
        ("0.9.1-disagg-sync", Some(Role::Prefill), None),
    ] {
        let mut seen = Vec::new();
        for (subject, payload, format) in messages(recording) {
            let mut steps = Vec::new();
            active_sequence::decode(&payload, format, &mut steps).expect("a real message decodes");
            let is_prefill = subject.contains(".prefill.");
            let signs = added(&steps).into_iter().map(|request| (is_prefill, request.role_sign()));
            seen.extend(signs);
        }
        assert_eq!(seen, [(true, prefill), (false, decode)], "{recording}");
    }
    let mut steps = Vec::new();
    let host = messages("1.6.1-host");
    active_sequence::decode(&host[0].1, host[0].2, &mut steps).expect("a real message decodes");
    assert_eq!(added(&steps).iter().map(AddRequest::role_sign).collect::<Vec<_>>(), [None], "aggregated");
}

#[test]
fn an_adapter_is_named_beside_the_step() {
    let (_, payload, format) = messages("1.6.1-disagg").remove(0);
    let mut steps = Vec::new();
    active_sequence::decode(&payload, format, &mut steps).expect("a real message decodes");
    assert_eq!((steps.len(), steps[0].lora_name.as_deref()), (1, None), "null in the recording");
    let nil = b"\xa9lora_name\xc0";
    assert!(payload.ends_with(nil));
    for (value, name) in [(&b"\xa3sql"[..], Some("sql")), (b"\xa0", None), (b"\x07", None)] {
        let mut named = payload.strip_suffix(&nil[nil.len() - 1..]).expect("ends so").to_vec();
        named.extend(value);
        let mut steps = Vec::new();
        active_sequence::decode(&named, format, &mut steps).expect("decodes");
        assert_eq!(steps[0].lora_name.as_deref(), name);
    }
}

#[test]
fn tiers_and_pictures_are_those_that_were_put_in() {
    use StorageTier::{Device, Disk, External, HostPinned};
    let mut events = KvEvents::default();
    let mut actual = Vec::new();
    for (subject, payload, format) in messages("1.6.1-inject") {
        assert_eq!(&*subject::parse(&subject).expect("ours").component, "inject");
        events.decode(&payload, format).expect("a real message decodes");
        for event in &events.events {
            let (stored, multimodal_inputs, removed) = match &event.data {
                KvData::Stored { blocks, multimodal_inputs, .. } => (blocks.len(), *multimodal_inputs, 0),
                KvData::Removed { hashes } => (0, 0, hashes.len()),
                KvData::Cleared => panic!("nothing was cleared"),
            };
            actual.push((event.worker.dp_rank, event.tier, stored, multimodal_inputs, removed));
        }
    }
    let stored = |rank, tier| (rank, tier, 8, 0, 0);
    // GPU with and without adapter or salt; CPU, CPU_PINNED; DISK, STORAGE; EXTERNAL; NVME; none; two removals; then the second
    // rank, at last with a picture.
    let expected = [
        [stored(0, Device); 4].to_vec(),
        [stored(0, HostPinned); 2].to_vec(),
        [stored(0, Disk); 2].to_vec(),
        vec![stored(0, External), stored(0, Disk), stored(0, Device)],
        vec![(0, Device, 0, 0, 8), (0, HostPinned, 0, 0, 4)],
        [stored(1, Device); 3].to_vec(),
        vec![(1, Device, 8, 1, 0)],
    ]
    .concat();
    assert_eq!(actual, expected);
}

#[test]
fn a_picture_over_several_blocks_is_one_and_an_unknown_form_costs_no_block() {
    let stored = |infos: &[&str]| {
        let block = |(i, info): (usize, &&str)| {
            format!(r#"{{"block_hash":{i},"tokens_hash":{i},"mm_extra_info":{info}}}"#)
        };
        let blocks: Vec<_> = infos.iter().enumerate().map(block).collect();
        format!(
            r#"{{"worker_id":7,"event":{{"event_id":0,"data":{{"stored":{{"parent_hash":null,"blocks":[{}]}}}},"dp_rank":0}}}}"#,
            blocks.join(",")
        )
    };
    let picture = |hash: u64| format!(r#"{{"mm_objects":[{{"mm_hash":{hash},"offsets":[[0,16]]}}]}}"#);
    let (one, two) = (picture(u64::MAX), picture(77));
    let both = r#"{"mm_objects":[{"mm_hash":5,"offsets":[]},{"offsets":[],"mm_hash":6}],"more":1}"#;
    for (infos, multimodal_inputs) in [
        (vec!["null", &one, &one, "null"], 1),
        (vec![&one, &two, "null"], 2),
        (vec![both, &one], 3),
        (vec![r#"["x"]"#, "3", r#"{"mm_objects":[{"mm_hash":"x"}]}"#, &two], 1),
        (vec!["{}", r#"{"mm_objects":null}"#], 0),
    ] {
        let mut events = KvEvents::default();
        events.decode(stored(&infos).as_bytes(), Format::Json).expect("decodes");
        let KvData::Stored { blocks, multimodal_inputs: found, .. } = &events.events[0].data else {
            panic!("not stored")
        };
        assert_eq!((blocks.len(), *found), (infos.len(), multimodal_inputs), "{infos:?}");
        // Those of one run are not counted for the next.
        events.decode(stored(&["null"]).as_bytes(), Format::Json).expect("decodes");
        assert!(matches!(events.events[0].data, KvData::Stored { multimodal_inputs: 0, .. }));
    }
    let many: Vec<String> = (0..1_000).map(picture).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut events = KvEvents::default();
    events.decode(stored(&many).as_bytes(), Format::Json).expect("decodes");
    assert!(
        matches!(events.events[0].data, KvData::Stored { multimodal_inputs: 256, .. }),
        "no more are counted separately"
    );
}

#[test]
fn both_choices_of_a_disaggregated_request_name_their_part() {
    let log = events("1.6.1-disagg");
    let [
        LogEvent::Selected(prefill),
        LogEvent::Selected(decode),
        LogEvent::RouteDone(prefilled),
        LogEvent::RouteDone(decoded),
        LogEvent::RequestDone(done),
    ] = &log[..]
    else {
        panic!("{log:?}: a decode router that needs no KV events says nothing of events that are off")
    };
    assert_eq!((prefill.worker_type, decode.worker_type), (Some(Role::Prefill), Some(Role::Decode)));
    assert_eq!((prefilled.phase, decoded.phase), (Some(Role::Prefill), Some(Role::Decode)));
    assert_eq!((prefilled.worker, decoded.worker), (prefill.worker, decode.worker));
    assert_eq!(prefill.ids, decode.ids);
    assert_eq!(done.prefill_worker, Some(WorkerId(7_668_682_385_827_896_070)));
    assert_eq!(done.decode_worker, Some(WorkerId(7_668_682_385_827_896_090)));
    assert_eq!(done.model.as_deref(), Some("models/tiny-llama"));
    let [LogEvent::RequestDone(done)] = &events("1.6.1-two-models")[..] else { panic!("one line") };
    assert_eq!(done.model.as_deref(), Some("models/tiny-two"));
    let [LogEvent::Selected(selected)] = &events("0.9.1-disagg")[..] else { panic!("one line") };
    assert_eq!(selected.worker_type, None, "0.9 does not say");
}

/// A line in text as the same in JSONL, with these fields of the event itself.
fn in_json(target: &str, message: &str, fields: &str) -> String {
    format!(
        r#"{{"time":"2026-11-21T21:00:09.388671Z","level":"INFO","target":"{target}","message":"{message}"{fields}}}"#
    )
}

fn event(line: &str) -> Option<LogEvent<'static>> {
    let line = log_line::decode(line.as_bytes()).unwrap_or_else(|error| panic!("{error}: {line}"));
    line.map(|line| line.into_owned().event)
}

#[test]
fn choices_of_modes_that_look_at_no_cache_are_distinguished() {
    let log = log("1.6.1-mode-round-robin");
    let chosen: Vec<_> = log
        .iter()
        .flatten()
        .filter_map(|line| match &line.event {
            LogEvent::SelectedWithoutKv(chosen) => {
                assert_eq!(line.event.worker().map(|worker| worker.id), Some(chosen.worker));
                assert_eq!((chosen.candidate_count, chosen.occupancy), (None, None));
                Some((chosen.mode, chosen.worker.0, chosen.ids.router.clone(), chosen.ids.http.as_deref()))
            }
            _ => None,
        })
        .collect();
    let round_robin = |id, http| (RoutingMode::RoundRobin, id, None, Some(http));
    assert_eq!(
        chosen,
        [
            round_robin(7_668_682_385_997_525_254, "d7a27c5e-c344-4987-bb25-d17634f0c804"),
            round_robin(7_668_682_385_997_525_262, "5052ec00-7806-4f9d-b4df-c18edcbc3da7"),
        ]
    );
    let [.., route, Some(done)] = &log[..] else { panic!("{log:?}") };
    assert_eq!(*route, None, "a route that ended well is no route by KV");
    let LogEvent::RequestDone(done) = &done.event else { panic!("{done:?}") };
    assert_eq!(done.http_id.as_deref(), Some("5052ec00-7806-4f9d-b4df-c18edcbc3da7"));
    assert_eq!(done.prefill_worker, Some(WorkerId(7_668_682_385_997_525_262)));

    let json = in_json(
        "dynamo_runtime::pipeline::network::egress::push_router",
        "Selected worker",
        r#","candidate_count":3,"occupancy":"Some(2)","request_id":"r","router_mode":"least-loaded","span_name":"http-request","worker_id":"7""#,
    );
    let Some(LogEvent::SelectedWithoutKv(chosen)) = event(&json) else { panic!("{json}") };
    assert_eq!(
        (chosen.mode, chosen.worker, chosen.ids.router.as_deref()),
        (RoutingMode::LeastLoaded, WorkerId(7), Some("r"))
    );
    assert_eq!((chosen.candidate_count, chosen.occupancy), (Some(3), Some(2)));
}

#[test]
fn a_router_without_events_says_so_once() {
    let off = LogEvent::Signal { sign: LogSignal::KvEventsOff, worker: None };
    assert_eq!(events("1.6.1-approx"), std::slice::from_ref(&off));
    for (value, is_off) in [("false", true), ("\"false\"", true), ("true", false), ("\"true\"", false)] {
        let fields =
            format!(r#","requirement":"not_required","cache_required":true,"use_kv_events":{value}"#);
        let line =
            in_json("dynamo_llm::kv_router::indexer::ingress", "Skipping KV event subscription", &fields);
        assert_eq!(event(&line), is_off.then_some(off.clone()), "{line}");
    }
    for (fields, ttl_ms) in
        [(r#","ttl_secs":2.5"#, Some(2_500)), (r#","ttl_secs":"30""#, Some(30_000)), ("", None)]
    {
        let line =
            in_json("dynamo_llm::kv_router::indexer", "Starting predict-on-route side indexer", fields);
        let sign = LogSignal::PredictsOnRoute { ttl_ms };
        assert_eq!(event(&line), Some(LogEvent::Signal { sign, worker: None }), "{line}");
    }
}

#[test]
fn a_worker_that_cannot_be_reached_is_named() {
    let log = log("1.6.1-scale");
    let gone = WorkerId(7_668_682_385_939_503_622);
    let named: Vec<_> = log.iter().flatten().map(|line| line.event.unreachable()).collect();
    let failed = Some((gone, UnreachableWhy::ConnectionFailed));
    assert_eq!(named, [Some((gone, UnreachableWhy::Disconnected)), failed, failed, failed, failed]);
    for line in LOG_LINES.lines().filter_map(|line| line.strip_prefix("1.6.1-scale\t")) {
        // The same of a route that was not by KV; such a line was not recorded.
        let plain = line.replace("kv_router.route_request", "router.route_request");
        let by_kv = event(line).expect("a line of ours");
        let other = event(&plain).expect("a line of ours");
        let LogEvent::Unreachable(unreachable) = &other else { panic!("{other:?}") };
        assert_eq!((other.unreachable(), other.worker()), (by_kv.unreachable(), None));
        assert!(unreachable.ids.router.is_some() && unreachable.ids.http.is_some());
        let other = plain.replace("connection_failed", "error").replace("worker_disconnected", "timeout");
        assert_eq!(event(&other), None);
    }
    for line in events("1.6.1-disagg") {
        assert_eq!(line.unreachable(), None, "{line:?}");
    }
}

fn scraped(text: &str) -> Scraped {
    let (scraped, understood) = prometheus::decode(text.as_bytes());
    assert_eq!(understood, Ok(()));
    scraped.expect("metrics")
}

fn counter(scraped: &Scraped, counter: Counter) -> Option<f64> {
    scraped.counters.iter().find(|(known, _)| *known == counter).map(|(_, value)| *value)
}

/// Samples and sum of a distribution.
fn histogram(scraped: &Scraped, kind: HistogramKind) -> Option<(u64, f64)> {
    let found = scraped.histograms.iter().find(|histogram| histogram.kind == kind);
    found.map(|histogram| (histogram.counts.iter().sum(), histogram.sum))
}

fn mismatches(scraped: &Scraped) -> Option<f64> {
    let is_it = |(gauge, _): &&(Gauge, f64)| *gauge == Gauge::EventSourceMismatchWorkers;
    scraped.gauges.iter().find(is_it).map(|(_, value)| *value)
}

#[test]
fn prompts_of_a_disaggregated_deployment_count_once() {
    let scraped = scraped(include_str!("../../fixtures/topologies/1.6.1-disagg.prom"));
    assert_eq!(histogram(&scraped, HistogramKind::InputTokens), Some((81, 317_541.0)));
    assert_eq!(counter(&scraped, Counter::BestPrefixTokens), Some(266_752.0));
    assert_eq!(counter(&scraped, Counter::SelectedPrefixTokens), Some(266_752.0));
    // These name no phase.
    assert_eq!(counter(&scraped, Counter::RoutedRequests), Some(162.0));
    assert_eq!(histogram(&scraped, HistogramKind::HitRate).map(|(count, _)| count), Some(162));
    assert_eq!(mismatches(&scraped), Some(0.0));
    let roles: Vec<_> =
        scraped.workers.iter().map(|of| (of.worker.id.0 % 1_000, of.role, of.registered)).collect();
    let (prefill, decode) = (Some(Role::Prefill), Some(Role::Decode));
    let yes = Some(true);
    assert_eq!(roles, [(70, prefill, yes), (76, prefill, yes), (90, decode, yes), (92, decode, yes)]);
    let queue = |role| QueueFigures { model: Some(0), role, requests: Some(0), prompt_tokens: Some(0) };
    assert_eq!(scraped.queues, [queue(decode), queue(prefill)]);
    assert_eq!(scraped.models.len(), 1);
}

#[test]
fn phases_of_aggregated_workers_and_samples_without_a_phase_count_as_before() {
    let text = |phase: &str| {
        let name = "dynamo_component_router_kv_selected_cached_prefix_tokens_total";
        format!("{name}{{model=\"m\"{phase}}} 5\n")
    };
    for (phases, tokens) in [
        (vec![""], 5.0),
        (vec![",phase=\"aggregated\""], 5.0),
        (vec![",phase=\"prefill\"", ",phase=\"decode\""], 5.0),
        (vec![",phase=\"prefill\"", ",phase=\"aggregated\""], 10.0),
        (vec![",phase=\"decode\""], 0.0),
    ] {
        let all: String = phases.iter().map(|phase| text(phase)).collect();
        assert_eq!(counter(&scraped(&all), Counter::SelectedPrefixTokens), Some(tokens), "{phases:?}");
    }
}

#[test]
fn no_sample_of_the_hit_rate_is_not_no_hit_rate() {
    let round_robin = scraped(include_str!("../../fixtures/topologies/1.6.1-mode-round-robin.prom"));
    assert_eq!(histogram(&round_robin, HistogramKind::HitRate), Some((0, 0.0)));
    assert_eq!(counter(&round_robin, Counter::RoutedRequests), Some(39.0));
    assert_eq!((round_robin.workers.len(), mismatches(&round_robin)), (0, None));
    assert_eq!(counter(&round_robin, Counter::StoredOk), None);

    let approximate = scraped(include_str!("../../fixtures/topologies/1.6.1-approx.prom"));
    assert_eq!(histogram(&approximate, HistogramKind::HitRate).map(|(count, _)| count), Some(61));
    assert_eq!(counter(&approximate, Counter::RoutedRequests), Some(61.0));
    assert_eq!(counter(&approximate, Counter::StoredOk), Some(61.0), "what it believes itself");
    assert_eq!(mismatches(&approximate), None, "it takes no KV events");

    let old = scraped("dynamo_frontend_requests_total{status=\"success\",model=\"m\"} 3\n");
    assert_eq!(histogram(&old, HistogramKind::HitRate), None);
    assert_eq!(counter(&old, Counter::RoutedRequests), None);
}

#[test]
fn queues_and_workers_name_their_model_where_the_metrics_do() {
    let two = scraped(include_str!("../../fixtures/topologies/1.6.1-two-models.prom"));
    let names: Vec<_> = two.models.iter().map(|model| &*model.name).collect();
    assert_eq!(names, ["models/tiny-llama", "models/tiny-two"]);
    let models: Vec<_> = two.queues.iter().map(|queue| (queue.model, queue.role)).collect();
    assert_eq!(models, [(Some(0), Some(Role::Decode)), (Some(1), Some(Role::Decode))]);
    assert_eq!(two.workers.iter().filter(|worker| worker.model.is_some()).count(), 0, "1.6 does not say");
    assert_eq!(counter(&two, Counter::RoutedRequests), Some(96.0));

    let new = scraped(include_str!("../../fixtures/topologies/1.7.0.dev20261026-healthy.prom"));
    let actual: Vec<_> = new.states.iter().map(|of| (of.role, of.model)).collect();
    assert_eq!(actual, [(Some(Role::Decode), Some(0)); 3]);

    // The model may come behind, in other letters, or not at all; classes of a queue's policy are added up.
    let text = "dynamo_frontend_router_queue_pending_requests{model=\"org/a\",policy_class=\"x\",worker_type=\"prefill\"} 2\n\
         dynamo_frontend_router_queue_pending_requests{model=\"org/a\",policy_class=\"y\",worker_type=\"prefill\"} 3\n\
         dynamo_frontend_router_queue_pending_isl_tokens{model=\"org/b\",worker_type=\"encode\"} 7\n\
         dynamo_frontend_model_kv_cache_block_size{model=\"Org/A\"} 16\n";
    let queues = scraped(text).queues;
    let a =
        QueueFigures { model: Some(0), role: Some(Role::Prefill), requests: Some(5), prompt_tokens: None };
    let b = QueueFigures { model: None, role: None, requests: None, prompt_tokens: Some(7) };
    assert_eq!(queues, [a, b]);
}

#[test]
fn classes_of_policy_are_apart_and_a_router_with_dynamo_s_own_class_has_none() {
    // Of 1.6.1, with three classes.
    let text = "dynamo_frontend_router_queue_pending_requests{model=\"m\",policy_class=\"urgent\",worker_type=\"decode\"} 2\n\
         dynamo_frontend_router_queue_pending_isl_tokens{model=\"m\",policy_class=\"urgent\",worker_type=\"decode\"} 900\n\
         dynamo_frontend_router_admission_received_total{model=\"m\",policy_class=\"urgent\",worker_type=\"decode\"} 18\n\
         dynamo_frontend_router_admission_received_total{model=\"n\",policy_class=\"urgent\",worker_type=\"decode\"} 2\n\
         dynamo_frontend_router_admission_received_total{model=\"m\",policy_class=\"cold\",worker_type=\"decode\"} 9\n\
         dynamo_frontend_router_queue_backpressure_total{model=\"m\",policy_class=\"cold\",reason=\"request_limit\",worker_type=\"decode\"} 3\n\
         dynamo_frontend_router_queue_backpressure_total{model=\"m\",policy_class=\"cold\",reason=\"raw_isl_token_limit\",worker_type=\"decode\"} 1\n";
    let class = |class: &str| PolicyClassFigures {
        class: class.to_owned(),
        role: Some(Role::Decode),
        ..PolicyClassFigures::default()
    };
    let cold = PolicyClassFigures { received: Some(9), refused: Some(4), ..class("cold") };
    let urgent = PolicyClassFigures {
        queued_requests: Some(2),
        queued_tokens: Some(900),
        received: Some(20),
        ..class("urgent")
    };
    assert_eq!(scraped(text).policy_classes, [cold, urgent]);
    assert!(scraped(&text.replace("urgent", "default").replace("cold", "default")).policy_classes.is_empty());
    let long = text.replace("urgent", &"u".repeat(65));
    let (scraped, understood) = prometheus::decode(long.as_bytes());
    assert!(scraped.expect("metrics").policy_classes.is_empty() && understood.is_err());
}

#[test]
fn a_bad_line_of_a_queue_is_one_fault_and_costs_the_queues() {
    let line = |class: &str, value: &str| {
        format!(
            "dynamo_frontend_router_queue_pending_requests{{policy_class=\"{class}\",worker_type=\"decode\"}} {value}\n"
        )
    };
    for bad in [line("b", "NaN"), line("b", "-1"), line("b", "two")] {
        let (scraped, understood) = prometheus::decode(format!("{}{bad}", line("a", "3")).as_bytes());
        let scraped = scraped.expect("metrics");
        assert_eq!((scraped.queues.len(), scraped.gauges.len()), (0, 0), "half of a sum: {bad}");
        assert_eq!(understood.expect_err("a fault").total(), 1, "{bad}");
    }
}

#[test]
fn tiers_and_pictures_allocate_nothing_in_a_warm_scratch() {
    let messages = messages("1.6.1-inject");
    let mut events = KvEvents::default();
    let mut decode_all = || {
        for (_, payload, format) in &messages {
            events.decode(payload, *format).expect("a real message decodes");
        }
    };
    decode_all();
    assert_eq!(allocation_counter::measure(decode_all).count_total, 0);
}

#[test]
fn a_worker_of_the_router_and_of_the_card_is_the_same() {
    let card = CARDS.lines().next().and_then(|card| ModelCard::decode(card.as_bytes()).ok()).flatten();
    let card = card.expect("a card");
    let scraped = scraped(include_str!("../../fixtures/topologies/1.6.1-disagg.prom"));
    let worker = Worker::new(card.instance_id.0, 0);
    let figures =
        scraped.workers.iter().find(|figures| figures.worker == worker).expect("the worker of the card");
    assert_eq!(figures.role, card.role());
}
