//! What workers hold as a router without KV events predicts it: the prompts it sent there, for a while (reference §6.1).
//! Must not know what workers really hold.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

/// How long a block is assumed to be cached after a prompt with it was sent, in microseconds.
const HELD_US: u64 = 120_000_000;

/// Predictions that have not expired.
#[derive(Debug, Default)]
pub(super) struct Predicted {
    /// Until when each is believed.
    until_us: FxHashMap<(u16, BlockHash), u64>,
    /// The same in order of time, with those that were renewed.
    queue: VecDeque<(u64, u16, BlockHash)>,
}

impl Predicted {
    /// A prompt was sent to a worker.
    pub(super) fn sent(&mut self, now_us: u64, worker: u16, prompt: &[Block]) {
        let until_us = now_us + HELD_US;
        for block in prompt {
            self.until_us.insert((worker, block.block_hash), until_us);
            self.queue.push_back((until_us, worker, block.block_hash));
        }
    }

    /// The next block that is no longer assumed to be cached.
    pub(super) fn expired(&mut self, now_us: u64) -> Option<(u16, BlockHash)> {
        while let Some(&(until_us, worker, hash)) = self.queue.front() {
            if until_us > now_us {
                return None;
            }
            self.queue.pop_front();
            if self.until_us.get(&(worker, hash)) == Some(&until_us) {
                self.until_us.remove(&(worker, hash));
                return Some((worker, hash));
            }
        }
        None
    }
}
