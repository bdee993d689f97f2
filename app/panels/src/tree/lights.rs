//! Requests in flight on the tree: which there are, how far their prompts were cached, and how many have no light.

use radixscope_icicle::lights::{InFlight, MOST, MOST_A_SECOND};
use radixscope_insight::view_context::ViewContext;
use radixscope_state::cluster::DecisionEntry;

use crate::format;

/// Decisions looked at: the latest. A prompt is computed for seconds.
const LOOKED_AT: usize = 256;

/// What was received of requests in flight.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RequestsInFlight {
    /// Those whose path is in the tree that is drawn.
    pub known: Vec<InFlight>,
    /// How many are computed of which no path is known.
    pub without_path: usize,
}

impl RequestsInFlight {
    /// Of the pool that is drawn. Decisions choose by what is on devices; the trees of tiers below have none.
    pub fn of(shown: &ViewContext<'_>) -> Self {
        let mut requests = Self::default();
        if shown.tier.is_some() {
            return requests;
        }
        let latest = || shown.cluster.decisions().newest_first().take(LOOKED_AT);
        // Where no source reports how requests go on, none is known to be computed.
        let is_reported = latest().any(has_gone_on);
        for decided in latest().filter(|decided| decided.pool == shown.pool) {
            let is_computed =
                is_reported && !has_gone_on(decided) && decided.decision.dispatched != Some(false);
            match path_of(shown, decided) {
                Some(path) => requests.known.push(InFlight { is_computed, ..path }),
                None => requests.without_path += usize::from(is_computed),
            }
        }
        requests
    }
}

fn path_of(shown: &ViewContext<'_>, decided: &DecisionEntry) -> Option<InFlight> {
    let decision = &decided.decision;
    let (path, tree) = (decision.path?, shown.tree());
    let end = tree.find(shown.slot(path.worker)?, path.block_hash)?;
    let cached = decided.overlap_blocks().and_then(|blocks| u32::try_from(blocks).ok());
    Some(InFlight {
        id: decision.id,
        worker: shown.slot(decision.worker)?,
        end,
        cached: cached.map_or(path.blocks, |cached| cached.min(path.blocks)),
        is_computed: false,
    })
}

/// Whether its first token or its end was reported.
fn has_gone_on(decided: &DecisionEntry) -> bool {
    let progress = &decided.progress;
    progress.first_token_ms.is_some() || progress.ended_ms.is_some() || progress.ttft_us.is_some()
}

/// How many lights there are, and how many requests have none: not drawn, or without a known path.
pub fn lights_text(lit: usize, unlit: usize, without_path: usize) -> String {
    let mut text = format!("prompts in prefill: {}", format::count(lit as u64));
    let others = [(unlit, "not drawn"), (without_path, "without a known path")];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {} {what}", format::count(count as u64));
    }
    text
}

/// What the lights are.
pub fn lights_title() -> String {
    format!(
        "Each request runs down its prompt to the last block cached on its worker and stays there until its first token. At most {MOST} at a time, {MOST_A_SECOND} new ones a second"
    )
}
