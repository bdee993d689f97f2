//! Routers that serve the same workers count very different loads on them: each knows only what it sent itself.

use std::collections::BTreeMap;

use crate::check::peers::{capacity_blocks, name, scraped};
use crate::check::{Found, Look, Rule, View};
use crate::id::WorkerIx;
use crate::record::{ProcessRole, Severity};
use crate::words;

/// Estimates older than this say nothing of now, milliseconds.
const FRESH_MS: u64 = 5_000;
/// The larger estimate over the smaller one.
const RATIO: f64 = 2.0;
/// Their difference as a share of the worker's capacity.
const DIFFERENCE: f64 = 0.1;

/// What a router, by its name, counts on a worker: active blocks.
type Estimate = (String, u64);

/// The estimates of one worker that are furthest apart.
struct Worst<'e> {
    worker: WorkerIx,
    least: &'e Estimate,
    most: &'e Estimate,
    capacity: u64,
}

/// See the module.
pub(in crate::check) struct ReplicasDisagree;

impl Rule for ReplicasDisagree {
    fn code(&self) -> &'static str {
        "replicas_disagree"
    }

    fn subject(&self) -> &'static str {
        "Routers that count different loads on a worker"
    }

    fn hold_ms(&self) -> u64 {
        10_000
    }

    fn look(&self, view: &View<'_>) -> Look {
        let estimates: Vec<(WorkerIx, Vec<Estimate>)> =
            view.present().map(|ix| (ix, estimates(view, ix))).collect();
        let several: Vec<_> = estimates.iter().filter(|(_, routers)| routers.len() > 1).collect();
        if several.is_empty() {
            // One router agrees with itself; several that nobody heard of lately are not known to agree.
            let speak = estimates.iter().any(|(_, routers)| !routers.is_empty());
            return match view.cluster.routers().len() {
                1 if speak => Look::Ok,
                _ => Look::Unknown(
                    "No two routers told their load of one worker within 5 s; 0.8 and 0.9 publish it, from 1.0 on every \
                     frontend's metrics have it (--prometheus NAME=URL)"
                        .into(),
                ),
            };
        }
        let mut worst: Option<Worst<'_>> = None;
        let mut workers = Vec::new();
        let mut is_judged = false;
        for (ix, routers) in several {
            let Some((capacity, _)) = capacity_blocks(view, *ix) else { continue };
            is_judged = true;
            let by = |router: &&Estimate| router.1;
            let (Some(least), Some(most)) = (routers.iter().min_by_key(by), routers.iter().max_by_key(by))
            else {
                continue;
            };
            let difference = most.1 - least.1;
            let differ =
                most.1 as f64 >= RATIO * least.1 as f64 && difference as f64 >= DIFFERENCE * capacity as f64;
            if differ {
                workers.push(*ix);
                if worst.as_ref().is_none_or(|known| known.most.1 - known.least.1 < difference) {
                    worst = Some(Worst { worker: *ix, least, most, capacity });
                }
            }
        }
        if !is_judged {
            return Look::Unknown(
                "The workers' capacity is not known; model cards or metrics tell it".into(),
            );
        }
        let Some(Worst { worker, least, most, capacity }) = worst else { return Look::Ok };
        let mut found = Found::new(
            Severity::Warning,
            "Routers count very different loads on the same worker",
            "Every router weighs the load that it counts itself, so each sends requests where another one has already \
             sent its own. With replica sync they tell each other what they send.",
        );
        for (router, blocks) in [most, least] {
            let label = format!("Active blocks of {} by {router}, now", name(view, worker));
            found = found.evidence(
                label,
                format!("{} of {}", words::count(*blocks), words::count(capacity)),
                "blocks",
            );
        }
        let id = view.cluster.worker(worker).map(|w| w.id.to_string()).unwrap_or_default();
        found
            .workers(workers)
            .fix("Every frontend, 0.8 and 0.9", "--router-replica-sync", "")
            .fix("Every frontend, 1.0 and later", "DYN_ROUTER_REPLICA_SYNC", "true")
            .link(format!("view=decisions&worker={id}"))
            .into()
    }
}

/// What each router counts on a worker: by its messages and by its metrics.
fn estimates(view: &View<'_>, worker: WorkerIx) -> Vec<Estimate> {
    let Some(state) = view.cluster.worker(worker) else { return Vec::new() };
    let mut routers: BTreeMap<u64, Estimate> = BTreeMap::new();
    for load in state.router_loads.iter().filter(|load| view.now.since(load.at_ms) <= FRESH_MS) {
        if let Some(blocks) = load.decode_blocks {
            // One that its messages do not name cannot be told from others.
            let Some(router) = load.router else { continue };
            routers.insert(router, (format!("router {router} (its messages)"), blocks));
        }
    }
    for process in scraped(view, ProcessRole::Frontend).filter(|p| view.now.since(p.last_ms) <= FRESH_MS) {
        let figures = process.workers().iter().find(|figures| figures.worker == worker);
        if let Some((router, blocks)) =
            process.instance().zip(figures.and_then(|figures| figures.decode_blocks))
        {
            routers.entry(router).or_insert_with(|| (format!("{} (its metrics)", process.name), blocks));
        }
    }
    routers.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::{Process, Stage};
    use crate::record::{Record, WorkerFigures};

    fn told(stage: &mut Stage, router: u64, blocks: u64) {
        let (worker, router, decode_blocks) = (WorkerIx(0), Some(router), Some(blocks));
        stage.tell(Record::RouterLoad { worker, router, decode_blocks, prefill_tokens: None });
    }

    #[test]
    fn estimates_that_are_far_apart_are_found() {
        let mut stage = Stage::new(1);
        stage.used(0, 0, 1_000);
        told(&mut stage, 7, 100);
        told(&mut stage, 8, 210);
        let finding = stage.found(&ReplicasDisagree).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0)]);
        assert_eq!(finding.evidence[0].value, "210 of 1,000");
        assert!(finding.evidence[0].label.contains("router 8"));
    }

    #[test]
    fn estimates_near_each_other_and_a_single_router_are_well() {
        let mut stage = Stage::new(1);
        stage.used(0, 0, 1_000);
        told(&mut stage, 7, 100);
        assert!(stage.is_ok(&ReplicasDisagree));
        told(&mut stage, 8, 190);
        assert!(stage.is_ok(&ReplicasDisagree), "less than twice");
        told(&mut stage, 7, 10);
        told(&mut stage, 8, 90);
        assert!(stage.is_ok(&ReplicasDisagree), "less than a tenth of the capacity");
    }

    #[test]
    fn old_estimates_and_an_unknown_capacity_leave_it_unknown() {
        let mut stage = Stage::new(1);
        told(&mut stage, 7, 100);
        told(&mut stage, 8, 400);
        assert!(stage.is_unknown(&ReplicasDisagree));
        stage.used(0, 0, 1_000);
        assert!(stage.found(&ReplicasDisagree).is_some());
        stage.pass(6_000);
        assert!(stage.is_unknown(&ReplicasDisagree));
    }

    #[test]
    fn frontends_metrics_count_too() {
        let mut stage = Stage::new(1);
        stage.used(0, 0, 1_000);
        for (name, instance, blocks) in [("a", 1, 300), ("b", 2, 20)] {
            let mut frontend = Process::new(name, ProcessRole::Frontend);
            frontend.instance = Some(instance);
            let decode_blocks = Some(blocks);
            let worker = WorkerIx(0);
            frontend.workers =
                vec![WorkerFigures { worker, decode_blocks, prefill_tokens: None, registered: None }];
            stage.scrape(&frontend);
        }
        assert!(stage.found(&ReplicasDisagree).is_some());
    }
}
