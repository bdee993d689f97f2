//! Places of workers: who gives theirs away when they run short, and how decisions go on to name those who did.

use serde::{Deserialize, Serialize};

use super::{Cluster, Head, MAX_WORKERS, WorkerState, hash};
use radixscope_model::id::{Millis, WorkerIx};
use radixscope_model::record::DepartureCause;

/// A worker that no message named for this long may have left: longer than a request lasts, and than an idle cluster is
/// silent between two reports of load.
pub const SILENT_AFTER_MS: u64 = 600_000;
/// Most departed workers that are named on, as long as decisions that are kept name them. Beyond it those that departed
/// longest ago are unknown.
pub const MAX_DEPARTED: usize = 1 << 13;
/// Workers that left and are retained with all that is known of them: the latest rollout of a usual deployment stays visible.
/// One costs about 20 kB by the sizes of its parts: an hour of rates and load, its part of each keyframe, samples for the checks.
const MAX_GONE: usize = 128;
/// Places that are freed at once: whatever names their workers is looked through once for all of them.
const AT_ONCE: usize = 64;

/// No known worker.
const UNNAMED: WorkerIx = WorkerIx(u16::MAX);
const _: () = assert!(MAX_WORKERS + MAX_DEPARTED < UNNAMED.at());

/// Workers that gave their places away and are still named, by [`WorkerIx`] from [`MAX_WORKERS`] on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct DepartedWorkers {
    workers: Vec<Option<WorkerState>>,
    count: usize,
    /// Sum of hashes of who has which index: nothing else of them ever changes, and the state's digest is taken often.
    #[serde(skip)]
    digest: u64,
}

impl DepartedWorkers {
    pub(super) fn get(&self, worker: WorkerIx) -> Option<&WorkerState> {
        self.workers.get(worker.at().checked_sub(MAX_WORKERS)?)?.as_ref()
    }

    /// All that are named.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WorkerState> {
        self.workers.iter().flatten()
    }

    /// Equal for equal ones.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Changes all that are named.
    pub(super) fn each(&mut self, change: impl FnMut(&mut WorkerState)) {
        self.workers.iter_mut().flatten().for_each(change);
        self.restored();
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        let all = self.workers.iter().enumerate();
        self.digest =
            all.filter_map(|(at, worker)| Some(hash(&(at, worker.as_ref()?)))).fold(0, u64::wrapping_add);
    }

    /// Forgets those that nothing names.
    fn retain(&mut self, is_named: impl Fn(WorkerIx) -> bool) {
        for at in 0..self.workers.len() {
            if !is_named(index(at)) {
                self.forget(at);
            }
        }
        while self.workers.last().is_some_and(Option::is_none) {
            self.workers.pop();
        }
    }

    fn forget(&mut self, at: usize) {
        if let Some(worker) = self.workers[at].take() {
            self.digest = self.digest.wrapping_sub(hash(&(at, &worker)));
            self.count -= 1;
        }
    }

    /// Names that can be given yet.
    fn room(&self) -> usize {
        MAX_DEPARTED - self.count
    }

    /// Names a worker from now on, by the first index from `from` on that is free.
    fn add(&mut self, from: &mut usize, worker: WorkerState) -> WorkerIx {
        while self.workers.get(*from).is_some_and(Option::is_some) {
            *from += 1;
        }
        if *from == self.workers.len() {
            self.workers.push(None);
        }
        self.digest = self.digest.wrapping_add(hash(&(*from, &worker)));
        self.count += 1;
        self.workers[*from] = Some(worker);
        index(*from)
    }

    /// Forgets those that departed longest ago, a quarter of all that there can be, and gives their indices.
    fn forget_oldest(&mut self) -> Vec<WorkerIx> {
        let left_ms = |worker: &WorkerState| worker.gone.map(|gone| gone.at_ms);
        let named =
            self.workers.iter().enumerate().filter_map(|(at, place)| Some((left_ms(place.as_ref()?), at)));
        let mut oldest: Vec<_> = named.collect();
        oldest.sort();
        oldest.truncate(MAX_DEPARTED / 4);
        oldest.iter().for_each(|&(_, at)| self.forget(at));
        oldest.into_iter().map(|(_, at)| index(at)).collect()
    }
}

fn index(at: usize) -> WorkerIx {
    WorkerIx((MAX_WORKERS + at) as u16)
}

impl Cluster {
    /// Who may give their places away at `at`: departed workers, the one that left first ahead; without any, those of whom
    /// no message named for [`SILENT_AFTER_MS`]. `mentioned`: when a message named a worker last.
    pub fn to_reclaim(&self, at: Millis, mentioned: &dyn Fn(WorkerIx) -> Millis) -> Vec<WorkerIx> {
        let (mut gone, mut silent) = (Vec::new(), Vec::new());
        for (ix, worker) in self.head.workers.iter().enumerate() {
            let ix = WorkerIx(ix as u16);
            let last = mentioned(ix).max(worker.last_sign_ms.unwrap_or_default());
            match worker.gone {
                _ if self.head.reclaimed.contains(&ix) => {}
                Some(left) => gone.push((left.at_ms, ix)),
                None if at.since(last) > SILENT_AFTER_MS => silent.push((last, ix)),
                None => {}
            }
        }
        let mut leaving = if gone.is_empty() { silent } else { gone };
        leaving.sort();
        leaving.into_iter().take(AT_ONCE).map(|(_, ix)| ix).collect()
    }

    /// Workers that left and are to be forgotten, but for their names in decisions: if more of them are retained than
    /// `MAX_GONE`, those that left first.
    pub fn to_forget(&self) -> Vec<WorkerIx> {
        let all = (0..).map(WorkerIx).zip(&self.head.workers);
        let mut gone: Vec<_> = all.filter_map(|(ix, worker)| Some((worker.gone?.at_ms, ix))).collect();
        if gone.len() <= MAX_GONE {
            return Vec::new();
        }
        gone.retain(|(_, ix)| !self.head.reclaimed.contains(ix));
        if gone.len() <= MAX_GONE {
            return Vec::new();
        }
        gone.sort();
        gone.into_iter().take(AT_ONCE).map(|(_, ix)| ix).collect()
    }

    pub(super) fn fold_reclaimed(&mut self, at: Millis, workers: &[WorkerIx]) {
        let Self { head, trees, tiers } = self;
        let is_held = |ix: &&WorkerIx| ix.at() < head.workers.len() && !head.reclaimed.contains(ix);
        let mut leaving: Vec<WorkerIx> = workers.iter().filter(is_held).copied().collect();
        leaving.sort();
        leaving.dedup();
        head.sources.iter_mut().for_each(|source| source.reclaim(&leaving));
        for &ix in &leaving {
            let worker = &mut head.workers[ix.at()];
            if worker.gone.is_none() {
                worker.left(at, DepartureCause::Silent);
            }
            if let Some(tree) = trees.get_mut(worker.pool.at()) {
                tree.clear(ix);
            }
            tiers.values_mut().for_each(|tree| {
                tree.clear(ix);
            });
        }
        for process in &mut head.processes {
            process.reclaim(&leaving);
        }
        head.findings.reclaim(&leaving);
        for sign in &mut head.signs {
            sign.workers.retain(|worker| !leaving.contains(worker));
        }
        name_on(head, &leaving);
        head.reclaimed.extend(leaving);
    }
}

/// Gives the workers new indices in the decisions that name them.
fn name_on(head: &mut Head, leaving: &[WorkerIx]) {
    let mut is_named = vec![false; MAX_WORKERS + MAX_DEPARTED];
    let mut name = |worker: WorkerIx| {
        if let Some(named) = is_named.get_mut(worker.at()) {
            *named = true;
        }
    };
    head.decisions.each_worker(&mut name);
    head.departed.retain(|worker| is_named[worker.at()]);
    let mut names = vec![None; is_named.len()];
    if head.departed.room() < leaving.len() {
        for worker in head.departed.forget_oldest() {
            names[worker.at()] = Some(UNNAMED);
        }
    }
    let mut from = 0;
    for &ix in leaving.iter().filter(|ix| is_named[ix.at()]) {
        let known = &head.workers[ix.at()];
        let mut worker = WorkerState::new(known.id, known.pool, known.first_ms);
        (worker.gone, worker.last_gone) = (known.gone, known.last_gone);
        names[ix.at()] = Some(head.departed.add(&mut from, worker));
    }
    if names.iter().any(Option::is_some) {
        head.decisions.rename(|worker| names.get(worker.at()).copied().flatten().unwrap_or(worker));
    }
}
