//! Requests that ended without a known decision: the router chose before listening began, it is no KV-aware one, or its
//! choices are not logged. Their times are as good as those of others. Bounded.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{MAX_DECISIONS, hash};
use radixscope_model::record::Ended;

/// The latest of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Requests {
    latest: VecDeque<Ended>,
    total: u64,
    /// Sum over `latest`, each with its place, so that the state's digest costs nothing.
    #[serde(skip)]
    digest: u64,
}

impl Requests {
    pub(super) fn push(&mut self, ended: &Ended) {
        if self.latest.len() == MAX_DECISIONS
            && let Some(oldest) = self.latest.pop_front()
        {
            self.digest = self.digest.wrapping_sub(hash(&oldest));
        }
        self.total += 1;
        self.digest = self.digest.wrapping_add(hash(ended));
        self.latest.push_back(*ended);
    }

    /// The latest ones, newest first.
    pub fn newest_first(&self) -> impl ExactSizeIterator<Item = &Ended> {
        self.latest.iter().rev()
    }

    /// How many there ever were.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Equal for equal requests.
    pub(super) fn digest(&self) -> (u64, u64) {
        (self.total, self.digest)
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        self.digest = self.latest.iter().fold(0, |sum, ended| sum.wrapping_add(hash(ended)));
    }
}
