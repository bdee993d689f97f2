//! Lines of versions that were not recorded, after the reference (§7.3), and what they say.

use expect_test::{Expect, expect};
use radixscope_dynamo::log_line::{LogEvent, LogRecord, Printed, decode};
use radixscope_model::record::Role;

/// Lines in all forms that the reference gives; the frame around the message is that of the recorded ones.
pub const LINES: &[&str] = &[
    // Formula A, pinned (1.1).
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector: Pinned formula for worker_id=7 dp_rank=1 with 3 cached blocks: 4.219 = 0.5 * prefill_blocks + decode_blocks = 0.5 * 4.438 + 2.000",
    // B (1.2), with shared blocks.
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector: Formula for worker_id=7 dp_rank=0 with 2.750 effective cached blocks, 4 shared blocks beyond device (multiplier=0.5): 9.875 = prefill_load_scale * adjusted_prefill_blocks + decode_blocks = 1.0 * 2.875 + 7.000 (raw_prefill_blocks: 7.625, overlap_credit_blocks: 4.750)",
    // C (1.3) and D (1.4).
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector: Formula for worker_id=7 dp_rank=0 with 7.000 effective cached blocks: 7.625 = prefill_load_scale * adjusted_prefill_blocks + decode_blocks = 1.0 * 0.625 + 7.000 (raw_prefill_blocks: 7.625, overlap_credit_blocks: 7.000, overlap_credit_decay: 1.000)",
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector::default: Pinned formula for worker_id=7 dp_rank=0 with 7.000 effective cached blocks: 8.125 = prefill_load_scale * adjusted_prefill_blocks + decode_blocks + active_request_cost_blocks = 1.0 * 0.625 + 7.000 + 0.500 (raw_prefill_blocks: 7.625, overlap_credit_blocks: 7.000, overlap_credit_decay: 1.000)",
    // D, the decode branch.
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector::default: Formula for worker_id=7 dp_rank=0 with 7.000 effective cached blocks: 1.500 = max(0, decode_blocks - overlap_credit_blocks) + active_request_cost_blocks = max(0, 6.000 - 7.000) + 1.500",
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_kv_router::scheduling::selector: Multiple workers tied with same logit, using tree size as tie-breaker",
    // Selected A (0.8; 1.1 with a type; its short form), B (1.2), pinned, C (1.3 without an id, 1.6 with all fields).
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: worker_id=7 dp_rank=0, logit: 7.625, cached blocks: 7, tree size: 8, total blocks: 64",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected worker: worker_type=prefill, worker_id=7 dp_rank=2, logit: 7.625, cached blocks: 7, tree size: 8",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected worker: worker_type=decode, worker_id=7 dp_rank=0, logit: -0.500",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected worker: worker_type=prefill, worker_id=7 dp_rank=0, logit: 7.625, effective cached blocks: 6.750, host_pinned blocks: 3, disk blocks: 1, total blocks: 64",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected pinned worker: worker_type=decode, worker_id=7 dp_rank=0, logit: 7.625, effective cached blocks: 6.750",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode=\"kv\" worker_id=7 worker_type=prefill dp_rank=0 logit=1.5e-7 effective_cached_blocks=6.75 host_pinned_blocks=3 disk_blocks=1 total_kv_blocks=Some(64)",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode=\"kv\" request_id=\"583050cd\" worker_id=18446744073709551615 worker_type=decode dp_rank=0 logit=4.625 host_pinned_blocks=0 disk_blocks=0 total_kv_blocks=None",
    // In the HTTP span (1.1, 1.2), and what follows a choice (1.3, 1.4).
    "2026-11-20T18:06:54.428894Z DEBUG http-request:kv_router.schedule: dynamo_kv_router::scheduling::selector: Formula for worker_id=7 dp_rank=0 with 0 cached blocks: 4.625 = 1.0 * prefill_blocks + decode_blocks = 1.0 * 2.625 + 2.000 method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=ffe1b34c model=\"m\"",
    "2026-11-20T18:06:54.428894Z  INFO http-request:kv_router.schedule: dynamo_kv_router::scheduling::selector: Selected worker: worker_type=decode, worker_id=7 dp_rank=0, logit: 4.625, host_pinned blocks: 0, disk blocks: 0 method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=ffe1b34c model=\"m\"",
    "2026-11-20T18:06:54.428894Z  INFO http-request:kv_router.route_request: dynamo_runtime::pipeline::network::egress::push_router: Selected worker router_mode=\"direct\" worker_id=7 method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=ffe1b34c model=\"m\" request_id=71128c4b worker_id=7 dp_rank=3 overlap_blocks=5 phase=Aggregated",
    "2026-11-20T18:06:54.428894Z DEBUG dynamo_llm::kv_router: [ROUTING] Best: worker_7 dp_rank=1 with 3/8 blocks overlap request_id=e9980da3 worker_id=7",
    "2026-11-20T18:06:54.428894Z DEBUG http-request:kv_router.select_worker: dynamo_kv_router::services::selection::core::run: [ROUTING_INPUT] request local hashes request_id=\"e9980da3\" isl_tokens=40 block_size=16 num_blocks=2 local_hashes=[7585370176810793920, 18446744073709551615]",
    "2026-11-20T18:06:54.428894Z  WARN http-request:kv_router.route_request: request_span: route request failed request.outcome=\"worker_disconnected\" error.type=\"disconnected\" method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=ffe1b34c model=\"a \\\" otel.kind=\\\"client\\\" request_id=9\" otel.kind=\"client\" request_id=71128c4b dp_rank=0 overlap_blocks=3 phase=Decode worker_id=7 request.attempt=0 migration.is_retry=false migration.tokens_completed=0 request.outcome=\"worker_disconnected\"",
    "2026-11-20T18:06:54.428894Z  INFO http-request:kv_router.route_request: request_span: route request cancelled request.outcome=\"cancelled\" cancellation.signal=\"kill\" method=POST request_id=ffe1b34c otel.kind=\"client\" request_id=71128c4b dp_rank=0 overlap_blocks=3 phase=Prefill worker_id=7",
    "2026-11-20T18:06:54.428894Z  INFO http-request: dynamo_llm::http::service::metrics: request completed request_id=71128c4b model=m endpoint=chat_completions request_type=stream status=error elapsed_ms=16 method=POST request_id=ffe1b34c",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::sequence: Removing worker WorkerWithDpRank { worker_id: 7, dp_rank: 3 }",
    // Other modes (1.5, 1.6), a route that was not by KV, and routers that do not listen or that predict (1.6).
    "2026-11-20T18:06:54.428894Z  INFO http-request: dynamo_runtime::pipeline::network::egress::push_router: Selected worker router_mode=\"least-loaded\" worker_id=7 candidate_count=2 occupancy=Some(3) method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=ffe1b34c model=\"m\"",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_runtime::pipeline::network::egress::push_router: Selected worker router_mode=\"power-of-two-choices\" worker_id=18446744073709551615 candidate_count=2 occupancy=None",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::x: Selected worker router_mode=\"device-aware-weighted\" worker_id=7 dp_rank=0 logit=4.625",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::x: Selected worker router_mode=\"later\" worker_id=7",
    "2026-11-20T18:06:54.428894Z  WARN http-request:router.route_request: request_span: route request failed request.outcome=\"connection_failed\" error.type=\"cannot_connect\" method=POST version=HTTP/1.1 request_id=ffe1b34c model=\"m\" otel.kind=\"client\" request_id=71128c4b router_mode=RoundRobin worker_id=7 request.attempt=0 request.outcome=\"connection_failed\"",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router::indexer::ingress: Skipping KV event subscription requirement=not_required cache_required=true use_kv_events=false use_remote_indexer=false",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router::indexer: Starting predict-on-route side indexer ttl_secs=2.5",
    // The path of events.
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::subscriber: DISCOVERY: Generate endpoint instance removed, removing worker 7668682361245869064",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::indexer: Failed to find parent block; skipping store operation worker_id=\"7668682361161377814\" dp_rank=1 id=96 parent_hash=Some(ExternalSequenceBlockHash(9)) num_blocks=0",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_kv_router::indexer::radix_tree: Failed to find block to remove; skipping remove operation worker_id=7 dp_rank=0 event_id=237 block_hash=ExternalSequenceBlockHash(9)",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::indexer: block_hash mismatch: sequence hashes should be uniform across workers expected=ExternalSequenceBlockHash(1) actual=Some(ExternalSequenceBlockHash(2))",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::publisher: Block not published. Block size must be 16 tokens to be published. Block size is: 32",
    "2026-11-20T18:06:54.428894Z ERROR dynamo.trtllm.publisher: Block -7 contains 32 tokens, which is greater than kv_block_size 16",
    "2026-11-20T18:06:54.428894Z ERROR dynamo.trtllm.publisher: Block contains 64 tokens, which is greater than kv_block_size 32",
    "2026-11-20T18:06:54.428894Z ERROR dynamo_llm::kv_router::sequence: prefill_tokens < 0 with ISL 100 < cached_tokens 160",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::discovery::model_manager: KV Router block size mismatch! Endpoint is requesting a different kv_cache_block_size than the existing router. This will cause routing to fail silently. Consider using the same block size or restarting the router. endpoint=dynamo/backend/generate existing_block_size=16 requested_block_size=32",
    "2026-11-20T18:06:54.428894Z ERROR dynamo_llm::discovery::watcher: Checksum for new model does not match existing model. model_name=\"m\"",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::subscriber: Event ID gap detected for worker 7, recovering events [3, 5], gap_size: 3",
    "2026-11-20T18:06:54.428894Z  WARN dynamo_llm::kv_router::worker_query: Worker 7 does not have local indexer enabled, skipping recovery",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router: Not all workers have local_indexer enabled, using JetStream subscription",
    "2026-11-20T18:06:54.428894Z  INFO dynamo_llm::kv_router: KV Routing initialized",
];

fn read(line: &str) -> LogRecord<'_> {
    decode(line.as_bytes()).unwrap().unwrap_or_else(|| panic!("says nothing: {line}"))
}

#[test]
fn lines_of_every_version_say() {
    let mut all = String::new();
    for line in LINES {
        let LogRecord { at_us, level, event, .. } = read(line);
        assert_eq!(at_us, Some(1_795_198_014_428_894));
        all.push_str(&format!("{level:?} {event:?}\n"));
    }
    EXPECTED.assert_eq(&all);
}

const EXPECTED: Expect = expect![[r#"
    Debug Formula(Formula { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 1 }, pinned: true, cached_blocks: Printed { value: 3.0, decimals: 0 }, logit: Printed { value: 4.219, decimals: 3 }, terms: Weighted { weight: Printed { value: 0.5, decimals: 1 }, prefill_blocks: Printed { value: 4.438, decimals: 3 }, decode_blocks: Printed { value: 2.0, decimals: 3 } } })
    Debug Formula(Formula { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, pinned: false, cached_blocks: Printed { value: 2.75, decimals: 3 }, logit: Printed { value: 9.875, decimals: 3 }, terms: Scaled { scale: Printed { value: 1.0, decimals: 1 }, adjusted_prefill_blocks: Printed { value: 2.875, decimals: 3 }, decode_blocks: Printed { value: 7.0, decimals: 3 }, active_request_blocks: None, raw_prefill_blocks: Printed { value: 7.625, decimals: 3 }, overlap_credit_blocks: Printed { value: 4.75, decimals: 3 }, overlap_credit_decay: None, shared: Some((4, Printed { value: 0.5, decimals: 1 })) } })
    Debug Formula(Formula { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, pinned: false, cached_blocks: Printed { value: 7.0, decimals: 3 }, logit: Printed { value: 7.625, decimals: 3 }, terms: Scaled { scale: Printed { value: 1.0, decimals: 1 }, adjusted_prefill_blocks: Printed { value: 0.625, decimals: 3 }, decode_blocks: Printed { value: 7.0, decimals: 3 }, active_request_blocks: None, raw_prefill_blocks: Printed { value: 7.625, decimals: 3 }, overlap_credit_blocks: Printed { value: 7.0, decimals: 3 }, overlap_credit_decay: Some(Printed { value: 1.0, decimals: 3 }), shared: None } })
    Debug Formula(Formula { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, pinned: true, cached_blocks: Printed { value: 7.0, decimals: 3 }, logit: Printed { value: 8.125, decimals: 3 }, terms: Scaled { scale: Printed { value: 1.0, decimals: 1 }, adjusted_prefill_blocks: Printed { value: 0.625, decimals: 3 }, decode_blocks: Printed { value: 7.0, decimals: 3 }, active_request_blocks: Some(Printed { value: 0.5, decimals: 3 }), raw_prefill_blocks: Printed { value: 7.625, decimals: 3 }, overlap_credit_blocks: Printed { value: 7.0, decimals: 3 }, overlap_credit_decay: Some(Printed { value: 1.0, decimals: 3 }), shared: None } })
    Debug Formula(Formula { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, pinned: false, cached_blocks: Printed { value: 7.0, decimals: 3 }, logit: Printed { value: 1.5, decimals: 3 }, terms: Decode { decode_blocks: Printed { value: 6.0, decimals: 3 }, overlap_credit_blocks: Printed { value: 7.0, decimals: 3 }, active_request_blocks: Printed { value: 1.5, decimals: 3 } } })
    Debug Tie(Tie { ids: RequestIds { router: None, http: None } })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: None, pinned: false, logit: Printed { value: 7.625, decimals: 3 }, cached_blocks: Some(Printed { value: 7.0, decimals: 0 }), tree_size_blocks: Some(8), total_blocks: Some(64), host_pinned_blocks: None, disk_blocks: None })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 2 }, worker_type: Some(Prefill), pinned: false, logit: Printed { value: 7.625, decimals: 3 }, cached_blocks: Some(Printed { value: 7.0, decimals: 0 }), tree_size_blocks: Some(8), total_blocks: None, host_pinned_blocks: None, disk_blocks: None })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: Some(Decode), pinned: false, logit: Printed { value: -0.5, decimals: 3 }, cached_blocks: None, tree_size_blocks: None, total_blocks: None, host_pinned_blocks: None, disk_blocks: None })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: Some(Prefill), pinned: false, logit: Printed { value: 7.625, decimals: 3 }, cached_blocks: Some(Printed { value: 6.75, decimals: 3 }), tree_size_blocks: None, total_blocks: Some(64), host_pinned_blocks: Some(3), disk_blocks: Some(1) })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: Some(Decode), pinned: true, logit: Printed { value: 7.625, decimals: 3 }, cached_blocks: Some(Printed { value: 6.75, decimals: 3 }), tree_size_blocks: None, total_blocks: None, host_pinned_blocks: None, disk_blocks: None })
    Info Selected(Selected { ids: RequestIds { router: None, http: None }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: Some(Prefill), pinned: false, logit: Printed { value: 1.5e-7, decimals: 8 }, cached_blocks: Some(Printed { value: 6.75, decimals: 2 }), tree_size_blocks: None, total_blocks: Some(64), host_pinned_blocks: Some(3), disk_blocks: Some(1) })
    Info Selected(Selected { ids: RequestIds { router: Some("583050cd"), http: None }, worker: Worker { id: WorkerId(18446744073709551615), dp_rank: 0 }, worker_type: Some(Decode), pinned: false, logit: Printed { value: 4.625, decimals: 3 }, cached_blocks: None, tree_size_blocks: None, total_blocks: None, host_pinned_blocks: Some(0), disk_blocks: Some(0) })
    Debug Formula(Formula { ids: RequestIds { router: None, http: Some("ffe1b34c") }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, pinned: false, cached_blocks: Printed { value: 0.0, decimals: 0 }, logit: Printed { value: 4.625, decimals: 3 }, terms: Weighted { weight: Printed { value: 1.0, decimals: 1 }, prefill_blocks: Printed { value: 2.625, decimals: 3 }, decode_blocks: Printed { value: 2.0, decimals: 3 } } })
    Info Selected(Selected { ids: RequestIds { router: None, http: Some("ffe1b34c") }, worker: Worker { id: WorkerId(7), dp_rank: 0 }, worker_type: Some(Decode), pinned: false, logit: Printed { value: 4.625, decimals: 3 }, cached_blocks: None, tree_size_blocks: None, total_blocks: None, host_pinned_blocks: Some(0), disk_blocks: Some(0) })
    Info Dispatched(Dispatched { ids: RequestIds { router: Some("71128c4b"), http: Some("ffe1b34c") }, worker: Worker { id: WorkerId(7), dp_rank: 3 }, overlap_blocks: 5, phase: Some(Aggregated) })
    Debug RoutingBest(RoutingBest { ids: RequestIds { router: Some("e9980da3"), http: None }, worker: Worker { id: WorkerId(7), dp_rank: 1 }, overlap_blocks: 3, total_blocks: 8 })
    Debug RoutingInput(RoutingInput { request_id: "e9980da3", http_id: None, isl_tokens: 40, block_size_tokens: 16, num_blocks: 2, local_hashes: [7585370176810793920, 18446744073709551615] })
    Warn RouteDone(RouteDone { request_id: "71128c4b", http_id: Some("ffe1b34c"), worker: Worker { id: WorkerId(7), dp_rank: 0 }, overlap_blocks: Some(3), phase: Some(Decode), ending: Failed, outcome: Some("worker_disconnected") })
    Info RouteDone(RouteDone { request_id: "71128c4b", http_id: Some("ffe1b34c"), worker: Worker { id: WorkerId(7), dp_rank: 0 }, overlap_blocks: Some(3), phase: Some(Prefill), ending: Cancelled, outcome: Some("cancelled") })
    Info RequestDone(RequestDone { request_id: "71128c4b", http_id: Some("ffe1b34c"), model: Some("m"), status: Some("error"), input_tokens: None, output_tokens: None, ttft_ms: None, avg_itl_ms: None, elapsed_ms: Some(16.0), prefill_worker: None, decode_worker: None })
    Warn WorkerRemoved(Worker { id: WorkerId(7), dp_rank: 3 })
    Info SelectedWithoutKv(SelectedWithoutKv { ids: RequestIds { router: None, http: Some("ffe1b34c") }, worker: WorkerId(7), mode: LeastLoaded, candidate_count: Some(2), occupancy: Some(3) })
    Info SelectedWithoutKv(SelectedWithoutKv { ids: RequestIds { router: None, http: None }, worker: WorkerId(18446744073709551615), mode: PowerOfTwoChoices, candidate_count: Some(2), occupancy: None })
    Info SelectedWithoutKv(SelectedWithoutKv { ids: RequestIds { router: None, http: None }, worker: WorkerId(7), mode: DeviceAwareWeighted, candidate_count: None, occupancy: None })
    Info SelectedWithoutKv(SelectedWithoutKv { ids: RequestIds { router: None, http: None }, worker: WorkerId(7), mode: Other, candidate_count: None, occupancy: None })
    Warn Unreachable(Unreachable { ids: RequestIds { router: Some("71128c4b"), http: Some("ffe1b34c") }, worker: WorkerId(7), why: ConnectionFailed })
    Info Signal { sign: KvEventsOff, worker: None }
    Info Signal { sign: PredictsOnRoute { ttl_ms: Some(2500) }, worker: None }
    Warn InstanceRemoved(WorkerId(7668682361245869064))
    Warn Signal { sign: ParentUnknown, worker: Some(Worker { id: WorkerId(7668682361161377814), dp_rank: 1 }) }
    Warn Signal { sign: BlockUnknown, worker: Some(Worker { id: WorkerId(7), dp_rank: 0 }) }
    Warn Signal { sign: HashMismatch, worker: None }
    Warn Signal { sign: PublisherSize { publisher: 16, engine: 32 }, worker: None }
    Error Signal { sign: Oversize { publisher: 16, engine: 32 }, worker: None }
    Error Signal { sign: Oversize { publisher: 32, engine: 64 }, worker: None }
    Error Signal { sign: NegativePrefill, worker: None }
    Warn Signal { sign: CardSizes, worker: None }
    Error Signal { sign: CardSizes, worker: None }
    Warn Signal { sign: EventGap, worker: Some(Worker { id: WorkerId(7), dp_rank: 0 }) }
    Warn Signal { sign: NoLocalIndexer, worker: Some(Worker { id: WorkerId(7), dp_rank: 0 }) }
    Info Signal { sign: UsesJetStream, worker: None }
    Info Signal { sign: RouterStarted, worker: None }
"#]];

#[test]
fn printed_costs_of_every_version_are_those_of_their_terms() {
    let formulas = LINES.iter().filter_map(|line| match read(line).event {
        LogEvent::Formula(formula) => Some(formula),
        _ => None,
    });
    let mut seen = 0;
    for formula in formulas {
        assert!(formula.adds_up() && formula.logit.reads_as(formula.recomputed()), "{formula:?}");
        let off = Printed { value: formula.logit.value + 0.5, ..formula.logit };
        let wrong = radixscope_dynamo::log_line::Formula { logit: off, ..formula.clone() };
        assert!(!wrong.adds_up() && !wrong.logit.reads_as(wrong.recomputed()), "{wrong:?}");
        seen += 1;
    }
    assert_eq!(seen, 6);
}

#[test]
fn a_weight_rounded_for_print_adds_up_but_does_not_read_the_same() {
    // 0.75 · 100 + 2 is 77; the weight is printed as 0.8.
    let line = "2026-11-20T18:06:54.428894Z  INFO x: Formula for worker_id=7 dp_rank=0 with 0 cached blocks: 77.000 = 0.8 * prefill_blocks + decode_blocks = 0.8 * 100.000 + 2.000";
    let LogEvent::Formula(formula) = read(line).event else { panic!("no formula") };
    assert!(formula.adds_up());
    assert!(!formula.logit.reads_as(formula.recomputed()));
}

#[test]
fn a_printed_number_prints_as_it_was_printed() {
    for text in ["0", "482.125", "1.0", "-0.500", "0.000", "486.6875"] {
        let printed = Printed::parse(text).unwrap();
        assert_eq!(printed.to_string(), text);
        assert!(printed.reads_as(printed.value));
    }
    assert_eq!(Printed::parse("1.5e-7").unwrap().to_string(), "0.00000015");
    for text in ["", ".", "-", "NaN", "inf", "infinity", "1e999", "1,5", "0x1", "1 ", "1e", "--1"] {
        assert_eq!(Printed::parse(text), None, "{text:?}");
    }
}

#[test]
fn other_modes_other_spans_and_other_parts_are_not_ours() {
    let frame = "2026-11-20T18:06:54.428894Z  INFO ";
    for rest in [
        "dynamo_llm::x: Selected workers: 3",
        "http-request:round_robin.route_request: request_span: route request completed request_id=1 worker_id=7",
        "http-request: dynamo_llm::http::service::service_v2: request completed with server error status=500 latency_ms=7",
        "http-request: dynamo_llm::http::service::service_v2: request completed request_id=1 status=200",
        "dynamo_llm::x: a user quoted: Selected worker: worker_id=7 dp_rank=0, logit: 7.625",
        "dynamo_llm::x: prompt=\"Formula for worker_id=7 dp_rank=0\"",
    ] {
        assert_eq!(decode(format!("{frame}{rest}").as_bytes()), Ok(None), "{rest}");
    }
    let json = r#"{"time":"2026-11-20T18:08:03.893701Z","level":"INFO","target":"x","message":"prompt","text":"Selected worker"}"#;
    assert_eq!(decode(json.as_bytes()), Ok(None));
    let other =
        r#"{"level":"INFO","target":"x","message":"Selected worker","router_mode":"load","worker_id":"x"}"#;
    assert!(decode(other.as_bytes()).is_err(), "a worker is a number in every mode");
}

#[test]
fn numbers_of_jsonl_may_be_text() {
    let line = |worker: &str, rank: &str, logit: &str| {
        format!(
            r#"{{"level":"INFO","target":"x","message":"Selected worker","worker_id":{worker},"dp_rank":{rank},"logit":{logit},"total_kv_blocks":"Some(64)","disk_blocks":null}}"#
        )
    };
    let (numbers, texts) = (line("7", "1", "4.625"), line("\"7\"", "\"1\"", "\"4.625\""));
    assert_eq!(read(&numbers), read(&texts));
    let LogEvent::Selected(selected) = read(&numbers).event else { panic!("no selection") };
    assert_eq!(
        (selected.total_blocks, selected.disk_blocks, selected.worker.to_string().as_str()),
        (Some(64), None, "7/1")
    );
    assert_eq!(read(&numbers).at_us, None);
}

#[test]
fn escapes_of_jsonl_are_undone() {
    let line = r#"{"level":"INFO","target":"x","message":"Selected worker","worker_id":7,"logit":1,"request_id":"caf\u00e9\"s"}"#;
    let LogEvent::Selected(selected) = read(line).event else { panic!("no selection") };
    assert_eq!(selected.ids.router.as_deref(), Some("café\"s"));
    let line = r#"{"level":"INFO","target":"x","message":"Selected worker: worker_type=d\u00e9code, worker_id=7 dp_rank=0, logit: 1"}"#;
    let LogEvent::Selected(selected) = read(line).event else { panic!("no selection") };
    assert_eq!((selected.worker_type, selected.worker.to_string().as_str()), (None, "7/0"));
    let line = line.replace("d\\u00e9code", "\\u0064ecode");
    let LogEvent::Selected(selected) = read(&line).event else { panic!("no selection") };
    assert_eq!(selected.worker_type, Some(Role::Decode));
}
