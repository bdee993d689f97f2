//! Prompts that a worker holds in part below its device: the router counts those blocks by their weight into what it calls
//! cached, and into the tokens to prefill. How many they were only its log tells; our own trees tell it as of the time at
//! which the message came, which may be after the worker began with the request.

use std::collections::VecDeque;

use radixscope_dynamo::active_sequence::AddRequest;
use radixscope_dynamo::log_line::Selected;
use radixscope_model::id::DecisionId;
use radixscope_router::RouterSettings;

use super::Length;

/// Messages whose log line may still come: the line is read within seconds.
const MAX_MESSAGES: usize = 1 << 10;

/// Messages that tell tokens to prefill, of pools with lower tiers.
#[derive(Default)]
pub(super) struct Below {
    latest: VecDeque<(DecisionId, ToPrefill)>,
}

/// What a message tells of a prompt.
#[derive(Clone, Copy)]
struct ToPrefill {
    tokens: u64,
    full_blocks: u64,
    block_size_tokens: u32,
}

impl Below {
    /// Keeps what a message tells.
    pub(super) fn keep(&mut self, id: DecisionId, request: &AddRequest, length: &Length) {
        let to_prefill = || {
            Some(ToPrefill {
                tokens: request.initial_effective_prefill_tokens.filter(|_| request.isl.is_none())?,
                full_blocks: request.token_sequence.as_ref()?.len() as u64,
                block_size_tokens: length.block_size_tokens?,
            })
        };
        let Some(to_prefill) = to_prefill() else { return };
        if self.latest.len() == MAX_MESSAGES {
            self.latest.pop_front();
        }
        self.latest.push_back((id, to_prefill));
    }

    /// Length and overlap of a prompt whose message came, by the blocks below the device that the log tells.
    pub(super) fn length(&mut self, id: DecisionId, selected: &Selected<'_>) -> Option<Length> {
        selected.host_pinned_blocks?;
        let at = self.latest.iter().rposition(|(of, _)| *of == id)?;
        let (_, of) = self.latest.remove(at)?;
        let credited_tokens = (credit(selected) * f64::from(of.block_size_tokens)).round() as u64;
        let length =
            Length::to_prefill(of.tokens, of.full_blocks, of.block_size_tokens.into(), credited_tokens);
        Some(Length { block_size_tokens: Some(of.block_size_tokens), ..length })
    }
}

/// What the lower tiers earned the chosen worker, in blocks.
pub(super) fn credit(selected: &Selected<'_>) -> f64 {
    let blocks = |count: Option<u64>| count.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
    let (host, disk) = (blocks(selected.host_pinned_blocks), blocks(selected.disk_blocks));
    RouterSettings::default().tier_credit(host, disk)
}

/// Blocks on the device, of what a line counts as cached in whole blocks; `lower`: blocks in host memory.
pub(super) fn on_device(cached: u64, lower: u64) -> Option<u64> {
    let host = u32::try_from(lower).ok()?;
    cached.checked_sub(RouterSettings::default().tier_credit(host, 0).round() as u64)
}
