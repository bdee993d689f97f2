//! The state of the connections to publishers or brokers, and its description.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use radixscope_model::record::LinkState;

use crate::source::SourceStatus;

/// After this time an unreachable publisher makes the source partial: discovery removes dead workers sooner.
const LASTING: Duration = Duration::from_secs(30);
/// How long after the start discovery may take to name publishers.
const NAMED_WITHIN: Duration = Duration::from_secs(5);

/// What engines are called that are listened to without Dynamo.
pub(super) const ENGINES: &str = "engines";
/// The same in the pods of a cluster.
#[cfg(feature = "kubernetes")]
pub(super) const POD_ENGINES: &str = "publishers in pods";
/// The same of an indexer's list.
pub(super) const LISTED_ENGINES: &str = "publishers listed by indexers";

/// The state of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PublisherLink {
    /// Not tried yet.
    New,
    /// Connected.
    Connected,
    /// Failed, being retried.
    Broken {
        detail: String,
        /// Retrying does not help: the operator has to act.
        is_refused: bool,
    },
}

struct Link {
    /// Description of its target.
    to: String,
    status: PublisherLink,
    since: Instant,
}

/// All of them.
pub(super) struct Links {
    /// Kind of targets, such as `publishers`.
    what: &'static str,
    links: BTreeMap<u64, Link>,
    started: Instant,
    /// Publishers beyond the limit.
    pub(super) excluded: usize,
}

impl Links {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, links: BTreeMap::new(), started: Instant::now(), excluded: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn add(&mut self, id: u64, to: String) {
        self.links.insert(id, Link { to, status: PublisherLink::New, since: Instant::now() });
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.links.remove(&id);
    }

    /// Updates the state of a connection. Ignored if it was removed.
    pub(super) fn set_status(&mut self, id: u64, status: PublisherLink) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let is_broken = |status: &PublisherLink| matches!(status, PublisherLink::Broken { .. });
        if !(is_broken(&link.status) && is_broken(&status)) {
            link.since = Instant::now();
        }
        link.status = status;
    }

    /// How the source is doing.
    pub(super) fn status(&self) -> SourceStatus {
        let Self { what, .. } = self;
        let all = self.links.len();
        #[cfg(feature = "kubernetes")]
        if all == 0 && *what == POD_ENGINES {
            return SourceStatus::new(
                LinkState::Live,
                "No pod of an engine without Dynamo that publishes KV events.",
            );
        }
        if all == 0 && *what == LISTED_ENGINES {
            return SourceStatus::new(LinkState::Live, "No indexer lists an engine.");
        }
        if all == 0 && *what == ENGINES {
            return SourceStatus::new(LinkState::Live, "Waiting for engines to connect.");
        }
        if all == 0 {
            return self.no_publishers();
        }
        let connected = self.links.values().filter(|link| link.status == PublisherLink::Connected).count();
        let is_broken = |link: &&Link| matches!(link.status, PublisherLink::Broken { .. });
        let oldest = self.links.values().filter(is_broken).min_by_key(|link| link.since);
        let mut detail = format!("{connected} of {all} {what} connected");
        if let Some(Link { to, status: PublisherLink::Broken { detail: why, .. }, since }) = oldest {
            let time = in_steps(since.elapsed());
            detail += &format!("; {to} not reachable{time}: {why}");
            detail += if is_lasting(*since) {
                ". Check firewalls and network policies for its port. Retrying"
            } else {
                ". Retrying"
            };
        }
        detail.push('.');
        if self.excluded > 0 {
            detail += &format!(" {} more are ignored: the maximum is {all}.", self.excluded);
        }
        SourceStatus { state: self.state(connected), detail }
    }

    fn state(&self, connected: usize) -> LinkState {
        let mut broken = self.links.values().filter_map(|link| match &link.status {
            PublisherLink::Broken { is_refused, .. } => Some((*is_refused, link.since)),
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
                if is_lasting || self.excluded > 0 { LinkState::Partial } else { LinkState::Live }
            }
        }
    }

    fn no_publishers(&self) -> SourceStatus {
        if self.started.elapsed() < NAMED_WITHIN {
            SourceStatus::new(LinkState::Connecting, "Waiting for discovery to name publishers.")
        } else {
            SourceStatus::new(LinkState::Live, "No ZeroMQ publishers in discovery.")
        }
    }
}

fn is_lasting(since: Instant) -> bool {
    since.elapsed() >= LASTING
}

/// A duration in coarse steps, so that the description does not change every second.
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

    fn broken(is_refused: bool) -> PublisherLink {
        PublisherLink::Broken { detail: "connection refused".to_owned(), is_refused }
    }

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn the_description_counts_publishers_and_names_an_unreachable_one() {
        let mut links = Links::new("publishers");
        (0..12).for_each(|id| links.add(id, format!("tcp://w{id}:1")));
        assert_eq!(links.status(), SourceStatus::new(LinkState::Connecting, "0 of 12 publishers connected."));
        (0..12).for_each(|id| links.set_status(id, PublisherLink::Connected));
        assert_eq!(links.status(), SourceStatus::new(LinkState::Live, "12 of 12 publishers connected."));
        links.set_status(3, broken(false));
        links.links.get_mut(&3).unwrap().since = ago(9);
        let detail =
            "11 of 12 publishers connected; tcp://w3:1 not reachable for 8 s: connection refused. Retrying.";
        assert_eq!(links.status(), SourceStatus::new(LinkState::Live, detail));
        // Another failed attempt does not restart the time.
        links.set_status(3, broken(false));
        assert_eq!(links.status().detail, detail);
        links.links.get_mut(&3).unwrap().since = ago(61);
        let SourceStatus { state, detail } = links.status();
        assert_eq!(state, LinkState::Partial);
        assert!(detail.contains("for 1 min") && detail.contains("firewalls"), "{detail}");
        links.remove(3);
        links.set_status(3, PublisherLink::Connected);
        assert_eq!(links.status().detail, "11 of 11 publishers connected.");
    }

    #[test]
    fn without_any_connection_it_is_connecting_or_refused() {
        let mut links = Links::new("brokers");
        links.add(1, "tcp://a:1".to_owned());
        links.add(2, "tcp://b:1".to_owned());
        links.set_status(1, broken(true));
        links.set_status(2, broken(false));
        assert_eq!(links.status().state, LinkState::Connecting);
        links.set_status(2, broken(true));
        assert_eq!(links.status().state, LinkState::Refused);
    }

    #[test]
    fn no_named_publisher_is_not_an_error() {
        let mut links = Links::new("publishers");
        assert_eq!(links.status().state, LinkState::Connecting);
        links.started = ago(6);
        assert_eq!(links.status().state, LinkState::Live);
    }
}
