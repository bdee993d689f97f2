//! Subjects: where Dynamo publishes what over NATS (reference §2.1, §11). Opens no message.

use radixscope_model::record::Topic;

/// What to subscribe to: every subject that is decoded, never `>`.
///
/// `forward-pass-metrics` is left out on purpose: some 40 messages a second per busy worker, and nothing in it
/// concerns routing.
pub const SUBSCRIPTIONS: &[&str] = &[
    "namespace.*.component.*.kv-events",
    "namespace.*.component.*.endpoint.*.kv-events",
    "namespace.*.kv_metrics",
    "namespace.*.component.*.endpoint.*.kv_metrics",
    "namespace.*.kv-hit-rate",
    "namespace.*.component.*.active_sequences_events",
    "namespace.*.component.*.endpoint.*.active_sequences_events",
    "namespace.*.component.*.endpoint.*.session_affinity_events",
    "*.kv-events",
    REQUEST_TRACE,
];

/// Where frontends publish a record of every finished request, if they are asked to (reference §3.5). It names no
/// Dynamo namespace.
pub const REQUEST_TRACE: &str = "dynamo.request_trace.v1";

/// How a message travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// NATS core: no history.
    Core,
    /// A JetStream stream keeps it (KV events of 0.8 and 0.9).
    JetStream,
    /// ZeroMQ: no history.
    Zmq,
    /// An engine's own publisher over ZeroMQ: what it sent last it sends again when asked.
    Engine,
}

/// A subject taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// What it is about.
    pub topic: Topic,
    /// Dynamo namespace, "" when the subject has none. JetStream names are [slugs](slug): there `my_ns` reads `my-ns`.
    pub namespace: Box<str>,
    /// Dynamo component, "" when the subject has none; a slug on JetStream.
    pub component: Box<str>,
    /// Dynamo endpoint, "" when the subject has none.
    pub endpoint: Box<str>,
    /// How it travels.
    pub transport: Transport,
}

impl Subject {
    fn new(topic: Topic, (namespace, component, endpoint): (&str, &str, &str), transport: Transport) -> Self {
        let [namespace, component, endpoint] = [namespace, component, endpoint].map(Box::from);
        Self { topic, namespace, component, endpoint, transport }
    }

    /// Where KV events of engines belong that are listened to without Dynamo: a pool of this name. Dynamo has no such namespace.
    pub fn of_engines(pool: &str) -> Self {
        Self::new(Topic::KvEvents, (ENGINES_NAMESPACE, pool, ""), Transport::Engine)
    }

    /// Whether the message is of this Dynamo namespace, by its name as people write it, or may be.
    pub fn is_in(&self, namespace: &str) -> bool {
        match self.transport {
            Transport::Core | Transport::Zmq | Transport::Engine if self.namespace.is_empty() => true,
            Transport::Core | Transport::Zmq | Transport::Engine => *self.namespace == *namespace,
            // A slug also cuts the front of the whole name, which is why `namespace.` has to be there.
            Transport::JetStream => {
                slug(&format!("namespace.{namespace}")).strip_prefix(STREAM_PREFIX) == Some(&*self.namespace)
            }
        }
    }
}

/// Namespace of pools of engines without Dynamo.
const ENGINES_NAMESPACE: &str = "engines";

const STREAM_PREFIX: &str = "namespace-";
const STREAM_MIDDLE: &str = "-component-";
const STREAM_SUFFIX: &str = "-kv-events";

/// Takes a subject apart; `None` if it is none of [`SUBSCRIPTIONS`].
pub fn parse(subject: &str) -> Option<Subject> {
    if subject == REQUEST_TRACE {
        return Some(Subject::new(Topic::RequestTrace, ("", "", ""), Transport::Core));
    }
    if let Some((stream, "kv-events")) = subject.split_once('.') {
        let (namespace, component) = stream_parts(stream)?;
        return Some(Subject::new(Topic::KvEvents, (namespace, component, ""), Transport::JetStream));
    }
    let (scope, topic) = subject.strip_prefix("namespace.")?.rsplit_once('.')?;
    let topic = match topic {
        "kv-events" => Topic::KvEvents,
        "kv-hit-rate" => Topic::KvHitRate,
        "kv_metrics" => Topic::KvMetrics,
        "active_sequences_events" => Topic::ActiveSequences,
        "session_affinity_events" => Topic::SessionAffinity,
        _ => return None,
    };
    let mut tokens = scope.split('.');
    let namespace = tokens.next().filter(|name| !name.is_empty())?;
    let mut level = |name: &str| match tokens.next() {
        None => Some(""),
        Some(token) if token == name => tokens.next().filter(|name| !name.is_empty()),
        Some(_) => None,
    };
    let (component, endpoint) = (level("component")?, level("endpoint")?);
    if tokens.next().is_some() {
        return None;
    }
    Some(Subject::new(topic, (namespace, component, endpoint), Transport::Core))
}

/// Longest subject that is subscribed to because somebody names it, in bytes; Dynamo's own are shorter.
const MAX_NAMED_BYTES: usize = 256;

/// Whether text is one subject, without wildcards, that a NATS server takes.
pub fn can_be_subscribed_to(text: &str) -> bool {
    text.len() <= MAX_NAMED_BYTES && text.split('.').all(is_plain_token)
}

fn is_plain_token(token: &str) -> bool {
    let is_plain = |c: char| !matches!(c, '.' | '*' | '>') && !c.is_whitespace() && !c.is_control();
    !token.is_empty() && token.chars().all(is_plain)
}

/// [`SUBSCRIPTIONS`] for one namespace; `None` if `namespace` is not a single plain token of a subject.
///
/// NATS has no wildcard inside a token, so `*.kv-events` stays as it is: look at [`Subject::is_in`] as well.
pub fn subscriptions_of(namespace: &str) -> Option<Vec<String>> {
    if !is_plain_token(namespace) {
        return None;
    }
    let narrow = |subject: &&str| match subject.strip_prefix("namespace.*.") {
        Some(rest) => format!("namespace.{namespace}.{rest}"),
        None => (*subject).to_owned(),
    };
    Some(SUBSCRIPTIONS.iter().map(narrow).collect())
}

/// Whether a message is not the publication but a copy that JetStream delivers to a router: same subject, and a
/// reply subject for the acknowledgement. Counting it would count every event once more per router.
pub fn is_delivery_copy(reply: Option<&str>) -> bool {
    reply.is_some_and(|reply| reply.starts_with("$JS.ACK."))
}

/// Whether a stream holds KV events.
pub fn is_kv_event_stream(name: &str) -> bool {
    stream_parts(name).is_some()
}

/// The subject on which the messages of a stream of KV events are published.
pub fn kv_event_stream_subject(stream: &str) -> String {
    format!("{stream}.kv-events")
}

/// Slugs of namespace and component in the name of a stream.
///
/// Slugs join names with the character they may hold themselves; the last `-component-` is taken, because people
/// choose namespaces freely and components hardly ever.
fn stream_parts(stream: &str) -> Option<(&str, &str)> {
    let middle = stream.strip_prefix(STREAM_PREFIX)?.strip_suffix(STREAM_SUFFIX)?;
    let (namespace, component) = middle.rsplit_once(STREAM_MIDDLE)?;
    (!namespace.is_empty() && !component.is_empty()).then_some((namespace, component))
}

/// Dynamo's form of a name for streams: lower case, nothing but `a-z`, `0-9` and `-`.
pub fn slug(name: &str) -> String {
    let plain = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    };
    let lower: String = name.to_lowercase().chars().map(plain).collect();
    lower.trim_start_matches('_').replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_every_version_are_taken_apart() {
        use Topic::{ActiveSequences, KvEvents, KvHitRate, KvMetrics};
        use Transport::{Core, JetStream};
        for (subject, expected) in [
            (
                "namespace-dynamo-component-backend-kv-events.kv-events",
                (KvEvents, "dynamo", "backend", "", JetStream),
            ),
            ("namespace.dynamo.component.backend.kv-events", (KvEvents, "dynamo", "backend", "", Core)),
            (
                "namespace.my_ns.component.prefill.endpoint.generate.kv-events",
                (KvEvents, "my_ns", "prefill", "generate", Core),
            ),
            ("namespace.dynamo.kv-hit-rate", (KvHitRate, "dynamo", "", "", Core)),
            ("namespace.dynamo.kv_metrics", (KvMetrics, "dynamo", "", "", Core)),
            (
                "namespace.dynamo.component.backend.endpoint.generate.kv_metrics",
                (KvMetrics, "dynamo", "backend", "generate", Core),
            ),
            (
                "namespace.dynamo.component.backend.active_sequences_events",
                (ActiveSequences, "dynamo", "backend", "", Core),
            ),
            (
                "namespace.dynamo.component.backend.endpoint.generate.session_affinity_events",
                (Topic::SessionAffinity, "dynamo", "backend", "generate", Core),
            ),
            ("dynamo.request_trace.v1", (Topic::RequestTrace, "", "", "", Core)),
            // A namespace may be called anything, also what the other tokens are called.
            (
                "namespace.component.component.endpoint.kv-events",
                (KvEvents, "component", "endpoint", "", Core),
            ),
            (
                "namespace-a-component-b-component-c-kv-events.kv-events",
                (KvEvents, "a-component-b", "c", "", JetStream),
            ),
        ] {
            let (topic, namespace, component, endpoint, transport) = expected;
            let expected = Subject::new(topic, (namespace, component, endpoint), transport);
            assert_eq!(parse(subject), Some(expected), "{subject}");
        }
    }

    #[test]
    fn other_subjects_are_not_ours() {
        for subject in [
            "",
            ".",
            "namespace",
            "namespace.",
            "namespace..kv_metrics",
            "namespace.kv_metrics",
            "namespace.dynamo.component.kv-events",
            "namespace.dynamo.component..kv-events",
            "namespace.dynamo.component.backend.endpoint.kv-events",
            "namespace.dynamo.component.backend.endpoint.generate.more.kv-events",
            "namespace.dynamo.component.backend.endpoint.generate.forward-pass-metrics",
            "namespace.dynamo.endpoint.generate.kv-events",
            "other-kv-events.kv-events",
            "namespace-dynamo-kv-events.kv-events",
            "namespace--component-backend-kv-events.kv-events",
            "namespace-dynamo-component-backend-kv-events.other",
            "_INBOX.9Pp5t7n33xjQh2stoFiqkw",
        ] {
            assert_eq!(parse(subject), None, "{subject}");
        }
    }

    #[test]
    fn every_subscription_matches_subjects_that_parse() {
        for subscription in SUBSCRIPTIONS {
            let stream = "namespace-x-component-x-kv-events.";
            let subject = match subscription.strip_prefix("*.") {
                Some(topic) => format!("{stream}{topic}"),
                None => subscription.replace('*', "x"),
            };
            assert!(parse(&subject).is_some(), "{subject}");
        }
    }

    #[test]
    fn one_namespace_narrows_what_nats_can_narrow() {
        let narrowed = subscriptions_of("my_ns").unwrap();
        assert_eq!(narrowed.len(), SUBSCRIPTIONS.len());
        assert!(narrowed.contains(&"namespace.my_ns.component.*.endpoint.*.kv-events".to_owned()));
        assert!(narrowed.contains(&"*.kv-events".to_owned()));
        for wrong in ["", "a.b", "*", ">", "a b", "a\n"] {
            assert_eq!(subscriptions_of(wrong), None, "{wrong:?}");
            assert_eq!(can_be_subscribed_to(&format!("ours.{wrong}")), wrong == "a.b", "{wrong:?}");
        }
    }

    #[test]
    fn a_stream_is_of_the_namespace_whose_slug_it_has() {
        let of = |subject, namespace| parse(subject).unwrap().is_in(namespace);
        let stream = "namespace-my-ns-component-backend-kv-events.kv-events";
        assert!(of(stream, "my_ns") && of(stream, "My.NS") && of(stream, "my-ns"));
        assert!(!of(stream, "my") && !of(stream, "dynamo"));
        assert!(of("namespace.my_ns.kv_metrics", "my_ns"));
        assert!(!of("namespace.my_ns.kv_metrics", "my-ns"));
        // Traces name no namespace, so they may be of any.
        assert!(of(REQUEST_TRACE, "my_ns"));
    }

    #[test]
    fn slugs_are_dynamos() {
        assert_eq!(
            slug("namespace.Dynamo.component.my_Backend.kv-events"),
            "namespace-dynamo-component-my-backend-kv-events"
        );
        assert_eq!(slug("__a.é"), "a--");
    }

    #[test]
    fn streams_and_delivery_copies_are_known_by_name() {
        assert!(is_kv_event_stream("namespace-dynamo-component-backend-kv-events"));
        assert!(!is_kv_event_stream("OBJ_namespace-dynamo-component-backend-radix-bucket"));
        let stream = "namespace-dynamo-component-backend-kv-events";
        assert!(parse(&kv_event_stream_subject(stream)).is_some());
        assert!(is_delivery_copy(Some("$JS.ACK.namespace-dynamo-component-backend-kv-events.7.1.2.3")));
        assert!(!is_delivery_copy(Some("_INBOX.9Pp5t7n33xjQh2stoFiqkw.x")));
        assert!(!is_delivery_copy(None));
    }
}
