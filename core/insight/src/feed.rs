//! Which sources figures come from, and when those were last current.

use radixscope_model::id::Millis;
use radixscope_model::record::SourceKind;
use radixscope_state::cluster::SourceState;

/// What figures come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feed {
    /// The event plane: blocks, workers, rates.
    Events,
    /// Scraped metrics: latency, throughput.
    Metrics,
    /// Only the server itself: everything with several sources.
    Any,
}

impl Feed {
    /// When its sources were last current; `None`: they are. One event plane that is away leaves the picture incomplete;
    /// of scraped processes some come and go, so only all of them count.
    pub fn down_since(self, sources: &[SourceState]) -> Option<Millis> {
        let is_its = |source: &&SourceState| match self {
            Self::Events => source.kind.is_event_plane() && source.kind != SourceKind::Simulator,
            Self::Metrics => source.kind == SourceKind::Prometheus,
            Self::Any => false,
        };
        let mut down = None;
        for source in sources.iter().filter(is_its) {
            if source.is_connected() {
                if self == Self::Metrics {
                    return None;
                }
            } else if let Some(last) = source.last_ms {
                // What came last is known; that nothing came after it until the link was lost is not.
                let last = last.min(source.since_ms);
                down = Some(down.map_or(last, |before: Millis| before.min(last)));
            }
        }
        down
    }
}
