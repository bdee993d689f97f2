//! Counts of requests that the gate refused, with a description of the last of each kind.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Refusals of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RefusedCount {
    /// What was refused, such as `tree_query`.
    pub what: &'static str,
    /// Why, such as `loopback_address`.
    pub why: &'static str,
    /// Number of refusals.
    pub count: u64,
    /// Description of the last one.
    pub last: String,
}

/// Refusals since the start. There are few values of `what` and `why`, so the table is bounded.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Counts>);

/// Count and last description, by `what` and `why`.
type Counts = BTreeMap<(&'static str, &'static str), (u64, String)>;

impl Refusals {
    /// Counts a refusal; returns the count of its kind.
    pub fn count(&self, what: &'static str, why: &'static str, detail: &str) -> u64 {
        let mut counts = self.counts();
        let (count, last) = counts.entry((what, why)).or_default();
        *count = count.saturating_add(1);
        detail.clone_into(last);
        *count
    }

    /// All kinds, in order of their names.
    pub fn list(&self) -> Vec<RefusedCount> {
        let row = |(&(what, why), (count, last)): (&(_, _), &(u64, String))| RefusedCount {
            what,
            why,
            count: *count,
            last: last.clone(),
        };
        self.counts().iter().map(row).collect()
    }

    /// A sentence about refusals of one kind. `None`: there are none.
    pub fn sentence(&self, what: &str) -> Option<String> {
        let counts = self.counts();
        let of = counts.iter().filter(|((known, _), _)| *known == what);
        let (mut count, mut last) = (0_u64, None);
        for (_, (refused, detail)) in of {
            count = count.saturating_add(*refused);
            last = Some(detail);
        }
        last.map(|last| format!("{count} refused. {last}"))
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_with_the_last_as_text() {
        let refusals = Refusals::default();
        assert_eq!(refusals.sentence("tree_query"), None);
        refusals.count("tree_query", "loopback_address", "one");
        refusals.count("tree_query", "loopback_address", "two");
        refusals.count("response", "other_address", "three");
        let list: Vec<_> = refusals.list().into_iter().map(|of| (of.what, of.count, of.last)).collect();
        assert_eq!(list, [("response", 1, "three".to_owned()), ("tree_query", 2, "two".to_owned())]);
        assert_eq!(refusals.sentence("tree_query").as_deref(), Some("2 refused. two"));
    }
}
