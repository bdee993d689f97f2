//! The lines that a frontend of Dynamo 1.6 writes at INFO and WARN about a request (reference §7.3), letter by letter.

use std::fmt::Arguments;

use super::{Level, Log};
use crate::config::WorkerSelection;
use crate::metrics::frontend_name;
use crate::router::SimulatedCandidate;
use crate::tokens::mix;
use crate::wire::WireOut;
use radixscope_model::id::Millis;
use radixscope_router::Role;

const SELECTOR: &str = "dynamo_kv_router::scheduling::selector";
const ROUTED: &str = "http-request:kv_router.route_request: request_span";
const DONE: &str = "http-request: dynamo_llm::http::service::metrics";
/// Fields of the span of a request.
const SPAN: &str = "method=POST uri=/v1/chat/completions version=HTTP/1.1";

/// Where and when a line is written, and about which request.
#[derive(Clone, Copy)]
pub(crate) struct LogContext<'a> {
    pub(crate) frontend: u8,
    pub(crate) at_us: u64,
    /// The router's id of the request.
    pub(crate) request_id: &'a str,
}

/// How a request ended in a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoggedOutcome {
    Success,
    /// The stream of its response broke.
    Disconnected,
    /// The worker could not be reached.
    CannotConnect,
}

/// What the frontend measured of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) isl_tokens: u32,
    pub(crate) osl_tokens: u32,
    pub(crate) ttft_us: u64,
    pub(crate) e2e_us: u64,
    pub(crate) prefill_worker_id: u64,
    pub(crate) decode_worker_id: u64,
}

impl Log {
    /// The router chose a worker.
    pub(crate) fn selected(
        &mut self,
        about: LogContext<'_>,
        worker_id: u64,
        chosen: &SimulatedCandidate,
        out: WireOut<'_>,
    ) {
        let (candidate, host_blocks, id) =
            (&chosen.candidate, chosen.candidate.host_blocks, about.request_id);
        // Another policy than the cost names what its workers do as their cards have it, and reports no cost.
        let is_by_cost = self.selection == WorkerSelection::Cost;
        let (worker_type, logit) = match is_by_cost {
            true => (self.role.worker_type(), candidate.cost),
            false => (self.role.as_str(), 0.0),
        };
        let head = format!(
            "Selected worker router_mode=\"kv\" request_id=\"{id}\" worker_id={worker_id} worker_type={worker_type} \
             dp_rank=0 logit={logit:?}"
        );
        // Of the cost formula only a prefill pool logs the credit and the worker's capacity.
        if self.role == Role::Prefill || !is_by_cost {
            let effective = f64::from(candidate.overlap_blocks) + f64::from(host_blocks) * self.host_weight;
            let total = self.blocks_per_worker;
            let message = format_args!(
                "{head} effective_cached_blocks={effective:?} host_pinned_blocks={host_blocks} disk_blocks=0 \
                 total_kv_blocks=Some({total})"
            );
            self.write_about(about, (Level::Info, SELECTOR), message, out);
        } else {
            let message = format_args!("{head} host_pinned_blocks={host_blocks} disk_blocks=0");
            self.write_about(about, (Level::Info, SELECTOR), message, out);
        }
    }

    /// The router sent a request to the worker that its session is bound to.
    pub(crate) fn pinned(
        &mut self,
        about: LogContext<'_>,
        worker_id: u64,
        chosen: &SimulatedCandidate,
        out: WireOut<'_>,
    ) {
        let (candidate, id, worker_type) = (&chosen.candidate, about.request_id, self.role.worker_type());
        let cached =
            f64::from(candidate.overlap_blocks) + f64::from(candidate.host_blocks) * self.host_weight;
        let message = format_args!(
            "Selected pinned worker: worker_type={worker_type}, worker_id={worker_id} dp_rank=0, logit: {:.3}, \
             effective cached blocks: {cached:.2} request_id=\"{id}\"",
            candidate.cost
        );
        self.write_about(about, (Level::Info, SELECTOR), message, out);
    }

    /// A router that does not route by cost chose a worker.
    pub(crate) fn took_turn(&mut self, about: LogContext<'_>, worker_id: u64, out: WireOut<'_>) {
        const ROUTER: &str = "http-request: dynamo_runtime::pipeline::network::egress::push_router";
        let (http_id, model) = (http_id(about.request_id), self.model);
        let message = format_args!(
            "Selected worker router_mode=\"round-robin\" worker_id={worker_id} {SPAN} request_id={http_id} \
             model=\"{model}\""
        );
        self.write_about(about, (Level::Info, ROUTER), message, out);
    }

    /// A request's part in this pool is over.
    pub(crate) fn routed(
        &mut self,
        about: LogContext<'_>,
        (worker_id, overlap_blocks): (u64, u32),
        outcome: LoggedOutcome,
        out: WireOut<'_>,
    ) {
        let (http_id, id, model, phase) =
            (http_id(about.request_id), about.request_id, self.model, self.phase);
        let (level, done, ended) = match outcome {
            LoggedOutcome::Success => (Level::Info, "completed", "request.outcome=\"success\""),
            LoggedOutcome::Disconnected => {
                (Level::Warn, "failed", "request.outcome=\"worker_disconnected\" error.type=\"disconnected\"")
            }
            LoggedOutcome::CannotConnect => {
                (Level::Warn, "failed", "request.outcome=\"connection_failed\" error.type=\"cannot_connect\"")
            }
        };
        let migration = if self.role == Role::Prefill { "" } else { " migration.tokens_completed=0" };
        let status = match outcome {
            LoggedOutcome::Success => "",
            LoggedOutcome::Disconnected => {
                " otel.status_code=\"error\" otel.status_description=\"disconnected\""
            }
            LoggedOutcome::CannotConnect => {
                " otel.status_code=\"error\" otel.status_description=\"cannot_connect\""
            }
        };
        let message = format_args!(
            "route request {done} {ended} {SPAN} request_id={http_id} model=\"{model}\" otel.kind=\"client\" \
             request_id={id} dp_rank=0 overlap_blocks={overlap_blocks} phase={phase} worker_id={worker_id} \
             request.attempt=0 migration.is_retry=false{migration} {ended}{status}"
        );
        self.write_about(about, (level, ROUTED), message, out);
    }

    /// The response to a request is complete.
    pub(crate) fn responded(&mut self, about: LogContext<'_>, measured: &Measured, out: WireOut<'_>) {
        let Measured { isl_tokens, osl_tokens, ttft_us, e2e_us, prefill_worker_id, decode_worker_id } =
            *measured;
        let (http_id, id, model) = (http_id(about.request_id), about.request_id, self.model);
        let elapsed_ms = e2e_us / 1_000;
        let (ttft_ms, gaps) = (ttft_us as f64 / 1e3, osl_tokens.saturating_sub(1).max(1));
        let itl_ms = (e2e_us - ttft_us) as f64 / 1e3 / f64::from(gaps);
        let message = format_args!(
            "request completed request_id={id} model={model} endpoint=chat_completions request_type=stream \
             status=success elapsed_ms={elapsed_ms} {SPAN} request_id={http_id} model=\"{model}\" \
             input_tokens={isl_tokens} output_tokens={osl_tokens} image_count=0 video_count=0 audio_count=0 \
             ttft_ms=\"{ttft_ms:.2}\" avg_itl_ms=\"{itl_ms:.2}\" prefill_worker_id={prefill_worker_id} \
             decode_worker_id={decode_worker_id} request.outcome=\"success\""
        );
        self.write_about(about, (Level::Info, DONE), message, out);
    }

    /// A request fails.
    pub(crate) fn gave_up(
        &mut self,
        about: LogContext<'_>,
        worker_id: u64,
        outcome: LoggedOutcome,
        out: WireOut<'_>,
    ) {
        let (http_id, model) = (http_id(about.request_id), self.model);
        let span = format!("{SPAN} request_id={http_id} model=\"{model}\"");
        let reason = match outcome {
            LoggedOutcome::Success => return,
            LoggedOutcome::Disconnected => "disconnected",
            LoggedOutcome::CannotConnect => "cannot_connect",
        };
        let exhausted = format_args!(
            "migration retries exhausted request.attempt=0 migration.is_retry=true migration.reason=\"{reason}\" \
             migration.from_worker_id={worker_id} migration.tokens_completed=0 {span}"
        );
        self.write_about(about, (Level::Warn, "http-request: request_span"), exhausted, out);
        if outcome == LoggedOutcome::Disconnected {
            const MIGRATION: &str = "http-request: dynamo_llm::migration";
            let ended = format_args!(
                "Stream disconnected, recreating stream error=Unavailable: Stream ended before generation completed \
                 {span}"
            );
            self.write_about(about, (Level::Warn, MIGRATION), ended, out);
            let limit = format_args!("Cannot recreate stream error=Migration limit exhausted");
            self.write_about(about, (Level::Warn, MIGRATION), limit, out);
        } else {
            let refused = format_args!(
                "response failed classification=Status code: 503 Service Unavailable latency=3 ms {span} \
                 input_tokens=0 output_tokens=0 request.outcome=\"error\""
            );
            self.write_about(
                about,
                (Level::Error, "http-request: tower_http::trace::on_failure"),
                refused,
                out,
            );
        }
    }

    fn write_about(
        &mut self,
        about: LogContext<'_>,
        line: (Level, &str),
        message: Arguments<'_>,
        out: WireOut<'_>,
    ) {
        if self.on {
            let at = (Millis(about.at_us / 1_000), about.at_us);
            self.write(&frontend_name(about.frontend), at, line, message, out);
        }
    }
}

/// The id that the HTTP service gives a request, which is another than the router's.
fn http_id(request_id: &str) -> String {
    let high = request_id.bytes().fold(1, |hash, byte| mix(hash ^ u64::from(byte)));
    uuid(high, mix(high))
}

/// A UUID (version 4) of these random bits.
pub(crate) fn uuid(high: u64, low: u64) -> String {
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
