//! What routers publish over NATS, added to the decisions that their logs report.

use super::{Decision, Fact};
use crate::capture::{Added, Capture, HitRate};

/// A message about a decision is published within this many seconds of its line.
const NEAR_S: f64 = 0.5;

/// Lengths and overlaps of `kv-hit-rate` (0.8, 0.9): it names no request, but comes once a decision, in order.
pub(crate) fn hit_rates(decisions: &mut [Decision], published: &[HitRate]) {
    let mut next = 0;
    for decision in decisions {
        let later = &published[next.min(published.len())..];
        let is_of =
            |hit: &HitRate| hit.worker == decision.worker && (hit.at_s - decision.at_s).abs() < NEAR_S;
        let Some(at) = later.iter().position(is_of) else { continue };
        decision.isl_blocks.or_reported(Some(later[at].isl_blocks));
        decision.overlap_blocks.or_reported(Some(later[at].overlap_blocks));
        next += at + 1;
    }
}

/// What `AddRequest` reports (replica sync): by its request's id, else by worker, time and overlap where that leaves one.
pub(crate) fn added(decisions: &mut [Decision], published: &[Added], block_size: Option<u64>) {
    for request in published {
        let of_id =
            decisions.iter().position(|decision| decision.request_id.reported() == Some(&request.request_id));
        let (isl_tokens, overlap_blocks) = lengths(request, block_size);
        let at = of_id.or_else(|| nameless(decisions, request, overlap_blocks));
        let Some(decision) = at.map(|at| &mut decisions[at]) else { continue };
        decision.request_id.or_reported(Some(request.request_id.clone()));
        decision.isl_tokens.or_reported(isl_tokens);
        decision
            .isl_blocks
            .or_reported(isl_tokens.zip(block_size).map(|(tokens, size)| tokens.div_ceil(size)));
        decision.overlap_blocks.or_reported(overlap_blocks);
        decision.is_prompt_known |= request.full_blocks.is_some();
        decision.is_dispatched = Some(true);
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

/// The one decision without an id that a message can be about. Of several all are left unjudged.
fn nameless(decisions: &mut [Decision], request: &Added, overlap_blocks: Option<u64>) -> Option<usize> {
    let can_be = |decision: &Decision| {
        decision.request_id.reported().is_none()
            && decision.worker == request.worker
            && (-0.005..NEAR_S).contains(&(request.at_s - decision.at_s))
            && decision.overlap_blocks.reported().is_none_or(|held| Some(*held) == overlap_blocks)
    };
    let of: Vec<usize> = (0..decisions.len()).filter(|&at| can_be(&decisions[at])).collect();
    match of.as_slice() {
        [one] if decisions[*one].request_id == Fact::NotReported => Some(*one),
        several => {
            for &at in several {
                decisions[at].request_id = Fact::Unsure;
                decisions[at].doubt();
            }
            None
        }
    }
}

/// When the first token of each request came.
pub(crate) fn first_tokens(decisions: &mut [Decision], capture: &Capture) {
    for decision in decisions {
        if let Some(id) = decision.request_id.reported() {
            decision.first_token.or_reported(capture.first_tokens.get(id).copied());
        }
    }
}
