//! Routers that serve the same workers count very different loads on them: each knows only what it sent itself, or they
//! lose what they report to each other.

use super::prelude::*;
use crate::check::loads::{LoadReporter, Mean};
use crate::check::missing;

/// Messages are compared over this time.
const MESSAGES_MS: u64 = 10_000;
/// Scrapes, which are fewer, over this one.
const METRICS_MS: u64 = 30_000;
/// The larger mean over the smaller one.
const RATIO: f64 = 2.0;
/// Their difference as a share of the worker's capacity.
const DIFFERENCE: f64 = 0.1;
/// Their difference in standard errors: less is chance.
const CERTAIN: f64 = 3.0;

/// The means of one worker that are furthest apart.
#[derive(Clone, Copy)]
struct LoadDisagreement {
    worker: WorkerIx,
    most: Mean,
    least: Mean,
    capacity: u64,
    window_ms: u64,
}

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 10_000, ..Rule::new("replicas_disagree", "Same load counted by all routers", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pairs: Vec<(WorkerIx, Mean, Mean, u64)> =
        view.present().filter_map(|worker| furthest(view, worker)).collect();
    if pairs.is_empty() {
        return alone(view);
    }
    let known = |&(worker, most, least, window_ms): &(WorkerIx, Mean, Mean, u64)| {
        let capacity = view.capacity_blocks(worker)?;
        Some(LoadDisagreement { worker, most, least, capacity, window_ms })
    };
    let judged: Vec<LoadDisagreement> = pairs.iter().filter_map(known).collect();
    if judged.is_empty() {
        return RuleOutcome::no_data("The capacity of the workers' KV cache is unknown.");
    }
    let mut differ: Vec<LoadDisagreement> = judged.into_iter().filter(LoadDisagreement::is_certain).collect();
    differ.sort_by(|a, b| b.difference().total_cmp(&a.difference()));
    match differ.first() {
        Some(worst) => {
            let others = differ.iter().map(|apart| apart.worker).filter(|worker| *worker != worst.worker);
            found(view, worst, std::iter::once(worst.worker).chain(others)).into()
        }
        None => RuleOutcome::Ok,
    }
}

/// The two routers that differ most on a worker: by their messages, else by their metrics.
fn furthest(view: &View<'_>, worker: WorkerIx) -> Option<(WorkerIx, Mean, Mean, u64)> {
    [MESSAGES_MS, METRICS_MS].into_iter().find_map(|ms| {
        let (most, least) = view.history.loads.apart(worker, view.now, ms)?;
        let by_messages = matches!(most.by, LoadReporter::Messages(_));
        (by_messages == (ms == MESSAGES_MS)).then_some((worker, most, least, ms))
    })
}

impl LoadDisagreement {
    fn difference(&self) -> f64 {
        self.most.blocks - self.least.blocks
    }

    fn is_certain(&self) -> bool {
        let error = self.most.error.hypot(self.least.error);
        self.most.blocks >= RATIO * self.least.blocks
            && self.difference() >= DIFFERENCE * self.capacity as f64
            && self.difference() >= CERTAIN * error
    }
}

/// What comes where no two routers can be compared.
fn alone(view: &View<'_>) -> RuleOutcome {
    match view.history.loads.most_routers() {
        0 => RuleOutcome::no_data(missing::of_frontends(
            view,
            "the load that routers count on workers",
            "from 1.0 on",
        )),
        // It agrees with itself.
        1 => RuleOutcome::Ok,
        _ => RuleOutcome::no_data(
            "Two routers have not counted load on one worker for long enough to compare their means.",
        ),
    }
}

fn found(view: &View<'_>, worst: &LoadDisagreement, workers: impl Iterator<Item = WorkerIx>) -> Finding {
    // Routers publish the requests that they route to each other.
    let is_synced = view.cluster.workers().iter().any(|worker| worker.sequences.added > 0);
    let (explanation, fixes) = if is_synced {
        (
            "Replica sync is on, but the routers count very different loads. Messages between \
         them are lost or late, or one of them still counts requests that have ended.",
            "replicas_disagree/synced",
        )
    } else {
        (
            "Every router uses its own count of the load, so it sends requests where another one has already sent its \
         own. Replica sync shares their decisions.",
            "replicas_disagree/not_synced",
        )
    };
    let mut found =
        Finding::new(Severity::Warning, "Routers count very different loads on the same worker", explanation);
    for mean in [worst.most, worst.least] {
        let label = format!(
            "Active blocks of {} by {}, mean of the last {} s",
            view.name(worst.worker),
            who(view, mean.by),
            worst.window_ms / 1_000
        );
        let blocks = count(mean.blocks.round() as u64);
        found = found.evidence(label, format!("{blocks} of {}", count(worst.capacity)), "blocks");
    }
    found.workers(workers).panel_of_worker(PanelRef::Decisions).fixes(fixes)
}

fn who(view: &View<'_>, by: LoadReporter) -> String {
    match by {
        LoadReporter::Messages(router) => format!("router {router} (its messages)"),
        LoadReporter::Metrics(at) => {
            let name = view.cluster.processes().get(at).map_or("frontend", |process| process.name.as_str());
            format!("{name} (its metrics)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::record::{ProcessRole, Record, WorkerFigures};

    fn reported(stage: &mut Stage, router: u64, blocks: u64) {
        let (worker, router, decode_blocks) = (WorkerIx(0), Some(router), Some(blocks));
        stage.record(Record::RouterLoad { worker, router, decode_blocks, prefill_tokens: None });
    }

    fn scraped(stage: &mut Stage, name: &'static str, blocks: u64) {
        let mut frontend = Process::new(name, ProcessRole::Frontend);
        frontend.workers =
            vec![WorkerFigures { decode_blocks: Some(blocks), ..WorkerFigures::new(WorkerIx(0)) }];
        stage.scrape(&frontend);
    }

    /// One worker of 1,000 blocks.
    fn stage() -> Stage {
        let mut stage = Stage::new(1);
        stage.used(0, 0, 1_000);
        stage
    }

    /// Two routers say what they count, each second something else.
    fn say(stage: &mut Stage, seconds: usize, a: &[u64], b: &[u64]) {
        for second in 0..seconds {
            reported(stage, 7, a[second % a.len()]);
            reported(stage, 8, b[second % b.len()]);
            stage.pass(1_000);
        }
    }

    #[test]
    fn means_that_are_far_apart_are_found() {
        let mut stage = stage();
        say(&mut stage, 5, &[100], &[210]);
        assert!(stage.is_unknown(&RULE), "not for long enough");
        say(&mut stage, 10, &[100, 90, 110], &[230, 250]);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0)]);
        assert_eq!(finding.evidence[0].value, "240 of 1,000");
        assert!(finding.evidence[0].label.contains("router 8"));
        assert!(finding.fix.iter().any(|fix| fix.setting == "--router-replica-sync"));
    }

    #[test]
    fn means_near_each_other_and_a_single_router_are_well() {
        let mut one = stage();
        reported(&mut one, 7, 100);
        one.pass(1_000);
        assert!(one.is_ok(&RULE));
        for (a, b) in [(&[100][..], &[190][..]), (&[10], &[90]), (&[0, 400], &[400, 0])] {
            let mut stage = stage();
            say(&mut stage, 12, a, b);
            assert!(stage.is_ok(&RULE), "{a:?} {b:?}");
        }
    }

    #[test]
    fn what_chance_makes_of_two_moments_is_no_difference() {
        let mut stage = stage();
        say(
            &mut stage,
            12,
            &[600, 600, 600, 600, 600, 600, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 300, 300, 0, 0, 0, 0],
        );
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn a_routers_messages_are_not_held_against_its_own_metrics() {
        let mut stage = stage();
        for _ in 0..40 {
            reported(&mut stage, 7, 400);
            scraped(&mut stage, "a", 20);
            stage.pass(1_000);
        }
        assert!(stage.is_ok(&RULE));
    }

    #[test]
    fn frontends_metrics_are_compared_over_more_time() {
        let mut stage = stage();
        let mut pass = |seconds| {
            for second in 0..seconds {
                scraped(&mut stage, "a", 300 + second % 3);
                scraped(&mut stage, "b", 20 + second % 2);
                stage.pass(1_000);
            }
            (stage.is_unknown(&RULE), stage.found(&RULE).is_some())
        };
        assert_eq!(pass(15), (true, false));
        assert_eq!(pass(20), (false, true));
    }

    #[test]
    fn a_router_that_fell_silent_is_not_compared() {
        let mut stage = stage();
        say(&mut stage, 12, &[100], &[400]);
        for _ in 0..25 {
            reported(&mut stage, 7, 100);
            stage.pass(1_000);
        }
        assert!(stage.found(&RULE).is_none());
    }

    #[test]
    fn routers_that_are_synced_are_not_advised_to_sync() {
        use radixscope_model::record::SequenceStep;
        let mut stage = stage();
        let (worker, step) = (WorkerIx(0), SequenceStep::Added);
        stage.record(Record::Sequence { worker, step, by_worker: false });
        say(&mut stage, 12, &[100], &[400]);
        let finding = stage.found(&RULE).unwrap();
        assert!(finding.fix.iter().all(|fix| !fix.setting.to_lowercase().contains("sync")), "{finding:?}");
        assert!(finding.explanation.contains("Replica sync is on"));
    }
}
