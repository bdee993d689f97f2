//! What a frontend of Dynamo 1.6 logs when a router of it begins (reference §7.3): from where it takes its index, what its
//! workers do, and which they are. Must not know why it begins.

use super::log::Level;
use super::observed::Observed;
use radixscope_router::Role;

const EMBEDDED: &str = "dynamo_llm::kv_router::embedded";
const INGRESS: &str = "dynamo_llm::kv_router::indexer::ingress";
const PREFILL: &str = "dynamo_llm::kv_router::prefill_router::activation";
const ROUTER: &str = "dynamo_llm::kv_router";
const SEQUENCES: &str = "dynamo_kv_router::sequences::multi_worker";
const SUBSCRIBER: &str = "dynamo_llm::kv_router::indexer::recovery::subscriber";

/// The router of a pool begins, which chooses by cost.
pub(super) fn router_began(observed: &mut Observed<'_, '_>, predicts: bool) {
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
    for worker in 0..pool.config.workers {
        let id = observed.here().wire.worker_id(worker);
        let message = format_args!("Adding worker WorkerWithDpRank {{ worker_id: {id}, dp_rank: 0 }}");
        observed.log_on_frontends(Level::Warn, SEQUENCES, message);
    }
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
