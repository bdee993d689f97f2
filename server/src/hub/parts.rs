//! A source of several parts, such as the logs of pods: one entry in the state, which combines how each of them is doing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use radixscope_model::record::LinkState;
use tokio::sync::Notify;

use super::{HubEnded, SourceHandle};

/// Parts whose state is described; of the others there is a count.
const MAX_DESCRIBED: usize = 12;
/// Longest description of a part, in characters.
const MAX_DETAIL_CHARS: usize = 160;
/// Least time between two reports: counts of each part change all the time.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Parts {
    whole: SourceHandle,
    /// What a part is, in the plural.
    what: &'static str,
    states: Mutex<States>,
    changed: Notify,
}

#[derive(Default)]
struct States {
    /// Why parts may be missing, or be there no more.
    whole: Option<(LinkState, String)>,
    parts: BTreeMap<Arc<str>, (LinkState, String)>,
    /// Parts that are not read, because there are too many.
    beyond: usize,
}

impl Parts {
    pub(crate) fn new(whole: SourceHandle, what: &'static str) -> Arc<Self> {
        Arc::new(Self { whole, what, states: Mutex::default(), changed: Notify::new() })
    }

    /// The handle of a part: what it reports goes here, what it delivers to the hub.
    pub(crate) fn handle(self: &Arc<Self>, part: Arc<str>) -> SourceHandle {
        self.set(&part, LinkState::Connecting, "starting".to_owned());
        self.whole.of_part(Arc::clone(self), part)
    }

    /// A part is in this state now.
    pub(super) fn set(&self, part: &Arc<str>, state: LinkState, detail: String) {
        self.states().parts.insert(Arc::clone(part), (state, detail));
        self.changed.notify_one();
    }

    /// A part is there no more.
    pub(crate) fn remove(&self, part: &str) {
        self.states().parts.remove(part);
        self.changed.notify_one();
    }

    /// Which parts there are is not known, and why; or it is.
    pub(crate) fn set_whole(&self, why: Option<(LinkState, String)>, beyond: usize) {
        let mut states = self.states();
        (states.whole, states.beyond) = (why, beyond);
        drop(states);
        self.changed.notify_one();
    }

    /// Reports what changes, until the hub ends.
    pub(crate) async fn report(&self) -> Result<(), HubEnded> {
        let mut last = None;
        loop {
            let now = self.states().combined(self.what);
            if last.as_ref() != Some(&now) {
                let (state, detail) = now.clone();
                self.whole.state(state, detail).await?;
                last = Some(now);
            }
            tokio::time::sleep(REPORT_EVERY).await;
            self.changed.notified().await;
        }
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl States {
    fn combined(&self, what: &str) -> (LinkState, String) {
        let is_live = |state: LinkState| matches!(state, LinkState::Live | LinkState::CatchingUp);
        let live = self.parts.values().filter(|(state, _)| is_live(*state)).count();
        let count = self.parts.len();
        let beyond = match self.beyond {
            0 => String::new(),
            beyond => format!(" {beyond} more are not read: there are too many."),
        };
        // What needs attention first.
        let mut parts: Vec<_> = self.parts.iter().collect();
        parts.sort_by_key(|(name, (state, _))| (is_live(*state), (*name).clone()));
        let described = parts.iter().take(MAX_DESCRIBED).map(|(name, (_, detail))| {
            let detail: String = detail.chars().take(MAX_DETAIL_CHARS).collect();
            format!(" {name}: {}.", detail.trim_end_matches('.'))
        });
        let described: String = described.collect();
        let rest = if count > MAX_DESCRIBED { " …" } else { "" };
        let detail = match count {
            0 => format!("No {what} yet.{beyond}"),
            _ => format!("{live} of {count} {what}.{described}{rest}{beyond}"),
        };
        if let Some((state, why)) = &self.whole {
            return (*state, format!("{why} {detail}"));
        }
        let all = |of: LinkState| self.parts.values().all(|(state, _)| *state == of);
        let state = match (live, count) {
            (live, count) if live == count => LinkState::Live,
            (0, _) if all(LinkState::Refused) => LinkState::Refused,
            (0, _) => LinkState::Connecting,
            _ => LinkState::Partial,
        };
        (state, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(parts: &[(&str, LinkState)]) -> States {
        let part = |(name, state): &(&str, LinkState)| ((*name).into(), (*state, format!("is {name}.")));
        States { parts: parts.iter().map(part).collect(), ..States::default() }
    }

    #[test]
    fn a_source_is_live_if_all_of_its_parts_are() {
        let state = |parts: &[(&str, LinkState)]| states(parts).combined("pods").0;
        assert_eq!(state(&[]), LinkState::Live);
        assert_eq!(state(&[("a", LinkState::Live), ("b", LinkState::CatchingUp)]), LinkState::Live);
        assert_eq!(state(&[("a", LinkState::Live), ("b", LinkState::Refused)]), LinkState::Partial);
        assert_eq!(state(&[("a", LinkState::Connecting), ("b", LinkState::Refused)]), LinkState::Connecting);
        assert_eq!(state(&[("a", LinkState::Refused)]), LinkState::Refused);
    }

    #[test]
    fn what_is_not_live_is_described_first_and_the_rest_counted() {
        let (_, detail) =
            states(&[("a", LinkState::Live), ("b", LinkState::Refused)]).combined("logs of pods");
        assert_eq!(detail, "1 of 2 logs of pods. b: is b. a: is a.");
        assert_eq!(states(&[]).combined("logs of pods").1, "No logs of pods yet.");
        let names: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
        let many: Vec<_> = names.iter().map(|name| (&**name, LinkState::Live)).collect();
        let mut states = states(&many);
        states.beyond = 3;
        let (_, detail) = states.combined("pods");
        assert!(
            detail.len() < 400 && detail.ends_with("… 3 more are not read: there are too many."),
            "{detail}"
        );
        states.whole = Some((LinkState::Refused, "May not list pods.".to_owned()));
        assert_eq!(states.combined("pods").0, LinkState::Refused);
    }
}
