//! Subjects that the server denies to this user, since when, and when to retry. NATS reports denied subscriptions. It does not
//! report denied subjects within an allowed wildcard, so those cannot be detected.

use std::time::{Duration, Instant};

use radixscope_model::id::Millis;

use super::connect::INBOX;

/// Retry interval: permissions can change at runtime.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// A subject that is not denied again within this time after a retry is allowed.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A subject that the server denies.
#[derive(Debug)]
struct Denied {
    /// Its index in the order of subscribing.
    at: usize,
    subject: String,
    since: Millis,
    retried_at: Instant,
    /// Whether the last retry is still pending.
    is_pending: bool,
}

/// All denied subjects.
#[derive(Default, Debug)]
pub(super) struct DeniedSubjects(Vec<Denied>);

impl DeniedSubjects {
    /// Handles an error of the server. `false`: it is not about one of `subjects`.
    pub(super) fn note(&mut self, complaint: &str, subjects: &[String], since: Millis) -> bool {
        let Some(subject) = denied_subject(complaint) else { return false };
        let Some(at) = subjects.iter().position(|known| known == subject) else { return false };
        let retried_at = Instant::now();
        match self.0.iter_mut().find(|denied| denied.at == at) {
            Some(denied) => denied.is_pending = false,
            None => {
                self.0.push(Denied { at, subject: subject.to_owned(), since, retried_at, is_pending: false });
                self.0.sort_unstable_by_key(|denied| denied.at);
            }
        }
        true
    }

    /// Indices of the subjects to retry now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<usize> {
        let due =
            |denied: &&mut Denied| !denied.is_pending && now.duration_since(denied.retried_at) >= RETRY_EVERY;
        let ask = |denied: &mut Denied| {
            (denied.retried_at, denied.is_pending) = (now, true);
            denied.at
        };
        self.0.iter_mut().filter(due).map(ask).collect()
    }

    /// Indices of the subjects that are allowed now, each with the time since which it was denied.
    pub(super) fn allowed(&mut self, now: Instant) -> Vec<(usize, Millis)> {
        let is_over =
            |denied: &mut Denied| denied.is_pending && now.duration_since(denied.retried_at) >= ANSWER_WITHIN;
        self.0.extract_if(.., is_over).map(|denied| (denied.at, denied.since)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Describes what is denied and what to do.
    pub(super) fn to_text(&self, namespace: Option<&str>) -> String {
        let subjects: Vec<_> = self.0.iter().map(|denied| format!("\"{}\"", denied.subject)).collect();
        let narrow = match namespace {
            Some(_) => "",
            None => " If it is limited to one namespace, set --namespace (RADIXSCOPE_NAMESPACE).",
        };
        format!(
            "NATS denies this user the subjects {}: messages published there are not received. Allow it to subscribe to \
             them.{narrow}",
            subjects.join(", ")
        )
    }
}

/// The subject of a denied subscription.
fn denied_subject(complaint: &str) -> Option<&str> {
    denial(complaint, "subscription")
}

/// The subject of a permissions violation for `what`.
fn denial<'c>(complaint: &'c str, what: &str) -> Option<&'c str> {
    let (head, rest) = complaint.split_once('"')?;
    let is_denial = head.to_ascii_lowercase().contains(&format!("permissions violation for {what}"));
    // A queue group may follow.
    is_denial.then(|| rest.split_once('"').map(|(subject, _)| subject)).flatten()
}

/// The permission that this user lacks according to an error of the server, as a clause. `None`: another error.
pub(crate) fn missing_right(complaint: &str) -> Option<String> {
    let right = |what, may: &str| {
        let subject = denial(complaint, what)?;
        // Each reply has its own inbox.
        let is_inbox = subject.strip_prefix(INBOX).is_some_and(|rest| rest.starts_with('.'));
        let subject = if is_inbox { format!("{INBOX}.>") } else { subject.to_owned() };
        Some(format!("this user lacks the permission to {may} \"{subject}\""))
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
        for (complaint, permission) in [
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
            let right = missing_right(complaint);
            let expected = permission.map(|may| format!("this user lacks the permission to {may}"));
            assert_eq!(right, expected, "{complaint}");
        }
    }

    #[test]
    fn it_is_retried_and_allowed_once_there_is_no_denial() {
        let subjects = ["a.*.kv-events".to_owned()];
        let mut denied = DeniedSubjects::default();
        denied.note(COMPLAINT, &subjects, Millis(7));
        let (now, later) = (Instant::now(), Instant::now() + RETRY_EVERY * 2);
        assert!(denied.due(now).is_empty());
        assert_eq!(denied.due(later), [0]);
        denied.note(COMPLAINT, &subjects, Millis(8));
        assert!(denied.allowed(later + ANSWER_WITHIN).is_empty(), "still denied");
        assert_eq!(denied.due(later + RETRY_EVERY), [0]);
        assert!(denied.allowed(later + RETRY_EVERY).is_empty());
        assert_eq!(denied.allowed(later + RETRY_EVERY + ANSWER_WITHIN), [(0, Millis(7))]);
        assert!(denied.is_empty());
    }
}
