//! The recorded requests as texts: their prompts' blocks, and those of the outputs they will get.
//!
//! A recording has no hashes of outputs, but the next turn of a conversation sends the output again: where a later
//! prompt begins with all of an earlier one and is long enough, it goes on with that one's output.
//! Must not know workers, time or what is counted.

use rustc_hash::FxHashMap;

use super::settings::ResimulationSettings;
use super::{Arrival, MAX_REQUEST_TOKENS};
use crate::engine::Job;
use crate::tokens::mix;
use radixscope_model::id::{BlockHash, TokensHash};
use radixscope_model::record::Block;

/// Of an arrival that no later one continues.
const NO_USER: u32 = u32::MAX;
/// Most requests with equal prompts that wait for their next turn; the oldest ends there.
const MAX_OPEN: usize = 256;
/// Most blocks of all requests in flight together; what comes on top is refused. It bounds memory at 256 MB.
const MAX_BLOCKS_IN_FLIGHT: usize = 16 << 20;

/// All recorded requests, and the blocks of those in flight.
pub(super) struct Prompts<'a> {
    arrivals: Vec<Arrival<'a>>,
    settings: ResimulationSettings,
    /// For each arrival the later one that continues it, or [`NO_USER`].
    continued_by: Vec<u32>,
    /// Blocks of prompt and output, of requests in flight.
    texts: Vec<Vec<Block>>,
    blocks_in_flight: usize,
    /// Emptied texts, to be used again.
    spare: Vec<Vec<Block>>,
}

impl<'a> Prompts<'a> {
    pub(super) fn new(arrivals: Vec<Arrival<'a>>, settings: &ResimulationSettings) -> Self {
        Self {
            continued_by: continuations(&arrivals, settings),
            texts: vec![Vec::new(); arrivals.len()],
            blocks_in_flight: 0,
            spare: Vec::new(),
            settings: settings.clone(),
            arrivals,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.arrivals.len()
    }

    pub(super) fn arrival(&self, at: usize) -> Option<&Arrival<'a>> {
        self.arrivals.get(at)
    }

    /// The work of a request.
    pub(super) fn job(&self, request: u32) -> Job {
        let arrival = &self.arrivals[request as usize];
        let osl_tokens = self.settings.osl_tokens(arrival);
        // A recording does not contain the output limit of a request; the engine is given what it will be.
        let isl_tokens = arrival.isl_tokens;
        Job { request, isl_tokens, osl_tokens, max_output_tokens: osl_tokens, ..Job::default() }
    }

    /// Blocks of prompt and output of a request in flight.
    pub(super) fn blocks(&self, request: u32) -> &[Block] {
        &self.texts[request as usize]
    }

    /// Takes a request into flight; `false` if no worker could ever run it, or too much is in flight.
    pub(super) fn begin(&mut self, at: usize) -> bool {
        let Some(arrival) = self.arrivals.get(at) else { return false };
        let block_size = self.settings.block_size_tokens;
        let tokens = u64::from(arrival.isl_tokens) + u64::from(self.settings.osl_tokens(arrival));
        let needed =
            (tokens + u64::from(self.settings.timing.seen_after_steps)).div_ceil(u64::from(block_size));
        let fits =
            tokens <= u64::from(MAX_REQUEST_TOKENS) && needed <= u64::from(self.settings.blocks_per_worker);
        if arrival.isl_tokens == 0 || !fits {
            return false;
        }
        let prompt_len = (arrival.isl_tokens / block_size) as usize;
        let full_len = tokens as usize / block_size as usize;
        if self.blocks_in_flight + full_len > MAX_BLOCKS_IN_FLIGHT {
            return false;
        }
        self.blocks_in_flight += full_len;
        let output = self.arrivals.get(self.continued_by[at] as usize).map_or(&[][..], |next| next.blocks);
        let mut text = self.spare.pop().unwrap_or_default();
        text.extend((0..full_len).map(|place| {
            let recorded = if place < prompt_len { arrival.blocks } else { output };
            let own = || mix(mix(self.settings.seed ^ at as u64) ^ place as u64);
            // Only which requests share a block counts here; its content is not known.
            Block {
                block_hash: BlockHash(recorded.get(place).copied().unwrap_or_else(own)),
                tokens_hash: TokensHash(0),
            }
        }));
        self.texts[at] = text;
        true
    }

    /// A request is complete.
    pub(super) fn end(&mut self, request: u32) {
        let mut text = std::mem::take(&mut self.texts[request as usize]);
        self.blocks_in_flight -= text.len();
        text.clear();
        self.spare.push(text);
    }
}

/// For each arrival the first later one whose prompt begins with all full blocks of its own and has room for its
/// output. A later prompt continues at most one of several equal ones, the latest.
fn continuations(arrivals: &[Arrival<'_>], settings: &ResimulationSettings) -> Vec<u32> {
    let mut continued_by = vec![NO_USER; arrivals.len()];
    // Requests not continued yet, by the last full block of the prompt.
    let mut open: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    for (at, arrival) in (0..).zip(arrivals) {
        let prompt = &arrival.blocks[..arrival.blocks.len().min(arrival.full_blocks(settings))];
        let Some((last, before)) = prompt.split_last() else { continue };
        for hash in before {
            let Some(waiting) = open.get_mut(hash) else { continue };
            let fits = |&earlier: &u32| {
                let earlier = &arrivals[earlier as usize];
                let history = u64::from(earlier.isl_tokens) + u64::from(earlier.osl_tokens.unwrap_or(0));
                history <= u64::from(arrival.isl_tokens)
            };
            if let Some(found) = waiting.iter().rposition(fits) {
                continued_by[waiting.remove(found) as usize] = at;
            }
        }
        // Only if all of a prompt's blocks are known can its continuation be recognised.
        if prompt.len() == arrival.full_blocks(settings) {
            let waiting = open.entry(*last).or_default();
            if waiting.len() == MAX_OPEN {
                waiting.remove(0);
            }
            waiting.push(at);
        }
    }
    continued_by
}

impl Arrival<'_> {
    /// Full blocks of the prompt, recorded or not.
    fn full_blocks(&self, settings: &ResimulationSettings) -> usize {
        (self.isl_tokens / settings.block_size_tokens) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radixscope_model::id::Millis;

    fn arrival(isl_tokens: u32, osl_tokens: Option<u32>, blocks: &[u64]) -> Arrival<'_> {
        Arrival { at_ms: Millis(0), isl_tokens, osl_tokens, blocks }
    }

    fn hashes(prompts: &Prompts<'_>, request: u32) -> Vec<u64> {
        prompts.blocks(request).iter().map(|b| b.block_hash.0).collect()
    }

    fn settings() -> ResimulationSettings {
        ResimulationSettings {
            block_size_tokens: 4,
            mean_output_tokens: 8,
            ..ResimulationSettings::default()
        }
    }

    #[test]
    fn a_response_is_what_the_next_turn_repeats_of_it() {
        let (first, next) = ([1, 2], [1, 2, 3, 4, 5]);
        let arrivals = vec![arrival(9, Some(8), &first), arrival(21, Some(1), &next)];
        let mut prompts = Prompts::new(arrivals, &settings());
        assert!(prompts.begin(0));
        assert_eq!(hashes(&prompts, 0), [1, 2, 3, 4], "17 tokens fill four blocks; the fifth is the user's");
    }

    #[test]
    fn a_later_prompt_without_room_for_the_response_is_another_conversation() {
        let (first, next) = ([1, 2], [1, 2, 3, 4, 5]);
        let arrivals = vec![arrival(9, Some(13), &first), arrival(21, Some(1), &next)];
        let mut prompts = Prompts::new(arrivals, &settings());
        assert!(prompts.begin(0));
        assert!(!hashes(&prompts, 0)[2..].iter().any(|h| next.contains(h)));
    }

    #[test]
    fn of_two_equal_prompts_each_continues_in_one_later_one() {
        let (first, one, other) = ([1, 2], [1, 2, 3, 4], [1, 2, 6, 7]);
        let arrivals = vec![
            arrival(9, Some(6), &first),
            arrival(9, Some(6), &first),
            arrival(17, None, &one),
            arrival(17, None, &other),
        ];
        let mut prompts = Prompts::new(arrivals, &settings());
        assert!(prompts.begin(0) && prompts.begin(1));
        assert_eq!((hashes(&prompts, 0)[2], hashes(&prompts, 1)[2]), (6, 3));
    }

    #[test]
    fn unrecorded_blocks_are_shared_with_no_other_prompt() {
        let arrivals = vec![arrival(12, None, &[]), arrival(12, None, &[])];
        let mut prompts = Prompts::new(arrivals, &settings());
        assert!(prompts.begin(0) && prompts.begin(1));
        let (mut all, other) = (hashes(&prompts, 0), hashes(&prompts, 1));
        all.extend(other);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10);
    }

    #[test]
    fn what_no_worker_could_run_is_refused_without_being_laid_out() {
        let settings = ResimulationSettings { blocks_per_worker: u32::MAX, ..settings() };
        let arrivals = vec![arrival(u32::MAX, Some(u32::MAX), &[]), arrival(0, Some(1), &[])];
        let mut prompts = Prompts::new(arrivals, &settings);
        assert!(!prompts.begin(0) && !prompts.begin(1));
    }
}
