//! Recorded scrapes of real Dynamo 0.9.1 and 1.6.1 through ingest and fold, against figures that were read from the texts
//! by other means, and against what the clients measured.

use radixscope_captures::Recording;
use radixscope_intake::{Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx};
use radixscope_model::record::{Counter, Gauge, HistogramKind, ProcessRole, SourceKind};
use radixscope_state::cluster::{Cluster, ProcessState};
use serde_json::Value;

const CAPTURES: [&str; 11] = [
    "0.9.1-healthy",
    "0.9.1-healthy-vllm",
    "0.9.1-localindexer",
    "0.9.1-log-jsonl-info",
    "0.9.1-mismatch",
    "0.9.1-no-events",
    "0.9.1-worker-restart",
    "1.6.1-healthy",
    "1.6.1-log-jsonl-debug",
    "1.6.1-mismatch",
    "1.6.1-router-restart",
];

/// All scrapes of a capture, folded.
fn scraped(capture: &str) -> Cluster {
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    intake.source("scrapes", SourceKind::Prometheus, Millis(0), &mut cluster).unwrap();
    for scrape in Recording::fixture(capture).scrapes() {
        let at_ms = Millis(scrape.at_ms());
        let payload = Payload::Scrape { process: scrape.process.into(), text: scrape.text.into() };
        intake.handle(&Received { source: SourceIx(0), at_ms, payload }, &mut cluster);
        intake.flush(at_ms, &mut cluster);
    }
    cluster
}

fn process<'c>(cluster: &'c Cluster, name: &str) -> &'c ProcessState {
    cluster.processes().iter().find(|process| process.name == name).expect(name)
}

#[test]
fn every_recorded_scrape_is_understood_and_its_process_known_for_what_it_is() {
    for capture in CAPTURES {
        let cluster = scraped(capture);
        assert!(cluster.sources()[0].rejected.is_empty(), "{capture}: {:?}", cluster.sources()[0].rejected);
        for process in cluster.processes() {
            let expected = match process.name.as_str() {
                "frontend" => ProcessRole::Frontend,
                // A router that received no event exports only its uptime.
                "frontend-system" if capture == "0.9.1-no-events" => ProcessRole::Other,
                "frontend-system" => ProcessRole::Router,
                _ => ProcessRole::Worker,
            };
            assert_eq!(process.role, expected, "{capture}: {}", process.name);
            assert_eq!(process.instance().is_some(), capture.starts_with('1'), "{capture}: {}", process.name);
        }
    }
}

#[test]
fn a_frontend_of_0_9_says_what_it_served() {
    let cluster = scraped("0.9.1-mismatch");
    let frontend = process(&cluster, "frontend");
    let count = |kind| frontend.session(kind).map(|all| all.count());
    assert_eq!(count(HistogramKind::Ttft), Some(275), "though there was no histogram at the first scrape");
    assert_eq!(count(HistogramKind::Itl), Some(21_069));
    assert_eq!(count(HistogramKind::CachedTokens), Some(274));
    assert_eq!(frontend.session(HistogramKind::CachedTokens).unwrap().sum(), 791_680.0);
    assert_eq!(frontend.session(HistogramKind::InputTokens).unwrap().sum(), 1_136_679.0);
    assert_eq!(count(HistogramKind::HitRate), None, "a router's figure since 1.0");
    assert_eq!(frontend.counted(Counter::RequestsOk), Some(275.0));
    assert_eq!(frontend.counted(Counter::RequestsFailed), Some(0.0));
    assert_eq!(frontend.counter_value(Counter::OutputTokens), Some(21_344.0));
    assert_eq!(frontend.counter_value(Counter::StoredOk), None);
    assert_eq!(frontend.gauge(Gauge::InFlightRequests), Some(1.0));
    assert_eq!(frontend.gauge(Gauge::RouterQueuedRequests), None);
    let model = &frontend.models()[0];
    assert_eq!((&*model.name, frontend.models().len()), ("models/tiny-llama", 1));
    assert_eq!((model.block_size_tokens, model.total_kv_blocks), (Some(16), Some(800)));
    assert_eq!((model.max_num_seqs, model.max_num_batched_tokens), (Some(256), Some(8_192)));
    assert_eq!(model.context_length, Some(32_768));
}

#[test]
fn a_router_of_0_9_says_on_its_own_port_what_became_of_events() {
    let cluster = scraped("0.9.1-mismatch");
    let router = process(&cluster, "frontend-system");
    let scrapes = Recording::fixture("0.9.1-mismatch").scrapes();
    let text = scrapes.filter(|scrape| scrape.process == "frontend-system").last().unwrap().text;
    let written = |event: &str, status: &str| {
        let labels = [format!("event_type=\"{event}\""), format!("status=\"{status}\"")];
        let line = text.lines().find(|line| labels.iter().all(|label| line.contains(label.as_str())));
        line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    };
    for (counter, event, status) in [
        (Counter::StoredOk, "stored", "ok"),
        (Counter::StoredParentUnknown, "stored", "parent_block_not_found"),
        (Counter::RemovedUnknown, "removed", "block_not_found"),
    ] {
        assert!(written(event, status) > 50.0, "{event} {status}");
        assert_eq!(router.counter_value(counter), Some(written(event, status)), "{event} {status}");
    }
    assert_eq!(router.counter_value(Counter::RemovedOk), Some(0.0));
}

#[test]
fn a_frontend_of_1_6_also_says_what_its_router_does() {
    let cluster = scraped("1.6.1-mismatch");
    let frontend = process(&cluster, "frontend");
    assert_eq!(frontend.instance(), Some(0x6a6c_a1fa_3e75_d627));
    for (counter, value) in [
        (Counter::StoredOk, 59.0),
        (Counter::StoredParentUnknown, 703.0),
        (Counter::StoredOther, 0.0),
        (Counter::RemovedOk, 602.0),
        (Counter::RemovedUnknown, 0.0),
        (Counter::Cleared, 0.0),
        (Counter::DuplicateStores, 0.0),
        (Counter::RequestsOk, 228.0),
        (Counter::BestPrefixTokens, 0.0),
        (Counter::ReusedTokens, 0.0),
    ] {
        assert_eq!(frontend.counter_value(counter), Some(value), "{counter:?}");
    }
    for (kind, count) in [
        (HistogramKind::Ttft, 227),
        (HistogramKind::Itl, 17_212),
        (HistogramKind::Duration, 228),
        (HistogramKind::HitRate, 227),
        (HistogramKind::RouterOverheadMs, 228),
    ] {
        assert_eq!(frontend.session(kind).map(|all| all.count()), Some(count), "{kind:?}");
    }
    assert_eq!(frontend.session(HistogramKind::HitRate).unwrap().mean(), Some(0.0));
    assert_eq!(frontend.gauge(Gauge::RouterQueuedRequests), Some(0.0));
    assert_eq!(frontend.gauge(Gauge::EventSourceMismatchWorkers), Some(0.0));
    let ids = [7_668_682_361_666_917_894, 7_668_682_361_666_917_905, 7_668_682_361_666_917_907];
    assert_eq!(frontend.workers().len(), 3);
    for (row, id) in frontend.workers().iter().zip(ids) {
        assert_eq!(cluster.worker(row.worker).unwrap().id.id.0, id);
        assert_eq!((row.registered, row.decode_blocks, row.prefill_tokens), (Some(true), Some(0), Some(0)));
    }
}

#[test]
fn workers_of_1_6_say_what_they_published_and_of_other_endpoints_nothing() {
    let cluster = scraped("1.6.1-mismatch");
    let worker = process(&cluster, "worker1");
    assert_eq!(worker.instance(), Some(0x6a6c_a1fa_3e75_d606));
    for (counter, value) in [
        (Counter::PublisherSuspicious, 257.0),
        (Counter::PublisherReceived, 485.0),
        (Counter::PublisherAccepted, 485.0),
        (Counter::EngineDroppedEvents, 0.0),
        (Counter::HandledRequests, 80.0),
    ] {
        assert_eq!(worker.counter_value(counter), Some(value), "{counter:?}");
    }
    assert_eq!(worker.session(HistogramKind::Duration).map(|all| all.count()), Some(80));
    let cluster = scraped("1.6.1-healthy");
    let worker = process(&cluster, "worker1");
    assert_eq!(
        worker.counter_value(Counter::PublisherSuspicious),
        None,
        "no event was, so it is not offered"
    );
    assert_eq!((worker.ranks().len(), worker.ranks()[0].kv_usage), (1, Some(0.0)));
    assert_eq!(worker.gauge(Gauge::EngineRunningRequests), Some(0.0));
}

#[test]
fn a_restart_is_seen_and_what_it_counts_is_added() {
    let cluster = scraped("1.6.1-router-restart");
    let frontend = process(&cluster, "frontend");
    assert_eq!(frontend.restarts, 1);
    let counted = frontend.counted(Counter::RequestsOk).unwrap();
    let traffic = Recording::fixture("1.6.1-router-restart").traffic::<Value>();
    let answered = traffic.filter(|request| request["status"] == 200).count();
    // Those between the last scrape of the first run and its end were counted and never scraped.
    let lost = answered as f64 - counted;
    assert!((0.0..=40.0).contains(&lost), "{counted} counted in two runs, {answered} answered");
    let tokens = frontend.session(HistogramKind::Ttft).unwrap().count() as f64;
    // Eight users: what they waited for when the frontend ended was begun and never answered.
    assert!((0.0..=8.0).contains(&(tokens - counted)), "{tokens} first tokens of {counted} requests");
    let cluster = scraped("0.9.1-worker-restart");
    assert_eq!(process(&cluster, "worker2").restarts, 1);
    assert_eq!(process(&cluster, "worker1").restarts, 0);
}

#[test]
fn time_to_first_token_is_what_clients_measured_to_a_bucket() {
    for capture in ["0.9.1-healthy", "1.6.1-healthy"] {
        let cluster = scraped(capture);
        let histogram = process(&cluster, "frontend").session(HistogramKind::Ttft).unwrap();
        let measured = Recording::fixture(capture)
            .traffic::<Value>()
            .filter_map(|request| Some(request["t_first"].as_f64()? - request["t0"].as_f64()?));
        let mut measured: Vec<f64> = measured.collect();
        measured.sort_by(f64::total_cmp);
        assert!(measured.len() > 200);
        for q in [0.5, 0.95] {
            let interval = histogram.quantile(q).unwrap();
            let client = measured[(measured.len() as f64 * q) as usize];
            assert!(
                interval.lower < client && interval.upper.is_some_and(|upper| client <= upper),
                "{capture} {q}: {interval:?}, {client} s"
            );
        }
    }
}

#[test]
fn engines_of_another_router_are_the_workers_at_their_addresses() {
    let text = include_str!("../../../dynamo/tests/fixtures/other_routers/production-stack.prom");
    let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
    intake.source("scrapes", SourceKind::Prometheus, Millis(0), &mut cluster).unwrap();
    for at_ms in [Millis(1_000), Millis(3_000)] {
        let payload = Payload::Scrape { process: "router".into(), text: text.into() };
        intake.handle(&Received { source: SourceIx(0), at_ms, payload }, &mut cluster);
    }
    let router = process(&cluster, "router");
    assert_eq!((router.role, router.engine), (ProcessRole::ProductionStackRouter, None));
    let figures: Vec<_> = router.workers().iter().map(|of| (of.active_requests, of.registered)).collect();
    assert_eq!(figures, [(Some(0), Some(true)), (Some(1), Some(true))]);
    let names: Vec<_> = router.workers().iter().map(|of| cluster.endpoint_of(of.worker)).collect();
    assert_eq!(names, [Some("127.0.0.1:9101"), Some("127.0.0.1:9102")]);
    assert_eq!(cluster.workers().len(), 2, "read twice, two engines");
}
