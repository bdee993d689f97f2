//! Which runs there are in what was found: stretches of time with requests, apart by longer than a pause. Pure.

use radixscope_model::id::Millis;

use super::clocks::put_right;

/// A pause that is longer ends a run: the next request is of another one.
pub(super) const APART_MS: u64 = 10 * 60_000;
/// How long what comes after the last request is shown.
const SHOWN_AFTER_MS: u64 = 30_000;
/// Most stretches that are kept apart of a file; beyond, later ones count as one.
const MAX_STRETCHES: usize = 1_000;

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stretch {
    pub(crate) from: Millis,
    pub(crate) to: Millis,
}

impl Stretch {
    /// Whether a time belongs to it, or to the pauses around it.
    pub(super) fn is_near(&self, at: Millis) -> bool {
        at.0.saturating_add(APART_MS) >= self.from.0 && at.0 <= self.to.0.saturating_add(APART_MS)
    }

    /// Whether what is of no request, as metrics are, is shown with it. Little of what follows: the page opens at the end.
    pub(super) fn covers(&self, at: Millis) -> bool {
        at.0.saturating_add(APART_MS) >= self.from.0 && at.0 <= self.to.0.saturating_add(SHOWN_AFTER_MS)
    }

    pub(super) fn shifted(self, ahead_ms: i64) -> Self {
        Self { from: put_right(self.from, ahead_ms), to: put_right(self.to, ahead_ms) }
    }
}

/// When a file has requests.
#[derive(Default, Debug)]
pub(super) struct Stretches(Vec<Stretch>);

impl Stretches {
    /// A request at a time.
    pub(super) fn note(&mut self, at: Millis) {
        // Nearly always the one that goes on.
        if let Some(last) = self.0.last_mut().filter(|last| last.is_near(at)) {
            last.from = last.from.min(at);
            last.to = last.to.max(at);
            return;
        }
        if self.0.len() == MAX_STRETCHES {
            self.0 = union(std::mem::take(&mut self.0));
        }
        let is_full = self.0.len() == MAX_STRETCHES;
        match self.0.last_mut().filter(|_| is_full) {
            Some(last) => {
                last.from = last.from.min(at);
                last.to = last.to.max(at);
            }
            None => self.0.push(Stretch { from: at, to: at }),
        }
    }
}

/// The runs of files, each with by how much its clock is ahead; in order.
pub(super) fn runs<'f>(files: impl Iterator<Item = (&'f Stretches, i64)>) -> Vec<Stretch> {
    union(files.flat_map(|(file, ahead_ms)| file.0.iter().map(move |one| one.shifted(ahead_ms))).collect())
}

fn union(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_unstable();
    let mut runs: Vec<Stretch> = Vec::new();
    for stretch in stretches {
        match runs.last_mut().filter(|last| last.is_near(stretch.from)) {
            Some(last) => last.to = last.to.max(stretch.to),
            None => runs.push(stretch),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(times: &[u64]) -> Stretches {
        let mut stretches = Stretches::default();
        times.iter().for_each(|&at| stretches.note(Millis(at)));
        stretches
    }

    fn bounds(runs: &[Stretch]) -> Vec<(u64, u64)> {
        runs.iter().map(|run| (run.from.0, run.to.0)).collect()
    }

    #[test]
    fn a_long_pause_ends_a_run_and_a_wrong_clock_does_not() {
        let hour = 6 * APART_MS;
        let (log, client) = (stretches(&[1_000, 2_000, hour, hour + 5]), stretches(&[2 * hour + 3]));
        let all = runs([(&log, 0), (&client, hour as i64)].into_iter());
        assert_eq!(bounds(&all), [(1_000, 2_000), (hour, hour + 5)]);
        assert!(all[1].covers(Millis(hour - APART_MS)) && !all[1].covers(Millis(2_000)));
        assert!(all[1].covers(Millis(hour + 30_005)) && !all[1].covers(Millis(hour + 30_006)));
    }

    #[test]
    fn the_order_of_requests_does_not_matter() {
        let times: Vec<u64> = (0..100).map(|n| (n * 37 % 100) * APART_MS * 2).collect();
        let all = runs([(&stretches(&times), 0)].into_iter());
        assert_eq!(all.len(), 100);
        // Two that a third joins.
        assert_eq!(
            bounds(&runs([(&stretches(&[0, 2 * APART_MS, APART_MS]), 0)].into_iter())),
            [(0, 2 * APART_MS)]
        );
    }

    #[test]
    fn more_stretches_than_are_kept_apart_are_one() {
        let times: Vec<u64> = (0..5_000).map(|n| n * APART_MS * 2).collect();
        assert!(runs([(&stretches(&times), 0)].into_iter()).len() <= MAX_STRETCHES);
    }
}
