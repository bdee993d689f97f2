//! Routers that something was received from: by their messages, logs or metrics.

use serde::{Deserialize, Serialize};

use radixscope_model::id::Millis;

/// Most routers kept; of more, the one seen longest ago is forgotten.
pub const MAX_ROUTERS_KNOWN: usize = 64;

/// A router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RouterState {
    /// Its publisher id, which a restart changes.
    pub id: u64,
    /// First word of it.
    pub first_ms: Millis,
    /// Last word of it.
    pub last_ms: Millis,
    /// Decisions that name it.
    pub decisions: u64,
}

/// The list of them.
pub(super) trait Routers {
    /// A message of a router was received.
    fn received(&mut self, id: u64, at: Millis, decided: bool);
}

impl Routers for Vec<RouterState> {
    fn received(&mut self, id: u64, at: Millis, decided: bool) {
        let known = self.iter().position(|router| router.id == id);
        let ix = known.unwrap_or_else(|| {
            if self.len() == MAX_ROUTERS_KNOWN {
                let oldest = (0..self.len()).min_by_key(|&ix| self[ix].last_ms).unwrap_or(0);
                self.remove(oldest);
            }
            self.push(RouterState { id, first_ms: at, last_ms: at, decisions: 0 });
            self.len() - 1
        });
        let router = &mut self[ix];
        router.last_ms = router.last_ms.max(at);
        router.decisions += u64::from(decided);
    }
}
