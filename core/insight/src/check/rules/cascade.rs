//! A spike of requests moves from one worker to another.

use super::prelude::*;
use crate::check::causes::{Cause, code};
use crate::check::spikes::{Harmful, MISSING, harmful};
use crate::in_flight::FOLLOW_S;

/// How far back, seconds.
const WINDOW_S: u64 = 180;
/// The second one begins at most so long after the first one, seconds.
const MOVES_WITHIN_S: u64 = FOLLOW_S;

pub(in crate::check) const RULE: Rule =
    Rule { clear_ms: 60_000, ..Rule::new("cascade", "Spikes moving from worker to worker", evaluate) };

fn evaluate(view: &View<'_>) -> RuleOutcome {
    let Some(spikes) = harmful(view, WINDOW_S) else { return RuleOutcome::no_data(MISSING) };
    let Some((from, to)) = latest_move(&spikes) else { return RuleOutcome::Ok };
    let mut found = Finding::new(
        Severity::Warning,
        "A spike of requests moved from one worker to another",
        "The router stops choosing the full worker, and the next one fills in turn. Requests are queued on each of them.",
    )
    .cause(code(Cause::of(view)));
    for (spike, which) in [(from, "First"), (to, "Then")] {
        let label = format!("{which} {}, most in flight in a second", view.name(spike.worker));
        let value = format!("{} ({} on another)", spike.most, spike.least);
        found = found.evidence(label, value, "requests");
    }
    found
        .evidence("From the first one's beginning to the second one's", to.from_s - from.from_s, "s")
        .evidence(
            format!("Such spikes within the last {WINDOW_S} s, second by second"),
            spikes.len(),
            "spikes",
        )
        .batch_limit(view)
        .workers([from.worker, to.worker])
        .spread_out(view)
        .panel(PanelRef::Latency)
        .into()
}

/// The last two spikes on different workers, the second of which began soon after the first. `spikes` ascend.
fn latest_move(spikes: &[Harmful]) -> Option<(Harmful, Harmful)> {
    let follows = |at: usize| {
        let to = spikes[at];
        let is_before = |from: &&Harmful| {
            let later_s = to.from_s.saturating_sub(from.from_s);
            from.worker != to.worker && (1..=MOVES_WITHIN_S).contains(&later_s)
        };
        spikes[..at].iter().rev().find(is_before).map(|&from| (from, to))
    };
    (0..spikes.len()).rev().find_map(follows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::tests::stage::{Process, Stage};
    use radixscope_model::id::WorkerIx;

    fn stage_of(parts: &[(u64, [u32; 3])]) -> Stage {
        let mut stage = Stage::new(3);
        for &(seconds, requests) in parts {
            for _ in 0..seconds {
                stage.in_flight(&requests);
                stage.pass(1_000);
            }
        }
        stage.scrape(&Process::frontend().batch_limit(64));
        stage
    }

    const CALM: [u32; 3] = [60, 60, 60];
    const FIRST: [u32; 3] = [75, 44, 60];
    const SECOND: [u32; 3] = [44, 70, 60];

    #[test]
    fn a_spike_that_moves_within_a_minute_is_found() {
        let stage = stage_of(&[(5, FIRST), (50, CALM), (5, SECOND), (20, CALM)]);
        let finding = stage.found(&RULE).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0), WorkerIx(1)]);
        // In the 55th second the others had their room only at its end.
        assert_eq!(finding.evidence[2].value, "56");
    }

    #[test]
    fn one_spike_two_of_one_worker_and_two_far_apart_are_none() {
        assert!(stage_of(&[(5, FIRST), (50, CALM)]).is_ok(&RULE));
        assert!(stage_of(&[(5, FIRST), (50, CALM), (5, FIRST)]).is_ok(&RULE));
        assert!(stage_of(&[(5, FIRST), (100, CALM), (5, SECOND)]).is_ok(&RULE));
    }

    #[test]
    fn it_is_unknown_without_requests_in_flight() {
        assert!(Stage::new(3).is_unknown(&RULE));
    }
}
