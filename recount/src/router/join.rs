//! What routers publish over NATS, added to the choices that their logs say.

use super::{Choice, Fact};
use crate::capture::{Added, Capture, HitRate};

/// A message about a choice is published within this many seconds of its line.
const NEAR_S: f64 = 0.5;

/// Lengths and overlaps of `kv-hit-rate` (0.8, 0.9): it names no request, but comes once a choice, in order.
pub(crate) fn hit_rates(choices: &mut [Choice], published: &[HitRate]) {
    let mut next = 0;
    for choice in choices {
        let later = &published[next.min(published.len())..];
        let is_of = |hit: &HitRate| hit.worker == choice.worker && (hit.at_s - choice.at_s).abs() < NEAR_S;
        let Some(at) = later.iter().position(is_of) else { continue };
        choice.isl_blocks.or_told(Some(later[at].isl_blocks));
        choice.overlap_blocks.or_told(Some(later[at].overlap_blocks));
        next += at + 1;
    }
}

/// What `AddRequest` says (replica sync): by its request's id, else by worker, time and overlap where that leaves one.
pub(crate) fn added(choices: &mut [Choice], published: &[Added], block_size: Option<u64>) {
    for request in published {
        let of_id = choices.iter().position(|choice| choice.request_id.told() == Some(&request.request_id));
        let (isl_tokens, overlap_blocks) = lengths(request, block_size);
        let at = of_id.or_else(|| nameless(choices, request, overlap_blocks));
        let Some(choice) = at.map(|at| &mut choices[at]) else { continue };
        choice.request_id.or_told(Some(request.request_id.clone()));
        choice.isl_tokens.or_told(isl_tokens);
        choice.isl_blocks.or_told(isl_tokens.zip(block_size).map(|(tokens, size)| tokens.div_ceil(size)));
        choice.overlap_blocks.or_told(overlap_blocks);
        choice.is_prompt_known |= request.full_blocks.is_some();
        choice.is_dispatched = Some(true);
    }
}

/// Length in tokens and overlap in blocks. From 1.2 on they follow from the tokens to prefill, which begin with a block.
fn lengths(request: &Added, block_size: Option<u64>) -> (Option<u64>, Option<u64>) {
    let derived = || {
        let (full, prefill, size) = (request.full_blocks?, request.prefill_tokens?, block_size?);
        Some(full * size + prefill % size)
    };
    let isl_tokens = request.isl_tokens.or_else(derived);
    let held = || Some(isl_tokens?.checked_sub(request.prefill_tokens?)? / block_size?);
    (isl_tokens, request.overlap_blocks.or_else(held))
}

/// The one choice without an id that a message can be about. Of several all are left unjudged.
fn nameless(choices: &mut [Choice], request: &Added, overlap_blocks: Option<u64>) -> Option<usize> {
    let can_be = |choice: &Choice| {
        choice.request_id.told().is_none()
            && choice.worker == request.worker
            && (-0.005..NEAR_S).contains(&(request.at_s - choice.at_s))
            && choice.overlap_blocks.told().is_none_or(|held| Some(*held) == overlap_blocks)
    };
    let of: Vec<usize> = (0..choices.len()).filter(|&at| can_be(&choices[at])).collect();
    match of.as_slice() {
        [one] if choices[*one].request_id == Fact::Untold => Some(*one),
        several => {
            for &at in several {
                choices[at].request_id = Fact::Unsure;
                choices[at].doubt();
            }
            None
        }
    }
}

/// When the first token of each request was published.
pub(crate) fn first_tokens(choices: &mut [Choice], capture: &Capture) {
    for choice in choices {
        if let Some(id) = choice.request_id.told() {
            choice.first_token_s.or_told(capture.first_tokens_s.get(id).copied());
        }
    }
}
