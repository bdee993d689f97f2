//! What fits, in sentences: each says whether it is enough and by how much.

use super::{Capacity, Inputs};
use radixscope_model::number_format::count;

/// A sentence about what fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FitSentence {
    /// Whether it is enough; `None`: nothing was asked of it.
    pub fits: Option<bool>,
    /// The sentence.
    pub text: String,
}

/// What `capacity` means for the lengths and limits of `inputs`, the most important first.
pub fn fit_sentences(inputs: &Inputs, capacity: &Capacity) -> Vec<FitSentence> {
    let mut all = Vec::new();
    match &capacity.max_batch {
        Some(batch) => {
            let there = capacity.blocks_per_worker;
            if let (Some(needed), Some(p95)) = (batch.p95_blocks, capacity.p95) {
                let fits = needed <= there;
                let by = if fits { there - needed } else { needed - there };
                let text = format!(
                    "{} sequences of {} tokens (p95) need {} blocks: {} of {} a worker by {} blocks ({} %).",
                    count(batch.max_num_seqs),
                    count(p95.tokens),
                    count(needed),
                    if fits { "inside the capacity" } else { "above the capacity" },
                    count(there),
                    count(by),
                    by.saturating_mul(100) / there.max(1),
                );
                all.push(FitSentence { fits: Some(fits), text });
                all.extend(batch.p95_fits_shared.map(|fits| FitSentence {
                    fits: Some(fits),
                    text: format!(
                        "With the shared prefix of {} tokens kept once they {}.",
                        count(inputs.shared_prefix_tokens.unwrap_or_default()),
                        if fits { "fit" } else { "still do not fit" }
                    ),
                }));
            }
            let longest = format!(
                "A full batch of {} fits up to {} tokens each{}.",
                count(batch.max_num_seqs),
                count(batch.longest_tokens),
                batch
                    .longest_shared_tokens
                    .map_or(String::new(), |tokens| format!(", {} with the prefix kept once", count(tokens)))
            );
            all.push(FitSentence { fits: (batch.longest_tokens == 0).then_some(false), text: longest });
        }
        None => all.push(FitSentence {
            fits: None,
            text: "Sequences at once per worker are not given, so whether a full batch fits is not known."
                .to_owned(),
        }),
    }
    for (name, fit) in [("p50", capacity.p50), ("p95", capacity.p95)] {
        let Some(fit) = fit else { continue };
        let limit = inputs.max_num_seqs.map(u64::from);
        let fits = limit.map(|limit| fit.per_worker >= limit);
        let shared = fit
            .shared_per_worker
            .map_or(String::new(), |n| format!(", {} with the shared prefix kept once", count(n)));
        let text = format!(
            "{} sequences of {name} length ({} tokens, {} blocks) fit on a worker{shared}; {} on all {}.",
            count(fit.per_worker),
            count(fit.tokens),
            count(fit.blocks),
            count(fit.in_all),
            count(u64::from(inputs.workers)),
        );
        all.push(FitSentence { fits, text });
    }
    all
}

/// The computed blocks of a worker beside those that one really has.
pub fn against_live(capacity: &Capacity, live_blocks: u64) -> String {
    let computed = capacity.blocks_per_worker;
    let by = computed.abs_diff(live_blocks);
    let percent = by.saturating_mul(100) / live_blocks.max(1);
    let (computed_text, live, by_text) = (count(computed), count(live_blocks), count(by));
    if by == 0 {
        format!("Live workers have {live} blocks each: exactly as computed.")
    } else if computed > live_blocks {
        format!(
            "Live workers have {live} blocks each, {by_text} ({percent} %) fewer than the {computed_text} computed: activations, graphs and \
             the runtime take memory too, or a setting differs."
        )
    } else {
        format!(
            "Live workers have {live} blocks each, {by_text} ({percent} %) more than the {computed_text} computed: an input differs from \
             what runs."
        )
    }
}
