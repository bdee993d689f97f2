//! Running requests fill the KV cache: there is no room for what could be re-used, and requests wait or are thrown out.

use super::prelude::*;
use crate::capacity::RemedyKind;
use radixscope_model::record::{Gauge, ProcessRole, RankFigures};
use radixscope_state::cluster::ProcessState;

/// Share of the blocks that running requests may use.
const FULL_SHARE: f64 = 0.95;
/// The same while requests wait.
const FULL_SHARE_WAITING: f64 = 0.9;
/// Share that leaves some room for what comes and for re-use: the proposed batch limit fills no more.
const AIM_SHARE: f64 = 0.8;

/// How full the cache of one rank is.
struct CacheFill {
    name: String,
    worker: Option<WorkerIx>,
    /// Used and there.
    blocks: Option<(u64, u64)>,
    share: f64,
    waiting: Option<f64>,
    source: String,
}

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 10_000, ..Rule::new("memory_full", "KV cache filled by running requests", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let fills = fills(view);
    if fills.is_empty() {
        return RuleOutcome::no_data(
            "No worker reports both its used blocks and its capacity; its metrics do (--prometheus NAME=URL), or its \
             load over NATS with a model card or one model on the scraped frontend",
        );
    }
    let known = fills.len();
    let full: Vec<CacheFill> = fills.into_iter().filter(CacheFill::is_full).collect();
    let Some(worst) = full.iter().max_by(|a, b| a.share.total_cmp(&b.share)) else {
        return RuleOutcome::Ok;
    };
    let mut found = Finding::new(
        Severity::Warning,
        format!("Running requests fill the KV cache of {} of {known} workers", full.len()),
        "Blocks of running requests cannot be evicted, so none are left to cache prefixes, and new requests queue \
         or preempt running ones. Run fewer sequences at once, or raise the KV memory fraction.",
    );
    for fill in full.iter().take(4) {
        let percent = format!("{:.0} %", fill.share * 100.0);
        let value = match fill.blocks {
            Some((used, all)) => format!("{} of {} ({percent})", count(used), count(all)),
            None => percent,
        };
        let used = format!("Used by running requests, {}, {}, now", fill.name, fill.source);
        let waiting = format!("Queued on {}, its metrics, now", fill.name);
        found = found.evidence(used, value, "blocks").evidence_if(waiting, fill.waiting, "requests");
    }
    let (running, fits) = worst.sequences_that_fit(view).unzip();
    let aim = format!("Requests that would fill {:.0} % of its blocks", AIM_SHARE * 100.0);
    found
        .evidence_if(format!("In flight on {}, now", worst.name), running, "requests")
        .evidence_if(aim, fits, "requests")
        .workers(full.iter().filter_map(|fill| fill.worker))
        .remedy(RemedyKind::LowerBatch, fits)
        .remedy(RemedyKind::RaiseFraction, None)
        .panel_of_worker(PanelRef::Memory)
        .into()
}

/// How many requests like those that run leave room on every worker; `None`: not known of any.
pub(in crate::check) fn sequences_that_fit(view: &View<'_>) -> Option<u64> {
    fills(view).iter().filter_map(|fill| fill.sequences_that_fit(view)).map(|(_, fits)| fits).min()
}

impl CacheFill {
    fn is_full(&self) -> bool {
        let waits = self.waiting.is_some_and(|n| n > 0.0);
        self.share >= if waits { FULL_SHARE_WAITING } else { FULL_SHARE }
    }

    /// Requests in flight, and how many like them leave room.
    fn sequences_that_fit(&self, view: &View<'_>) -> Option<(u32, u64)> {
        let running = view.worker(self.worker?)?.in_flight.now().filter(|&n| n > 0)?;
        let fits = (f64::from(running) * AIM_SHARE / self.share).floor().max(1.0);
        Some((running, fits as u64))
    }
}

/// By the workers' metrics, else by what engines publish; processes that report no worker id go by their name.
fn fills(view: &View<'_>) -> Vec<CacheFill> {
    let mut fills: Vec<CacheFill> = view.present().filter_map(|ix| of_worker(view, ix)).collect();
    if fills.is_empty() {
        for process in view.scraped(ProcessRole::Worker) {
            let ranks = process.ranks().iter().filter(|rank| view.worker_of(process, rank.dp_rank).is_none());
            fills.extend(ranks.filter_map(|rank| of_rank(process, rank, process.name.clone(), None)));
        }
    }
    fills
}

fn of_worker(view: &View<'_>, worker: WorkerIx) -> Option<CacheFill> {
    let state = view.worker(worker)?;
    let process = view.process_of(worker);
    let name = view.name(worker);
    let by_metrics = process.and_then(|process| {
        let rank = process.ranks().iter().find(|rank| rank.dp_rank == state.id.dp_rank)?;
        of_rank(process, rank, name.clone(), Some(worker))
    });
    by_metrics.or_else(|| {
        let used = state.engine_used_blocks?;
        let all = view.cluster.capacity(worker)?;
        let (all, source) = (all.value, all.source.label());
        Some(CacheFill {
            name,
            worker: Some(worker),
            blocks: Some((used, all)),
            share: used as f64 / all as f64,
            waiting: process.and_then(|process| process.gauge(Gauge::EngineWaitingRequests)),
            source: format!("engine's load over NATS of its capacity by the {source}"),
        })
    })
}

fn of_rank(
    process: &ProcessState,
    rank: &RankFigures,
    name: String,
    worker: Option<WorkerIx>,
) -> Option<CacheFill> {
    let blocks = rank.used_blocks.zip(rank.total_blocks.filter(|&all| all > 0));
    let share = blocks.map(|(used, all)| used as f64 / all as f64).or(rank.kv_usage)?;
    let waiting = process.gauge(Gauge::EngineWaitingRequests);
    Some(CacheFill { name, worker, blocks, share, waiting, source: "its metrics".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};

    #[test]
    fn a_cache_full_of_running_requests_is_found_with_the_batch_that_fits() {
        let mut stage = Stage::new(2);
        stage.used(0, 960, 1_000);
        stage.used(1, 500, 1_000);
        stage.in_flight(&[48, 20]);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0)]);
        assert_eq!(finding.evidence[0].value, "960 of 1,000 (96 %)");
        let batch = finding.fix.iter().find(|fix| fix.setting == "--max-num-seqs").unwrap();
        assert_eq!(batch.value, "40");
        assert_eq!((finding.panel, finding.selects_worker), (PanelRef::Memory, true));
    }

    #[test]
    fn a_little_less_is_well_unless_requests_wait() {
        let mut stage = Stage::new(2);
        stage.used(0, 940, 1_000);
        assert!(stage.is_ok(&RULE));
        stage.scrape(&Process::of_worker(0).gauge(Gauge::EngineWaitingRequests, 2.0));
        assert!(stage.found(&RULE).is_some());
        stage.used(0, 890, 1_000);
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn the_workers_own_metrics_count_and_may_have_no_worker_id() {
        let mut stage = Stage::new(1);
        let mut process = Process::of_worker(0);
        process.ranks =
            vec![RankFigures { dp_rank: 0, kv_usage: Some(0.97), used_blocks: None, total_blocks: None }];
        stage.scrape(&process);
        assert_eq!(stage.found(&RULE).unwrap().workers, [WorkerIx(0)]);
        process.instance = None;
        let mut stage = Stage::new(1);
        stage.scrape(&process);
        assert_eq!(stage.found(&RULE).unwrap().workers, []);
    }

    #[test]
    fn without_a_capacity_it_is_unknown() {
        let mut stage = Stage::new(2);
        stage.record(radixscope_model::record::Record::EngineLoad { worker: WorkerIx(0), used_blocks: 960 });
        assert!(stage.is_unknown(&RULE));
    }
}
