//! A link from a decision to its trace, or to a search for it in logs, by a template that the operator gives. The same on the page and in
//! the API.
//!
//! Values come from clients, so they are percent-encoded, and none stands where it could change whose address it is.

use std::fmt;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use radixscope_state::cluster::DecisionEntry;

/// Longest template, in bytes.
const MAX_BYTES: usize = 2_048;
/// Longest value that is put into it, in bytes: what clients call requests and sessions is shorter.
const MAX_VALUE_BYTES: usize = 512;
/// What is encoded of a value: all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A template such as `https://tempo.example.org/trace/{trace_id}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceUrl {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Value(Placeholder),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Placeholder {
    RequestId,
    TraceId,
    Session,
    TimeMs,
}

impl Placeholder {
    const ALL: [(&'static str, Self); 4] = [
        ("request_id", Self::RequestId),
        ("trace_id", Self::TraceId),
        ("session", Self::Session),
        ("time_ms", Self::TimeMs),
    ];
}

/// Why a text is no template.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidTraceUrl {
    /// Another scheme, or none.
    #[error("expected an address that begins with https:// or http://")]
    Scheme,
    /// A host is missing, has a placeholder in it, or a name or password before it.
    #[error("expected a host without a placeholder, name or password, and / ? or # behind it")]
    Host,
    /// A placeholder that is not known.
    #[error(
        "{{{0}}} is not known: expected {{request_id}}, {{trace_id}}, {{session}} or {{time_ms}}; other braces are written %7B and %7D"
    )]
    Placeholder(String),
    /// A brace without the other.
    #[error("a brace without the other: write %7B and %7D for braces that are not of a placeholder")]
    Brace,
    /// All decisions would have the same link.
    #[error("expected one of {{request_id}}, {{trace_id}}, {{session}} and {{time_ms}} in it")]
    NoPlaceholder,
    /// A character that no address contains.
    #[error("{0:?} is written percent-encoded in an address")]
    Character(char),
    /// More than an address should have.
    #[error("more than {MAX_BYTES} bytes")]
    TooLong,
}

impl FromStr for TraceUrl {
    type Err = InvalidTraceUrl;

    fn from_str(text: &str) -> Result<Self, InvalidTraceUrl> {
        if text.len() > MAX_BYTES {
            return Err(InvalidTraceUrl::TooLong);
        }
        let is_foreign = |c: &char| {
            c.is_control()
                || c.is_whitespace()
                || matches!(c, '"' | '\'' | '<' | '>' | '`' | '\\' | '^' | '|')
        };
        if let Some(c) = text.chars().find(is_foreign) {
            return Err(InvalidTraceUrl::Character(c));
        }
        let scheme = ["https://", "http://"]
            .into_iter()
            .find(|scheme| text.get(..scheme.len()).is_some_and(|of| of.eq_ignore_ascii_case(scheme)))
            .ok_or(InvalidTraceUrl::Scheme)?;
        let rest = &text[scheme.len()..];
        let host = &rest[..rest.find(['/', '?', '#']).ok_or(InvalidTraceUrl::Host)?];
        if host.is_empty() || host.contains(['{', '}', '@']) {
            return Err(InvalidTraceUrl::Host);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            let inner = brace.strip_prefix('{').ok_or(InvalidTraceUrl::Brace)?;
            let (name, after) = inner.split_once('}').ok_or(InvalidTraceUrl::Brace)?;
            let known = Placeholder::ALL.into_iter().find(|(known, _)| *known == name);
            let (_, value) = known.ok_or_else(|| InvalidTraceUrl::Placeholder(name.to_owned()))?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Value(value));
            rest = after;
        }
        if parts.is_empty() {
            return Err(InvalidTraceUrl::NoPlaceholder);
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { text: text.to_owned(), parts })
    }
}

impl fmt::Display for TraceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TraceUrl {
    /// The link of a decision. `None`: one of the values is not reported of it, or is too long.
    pub fn of(&self, decided: &DecisionEntry) -> Option<String> {
        let decision = &decided.decision;
        let mut url = String::with_capacity(self.text.len() + 64);
        for part in &self.parts {
            let value = match part {
                Part::Text(text) => {
                    url.push_str(text);
                    continue;
                }
                Part::Value(Placeholder::RequestId) => decision.request_id.clone(),
                Part::Value(Placeholder::TraceId) => decision.trace_id.clone(),
                Part::Value(Placeholder::Session) => decision.session.clone(),
                Part::Value(Placeholder::TimeMs) => Some(decided.decided_ms().0.to_string()),
            };
            let value = value.filter(|value| !value.is_empty() && value.len() <= MAX_VALUE_BYTES)?;
            url.extend(utf8_percent_encode(&value, ENCODED));
        }
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::{DecisionId, Millis, Seq, Worker, WorkerIx};
    use radixscope_model::record::{Decision, DecisionSource, Entry, Record};
    use radixscope_state::cluster::Cluster;

    fn decided(change: impl FnOnce(&mut Decision)) -> Cluster {
        let mut cluster = Cluster::default();
        let mut decision = Decision::new(DecisionId(1), WorkerIx(0), DecisionSource::Log);
        decision.decided_ms = Some(Millis(7));
        change(&mut decision);
        let records = [
            Record::new_worker(WorkerIx(0), Worker::new(1, 0), "", ""),
            Record::Decision(Box::new(decision)),
        ];
        for (at, record) in records.into_iter().enumerate() {
            cluster.fold(Seq(at as u64 + 1), &Entry { at_ms: Millis(9), record });
        }
        cluster
    }

    fn link(template: &str, change: impl FnOnce(&mut Decision)) -> Option<String> {
        let cluster = decided(change);
        let template: TraceUrl = template.parse().unwrap();
        template.of(cluster.decisions().newest(0).unwrap())
    }

    #[test]
    fn values_are_encoded_wherever_they_stand() {
        let named = |decision: &mut Decision| {
            decision.request_id = Some("a/../b?c=\"d\"&e#f {x}".to_owned());
            decision.session = Some("ünïcode".to_owned());
            decision.trace_id = Some("0af7".to_owned());
        };
        assert_eq!(
            link("https://logs.example.org/q/{request_id}?s={session}&t={time_ms}#{trace_id}", named)
                .as_deref(),
            Some(
                "https://logs.example.org/q/a%2F..%2Fb%3Fc%3D%22d%22%26e%23f%20%7Bx%7D?s=%C3%BCn%C3%AFcode&t=7#0af7"
            )
        );
    }

    #[test]
    fn a_decision_without_a_value_has_no_link() {
        let template = "http://t/{trace_id}";
        assert_eq!(link(template, |_| {}), None);
        assert_eq!(link(template, |decision| decision.trace_id = Some(String::new())), None);
        assert_eq!(link(template, |decision| decision.trace_id = Some("x".repeat(513))), None);
        assert_eq!(link("http://t/{time_ms}", |_| {}).as_deref(), Some("http://t/7"));
    }

    #[test]
    fn only_web_addresses_with_known_placeholders_behind_the_host_are_templates() {
        use InvalidTraceUrl::{Brace, Character, Host, NoPlaceholder, Placeholder, Scheme, TooLong};
        for (text, why) in [
            ("javascript:alert({request_id})", Scheme),
            ("data:text/html,{request_id}", Scheme),
            ("//host/{request_id}", Scheme),
            ("https://{request_id}/x", Host),
            ("https://x.{session}.org/", Host),
            ("https:///{request_id}", Host),
            ("https://host", Host),
            ("https://user:secret@host/{request_id}", Host),
            ("https://host/", NoPlaceholder),
            ("https://host/{id}", Placeholder("id".to_owned())),
            ("https://host/{request_id", Brace),
            ("https://host/}{request_id}", Brace),
            ("https://host/{request_id} ", Character(' ')),
            ("https://host/{request_id}\"><script>", Character('"')),
            ("https://host\\@evil/{request_id}", Character('\\')),
        ] {
            assert_eq!(text.parse::<TraceUrl>(), Err(why), "{text}");
        }
        let long = format!("https://host/{{request_id}}{}", "a".repeat(2_048));
        assert_eq!(long.parse::<TraceUrl>(), Err(TooLong));
        let template = "HTTPS://[::1]:3000/explore?left=%7B{trace_id}%7D";
        assert_eq!(template.parse::<TraceUrl>().unwrap().to_string(), template);
    }
}
