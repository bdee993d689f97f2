//! What fits, as sentences: whether it is enough and by how much.

use super::{Capacity, Inputs};
use radixscope_model::number_format::count;

/// A sentence about what fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FitSentence {
    /// `Some(true)`: all that is asked fits; `Some(false)`: not one sequence does; `None`: a part of it, or nothing was asked.
    pub fits: Option<bool>,
    /// The sentence.
    pub text: String,
}

/// What `capacity` means for the lengths and limits of `inputs`, the most important first.
pub fn fit_sentences(inputs: &Inputs, capacity: &Capacity) -> Vec<FitSentence> {
    let mut all = Vec::new();
    match &capacity.max_batch {
        Some(batch) => {
            if let (Some(needed), Some(p95)) = (batch.p95_blocks, capacity.p95) {
                let at_once = p95.per_worker.min(batch.max_num_seqs);
                let text = format!(
                    "{} of {} sequences of {} tokens (p95) fit at once on a worker, {} on all {}; a full batch takes {} of {} blocks.",
                    count(at_once),
                    count(batch.max_num_seqs),
                    count(p95.tokens),
                    count(at_once * u64::from(inputs.workers)),
                    count(u64::from(inputs.workers)),
                    count(needed),
                    count(capacity.blocks_per_worker),
                );
                all.push(FitSentence { fits: fits(p95.per_worker, Some(batch.max_num_seqs)), text });
                all.extend(p95.shared_per_worker.map(|shared| FitSentence {
                    fits: fits(shared, Some(batch.max_num_seqs)),
                    text: format!(
                        "With the shared prefix of {} tokens stored once {} of {} fit.",
                        count(inputs.shared_prefix_tokens.unwrap_or_default()),
                        count(shared.min(batch.max_num_seqs)),
                        count(batch.max_num_seqs),
                    ),
                }));
            }
            let longest = format!(
                "A full batch of {} fits up to {} tokens each{}.",
                count(batch.max_num_seqs),
                count(batch.longest_tokens),
                batch.longest_shared_tokens.map_or(String::new(), |tokens| format!(
                    ", {} with the prefix stored once",
                    count(tokens)
                ))
            );
            all.push(FitSentence { fits: None, text: longest });
        }
        None => all.push(FitSentence {
            fits: None,
            text: "Sequences at once per worker are not given, so whether a full batch fits is unknown."
                .to_owned(),
        }),
    }
    // Of a batch the p95 is said above.
    let p95 = capacity.p95.filter(|_| capacity.max_batch.is_none());
    for (name, fit) in [("p50", capacity.p50), ("p95", p95)] {
        let Some(fit) = fit else { continue };
        let limit = inputs.max_num_seqs.map(u64::from);
        let fits = fits(fit.per_worker, limit);
        let shared = fit
            .shared_per_worker
            .map_or(String::new(), |n| format!(", {} with the shared prefix stored once", count(n)));
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

/// Whether `there` sequences are as many as asked.
fn fits(there: u64, asked: Option<u64>) -> Option<bool> {
    match asked {
        _ if there == 0 => Some(false),
        Some(asked) if there >= asked => Some(true),
        _ => None,
    }
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
