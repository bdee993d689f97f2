//! One worker gets or carries far more than the others.

use super::prelude::*;
use crate::check::view::median;

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

/// What is too much, and of whom.
struct Hot<'v> {
    worker: WorkerIx,
    pool: &'v [WorkerIx],
    how: &'static str,
    label: &'static str,
    value: String,
    unit: &'static str,
    severity: Severity,
}

pub(in crate::check) const RULE: Rule = Rule {
    hold_ms: 30_000,
    ..Rule::new("hot_worker", "Workers with far more requests or blocks than the others", evaluate)
};

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let mut pools = view.pools();
    // All new conversations go where the first prefixes are.
    pools.retain(|pool| !view.is_any_warming_up(pool));
    if pools.is_empty() {
        return RuleOutcome::no_data(
            "Two workers of one component are needed that run for 90 s, with none lost since",
        );
    }
    let hot = pools.iter().filter_map(|pool| carries(view, pool).or_else(|| gets(view, pool)));
    let Some(hot) = hot.max_by_key(|hot| hot.severity) else {
        let is_known = |&ix: &WorkerIx| view.in_flight(ix).is_some() || chosen(view, ix) > 0;
        return match pools.iter().flatten().any(is_known) {
            true => RuleOutcome::Ok,
            false => RuleOutcome::no_data("No routing decision was received in the last 60 s"),
        };
    };
    let choices: u64 = hot.pool.iter().map(|&ix| chosen(view, ix)).sum();
    let of_choices =
        (choices > 0).then(|| format!("{} of {}", count(chosen(view, hot.worker)), count(choices)));
    Finding::new(
        hot.severity,
        format!("One of {} workers {}", hot.pool.len(), hot.how),
        "Its requests queue while other workers have room. Usually a prefix that most prompts share is cached there, and \
         overlap counts for more than load.",
    )
    .evidence(format!("{}, {}", hot.label, view.name(hot.worker)), hot.value, hot.unit)
    .evidence_if("Decisions for it, of its component's, last 60 s", of_choices, "requests")
    .about(PanelRef::Decisions, &[hot.worker])
    .spread_out(view)
    .into()
}

fn chosen(view: &View<'_>, worker: WorkerIx) -> u64 {
    view.rise(worker, WINDOW_MS).chosen
}

/// Active blocks by the router that reported last.
fn active_blocks(view: &View<'_>, worker: WorkerIx) -> Option<u64> {
    view.worker(worker)?.router_loads.first()?.decode_blocks
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

fn carries<'v>(view: &View<'_>, pool: &'v [WorkerIx]) -> Option<Hot<'v>> {
    let severity = Severity::Warning;
    let by_requests = || {
        let (worker, n, others) = most(pool, |ix| view.in_flight(ix))?;
        let is_hot = n as f64 >= LOAD_OF_MEDIAN * others as f64 && n - others >= MIN_MORE_REQUESTS;
        let value = format!("{n}; median of the others {others}");
        let (how, label) = ("runs far more requests", "In flight now, tracked from decisions");
        is_hot.then_some(Hot { worker, pool, how, label, value, unit: "requests", severity })
    };
    let by_blocks = || {
        let (worker, n, others) = most(pool, |ix| active_blocks(view, ix))?;
        let capacity = view.capacity_blocks(worker)?;
        let is_more = (n - others) as f64 >= MIN_MORE_BLOCKS * capacity as f64;
        let is_hot = n as f64 >= LOAD_OF_MEDIAN * others as f64 && is_more;
        let value = format!("{} of {}; median of the others {}", count(n), count(capacity), count(others));
        let (how, label) = ("has far more active blocks", "Active blocks by the router's count, now");
        is_hot.then_some(Hot { worker, pool, how, label, value, unit: "blocks", severity })
    };
    by_requests().or_else(by_blocks)
}

fn gets<'v>(view: &View<'_>, pool: &'v [WorkerIx]) -> Option<Hot<'v>> {
    let all: u64 = pool.iter().map(|&ix| chosen(view, ix)).sum();
    let (worker, n, _) = most(pool, |ix| Some(chosen(view, ix)))?;
    let mean = all as f64 / pool.len() as f64;
    let is_hot = all >= MIN_DECISIONS
        && n as f64 >= SHARE_OF_MEAN * mean
        && n as f64 - mean >= DEVIATIONS * mean.sqrt();
    // Many short requests are not more work.
    let load = most(pool, |ix| view.in_flight(ix));
    let runs_more =
        load.is_none_or(|(most, n, others)| most == worker && n as f64 >= NO_MORE_LOAD * others as f64);
    is_hot.then(|| Hot {
        worker,
        pool,
        how: "gets far more requests",
        label: "Decisions ÷ fair share, last 60 s",
        value: format!("{:.1}", n as f64 / mean),
        unit: "times",
        severity: if runs_more { Severity::Warning } else { Severity::Info },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::Stage;
    use radixscope_model::record::{Outcome, Progress, Record};

    #[test]
    fn a_worker_that_gets_far_more_is_found() {
        let mut stage = Stage::new(3);
        stage.choose(&[60, 15, 15], 50);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!((finding.severity, &*finding.workers), (Severity::Warning, &[WorkerIx(0)][..]));
        assert_eq!(finding.evidence[1].value, "60 of 90");
        assert!(finding.selects_worker);
    }

    #[test]
    fn choices_without_more_load_are_worth_knowing_only() {
        let mut stage = Stage::new(3);
        stage.choose(&[60, 15, 15], 50);
        stage.in_flight(&[10, 9, 12]);
        assert_eq!(stage.found(&RULE).unwrap().severity, Severity::Info);
    }

    #[test]
    fn an_uneven_share_that_chance_makes_is_well() {
        let mut stage = Stage::new(3);
        stage.choose(&[50, 20, 20], 50);
        assert!(stage.is_ok(&RULE), "below 1.8 times the mean");
        let mut stage = Stage::new(10);
        stage.choose(&[12, 6, 6, 6, 6, 6, 6, 6, 6, 6], 50);
        assert!(stage.is_ok(&RULE), "twice of six is chance");
        let mut stage = Stage::new(3);
        stage.choose(&[40, 9, 9], 50);
        assert!(stage.is_ok(&RULE), "too few decisions");
    }

    #[test]
    fn a_worker_that_carries_twice_the_others_is_found_and_one_that_does_not_is_not() {
        let mut stage = Stage::new(3);
        stage.in_flight(&[20, 44, 22]);
        assert_eq!(stage.found(&RULE).unwrap().workers, [WorkerIx(1)]);
        stage.in_flight(&[20, 39, 22]);
        assert!(stage.is_ok(&RULE));
        stage.in_flight(&[2, 12, 1]);
        assert!(stage.is_ok(&RULE), "six times of two is nothing");
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
            stage.record(load);
            stage.choose(&[1, 1], 0);
        }
        assert!(stage.is_ok(&RULE));
        stage.used(0, 0, 1_000);
        assert_eq!(stage.found(&RULE).unwrap().workers, [WorkerIx(0)]);
    }

    #[test]
    fn a_worker_that_has_just_come_and_one_that_was_lost_make_it_unknown() {
        let mut stage = Stage::new(1);
        stage.pass(20_000);
        stage.worker(1);
        stage.choose(&[90, 2], 50);
        assert!(stage.is_unknown(&RULE));
        let departed =
            || Record::Left { worker: WorkerIx(3), why: radixscope_model::record::DepartureCause::Log };
        let mut stage = Stage::new(4);
        stage.choose(&[60, 15, 15], 50);
        let failed = Progress { outcome: Some(Outcome::Failed), ..Progress::default() };
        let decision = stage.decide(3, 100, 50);
        stage.progress(decision, failed);
        stage.record(departed());
        assert!(stage.is_unknown(&RULE), "its requests go elsewhere all at once");
        let mut stage = Stage::new(4);
        stage.choose(&[60, 15, 15, 1], 50);
        stage.record(departed());
        assert!(stage.found(&RULE).is_some(), "one that was stopped silences no rule");
    }

    #[test]
    fn cold_caches_make_it_unknown() {
        let mut stage = Stage::new(3);
        stage.starts_to_publish(0);
        stage.choose(&[60, 15, 15], 50);
        assert!(stage.is_unknown(&RULE), "all go where the first prefixes are");
    }

    #[test]
    fn a_pool_that_lost_a_worker_silences_no_other_pool() {
        let mut stage = Stage::new(3);
        let (worker, id) = (WorkerIx(3), radixscope_model::id::Worker::new(200, 0));
        stage.record(Record::new_worker(worker, id, "dynamo", "prefill"));
        stage.choose(&[60, 15, 15], 50);
        stage.record(Record::Left { worker, why: radixscope_model::record::DepartureCause::Silent });
        assert_eq!(stage.found(&RULE).unwrap().workers, [WorkerIx(0)]);
    }
}
