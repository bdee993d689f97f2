//! What routers publish over NATS, added to the decisions that their logs report.

use std::collections::BTreeMap;

use super::{Decision, Fact};
use crate::Worker;
use crate::capture::{Added, Capture, HitRate};
use crate::discovery::{Discovery, Role};

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
        let is_of = |decision: &Decision| decision.request_id.reported() == Some(&request.request_id);
        let on_worker = |decision: &Decision| is_of(decision) && decision.worker == request.worker;
        // Retried elsewhere, not the request's choice in another pool.
        let in_pool = |decision: &Decision| {
            is_of(decision) && decision.pool.as_ref().is_none_or(|pool| *pool == request.pool)
        };
        let of_id = decisions.iter().position(on_worker).or_else(|| decisions.iter().position(in_pool));
        let (isl_tokens, overlap_blocks) = lengths(request, block_size);
        let at = of_id.or_else(|| nameless(decisions, request, overlap_blocks));
        let Some(decision) = at.map(|at| &mut decisions[at]) else { continue };
        decision.request_id.or_reported(Some(request.request_id.clone()));
        decision.isl_tokens.or_reported(isl_tokens);
        let isl_tokens = decision.isl_tokens.reported().copied();
        let isl_blocks = isl_tokens.zip(block_size).map(|(tokens, size)| tokens.div_ceil(size));
        decision.isl_blocks.or_reported(isl_blocks);
        decision.overlap_blocks.or_reported(overlap_blocks);
        decision.is_prompt_known |= request.chain.is_some();
        decision.is_dispatched = Some(true);
        decision.message_cost = cost(request, decision.role, block_size);
    }
}

/// What waits on the chosen worker and what of this prompt it does not hold, in blocks, and the blocks of the requests that run
/// there. Decode workers compute no prompts, prefill workers keep none. Before 1.2 a message does not say what is to compute.
fn cost(request: &Added, role: Role, block_size: Option<u64>) -> Option<f64> {
    let size = block_size.filter(|&size| size > 0)? as f64;
    let prefill = || Some((request.waiting_tokens + request.prefill_tokens?) as f64 / size);
    let decode = || request.chain.as_ref().map(|_| request.running_blocks as f64);
    match role {
        Role::Prefill => prefill(),
        Role::Decode => decode(),
        Role::Aggregated => Some(prefill()? + decode()?),
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

/// When the first token of each request came, and when it was over.
pub(crate) fn steps(decisions: &mut [Decision], capture: &Capture) {
    for decision in decisions {
        if let Some(id) = decision.request_id.reported() {
            let key = (id.clone(), decision.worker);
            decision.first_token.or_reported(capture.first_tokens.get(&key).copied());
            decision.ended.or_reported(capture.ends.get(&key).copied());
        }
    }
}

/// Pool and role of every choice, and where prefill and decode are apart, the other choice for its request.
pub(crate) fn link(decisions: &mut [Decision], pools: &BTreeMap<Worker, String>, discovery: &Discovery) {
    let mut parts: BTreeMap<String, Vec<(Role, Worker)>> = BTreeMap::new();
    for decision in decisions.iter_mut() {
        decision.pool = pools.get(&decision.worker).cloned();
        decision.role = decision.pool.as_deref().map(|pool| discovery.role(pool)).unwrap_or_default();
        // Two schedulers write into one log: lines that name no request may stand together.
        decision.candidates.retain(|candidate| pools.get(&candidate.worker) == decision.pool.as_ref());
        if let Some(id) = decision.request_id.reported() {
            parts.entry(id.clone()).or_default().push((decision.role, decision.worker));
        }
    }
    for decision in decisions.iter_mut() {
        let Some(of) = decision.request_id.reported().and_then(|id| parts.get(id)) else { continue };
        let is_other = |(role, _): &&(Role, Worker)| {
            matches!((decision.role, role), (Role::Prefill, Role::Decode) | (Role::Decode, Role::Prefill))
        };
        decision.other_part = of.iter().rev().find(is_other).map(|(_, worker)| *worker);
    }
}
