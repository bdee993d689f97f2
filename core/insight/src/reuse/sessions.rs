//! Which sessions lost most.

use std::collections::HashMap;

use radixscope_state::cluster::DecisionEntry;

use super::{LossCause, PromptReuse};

/// What the prompts of one session lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLoss {
    /// Its name, as its client gave it.
    pub session: String,
    /// Its prompts that are summed.
    pub decisions: u32,
    /// Tokens of these.
    pub prompt_tokens: u64,
    /// Of these, tokens that were computed though their blocks had been seen before.
    pub lost_tokens: u64,
    /// What most of them were lost to.
    pub cause: LossCause,
}

#[derive(Default)]
struct Sum {
    decisions: u32,
    prompt_tokens: u64,
    lost: [u64; LossCause::ALL.len()],
}

/// Losses by session.
#[derive(Default)]
pub struct Sessions<'a>(HashMap<&'a str, Sum>);

impl<'a> Sessions<'a> {
    pub(super) fn add(&mut self, decided: &'a DecisionEntry, reuse: &PromptReuse) {
        let Some(session) = decided.decision.session.as_deref() else { return };
        let sum = self.0.entry(session).or_default();
        sum.decisions += 1;
        sum.prompt_tokens += reuse.steps[0];
        for &(cause, tokens) in reuse.losses.iter().filter(|(cause, _)| cause.is_avoidable()) {
            sum.lost[cause as usize] += tokens;
        }
    }

    /// Those that lost most, the first of them most; none that lost nothing.
    pub fn largest(&self, count: usize) -> Vec<SessionLoss> {
        let of = |(session, sum): (&&str, &Sum)| {
            let lost_tokens: u64 = sum.lost.iter().sum();
            let most = LossCause::ALL.into_iter().zip(sum.lost);
            let (cause, _) = most.max_by_key(|&(cause, tokens)| (tokens, std::cmp::Reverse(cause)))?;
            let Sum { decisions, prompt_tokens, .. } = *sum;
            let session = (*session).to_owned();
            (lost_tokens > 0).then_some(SessionLoss { session, decisions, prompt_tokens, lost_tokens, cause })
        };
        let mut all: Vec<SessionLoss> = self.0.iter().filter_map(of).collect();
        all.sort_by(|a, b| (b.lost_tokens, &a.session).cmp(&(a.lost_tokens, &b.session)));
        all.truncate(count);
        all
    }
}
