//! One worker gets nearly nothing though it is there.

use super::hot_worker;
use super::prelude::*;
use radixscope_state::cluster::Liveness;

/// Windows tried, shortest first, milliseconds.
const WINDOWS_MS: [u64; 3] = [60_000, 120_000, 180_000];
/// Choices of a fair share: so many that getting a fifth of them is no chance.
const MIN_EXPECTED: f64 = 30.0;
/// Of a fair share.
const STARVED_SHARE: f64 = 0.2;

pub(in crate::check) const RULE: Rule =
    Rule { hold_ms: 30_000, ..Rule::new("starved_worker", "Workers that get nearly no requests", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let pools = view.pools();
    let judged: Vec<_> = pools.iter().filter_map(|pool| Some((pool, enough(view, pool)?))).collect();
    if judged.is_empty() {
        return RuleOutcome::no_data(format!(
            "{MIN_EXPECTED} decisions a worker within 180 s are needed, of two workers of one component that are \
                 there for 90 s"
        ));
    }
    let starved = |&(pool, window): &(&Vec<WorkerIx>, u64)| {
        let fair = fair(view, pool, window);
        let is_starved = |ix: &WorkerIx| (chosen(view, *ix, window) as f64) < STARVED_SHARE * fair;
        let workers: Vec<WorkerIx> = pool.iter().copied().filter(is_starved).collect();
        (!workers.is_empty()).then_some((workers, fair, window))
    };
    let Some((workers, fair, window)) = judged.iter().find_map(starved) else { return RuleOutcome::Ok };
    // What one worker has too much of, others lack: one fault.
    if hot_worker::RULE.finds(view) {
        return RuleOutcome::Explained("hot_worker");
    }
    let mut found = Finding::new(
        Severity::Warning,
        format!("{} of the workers get nearly no requests", workers.len()),
        "They are registered, but the router hardly ever chooses them, so their capacity is unused. Either their cached blocks \
         are unknown, or the router counts load on them that does not exist.",
    );
    for &ix in workers.iter().take(4) {
        let label = format!("Decisions for {}, of a fair share, last {} s", view.name(ix), window / 1_000);
        let value = format!("{} of {}", chosen(view, ix, window), count(fair.round() as u64));
        found = found.evidence(label, value, "requests");
        let Some(worker) = view.worker(ix) else { continue };
        let (sign, unit) = match (worker.last_sign_ms, worker.sign(view.now)) {
            (None, _) | (_, Liveness::NeverSeen) => ("never".to_owned(), ""),
            (Some(at), _) => (view.seconds_since(at).to_string(), "s ago"),
        };
        let blocks = worker.router_loads.first().and_then(|load| load.decode_blocks).map(count);
        let who = view.name(ix);
        found = found
            .evidence(format!("Last message of {who}, KV event or load, over NATS"), sign, unit)
            .evidence_if(format!("Active blocks of {who} by the router's count, now"), blocks, "blocks");
    }
    found
        .workers(workers)
        .fixes("starved_worker")
        .spread_out(view)
        .panel_of_worker(PanelRef::Decisions)
        .into()
}

fn chosen(view: &View<'_>, worker: WorkerIx, window_ms: u64) -> u64 {
    view.rise(worker, window_ms).chosen
}

fn fair(view: &View<'_>, pool: &[WorkerIx], window_ms: u64) -> f64 {
    pool.iter().map(|&ix| chosen(view, ix, window_ms)).sum::<u64>() as f64 / pool.len() as f64
}

/// The shortest window with enough decisions, in which all workers of the pool were there.
fn enough(view: &View<'_>, pool: &[WorkerIx]) -> Option<u64> {
    let first = |ix: &WorkerIx| Some(view.worker(*ix)?.first_ms);
    let youngest = pool.iter().filter_map(first).max()?;
    let age = view.now.since(youngest);
    let windows = WINDOWS_MS.into_iter().filter(|&window| window <= age);
    windows.into_iter().find(|&window| fair(view, pool, window) >= MIN_EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::Stage;

    fn after(chosen: &[u64]) -> Stage {
        let mut stage = Stage::new(chosen.len() as u16);
        for _ in 0..12 {
            stage.choose(chosen, 50);
            stage.pass(10_000);
        }
        stage
    }

    #[test]
    fn a_worker_that_gets_a_fraction_of_its_share_is_found() {
        // 60 s: 60, 60 and 6 with a fair share of 42.
        let finding = after(&[10, 10, 1]).found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(2)]);
        assert_eq!(finding.evidence[0].value, "6 of 42");
        assert_eq!(finding.evidence[1].value, "never");
    }

    #[test]
    fn a_small_share_and_few_decisions_are_well() {
        assert!(after(&[10, 10, 2]).is_ok(&RULE));
        assert!(after(&[1, 1, 0]).is_unknown(&RULE), "eight expected in 120 s");
    }

    #[test]
    fn a_hot_worker_explains_that_the_others_starve() {
        let stage = after(&[40, 1, 1]);
        assert!(stage.found(&hot_worker::RULE).is_some());
        assert_eq!(stage.explained_by(&RULE), Some("hot_worker"));
    }

    #[test]
    fn a_worker_that_has_just_come_is_not_starved() {
        let mut stage = after(&[10, 10]);
        stage.worker(2);
        for _ in 0..8 {
            stage.choose(&[10, 10, 0], 50);
            stage.pass(10_000);
        }
        assert!(stage.is_ok(&RULE));
        stage.choose(&[20, 20, 0], 50);
        stage.pass(11_000);
        assert!(stage.found(&RULE).is_some(), "after 90 s it is");
    }
}
