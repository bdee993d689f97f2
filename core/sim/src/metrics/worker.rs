//! `/metrics` of a worker: the request handler of Dynamo 0.9.1 or 1.6.1 and the engine behind it (reference §4.4).

use std::fmt::Write as _;

use super::super::config::Config;
use super::super::engine::Engine;
use super::super::fault::Fault;
use super::super::topology::{Pool, Release};
use super::histogram::Histogram;
use super::text::{Micros, metric_family, single};

/// Upper bounds of the buckets, in microseconds.
const DURATION: &[u64] =
    &[5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000];

/// From 1.0 on.
const DURATION_1_6: &[u64] = &[
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    20_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
];

/// What a worker counts.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) requests: u64,
    pub(super) duration: Histogram,
    /// Prompt tokens looked up in the prefix cache.
    pub(super) queried_tokens: u64,
    /// Of these, found there.
    pub(super) hit_tokens: u64,
    /// When the engine last ended a step, in microseconds since the start.
    pub(super) step_ended_us: u64,
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            requests: 0,
            duration: Histogram::of_times(DURATION),
            queried_tokens: 0,
            hit_tokens: 0,
            step_ended_us: 0,
        }
    }
}

impl Worker {
    pub(super) fn of_1_6() -> Self {
        Self { duration: Histogram::of_times(DURATION_1_6), ..Self::default() }
    }

    pub(super) fn write(&self, pool: &Pool, id: u64, engine: &Engine, now_us: u64, text: &mut String) {
        let Config { namespace, component, .. } = &pool.config;
        // From 1.0 on every process names itself.
        let (and_process, process) = match pool.release() {
            Release::V0_9 => (String::new(), String::new()),
            Release::V1_6 => (format!(",worker_id=\"{id:x}\""), format!("worker_id=\"{id:x}\"")),
        };
        let handler = format!(
            "dynamo_component=\"{component}\",dynamo_endpoint=\"generate\",dynamo_namespace=\"{namespace}\"\
             {and_process}"
        );
        single(
            text,
            "dynamo_component_inflight_requests",
            "gauge",
            "Number of requests currently being processed by work handler",
            &handler,
            engine.running() + engine.queued(),
        );
        let duration = "dynamo_component_request_duration_seconds";
        metric_family(text, duration, "histogram", "Time spent processing requests by work handler");
        self.duration.write(text, duration, &handler);
        single(
            text,
            "dynamo_component_requests_total",
            "counter",
            "Total number of requests processed by work handler",
            &handler,
            self.requests,
        );
        single(
            text,
            "dynamo_component_uptime_seconds",
            "gauge",
            "Total uptime of the DistributedRuntime in seconds",
            &process,
            Micros(now_us),
        );
        match pool.config.fault.map(|plan| plan.fault) {
            // Faults that only this engine has.
            Some(Fault::BlockSizeOversize | Fault::BlockSizePartial) => {
                write_trtllm(pool.model.display_name, engine, text)
            }
            _ => self.write_engine(pool.model.display_name, engine, text),
        }
    }

    /// As vLLM's Python client prints numbers.
    fn write_engine(&self, model: &str, engine: &Engine, text: &mut String) {
        let (used, all) = (u64::from(engine.cache().in_use()), u64::from(engine.cache().capacity()));
        let ten_thousandths = used * 10_000 / all.max(1);
        let of_engine = format!("engine=\"0\",model_name=\"{model}\"");
        let usage = "vllm:kv_cache_usage_perc";
        metric_family(text, usage, "gauge", "KV-cache usage. 1 means 100 percent usage.");
        let _ = writeln!(
            text,
            "{usage}{{{of_engine}}} {}.{:04}",
            ten_thousandths / 10_000,
            ten_thousandths % 10_000
        );
        let counts = [
            ("num_requests_running", "gauge", "Requests in the batch.", u64::from(engine.running())),
            ("num_requests_waiting", "gauge", "Requests waiting for the batch.", u64::from(engine.queued())),
            ("prefix_cache_hits_total", "counter", "Prompt tokens found in the cache.", self.hit_tokens),
            (
                "prefix_cache_queries_total",
                "counter",
                "Prompt tokens looked up in the cache.",
                self.queried_tokens,
            ),
        ];
        for (name, kind, help, value) in counts {
            single(text, &format!("vllm:{name}"), kind, help, &of_engine, format_args!("{value}.0"));
        }
    }
}

/// TensorRT-LLM's own figures of its KV cache, with Dynamo's prefix.
fn write_trtllm(model: &str, engine: &Engine, text: &mut String) {
    let (used, all) = (engine.cache().in_use(), engine.cache().capacity());
    let of_engine = format!("engine_type=\"trtllm\",model_name=\"{model}\"");
    for (name, help, value) in [
        ("kv_cache_max_blocks", "Blocks of the KV cache.", all),
        ("kv_cache_used_blocks", "Blocks of the KV cache in use.", used),
    ] {
        single(text, &format!("trtllm_{name}"), "gauge", help, &of_engine, format_args!("{value}.0"));
    }
}
