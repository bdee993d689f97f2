//! The simulated cluster as the router and the engines of one pool observe it: whatever happens to them is published, logged,
//! counted and measured here. Must not know how requests are served.

use std::ops::Range;

use rand::RngExt;

use super::config::{Config, Topology};
use super::engine::{Engine, Job, RequestTexts};
use super::fault::{Delivery, Failure, ForcedWorker};
use super::fault_events;
use super::log::{DecisionInput, LogContext, LoggedOutcome, Measured};
use super::processes::Processes;
use super::report::{CandidateTruth, RequestRecord};
use super::router::{Choice, Router};
use super::serving::{FirstToken, Rejected, Served, ServingContext};
use super::timing;
use super::topology::Release;
use super::trace::{RequestTrace, TraceInput};
use super::users::Users;
use super::wire::{Reporter, Step, Tier, WireOut};
use super::workload::{DECODE_ROUTED_US, Driver, Event, PrefillPart};
use radixscope_model::id::{BlockHash, Millis};
use radixscope_model::record::Block;
use radixscope_router::Role;

/// Least time after a failure until a user tries again, in microseconds.
const RETRY_US: u64 = 500_000;
/// Over so long they spread, in microseconds.
const RETRY_JITTER_US: u64 = 3_000_000;

/// Everything that surrounds a pool, with a receiver of its messages.
pub(super) struct Observed<'a, 'o> {
    pub(super) driver: &'a mut Driver,
    pub(super) pool: usize,
    pub(super) out: WireOut<'o>,
}

impl Observed<'_, '_> {
    pub(super) fn here(&mut self) -> &mut Processes {
        &mut self.driver.pools[self.pool]
    }

    fn role(&self) -> Role {
        self.driver.pools[self.pool].pool.role
    }

    fn release(&self) -> Release {
        self.driver.pools[self.pool].pool.release()
    }

    /// Number of a worker of this pool among those of all.
    fn of_all(&self, worker: u16) -> u16 {
        self.driver.pools[self.pool].pool.worker(worker)
    }

    /// What the router thinks of a worker: replicas of the router get the cause first.
    fn router_load(&mut self, router: &Router, worker: u16, user: u32) {
        if router.is_kv() {
            let (frontend, at_ms) = (self.frontend(user), self.driver.now_ms());
            let load = router.load(frontend, worker);
            self.driver.pools[self.pool].wire.router_load(at_ms, frontend, worker, load, self.out);
        }
    }

    fn publish_stored(
        &mut self,
        (at_ms, worker, tier): (Millis, u16, Tier),
        user: u32,
        blocks: Range<u32>,
        delivery: Delivery,
    ) {
        let Driver { users, pools, .. } = &mut *self.driver;
        let here = &mut pools[self.pool];
        let text = text_of(users, &here.pool.config, user);
        let parent = blocks.start.checked_sub(1).map(|at| text[at as usize].block_hash);
        let stored = &text[blocks.start as usize..blocks.end as usize];
        here.wire.stored((at_ms, worker, tier), (parent, blocks.start, stored), delivery, self.out);
    }

    fn sequence(&mut self, router: &Router, (reporter, worker): (Reporter, u16), user: u32, step: Step<'_>) {
        let at_ms = self.driver.now_ms();
        let Processes { pool, wire, request_ids, .. } = &mut self.driver.pools[self.pool];
        // Workers publish first tokens.
        let reports = pool.config.replica_sync || reporter == Reporter::Worker;
        if reports && router.is_kv() {
            wire.sequence(at_ms, (reporter, worker), &request_ids[user as usize], step, self.out);
        }
    }

    /// Writes a line about a request to the frontend's log, as 1.6 does.
    fn log(&mut self, user: u32, say: impl FnOnce(&mut Processes, LogContext<'_>, WireOut<'_>)) {
        let (frontend, at_us) = (self.frontend(user), self.driver.now_unix_us());
        let here = &mut self.driver.pools[self.pool];
        let request_id = here.request_ids[user as usize].clone();
        say(here, LogContext { frontend, at_us, request_id: &request_id }, self.out);
    }

    /// A router that weighs costs chose: its log, its messages and what is measured of it.
    fn record_choice(
        &mut self,
        (router, engines): (&Router, &[Engine]),
        user: u32,
        choice: Choice,
        prefill_tokens: u64,
    ) {
        let Choice { worker, overlap_blocks, .. } = choice;
        let is_bound = self.bound_to(user) == Some(worker);
        let (at_ms, at_us, frontend) = (self.driver.now_ms(), self.driver.now_unix_us(), self.frontend(user));
        let of_all = self.of_all(worker);
        let Driver { config, users, pools, report, metrics, .. } = &mut *self.driver;
        let Processes { pool, wire, log, request_ids, overlaps, .. } = &mut pools[self.pool];
        overlaps[user as usize] = overlap_blocks;
        let request_id = &request_ids[user as usize];
        let isl_tokens = users.job(user).isl_tokens;
        let prompt = &users.routed_blocks(user)[..(isl_tokens / config.block_size_tokens) as usize];
        let candidates = router.candidates();
        report.decided(|decision| {
            decision.at_ms = at_ms;
            decision.user = user;
            decision.worker = of_all;
            decision.first_worker = pool.first_worker;
            decision.isl_tokens = isl_tokens;
            decision.is_bound = is_bound;
            decision.prompt.extend(prompt.iter().map(|b| b.block_hash));
            decision.candidates.extend_from_slice(candidates);
            let is_listed = |worker: &u16| router.workers().contains(worker);
            decision.truth.extend((0..).zip(engines).map(|(worker, engine)| CandidateTruth {
                is_eligible: router.was_candidate(worker),
                cached_blocks: if is_listed(&worker) { engine.cached_blocks(prompt) } else { 0 },
            }));
            let listed = || (0..).zip(engines).filter(|(worker, _)| is_listed(worker));
            let is_anywhere = |block: &&Block| listed().any(|(_, of)| of.cache().holds(block.block_hash));
            decision.cached_anywhere_blocks = prompt.iter().take_while(is_anywhere).count() as u32;
        });
        metrics
            .iter_mut()
            .for_each(|metrics| metrics.decided(frontend, self.pool, isl_tokens, &choice, router));
        match pool.release() {
            Release::V0_9 => {
                let decided = DecisionInput { worker, workers: router.workers(), candidates };
                log.decided(frontend, at_us, &decided, |worker| wire.worker_id(worker), self.out);
            }
            Release::V1_6 => {
                let about = LogContext { frontend, at_us, request_id };
                let (worker_id, chosen) = (wire.worker_id(worker), &candidates[usize::from(worker)]);
                if is_bound {
                    log.pinned(about, worker_id, chosen, self.out);
                } else {
                    log.selected(about, worker_id, chosen, self.out);
                }
            }
        }
        let isl_blocks = isl_tokens.div_ceil(config.block_size_tokens);
        wire.hit_rate(at_ms, frontend, worker, isl_blocks, overlap_blocks, self.out);
        if config.replica_sync {
            let added = Step::added(pool, prompt, (isl_tokens, overlap_blocks), prefill_tokens);
            wire.sequence(at_ms, (Reporter::Router, worker), request_id, added, self.out);
        }
        self.bind(user, worker);
        self.router_load(router, worker, user);
    }

    /// The worker that a user's conversation is bound to, where sessions are bound.
    fn bound_to(&self, user: u32) -> Option<u16> {
        let conversation = self.driver.users.conversation(user);
        self.driver.pools[self.pool].bindings.get(&conversation).map(|(worker, _)| *worker)
    }

    /// A request went to a worker: its conversation is bound to it, if it was not before.
    fn bind(&mut self, user: u32, worker: u16) {
        if !self.driver.config.session_affinity {
            return;
        }
        let (conversation, at_us) = (self.driver.users.conversation(user), self.driver.now_unix_us());
        let bindings = &mut self.driver.pools[self.pool].bindings;
        if bindings.get(&conversation).is_none_or(|(bound, _)| *bound != worker) {
            bindings.insert(conversation, (worker, at_us * 1_000 + u64::from(user)));
        }
        self.publish_binding(user);
    }

    /// The router publishes what a user's conversation is bound to: when a request of it begins, and when it ends.
    fn publish_binding(&mut self, user: u32) {
        let (at_ms, frontend, session) =
            (self.driver.now_ms(), self.frontend(user), self.driver.session(user));
        let conversation = self.driver.users.conversation(user);
        let Processes { wire, bindings, .. } = &mut self.driver.pools[self.pool];
        if let Some(&(worker, number)) = bindings.get(&conversation) {
            wire.session((at_ms, frontend), (&session, worker, number), self.out);
        }
    }

    /// The frontend publishes the trace of a request that ended.
    fn trace(&mut self, record: &RequestRecord) {
        let at = record.user as usize;
        let session = self.driver.config.session_affinity.then(|| self.driver.session(record.user));
        let prefill_worker_id = self.driver.worker_id(record.prefill_worker.unwrap_or(record.worker));
        let decode_worker_id = self.driver.worker_id(record.worker);
        // A prompt that is prefilled elsewhere was found there.
        let found_in = if self.role() == Role::Decode { 0 } else { self.pool };
        let (overlap_blocks, at_us) = (self.driver.pools[found_in].overlaps[at], self.driver.now_unix_us());
        let Driver { config, users, pools, .. } = &mut *self.driver;
        let Processes { pool, request_ids, wire, .. } = &mut pools[self.pool];
        let size = config.block_size_tokens;
        let trace = RequestTrace::new(&TraceInput {
            at_us,
            e2e_us: record.e2e_us - record.outside_us,
            ttft_us: record.ttft_us.saturating_sub(record.outside_us),
            request_id: &request_ids[at],
            model: pool.model.display_name,
            session_id: session.as_deref(),
            isl_tokens: record.isl_tokens,
            osl_tokens: record.osl_tokens,
            cached_tokens: record.cached_tokens,
            overlap_blocks,
            prefill_worker_id,
            decode_worker_id,
            block_size_tokens: size,
            prompt: &users.routed_blocks(record.user)[..(record.isl_tokens / size) as usize],
        });
        wire.trace(record.finished_at_ms, &trace, self.out);
    }

    /// A part of a request is done, and with its last part the request.
    fn log_served(&mut self, user: u32, served: &Served) {
        let &Served { worker, job, ttft_us, e2e_us, .. } = served;
        let elsewhere_us = elsewhere_us(self.role());
        let prefill = self.driver.requests[user as usize].prefill;
        let prefill_worker = prefill.map(|part| self.driver.worker_id(part.worker));
        self.log(user, |here, about, out| {
            let worker_id = here.wire.worker_id(worker);
            let overlap_blocks = here.overlaps[user as usize];
            here.log.routed(about, (worker_id, overlap_blocks), LoggedOutcome::Success, out);
            if here.pool.role != Role::Prefill {
                let measured = Measured {
                    isl_tokens: job.isl_tokens,
                    osl_tokens: job.osl_tokens,
                    ttft_us: ttft_us + elsewhere_us,
                    e2e_us: e2e_us + elsewhere_us,
                    prefill_worker_id: prefill_worker.unwrap_or(worker_id),
                    decode_worker_id: worker_id,
                };
                here.log.responded(about, &measured, out);
            }
        });
    }

    /// A request failed, here first or because it failed elsewhere.
    fn log_failed(&mut self, user: u32, worker: u16, failure: Failure, is_first: bool) {
        let outcome = match failure {
            Failure::Disconnected => LoggedOutcome::Disconnected,
            Failure::Refused => LoggedOutcome::CannotConnect,
            Failure::FrontendGone => return,
        };
        if is_first {
            self.log(user, |here, about, out| {
                let worker_id = here.wire.worker_id(worker);
                here.log.routed(about, (worker_id, here.overlaps[user as usize]), outcome, out);
                here.log.gave_up(about, worker_id, outcome, out);
            });
        }
    }

    /// A request failed in this pool, and is to end in the others that have a part in it.
    fn breaks(&mut self, user: u32, failure: Failure) {
        self.driver.requests[user as usize].has_failed = true;
        if self.driver.config.topology == Topology::Disaggregated {
            self.driver.broken.push((self.pool, user, failure));
        }
    }

    /// A user whose request is over in all pools goes on: with the next message, or once more with this one.
    fn goes_on(&mut self, user: u32) {
        let driver = &mut *self.driver;
        if driver.requests[user as usize].has_failed {
            // Not all of them try again at once.
            let again_us = RETRY_US + driver.jitter.random_range(0..RETRY_JITTER_US);
            driver.agenda.after(again_us, Event::Arrival(user));
            return;
        }
        let back_us = timing::FIRST_TOKEN_BACK_US;
        match driver.users.receive_response(user) {
            Some(think_ms) => {
                driver.agenda.after(back_us + u64::from(think_ms) * 1_000, Event::Send(user));
            }
            None => {
                driver.end_conversation(user);
                driver.agenda.after(back_us, Event::Arrival(user));
            }
        }
    }
}

impl RequestTexts for Observed<'_, '_> {
    fn blocks(&self, request: u32) -> &[Block] {
        text_of(&self.driver.users, &self.driver.pools[self.pool].pool.config, request)
    }
}

/// A user has one request at a time, known by the user's number.
impl ServingContext for Observed<'_, '_> {
    fn now_us(&self) -> u64 {
        self.driver.agenda.now_us()
    }

    fn job(&self, user: u32) -> Job {
        let job = self.driver.users.job(user);
        match self.role() {
            // The first token comes of the prompt's KV.
            Role::Prefill => Job { osl_tokens: 1, max_output_tokens: 1, ..job },
            Role::Decode => Job { is_prefilled: true, ..job },
            Role::Aggregated => job,
        }
    }

    fn step_begun(&mut self, worker: u16, duration_us: u64) {
        let worker = self.of_all(worker);
        self.driver.agenda.after(duration_us, Event::StepEnd(worker));
    }

    fn routed(
        &mut self,
        router: &Router,
        engines: &[Engine],
        user: u32,
        choice: Choice,
        prefill_tokens: u64,
    ) {
        let of_all = self.of_all(choice.worker);
        if self.role() == Role::Decode {
            self.driver.requests[user as usize].open += 1;
        } else {
            self.driver.report.routed_total += 1;
        }
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.routed(of_all));
        if router.is_kv() {
            self.driver.name_request(self.pool, user);
            self.record_choice((router, engines), user, choice, prefill_tokens);
        } else if self.release() == Release::V1_6 {
            self.driver.name_request(self.pool, user);
            self.log(user, |here, about, out| {
                here.log.took_turn(about, here.wire.worker_id(choice.worker), out);
            });
        }
    }

    fn prefilled(&mut self, router: &Router, user: u32, first: &FirstToken) {
        let FirstToken { worker, isl_tokens, cached_tokens, ttft_us } = *first;
        let (frontend, role, of_all) = (self.frontend(user), self.role(), self.of_all(worker));
        let prefill = self.driver.requests[user as usize].prefill;
        if let Some(metrics) = &mut self.driver.metrics {
            if role != Role::Decode {
                metrics.prefilled(of_all, (isl_tokens, cached_tokens));
            }
            if role != Role::Prefill {
                let cached_tokens = prefill.map_or(cached_tokens, |part| part.cached_tokens);
                let ttft_us = ttft_us + elsewhere_us(role);
                metrics.first_token(frontend, self.pool, ttft_us, (isl_tokens, cached_tokens));
            }
        }
        self.moment_ended(worker);
        // From 1.5 on workers publish the first token, and the router its own steps.
        if self.release() == Release::V1_6 && role != Role::Prefill {
            self.sequence(router, (Reporter::Worker, worker), user, Step::MarkPrefillCompleted);
        }
        if role != Role::Decode {
            self.sequence(router, (Reporter::Router, worker), user, Step::MarkPrefillCompleted);
        }
        self.router_load(router, worker, user);
    }

    fn transfer_begun(&mut self, user: u32) {
        let transfer_us = timing::transfer_us(self.job(user).isl_tokens);
        self.driver.agenda.after(transfer_us, Event::Transferred(user));
    }

    fn moment_ended(&mut self, worker: u16) {
        let at_ms = self.driver.now_ms();
        self.driver.pools[self.pool].wire.flush(at_ms, worker, self.out);
    }

    fn stored(&mut self, worker: u16, user: u32, from: u32, to: u32) -> Delivery {
        let (at_ms, now_us, of_all) = (self.driver.now_ms(), self.now_us(), self.of_all(worker));
        self.driver.report.stored_blocks_total[usize::from(of_all)] += u64::from(to - from);
        if !self.here().pool.publishes_events() {
            return Delivery::Unpublished;
        }
        let delivery = self.here().faults.stored(now_us, worker, (to - from) as usize);
        self.publish_stored((at_ms, worker, Tier::Device), user, from..to, delivery);
        fault_events::stored(self, worker, (user, from as usize..to as usize), delivery);
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.event(self.pool, true, delivery));
        delivery
    }

    fn evicted(&mut self, worker: u16, hash: BlockHash) -> Delivery {
        let (at_ms, now_us, of_all) = (self.driver.now_ms(), self.now_us(), self.of_all(worker));
        self.driver.report.evicted_blocks_total[usize::from(of_all)] += 1;
        let here = &mut self.driver.pools[self.pool];
        if !here.pool.publishes_events() {
            return Delivery::Unpublished;
        }
        let delivery = here.faults.removed(now_us, worker);
        here.wire.removed((at_ms, worker, Tier::Device), hash, delivery, self.out);
        fault_events::removed(self, worker, hash, delivery);
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.event(self.pool, false, delivery));
        delivery
    }

    fn host_stored(&mut self, worker: u16, user: u32, from: u32, to: u32) -> Delivery {
        let (at_ms, now_us) = (self.driver.now_ms(), self.now_us());
        let delivery = self.here().faults.stored(now_us, worker, (to - from) as usize);
        self.publish_stored((at_ms, worker, Tier::Host), user, from..to, delivery);
        fault_events::missed(self, worker, delivery);
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.event(self.pool, true, delivery));
        delivery
    }

    fn host_evicted(&mut self, worker: u16, hash: BlockHash) -> Delivery {
        let (at_ms, now_us) = (self.driver.now_ms(), self.now_us());
        let here = &mut self.driver.pools[self.pool];
        let delivery = here.faults.removed(now_us, worker);
        here.wire.removed((at_ms, worker, Tier::Host), hash, delivery, self.out);
        fault_events::missed(self, worker, delivery);
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.event(self.pool, false, delivery));
        delivery
    }

    fn rejected(&mut self, worker: u16, rejected: Rejected) {
        if matches!(rejected, Rejected::Store { .. }) {
            self.driver.metrics.iter_mut().for_each(|metrics| metrics.rejected(self.pool));
        }
        fault_events::rejected(self, worker, rejected);
    }

    fn stepped(&mut self, worker: u16, engine: &Engine) {
        let of_all = self.of_all(worker);
        let Driver { metrics, pools, agenda, .. } = &mut *self.driver;
        if let Some(metrics) = metrics {
            let faults = &pools[self.pool].faults;
            let frontends = engine.continued().map(|user| faults.frontend(user));
            metrics.stepped(of_all, agenda.now_us(), self.pool, frontends);
        }
    }

    fn failed(&mut self, router: &Router, worker: u16, user: u32, failure: Failure) {
        self.sequence(router, (Reporter::Router, worker), user, Step::Free);
        self.router_load(router, worker, user);
        let frontend = self.frontend(user);
        let (is_first, is_over) =
            (!self.driver.requests[user as usize].has_failed, self.driver.is_over(user));
        if is_first || self.driver.config.topology == Topology::TwoModels {
            self.driver.report.failed_total += 1;
            self.driver.metrics.iter_mut().for_each(|metrics| metrics.failed(frontend, self.pool));
        }
        self.breaks(user, failure);
        if is_over {
            self.goes_on(user);
        }
        match self.release() {
            Release::V0_9 => fault_events::failed(self, failure),
            Release::V1_6 => self.log_failed(user, worker, failure, is_first),
        }
    }

    fn routed_blocks(&self, user: u32) -> &[Block] {
        self.driver.users.routed_blocks(user)
    }

    fn frontend(&self, user: u32) -> u8 {
        self.driver.frontend(user)
    }

    fn cleared(&mut self, worker: u16) {
        let at_ms = self.driver.now_ms();
        let Processes { pool, wire, .. } = &mut self.driver.pools[self.pool];
        if !pool.publishes_events() {
            return;
        }
        wire.cleared((at_ms, worker, Tier::Device), self.out);
        if pool.host_blocks() > 0 {
            wire.cleared((at_ms, worker, Tier::Host), self.out);
        }
    }

    fn forced_worker(&self, user: u32) -> ForcedWorker {
        if let Some(worker) = self.bound_to(user) {
            return ForcedWorker::To(worker);
        }
        self.driver.pools[self.pool].faults.forced_worker(self.now_us(), self.driver.users.conversation(user))
    }

    fn finished(&mut self, router: &Router, user: u32, served: &Served) {
        let role = self.role();
        if self.release() == Release::V1_6 && router.is_kv() {
            self.log_served(user, served);
        }
        self.sequence(router, (Reporter::Router, served.worker), user, Step::Free);
        self.router_load(router, served.worker, user);
        let (of_all, now_us) = (self.of_all(served.worker), self.now_us());
        self.driver.metrics.iter_mut().for_each(|metrics| metrics.served(of_all, served));
        let is_over = self.driver.is_over(user);
        if role == Role::Prefill {
            let Served { cached_tokens, queued_us, .. } = *served;
            let part = PrefillPart { worker: of_all, cached_tokens, queued_us };
            self.driver.requests[user as usize].prefill = Some(part);
            return;
        }
        let prefill = self.driver.requests[user as usize].prefill;
        let frontend = self.frontend(user);
        let driver = &mut *self.driver;
        let (ttft_us, e2e_us) = (served.ttft_us + elsewhere_us(role), served.e2e_us + elsewhere_us(role));
        driver.metrics.iter_mut().for_each(|metrics| {
            metrics.finished(frontend, self.pool, (of_all, now_us), served.job.osl_tokens, e2e_us);
        });
        let back_us = timing::FIRST_TOKEN_BACK_US;
        let sent_us = driver.agenda.now_us() + back_us - e2e_us;
        let record = RequestRecord {
            user,
            sent_at_ms: driver.at_ms(sent_us),
            finished_at_ms: driver.now_ms(),
            worker: of_all,
            prefill_worker: prefill.map(|part| part.worker),
            isl_tokens: served.job.isl_tokens,
            osl_tokens: served.job.osl_tokens,
            cached_tokens: prefill.map_or(served.cached_tokens, |part| part.cached_tokens),
            ttft_us,
            outside_us: served.e2e_us - served.on_worker_us,
            queued_us: served.queued_us + prefill.map_or(0, |part| part.queued_us),
            e2e_us,
        };
        driver.report.finished(record);
        if self.driver.config.traces {
            self.trace(&record);
        }
        self.publish_binding(user);
        if is_over {
            self.goes_on(user);
        }
    }
}

/// A user's text in blocks as the engines of a pool make them: those that the router makes, unless they are set up with
/// another size.
fn text_of<'a>(users: &'a Users, pool: &Config, user: u32) -> &'a [Block] {
    let is_agreed = pool.engine_block_size_tokens() == pool.block_size_tokens;
    if is_agreed { users.routed_blocks(user) } else { users.blocks(user) }
}

/// What a user waited for before a request came to the pool that serves it.
fn elsewhere_us(role: Role) -> u64 {
    if role == Role::Decode { DECODE_ROUTED_US } else { 0 }
}
