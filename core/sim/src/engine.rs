//! One worker's engine: a queue, a running batch, and steps of chunked prefill and decode over its block cache.
//! Must not know the router, the wire or absolute time: it returns how long a step takes and its results.

use std::collections::VecDeque;

use super::cache::{BlockCache, Lease};
use super::config::Fleet;
use super::timing::Timing;
use radixscope_model::id::BlockHash;
use radixscope_model::record::Block;

/// What an engine has to compute for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Job {
    /// Which request, by a number that no other one in flight has.
    pub(super) request: u32,
    /// Prompt tokens, at least 1.
    pub(super) isl_tokens: u32,
    /// Output tokens the request will have, at least 1.
    pub(super) osl_tokens: u32,
    /// Most output tokens it could have as far as the engine knows.
    pub(super) max_output_tokens: u32,
    /// Whether the KV of the prompt comes from elsewhere, all but that of the last token.
    pub(super) is_prefilled: bool,
    /// Whether it gave its first token before and was stopped: the tokens it had given are part of its prompt now.
    pub(super) is_resumed: bool,
}

impl Job {
    /// Full blocks of the prompt.
    pub(super) fn full_blocks(&self, block_size_tokens: u32) -> usize {
        (self.isl_tokens / block_size_tokens) as usize
    }
}

/// An observable action of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EngineEvent {
    /// A request left the queue; that many of its prompt blocks were cached, on the device or below it.
    Admitted { request: u32, cached_blocks: u32 },
    /// A cached block was dropped.
    Evicted { hash: BlockHash },
    /// Blocks `from..to` of a request's text were stored.
    Stored { request: u32, from: u32, to: u32 },
    /// A copy in host memory was dropped.
    HostEvicted { hash: BlockHash },
    /// Blocks `from..to` of a request's text were copied to host memory.
    HostStored { request: u32, from: u32, to: u32 },
    /// The first token of a request came out.
    FirstToken { request: u32 },
    /// A request is complete.
    Finished { request: u32 },
}

/// The blocks of each request in flight: its prompt and the output it will get.
pub(super) trait RequestTexts {
    /// Full blocks of prompt and output.
    fn blocks(&self, request: u32) -> &[Block];
}

/// A running request.
#[derive(Debug)]
struct Sequence {
    job: Job,
    lease: Lease,
    /// Tokens whose KV is in the cache.
    kv_tokens: u32,
    /// Output tokens computed; 0 during prefill.
    generated: u32,
    /// Prompt tokens this step computes.
    chunk: u32,
}

/// The engine of one worker.
#[derive(Debug)]
pub(super) struct Engine {
    cache: BlockCache,
    /// What it keeps in host memory; of no size where it does not.
    host: BlockCache,
    queue: VecDeque<Job>,
    running: Vec<Sequence>,
    /// Leases of finished requests, to be used again.
    spare: Vec<Lease>,
    block_size_tokens: u32,
    max_batch: u32,
    max_num_tokens: u32,
    stepping: bool,
    timing: Timing,
    /// Duration of prefill, in percent of what it should be.
    prefill_percent: u64,
}

impl Engine {
    pub(super) fn new(fleet: &Fleet) -> Self {
        Self {
            cache: BlockCache::new(fleet.blocks_per_worker, fleet.eviction),
            host: BlockCache::new(fleet.host_blocks, fleet.eviction),
            queue: VecDeque::new(),
            running: Vec::new(),
            spare: Vec::new(),
            block_size_tokens: fleet.block_size_tokens,
            max_batch: fleet.max_batch,
            max_num_tokens: fleet.max_num_tokens,
            stepping: false,
            timing: fleet.timing,
            prefill_percent: 100,
        }
    }

    pub(super) fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// The cache in host memory.
    pub(super) fn host(&self) -> &BlockCache {
        &self.host
    }

    /// Blocks of a prompt, from its beginning without a hole, that it has on its device, and beyond that in host memory.
    pub(super) fn cached_blocks(&self, prompt: &[Block]) -> u32 {
        let on_device = self.cache.prefix_len(prompt);
        on_device + self.host.prefix_len(&prompt[on_device as usize..])
    }

    /// Requests that wait for a place in the batch.
    pub(super) fn queued(&self) -> u32 {
        self.queue.len() as u32
    }

    /// Requests in the batch.
    pub(super) fn running(&self) -> u32 {
        self.running.len() as u32
    }

    /// Whether a step is under way.
    pub(super) fn is_stepping(&self) -> bool {
        self.stepping
    }

    /// From now on prefill needs so much of the time it should, in percent.
    pub(super) fn slow_prefill(&mut self, percent: u64) {
        self.prefill_percent = percent;
    }

    /// Requests that the last step gave a token, but not their first.
    pub(super) fn continued(&self) -> impl Iterator<Item = u32> + '_ {
        let seen = self.timing.seen_after_steps + 1;
        self.running.iter().filter(move |s| s.generated > seen).map(|s| s.job.request)
    }

    /// Gives up every request. A step under way ends all the same.
    pub(super) fn abort(&mut self) {
        self.queue.clear();
        for Sequence { lease, .. } in self.running.drain(..) {
            self.spare.push(self.cache.release(lease));
        }
    }

    /// Gives up one request, if it is there.
    pub(super) fn cancel(&mut self, request: u32) {
        self.queue.retain(|job| job.request != request);
        if let Some(at) = self.running.iter().position(|sequence| sequence.job.request == request) {
            let Sequence { lease, .. } = self.running.remove(at);
            self.spare.push(self.cache.release(lease));
        }
    }

    /// Drops all that is cached. What runs has to be computed anew: it waits in front of the queue, with the tokens that it gave.
    pub(super) fn clear(&mut self) {
        let Self { cache, host, queue, running, spare, timing, .. } = self;
        for Sequence { job, lease, generated, .. } in running.drain(..).rev() {
            spare.push(cache.release(lease));
            queue.push_front(Job {
                isl_tokens: job.isl_tokens + generated,
                osl_tokens: job.osl_tokens.saturating_sub(generated),
                max_output_tokens: job.max_output_tokens.saturating_sub(generated),
                is_prefilled: job.is_prefilled && generated == 0,
                is_resumed: job.is_resumed || generated > timing.seen_after_steps,
                ..job
            });
        }
        *cache = cache.emptied();
        *host = host.emptied();
    }

    /// The process begins anew, with nothing cached. A step under way ends all the same.
    pub(super) fn begin_anew(&mut self) {
        self.abort();
        self.cache = self.cache.emptied();
        self.host = self.host.emptied();
    }

    /// The step under way ends without a result.
    pub(super) fn lose_step(&mut self) {
        self.stepping = false;
    }

    /// Takes a request into the queue.
    pub(super) fn push(&mut self, job: Job) {
        self.queue.push_back(job);
    }

    /// Begins a step and returns its duration in microseconds; `None` if there is nothing to do.
    pub(super) fn begin_step(
        &mut self,
        texts: &impl RequestTexts,
        happened: &mut Vec<EngineEvent>,
    ) -> Option<u64> {
        let (mut decoding, mut kv_tokens, mut prefilling) = (0, 0, 0);
        for sequence in self.running.iter().filter(|s| s.generated > 0) {
            decoding += 1;
            kv_tokens += u64::from(sequence.kv_tokens);
        }
        let mut budget = self.max_num_tokens - decoding.min(self.max_num_tokens);
        for sequence in self.running.iter_mut().filter(|s| s.generated == 0) {
            prefilling += sequence.plan_chunk(&mut budget);
        }
        while budget > 0 && self.running() < self.max_batch {
            let Some(mut sequence) = self.admit_next(texts, happened) else { break };
            prefilling += sequence.plan_chunk(&mut budget);
            self.running.push(sequence);
        }
        self.stepping = !self.running.is_empty();
        self.stepping.then(|| self.timing.step_us(decoding, kv_tokens, prefilling, self.prefill_percent))
    }

    /// Ends the step under way.
    pub(super) fn end_step(&mut self, texts: &impl RequestTexts, happened: &mut Vec<EngineEvent>) {
        self.stepping = false;
        let seen_after = self.timing.seen_after_steps;
        let mut at = 0;
        while at < self.running.len() {
            let Self { cache, running, block_size_tokens, .. } = self;
            let sequence = &mut running[at];
            if sequence.generated == 0 {
                sequence.advance_prefill(cache, *block_size_tokens, texts, happened);
                if sequence.generated > 0 {
                    let job = sequence.job;
                    self.keep_on_host(job, texts, happened);
                }
            } else {
                sequence.advance_decode(cache, *block_size_tokens, texts, happened);
            }
            let Self { cache, running, .. } = self;
            let sequence = &mut running[at];
            if sequence.generated == seen_after + 1 && !sequence.job.is_resumed {
                happened.push(EngineEvent::FirstToken { request: sequence.job.request });
            }
            if sequence.generated >= sequence.job.osl_tokens + seen_after {
                // Order is preserved: prefill chunks are planned first come, first served.
                let Sequence { job, lease, .. } = running.remove(at);
                self.spare.push(cache.release(lease));
                happened.push(EngineEvent::Finished { request: job.request });
            } else {
                at += 1;
            }
        }
    }

    /// Takes the first of the queue into the batch, if the cache has room for it.
    fn admit_next(&mut self, texts: &impl RequestTexts, happened: &mut Vec<EngineEvent>) -> Option<Sequence> {
        let job = *self.queue.front()?;
        let prompt = &texts.blocks(job.request)[..job.full_blocks(self.block_size_tokens)];
        let most = (job.isl_tokens + job.max_output_tokens + self.timing.seen_after_steps)
            .div_ceil(self.block_size_tokens);
        let lease = self.spare.pop().unwrap_or_default();
        let mut lease = match self.cache.admit(prompt, most, lease) {
            Ok(lease) => lease,
            Err(lease) => {
                self.spare.push(lease);
                return None;
            }
        };
        self.queue.pop_front();
        let on_device = lease.full_blocks();
        let cached_blocks = on_device + self.host.prefix_len(&prompt[on_device as usize..]);
        if !job.is_resumed {
            happened.push(EngineEvent::Admitted { request: job.request, cached_blocks });
        }
        let own = job.isl_tokens.div_ceil(self.block_size_tokens) - on_device;
        self.cache.allocate(&mut lease, own, |hash| happened.push(EngineEvent::Evicted { hash }));
        // The first token needs the last prompt token computed, even if all of the prompt is cached.
        let cached_tokens =
            if job.is_prefilled { job.isl_tokens } else { cached_blocks * self.block_size_tokens };
        let kv_tokens = cached_tokens.min(job.isl_tokens - 1);
        Some(Sequence { job, lease, kv_tokens, generated: 0, chunk: 0 })
    }

    /// Copies a prompt whose KV is complete to host memory, as far as it is not there.
    fn keep_on_host(&mut self, job: Job, texts: &impl RequestTexts, happened: &mut Vec<EngineEvent>) {
        if self.host.capacity() == 0 {
            return;
        }
        let prompt = &texts.blocks(job.request)[..job.full_blocks(self.block_size_tokens)];
        let lease = self.spare.pop().unwrap_or_default();
        let (mut from, mut to) = (u32::MAX, 0);
        let lease = self.host.keep(
            prompt,
            lease,
            |hash| happened.push(EngineEvent::HostEvicted { hash }),
            |at| (from, to) = (from.min(at), at + 1),
        );
        self.spare.push(lease);
        if from < to {
            happened.push(EngineEvent::HostStored { request: job.request, from, to });
        }
    }
}

impl Sequence {
    /// Plans as much of the rest of the prompt as `budget` allows.
    fn plan_chunk(&mut self, budget: &mut u32) -> u32 {
        self.chunk = (self.job.isl_tokens - self.kv_tokens).min(*budget);
        *budget -= self.chunk;
        self.chunk
    }

    fn advance_prefill(
        &mut self,
        cache: &mut BlockCache,
        block_size_tokens: u32,
        texts: &impl RequestTexts,
        happened: &mut Vec<EngineEvent>,
    ) {
        self.kv_tokens += std::mem::take(&mut self.chunk);
        if self.kv_tokens < self.job.isl_tokens {
            return;
        }
        let request = self.job.request;
        let to = self.job.isl_tokens / block_size_tokens;
        let mut from = to;
        for at in self.lease.full_blocks()..to {
            // A faster twin of this request can only have stored the beginning of what is left.
            if cache.fill(&mut self.lease, texts.blocks(request)[at as usize]) {
                from = from.min(at);
            }
        }
        if from < to {
            happened.push(EngineEvent::Stored { request, from, to });
        }
        self.generated = 1;
    }

    /// Computes the KV of the last token and yields the next one.
    fn advance_decode(
        &mut self,
        cache: &mut BlockCache,
        block_size_tokens: u32,
        texts: &impl RequestTexts,
        happened: &mut Vec<EngineEvent>,
    ) {
        let place = self.kv_tokens % block_size_tokens;
        if place == 0 {
            cache.allocate(&mut self.lease, 1, |hash| happened.push(EngineEvent::Evicted { hash }));
        }
        self.kv_tokens += 1;
        self.generated += 1;
        if place + 1 == block_size_tokens {
            let (request, at) = (self.job.request, self.kv_tokens / block_size_tokens - 1);
            if cache.fill(&mut self.lease, texts.blocks(request)[at as usize]) {
                happened.push(EngineEvent::Stored { request, from: at, to: at + 1 });
            }
        }
    }
}
