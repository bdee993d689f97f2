//! Requests go to a worker, but it publishes no KV events, or none any more: the router knows nothing of its cache.

use super::block_size;
use super::event_path::{WINDOW, WINDOW_MS, each, link, name, names, part, seconds_since};
use crate::check::{Finding, Rule, RuleOutcome, View, missing};
use radixscope_model::id::WorkerIx;
use radixscope_model::record::Severity;
use radixscope_state::cluster::WorkerState;

/// A worker and the link have to be known for so long.
const MIN_LISTENING_MS: u64 = 15_000;
/// Requests that would have made it store something.
const MIN_CHOSEN: u64 = 10;
/// Blocks that running requests use, where no source tells of choices: more than short prompts need.
const MIN_USED_BLOCKS: u64 = 16;
/// A worker spoke so lately that it is alive.
const ALIVE_MS: u64 = 10_000;

/// See the module.
pub(in crate::check) struct NoEvents;

impl Rule for NoEvents {
    fn code(&self) -> &'static str {
        "no_events"
    }

    fn subject(&self) -> &'static str {
        "KV events of every worker that gets requests"
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let Some(listening) = view.listening_ms() else {
            return RuleOutcome::Unknown(missing::of_nats(view).into());
        };
        if listening < MIN_LISTENING_MS || view.cluster.workers().is_empty() {
            return RuleOutcome::Unknown(
                "Not enough was received yet to say that a worker is silent.".into(),
            );
        }
        let silent = silent(view);
        if silent.is_empty() {
            RuleOutcome::Ok
        } else if block_size::is_there(view) {
            RuleOutcome::Explained("block_size_mismatch")
        } else {
            RuleOutcome::Found(found(view, &silent))
        }
    }
}

/// Workers that get requests and send no KV events.
pub(super) fn silent(view: &View<'_>) -> Vec<WorkerIx> {
    if view.listening_ms().is_none_or(|ms| ms < MIN_LISTENING_MS) {
        return Vec::new();
    }
    view.present().filter(|&worker| is_silent(view, worker)).collect()
}

fn is_silent(view: &View<'_>, worker: WorkerIx) -> bool {
    let Some(state) = view.cluster.worker(worker) else { return false };
    if view.now.since(state.first_ms) < MIN_LISTENING_MS {
        return false;
    }
    let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
    let told = rise.isl_blocks > 0;
    // Prompts below one block, and prompts that are cached whole, store nothing.
    let new_blocks = rise.isl_blocks.saturating_sub(rise.overlap_blocks);
    let must_store = rise.chosen >= MIN_CHOSEN && (!told || new_blocks >= 2 * rise.chosen);
    match state.last_event_ms {
        // An overlap means that a router knows its blocks: predicted, or from events that we do not hear.
        None => rise.overlap_blocks == 0 && (must_store || uses_blocks(view, state)),
        Some(last) => view.now.since(last) >= WINDOW_MS && must_store && told && is_alive(view, state),
    }
}

fn uses_blocks(view: &View<'_>, state: &WorkerState) -> bool {
    state.engine_used_blocks.is_some_and(|used| used >= MIN_USED_BLOCKS) && is_alive(view, state)
}

fn is_alive(view: &View<'_>, state: &WorkerState) -> bool {
    state.last_sign_ms.is_some_and(|last| view.now.since(last) <= ALIVE_MS)
}

fn found(view: &View<'_>, silent: &[WorkerIx]) -> Finding {
    let present: Vec<_> = view.present().collect();
    let all = silent.len() == present.len();
    // Whoever publishes its load reaches us: then the event plane is the right one, and the engine is not asked.
    let reaches_us =
        silent.iter().any(|&w| view.cluster.worker(w).is_some_and(|state| state.last_sign_ms.is_some()));
    let (severity, title, explanation) = match (all, reaches_us) {
        (_, _) if decodes_only(view, silent) => (
            Severity::Info,
            format!("No KV events from a whole component: {}", names(view, silent)),
            "Workers of another component publish KV events, these do not. That is right for workers that only decode, \
             and a fault for any other.",
        ),
        (true, true) => (
            Severity::Critical,
            "No KV events from any worker".to_owned(),
            "Requests are routed but no worker says which blocks it stores, so the router's tree stays empty and every \
             overlap is 0. Requests succeed, but routing is as blind as round robin.",
        ),
        (true, false) => (
            Severity::Warning,
            "No KV events from any worker reach this dashboard".to_owned(),
            "Requests are routed but neither KV events nor loads of any worker are heard on NATS. Either the engines \
             publish none, or the event plane is ZMQ, which is the default from 1.3 on and which only routers hear.",
        ),
        (false, _) => (
            Severity::Warning,
            format!("No KV events from {}", names(view, silent)),
            "Others publish which blocks they store, but of these workers the router knows nothing, so it counts every \
             prompt as new there. Their caches are used by chance only.",
        ),
    };
    let count = part(silent.len() as u64, present.len() as u64);
    let found = Finding::new(severity, title, explanation)
        .workers(silent.iter().copied())
        .link(link(view, "workers", silent))
        .evidence(
            "Workers that get requests and send no KV events, by NATS, of those present",
            count,
            "workers",
        );
    let found = each(found, view, silent, |found, worker| row(found, view, worker));
    fixes(found)
}

/// Whether the silent ones are exactly a component of which nobody publishes, while another component does.
fn decodes_only(view: &View<'_>, silent: &[WorkerIx]) -> bool {
    let component = |worker: WorkerIx| view.cluster.worker(worker).map_or("", |w| w.component.as_str());
    let speaks = |worker: WorkerIx| view.cluster.worker(worker).is_some_and(|w| w.last_event_ms.is_some());
    let named = silent.iter().all(|&worker| !component(worker).is_empty());
    let alone = |worker: WorkerIx| silent.iter().any(|&s| component(s) == component(worker));
    named && view.present().any(speaks) && !view.present().any(|worker| speaks(worker) && alone(worker))
}

fn row(found: Finding, view: &View<'_>, worker: WorkerIx) -> Finding {
    let who = name(view, worker);
    let rise = view.history.rise(view.cluster, worker, view.now, WINDOW_MS);
    let Some(state) = view.cluster.worker(worker) else { return found };
    let known_s = seconds_since(view, state.first_ms);
    let found = match state.last_event_ms {
        None => found.evidence(
            format!("KV events of {who}, by NATS, since it was first seen {known_s} s ago"),
            0,
            "events",
        ),
        Some(last) => {
            found.evidence(format!("Last KV event of {who}, by NATS"), seconds_since(view, last), "s ago")
        }
    };
    let found =
        found.evidence(format!("Requests routed to {who}, by decisions, {WINDOW}"), rise.chosen, "requests");
    match state.engine_used_blocks {
        Some(used) => {
            found.evidence(format!("Blocks in use on {who}, by its engine's kv_metrics, now"), used, "blocks")
        }
        None => found,
    }
}

fn fixes(found: Finding) -> Finding {
    found
        .fix(
            "vLLM from 1.2 on: events are off unless asked for (up to 1.0 they are on with prefix caching)",
            "--kv-events-config",
            r#"{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080","enable_kv_cache_events":true}"#,
        )
        .fix(
            "SGLang, 0.9 and 1.x: events are off unless asked for",
            "--kv-events-config",
            r#"{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:5557"}"#,
        )
        .fix("TensorRT-LLM up to 1.5: events are off unless asked for", "--publish-events-and-metrics", "")
        .fix(
            "TensorRT-LLM 1.6: the flag or DYN_TRTLLM_PUBLISH_KV_EVENTS",
            "--publish-kv-events",
            "",
        )
        .fix(
            "Dynamo from 1.3 on, to publish on NATS instead of ZMQ: set it on frontends and workers alike",
            "DYN_EVENT_PLANE",
            "nats",
        )
}
