//! Subjects that the server denies us: which, since when, and when to ask for them again.
//!
//! NATS tells of a subscription that it denies. It does not tell of subjects inside an allowed wildcard that it leaves
//! out when it delivers: those cannot be known.

use std::time::{Duration, Instant};

use radixscope_model::id::Millis;

use super::connect::INBOX;

/// How often a denied subject is asked for again: permissions change while servers run.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// A subject that is not denied within this long after it was asked for again is allowed now.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A subject that the server denies.
#[derive(Debug)]
struct Denied {
    /// Its place in the order of subscribing.
    at: usize,
    subject: String,
    since: Millis,
    asked: Instant,
    /// Whether no answer to the last question was seen yet.
    is_asked: bool,
}

/// All of them.
#[derive(Default, Debug)]
pub(super) struct DeniedSubjects(Vec<Denied>);

impl DeniedSubjects {
    /// The server complained. `false`: not about one of `subjects`.
    pub(super) fn note(&mut self, complaint: &str, subjects: &[String], since: Millis) -> bool {
        let Some(subject) = denied_subject(complaint) else { return false };
        let Some(at) = subjects.iter().position(|known| known == subject) else { return false };
        let asked = Instant::now();
        match self.0.iter_mut().find(|denied| denied.at == at) {
            Some(denied) => denied.is_asked = false,
            None => {
                self.0.push(Denied { at, subject: subject.to_owned(), since, asked, is_asked: false });
                self.0.sort_unstable_by_key(|denied| denied.at);
            }
        }
        true
    }

    /// Which to ask for again now, by their places.
    pub(super) fn due(&mut self, now: Instant) -> Vec<usize> {
        let due = |denied: &&mut Denied| !denied.is_asked && now.duration_since(denied.asked) >= ASK_EVERY;
        let ask = |denied: &mut Denied| {
            (denied.asked, denied.is_asked) = (now, true);
            denied.at
        };
        self.0.iter_mut().filter(due).map(ask).collect()
    }

    /// Which are allowed by now, by their places, each with the time since which it was denied.
    pub(super) fn allowed(&mut self, now: Instant) -> Vec<(usize, Millis)> {
        let is_over =
            |denied: &mut Denied| denied.is_asked && now.duration_since(denied.asked) >= ANSWER_WITHIN;
        self.0.extract_if(.., is_over).map(|denied| (denied.at, denied.since)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What is denied and what to do, in whole sentences.
    pub(super) fn to_text(&self, namespace: Option<&str>) -> String {
        let subjects: Vec<_> = self.0.iter().map(|denied| format!("\"{}\"", denied.subject)).collect();
        let narrow = match namespace {
            Some(_) => "",
            None => " If it may see one namespace only, name that with --namespace (RADIXSCOPE_NAMESPACE).",
        };
        format!(
            "NATS denies this user the subjects {}: what is published there is not seen. Allow it to subscribe to \
             them.{narrow}",
            subjects.join(", ")
        )
    }
}

/// The subject of which the server says that it must not be subscribed to.
fn denied_subject(complaint: &str) -> Option<&str> {
    denial(complaint, "subscription")
}

/// The subject of which the server says that this must not be done with it.
fn denial<'c>(complaint: &'c str, what: &str) -> Option<&'c str> {
    let (head, rest) = complaint.split_once('"')?;
    let is_denial = head.to_ascii_lowercase().contains(&format!("permissions violation for {what}"));
    // A queue group may follow.
    is_denial.then(|| rest.split_once('"').map(|(subject, _)| subject)).flatten()
}

/// The right that this user lacks by a complaint of the server, as the end of a sentence. `None`: it complains of something else.
pub(crate) fn missing_right(complaint: &str) -> Option<String> {
    let right = |what, may: &str| {
        let subject = denial(complaint, what)?;
        // Each reply has an inbox of its own.
        let is_inbox = subject.strip_prefix(INBOX).is_some_and(|rest| rest.starts_with('.'));
        let subject = if is_inbox { format!("{INBOX}.>") } else { subject.to_owned() };
        Some(format!("this user lacks the right to {may} \"{subject}\""))
    };
    right("publish", "publish on").or_else(|| right("subscription", "subscribe to"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLAINT: &str = "Permissions Violation for Subscription to \"a.*.kv-events\"";

    #[test]
    fn a_denied_subject_is_named_and_another_complaint_is_none() {
        let subjects = ["b".to_owned(), "a.*.kv-events".to_owned()];
        let mut denied = DeniedSubjects::default();
        assert!(!denied.note("Permissions Violation for Publish to \"b\"", &subjects, Millis(1)));
        assert!(!denied.note("Permissions Violation for Subscription to \"_INBOX.x\"", &subjects, Millis(1)));
        assert!(denied.is_empty());
        assert!(denied.note(COMPLAINT, &subjects, Millis(1)));
        assert!(denied.note(COMPLAINT, &subjects, Millis(2)));
        assert_eq!(denied.len(), 1);
        assert!(
            denied.to_text(None).contains("\"a.*.kv-events\"")
                && denied.to_text(None).contains("--namespace")
        );
        assert!(!denied.to_text(Some("x")).contains("--namespace"));
    }

    #[test]
    fn a_denial_names_the_right_that_is_missing() {
        for (complaint, right) in [
            (
                "Permissions Violation for Publish to \"$JS.API.STREAM.NAMES\"",
                Some("publish on \"$JS.API.STREAM.NAMES\""),
            ),
            (
                "Permissions Violation for Subscription to \"_INBOX.radixscope.aBc9\"",
                Some("subscribe to \"_INBOX.radixscope.>\""),
            ),
            ("maximum payload exceeded", None),
        ] {
            let said = missing_right(complaint);
            let expected = right.map(|right| format!("this user lacks the right to {right}"));
            assert_eq!(said, expected, "{complaint}");
        }
    }

    #[test]
    fn it_is_asked_for_again_and_allowed_once_nobody_objects() {
        let subjects = ["a.*.kv-events".to_owned()];
        let mut denied = DeniedSubjects::default();
        denied.note(COMPLAINT, &subjects, Millis(7));
        let (now, later) = (Instant::now(), Instant::now() + ASK_EVERY * 2);
        assert!(denied.due(now).is_empty());
        assert_eq!(denied.due(later), [0]);
        denied.note(COMPLAINT, &subjects, Millis(8));
        assert!(denied.allowed(later + ANSWER_WITHIN).is_empty(), "still denied");
        assert_eq!(denied.due(later + ASK_EVERY), [0]);
        assert!(denied.allowed(later + ASK_EVERY).is_empty());
        assert_eq!(denied.allowed(later + ASK_EVERY + ANSWER_WITHIN), [(0, Millis(7))]);
        assert!(denied.is_empty());
    }
}
