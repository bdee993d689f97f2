//! In which order decisions are listed: by a column, either way round. Pure.

use super::{CacheOutcome, DecisionEntry};
use radixscope_model::record::Completeness;

/// What decisions can be ordered by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Column {
    /// Order of decision.
    #[default]
    Time,
    /// The first eight bytes of the request id.
    Request,
    /// The chosen worker, in order of first sight.
    Worker,
    /// Blocks of the prompt.
    Prompt,
    /// Blocks of the prompt that the chosen worker held, on its device and below.
    Cached,
    /// Share of the prompt's blocks that it held.
    HitRate,
    /// Cost of the chosen worker.
    Cost,
    /// Cost of the next best candidate less that of the chosen one.
    CostGap,
    /// [`CacheOutcome`], misses first.
    Outcome,
    /// Whose costs are known, all candidates' first.
    Detail,
    /// Time to first token.
    Ttft,
    /// Time to first token as the client measured it.
    ClientTtft,
}

impl Column {
    /// Every column, from left to right.
    pub const ALL: [Column; 12] = [
        Column::Time,
        Column::Request,
        Column::Worker,
        Column::Prompt,
        Column::Cached,
        Column::HitRate,
        Column::Cost,
        Column::CostGap,
        Column::Outcome,
        Column::Detail,
        Column::Ttft,
        Column::ClientTtft,
    ];

    /// Value in the address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Column::Time => "time",
            Column::Request => "request",
            Column::Worker => "worker",
            Column::Prompt => "prompt",
            Column::Cached => "cached",
            Column::HitRate => "hit-rate",
            Column::Cost => "cost",
            Column::CostGap => "cost-gap",
            Column::Outcome => "outcome",
            Column::Detail => "detail",
            Column::Ttft => "ttft",
            Column::ClientTtft => "client-ttft",
        }
    }

    /// Whether what is asked for first is the most of it: the newest, the slowest, the costliest; and not the least.
    const fn is_most_first(self) -> bool {
        use Column::{ClientTtft, Cost, CostGap, Prompt, Time, Ttft};
        matches!(self, Time | Prompt | Cost | CostGap | Ttft | ClientTtft)
    }

    /// What is compared; `None` where it is not known.
    fn key(self, of: &DecisionEntry) -> Option<u64> {
        let decision = &of.decision;
        match self {
            Column::Time => Some(decision.id.0),
            Column::Request => decision.request_id.as_deref().map(first_bytes),
            Column::Worker => {
                let worker = decision.worker;
                Some(u64::from(worker.slot().0) << 32 | u64::from(worker.generation()))
            }
            Column::Prompt => decision.isl_blocks,
            Column::Cached => of.held_blocks().filter(|_| !of.ignores_cache),
            Column::HitRate => of.overlap_share().map(ordered),
            Column::Cost => of.chosen_cost().map(ordered),
            Column::CostGap => of.cost_gap_blocks().ok().map(ordered),
            Column::Outcome => match of.cache_outcome() {
                CacheOutcome::Miss => Some(0),
                CacheOutcome::Partial => Some(1),
                CacheOutcome::Hit => Some(2),
                CacheOutcome::Unknown | CacheOutcome::Ignored => None,
            },
            Column::Detail => Some(match decision.completeness {
                Completeness::AllCandidates => 0,
                Completeness::Reconstructed => 1 + u64::from(of.partial),
                Completeness::ChosenOnly => 3,
            }),
            Column::Ttft => of.time_to_first_token_ms().map(|(ms, _)| ordered(ms)),
            Column::ClientTtft => of.client?.ttft_us,
        }
    }
}

/// An order of decisions: unknown ones last, equal ones newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sort {
    /// By what.
    pub column: Column,
    /// The most of it first.
    pub is_descending: bool,
}

impl Default for Sort {
    fn default() -> Self {
        Self::by(Column::Time)
    }
}

impl Sort {
    /// The order that is asked for first: the newest, the slowest, the lowest hit rate.
    pub const fn by(column: Column) -> Self {
        Self { column, is_descending: column.is_most_first() }
    }

    /// The order after a click on the heading of `column`: its own, then the other way round.
    pub fn clicked(self, column: Column) -> Self {
        match self.column == column {
            true => Self { is_descending: !self.is_descending, ..self },
            false => Self::by(column),
        }
    }

    /// By its value in the address: a column, with `-` for the most first.
    pub fn named(value: &str) -> Option<Self> {
        let (is_descending, name) = value.strip_prefix('-').map_or((false, value), |name| (true, name));
        let column = Column::ALL.into_iter().find(|column| column.as_str() == name)?;
        Some(Self { column, is_descending })
    }

    /// Value in the address.
    pub fn value(self) -> String {
        let sign = if self.is_descending { "-" } else { "" };
        [sign, self.column.as_str()].concat()
    }

    /// What an ascending sort compares; equal for what is not known.
    pub(super) fn key(self, of: &DecisionEntry) -> u64 {
        self.column.key(of).map_or(u64::MAX, |key| {
            let key = if self.is_descending { !key } else { key };
            key.min(u64::MAX - 1)
        })
    }
}

/// A number whose order is that of `value`.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn first_bytes(id: &str) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(id.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::super::cache_outcome::tests::decided;
    use super::super::{Filter, Picked};
    use super::*;

    fn order(sort: Sort, all: &[DecisionEntry]) -> Vec<u32> {
        Picked::of(&Filter { sort, ..Filter::default() }, all.iter(), |_| true).at
    }

    #[test]
    fn numbers_keep_their_order() {
        let values = [f64::NEG_INFINITY, -3.5, -0.25, 0.0, 1e-9, 2.0, 1e300, f64::INFINITY];
        assert!(values.map(ordered).is_sorted());
        assert!(first_bytes("a") < first_bytes("ab") && first_bytes("ab") < first_bytes("b"));
    }

    #[test]
    fn the_worst_come_first_the_unknown_last_and_equal_ones_newest_first() {
        let mut all = [
            decided(Some(100), Some(90), &[]),
            decided(Some(100), None, &[]),
            decided(Some(100), Some(10), &[]),
            decided(Some(100), Some(90), &[]),
        ];
        all[0].progress.ttft_us = Some(200_000);
        all[2].progress.ttft_us = Some(1_500);
        all[3].progress.ttft_us = Some(900_000);
        assert_eq!(order(Sort::by(Column::HitRate), &all), [2, 0, 3, 1]);
        assert_eq!(order(Sort::by(Column::HitRate).clicked(Column::HitRate), &all), [0, 3, 2, 1]);
        assert_eq!(order(Sort::by(Column::Ttft), &all), [3, 0, 2, 1]);
        assert_eq!(order(Sort::default(), &all), [0, 1, 2, 3], "as they are given");
    }

    #[test]
    fn the_largest_gap_comes_first_and_what_has_none_last() {
        let all = [
            decided(Some(9), None, &[(0, 7.0), (0, 9.0)]),
            decided(Some(9), Some(3), &[]),
            decided(Some(9), None, &[(0, 90.0), (5, 30.0)]),
        ];
        assert_eq!(order(Sort::by(Column::CostGap), &all), [2, 0, 1]);
        assert_eq!(order(Sort::by(Column::Detail), &all), [0, 2, 1]);
    }

    #[test]
    fn the_address_names_column_and_direction() {
        for column in Column::ALL {
            for sort in [Sort::by(column), Sort::by(column).clicked(column)] {
                assert_eq!(Sort::named(&sort.value()), Some(sort));
            }
        }
        assert_eq!(Sort::by(Column::Ttft).value(), "-ttft");
        assert_eq!(Sort::by(Column::HitRate).value(), "hit-rate");
        assert_eq!((Sort::named(""), Sort::named("--ttft")), (None, None));
    }
}
