//! `/metrics` of a frontend of Dynamo 1.6.1 (reference §4.2, §4.3): a model's name is as it was written, and routers report
//! what they do by pool.

use std::fmt::Write as _;

use super::super::processes::Processes;
use super::super::serving::Serving;
use super::super::shape;
use super::super::topology::Pool;
use super::frontend::Frontend;
use super::histogram::Histogram;
use super::routed::Routed;
use super::text::{Micros, metric_family, single};
use radixscope_router::{Role, RouterMode};

/// A figure of a model: rest of its name, what it is, and where it is found.
type Figure<'a> = (&'a str, String, &'a dyn Fn(&Pool) -> u64);

/// A pool as a frontend sees it.
pub(super) struct PoolMetrics<'a> {
    processes: &'a Processes,
    serving: &'a Serving,
    routed: &'a Routed,
}

impl PoolMetrics<'_> {
    fn pool(&self) -> &Pool {
        &self.processes.pool
    }

    fn model(&self) -> &'static str {
        self.pool().model.display_name
    }

    fn worker_type(&self) -> &'static str {
        self.pool().role.worker_type()
    }

    fn phase(&self) -> String {
        self.pool().phase().to_lowercase()
    }
}

/// The pools as a frontend sees them that counted `routed`.
pub(super) fn seen<'a>(
    pools: &'a [Processes],
    serving: &'a [Serving],
    routed: &'a [Routed],
) -> Vec<PoolMetrics<'a>> {
    let both = pools.iter().zip(serving).zip(routed);
    both.map(|((processes, serving), routed)| PoolMetrics { processes, serving, routed }).collect()
}

/// Families in the order of their names, those of requests first.
pub(super) fn write(
    frontend: u8,
    models: &[Frontend],
    pools: &[PoolMetrics<'_>],
    now_us: u64,
    text: &mut String,
) {
    // The pool that serves each model.
    let of_model = |at: usize| pools.iter().rev().find(|of| of.pool().model_at == at);
    let models: Vec<(&Frontend, &PoolMetrics<'_>)> =
        models.iter().enumerate().filter_map(|(at, model)| Some((model, of_model(at)?))).collect();
    write_requests(&models, text);
    let Some(last) = pools.last() else { return };
    let router_id = last.processes.wire.frontend_id(frontend);
    let is_kv = last.pool().config.router.router_mode == RouterMode::Kv;
    if is_kv {
        write_load(frontend, pools, text);
        write_routers(router_id, last, pools, text);
    }
    single(
        text,
        "dynamo_component_uptime_seconds",
        "gauge",
        "Total uptime of the DistributedRuntime in seconds",
        &format!("worker_id=\"{router_id:x}\""),
        Micros(now_us),
    );
}

fn write_requests(models: &[(&Frontend, &PoolMetrics<'_>)], text: &mut String) {
    let histogram = |text: &mut String, rest: &str, help: &str, of: fn(&Frontend) -> &Histogram| {
        let name = format!("dynamo_frontend_{rest}");
        metric_family(text, &name, "histogram", help);
        for (model, seen) in models {
            of(model).write(text, &name, &format!("model=\"{}\"", seen.model()));
        }
    };
    let of_models = |text: &mut String,
                     rest: &str,
                     kind: &str,
                     help: &str,
                     of: &dyn Fn(&Frontend, &PoolMetrics<'_>) -> u64| {
        let name = format!("dynamo_frontend_{rest}");
        metric_family(text, &name, kind, help);
        for (model, seen) in models {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}{{model=\"{}\"}} {}", seen.model(), of(model, seen));
        }
    };
    let of_worker = |what: &str| format!("{what} for a worker serving the model");
    histogram(text, "cached_tokens", "Number of cached tokens (prefix cache hits) per request", |of| {
        &of.cached
    });
    single(text, "dynamo_frontend_disconnected_clients", "gauge", "Number of disconnected clients", "", 0);
    of_models(text, "inflight_requests", "gauge", "Number of inflight requests", &|of, _| of.in_flight);
    histogram(text, "input_sequence_tokens", "Input sequence length in tokens", |of| &of.input);
    histogram(text, "inter_token_latency_seconds", "Inter-token latency in seconds", |of| &of.itl);
    let figures: [Figure<'_>; 7] = [
        ("context_length", of_worker("Maximum context length in tokens"), &|of| shape::context_length(&of.config)),
        ("kv_cache_block_size", of_worker("KV cache block size in tokens"), &|of| {
            of.config.block_size_tokens.into()
        }),
        ("max_num_batched_tokens", of_worker("Maximum number of batched tokens"), &|of| {
            of.config.max_num_tokens.into()
        }),
        ("max_num_seqs", of_worker("Maximum number of sequences"), &|of| of.config.max_batch.into()),
        ("migration_limit", "Maximum number of request migrations allowed for the model".to_owned(), &|_| 0),
        (
            "ready",
            "Whether the frontend can route at least one inference request for the model (1 = ready, 0 = not ready)"
                .to_owned(),
            &|_| 1,
        ),
        ("total_kv_blocks", of_worker("Total KV cache blocks available"), &|of| of.config.engine_blocks().into()),
    ];
    for (rest, help, value) in figures {
        of_models(text, &format!("model_{rest}"), "gauge", &help, &|_, seen| value(seen.pool()));
    }
    histogram(text, "output_sequence_tokens", "Output sequence length in tokens", |of| &of.output);
    let tokens = "Total number of output tokens generated (updates in real-time)";
    of_models(text, "output_tokens_total", "counter", tokens, &|of, _| of.output_tokens);
    of_models(text, "queued_requests", "gauge", "Number of requests in HTTP processing queue", &|_, _| 0);
    histogram(text, "request_duration_seconds", "Duration of LLM requests", |of| &of.duration);
    let name = "dynamo_frontend_requests_total";
    metric_family(text, name, "counter", "Total number of LLM requests processed");
    for (model, seen) in models {
        for (status, error, total) in
            [("error", "unavailable", model.failed), ("success", "", model.succeeded)]
        {
            // A series is there from its first request on.
            if total > 0 {
                let _ = writeln!(
                    text,
                    "{name}{{endpoint=\"chat_completions\",error_type=\"{error}\",model=\"{}\",\
                     request_type=\"stream\",status=\"{status}\"}} {total}",
                    seen.model()
                );
            }
        }
    }
    histogram(text, "time_to_first_token_seconds", "Time to first token in seconds", |of| &of.ttft);
}

/// What the routers have given the workers to do.
fn write_load(frontend: u8, pools: &[PoolMetrics<'_>], text: &mut String) {
    let name = "dynamo_frontend_router_queue_pending_requests";
    metric_family(text, name, "gauge", "Number of requests pending in the router scheduler queue");
    for of in pools {
        let (model, worker_type) = (of.model(), of.worker_type());
        let _ = writeln!(
            text,
            "{name}{{model=\"{model}\",policy_class=\"default\",worker_type=\"{worker_type}\"}} 0"
        );
    }
    let mut of_workers = |rest: &str, help: &str, value: fn((u64, u64)) -> u64| {
        let name = format!("dynamo_frontend_worker_active_{rest}");
        metric_family(text, &name, "gauge", help);
        for of in pools {
            for &worker in of.serving.router.workers() {
                let (id, load) =
                    (of.processes.wire.worker_id(worker), of.serving.router.load(frontend, worker));
                let _ = writeln!(
                    text,
                    "{name}{{dp_rank=\"0\",worker_id=\"{id}\",worker_type=\"{}\"}} {}",
                    of.worker_type(),
                    value(load)
                );
            }
        }
    };
    of_workers("decode_blocks", "Active KV cache decode blocks per worker", |(blocks, _)| blocks);
    of_workers("prefill_tokens", "Active prefill tokens queued per worker", |(_, tokens)| tokens);
}

/// What the routers count. Their series carry the component of the workers that serve, and the frontend's own id.
fn write_routers(router_id: u64, last: &PoolMetrics<'_>, pools: &[PoolMetrics<'_>], text: &mut String) {
    let namespace = &last.pool().config.namespace;
    let component = pools.iter().find(|of| of.pool().role != Role::Prefill).unwrap_or(last);
    let component = &component.pool().config.component;
    let (of, me) = (
        format!("dynamo_component=\"{component}\",dynamo_namespace=\"{namespace}\""),
        format!("worker_id=\"{router_id:x}\""),
    );
    let router = format!("router_id=\"{router_id}\"");
    write_index(namespace, &me, pools, text);
    let by_phase = |seen: &PoolMetrics<'_>| {
        format!("{of},model=\"{}\",phase=\"{}\",{router},{me}", seen.model(), seen.phase())
    };
    let name = "dynamo_component_router_input_sequence_tokens";
    metric_family(text, name, "histogram", "Input sequence length in tokens observed at the router");
    pools.iter().for_each(|seen| seen.routed.input.write(text, name, &by_phase(seen)));
    let tokens = |text: &mut String, rest: &str, help: &str, value: fn(&Routed) -> u64| {
        let name = format!("dynamo_component_router_kv_{rest}_cached_prefix_tokens_total");
        metric_family(text, &name, "counter", help);
        for seen in pools {
            let _ = writeln!(text, "{name}{{{}}} {}", by_phase(seen), value(seen.routed));
        }
    };
    let best = "Raw cached prefix tokens on the best eligible worker at selection time";
    tokens(text, "best_eligible", best, |of| of.best_tokens);
    write_mismatches(namespace, &of, &me, pools, text);
    write_hit_rate(&format!("{of},{router},{me}"), pools, text);
    let selected = "Raw cached prefix tokens on the selected worker and DP rank";
    tokens(text, "selected", selected, |of| of.selected_tokens);
    single(
        text,
        "dynamo_component_router_requests_total",
        "counter",
        "Total number of requests processed by the router",
        &format!("{of},{router},{me}"),
        pools.iter().map(|seen| seen.routed.input.count()).sum::<u64>(),
    );
    let registered = "dynamo_component_router_worker_registered";
    let help = "Whether the router currently has this worker/dp_rank registered (1 = registered)";
    metric_family(text, registered, "gauge", help);
    for seen in pools {
        for &worker in seen.serving.router.workers() {
            let (id, worker_type) = (seen.processes.wire.worker_id(worker), seen.worker_type());
            let _ = writeln!(
                text,
                "{registered}{{dp_rank=\"0\",{of},router_worker_id=\"{id}\",{me},worker_type=\"{worker_type}\"}} 1"
            );
        }
    }
}

/// Workers without a source of events, for each router that wants one: here all have theirs.
fn write_mismatches(namespace: &str, of: &str, me: &str, pools: &[PoolMetrics<'_>], text: &mut String) {
    let receives_events =
        |seen: &&PoolMetrics<'_>| seen.pool().publishes_events() && !seen.serving.router.predicts();
    let mut pools = pools.iter().filter(receives_events).peekable();
    if pools.peek().is_none() {
        return;
    }
    let name = "dynamo_component_router_kv_event_source_mismatch_workers";
    metric_family(
        text,
        name,
        "gauge",
        "Number of serving workers with missing or ambiguous KV sources, explicitly disabled KV event publishing, or \
         without an expected RecoveryTarget",
    );
    for seen in pools {
        let _ = writeln!(
            text,
            "{name}{{{of},model=\"{}\",target_component=\"{}\",target_endpoint=\"generate\",\
             target_namespace=\"{namespace}\",{me},worker_type=\"{}\"}} 0",
            seen.model(),
            seen.pool().config.component,
            seen.worker_type()
        );
    }
}

/// Events in the routers' indexes. One series counts those of all pools, under the component whose index came last.
fn write_index(namespace: &str, me: &str, pools: &[PoolMetrics<'_>], text: &mut String) {
    let Some(last) = pools.iter().rev().find(|seen| seen.pool().publishes_events()) else { return };
    let component = &last.pool().config.component;
    let applied = "dynamo_component_kv_cache_events_applied";
    metric_family(text, applied, "counter", "Total number of KV cache events applied to index");
    let sum = |of: fn(&Routed) -> u64| pools.iter().map(|seen| of(seen.routed)).sum::<u64>();
    let expired: u64 = pools.iter().map(|seen| seen.serving.router.expired_total()).sum();
    let counts = [
        ("cleared", "ok", 0),
        ("removed", "block_not_found", 0),
        ("removed", "ok", sum(|of| of.removed_events) + expired),
        ("stored", "ok", sum(|of| of.stored_events)),
        ("stored", "parent_block_not_found", sum(|of| of.unknown_parents)),
    ];
    for (event, status, count) in counts {
        let _ = writeln!(
            text,
            "{applied}{{dynamo_component=\"{component}\",dynamo_namespace=\"{namespace}\",event_type=\"{event}\",\
             status=\"{status}\",{me}}} {count}"
        );
    }
}

/// Every choice is an observation; that of a worker to decode on repeats what was found where the prompt is computed.
fn write_hit_rate(labels: &str, pools: &[PoolMetrics<'_>], text: &mut String) {
    let name = "dynamo_component_router_kv_hit_rate";
    metric_family(text, name, "histogram", "Predicted KV cache hit rate at routing time (0.0-1.0)");
    let mut all = Histogram::of_shares();
    for seen in pools {
        let decodes = seen.pool().role == Role::Decode;
        let source = pools.iter().find(|of| decodes && of.pool().role == Role::Prefill).unwrap_or(seen);
        all.add(&source.routed.hit_rate);
    }
    all.write(text, name, labels);
}
