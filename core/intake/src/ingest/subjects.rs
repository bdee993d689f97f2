//! Subjects seen lately, taken apart once: a deployment has a handful, a message comes every few microseconds.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::ops::Range;

use rustc_hash::FxHasher;

use radixscope_dynamo::subject::{self, Subject, Transport};
use radixscope_model::record::Topic;

/// Subjects remembered; two that fall on one place only cost each other the time saved.
const PLACES: usize = 64;
/// Longest subject remembered; Dynamo's own are shorter.
const MAX_SUBJECT_BYTES: usize = 256;

#[derive(Default)]
pub(super) struct Subjects {
    places: Vec<Option<Known>>,
}

struct Known {
    text: Box<str>,
    topic: Topic,
    transport: Transport,
    namespace: Range<usize>,
    component: Range<usize>,
    endpoint: Range<usize>,
}

impl Known {
    fn of(text: &str, parts: &Subject<'_>) -> Self {
        // Every part is a slice of the subject, or empty.
        let range = |part: &str| {
            let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
            if start <= text.len() && start + part.len() <= text.len() {
                start..start + part.len()
            } else {
                0..0
            }
        };
        Self {
            text: text.into(),
            topic: parts.topic,
            transport: parts.transport,
            namespace: range(parts.namespace),
            component: range(parts.component),
            endpoint: range(parts.endpoint),
        }
    }
}

impl Subjects {
    /// As [`subject::parse`].
    pub(super) fn parse<'a>(&mut self, text: &'a str) -> Option<Subject<'a>> {
        self.places.resize_with(PLACES, || None);
        let place = BuildHasherDefault::<FxHasher>::default().hash_one(text) as usize % PLACES;
        let place = &mut self.places[place];
        match place {
            Some(known) if *known.text == *text => {
                let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
                Some(Subject {
                    topic: known.topic,
                    namespace: part(&known.namespace),
                    component: part(&known.component),
                    endpoint: part(&known.endpoint),
                    transport: known.transport,
                })
            }
            _ => {
                let parts = subject::parse(text)?;
                if text.len() <= MAX_SUBJECT_BYTES {
                    *place = Some(Known::of(text, &parts));
                }
                Some(parts)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_seen_again_reads_as_before() {
        let mut subjects = Subjects::default();
        for text in [
            "namespace.dynamo.component.backend.endpoint.generate.kv-events",
            "namespace.dynamo.component.backend.kv-events",
            "namespace-my-ns-component-backend-kv-events.kv-events",
            "namespace.dynamo.kv-hit-rate",
            "something.else",
        ] {
            assert_eq!(subjects.parse(text), subject::parse(text));
            assert_eq!(subjects.parse(text), subject::parse(text));
        }
    }

    #[test]
    fn more_subjects_than_places_are_all_read() {
        let mut subjects = Subjects::default();
        for i in 0..1000 {
            let text = format!("namespace.n{}.kv_metrics", i % 300);
            assert_eq!(subjects.parse(&text), subject::parse(&text));
        }
        assert_eq!(subjects.places.len(), PLACES);
    }
}
