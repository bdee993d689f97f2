//! Engines that are listened to without Dynamo.

use super::{Stage, evidence};
use radixscope_model::id::{SourceIx, WorkerIx};
use radixscope_model::record::{
    CheckStatus, Engine, EngineFeed, EventForm, EventTransport, KnowledgeWhy, LinkState, Record, Severity,
    SourceKind, TreeKnowledge,
};

/// Two engines that publish, and no Dynamo.
fn engines() -> (Stage, [WorkerIx; 2]) {
    let mut stage = Stage::of_engines();
    stage.record(Record::Traffic { source: SourceIx(0), received: 100, lag_ms: Some(1) });
    let workers = [1, 2].map(|id| {
        let worker = stage.engine_worker(id);
        stage.record(feed(id, worker, |_| {}));
        worker
    });
    (stage, workers)
}

fn feed(id: u64, worker: WorkerIx, change: impl FnOnce(&mut EngineFeed)) -> Record<'static> {
    let mut feed = EngineFeed::new(format!("tcp://e{id}:5557"), Some(Engine::Sglang));
    (feed.worker, feed.link, feed.received) = (Some(worker), LinkState::Live, 100);
    (feed.event_form, feed.block_size_tokens) = (Some(EventForm::Map), Some(64));
    change(&mut feed);
    Record::EngineFeed(Box::new(feed))
}

/// Some events of one engine are of another form.
pub(super) fn strange() -> Stage {
    let (mut stage, workers) = engines();
    let now = stage.now();
    stage.record(feed(2, workers[1], |feed| {
        (feed.rejected, feed.rejected_ms) = (40, Some(now));
        feed.rejected_sample = "engine's KV events: type: is missing (byte 14)".into();
    }));
    stage.pass(3);
    stage
}

/// An engine that was met late.
pub(super) fn late() -> Stage {
    let (mut stage, workers) = engines();
    stage.knows(workers[0], TreeKnowledge::Partial, KnowledgeWhy::JoinedLate);
    stage.pass(6);
    stage
}

#[test]
fn an_unknown_encoding_is_named_with_the_form_and_who_drops_it() {
    let mut stage = strange();
    let found = stage.found("event_encoding_unknown");
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.title, "KV events of tcp://e2:5557 are not understood");
    assert!(evidence(found, "The last one").contains("type: is missing"));
    assert!(evidence(found, "Known forms").contains("SGLang from 0.5.20"));
    let fixes: Vec<&str> = found.fix.iter().map(|fix| &*fix.text).collect();
    assert!(fixes.iter().any(|fix| fix.contains("llm-d-router#2944")), "{fixes:?}");
    assert!(fixes.iter().any(|fix| fix.contains("dynamo#14530")), "{fixes:?}");
    stage.pass(90);
    assert!(stage.finding("event_encoding_unknown").is_none(), "none came for a minute");
    assert_eq!(stage.status("event_encoding_unknown").0, CheckStatus::Ok);
}

#[test]
fn an_engine_of_which_nothing_is_understood_is_critical() {
    let (mut stage, workers) = engines();
    let now = stage.now();
    stage.record(feed(1, workers[0], |feed| {
        (feed.rejected, feed.rejected_ms) = (100, Some(now));
        (feed.event_form, feed.block_size_tokens) = (None, None);
        feed.rejected_sample = "expected a batch as an array or as a map, found text".into();
    }));
    stage.pass(3);
    assert_eq!(stage.found("event_encoding_unknown").severity, Severity::Critical);
}

#[test]
fn engines_alone_raise_nothing_and_what_needs_a_router_says_that_there_is_none() {
    let (mut stage, _) = engines();
    stage.pass(60);
    assert!(stage.codes().is_empty(), "{:?}", stage.codes());
    let rule = stage.cluster.checked().iter().find(|rule| rule.code == "not_kv_routing").unwrap();
    assert_eq!(rule.status, CheckStatus::NoData);
    assert!(rule.missing.starts_with("No router:"), "{}", rule.missing);
    let hint = stage.cluster.decisions_hint().unwrap();
    assert!(hint.text.starts_with("No router:") && hint.settings.is_empty());
}

#[test]
fn what_an_engine_stored_before_is_asked_of_its_replay_endpoint() {
    let stage = late();
    let found = stage.found("tree_partial");
    assert!(found.fix.iter().any(|fix| fix.text.contains("replay_endpoint")), "{:?}", found.fix);
    assert!(!found.fix.iter().any(|fix| fix.text.contains("--discovery")), "{:?}", found.fix);
}

#[test]
fn silent_engines_and_engines_that_are_down_have_their_settings() {
    let mut stage = Stage::of_engines();
    stage.pass(35);
    let found = stage.found("nothing_received");
    assert!(found.title.starts_with("No KV event received from engines"), "{}", found.title);
    assert!(found.fix.iter().any(|fix| fix.setting == "--kv-events-config"), "{:?}", found.fix);
    let source = stage.source("engine tcp://h:5557", SourceKind::Engines);
    stage.link(source, LinkState::Connecting);
    stage.pass(15);
    let found = stage.found("source_down");
    assert!(found.fix.iter().any(|fix| fix.text.contains("--engine-events")), "{:?}", found.fix);
}

impl Stage {
    /// Connected to engines alone, none of which published anything yet.
    fn of_engines() -> Self {
        let mut stage = Self::unconnected();
        stage.source("engines", SourceKind::Engines);
        stage
    }

    fn engine_worker(&mut self, id: u64) -> WorkerIx {
        let worker = self.quiet_worker(id);
        self.add_transport(worker, EventTransport::Engine, 0);
        self.knows(worker, TreeKnowledge::Complete, KnowledgeWhy::FromFirstEvent);
        worker
    }
}
