//! How long a prompt is, and how much of it the chosen worker held, by what its router reports when it adds the request.

use super::resolve::PartContext;
use super::slots::{LowerBlocks, Sequence, Slots};
use radixscope_router::RouterSettings;

/// What a request's length is known to be.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(in crate::routing) struct Length {
    pub(in crate::routing) isl_tokens: Option<u64>,
    pub(in crate::routing) block_size_tokens: Option<u32>,
    /// By the router's own count.
    pub(in crate::routing) overlap_blocks: Option<u64>,
    /// In lower tiers, by the trees of those.
    pub(in crate::routing) lower_tier_blocks: Option<u64>,
    /// Tokens that the chosen worker has to prefill, by the router's own count.
    pub(in crate::routing) prefill_tokens: Option<u64>,
}

impl Length {
    /// In blocks, rounded up.
    pub(in crate::routing) fn isl_blocks(&self) -> Option<u64> {
        Some(self.isl_tokens?.div_ceil(u64::from(self.block_size_tokens?)))
    }

    /// By the message about a part, and where prefill and decode are apart, by that about the other part too: the one about
    /// prefill contains how many tokens are to be computed, the one about decode which blocks the prompt has.
    pub(in crate::routing) fn of(slots: &Slots, context: &PartContext<'_>) -> Self {
        let Some(own) = &slots.sequence else { return Self::default() };
        let size = context.block_size_tokens;
        let alone = Self::by(own, own.full_blocks, size, credited_blocks(own, slots, &context.settings));
        if own.full_blocks.is_some() && alone.isl_tokens.is_some() && !context.ignores_cache {
            return alone;
        }
        match context.counterpart() {
            Some((other, other_slots)) if own.full_blocks.is_some() => {
                let whole = Self::by(
                    other,
                    own.full_blocks,
                    size,
                    credited_blocks(other, other_slots, &context.settings),
                );
                let size = whole.block_size_tokens.or(size);
                Self {
                    block_size_tokens: size,
                    overlap_blocks: None,
                    lower_tier_blocks: None,
                    prefill_tokens: None,
                    ..whole
                }
            }
            Some((other, _)) => {
                Self::by(own, other.full_blocks, size, credited_blocks(own, slots, &context.settings))
            }
            None => alone,
        }
    }

    /// By a message alone.
    pub(in crate::routing) fn of_message(
        sequence: &Sequence,
        block_size_tokens: Option<u32>,
        settings: &RouterSettings,
    ) -> Self {
        let credited = credited_blocks(sequence, &Slots::default(), settings);
        Self::by(sequence, sequence.full_blocks, block_size_tokens, credited)
    }

    /// From 1.2 on a router reports the tokens to prefill and the full blocks, which together give the rest: both lengths
    /// leave the same remainder after full blocks. `credited_blocks`: what the lower tiers of the chosen worker took off
    /// the tokens to prefill.
    fn by(
        sequence: &Sequence,
        full_blocks: Option<u64>,
        block_size_tokens: Option<u32>,
        credited_blocks: f64,
    ) -> Self {
        // What is to prefill begins at a block's first token, so that its full blocks give the size away.
        let not_held = || full_blocks.map(|full| full.saturating_sub(sequence.held.device));
        let by_prefill = || block_size(sequence.prefill_tokens?, not_held()?);
        let block_size = block_size_tokens
            .map(u64::from)
            .filter(|&size| size > 0)
            .or_else(|| block_size(sequence.isl_tokens?, full_blocks?))
            .or_else(by_prefill)
            .filter(|&size| u32::try_from(size).is_ok());
        let derived = || {
            let size = block_size?;
            let credited_tokens = (credited_blocks * size as f64).round() as u64;
            Some(Self::to_prefill(sequence.prefill_tokens?, full_blocks?, size, credited_tokens))
        };
        let derived = derived().unwrap_or_default();
        let isl_tokens = sequence.isl_tokens.or(derived.isl_tokens);
        let overlap_blocks = sequence.overlap_blocks.or(derived.overlap_blocks);
        let prefill_tokens = sequence
            .prefill_tokens
            .or_else(|| Some(isl_tokens?.saturating_sub(overlap_blocks?.saturating_mul(block_size?))));
        let lower = u64::from(sequence.held.host) + u64::from(sequence.held.disk_or_external);
        Self {
            isl_tokens,
            block_size_tokens: block_size.and_then(|size| u32::try_from(size).ok()),
            overlap_blocks,
            lower_tier_blocks: (lower > 0).then_some(lower),
            prefill_tokens,
        }
    }

    /// From tokens to prefill and full blocks alone.
    fn to_prefill(tokens: u64, full_blocks: u64, block_size: u64, credited_tokens: u64) -> Self {
        let not_on_device = tokens.saturating_add(credited_tokens);
        let isl_tokens = || {
            let isl =
                full_blocks.checked_mul(block_size)?.checked_add(not_on_device.checked_rem(block_size)?)?;
            (isl >= not_on_device).then_some(isl)
        };
        let isl_tokens = isl_tokens();
        let overlap_blocks = isl_tokens.and_then(|isl| (isl - not_on_device).checked_div(block_size));
        Self { isl_tokens, overlap_blocks, prefill_tokens: Some(tokens), ..Self::default() }
    }
}

/// What lower tiers took off the tokens to prefill, in blocks: by the router's log, else by our trees at the time of the
/// message, which may be after the worker began with the request.
fn credited_blocks(sequence: &Sequence, slots: &Slots, settings: &RouterSettings) -> f64 {
    match slots.choice.and_then(|choice| choice.lower) {
        Some(lower) => credit(lower, settings),
        None => settings.tier_credit(sequence.held.host, sequence.held.disk_or_external),
    }
}

/// What the lower tiers earned the chosen worker, in blocks.
pub(in crate::routing) fn credit(lower: LowerBlocks, settings: &RouterSettings) -> f64 {
    let blocks = |count: u64| u32::try_from(count).unwrap_or(0);
    settings.tier_credit(blocks(lower.host), blocks(lower.disk))
}

/// Blocks on the device, of what a line counts as cached in whole blocks; `lower`: blocks in host memory.
pub(super) fn on_device(cached: u64, lower: u64, settings: &RouterSettings) -> Option<u64> {
    let host = u32::try_from(lower).ok()?;
    cached.checked_sub(settings.tier_credit(host, 0).round() as u64)
}

/// The block size with which a prompt of `isl_tokens` has `full` whole blocks, if only one power of two fits; Dynamo's
/// engines use no other.
pub(in crate::routing) fn block_size(isl_tokens: u64, full: u64) -> Option<u64> {
    let mut fitting = (0..=12).map(|bits| 1_u64 << bits).filter(|size| isl_tokens / size == full);
    let size = fitting.next()?;
    (full > 0 && fitting.next().is_none()).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_size_is_inferred_only_where_one_fits() {
        assert_eq!(block_size(122, 7), Some(16));
        assert_eq!(block_size(3_899, 243), Some(16));
        assert_eq!(block_size(12, 1), Some(8));
        assert_eq!(block_size(12, 0), None);
        assert_eq!(block_size(122, 5), None);
    }
}
