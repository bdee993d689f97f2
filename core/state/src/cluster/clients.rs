//! What clients measured: how much of it is of requests that are known here, and the latest of the rest. Bounded.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{MAX_DECISIONS, hash};
use radixscope_model::record::ClientMeasured;

/// Results of clients. Those that are joined stand with their decisions.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClientResults {
    joined: u64,
    unknown: u64,
    /// The latest of no request that is known.
    latest: VecDeque<ClientMeasured>,
    /// Sum over `latest`, so that the state's digest costs nothing.
    #[serde(skip)]
    digest: u64,
}

impl ClientResults {
    pub(super) fn join(&mut self) {
        self.joined += 1;
    }

    pub(super) fn push_unknown(&mut self, measured: &ClientMeasured) {
        if self.latest.len() == MAX_DECISIONS
            && let Some(oldest) = self.latest.pop_front()
        {
            self.digest = self.digest.wrapping_sub(hash(&oldest));
        }
        self.unknown += 1;
        self.digest = self.digest.wrapping_add(hash(measured));
        self.latest.push_back(*measured);
    }

    /// Results that are joined with a decision.
    pub const fn joined(&self) -> u64 {
        self.joined
    }

    /// Results of requests that are not known here: no decision for a request with their id became known.
    pub const fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Share of the results that is joined, 0 … 1; `None`: there is none.
    pub fn joined_share(&self) -> Option<f64> {
        let all = self.joined + self.unknown;
        (all > 0).then(|| self.joined as f64 / all as f64)
    }

    /// The latest that are not joined, newest first.
    pub fn unknown_newest_first(&self) -> impl ExactSizeIterator<Item = &ClientMeasured> {
        self.latest.iter().rev()
    }

    /// Equal for equal results.
    pub(super) const fn digest(&self) -> (u64, u64, u64) {
        (self.joined, self.unknown, self.digest)
    }

    /// Works out what is not written into a snapshot.
    pub(super) fn restored(&mut self) {
        self.digest = self.latest.iter().fold(0, |sum, measured| sum.wrapping_add(hash(measured)));
    }
}
