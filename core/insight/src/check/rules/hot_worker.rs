//! One worker gets or carries far more than the others.

use crate::check::engine::EngineSettings as _;
use crate::check::peers::{capacity_blocks, in_flight, median, name, pools};
use crate::check::{Finding, Rule, RuleOutcome, View};
use radixscope_model::id::WorkerIx;
use radixscope_model::number_format;
use radixscope_model::record::Severity;

/// Window of choices, milliseconds.
const WINDOW_MS: u64 = 60_000;
/// Choices of a pool in the window that a share needs.
const MIN_DECISIONS: u64 = 60;
/// Of the mean of its pool.
const SHARE_OF_MEAN: f64 = 1.8;
/// Of the mean's square root: beyond what chance makes of equal shares, also where workers are many.
const DEVIATIONS: f64 = 4.0;
/// Of the median of the others.
const LOAD_OF_MEDIAN: f64 = 2.0;
/// More choices only matter where more runs too: of the median of the others.
const NO_MORE_LOAD: f64 = 1.3;
/// Requests in flight that it has to have more than the median of the others.
const MIN_MORE_REQUESTS: u64 = 16;
/// Active blocks that it has to have more than the median of the others, as a share of its capacity.
const MIN_MORE_BLOCKS: f64 = 0.2;

/// See the module.
pub(in crate::check) struct HotWorker;

/// What is too much, and of whom.
struct Hot {
    worker: WorkerIx,
    pool: Vec<WorkerIx>,
    how: String,
    label: &'static str,
    value: String,
    unit: &'static str,
    severity: Severity,
}

impl Rule for HotWorker {
    fn code(&self) -> &'static str {
        "hot_worker"
    }

    fn subject(&self) -> &'static str {
        "Workers that get or carry far more than the others"
    }

    fn hold_ms(&self) -> u64 {
        30_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let pools = pools(view);
        if pools.is_empty() {
            return RuleOutcome::Unknown(
                "Two workers of one component are needed that are there for 90 s, with none that left since"
                    .into(),
            );
        }
        let hot = pools.iter().filter_map(|pool| carries(view, pool).or_else(|| gets(view, pool)));
        let Some(hot) = hot.max_by_key(|hot| hot.severity) else {
            let are_known =
                pools.iter().flatten().any(|&ix| requests(view, ix).is_some() || chosen(view, ix) > 0);
            return if are_known {
                RuleOutcome::Ok
            } else {
                RuleOutcome::Unknown("No routing decision was received in the last 60 s".into())
            };
        };
        let id = view.cluster.worker(hot.worker).map(|w| w.id.to_string()).unwrap_or_default();
        let mut found = Finding::new(
            hot.severity,
            format!("One of {} workers {}", hot.pool.len(), hot.how),
            "Its requests wait for each other while other workers have room. It usually holds a prefix that most prompts \
             share, and overlap counts for more than its load.",
        )
        .evidence(format!("{}, {}", hot.label, name(view, hot.worker)), hot.value, hot.unit);
        let choices: u64 = hot.pool.iter().map(|&ix| chosen(view, ix)).sum();
        if choices > 0 {
            let label = "Choices of it, of its component's, last 60 s";
            let value = format!(
                "{} of {}",
                number_format::count(chosen(view, hot.worker)),
                number_format::count(choices)
            );
            found = found.evidence(label, value, "requests");
        }
        found.workers([hot.worker]).spread_out(view).link(format!("view=decisions&worker={id}")).into()
    }
}

fn chosen(view: &View<'_>, worker: WorkerIx) -> u64 {
    view.history.rise(view.cluster, worker, view.now, WINDOW_MS).chosen
}

fn requests(view: &View<'_>, worker: WorkerIx) -> Option<u64> {
    in_flight(view, worker)
}

/// Active blocks by the router that spoke last.
fn active_blocks(view: &View<'_>, worker: WorkerIx) -> Option<u64> {
    view.cluster.worker(worker)?.router_loads.first()?.decode_blocks
}

/// Most of `of` in the pool and the median of the others, where it is known of all.
fn most<T: Copy + PartialOrd>(
    pool: &[WorkerIx],
    of: impl Fn(WorkerIx) -> Option<T>,
) -> Option<(WorkerIx, T, T)> {
    let all: Vec<(WorkerIx, T)> = pool.iter().map(|&ix| Some((ix, of(ix)?))).collect::<Option<_>>()?;
    let &(worker, value) = all.iter().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let others = median(all.iter().filter(|(ix, _)| *ix != worker).map(|&(_, value)| value))?;
    Some((worker, value, others))
}

fn carries(view: &View<'_>, pool: &[WorkerIx]) -> Option<Hot> {
    let hot = |worker, how: &str, label, value, unit| Hot {
        worker,
        pool: pool.to_vec(),
        how: how.to_owned(),
        label,
        value,
        unit,
        severity: Severity::Warning,
    };
    let by_requests = || {
        let (worker, n, others) = most(pool, |ix| requests(view, ix))?;
        let is_hot = n as f64 >= LOAD_OF_MEDIAN * others as f64 && n - others >= MIN_MORE_REQUESTS;
        let value = format!("{n}; median of the others {others}");
        is_hot.then(|| {
            hot(worker, "runs far more requests", "In flight now, by choices and ends", value, "requests")
        })
    };
    let by_blocks = || {
        let (worker, n, others) = most(pool, |ix| active_blocks(view, ix))?;
        let (capacity, _) = capacity_blocks(view, worker)?;
        let is_more = (n - others) as f64 >= MIN_MORE_BLOCKS * capacity as f64;
        let is_hot = n as f64 >= LOAD_OF_MEDIAN * others as f64 && is_more;
        let value = format!(
            "{} of {}; median of the others {}",
            number_format::count(n),
            number_format::count(capacity),
            number_format::count(others)
        );
        is_hot.then(|| {
            hot(
                worker,
                "carries far more blocks",
                "Active blocks by the router's count, now",
                value,
                "blocks",
            )
        })
    };
    by_requests().or_else(by_blocks)
}

fn gets(view: &View<'_>, pool: &[WorkerIx]) -> Option<Hot> {
    let all: u64 = pool.iter().map(|&ix| chosen(view, ix)).sum();
    let (worker, n, _) = most(pool, |ix| Some(chosen(view, ix)))?;
    let mean = all as f64 / pool.len() as f64;
    let is_hot = all >= MIN_DECISIONS
        && n as f64 >= SHARE_OF_MEAN * mean
        && n as f64 - mean >= DEVIATIONS * mean.sqrt();
    // Many short requests are not more work.
    let load = most(pool, |ix| requests(view, ix));
    let runs_more =
        load.is_none_or(|(most, n, others)| most == worker && n as f64 >= NO_MORE_LOAD * others as f64);
    is_hot.then(|| Hot {
        worker,
        pool: pool.to_vec(),
        how: "gets far more requests".to_owned(),
        label: "Choices over a fair share, last 60 s",
        value: format!("{:.1}", n as f64 / mean),
        unit: "times",
        severity: if runs_more { Severity::Warning } else { Severity::Info },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::stage::Stage;
    use radixscope_model::record::Record;

    #[test]
    fn a_worker_that_gets_far_more_is_found() {
        let mut stage = Stage::new(3);
        stage.choose(&[60, 15, 15], 50);
        let finding = stage.found(&HotWorker).unwrap();
        assert_eq!((finding.severity, &*finding.workers), (Severity::Warning, &[WorkerIx(0)][..]));
        assert_eq!(finding.evidence[1].value, "60 of 90");
        assert!(finding.link.contains("worker=100/0"));
    }

    #[test]
    fn choices_without_more_load_are_worth_knowing_only() {
        let mut stage = Stage::new(3);
        stage.choose(&[60, 15, 15], 50);
        stage.in_flight(&[10, 9, 12]);
        assert_eq!(stage.found(&HotWorker).unwrap().severity, Severity::Info);
    }

    #[test]
    fn an_uneven_share_that_chance_makes_is_well() {
        let mut stage = Stage::new(3);
        stage.choose(&[50, 20, 20], 50);
        assert!(stage.is_ok(&HotWorker), "below 1.8 times the mean");
        let mut stage = Stage::new(10);
        stage.choose(&[12, 6, 6, 6, 6, 6, 6, 6, 6, 6], 50);
        assert!(stage.is_ok(&HotWorker), "twice of six is chance");
        let mut stage = Stage::new(3);
        stage.choose(&[40, 9, 9], 50);
        assert!(stage.is_ok(&HotWorker), "too few decisions");
    }

    #[test]
    fn a_worker_that_carries_twice_the_others_is_found_and_one_that_does_not_is_not() {
        let mut stage = Stage::new(3);
        stage.in_flight(&[20, 44, 22]);
        assert_eq!(stage.found(&HotWorker).unwrap().workers, [WorkerIx(1)]);
        stage.in_flight(&[20, 39, 22]);
        assert!(stage.is_ok(&HotWorker));
        stage.in_flight(&[2, 12, 1]);
        assert!(stage.is_ok(&HotWorker), "six times of two is nothing");
    }

    #[test]
    fn active_blocks_count_where_the_capacity_is_known() {
        let mut stage = Stage::new(2);
        for (worker, blocks) in [(0, 500), (1, 200)] {
            let load = Record::RouterLoad {
                worker: WorkerIx(worker),
                router: Some(9),
                decode_blocks: Some(blocks),
                prefill_tokens: None,
            };
            stage.tell(load);
            stage.choose(&[1, 1], 0);
        }
        assert!(stage.is_ok(&HotWorker));
        stage.used(0, 0, 1_000);
        assert_eq!(stage.found(&HotWorker).unwrap().workers, [WorkerIx(0)]);
    }

    #[test]
    fn a_worker_that_has_just_come_and_one_that_left_make_it_unknown() {
        let mut stage = Stage::new(1);
        stage.pass(20_000);
        stage.worker(1);
        stage.choose(&[90, 2], 50);
        assert!(stage.is_unknown(&HotWorker));
        let mut stage = Stage::new(3);
        stage.choose(&[60, 15, 15], 50);
        stage.tell(Record::Gone { worker: WorkerIx(2), why: radixscope_model::record::GoneWhy::Log });
        assert!(stage.is_unknown(&HotWorker));
    }
}
