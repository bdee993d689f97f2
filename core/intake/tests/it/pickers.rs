//! Decisions of endpoint pickers, by their logs: what each endpoint scored, and which worker it is.

use std::sync::Arc;

use radixscope_intake::{EngineInput, Intake, Payload, Received};
use radixscope_model::id::{Millis, SourceIx, Worker, WorkerId};
use radixscope_model::record::{
    Arithmetic, Completeness, DecidedBy, Engine, LinkState, ScoredCandidate, SourceKind,
};
use radixscope_state::cluster::{Cluster, DecisionEntry};

use crate::publisher::publisher;

const ROUTER: &str = include_str!("../../../dynamo/tests/fixtures/endpoint_picker/llm-d-router.jsonl");
const EXTENSION: &str = include_str!("../../../dynamo/tests/fixtures/endpoint_picker/extension-1.3.txt");
/// The time of the lines.
const AT_MS: u64 = 1_795_198_014_428;

struct Stage {
    intake: Intake,
    cluster: Cluster,
    at_ms: u64,
}

impl Stage {
    fn new() -> Self {
        let (mut intake, mut cluster) = (Intake::default(), Cluster::default());
        intake.source("logs", SourceKind::Logs, Millis(AT_MS), &mut cluster).unwrap();
        Self { intake, cluster, at_ms: AT_MS + 500 }
    }

    fn give(&mut self, payload: Payload) {
        let received = Received { source: SourceIx(0), at_ms: Millis(self.at_ms), payload };
        self.intake.handle(&received, &mut self.cluster);
    }

    fn read<'l>(&mut self, lines: impl IntoIterator<Item = &'l str>) {
        for line in lines {
            self.give(Payload::LogLine { log: "epp".into(), line: line.to_owned().into() });
        }
        for _ in 0..2 {
            self.at_ms += 1_000;
            self.intake.flush(Millis(self.at_ms), &mut self.cluster);
        }
        let rejected = &self.cluster.sources()[0].rejected;
        assert!(rejected.is_empty(), "{rejected:?}");
    }

    /// An engine at this place is listened to.
    fn engine(&mut self, name: &str) -> WorkerId {
        let worker_id = WorkerId(name.bytes().fold(7, |id: u64, byte| id.wrapping_mul(31) + u64::from(byte)));
        let publisher = publisher(name, worker_id.0, Engine::Vllm, "vllm");
        let input = EngineInput::Link { state: LinkState::Live, detail: "".into() };
        self.give(Payload::Engine { publisher: Arc::new(publisher), input });
        worker_id
    }

    /// Oldest first.
    fn decisions(&self) -> Vec<&DecisionEntry> {
        self.cluster.decisions().newest_first().rev().collect()
    }

    fn names(&self, decided: &DecisionEntry) -> Vec<String> {
        let named = |of: &ScoredCandidate| self.cluster.endpoint_of(of.worker).unwrap().to_owned();
        decided.decision.scores.as_ref().unwrap().candidates.iter().map(named).collect()
    }

    fn id(&self, decided: &DecisionEntry) -> Worker {
        self.cluster.worker(decided.decision.worker).unwrap().id
    }
}

#[test]
fn a_choice_has_every_endpoint_with_its_scores() {
    for text in [ROUTER, EXTENSION] {
        let mut stage = Stage::new();
        stage.read(text.lines());
        let all = stage.decisions();
        assert_eq!(all.len(), 3);
        let decision = &all[0].decision;
        assert_eq!(decision.request_id.as_deref(), Some("7c0f6f5e-91cd-4a0c-9f6d-000000000001"));
        assert_eq!(
            (decision.arithmetic, decision.decided_by),
            (Arithmetic::EndpointPicker, Some(DecidedBy::Scores))
        );
        assert_eq!((decision.completeness, decision.dispatched), (Completeness::AllCandidates, Some(true)));
        let scores = decision.scores.as_deref().unwrap();
        assert_eq!(
            scores.scorers,
            ["queue-scorer", "kv-cache-utilization-scorer", "prefix/prefix-cache-scorer"]
        );
        assert_eq!(
            (scores.profile.as_deref(), scores.picker.as_deref()),
            (Some("default"), Some("max-score-picker"))
        );
        let of = |of: &ScoredCandidate| (of.score, of.by_scorer.clone(), of.running, of.waiting, of.kv_usage);
        let candidates: Vec<_> = scores.candidates.iter().map(of).collect();
        assert_eq!(
            candidates[0],
            (Some(3.8), vec![Some(1.0), Some(0.9), Some(0.0)], Some(3), Some(0), Some(0.1))
        );
        assert_eq!(candidates[1].1, [Some(0.5), Some(0.75), Some(0.0)]);
        assert_eq!((scores.candidates.len(), scores.omitted), (3, 0));
        assert_eq!(decision.worker, scores.candidates[0].worker);
        // Only the second request goes elsewhere.
        assert_eq!(all[2].decision.worker, decision.worker);
        assert_eq!(stage.names(all[1])[0], stage.cluster.endpoint_of(all[1].decision.worker).unwrap());
        assert_ne!(all[1].decision.worker, decision.worker);
        assert!(stage.names(all[0])[0].starts_with("llm-d/ms-llm-d-decode-7d9c8f-abcde"));
        // Nothing in blocks is known of them.
        assert!(
            all[0].overlap_blocks().is_none() && decision.candidates.is_empty() && decision.logit.is_none()
        );
    }
}

#[test]
fn times_and_requests_are_those_of_the_lines_however_they_mix() {
    let mut one_after_the_other = Stage::new();
    one_after_the_other.read(ROUTER.lines());
    // All first lines, then all second ones.
    let lines: Vec<&str> = ROUTER.lines().collect();
    let each = lines.len() / 3;
    let mut mixed = Stage::new();
    mixed.read((0..each).flat_map(|at| [lines[at], lines[at + each], lines[at + 2 * each]]));
    let decided = |stage: &Stage| -> Vec<_> {
        let of = |d: &&DecisionEntry| {
            let decision = &d.decision;
            (
                decision.request_id.clone(),
                stage.id(d),
                decision.decided_ms,
                stage.names(d),
                decision.scores.clone(),
            )
        };
        stage.decisions().iter().map(of).map(|(a, b, c, d, e)| (a, b, c, d, e.map(|s| s.scorers))).collect()
    };
    assert_eq!(decided(&mixed), decided(&one_after_the_other));
    assert_eq!(mixed.decisions()[0].decision.decided_ms, Some(Millis(AT_MS + 3)));
}

#[test]
fn an_endpoint_is_the_engine_at_its_host_and_keeps_its_name() {
    let mut stage = Stage::new();
    let first = stage.engine("tcp://10.244.0.11:5557");
    // Two share the other host, of which none has the port of requests.
    stage.engine("tcp://10.244.0.12:5557");
    stage.engine("tcp://10.244.0.12:5558");
    stage.read(ROUTER.lines());
    let all = stage.decisions();
    assert_eq!(stage.id(all[0]), Worker { id: first, dp_rank: 0 });
    let pool = stage.cluster.pool(all[0].pool).unwrap();
    assert_eq!((&*pool.namespace, &*pool.component), ("engines", "vllm"));
    assert_eq!(
        stage.cluster.endpoint_of(all[0].decision.worker),
        Some("llm-d/ms-llm-d-decode-7d9c8f-abcde-rank-0")
    );
    let other = stage.cluster.pool(all[1].pool).unwrap();
    assert_eq!((&*other.namespace, &*other.component), ("llm-d", "endpoints"));
}

#[test]
fn an_engine_that_is_found_later_is_known_from_then_on() {
    let mut stage = Stage::new();
    let lines: Vec<&str> = ROUTER.lines().collect();
    let (before, after) = lines.split_at(2 * lines.len() / 3);
    stage.read(before.iter().copied());
    let first = stage.engine("tcp://10.244.0.11:5557");
    stage.read(after.iter().copied());
    let all = stage.decisions();
    assert_ne!(stage.id(all[0]).id, first);
    assert_eq!(stage.id(all[2]).id, first);
}

#[test]
fn without_debug_the_endpoint_alone_is_known() {
    let mut stage = Stage::new();
    stage.read(ROUTER.lines().filter(|line| line.contains("Request handled")));
    let all = stage.decisions();
    assert_eq!(all.len(), 3);
    let decision = &all[0].decision;
    assert_eq!((decision.completeness, decision.dispatched), (Completeness::ChosenOnly, Some(true)));
    assert_eq!(decision.arithmetic, Arithmetic::EndpointPicker);
    assert_eq!(stage.cluster.endpoint_of(decision.worker), Some("10.244.0.11:8000"));
    assert_eq!(all[2].decision.worker, decision.worker);
    let why = all[0].why(|_| "W1".to_owned());
    assert!(why.ends_with("What the others scored is in the picker's log at DEBUG (-v=4)."), "{why}");
}

#[test]
fn profiles_of_one_request_are_decisions_of_their_own() {
    let prefill: Vec<String> = ROUTER
        .lines()
        .take(ROUTER.lines().count() / 3)
        .map(|line| line.replace("\"profile\":\"default\"", "\"profile\":\"decode\""))
        .collect();
    let decode: Vec<String> = prefill
        .iter()
        .map(|line| line.replace("\"profile\":\"decode\"", "\"profile\":\"prefill\""))
        .map(|line| line.replace("10.244.0.1", "10.244.9.1").replace("ms-llm-d-decode", "ms-llm-d-prefill"))
        .filter(|line| !line.contains("Request handled"))
        .collect();
    let mut stage = Stage::new();
    // The request is handed over once both are done.
    let (lines, handed): (Vec<&String>, Vec<&String>) =
        prefill.iter().partition(|line| !line.contains("Request handled"));
    stage.read(lines.iter().map(|line| line.as_str()).chain(decode.iter().map(String::as_str)));
    stage.read(handed.iter().map(|line| line.as_str()));
    let all = stage.decisions();
    let profiles: Vec<_> =
        all.iter().map(|of| of.decision.scores.as_ref().unwrap().profile.clone()).collect();
    assert_eq!(profiles, [Some("decode".to_owned()), Some("prefill".to_owned())]);
    assert_eq!((all[0].decision.dispatched, all[1].decision.dispatched), (Some(true), None));
    assert_eq!(all[0].decision.request_id, all[1].decision.request_id);
}

#[test]
fn runs_without_a_pick_are_bounded() {
    let mut stage = Stage::new();
    let score = ROUTER.lines().find(|line| line.contains("Calculated score")).unwrap();
    let lines: Vec<String> = (0..2_000)
        .map(|n| score.replace("000000000001", &format!("{n:012}")).replace("abcde", &format!("x{n}")))
        .collect();
    stage.read(lines.iter().map(String::as_str));
    // The latest are still known, and their picks make decisions.
    let rest: Vec<String> = ROUTER
        .lines()
        .take(ROUTER.lines().count() / 3)
        .skip_while(|line| !line.contains("Candidate pods"))
        .map(|line| line.replace("000000000001", "000000001999").replace("abcde", "x1999"))
        .collect();
    stage.read(rest.iter().map(String::as_str));
    let all = stage.decisions();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].decision.scores.as_ref().unwrap().candidates[0].by_scorer, [Some(1.0)]);
}

#[test]
fn a_gateway_s_choice_is_a_decision_of_the_worker_at_its_url() {
    const GATEWAY: &str = include_str!("../../../dynamo/tests/fixtures/sglang_gateway/smg-1.13.0.jsonl");
    let mut stage = Stage::new();
    // SGLang's engine is listened to by the same URL; it is the only one of its port.
    let ports: Vec<u16> = (30_001..=30_002).collect();
    let engines: Vec<WorkerId> =
        ports.iter().map(|port| stage.engine(&format!("http://127.0.0.1:{port}/"))).collect();
    stage.read(GATEWAY.lines());
    let all = stage.decisions();
    assert_eq!(all.len(), 4);
    let decision = &all[1].decision;
    assert_eq!(
        (decision.arithmetic, decision.decided_by),
        (Arithmetic::SglangGateway, Some(DecidedBy::Scores))
    );
    assert!(engines.contains(&stage.id(all[1]).id));
    assert_eq!(decision.completeness, Completeness::ChosenOnly);
    assert_eq!(stage.cluster.worker(decision.worker).unwrap().model, "llama");
    let scores = decision.scores.as_deref().unwrap();
    assert_eq!((scores.picker.as_deref(), scores.candidates.len()), (Some("tree_match"), 1));
    assert_eq!(scores.candidates[0].by_scorer, [Some(0.8947368264198303)]);
    // A rank is a worker of its own.
    let ranked =
        GATEWAY.replace("http://127.0.0.1:30002", "http://127.0.0.1:30002@3").replace("req-", "rank-");
    let mut of_rank = Stage::new();
    of_rank.read(ranked.lines());
    let decided = of_rank.decisions();
    assert_eq!(of_rank.id(decided[0]).dp_rank, 3);
    assert_eq!(of_rank.cluster.endpoint_of(decided[0].decision.worker), Some("127.0.0.1:30002@3"));
    let why = all[1].why(|_| "W1".to_owned());
    assert_eq!(
        why,
        "W1 was chosen by SGLang's model gateway: its tree matched 89.5 % of the prompt (branch tree_match)."
    );
}
