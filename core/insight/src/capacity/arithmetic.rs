//! The arithmetic itself. [`Input::most`](super::Input::most) keeps every product below 2⁶⁴; inputs are checked first.

use super::{Convention, Error, GIB, Inputs, KvBytes};

/// What fits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Capacity {
    /// Bytes for KV on one worker.
    pub kv_bytes_per_worker: u64,
    /// KV bytes of one token.
    pub kv_bytes_per_token: u64,
    /// KV bytes of one block.
    pub bytes_per_block: u64,
    /// Tokens on one worker.
    pub tokens_per_worker: u64,
    /// Whole blocks on one worker.
    pub blocks_per_worker: u64,
    /// Blocks of all workers.
    pub blocks: u64,
    /// Sequences of median length; `None` if that is not known.
    pub p50: Option<Fit>,
    /// Sequences of p95 length; `None` if that is not known.
    pub p95: Option<Fit>,
    /// What the batch limit asks; `None` if that is not known.
    pub max_batch: Option<MaxBatch>,
}

/// How many sequences of one length fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fit {
    /// Length of a sequence in tokens.
    pub tokens: u64,
    /// Blocks of one sequence; the last may be part-filled.
    pub blocks: u64,
    /// Sequences on one worker, each kept whole.
    pub per_worker: u64,
    /// Sequences on all workers, each kept whole.
    pub in_all: u64,
    /// Sequences on one worker that keeps the full blocks of the shared prefix once; `None` without a shared prefix, or if the
    /// sequence is no longer than it.
    pub shared_per_worker: Option<u64>,
}

/// The batch limit against the blocks of one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaxBatch {
    /// Sequences at once per worker.
    pub max_num_seqs: u64,
    /// Blocks that so many sequences of p95 length take, each kept whole.
    pub p95_blocks: Option<u64>,
    /// Longest length in tokens at which the full batch still fits; 0 if there is not a block for each.
    pub longest_tokens: u64,
    /// The same with the shared prefix kept once; `None` without one.
    pub longest_shared_tokens: Option<u64>,
}

impl Capacity {
    /// KV cache of one worker in GiB.
    pub fn kv_gib_per_worker(&self) -> f64 {
        self.kv_bytes_per_worker as f64 / GIB as f64
    }
}

impl Inputs {
    /// What fits.
    ///
    /// # Errors
    /// The first input that is out of bounds or leaves no room for one block.
    pub fn capacity(&self) -> Result<Capacity, Error> {
        self.check()?;
        let kv_bytes_per_token = self.kv_bytes_per_token();
        let block_size = u64::from(self.block_size_tokens);
        let bytes_per_block = kv_bytes_per_token * block_size;
        let kv_bytes_per_worker = match self.blocks_per_worker {
            Some(blocks) => blocks.saturating_mul(bytes_per_block),
            None => self.kv_bytes_per_worker()?,
        };
        let tokens_per_worker = match self.blocks_per_worker {
            Some(blocks) => blocks * block_size,
            None => kv_bytes_per_worker / kv_bytes_per_token,
        };
        let blocks_per_worker = tokens_per_worker / block_size;
        if blocks_per_worker == 0 {
            return Err(Error::Block { bytes_per_block, kv_bytes: kv_bytes_per_worker });
        }
        let room = BlockBudget {
            blocks: blocks_per_worker,
            block_size,
            workers: u64::from(self.workers),
            prefix_tokens: self.shared_prefix_tokens,
        };
        let p95 = self.p95_tokens.map(|tokens| room.fit(tokens));
        Ok(Capacity {
            kv_bytes_per_worker,
            kv_bytes_per_token,
            bytes_per_block,
            tokens_per_worker,
            blocks_per_worker,
            blocks: blocks_per_worker * room.workers,
            p50: self.p50_tokens.map(|tokens| room.fit(tokens)),
            p95,
            max_batch: self.max_num_seqs.map(|most| room.max_batch(u64::from(most), p95)),
        })
    }

    /// KV bytes of one token on one worker. The inputs must have been checked.
    fn kv_bytes_per_token(&self) -> u64 {
        match self.kv {
            KvBytes::PerToken(bytes) => bytes,
            KvBytes::Model { layers, kv_heads, head_dim, bytes_per_element } => {
                let heads = kv_heads.max(self.gpus_per_worker);
                [layers, 2, heads, head_dim, bytes_per_element].map(u64::from).iter().product()
            }
        }
    }

    fn kv_bytes_per_worker(&self) -> Result<u64, Error> {
        let hbm_bytes = self.hbm_bytes_per_gpu * u64::from(self.gpus_per_worker);
        // Below 2⁵³ an `f64` counts every byte; what the product loses is less than one.
        let share = |bytes: u64| (bytes as f64 * self.fraction) as u64;
        let left = match self.convention {
            Convention::WholeMemory => share(hbm_bytes).checked_sub(self.weight_bytes),
            Convention::FreeMemory => hbm_bytes.checked_sub(self.weight_bytes).map(share),
        };
        left.filter(|&bytes| bytes > 0).ok_or(Error::Weights {
            weight_bytes: self.weight_bytes,
            hbm_bytes,
            fraction: self.fraction,
            convention: self.convention,
        })
    }
}

/// The blocks of one worker, and what is the same for every length.
struct BlockBudget {
    blocks: u64,
    block_size: u64,
    workers: u64,
    prefix_tokens: Option<u64>,
}

impl BlockBudget {
    /// Full blocks of the shared prefix: only full blocks are shared.
    fn prefix_blocks(&self) -> Option<u64> {
        self.prefix_tokens.map(|tokens| tokens / self.block_size)
    }

    /// Blocks of the shared prefix, and of what one sequence adds to it; at least one, because it is the longer.
    fn shared(&self, tokens: u64) -> Option<(u64, u64)> {
        self.prefix_tokens.filter(|&prefix| prefix < tokens)?;
        let prefix = self.prefix_blocks()?;
        Some((prefix, tokens.div_ceil(self.block_size) - prefix))
    }

    fn fit(&self, tokens: u64) -> Fit {
        let blocks = tokens.div_ceil(self.block_size);
        let per_worker = self.blocks / blocks;
        let shared_per_worker =
            self.shared(tokens).map(|(prefix, rest)| self.blocks.saturating_sub(prefix) / rest);
        Fit { tokens, blocks, per_worker, in_all: per_worker * self.workers, shared_per_worker }
    }

    fn max_batch(&self, max_num_seqs: u64, p95: Option<Fit>) -> MaxBatch {
        let p95_blocks = p95.map(|fit| fit.blocks * max_num_seqs);
        let longest_shared = |prefix: u64| match self.blocks.checked_sub(prefix) {
            Some(rest) => (prefix + rest / max_num_seqs) * self.block_size,
            None => 0,
        };
        MaxBatch {
            max_num_seqs,
            p95_blocks,
            longest_tokens: self.blocks / max_num_seqs * self.block_size,
            longest_shared_tokens: self.prefix_blocks().map(longest_shared),
        }
    }
}
