//! Which of the kept decisions are meant, in which order, and how many there are of each kind. Pure.

use super::{CacheOutcome, DecisionEntry, DecisionTotals, Sort};
use radixscope_model::id::{PoolIx, WorkerIx};
use radixscope_model::record::{DecidedBy, Outcome};

/// A kind of decision that can be picked out. A decision can be of several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DecisionKind {
    /// [`CacheOutcome::Hit`].
    Hit,
    /// [`CacheOutcome::Partial`].
    Partial,
    /// [`CacheOutcome::Miss`].
    Miss,
    /// Several shared the lowest cost.
    Tie,
    /// Another candidate held more of the prompt.
    LostAffinity,
    /// [`CacheOutcome::Unknown`].
    Unknown,
}

impl DecisionKind {
    /// Every kind.
    pub const ALL: [DecisionKind; 6] = [
        DecisionKind::Hit,
        DecisionKind::Partial,
        DecisionKind::Miss,
        DecisionKind::Tie,
        DecisionKind::LostAffinity,
        DecisionKind::Unknown,
    ];

    /// Value in the address.
    pub const fn as_str(self) -> &'static str {
        match self {
            DecisionKind::Hit => "hit",
            DecisionKind::Partial => "partial",
            DecisionKind::Miss => "miss",
            DecisionKind::Tie => "tie",
            DecisionKind::LostAffinity => "lost-affinity",
            DecisionKind::Unknown => "unknown",
        }
    }

    /// By its value in the address.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether `decided` is of this kind.
    pub fn is(self, decided: &DecisionEntry) -> bool {
        match self {
            DecisionKind::Hit => decided.cache_outcome() == CacheOutcome::Hit,
            DecisionKind::Partial => decided.cache_outcome() == CacheOutcome::Partial,
            DecisionKind::Miss => decided.cache_outcome() == CacheOutcome::Miss,
            DecisionKind::Unknown => decided.cache_outcome() == CacheOutcome::Unknown,
            DecisionKind::Tie => decided.is_tie(),
            DecisionKind::LostAffinity => decided.lost_affinity().is_some(),
        }
    }
}

/// What decided: one of those that reports show, or that none shows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ByFilter(pub Option<DecidedBy>);

impl ByFilter {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self(Some(DecidedBy::Cost)),
        Self(Some(DecidedBy::SessionAffinity)),
        Self(Some(DecidedBy::Pinned)),
        Self(Some(DecidedBy::Policy)),
        Self(Some(DecidedBy::Mode)),
        Self(Some(DecidedBy::Scores)),
        Self(None),
    ];

    /// Value in the address.
    pub const fn as_str(self) -> &'static str {
        match self.0 {
            Some(by) => by.as_str(),
            None => "unknown",
        }
    }

    /// By its value in the address.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == name)
    }

    /// In a few words.
    pub const fn to_text(self) -> &'static str {
        match self.0 {
            Some(by) => by.to_text(),
            None => "not reported",
        }
    }

    /// Its place in [`Self::ALL`].
    const fn at(self) -> usize {
        match self.0 {
            Some(by) => by as usize,
            None => Self::ALL.len() - 1,
        }
    }
}

/// What its client measured of a decision's request, against the target of the time to first token. Each decision is of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClientFilter {
    /// The first token reached the client later than the target.
    AboveTarget,
    /// The first token reached the client within the target.
    WithinTarget,
    /// It failed or was cancelled at the client.
    Failed,
    /// No client's time to first token is known.
    Unknown,
}

impl ClientFilter {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::AboveTarget, Self::WithinTarget, Self::Failed, Self::Unknown];

    /// Value in the address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AboveTarget => "above_target",
            Self::WithinTarget => "within_target",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    /// By its value in the address.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// In a few words.
    pub const fn to_text(self) -> &'static str {
        match self {
            Self::AboveTarget => "TTFT above target",
            Self::WithinTarget => "TTFT within target",
            Self::Failed => "failed",
            Self::Unknown => "not measured",
        }
    }

    /// The kind of `decided`, with a target in microseconds.
    pub fn of(decided: &DecisionEntry, ttft_target_us: u64) -> Self {
        match &decided.client {
            Some(client) if client.outcome != Outcome::Success => Self::Failed,
            Some(client) => match client.ttft_us {
                Some(us) if us > ttft_target_us => Self::AboveTarget,
                Some(_) => Self::WithinTarget,
                None => Self::Unknown,
            },
            None => Self::Unknown,
        }
    }
}

/// Which decisions are meant, and in which order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only those in this pool.
    pub pool: Option<PoolIx>,
    /// Only those for this worker.
    pub worker: Option<WorkerIx>,
    /// Only those of this kind.
    pub kind: Option<DecisionKind>,
    /// Only those that this decided.
    pub by: Option<ByFilter>,
    /// Only those of which the client measured this.
    pub client: Option<ClientFilter>,
    /// Target of the time to first token, microseconds: what [`client`](Self::client) compares with.
    pub ttft_target_us: u64,
    /// What they are listed by.
    pub sort: Sort,
}

impl Filter {
    fn is_among(&self, decided: &DecisionEntry) -> bool {
        self.pool.is_none_or(|pool| pool == decided.pool)
            && self.worker.is_none_or(|worker| worker == decided.decision.worker)
    }
}

/// Decisions that a [`Filter`] picks out.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picked {
    /// Places in what was looked through, in the order asked for.
    pub at: Vec<u32>,
    /// Sums over them. Blocks of several pools may be of different size.
    pub totals: DecisionTotals,
    /// The same for each pool that one of them is in, by ascending index.
    pub of_pool: Vec<(PoolIx, DecisionTotals)>,
    /// How many there would be of each of [`DecisionKind::ALL`], whatever kind the filter names.
    pub of_kind: [u32; DecisionKind::ALL.len()],
    /// How many there would be of any kind.
    pub of_any_kind: u32,
    /// How many there would be of each of [`ByFilter::ALL`], whichever of them the filter names.
    pub of_by: [u32; ByFilter::ALL.len()],
    /// How many there would be of each of [`ClientFilter::ALL`], whichever of them the filter names.
    pub of_client: [u32; ClientFilter::ALL.len()],
}

impl Picked {
    /// Looks through `decisions` once, which come newest first; `is_found`: whether one has what the reader looks for.
    pub fn of<'a>(
        filter: &Filter,
        decisions: impl Iterator<Item = &'a DecisionEntry>,
        mut is_found: impl FnMut(&DecisionEntry) -> bool,
    ) -> Self {
        let mut picked = Self::default();
        let mut keys: Vec<(u64, u32)> = Vec::new();
        let is_sorted = filter.sort != Sort::default();
        for (at, decided) in decisions.enumerate() {
            if !filter.is_among(decided) || !is_found(decided) {
                continue;
            }
            let by = ByFilter(decided.decision.decided_by);
            let client = ClientFilter::of(decided, filter.ttft_target_us);
            let is_by = filter.by.is_none_or(|only| only == by);
            let is_client = filter.client.is_none_or(|only| only == client);
            picked.of_by[by.at()] += u32::from(is_client);
            picked.of_client[client as usize] += u32::from(is_by);
            if !is_by || !is_client {
                continue;
            }
            picked.of_any_kind += 1;
            let kinds = kinds(decided);
            for (count, is) in picked.of_kind.iter_mut().zip(kinds) {
                *count += u32::from(is);
            }
            if filter.kind.is_none_or(|kind| kinds[kind as usize]) {
                match is_sorted {
                    true => keys.push((filter.sort.key(decided), at as u32)),
                    false => picked.at.push(at as u32),
                }
                picked.add(decided);
            }
        }
        if is_sorted {
            keys.sort();
            picked.at.extend(keys.iter().map(|&(_, at)| at));
        }
        picked
    }

    fn add(&mut self, decided: &DecisionEntry) {
        self.totals.add(decided);
        let at = self.of_pool.binary_search_by_key(&decided.pool, |(pool, _)| *pool).unwrap_or_else(|at| {
            self.of_pool.insert(at, (decided.pool, DecisionTotals::default()));
            at
        });
        self.of_pool[at].1.add(decided);
    }
}

/// For each of [`DecisionKind::ALL`]; costs less than asking for each.
fn kinds(decided: &DecisionEntry) -> [bool; DecisionKind::ALL.len()] {
    let verdict = decided.cache_outcome();
    [
        verdict == CacheOutcome::Hit,
        verdict == CacheOutcome::Partial,
        verdict == CacheOutcome::Miss,
        decided.is_tie(),
        decided.lost_affinity().is_some(),
        verdict == CacheOutcome::Unknown,
    ]
}

#[cfg(test)]
mod tests {
    use radixscope_model::id::Millis;
    use radixscope_model::record::ClientMeasured;

    use super::super::cache_outcome::tests::decided;
    use super::*;

    #[test]
    fn every_kind_is_counted_whatever_kind_is_shown() {
        let all = [
            decided(Some(100), None, &[(20, 90.0), (95, 30.0)]),
            decided(Some(100), None, &[(80, 90.0), (20, 30.0)]),
            decided(Some(100), None, &[(0, 30.0), (0, 30.0)]),
            decided(None, None, &[]),
        ];
        let picked =
            Picked::of(&Filter { kind: Some(DecisionKind::Miss), ..Filter::default() }, all.iter(), |_| true);
        assert_eq!((picked.at, picked.of_any_kind), (vec![2], 4));
        assert_eq!(picked.of_kind, [1, 1, 1, 1, 1, 1]);
        assert_eq!(
            (picked.totals.count, picked.totals.isl_blocks, picked.totals.overlap_blocks),
            (1, 100, 0)
        );
        for (decided, kind) in all.iter().zip([
            DecisionKind::Hit,
            DecisionKind::Partial,
            DecisionKind::Miss,
            DecisionKind::Unknown,
        ]) {
            for (at, other) in DecisionKind::ALL.into_iter().enumerate() {
                assert_eq!(kinds(decided)[at], other.is(decided));
                assert_eq!(DecisionKind::named(other.as_str()), Some(other));
            }
            assert!(kind.is(decided));
        }
    }

    #[test]
    fn what_decided_is_counted_and_picked_out_also_where_no_report_shows_it() {
        let mut all =
            [decided(Some(9), Some(9), &[]), decided(Some(9), Some(0), &[]), decided(None, None, &[])];
        all[0].decision.decided_by = Some(DecidedBy::SessionAffinity);
        all[1].decision.decided_by = Some(DecidedBy::Cost);
        let picked = |by| Picked::of(&Filter { by, ..Filter::default() }, all.iter(), |_| true);
        let affinity = picked(ByFilter::named("session_affinity"));
        assert_eq!((affinity.at, affinity.of_any_kind, affinity.of_kind[0]), (vec![0], 1, 1));
        assert_eq!(affinity.of_by, [1, 1, 0, 0, 0, 0, 1], "counted whichever is shown");
        assert_eq!(picked(ByFilter::named("unknown")).at, [2]);
        assert_eq!(picked(None).at, [0, 1, 2]);
        for (at, by) in ByFilter::ALL.into_iter().enumerate() {
            assert_eq!((by.at(), ByFilter::named(by.as_str())), (at, Some(by)));
        }
    }

    #[test]
    fn what_clients_measured_is_counted_and_picked_out_against_the_target() {
        let measured = |ttft_us, outcome| {
            let (sent_ms, ended_ms) = (Millis(0), Millis(9));
            Some(ClientMeasured {
                sent_ms,
                ended_ms,
                ttft_us,
                itl_us: None,
                duration_us: None,
                outcome,
                status: None,
                output_tokens: None,
            })
        };
        let mut all = [(); 5].map(|()| decided(Some(9), Some(9), &[]));
        all[0].client = measured(Some(600_001), Outcome::Success);
        all[1].client = measured(Some(600_000), Outcome::Success);
        all[2].client = measured(Some(900_000), Outcome::Cancelled);
        all[3].client = measured(None, Outcome::Success);
        all[1].decision.decided_by = Some(DecidedBy::Cost);
        let picked = |client, by| {
            let filter = Filter { client, by, ttft_target_us: 600_000, ..Filter::default() };
            Picked::of(&filter, all.iter(), |_| true)
        };
        let named = |name| ClientFilter::named(name).map(Some).expect("a kind");
        assert_eq!(picked(None, None).of_client, [1, 1, 1, 2]);
        assert_eq!(picked(named("above_target"), None).at, [0]);
        assert_eq!(picked(named("failed"), None).at, [2]);
        let unmeasured = picked(named("unknown"), None);
        assert_eq!(
            (unmeasured.at, unmeasured.of_client, unmeasured.of_any_kind),
            (vec![3, 4], [1, 1, 1, 2], 2)
        );
        let by_cost = picked(None, Some(ByFilter(Some(DecidedBy::Cost))));
        assert_eq!(by_cost.of_client, [0, 1, 0, 0], "of those that the other filter leaves");
        assert_eq!(picked(named("within_target"), None).of_by, [1, 0, 0, 0, 0, 0, 0]);
        for (at, kind) in ClientFilter::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, ClientFilter::named(kind.as_str())), (at, Some(kind)));
        }
    }

    #[test]
    fn one_pool_is_picked_out_and_sums_are_kept_by_pool() {
        let mut all = [
            decided(Some(10), Some(5), &[]),
            decided(Some(30), Some(3), &[]),
            decided(Some(10), Some(5), &[]),
        ];
        all[1].pool = PoolIx(7);
        (all[2].pool, all[2].ignores_cache) = (PoolIx(7), true);
        let picked = Picked::of(&Filter::default(), all.iter(), |_| true);
        let sums: Vec<_> = picked.of_pool.iter().map(|(pool, t)| (pool.0, t.count, t.isl_blocks)).collect();
        assert_eq!(sums, [(0, 1, 10), (7, 2, 30)], "a choice that ignores caches has no hit rate");
        let picked = Picked::of(&Filter { pool: Some(PoolIx(7)), ..Filter::default() }, all.iter(), |_| true);
        assert_eq!((picked.at, picked.of_any_kind), (vec![1, 2], 2));
        assert_eq!(picked.of_kind, [0, 1, 0, 0, 0, 0], "neither a miss nor unknown");
    }

    #[test]
    fn a_worker_picks_its_decisions_out_and_so_does_what_is_looked_for() {
        let mut one = decided(Some(9), Some(1), &[]);
        one.decision.request_id = Some("chat-17-b".into());
        let all = [one, decided(Some(9), Some(1), &[])];
        let picked = |filter: Filter| Picked::of(&filter, all.iter(), |_| true).at;
        assert_eq!(picked(Filter { worker: Some(WorkerIx(1)), ..Filter::default() }), [0, 1]);
        assert!(picked(Filter { worker: Some(WorkerIx(0)), ..Filter::default() }).is_empty());
        let found = Picked::of(&Filter::default(), all.iter(), |d| d.decision.request_id.is_some());
        assert_eq!((found.at, found.of_any_kind), (vec![0], 1), "others are not counted");
    }
}
