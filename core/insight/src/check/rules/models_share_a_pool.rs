//! Workers of several models are in one component: routers of 0.8 and 0.9 choose among all of them, so that a request for one
//! model may be answered by another. From 1.0 on workers of a second model do not start there.

use super::prelude::*;
use radixscope_model::id::PoolIx;

const UNKNOWN: &str = "No model card reports which model a worker serves.";

pub(in crate::check) const RULE: Rule =
    Rule::new("models_share_a_pool", "One model in each component", evaluate);

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.cluster.pools_in_use().into_iter();
    RuleOutcome::of_pools(pools.map(|pool| evaluate_pool(view, pool)), UNKNOWN)
}

fn evaluate_pool(view: &View<'_>, pool: PoolIx) -> RuleOutcome {
    let mut models: Vec<(&str, Vec<WorkerIx>)> = Vec::new();
    for worker in view.present_in(pool) {
        let Some(model) = view.worker(worker).map(|state| &*state.model).filter(|model| !model.is_empty())
        else {
            continue;
        };
        match models.iter_mut().find(|(known, _)| *known == model) {
            Some((_, workers)) => workers.push(worker),
            None => models.push((model, vec![worker])),
        }
    }
    match models.as_slice() {
        [] => RuleOutcome::no_data(UNKNOWN),
        [_] => RuleOutcome::Ok,
        _ => found(view, pool, &models).into(),
    }
}

fn found(view: &View<'_>, pool: PoolIx, models: &[(&str, Vec<WorkerIx>)]) -> Finding {
    let name = view.cluster.pool(pool).map_or_else(String::new, |pool| pool.name());
    let all: Vec<WorkerIx> = models.iter().flat_map(|(_, workers)| workers).copied().collect();
    let found = Finding::new(
        Severity::Critical,
        format!("{} models share one component: {name}", models.len()),
        "A router of 0.8 and 0.9 chooses among all workers of a component, whatever their model, so a request for one model \
         may be answered by another. No error is reported, only the responses differ.",
    )
    .about(PanelRef::Workers, &all);
    let found = models.iter().take(4).fold(found, |found, (model, workers)| {
        let workers = workers.len();
        found.evidence(
            format!("Workers of {name} that serve {model}, by their model cards"),
            workers,
            "workers",
        )
    });
    found.fixes("models_share_a_pool")
}
