use super::*;
use crate::config::{Config, Topology};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::Candidate;

const ABOUT: LogContext<'_> = LogContext {
    frontend: 0,
    at_us: 1_795_294_146_914_653,
    request_id: "0fa7cfa0-0731-4f3d-8cdb-2c7c2d2ce227",
};

/// What `write` logs in the pool `at` of a topology whose workers hold 1,600 blocks of 16 tokens.
fn lines(topology: Topology, at: usize, write: impl FnOnce(&mut Log, WireOut<'_>)) -> Vec<String> {
    let config =
        Config { topology, block_size_tokens: 16, blocks_per_worker: 1_600, ..Config::default() }.set_up();
    let mut lines = Vec::new();
    write(&mut Log::new(&config.pools()[at]), &mut |m| {
        lines.push(String::from_utf8(m.payload.to_vec()).expect("text"));
    });
    lines
}

fn chosen(cost: f64, overlap_blocks: u32, host_blocks: u32) -> SimulatedCandidate {
    let candidate = Candidate {
        worker: WorkerIx(0),
        overlap_blocks,
        host_blocks,
        disk_blocks: 0,
        prefill_blocks: 0.0,
        decode_blocks: 0.0,
        cost,
        tree_size: None,
    };
    SimulatedCandidate { candidate, prefill_tokens: 0, decode_blocks: 0, new_blocks: 0 }
}

#[test]
fn choices_read_as_those_of_a_real_frontend() {
    let selected = |topology, at, worker_id, chosen: SimulatedCandidate| {
        lines(topology, at, |log, out| log.selected(ABOUT, worker_id, &chosen, out)).remove(0)
    };
    assert_eq!(
        selected(Topology::Disaggregated, 0, 7668682385827896070, chosen(246.0, 0, 0)),
        "2026-11-21T20:49:06.914653Z  INFO dynamo_kv_router::scheduling::selector: Selected worker router_mode=\"kv\" \
         request_id=\"0fa7cfa0-0731-4f3d-8cdb-2c7c2d2ce227\" worker_id=7668682385827896070 worker_type=prefill dp_rank=0 \
         logit=246.0 effective_cached_blocks=0.0 host_pinned_blocks=0 disk_blocks=0 total_kv_blocks=Some(1600)"
    );
    let decode = selected(Topology::Disaggregated, 1, 7668682385827896090, chosen(246.0, 0, 0));
    assert!(decode.ends_with(
        "worker_id=7668682385827896090 worker_type=decode dp_rank=0 logit=246.0 host_pinned_blocks=0 disk_blocks=0"
    ));
    let tiers = selected(Topology::Tiers, 0, 7668682385962901006, chosen(592.3125, 1, 266));
    assert!(
        tiers.ends_with("worker_type=decode dp_rank=0 logit=592.3125 host_pinned_blocks=266 disk_blocks=0")
    );
}

#[test]
fn the_ends_of_a_request_read_as_those_of_a_real_frontend() {
    /// The recorded line with the model and the HTTP id of here.
    fn here(line: &str, recorded_http_id: &str) -> String {
        line.replace("models/tiny-llama", "simulated/Llama-70B-FP8")
            .replace(recorded_http_id, &http_id(ABOUT.request_id))
    }
    let end = |at, worker| {
        lines(Topology::Disaggregated, at, |log, out| {
            log.routed(ABOUT, (worker, 0), LoggedOutcome::Success, out)
        })
        .remove(0)
    };
    let recorded = "2026-11-21T20:49:06.914653Z  INFO http-request:kv_router.route_request: request_span: route request completed request.outcome=\"success\" method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=6810c752-a0ca-421f-9cd2-8e019f3ab299 model=\"models/tiny-llama\" otel.kind=\"client\" request_id=0fa7cfa0-0731-4f3d-8cdb-2c7c2d2ce227 dp_rank=0 overlap_blocks=0 phase=Prefill worker_id=7668682385827896070 request.attempt=0 migration.is_retry=false request.outcome=\"success\"";
    assert_eq!(end(0, 7668682385827896070), here(recorded, "6810c752-a0ca-421f-9cd2-8e019f3ab299"));
    assert!(end(1, 7668682385827896090).ends_with(
        "phase=Decode worker_id=7668682385827896090 request.attempt=0 migration.is_retry=false migration.tokens_completed=0 request.outcome=\"success\""
    ));
    let measured = Measured {
        isl_tokens: 3_795,
        osl_tokens: 34,
        ttft_us: 175_120,
        e2e_us: 175_120 + 33 * 20_620,
        prefill_worker_id: 7668682385827896070,
        decode_worker_id: 7668682385827896092,
    };
    let recorded = "2026-11-21T20:49:06.914653Z  INFO http-request: dynamo_llm::http::service::metrics: request completed request_id=0fa7cfa0-0731-4f3d-8cdb-2c7c2d2ce227 model=models/tiny-llama endpoint=chat_completions request_type=stream status=success elapsed_ms=855 method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id=7720d772-1410-4d29-8873-66172019dfb5 model=\"models/tiny-llama\" input_tokens=3795 output_tokens=34 image_count=0 video_count=0 audio_count=0 ttft_ms=\"175.12\" avg_itl_ms=\"20.62\" prefill_worker_id=7668682385827896070 decode_worker_id=7668682385827896092 request.outcome=\"success\"";
    assert_eq!(
        lines(Topology::Disaggregated, 1, |log, out| log.responded(ABOUT, &measured, out))[0],
        here(recorded, "7720d772-1410-4d29-8873-66172019dfb5")
    );
}

#[test]
fn a_lost_request_reads_as_one_of_a_real_frontend() {
    let written = lines(Topology::TwoModels, 0, |log, out| {
        log.routed(ABOUT, (7668682385939503622, 237), LoggedOutcome::Disconnected, out);
    });
    assert!(written[0].contains(" WARN http-request:kv_router.route_request: request_span: route request failed request.outcome=\"worker_disconnected\" error.type=\"disconnected\" method=POST"));
    assert!(written[0].ends_with("overlap_blocks=237 phase=Aggregated worker_id=7668682385939503622 request.attempt=0 migration.is_retry=false migration.tokens_completed=0 request.outcome=\"worker_disconnected\" error.type=\"disconnected\" otel.status_code=\"error\" otel.status_description=\"disconnected\""));
}
