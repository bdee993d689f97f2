//! A spike of requests moves from one worker to another.

use crate::check::causes::{Cause, code};
use crate::check::engine::EngineSettings as _;
use crate::check::peers::{batch_limit, name};
use crate::check::spikes::{Harmful, MISSING, harmful};
use crate::check::{Finding, Rule, RuleOutcome, View};
use crate::in_flight::FOLLOW_S;
use radixscope_model::record::Severity;

/// How far back, seconds.
const WINDOW_S: u64 = 180;
/// The second one begins at most so long after the first one, seconds.
const MOVES_WITHIN_S: u64 = FOLLOW_S;

/// See the module.
pub(in crate::check) struct Cascade;

impl Rule for Cascade {
    fn code(&self) -> &'static str {
        "cascade"
    }

    fn subject(&self) -> &'static str {
        "Spikes that move from worker to worker"
    }

    fn clear_ms(&self) -> u64 {
        60_000
    }

    fn look(&self, view: &View<'_>) -> RuleOutcome {
        let Some(spikes) = harmful(view, WINDOW_S) else { return RuleOutcome::Unknown(MISSING.into()) };
        let Some((from, to)) = latest_move(&spikes) else { return RuleOutcome::Ok };
        let mut found = Finding::new(
            Severity::Warning,
            "A spike of requests moved from one worker to another",
            "The router turns away from the full worker all at once, and the next one fills in its turn. Every worker on \
             the way makes its requests wait.",
        );
        found = found.cause(code(Cause::of(view)));
        for (spike, which) in [(from, "First"), (to, "Then")] {
            let label = format!("{which} {}, most in flight in a second", name(view, spike.worker));
            let value = format!("{} ({} on another)", spike.most, spike.least);
            found = found.evidence(label, value, "requests");
        }
        found = found.evidence(
            "From the first one's beginning to the second one's",
            to.from_s - from.from_s,
            "s",
        );
        let label = format!("Such spikes within the last {WINDOW_S} s, second by second");
        found = found.evidence(label, spikes.len(), "spikes");
        if let Some(limit) = batch_limit(view) {
            found = found.evidence("Batch limit of a worker, frontends' metrics", limit, "requests");
        }
        found.workers([from.worker, to.worker]).spread_out(view).link("view=latency").into()
    }
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
    use crate::check::stage::{Process, Stage};
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
        let finding = stage.found(&Cascade).unwrap();
        assert_eq!(finding.workers, [WorkerIx(0), WorkerIx(1)]);
        // In the 55th second the others had their room only at its end.
        assert_eq!(finding.evidence[2].value, "56");
    }

    #[test]
    fn one_spike_two_of_one_worker_and_two_far_apart_are_none() {
        assert!(stage_of(&[(5, FIRST), (50, CALM)]).is_ok(&Cascade));
        assert!(stage_of(&[(5, FIRST), (50, CALM), (5, FIRST)]).is_ok(&Cascade));
        assert!(stage_of(&[(5, FIRST), (100, CALM), (5, SECOND)]).is_ok(&Cascade));
    }

    #[test]
    fn it_is_unknown_without_requests_in_flight() {
        assert!(Stage::new(3).is_unknown(&Cascade));
    }
}
