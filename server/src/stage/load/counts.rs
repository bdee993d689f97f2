//! What became of the requests: every one that was sent is answered, failed for a reason, under way, or broken off at the end.

use std::collections::BTreeMap;

use radixscope_model::number_format::{count, plural};

use super::exchange::{Failure, Reason, Response};

/// Reasons that are listed; statuses alone are 900.
const MAX_LISTED: usize = 6;

/// Counts of requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) failed: BTreeMap<Reason, u64>,
    /// Broken off by the end of the process.
    pub(super) broken_off: u64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    /// What went wrong last.
    pub(super) latest: Option<Failure>,
}

impl Counts {
    /// The number of the request that is sent now, from 0; `None`: there were as many as may be.
    pub(super) fn begin(&mut self, max: u64) -> Option<u64> {
        let number = (self.sent < max).then_some(self.sent)?;
        self.sent += 1;
        Some(number)
    }

    pub(super) fn end(&mut self, outcome: &Result<Response, Failure>) {
        match outcome {
            Ok(response) => {
                self.answered += 1;
                if let Some(usage) = response.usage {
                    self.prompt_tokens += u64::from(usage.prompt_tokens);
                    self.output_tokens += u64::from(usage.completion_tokens);
                }
            }
            Err(failure) => {
                *self.failed.entry(failure.reason).or_default() += 1;
                self.latest = Some(failure.clone());
            }
        }
    }

    /// The requests that are under way are not waited for.
    pub(super) fn break_off(&mut self) {
        self.broken_off += self.under_way();
    }

    pub(super) fn under_way(&self) -> u64 {
        self.sent.saturating_sub(self.answered + self.all_failed() + self.broken_off)
    }

    fn all_failed(&self) -> u64 {
        self.failed.values().sum()
    }

    /// In one sentence without its full stop.
    pub(super) fn to_text(&self, max: u64) -> String {
        let mut text = format!(
            "{} of at most {} sent, {} answered",
            count(self.sent),
            plural(max, "request", "requests"),
            count(self.answered)
        );
        let under_way = self.under_way();
        if under_way > 0 {
            text.push_str(&format!(", {} in flight", count(under_way)));
        }
        if self.broken_off > 0 {
            text.push_str(&format!(", {} broken off", count(self.broken_off)));
        }
        if !self.failed.is_empty() {
            let mut by_count: Vec<_> = self.failed.iter().collect();
            by_count.sort_by_key(|&(reason, &times)| (std::cmp::Reverse(times), *reason));
            let listed: Vec<_> = by_count
                .iter()
                .take(MAX_LISTED)
                .map(|(reason, times)| format!("{} {reason}", count(**times)))
                .collect();
            let more = by_count.len().saturating_sub(MAX_LISTED);
            let more = if more > 0 { format!(", {more} reasons more") } else { String::new() };
            text.push_str(&format!(", {} failed ({}{more})", count(self.all_failed()), listed.join(", ")));
        }
        if self.prompt_tokens > 0 {
            let (prompt, output) = (count(self.prompt_tokens), count(self.output_tokens));
            text.push_str(&format!("; {prompt} prompt tokens, {output} output tokens"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_dynamo::chat_chunk::Usage;

    #[test]
    fn every_request_is_in_one_count() {
        let mut counts = Counts::default();
        assert_eq!([(); 5].map(|()| counts.begin(4)), [Some(0), Some(1), Some(2), Some(3), None]);
        let usage = Some(Usage { prompt_tokens: 4_000, completion_tokens: 20 });
        counts.end(&Ok(Response { text: String::new(), usage }));
        for reason in [Reason::Status(503), Reason::Cut] {
            counts.end(&Err(Failure { reason, detail: String::new() }));
        }
        assert_eq!(
            counts.to_text(4),
            "4 of at most 4 requests sent, 1 answered, 1 in flight, 2 failed (1 cut off, 1 status 503); 4,000 prompt tokens, 20 output tokens"
        );
        counts.break_off();
        assert_eq!(counts.under_way(), 0);
        assert!(counts.to_text(4).contains("1 broken off, 2 failed"), "{}", counts.to_text(4));
    }

    #[test]
    fn many_reasons_are_cut_short() {
        let mut counts = Counts::default();
        for status in 400..420 {
            counts.begin(100);
            counts.end(&Err(Failure { reason: Reason::Status(status), detail: String::new() }));
        }
        assert!(counts.to_text(100).ends_with("1 status 405, 14 reasons more)"), "{}", counts.to_text(100));
    }
}
