//! How the connections to publishers stand, and that in words.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use radixscope_model::record::LinkState;

/// A publisher that cannot be reached for so long is no passing trouble: discovery forgets a worker that died sooner.
const LASTING: Duration = Duration::from_secs(30);
/// So long after the start it is said that nobody is announced.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(5);

/// How a connection stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TargetComparison {
    /// Not tried yet.
    New,
    /// Messages come.
    Connected,
    /// Tried again and again; why it fails.
    Broken {
        words: String,
        /// Only the operator can help.
        is_refused: bool,
    },
}

struct Link {
    /// What it leads to, in words.
    to: String,
    standing: TargetComparison,
    since: Instant,
}

/// All of them.
pub(super) struct Links {
    /// What they lead to, as `publishers`.
    what: &'static str,
    links: BTreeMap<u64, Link>,
    started: Instant,
    /// Publishers that there was no room for.
    pub(super) left_out: usize,
}

impl Links {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, links: BTreeMap::new(), started: Instant::now(), left_out: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn add(&mut self, id: u64, to: String) {
        self.links.insert(id, Link { to, standing: TargetComparison::New, since: Instant::now() });
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.links.remove(&id);
    }

    /// Takes a report; one of a connection that was removed says nothing.
    pub(super) fn stands(&mut self, id: u64, standing: TargetComparison) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_broken = |standing: &TargetComparison| matches!(standing, TargetComparison::Broken { .. });
        if !(is_broken(&link.standing) && is_broken(&standing)) {
            link.since = Instant::now();
        }
        link.standing = standing;
    }

    /// Where the source stands.
    pub(super) fn to_text(&self) -> (LinkState, String) {
        let Self { what, .. } = self;
        let all = self.links.len();
        if all == 0 {
            return self.nobody();
        }
        let connected =
            self.links.values().filter(|link| link.standing == TargetComparison::Connected).count();
        let is_broken = |link: &&Link| matches!(link.standing, TargetComparison::Broken { .. });
        let oldest = self.links.values().filter(is_broken).min_by_key(|link| link.since);
        let mut words = format!("{connected} of {all} {what} connected");
        if let Some(Link { to, standing: TargetComparison::Broken { words: why, .. }, since }) = oldest {
            let time = in_steps(since.elapsed());
            words += &format!("; {to} not reachable{time}: {why}");
            words += if is_lasting(*since) {
                ". Is its port open from here? Trying again"
            } else {
                ". Trying again"
            };
        }
        words.push('.');
        if self.left_out > 0 {
            words += &format!(" {} more are excluded: at most {all} are connected.", self.left_out);
        }
        (self.state(connected), words)
    }

    fn state(&self, connected: usize) -> LinkState {
        let mut broken = self.links.values().filter_map(|link| match &link.standing {
            TargetComparison::Broken { is_refused, .. } => Some((*is_refused, link.since)),
            _ => None,
        });
        match broken.next() {
            None if connected == 0 => LinkState::Connecting,
            None => LinkState::Live,
            Some((is_refused, _)) if connected == 0 => {
                let is_refused = is_refused && broken.all(|(is_refused, _)| is_refused);
                if is_refused { LinkState::Refused } else { LinkState::Connecting }
            }
            Some((_, since)) => {
                let is_lasting = is_lasting(since) || broken.any(|(_, since)| is_lasting(since));
                if is_lasting || self.left_out > 0 { LinkState::Partial } else { LinkState::Live }
            }
        }
    }

    fn nobody(&self) -> (LinkState, String) {
        if self.started.elapsed() < ANNOUNCED_WITHIN {
            (LinkState::Connecting, "Waiting for discovery to name publishers.".to_owned())
        } else {
            (LinkState::Live, "Discovery names no publisher of the ZeroMQ event plane.".to_owned())
        }
    }
}

fn is_lasting(since: Instant) -> bool {
    since.elapsed() >= LASTING
}

/// A time in few steps, so that words do not change every second.
fn in_steps(time: Duration) -> String {
    let seconds = time.as_secs();
    match [3600, 1200, 300, 120, 60, 30, 15, 8, 4].into_iter().find(|step| seconds >= *step) {
        None => String::new(),
        Some(step) if step >= 60 => format!(" for {} min", step / 60),
        Some(step) => format!(" for {step} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(is_refused: bool) -> TargetComparison {
        TargetComparison::Broken { words: "connection refused".to_owned(), is_refused }
    }

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn words_count_publishers_and_name_one_that_cannot_be_reached() {
        let mut links = Links::new("publishers");
        (0..12).for_each(|id| links.add(id, format!("tcp://w{id}:1")));
        assert_eq!(links.to_text(), (LinkState::Connecting, "0 of 12 publishers connected.".to_owned()));
        (0..12).for_each(|id| links.stands(id, TargetComparison::Connected));
        assert_eq!(links.to_text(), (LinkState::Live, "12 of 12 publishers connected.".to_owned()));
        links.stands(3, broken(false));
        links.links.get_mut(&3).unwrap().since = ago(9);
        let words = "11 of 12 publishers connected; tcp://w3:1 not reachable for 8 s: connection refused. Trying again.";
        assert_eq!(links.to_text(), (LinkState::Live, words.to_owned()));
        // Another failed attempt is the same trouble.
        links.stands(3, broken(false));
        assert_eq!(links.to_text().1, words);
        links.links.get_mut(&3).unwrap().since = ago(61);
        let (state, words) = links.to_text();
        assert_eq!(state, LinkState::Partial);
        assert!(words.contains("for 1 min") && words.contains("port open"), "{words}");
        links.remove(3);
        links.stands(3, TargetComparison::Connected);
        assert_eq!(links.to_text().1, "11 of 11 publishers connected.");
    }

    #[test]
    fn without_any_connection_it_is_connecting_or_refused() {
        let mut links = Links::new("brokers");
        links.add(1, "tcp://a:1".to_owned());
        links.add(2, "tcp://b:1".to_owned());
        links.stands(1, broken(true));
        links.stands(2, broken(false));
        assert_eq!(links.to_text().0, LinkState::Connecting);
        links.stands(2, broken(true));
        assert_eq!(links.to_text().0, LinkState::Refused);
    }

    #[test]
    fn nobody_announced_is_no_trouble_of_this_source() {
        let mut links = Links::new("publishers");
        assert_eq!(links.to_text().0, LinkState::Connecting);
        links.started = ago(6);
        assert_eq!(links.to_text().0, LinkState::Live);
    }
}
