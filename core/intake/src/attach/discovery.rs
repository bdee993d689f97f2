//! Where workers are queried and where their events come from, by what discovery and frontends say.

use std::sync::Arc;

use radixscope_dynamo::discovery::{ChannelTransport, DiscoveryEntry};
use radixscope_dynamo::request_plane::QueryEndpoint;
use radixscope_dynamo::subject::{self, Subject};
use radixscope_model::id::Millis;
use radixscope_model::record::Topic;

use super::endpoints::{EndpointPriority, Registered};
use super::{Attach, MAX_BROKERS, MAX_PUBLISHERS};
use crate::command::{Command, NamedSubject, ZmqChannel};

/// Sockets of one publisher that are looked at; each has one.
const MAX_SOCKETS: usize = 4;

impl Attach {
    /// An entry of discovery is so now.
    pub(crate) fn discovered(&mut self, key: &str, entry: &DiscoveryEntry, lease: Option<u64>) {
        let registered = |priority, endpoint| Registered { priority, endpoint, lease };
        match entry {
            DiscoveryEntry::Instance(instance) => {
                let endpoint = instance
                    .query_endpoint()
                    .map(|endpoint| registered(EndpointPriority::Instance, endpoint));
                self.endpoints.entry(key, endpoint);
            }
            DiscoveryEntry::EventSource(source) if source.subject.topic == Topic::KvEvents => {
                if let Some(worker) = source.worker
                    && self.publishers.len() < MAX_PUBLISHERS
                {
                    self.publishers.insert(source.publisher_id, worker);
                    self.named_by.insert(key.into(), source.publisher_id);
                }
                let endpoint =
                    source.recovery.clone().map(|endpoint| registered(EndpointPriority::Source, endpoint));
                self.endpoints.entry(key, endpoint);
            }
            DiscoveryEntry::EventChannel(channel) => match &channel.transport {
                ChannelTransport::Zmq { endpoint } => {
                    self.listen(key, endpoint, channel.publisher_id, &channel.subject);
                }
                ChannelTransport::Nats { subject_prefix } => {
                    self.subscribe(&format!("{subject_prefix}.{}", channel.topic), &channel.subject);
                }
                ChannelTransport::ZmqBroker { xpub } => self.brokers(key, xpub.clone()),
                ChannelTransport::Other => {}
            },
            DiscoveryEntry::EventSource(_) | DiscoveryEntry::ModelCard(_) | DiscoveryEntry::Other => {}
        }
        self.meets = true;
        self.due = Some(Millis(0));
    }

    fn listen(&mut self, key: &str, endpoint: &str, publisher_id: u64, subject: &Subject) {
        if subject.topic == Topic::KvEvents {
            self.direct.insert(publisher_id);
        }
        let is_full = self.channels.len() == MAX_PUBLISHERS && !self.channels.contains_key(key);
        // Topics that are not decoded only cost traffic.
        if is_full || subject.topic == Topic::Other {
            return;
        }
        let channel = (endpoint.to_owned(), publisher_id);
        if let Some(before) = self.channels.insert(key.into(), channel.clone()) {
            if before == channel {
                return;
            }
            let (endpoint, publisher_id) = before;
            self.commands.push(Command::Unlisten { endpoint, publisher_id });
        }
        let (endpoint, subject) = (endpoint.to_owned(), Arc::new(subject.clone()));
        self.commands.push(Command::Listen(ZmqChannel { endpoint, publisher_id, subject }));
    }

    /// Sockets at which a worker's own publisher of KV events is, at most [`MAX_SOCKETS`].
    pub(super) fn publishes_at(&self, publisher_id: Option<u64>) -> Vec<String> {
        let is_its = |(_, id): &&(String, u64)| publisher_id == Some(*id);
        self.channels
            .values()
            .filter(is_its)
            .map(|(endpoint, _)| endpoint.clone())
            .take(MAX_SOCKETS)
            .collect()
    }

    /// An entry names a broker's sockets, or none any more. Entries may share them.
    fn brokers(&mut self, key: &str, xpub: Vec<String>) {
        let before = match xpub.is_empty() {
            true => self.brokers.remove(key).unwrap_or_default(),
            false if self.brokers.len() == MAX_BROKERS && !self.brokers.contains_key(key) => return,
            false => self.brokers.insert(key.into(), xpub.clone()).unwrap_or_default(),
        };
        let is_left = |endpoint: &String| !self.brokers.values().flatten().any(|other| other == endpoint);
        let left = before.iter().filter(|&endpoint| is_left(endpoint)).cloned();
        self.commands.extend(left.map(|endpoint| Command::LeaveBroker { endpoint }));
        let new = xpub.into_iter().filter(|endpoint| !before.contains(endpoint));
        self.commands.extend(new.map(|endpoint| Command::ListenToBroker { endpoint }));
    }

    /// Every subject that is built as Dynamo builds them is subscribed to anyway; discovery may name others.
    fn subscribe(&mut self, text: &str, subject: &Subject) {
        let is_usual = subject::parse(text).as_ref() == Some(subject);
        if !is_usual && subject.topic != Topic::Other && subject::can_be_subscribed_to(text) {
            let subject = Arc::new(subject.clone());
            self.commands.push(Command::Subscribe(NamedSubject { text: text.to_owned(), subject }));
        }
    }

    /// An entry of discovery is gone.
    pub(crate) fn vanished(&mut self, key: &str) {
        self.endpoints.entry(key, None);
        self.brokers(key, Vec::new());
        if let Some((endpoint, publisher_id)) = self.channels.remove(key) {
            if self.direct.contains(&publisher_id) {
                self.broke_of(publisher_id);
            }
            // Who names it may end later.
            if !self.publishers.contains_key(&publisher_id) {
                self.direct.remove(&publisher_id);
                self.subscribed.remove(&publisher_id);
            }
            self.commands.push(Command::Unlisten { endpoint, publisher_id });
        }
        if let Some(publisher_id) = self.named_by.remove(key) {
            self.publishers.remove(&publisher_id);
            self.direct.remove(&publisher_id);
            self.subscribed.remove(&publisher_id);
        }
        self.due = Some(Millis(0));
    }

    /// A frontend lists these endpoints.
    pub(crate) fn query_endpoints(&mut self, frontend: &str, endpoints: &[QueryEndpoint]) {
        self.endpoints.listed(frontend, endpoints);
        self.meets = true;
        self.due = Some(Millis(0));
    }
}
