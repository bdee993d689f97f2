//! What a fault makes happen, and what Dynamo's processes log about it (reference §7.3, §8.3, §9.1).
//! Must not know when a fault begins, nor which events are lost: [`super::fault`] decides that.

use std::fmt::Arguments;
use std::ops::Range;

use super::engine::RequestTexts as _;
use super::fault::{Delivery, Failure, Fault};
use super::log::Level;
use super::metrics::{frontend_name, worker_name};
use super::observed::Observed;
use super::processes::Processes;
use super::serving::{Rejected, Serving, ServingContext as _};
use super::start_up;
use super::topology::Release;
use super::wire::Tier;
use radixscope_model::id::BlockHash;
use radixscope_router::RouterSettings;

/// From the death of a worker to the end of its lease, in microseconds.
const LEASE_ENDS_US: u64 = 6_000_000;
/// How long the index of a restarted router does not follow, in microseconds.
const COLD_US: u64 = 60_000_000;
/// Duration of prefill where it is slow, in percent.
const SLOW_PERCENT: u64 = 400;

const INDEXER: &str = "dynamo_llm::kv_router::indexer";
const PUBLISHER: &str = "dynamo_llm::kv_router::publisher";
const SEQUENCE: &str = "dynamo_llm::kv_router::sequence";
const SEQUENCES_1_6: &str = "dynamo_kv_router::sequences::multi_worker";
const SUBSCRIBER: &str = "dynamo_llm::kv_router::subscriber";
/// Fields of the span of a request, which follow the message of its lines.
const REQUEST_SPAN: &str = "method=POST uri=/v1/chat/completions version=HTTP/1.1";

impl Observed<'_, '_> {
    /// Writes a line to the log of every frontend.
    pub(super) fn log_on_frontends(&mut self, level: Level, target: &str, message: Arguments<'_>) {
        for frontend in 0..self.here().pool.config.frontends() {
            self.log_as(&frontend_name(frontend), level, target, message);
        }
    }

    fn log_as(&mut self, process: &str, level: Level, target: &str, message: Arguments<'_>) {
        let at_us = self.driver.now_unix_us();
        self.driver.pools[self.pool].log.write_line(process, at_us, (level, target), message, self.out);
    }

    /// Writes a line to the log of a worker.
    fn log_on_worker(&mut self, worker: u16, level: Level, target: &str, message: Arguments<'_>) {
        let process = worker_name(self.here().pool.worker(worker));
        self.log_as(&process, level, target, message);
    }

    /// The router logs that the worker left discovery.
    fn log_removed(&mut self, worker: u16) {
        let id = self.here().wire.worker_id(worker);
        let removing = format_args!("Removing worker WorkerWithDpRank {{ worker_id: {id}, dp_rank: 0 }}");
        match self.here().pool.release() {
            Release::V0_9 => {
                let departed =
                    format_args!("DISCOVERY: Generate endpoint instance removed, removing worker {id}");
                self.log_on_frontends(Level::Warn, SUBSCRIBER, departed);
                self.log_on_frontends(Level::Warn, SEQUENCE, removing);
            }
            Release::V1_6 => self.log_on_frontends(Level::Warn, SEQUENCES_1_6, removing),
        }
    }
}

/// The fault begins in a pool. Returns after how many microseconds something more happens.
pub(super) fn strike(observed: &mut Observed<'_, '_>, serving: &mut Serving) -> Option<u64> {
    let config = &observed.here().pool.config;
    let worker = config.odd_worker();
    match config.fault?.fault {
        Fault::KillWorker => {
            serving.kill(worker, observed);
            Some(LEASE_ENDS_US)
        }
        // It is no longer listed and its blocks are forgotten, but requests still find it.
        Fault::GhostWorker => {
            observed.log_removed(worker);
            serving.router.forget(worker);
            None
        }
        Fault::RouterRestart => {
            frontends_end(observed, serving);
            observed.driver.restart_frontends(observed.pool);
            observed.here().faults.router_follows(false);
            start_up::router_restarted(observed, &serving.router);
            Some(COLD_US)
        }
        Fault::Slow => {
            serving.slow_prefill(SLOW_PERCENT);
            None
        }
        _ => None,
    }
}

/// The frontends go away, with every request in flight.
pub(super) fn frontends_end(observed: &mut Observed<'_, '_>, serving: &mut Serving) {
    if observed.pool == 0 {
        let message = format_args!("Runtime shutdown initiated");
        observed.log_on_frontends(Level::Info, "dynamo_runtime::runtime", message);
    }
    serving.restart_frontends(observed);
}

/// The frontends begin again with other settings. They get what the workers hold from the events' history, or by queries.
pub(super) fn frontends_return(
    observed: &mut Observed<'_, '_>,
    serving: &mut Serving,
    settings: RouterSettings,
) {
    let now_us = observed.now_us();
    serving.router.restart_with(settings, now_us);
    let here = observed.here();
    if here.faults.now(now_us) == Some(Fault::GhostWorker) {
        // It is not in discovery, of which the new routers learn their workers.
        serving.router.leave(here.pool.config.odd_worker(), now_us);
    }
    here.pool.config.router = settings;
    here.log.set_router(&here.pool);
    observed.driver.restart_frontends(observed.pool);
    if !serving.router.is_kv() {
        return;
    }
    start_up::settings_dumped(observed);
    start_up::router_restarted(observed, &serving.router);
    let here = observed.here();
    if settings.keeps_index() && here.pool.publishes_events() {
        serving.catch_up(|worker| here.faults.router_gets(now_us, worker));
    }
}

/// A fault that hit this pool is no longer at work: what it left behind is put right as an operator would.
pub(super) fn mend(observed: &mut Observed<'_, '_>, serving: &mut Serving, fault: Fault) {
    let workers = observed.here().pool.config.workers;
    let odd = observed.here().pool.config.odd_worker();
    match fault {
        Fault::KillWorker | Fault::GhostWorker => {
            if serving.router.workers().contains(&odd) {
                serving.kill(odd, observed);
                if fault == Fault::KillWorker {
                    observed.log_removed(odd);
                }
                serving.router.leave(odd, observed.now_us());
            }
            worker_returns(observed, serving, odd);
        }
        Fault::Slow => serving.slow_prefill(100),
        Fault::RouterRestart if observed.here().pool.publishes_events() => serving.catch_up(|_| true),
        // Nobody else knows what workers hold that did not publish it: they are made to begin with nothing.
        Fault::NoEvents | Fault::UnknownParents => {
            (0..workers).for_each(|worker| serving.clear(worker, observed));
        }
        Fault::NoEventsOne => serving.clear(odd, observed),
        _ => {}
    }
}

/// A new process takes the place of a worker that is gone.
fn worker_returns(observed: &mut Observed<'_, '_>, serving: &mut Serving, worker: u16) {
    let (at_ms, now_us) = (observed.driver.now_ms(), observed.now_us());
    let Processes { pool, wire, .. } = &mut observed.driver.pools[observed.pool];
    wire.lease_ended((pool, worker), at_ms, observed.out);
    wire.worker_returns((pool, worker), at_ms, observed.out);
    serving.revive(worker, now_us);
    start_up::worker_added(observed, worker);
    let of_all = observed.here().pool.worker(worker);
    observed.driver.metrics.iter_mut().for_each(|metrics| metrics.worker_restarted(of_all));
}

/// Ends what began with the fault in a pool.
pub(super) fn end(observed: &mut Observed<'_, '_>, serving: &mut Serving) {
    let config = &observed.here().pool.config;
    let worker = config.odd_worker();
    match config.fault.map(|plan| plan.fault) {
        Some(Fault::KillWorker) => {
            observed.log_removed(worker);
            serving.router.leave(worker, observed.now_us());
        }
        Some(Fault::RouterRestart) => {
            observed.here().faults.router_follows(true);
            if observed.here().pool.publishes_events() {
                serving.catch_up(|_| true);
            }
        }
        _ => {}
    }
}

/// A worker stored blocks of a user's text, and that became of the event.
pub(super) fn stored(
    observed: &mut Observed<'_, '_>,
    worker: u16,
    (user, blocks): (u32, Range<usize>),
    delivery: Delivery,
) {
    let config = &observed.here().pool.config;
    let fault = config.fault.map(|plan| plan.fault);
    let (engine, published) = (config.engine_block_size_tokens(), config.block_size_tokens);
    match fault {
        Some(Fault::BlockSize) => {
            for _ in 0..observed.here().faults.size_warnings(worker, blocks.len()) {
                let message = format_args!(
                    "Block not published. Block size must be {published} tokens to be published. Block size is: {engine}"
                );
                observed.log_on_worker(worker, Level::Warn, PUBLISHER, message);
            }
        }
        Some(Fault::BlockSizeOversize) => {
            // TensorRT-LLM's hashes are signed.
            let hash = observed.blocks(user)[blocks.start].block_hash.0.cast_signed();
            let message = format_args!(
                "Block {hash} contains {engine} tokens, which is greater than kv_block_size {published}"
            );
            observed.log_on_worker(worker, Level::Error, "publisher", message);
        }
        Some(Fault::HashSeed) => differing_hashes(observed, worker, (user, blocks)),
        Some(Fault::UnknownRemovals) => unknown_removal(observed, worker),
        _ => {}
    }
    missed(observed, worker, delivery);
}

/// A worker removed a block, and that became of the event.
pub(super) fn removed(observed: &mut Observed<'_, '_>, worker: u16, hash: BlockHash, delivery: Delivery) {
    observed.here().seeds.iter_mut().for_each(|seeds| seeds.removed(hash));
    missed(observed, worker, delivery);
}

/// The router notices that an event is missing when the next one comes, and queries the worker for it; 1.6 does not log it.
pub(super) fn missed(observed: &mut Observed<'_, '_>, worker: u16, delivery: Delivery) {
    let here = observed.here();
    let event_id = here.wire.last_event_id(worker);
    let is_lost = delivery == Delivery::Lost;
    let Some(lost) = here.faults.gap(worker, is_lost.then_some(event_id)) else { return };
    if here.pool.release() == Release::V1_6 {
        return;
    }
    let id = here.wire.worker_id(worker);
    let (last, size) = (event_id - 1, event_id - lost);
    let message = format_args!(
        "Event ID gap detected for worker {id}, recovering events [{lost}, {last}], gap_size: {size}"
    );
    observed.log_on_frontends(Level::Warn, SUBSCRIBER, message);
}

/// Where the router's node has the hash of another engine, it logs that up to 1.2.
fn differing_hashes(observed: &mut Observed<'_, '_>, worker: u16, (user, blocks): (u32, Range<usize>)) {
    if observed.here().pool.release() == Release::V1_6 {
        return;
    }
    let Some(mut seeds) = observed.here().seeds.take() else { return };
    for at in blocks {
        let block = observed.blocks(user)[at];
        if let Some((own, first)) = seeds.stored(worker, &block) {
            let message = format_args!(
                "block_hash mismatch: sequence hashes should be uniform across workers \
                 expected=ExternalSequenceBlockHash({}) actual=Some(ExternalSequenceBlockHash({}))",
                own.0, first.0
            );
            observed.log_on_frontends(Level::Warn, INDEXER, message);
        }
    }
    observed.here().seeds = Some(seeds);
}

/// Now and then a worker removes what it never stored.
fn unknown_removal(observed: &mut Observed<'_, '_>, worker: u16) {
    let now_us = observed.now_us();
    let Some(hash) = observed.here().faults.unknown_removal(now_us) else { return };
    let (at_ms, hash) = (observed.driver.now_ms(), BlockHash(hash));
    let wire = &mut observed.driver.pools[observed.pool].wire;
    wire.removed((at_ms, worker, Tier::Device), hash, Delivery::Whole, observed.out);
    rejected(observed, worker, Rejected::Removal { hash });
}

/// The router could not apply an event.
pub(super) fn rejected(observed: &mut Observed<'_, '_>, worker: u16, rejected: Rejected) {
    let Processes { pool, wire, .. } = observed.here();
    let release = pool.release();
    let (id, event_id) = (wire.worker_id(worker), wire.last_event_id(worker));
    match rejected {
        Rejected::Store { parent, blocks } => {
            let parent = wire.own_hash(worker, parent).0;
            let message = format_args!(
                "Failed to find parent block; skipping store operation worker_id=\"{id}\" dp_rank=0 id={event_id} \
                 parent_hash=Some(ExternalSequenceBlockHash({parent})) num_blocks={blocks}"
            );
            observed.log_on_frontends(Level::Warn, INDEXER, message);
        }
        // The index of 1.6 treats such a removal as applied.
        Rejected::Removal { .. } if release == Release::V1_6 => {}
        Rejected::Removal { hash } => {
            let hash = wire.own_hash(worker, hash).0;
            let message = format_args!(
                "Failed to find block to remove; skipping remove operation worker_id=\"{id}\" dp_rank=0 id={event_id} \
                 block_hash=ExternalSequenceBlockHash({hash})"
            );
            observed.log_on_frontends(Level::Warn, INDEXER, message);
        }
    }
}

/// A request ended without a response.
pub(super) fn failed(observed: &mut Observed<'_, '_>, failure: Failure) {
    const MIGRATION: &str = "http-request: dynamo_llm::migration";
    let lines: &[(Level, &str, &str)] = match failure {
        Failure::FrontendGone => &[],
        Failure::Disconnected => &[
            (Level::Warn, MIGRATION, "Stream disconnected... recreating stream..."),
            (Level::Warn, MIGRATION, "Cannot recreate stream: Migration limit exhausted"),
        ],
        Failure::Refused => &[
            (
                Level::Error,
                "http-request: dynamo_llm::http::service::openai",
                "Internal server error: Failed to generate completions: Connection refused (os error 111)",
            ),
            (
                Level::Error,
                "http-request: dynamo_llm::http::service::service_v2",
                "request completed with server error status=500 latency_ms=12",
            ),
            (
                Level::Error,
                "http-request: tower_http::trace::on_failure",
                "response failed classification=Status code: 500 Internal Server Error latency=12 ms",
            ),
        ],
    };
    for &(level, target, message) in lines {
        observed.log_on_frontends(level, target, format_args!("{message} {REQUEST_SPAN}"));
    }
}
