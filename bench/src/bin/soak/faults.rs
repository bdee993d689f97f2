//! What breaks in a soak, when, and for how long: one kind after another at random times that follow from the seed, one time in four
//! two at once.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use radixscope_bench::random::Random;
use radixscope_tests::etcd::Etcd;
use radixscope_tests::nats::Nats;

use super::clock::Clock;
use super::targets::Targets;

/// Least and most time between two faults, and that a fault lasts, seconds.
const BETWEEN_S: (u64, u64) = (15, 60);
const LASTS_S: (u64, u64) = (3, 25);
/// Of 100 faults, those that have company.
const TWO_PERCENT: u64 = 25;
/// What is written to a disk at once to fill it.
const FILL_BYTES: usize = 1 << 20;

/// What breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    Nats,
    Etcd,
    Targets,
    Publishers,
    Disk,
    Clock,
}

impl Fault {
    pub(super) const ALL: [Self; 6] =
        [Self::Nats, Self::Etcd, Self::Targets, Self::Publishers, Self::Disk, Self::Clock];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nats => "NATS killed",
            Self::Etcd => "etcd killed",
            Self::Targets => "targets of scrapes killed",
            Self::Publishers => "connections to half of the ZeroMQ publishers ended",
            Self::Disk => "disk of the recording full",
            Self::Clock => "clock of the server set to a wrong time",
        }
    }
}

/// What breaks next.
pub(super) struct Next {
    pub(super) after: Duration,
    pub(super) faults: Vec<Fault>,
    pub(super) lasts: Duration,
}

/// The faults in order.
pub(super) struct Schedule {
    random: Random,
    kinds: Vec<Fault>,
}

impl Schedule {
    pub(super) fn new(seed: u64, kinds: Vec<Fault>) -> Self {
        Self { random: Random::new(seed), kinds }
    }

    pub(super) fn next(&mut self) -> Next {
        let mut between =
            |(least, most): (u64, u64)| Duration::from_secs(least + self.random.below(most - least));
        let (after, lasts) = (between(BETWEEN_S), between(LASTS_S));
        let count = 1 + usize::from(self.random.percent(TWO_PERCENT));
        let mut left = self.kinds.clone();
        let mut faults = Vec::new();
        while faults.len() < count && !left.is_empty() {
            faults.push(left.remove(self.random.below(left.len() as u64) as usize));
        }
        Next { after, faults, lasts }
    }
}

/// What can break.
pub(super) struct Breakable {
    pub(super) nats: Nats,
    pub(super) etcd: Etcd,
    pub(super) targets: Targets,
    /// A file on the disk of the recording.
    pub(super) filler: PathBuf,
    /// The clock of the server, if it can be set.
    pub(super) clock: Option<Clock>,
}

impl Breakable {
    /// It breaks. Those that another task breaks are left to it.
    pub(super) fn begin(&mut self, fault: Fault) {
        match fault {
            Fault::Nats => self.nats.stop(),
            Fault::Etcd => self.etcd.stop(),
            Fault::Targets => self.targets.kill(),
            Fault::Disk => self.fill(),
            Fault::Clock => self.clock.iter_mut().for_each(Clock::step),
            Fault::Publishers => {}
        }
    }

    /// It is whole again.
    pub(super) async fn end(&mut self, fault: Fault) {
        match fault {
            Fault::Nats => self.nats.start_again().await,
            Fault::Etcd => self.etcd.start_again().await,
            Fault::Targets => self.targets.start_again().await,
            Fault::Disk => std::fs::remove_file(&self.filler).expect("the file that fills the disk"),
            Fault::Clock => self.clock.iter().for_each(Clock::correct),
            Fault::Publishers => {}
        }
    }

    /// Takes all room, also what the recorder frees meanwhile.
    pub(super) fn fill(&self) {
        let mut file =
            File::options().create(true).append(true).open(&self.filler).expect("the disk of the recording");
        let zeros = vec![0; FILL_BYTES];
        while file.write(&zeros).is_ok_and(|written| written > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::{BETWEEN_S, Fault, LASTS_S, Schedule};

    #[test]
    fn a_seed_repeats_its_faults_and_every_kind_comes() {
        let faults = |seed| {
            let mut schedule = Schedule::new(seed, Fault::ALL.to_vec());
            let next = |_| {
                let next = schedule.next();
                (next.after, next.faults, next.lasts)
            };
            (0..200).map(next).collect::<Vec<_>>()
        };
        assert_eq!(faults(3), faults(3));
        assert_ne!(faults(3), faults(4));
        for fault in Fault::ALL {
            assert!(faults(3).iter().any(|(_, faults, _)| faults.contains(&fault)), "{fault:?}");
        }
        for (after, faults, lasts) in faults(3) {
            assert!((BETWEEN_S.0..BETWEEN_S.1).contains(&after.as_secs()), "{after:?}");
            assert!((LASTS_S.0..LASTS_S.1).contains(&lasts.as_secs()), "{lasts:?}");
            assert!(faults.len() == 1 || faults.len() == 2 && faults[0] != faults[1], "{faults:?}");
        }
    }

    #[test]
    fn a_fault_that_cannot_be_had_does_not_come() {
        let mut schedule = Schedule::new(3, vec![Fault::Etcd]);
        assert!((0..50).all(|_| schedule.next().faults == [Fault::Etcd]));
    }
}
