//! Behaviour of joining and reconstructing, one piece at a time.

use super::*;
use radixscope_model::id::{BlockHash, PoolIx, Seq, SourceIx, TokensHash, Worker};
use radixscope_model::record::{
    Block, Completeness, Entry, NotReconstructed, PathEnd, ReportedSettings, RouterNumbers, RouterRef,
    SettingsSource, SourceKind, Tier,
};
use radixscope_router::hash::chain;
use radixscope_state::cluster::Cluster;

const AT: u64 = 1_800_000_000_000;
const BLOCK: u64 = 16;

/// Two workers of one component; the first holds `1 2 3 … 7` as the first blocks of a prompt.
struct Scenario {
    cluster: Cluster,
    routing: Routing,
    at: u64,
}

impl Scenario {
    fn new() -> Self {
        let mut scenario = Self { cluster: Cluster::default(), routing: Routing::default(), at: AT };
        scenario.fold(Record::Source { source: SourceIx(0), name: "n".into(), kind: SourceKind::Nats });
        for w in 0..2 {
            let id = Worker::new(100 + u64::from(w), 0);
            scenario.fold(Record::new_worker(WorkerIx(w), id, "dynamo", "backend"));
        }
        let own: Vec<TokensHash> = (1..=7).map(TokensHash).collect();
        let blocks: Vec<Block> = own
            .iter()
            .map(|&tokens_hash| Block { block_hash: BlockHash(tokens_hash.0 + 500), tokens_hash })
            .collect();
        scenario.fold(Record::Stored { worker: WorkerIx(0), parent: None, blocks: blocks.into() });
        scenario
    }

    fn fold(&mut self, record: Record<'_>) {
        let seq = Seq(self.cluster.seq().0 + 1);
        self.cluster.fold(seq, &Entry { at_ms: Millis(self.at), record });
    }

    fn observe(&mut self, signal: RequestSignal<'_>) {
        let at = Millis(self.at);
        let observation =
            RequestObservation { source: SourceIx(0), at_ms: at, published_ms: Some(at), now_ms: at, signal };
        for record in self.routing.observe(&observation, &self.cluster) {
            self.fold(record);
        }
        // Long enough that nothing is waited for any more.
        let later = Millis(self.at + 500);
        for record in self.routing.flush(later, later, &self.cluster) {
            self.fold(record);
        }
    }

    fn step(&mut self, request: &str, worker: u16, step: SequenceChange) {
        let id = Worker::new(100 + u64::from(worker), 0);
        let (request_id, router) = (request.into(), RouterId::Number(9));
        let step = ActiveSequence { request_id, worker: id, router, step, by_worker: false, lora_name: None };
        self.observe(RequestSignal::Sequence { worker: WorkerIx(worker.into()), step: &step });
    }

    fn hit_rate(&mut self, worker: u16, isl_blocks: u64, overlap_blocks: u64) {
        self.observe(RequestSignal::HitRate {
            worker: WorkerIx(worker.into()),
            router: Some(9),
            isl_blocks,
            overlap_blocks,
        });
    }

    fn latest(&self) -> &radixscope_state::cluster::DecisionEntry {
        self.cluster.decisions().newest_first().next().expect("decided")
    }

    fn costs(&self) -> Vec<(u32, f64)> {
        self.latest().decision.candidates.iter().map(|c| (c.overlap_blocks, c.cost)).collect()
    }
}

/// Seven full blocks, of which the first `known` are those in the tree.
fn prompt(known: u64) -> Vec<u64> {
    let own: Vec<TokensHash> = (1..=7).map(|i| TokensHash(if i <= known { i } else { 70 + i })).collect();
    chain(&own).iter().map(|hash| hash.0).collect()
}

/// As 0.8 to 1.1 say it.
fn old(known: u64, isl: u64, overlap: u64) -> SequenceChange {
    let (token_sequence, isl, overlap) = (Some(prompt(known)), Some(isl), Some(overlap));
    SequenceChange::Added(AddRequest { token_sequence, isl, overlap, ..AddRequest::default() })
}

/// As 1.2 and later say it.
fn new(known: u64, to_prefill: u64) -> SequenceChange {
    let initial_effective_prefill_tokens = Some(to_prefill);
    SequenceChange::Added(AddRequest {
        token_sequence: Some(prompt(known)),
        initial_effective_prefill_tokens,
        ..AddRequest::default()
    })
}

#[test]
fn every_workers_cost_follows_from_the_hashes_and_the_tree() {
    let mut scenario = Scenario::new();
    scenario.step("a", 0, old(7, 122, 7));
    assert_eq!(scenario.costs(), [(7, 7.625), (0, 14.625)]);
    let decided = scenario.latest();
    assert_eq!(decided.decision.block_size_tokens, Some(16), "the only power of two that fits");
    assert_eq!(
        (decided.decision.isl_blocks, decided.decision.completeness),
        (Some(8), Completeness::Reconstructed)
    );
    let end = PathEnd { worker: WorkerIx(0), block_hash: BlockHash(507), blocks: 7 };
    assert_eq!(decided.decision.path, Some(end));
}

#[test]
fn requests_that_run_load_their_worker_until_first_token_and_end() {
    let mut scenario = Scenario::new();
    scenario.step("busy", 1, old(7, 122, 0));
    scenario.step("a", 0, old(7, 122, 7));
    scenario.at += 100;
    scenario.step("b", 0, old(7, 122, 7));
    // Ten tokens of the first wait there; its seven blocks are this request's too.
    assert_eq!(scenario.costs()[0], (7, (10.0 + 10.0) / 16.0 + 7.0));
    scenario.at += 100;
    scenario.step("a", 0, SequenceChange::PrefillCompleted);
    scenario.at += 100;
    scenario.step("c", 0, old(3, 122, 3));
    assert_eq!(scenario.costs()[0], (3, (10.0 + 122.0 - 48.0) / 16.0 + 7.0 + 4.0));
    for request in ["a", "b", "c"] {
        scenario.step(request, 0, SequenceChange::Freed);
    }
    scenario.step("busy", 1, SequenceChange::Freed);
    scenario.at += 100;
    scenario.step("d", 0, old(7, 122, 7));
    assert_eq!(scenario.costs(), [(7, 7.625), (0, 14.625)]);
}

#[test]
fn later_versions_report_lengths_only_in_a_roundabout_way() {
    let mut scenario = Scenario::new();
    scenario.fold(Record::ModelCard {
        worker: WorkerIx(0),
        total_kv_blocks: None,
        block_size_tokens: Some(16),
        publishes_events: None,
    });
    scenario.step("a", 0, new(7, 10));
    let decision = &scenario.latest().decision;
    assert_eq!((decision.isl_tokens, decision.overlap_blocks), (Some(7 * BLOCK + 10), Some(7)));
    assert_eq!(scenario.costs(), [(7, 7.625), (0, 14.625)]);
    assert_eq!(scenario.latest().decision.formula, Some(Formula::E));
}

#[test]
fn a_prompt_that_is_not_held_whole_shows_the_block_size_to_all_that_follow() {
    let mut scenario = Scenario::new();
    scenario.step("a", 1, new(7, 122));
    assert_eq!(scenario.latest().decision.block_size_tokens, Some(16));
    scenario.at += 100;
    scenario.step("b", 0, new(7, 10));
    assert_eq!(scenario.latest().decision.isl_tokens, Some(122));
    assert_eq!(scenario.costs(), [(7, 7.625), (0, (122.0 + 122.0) / 16.0 + 7.0)]);
}

#[test]
fn what_would_not_have_been_chosen_is_not_called_reconstructed() {
    let mut scenario = Scenario::new();
    scenario.step("a", 1, old(7, 122, 0));
    let decision = &scenario.latest().decision;
    assert_eq!(decision.completeness, Completeness::ChosenOnly);
    assert_eq!(decision.not_reconstructed, Some(NotReconstructed::Cost));
}

#[test]
fn a_worker_of_1_2_has_a_load_once_its_router_counts_it() {
    let costs = |counted: bool, logit: Option<&str>| {
        let mut scenario = Scenario::new();
        scenario.at = 1_795_198_014_428;
        scenario.card();
        scenario.routing.own_ids = true;
        for worker in [100, 101].iter().filter(|_| counted) {
            scenario.log(&format!(
                "d::multi_worker: Adding worker WorkerWithDpRank {{ worker_id: {worker}, dp_rank: 0 }}"
            ));
        }
        if let Some(logit) = logit {
            scenario.log(&chosen("a").replace("4.625", logit));
        }
        scenario.step("a", 0, new(7, 10));
        (scenario.costs(), scenario.latest().decision.not_reconstructed)
    };
    let (with, without) = (vec![(7, 7.625), (0, 14.625)], vec![(7, 0.625), (0, 7.625)]);
    assert_eq!(costs(true, None), (with.clone(), None));
    assert_eq!(costs(true, Some("7.625")), (with.clone(), None));
    assert_eq!(costs(true, Some("0.625")), (Vec::new(), Some(NotReconstructed::Cost)));
    // Attached later, or not reported by the router: one report counts for all.
    assert_eq!(costs(false, Some("7.625")), (with, None));
    assert_eq!(costs(false, Some("0.625")), (without, None));
    assert_eq!(costs(false, None), (Vec::new(), Some(NotReconstructed::State)));
}

#[test]
fn without_a_block_size_nothing_is_made_up() {
    let mut scenario = Scenario::new();
    scenario.step("a", 0, new(7, 10));
    let decision = &scenario.latest().decision;
    assert_eq!((decision.isl_tokens, decision.overlap_blocks), (None, None));
    assert_eq!(decision.completeness, Completeness::ChosenOnly);
    assert!(decision.path.is_some(), "where the prefix ends is known all the same");
}

#[test]
fn what_two_topics_say_of_one_request_is_one_decision() {
    let mut scenario = Scenario::new();
    scenario.hit_rate(0, 8, 7);
    scenario.step("a", 0, old(7, 122, 7));
    scenario.hit_rate(1, 8, 0);
    assert_eq!(scenario.cluster.decisions().totals().count, 2);
    let first = scenario.cluster.decisions().get(DecisionId(1)).expect("kept");
    assert_eq!(first.decision.request_id.as_deref(), Some("a"));
    assert_eq!(first.sources().count(), 2);
    assert_eq!(first.decision.candidates.len(), 2);
}

#[test]
fn the_progress_of_a_request_belongs_to_its_decision() {
    let mut scenario = Scenario::new();
    scenario.step("a", 0, old(7, 122, 7));
    scenario.at += 40;
    scenario.step("a", 0, SequenceChange::PrefillCompleted);
    scenario.at += 2;
    // The router repeats the worker's report.
    scenario.step("a", 0, SequenceChange::PrefillCompleted);
    scenario.at += 500;
    scenario.step("a", 0, SequenceChange::Freed);
    scenario.step("stranger", 0, SequenceChange::Freed);
    let progress = scenario.latest().progress;
    assert_eq!(progress.first_token_ms, Some(Millis(AT + 40)));
    assert_eq!(progress.ended_ms, Some(Millis(AT + 542)));
}

#[test]
fn prompts_are_kept_for_playing_them_again() {
    let mut scenario = Scenario::new();
    scenario.step("a", 0, old(7, 122, 7));
    scenario.step("b", 1, old(3, 122, 0));
    let arrivals = scenario.routing.arrivals();
    let mut blocks = Vec::new();
    arrivals.prompt(arrivals.of(DecisionId(2)).expect("kept"), &mut blocks);
    assert_eq!(blocks, prompt(3));
}

#[test]
fn a_trace_alone_is_a_decision_and_more_of_one_that_is_known() {
    let trace = |request: &'static str| RequestTrace {
        request_id: request.into(),
        event_time_ms: Some(AT + 900),
        request_received_ms: Some(AT),
        input_tokens: Some(122),
        output_tokens: Some(8),
        cached_tokens: Some(112),
        kv_hit_rate: Some(0.875),
        ttft_ms: Some(3.609_225),
        trace_block_size_tokens: Some(16),
        input_sequence_hashes: Some(prompt(7).into_iter().chain([99]).collect()),
        ..RequestTrace::default()
    };
    let mut scenario = Scenario::new();
    scenario.step("a", 0, old(7, 122, 7));
    scenario.observe(RequestSignal::Trace { trace: &trace("a"), worker: Some(WorkerIx(0)), decode: None });
    assert_eq!(scenario.cluster.decisions().totals().count, 1);
    assert_eq!(scenario.latest().progress.ttft_us, Some(3_609));
    scenario.observe(RequestSignal::Trace { trace: &trace("b"), worker: Some(WorkerIx(1)), decode: None });
    assert_eq!(scenario.cluster.decisions().totals().count, 2);
    let decided = scenario.latest();
    assert_eq!((decided.overlap_blocks(), decided.decision.isl_blocks), (Some(7), Some(8)));
    assert_eq!(decided.decision.completeness, Completeness::ChosenOnly);
    let arrivals = scenario.routing.arrivals();
    assert_eq!(arrivals.of(DecisionId(2)).map(|arrival| arrival.blocks), Some(7), "without the begun one");
}

#[test]
fn a_choice_uses_up_what_was_logged_of_its_request_and_the_rest_is_bounded() {
    use radixscope_dynamo::log_line;
    let mut scenario = Scenario::new();
    let mut line = |text: String| {
        let line = log_line::decode(text.as_bytes()).expect("well-formed").expect("about routing");
        let worker = line.event.worker().map(|_| WorkerIx(0));
        scenario.observe(RequestSignal::Log { log: "frontend", record: &line, worker });
    };
    let at = "2026-11-20T18:06:54.428962Z  INFO target: ";
    for n in 0..5_000 {
        line(format!(
            "{at}[ROUTING_INPUT] request local hashes request_id=\"r{n}\" isl_tokens=42 block_size=16 num_blocks=2 \
             local_hashes=[1, 2]"
        ));
        if n % 2 == 0 {
            line(format!(
                "{at}Selected worker router_mode=\"kv\" request_id=\"r{n}\" worker_id=100 worker_type=decode dp_rank=0 \
                 logit=4.625 host_pinned_blocks=0 disk_blocks=0"
            ));
        }
    }
    assert_eq!(scenario.routing.lines.waiting_inputs(), 2_500, "of the requests that were not placed");
    assert_eq!(scenario.latest().decision.isl_tokens, Some(42));
}

/// A frontend's log line by line, of worker 100 alone.
impl Scenario {
    fn log(&mut self, text: &str) {
        self.says_at("2026-11-20T18:06:54.428962Z", text);
    }

    fn says_at(&mut self, time: &str, text: &str) {
        use radixscope_dynamo::log_line;
        let text = format!("{time}  INFO {text}");
        let line = log_line::decode(text.as_bytes()).expect("well-formed").expect("about routing");
        let worker = line.event.worker().map(|worker| WorkerIx((worker.id.0 - 100) as u32));
        self.observe(RequestSignal::Log { log: "frontend", record: &line, worker });
    }

    fn flush(&mut self, after_ms: u64) {
        let at = Millis(self.at + after_ms);
        for record in self.routing.flush(at, at, &self.cluster) {
            self.fold(record);
        }
    }

    fn card(&mut self) {
        let (total_kv_blocks, block_size_tokens) = (None, Some(16));
        self.fold(Record::ModelCard {
            worker: WorkerIx(0),
            total_kv_blocks,
            block_size_tokens,
            publishes_events: None,
        });
    }
}

/// By the router three blocks more of the prompt lie in host memory; by the time its message comes here the worker has them
/// on its device.
fn partly_in_host_memory() -> Scenario {
    let mut scenario = Scenario::new();
    scenario.card();
    let (parent, tokens_hash) = (Some(BlockHash(504)), TokensHash(5));
    let blocks = [Block { block_hash: BlockHash(505), tokens_hash }];
    scenario.fold(Record::TierStored {
        worker: WorkerIx(0),
        tier: Tier::Host,
        parent,
        blocks: (&blocks).into(),
    });
    // Four of seven full blocks on the device: 3 · 16 + 10 tokens, less three times three quarters of a block.
    scenario.step("a", 0, new(7, 22));
    scenario
}

const SELECTED: &str = "target: Selected worker router_mode=\"kv\" request_id=\"a\" worker_id=100 worker_type=decode \
     dp_rank=0 logit=8.375 host_pinned_blocks=3 disk_blocks=0";

#[test]
fn the_log_reports_what_of_the_tokens_to_prefill_lower_tiers_took_off() {
    let mut scenario = partly_in_host_memory();
    assert_eq!(scenario.latest().decision.isl_tokens, Some(118), "by what the trees hold now");
    scenario.log(SELECTED);
    let decided = scenario.latest();
    assert_eq!((decided.overlap_blocks(), decided.lower_tier_blocks()), (Some(4), 3));
    assert_eq!((decided.decision.isl_tokens, decided.decision.isl_blocks), (Some(122), Some(8)));
    assert_eq!(scenario.cluster.decisions().totals().overlap_blocks, 7, "held on the device and below");
}

#[test]
fn what_lay_below_the_device_of_the_chosen_worker_is_as_the_log_reports_it() {
    let mut scenario = Scenario::new();
    scenario.card();
    let (parent, tokens_hash) = (Some(BlockHash(503)), TokensHash(74));
    let blocks = [Block { block_hash: BlockHash(504), tokens_hash }];
    // Only by the time at which the message comes here.
    scenario.fold(Record::TierStored {
        worker: WorkerIx(0),
        tier: Tier::Host,
        parent,
        blocks: (&blocks).into(),
    });
    scenario.step("a", 0, new(3, 74));
    // 2027-01-15T08:00:00Z is AT.
    scenario
        .says_at("2027-01-15T08:00:00.000000Z", &SELECTED.replace("8.375", "11.625").replace("=3 ", "=0 "));
    scenario.flush(1_000);
    let decided = scenario.latest();
    assert_eq!((decided.decision.isl_tokens, decided.overlap_blocks()), (Some(122), Some(3)));
    assert_eq!(decided.decision.completeness, Completeness::Reconstructed);
    assert_eq!(scenario.costs()[0], (3, 11.625));
}

#[test]
fn the_end_of_a_request_counts_lower_tiers_as_cached_and_the_device_does_not() {
    for is_published in [true, false] {
        let mut scenario = if is_published { partly_in_host_memory() } else { Scenario::new() };
        scenario.log(SELECTED);
        scenario.log(
            "http-request:kv_router.route_request: request_span: route request completed request.outcome=\"success\" \
             method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=h model=\"m\" otel.kind=\"client\" \
             request_id=a dp_rank=0 overlap_blocks=6 phase=Aggregated worker_id=100 request.attempt=0",
        );
        let decided = scenario.latest();
        assert_eq!((decided.overlap_blocks(), decided.lower_tier_blocks()), (Some(4), 3));
        assert_eq!(scenario.cluster.decisions().totals().count, 1);
    }
}

const SPANS: &str = "method=POST uri=/v1/chat/completions version=HTTP/1.1";

fn done(request: &str, http: &str, input: u64, output: u64) -> String {
    let times = if output > 0 { "ttft_ms=\"93.57\" avg_itl_ms=\"18.62\"" } else { "" };
    format!(
        "http-request: d::http::service::metrics: request completed request_id={request} status=success elapsed_ms=969 \
         {SPANS} request_id={http} input_tokens={input} output_tokens={output} {times} prefill_worker_id=100"
    )
}

fn chosen(request: &str) -> String {
    format!(
        "d::selector: Selected worker router_mode=\"kv\" request_id=\"{request}\" worker_id=100 worker_type=decode \
         dp_rank=0 logit=4.625 host_pinned_blocks=0 disk_blocks=0"
    )
}

fn given(request: &str, http: &str, overlap: u64) -> String {
    format!(
        "http-request:kv_router.route_request: d::push_router: Selected worker router_mode=\"direct\" worker_id=100 {SPANS} \
         request_id={http} request_id={request} worker_id=100 dp_rank=0 overlap_blocks={overlap} phase=Aggregated"
    )
}

#[test]
fn a_length_that_comes_with_the_end_is_counted_once_whenever_it_comes() {
    for order in [[0, 1, 2], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]] {
        let mut scenario = Scenario::new();
        scenario.card();
        let lines = [chosen("r"), given("r", "h", 7), done("r", "h", 122, 8)];
        order.iter().for_each(|&at| scenario.log(&lines[at]));
        // Repeated, as by a log that is read twice.
        scenario.log(&lines[2]);
        let totals = scenario.cluster.decisions().totals();
        assert_eq!((totals.count, totals.with_blocks), (1, 1), "{order:?}");
        assert_eq!((totals.isl_blocks, totals.overlap_blocks), (8, 7), "{order:?}");
        assert_eq!(totals.mean_hit_rate(), Some(0.875), "{order:?}");
        let decided = scenario.latest();
        assert_eq!(decided.cache_outcome(), radixscope_state::cluster::CacheOutcome::Hit, "{order:?}");
        assert_eq!(decided.progress.ttft_us, Some(93_570));
        scenario.flush(60_000);
        assert_eq!(scenario.cluster.requests().total(), 0);
    }
}

#[test]
fn a_length_waits_for_the_block_size() {
    let mut scenario = Scenario::new();
    [chosen("r"), given("r", "h", 7), done("r", "h", 122, 8)].iter().for_each(|line| scenario.log(line));
    let decision = &scenario.latest().decision;
    assert_eq!((decision.isl_tokens, decision.isl_blocks), (Some(122), None));
    assert_eq!(scenario.cluster.decisions().totals().mean_hit_rate(), None);
    scenario.card();
    scenario.flush(1_000);
    scenario.flush(2_000);
    assert_eq!(scenario.latest().decision.isl_blocks, Some(8));
    assert_eq!(scenario.cluster.decisions().totals().mean_hit_rate(), Some(0.875));
}

#[test]
fn an_end_without_a_decision_is_a_latency_all_the_same_and_a_query_is_none() {
    let mut scenario = Scenario::new();
    scenario.log(&done("stranger", "h", 122, 8));
    scenario.log(&done("query", "q", 0, 0));
    scenario.flush(1_000);
    assert_eq!(scenario.cluster.requests().total(), 0, "its decision may still be read");
    scenario.flush(11_000);
    let ended: Vec<_> = scenario.cluster.requests().newest_first().collect();
    assert_eq!(ended.len(), 1);
    assert_eq!((ended[0].isl_tokens, ended[0].progress.ttft_us), (Some(122), Some(93_570)));
    assert_eq!(scenario.cluster.decisions().totals().count, 0);
}

#[test]
fn a_query_that_runs_nothing_counts_in_no_hit_rate() {
    let mut scenario = Scenario::new();
    scenario.card();
    // Its choice is not named (1.3): of its worker, between its arrival and its end.
    scenario.log(&chosen("").replace(" request_id=\"\"", ""));
    scenario.log(&done("query", "q", 0, 0));
    let decided = scenario.latest();
    assert_eq!(
        (decided.decision.request_id.as_deref(), decided.decision.dispatched),
        (Some("query"), Some(false))
    );
    assert_eq!(
        (scenario.cluster.decisions().totals().count, scenario.cluster.decisions().totals().with_blocks),
        (1, 0)
    );
}

#[test]
fn costs_of_two_requests_whose_lines_mix_are_kept_apart() {
    let mut scenario = Scenario::new();
    let formula = |worker: u64, http: &str, cost: &str| {
        format!(
            "http-request:kv_router.schedule: d::selector: Formula for worker_id={worker} dp_rank=0 with 0 cached blocks: \
             {cost} = 1.0 * prefill_blocks + decode_blocks = 1.0 * 2.625 + 2.000 {SPANS} request_id={http}"
        )
    };
    let selected = |worker: u64, http: &str| {
        format!(
            "http-request:kv_router.schedule: d::selector: Selected worker: worker_type=decode, worker_id={worker} dp_rank=0, \
             logit: 4.625 {SPANS} request_id={http}"
        )
    };
    scenario.log(&formula(100, "a", "4.625"));
    scenario.log(&formula(101, "b", "5.625"));
    scenario.log(&formula(101, "a", "6.625"));
    scenario.log(&formula(100, "b", "7.625"));
    scenario.log(&selected(100, "a"));
    scenario.log(&selected(101, "b"));
    let costs: Vec<Vec<f64>> = scenario
        .cluster
        .decisions()
        .newest_first()
        .map(|decided| decided.decision.candidates.iter().map(|c| c.cost).collect())
        .collect();
    assert_eq!(costs, [[5.625, 7.625], [4.625, 6.625]]);
    scenario.log(&done("router-a", "a", 42, 3));
    let first = scenario.cluster.decisions().get(DecisionId(1)).expect("kept");
    assert_eq!(first.decision.request_id.as_deref(), Some("router-a"));
}

#[test]
fn the_path_of_a_prompt_is_known_also_where_the_router_reported_all_costs_itself() {
    let mut scenario = Scenario::new();
    scenario.at = 1_795_198_014_428;
    let hashes = "1, 2, 3, 4, 5, 6, 7";
    scenario.log(&format!(
        "http-request:kv_router.select_worker: d::kv_router: [ROUTING_INPUT] request local hashes request_id=\"r\" \
         isl_tokens=122 block_size=16 num_blocks=7 local_hashes=[{hashes}] {SPANS} request_id=h"
    ));
    // 1.3: neither costs nor choice name the request.
    scenario.log(
        "d::selector: Formula for worker_id=100 dp_rank=0 with 7.00 effective cached blocks: 7.625 = prefill_load_scale * \
         adjusted_prefill_blocks + decode_blocks = 1.000 * 0.625 + 7.000 (raw_prefill_blocks: 7.625, overlap_credit_blocks: \
         7.000, overlap_credit_decay: 1.000)",
    );
    scenario.log(&chosen("").replace(" request_id=\"\"", "").replace("4.625", "7.625"));
    scenario.log(&format!(
        "http-request: d::kv_router: [ROUTING] Best: worker_100 dp_rank=0 with 7/8 blocks overlap request_id=r {SPANS} \
         request_id=h"
    ));
    assert_eq!(scenario.cluster.decisions().totals().count, 1);
    let decision = &scenario.latest().decision;
    assert_eq!(decision.completeness, Completeness::AllCandidates);
    assert_eq!((decision.isl_tokens, decision.path.map(|end| end.blocks)), (Some(122), Some(7)));
    assert_eq!((decision.dispatched, scenario.cluster.tree(PoolIx(0)).requests(0)), (Some(true), 1));
}

impl Scenario {
    /// A frontend reports the scale of its router's prefill term, and that it draws.
    fn settings(&mut self, (after_ms, by_ms): (Option<u64>, u64), scale: f64, temperature: f64) {
        let numbers = RouterNumbers {
            prefill_load_scale: Some(scale),
            router_temperature: Some(temperature),
            ..RouterNumbers::default()
        };
        let of = RouterRef {
            reporter: "fe".into(),
            router: "r".into(),
            namespace: "dynamo".into(),
            component: "backend".into(),
            ..RouterRef::default()
        };
        let record = Record::Settings(Box::new(ReportedSettings {
            source: SettingsSource::PolicyEndpoint,
            of,
            revision: None,
            numbers: Some(numbers),
            after_ms: after_ms.map(Millis),
            by_ms: Millis(by_ms),
        }));
        self.at = self.at.max(by_ms);
        let entry = Entry { at_ms: Millis(self.at), record };
        self.routing.observe_record(&entry, Published::default(), &self.cluster);
        self.fold(entry.record);
        let later = Millis(self.at + 500);
        for record in self.routing.flush(later, later, &self.cluster) {
            self.fold(record);
        }
    }

    fn outcome(&self, request: &str) -> (Vec<f64>, Option<NotReconstructed>) {
        let mut all = self.cluster.decisions().newest_first();
        let found = all.find(|of| of.decision.request_id.as_deref() == Some(request)).expect("decided");
        let costs = found.decision.candidates.iter().map(|candidate| candidate.cost).collect();
        (costs, found.decision.not_reconstructed)
    }
}

const AT_1: [f64; 2] = [7.625, 14.625];
const AT_2: [f64; 2] = [8.25, 22.25];

#[test]
fn a_change_of_settings_counts_for_decisions_after_it_and_none_before() {
    let mut scenario = Scenario::new();
    scenario.card();
    scenario.settings((None, AT), 1.0, 0.0);
    for (request, at) in [("before", AT + 500), ("between", AT + 3_000)] {
        scenario.at = at;
        scenario.step(request, 0, new(7, 10));
        scenario.at += 100;
        scenario.step(request, 0, SequenceChange::Freed);
        assert_eq!(scenario.outcome(request), (AT_1.to_vec(), None), "{request}");
    }
    // Read at 1 s and at 6 s.
    scenario.settings((Some(AT + 1_000), AT + 6_000), 2.0, 0.0);
    scenario.at = AT + 7_000;
    scenario.step("after", 0, new(7, 10));
    assert_eq!(scenario.outcome("before"), (AT_1.to_vec(), None));
    assert_eq!(
        scenario.outcome("between"),
        (vec![], Some(NotReconstructed::Cost)),
        "either may have applied"
    );
    assert_eq!(scenario.outcome("after"), (AT_2.to_vec(), None));
    let factor = |request: &str| {
        let mut all = scenario.cluster.decisions().newest_first();
        let found = all.find(|of| of.decision.request_id.as_deref() == Some(request)).expect("decided");
        found.decision.prefill_factor
    };
    assert_eq!([factor("before"), factor("between"), factor("after")], [Some(1.0), None, Some(2.0)]);
}

#[test]
fn a_reported_cost_tells_which_settings_applied() {
    for (logit, costs) in [("7.625", AT_1), ("8.25", AT_2)] {
        let mut scenario = Scenario::new();
        // As the line's time.
        let decided = 1_795_198_014_428;
        scenario.at = decided - 2_000;
        scenario.card();
        scenario.settings((None, decided - 2_000), 1.0, 0.0);
        scenario.at = decided;
        scenario.log(&chosen("a").replace("4.625", logit));
        scenario.step("a", 0, new(7, 10));
        scenario.settings((Some(decided - 1_000), decided + 2_000), 2.0, 0.0);
        assert_eq!(scenario.outcome("a"), (costs.to_vec(), None), "{logit}");
    }
}

#[test]
fn a_router_that_draws_need_not_choose_the_lowest_cost() {
    for (temperature, outcome) in
        [(0.5, (AT_1.to_vec(), None)), (0.0, (vec![], Some(NotReconstructed::Cost)))]
    {
        let mut scenario = Scenario::new();
        scenario.card();
        scenario.settings((None, AT), 1.0, temperature);
        scenario.step("a", 1, new(7, 122));
        assert_eq!(scenario.outcome("a"), outcome, "{temperature}");
    }
}
