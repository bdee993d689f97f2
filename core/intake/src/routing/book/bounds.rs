//! How much is retained, and for how long: prompts, candidates, and requests of which no choice is known.

use super::slots::{Candidates, Completed, PromptHashes};
use super::{RequestBook, RequestIx, RequestPart};
use radixscope_model::id::{DecisionId, Millis};
use radixscope_model::micros::Micros;
use radixscope_state::cluster::MAX_CANDIDATES;

/// Requests remembered: more than a router runs at a time, so that a trace at the end finds its request. Some 60 MiB.
pub(super) const MAX_REQUESTS: usize = 1 << 16;
/// So long an end waits for its choice: sources lag behind each other by less.
pub(super) const HOLD_MS: u64 = 10_000;
/// So long steps and names wait for a choice: one that is not reported after this long is never reported.
pub(super) const FORGET_MS: u64 = 60_000;
/// How long a prompt waits for other reports of its choice: logs are read up to half a second late.
pub(in crate::routing) const LINGER_MS: u64 = 2_000;
/// The same where routers' settings are read every few seconds: until it is known whether they had changed.
pub(in crate::routing) const LINGER_FOR_SETTINGS_MS: u64 = 8_000;
/// Prompts retained: two seconds of 1,000 a second.
pub(super) const MAX_PROMPTS: usize = 2_048;
/// Candidates of the latest choices whose costs a trace has: 16 MiB.
pub(super) const MAX_TRACED_CANDIDATES: usize = 1 << 20;
/// What such a choice takes beside its candidates, in the size of candidates.
pub(super) const TRACED_CHOICE: usize = 5;
/// Their blocks together: 16 MiB.
pub(super) const MAX_PROMPT_BLOCKS: usize = 1 << 21;

impl RequestBook {
    /// Keeps the prompt of a choice, for as long as reports of other sources may come. Hashes of single blocks go before those
    /// of the whole prompt up to a block, because they name each block. Gives whether a router's message names the prompt by other
    /// hashes than those of its blocks, which are kept then too.
    pub(in crate::routing) fn set_prompt(
        &mut self,
        id: DecisionId,
        prompt: PromptHashes,
        received_ms: Millis,
    ) -> bool {
        let Some(part) = self.change(id) else { return false };
        part.was_named |= !prompt.are_of_trace();
        let is_other = |known: &PromptHashes| {
            known.are_public() != prompt.are_public()
                && known.first().zip(prompt.first()).is_some_and(|(a, b)| a != b)
        };
        let differs = part.prompt.as_ref().is_some_and(is_other);
        let tracked = match (&part.prompt, &prompt) {
            (Some(PromptHashes::Chain(chain)), _) | (_, PromptHashes::Chain(chain)) if differs => {
                part.tracked.is_none().then(|| chain.clone())
            }
            _ => None,
        };
        let is_kept = part.prompt.as_ref().is_none_or(|known| prompt.rank() > known.rank());
        if is_kept || tracked.is_some() {
            if part.prompt.is_none() {
                part.prompt_ms = received_ms;
            }
            let tracked = tracked.or_else(|| part.tracked.clone());
            let prompt = if is_kept { Some(prompt) } else { part.prompt.clone() };
            let before = part.drop_prompt();
            (part.prompt, part.tracked) = (prompt, tracked);
            let now = part.prompt_blocks();
            self.prompt_blocks = self.prompt_blocks + now - before;
            self.with_prompts.push_back(id);
            while self.prompt_blocks > MAX_PROMPT_BLOCKS || self.with_prompts.len() > MAX_PROMPTS {
                let Some(oldest) = self.with_prompts.pop_front() else { break };
                if let Some(dropped) = self.part_mut(oldest).map(RequestPart::drop_prompt) {
                    self.prompt_blocks -= dropped;
                }
            }
        }
        if let Some(&ix) = self.parts.get(&id) {
            self.schedule(ix);
        }
        differs
    }

    /// Parts whose prompts were not dropped yet.
    pub(in crate::routing) fn with_prompts(&self) -> impl Iterator<Item = &RequestPart> {
        let parts = self.with_prompts.iter().filter_map(|id| self.part(*id));
        parts.filter(|part| part.prompt.is_some())
    }

    /// Counts the candidates of a part. Of too many, the oldest are left to the state.
    pub(in crate::routing) fn count_candidates(&mut self, id: DecisionId, count: usize) {
        self.with_candidates.push_back((id, count));
        self.candidates += count;
        while self.candidates > MAX_CANDIDATES {
            let Some((oldest, count)) = self.with_candidates.pop_front() else { break };
            self.candidates -= count;
            if let Some(part) = self.part_mut(oldest) {
                leave_candidates(part);
            }
        }
    }

    /// What is due by our clock and by the deployment's: prompts that are not needed are dropped, and requests of which no choice is known are
    /// forgotten. Gives the ends of those that waited for a choice.
    pub(in crate::routing) fn expire(
        &mut self,
        now: Millis,
        present: Micros,
        linger_ms: u64,
        is_needed: impl Fn(DecisionId) -> bool,
    ) -> Vec<Completed> {
        let mut ends = Vec::new();
        while let Some(&(due, ix)) = self.due.first().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, ix));
            let Some(request) = self.requests.get_mut(&ix) else { continue };
            request.due = None;
            let age_ms = now.since(request.received_ms);
            if request.parts.is_empty() {
                let is_over = |end: &Completed| {
                    age_ms > HOLD_MS && present.millis().since(end.ended.ended_ms) > HOLD_MS
                };
                // A deployment that is silent has no present.
                if age_ms > FORGET_MS || request.completed.as_ref().is_some_and(is_over) {
                    ends.extend(request.completed);
                    self.remove(ix);
                } else {
                    request.due = Some(Millis(now.0 + LINGER_MS));
                }
            } else {
                let mut dropped = 0;
                for part in request.parts.iter_mut().filter(|part| part.prompt.is_some()) {
                    let is_passed = present >= part.begun.plus_ms(linger_ms);
                    let age_ms = now.since(part.prompt_ms);
                    if (is_passed && age_ms > linger_ms && !is_needed(part.id)) || age_ms > FORGET_MS {
                        dropped += part.drop_prompt();
                    } else {
                        request.due = Some(Millis(now.0 + LINGER_MS));
                    }
                }
                self.prompt_blocks -= dropped;
            }
            let due = self.requests.get(&ix).and_then(|request| request.due);
            self.due.extend(due.map(|due| (due, ix)));
        }
        ends
    }

    pub(super) fn schedule(&mut self, ix: RequestIx) {
        let Some(request) = self.requests.get_mut(&ix) else { return };
        let wait = match (request.parts.is_empty(), &request.completed) {
            (true, Some(_)) => Some(HOLD_MS + 1),
            (true, None) => Some(FORGET_MS + 1),
            (false, _) => None,
        };
        let prompts = request.parts.iter().filter(|part| part.prompt.is_some());
        let prompts = prompts.map(|part| Millis(part.prompt_ms.0 + LINGER_MS + 1)).min();
        let due = wait.map(|wait| Millis(request.received_ms.0 + wait)).or(prompts);
        if due != request.due {
            if let Some(known) = std::mem::replace(&mut request.due, due) {
                self.due.remove(&(known, ix));
            }
            self.due.extend(due.map(|due| (due, ix)));
        }
    }
}

/// The state has the candidates of this part.
fn leave_candidates(part: &mut RequestPart) {
    if let Some(costs) = &mut part.slots.costs {
        costs.candidates = Candidates::InState;
    }
    if let Some(Ok(computed)) = part.slots.reconstruction.as_mut().map(|of| of.outcome.as_mut()) {
        computed.candidates = Candidates::InState;
    }
    if let Some(scored) = &mut part.slots.scored {
        scored.scores = None;
    }
    if let Some((known, _)) = part.slots.restored.as_deref_mut() {
        known.candidates = Vec::new();
        known.scores = None;
    }
}
