//! The arrivals that the model plays, their prompts written out: the selected ones, and before them those that warm the caches.

use radixscope_model::id::{DecisionId, Millis};
use radixscope_sim::resimulation::{Arrival, WARM_UP_PERCENT};
use radixscope_state::requests::{Arrivals, MAX_ARRIVALS};

use super::DecisionRange;

/// Most blocks of the prompts played: 64 MiB. Prompts are stored shared but played one by one, so that a few long ones
/// could otherwise grow without bound; the oldest are left out.
const MAX_PLAYED_BLOCKS: usize = 8 << 20;
/// How many of the latest of `all` arrivals are played so that the selected ones are counted after the warm-up: as many again
/// before them, as far as they are retained, so that caches are as full as they were. The least is a fifth of those played.
fn with_warm_up(selected: usize, all: usize) -> usize {
    selected.saturating_mul(2).min(all)
}

/// The share of `played` arrivals that only warm the caches, in percent, so that `selected` are counted.
fn warm_up_percent(selected: usize, played: usize) -> u32 {
    let before = played.saturating_sub(selected) * 100 / played.max(1);
    (before as u32).max(WARM_UP_PERCENT)
}

/// How many of the latest arrivals a re-simulation plays at most. Whoever sends arrivals sends as many, so that all
/// play the same.
pub fn arrivals_needed(span: DecisionRange) -> usize {
    match span {
        DecisionRange::Last(last) => with_warm_up(last as usize, MAX_ARRIVALS),
        DecisionRange::Ms(_) => MAX_ARRIVALS,
    }
}

/// The arrivals that are played, their prompts written out.
pub(super) struct Played {
    pub(super) heads: Vec<Head>,
    blocks: Vec<u64>,
    pub(super) left_out: u64,
    pub(super) warm_up_percent: u32,
}

pub(super) struct Head {
    pub(super) decision: DecisionId,
    pub(super) at_ms: Millis,
    isl_tokens: u32,
    pub(super) osl_tokens: Option<u32>,
    blocks: std::ops::Range<usize>,
}

impl Played {
    pub(super) fn of(arrivals: &Arrivals, span: DecisionRange, block_size_tokens: u32) -> Self {
        let all = arrivals.iter();
        let selected = match span {
            DecisionRange::Last(last) => last as usize,
            DecisionRange::Ms(ms) => {
                let now = arrivals.iter().map(|arrival| arrival.at_ms).max().unwrap_or_default();
                arrivals.iter().filter(|arrival| now.since(arrival.at_ms) <= ms).count()
            }
        };
        let count = with_warm_up(selected.min(all.len()), all.len());
        let latest: Vec<_> = all.skip(arrivals.iter().len() - count).collect();
        // From the end: what does not fit is the oldest.
        let mut room = MAX_PLAYED_BLOCKS;
        let fitting = latest.iter().rev().take_while(|arrival| {
            let blocks = arrival.blocks as usize;
            let fits = blocks <= room;
            room -= blocks.min(room);
            fits
        });
        let fitting = fitting.count();
        let mut played = Played {
            heads: Vec::with_capacity(fitting),
            blocks: Vec::new(),
            left_out: (count - fitting) as u64,
            warm_up_percent: warm_up_percent(selected, fitting),
        };
        let mut prompt = Vec::new();
        for arrival in &latest[count - fitting..] {
            arrivals.prompt(arrival, &mut prompt);
            // As reported, whatever the links would give.
            prompt.truncate(arrival.blocks as usize);
            let first = played.blocks.len();
            played.blocks.extend_from_slice(&prompt);
            let full = u64::from(arrival.blocks) * u64::from(block_size_tokens);
            let tokens = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            played.heads.push(Head {
                decision: arrival.decision,
                at_ms: arrival.at_ms,
                isl_tokens: tokens(arrival.isl_tokens.unwrap_or(full)),
                osl_tokens: arrival.output_tokens.map(tokens),
                blocks: first..played.blocks.len(),
            });
        }
        // Several sources may report requests in another order than they arrived.
        played.heads.sort_by_key(|head| head.at_ms);
        played
    }

    pub(super) fn arrivals(&self) -> impl Iterator<Item = Arrival<'_>> {
        self.heads.iter().map(|head| Arrival {
            at_ms: head.at_ms,
            isl_tokens: head.isl_tokens,
            osl_tokens: head.osl_tokens,
            blocks: &self.blocks[head.blocks.clone()],
        })
    }
}
