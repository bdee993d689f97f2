//! NATS subjects, taken apart once where messages enter: a deployment has a handful, a message comes every few
//! microseconds.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHasher;

use radixscope_dynamo::subject::{self, Subject};

use crate::command::NamedSubject;
use crate::payload::Payload;

/// Subjects remembered; two that fall on one place only cost each other the time saved.
const PLACES: usize = 64;
/// Longest subject remembered; Dynamo's own are shorter.
const MAX_SUBJECT_BYTES: usize = 256;
/// Subjects that may be named.
const MAX_NAMED: usize = 1_024;

/// Types messages of NATS by their subjects, and remembers the subjects seen lately.
#[derive(Default, Debug)]
pub struct NatsSubjects {
    places: Vec<Option<(Box<str>, Arc<Subject>)>>,
    /// Where the one seen last is: the next message mostly has the same.
    last: usize,
    named: Vec<NamedSubject>,
}

impl NatsSubjects {
    /// A message as it came over NATS. `None`: it is not the publication but a copy that JetStream delivers to a router
    /// (its reply subject tells), which counts nowhere.
    pub fn publication(&mut self, subject: &str, reply: Option<&str>, message: Bytes) -> Option<Payload> {
        if subject::is_delivery_copy(reply) {
            return None;
        }
        Some(match self.parse(subject) {
            Some(subject) => Payload::Nats { subject, message },
            None => Payload::OtherNats { subject: subject.into(), message },
        })
    }

    /// A subject means this, whatever its words are. `false`: that is known already, or there are too many.
    pub fn name(&mut self, named: NamedSubject) -> bool {
        let is_new = self.named.len() < MAX_NAMED && self.named.iter().all(|known| known.text != named.text);
        if is_new {
            self.places.clear();
            self.named.push(named);
        }
        is_new
    }

    /// The subjects that were named.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|named| named.text.as_str())
    }

    /// As it was named, else as [`subject::parse`].
    fn parse(&mut self, text: &str) -> Option<Arc<Subject>> {
        if let Some(Some((known, subject))) = self.places.get(self.last)
            && **known == *text
        {
            return Some(Arc::clone(subject));
        }
        self.places.resize_with(PLACES, || None);
        self.last = BuildHasherDefault::<FxHasher>::default().hash_one(text) as usize % PLACES;
        let place = &mut self.places[self.last];
        if let Some((known, subject)) = place
            && **known == *text
        {
            return Some(Arc::clone(subject));
        }
        let named = self.named.iter().find(|named| named.text == text);
        let subject = match named {
            Some(named) => Arc::clone(&named.subject),
            None => Arc::new(subject::parse(text)?),
        };
        if text.len() <= MAX_SUBJECT_BYTES {
            *place = Some((text.into(), Arc::clone(&subject)));
        }
        Some(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_seen_again_reads_as_before_and_is_shared() {
        let mut subjects = NatsSubjects::default();
        for text in [
            "namespace.dynamo.component.backend.endpoint.generate.kv-events",
            "namespace.dynamo.component.backend.kv-events",
            "namespace-my-ns-component-backend-kv-events.kv-events",
            "namespace.dynamo.kv-hit-rate",
            "something.else",
        ] {
            let (first, second) = (subjects.parse(text), subjects.parse(text));
            assert_eq!(first.as_deref(), subject::parse(text).as_ref());
            assert_eq!(first.as_ref().map(Arc::as_ptr), second.as_ref().map(Arc::as_ptr));
        }
    }

    #[test]
    fn more_subjects_than_places_are_all_read() {
        let mut subjects = NatsSubjects::default();
        for i in 0..1000 {
            let text = format!("namespace.n{}.kv_metrics", i % 300);
            assert_eq!(subjects.parse(&text).as_deref(), subject::parse(&text).as_ref());
        }
        assert_eq!(subjects.places.len(), PLACES);
    }

    #[test]
    fn a_named_subject_means_what_it_was_named_for() {
        let mut subjects = NatsSubjects::default();
        assert_eq!(subjects.parse("of.ours.kv-events"), None);
        let meant = Arc::new(subject::parse("namespace.dynamo.component.backend.kv-events").unwrap());
        let named = NamedSubject { text: "of.ours.kv-events".to_owned(), subject: Arc::clone(&meant) };
        assert!(subjects.name(named.clone()) && !subjects.name(named));
        assert_eq!(subjects.parse("of.ours.kv-events"), Some(meant));
        let more = |n: usize| NamedSubject {
            text: format!("n{n}.kv-events"),
            subject: Arc::clone(&subjects.named[0].subject),
        };
        let many: Vec<_> = (0..2 * MAX_NAMED).map(more).collect();
        assert_eq!(many.into_iter().filter(|named| subjects.name(named.clone())).count(), MAX_NAMED - 1);
    }

    #[test]
    fn a_copy_delivered_to_a_router_is_no_publication() {
        let mut subjects = NatsSubjects::default();
        let subject = "namespace-dynamo-component-backend-kv-events.kv-events";
        let mut with = |reply| subjects.publication(subject, reply, Bytes::from_static(b"{}"));
        assert!(matches!(with(None), Some(Payload::Nats { .. })));
        assert!(matches!(with(Some("_INBOX.a.b")), Some(Payload::Nats { .. })));
        assert_eq!(with(Some("$JS.ACK.stream.consumer.1.1.1.1.0")), None);
    }

    #[test]
    fn a_subject_that_is_not_dynamos_keeps_its_name() {
        let payload = NatsSubjects::default().publication("strange.kv-events", None, Bytes::new());
        assert!(
            matches!(payload, Some(Payload::OtherNats { subject, .. }) if *subject == *"strange.kv-events")
        );
    }
}
