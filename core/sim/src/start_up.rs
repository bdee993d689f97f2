//! What a frontend of Dynamo 1.6 logs when a router of it begins (reference §7.3): from where it takes its index, what its
//! workers do, and which they are. Must not know why it begins.

use super::log::Level;
use super::observed::Observed;
use super::router::Router;
use super::topology::Release;
use radixscope_router::{Role, RouterSettings};

const EMBEDDED: &str = "dynamo_llm::kv_router::embedded";
const INGRESS: &str = "dynamo_llm::kv_router::indexer::ingress";
const PREFILL: &str = "dynamo_llm::kv_router::prefill_router::activation";
const ROUTER: &str = "dynamo_llm::kv_router";
const SEQUENCES: &str = "dynamo_kv_router::sequences::multi_worker";
const SUBSCRIBER: &str = "dynamo_llm::kv_router::indexer::recovery::subscriber";

/// The router of a pool begins again, which chooses by cost.
pub(super) fn router_restarted(observed: &mut Observed<'_, '_>, router: &Router) {
    if observed.here().pool.release() == Release::V1_6 {
        return router_began(observed, router);
    }
    let workers = router.workers().len();
    let found = format_args!("Found {workers} worker(s), starting KV event subscriber");
    observed.log_on_frontends(Level::Info, ROUTER, found);
    observed.log_on_frontends(Level::Info, ROUTER, format_args!("KV Routing initialized"));
}

/// The router of a pool finds a worker in discovery; 0.9 does not log it.
pub(super) fn worker_added(observed: &mut Observed<'_, '_>, worker: u16) {
    if observed.here().pool.release() == Release::V1_6 {
        let id = observed.here().wire.worker_id(worker);
        let message = format_args!("Adding worker WorkerWithDpRank {{ worker_id: {id}, dp_rank: 0 }}");
        observed.log_on_frontends(Level::Warn, SEQUENCES, message);
    }
}

/// A frontend of 1.6 that begins again logs at DEBUG and writes its configuration: once, whatever routers it has.
pub(super) fn settings_dumped(observed: &mut Observed<'_, '_>) {
    let pool = observed.here().pool.clone();
    if pool.release() != Release::V1_6 || observed.pool > 0 {
        return;
    }
    let RouterSettings {
        prefill_load_scale,
        overlap_score_credit,
        host_cache_hit_weight,
        router_temperature,
        ..
    } = pool.config.router;
    let message = format_args!(
        "{{\"config\":{{\"router_mode\":\"kv\",\"prefill_load_scale\":{prefill_load_scale:?},\
         \"overlap_score_credit\":{overlap_score_credit:?},\"host_cache_hit_weight\":{host_cache_hit_weight:?},\
         \"router_temperature\":{router_temperature:?}}},\"dynamo_version\":\"1.6.1\"}}"
    );
    observed.log_on_frontends(Level::Debug, "CONFIG_DUMP", message);
}

/// The router of a pool begins, which chooses by cost.
pub(super) fn router_began(observed: &mut Observed<'_, '_>, router: &Router) {
    let predicts = router.predicts();
    let pool = observed.here().pool.clone();
    let (looks_for_caches, worker_type) = (pool.role != Role::Decode, pool.role.worker_type());
    if looks_for_caches && !predicts {
        let message = format_args!("Using aggregated KV event subscriber transport=Nats");
        observed.log_on_frontends(Level::Info, SUBSCRIBER, message);
    } else {
        let message = format_args!(
            "Skipping KV event subscription requirement=not_required cache_required={looks_for_caches} \
             use_kv_events={} use_remote_indexer=false",
            !predicts
        );
        observed.log_on_frontends(Level::Info, INGRESS, message);
    }
    let message =
        format_args!("KvRouter scheduling on embedded selection partition worker_type={worker_type}");
    observed.log_on_frontends(Level::Info, EMBEDDED, message);
    router.workers().iter().for_each(|&worker| worker_added(observed, worker));
    observed.log_on_frontends(Level::Info, ROUTER, format_args!("KV Routing initialized"));
    if pool.role == Role::Prefill {
        let (model, namespace) = (pool.model.display_name, &pool.config.namespace);
        let component = &pool.config.component;
        let message = format_args!(
            "Prefill router target activated model_name={model} namespace={namespace} \
             endpoint_id={namespace}/{component}/generate"
        );
        observed.log_on_frontends(Level::Info, PREFILL, message);
    }
}
