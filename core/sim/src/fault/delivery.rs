//! What becomes of KV events on their way from an engine to the router and to everybody else, and of requests on their
//! way to a worker.

use super::super::config::Config;
use super::super::tokens::mix;
use super::{Fault, FaultPlan, ForcedWorker};

/// One of so many events is lost on the way.
const LOST_EVERY: u64 = 100;
/// One of so many stored events of a prompt never leaves its engine.
const KEPT_EVERY: u64 = 12;
/// One of so many stored events is followed by a removal of an unknown block.
const UNKNOWN_REMOVAL_EVERY: u64 = 20;
/// Warnings of a worker's publisher about the block size, before it falls silent.
const SIZE_WARNINGS: usize = 3;
/// Share of the conversations that a hot worker gets, in percent.
const HOT_PERCENT: u64 = 70;
/// Share of the conversations that may go to a starved worker, in percent.
const STARVED_PERCENT: u64 = 3;
/// One of so many users talks to the second frontend.
const SECOND_FRONTEND_EVERY: u32 = 5;

/// What becomes of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// Everybody receives it.
    Whole,
    /// Everybody receives it, but for the router.
    PastTheRouter,
    /// Everybody receives it without its blocks.
    Emptied,
    /// Published, but received by no subscriber; the router queries the worker for it.
    Lost,
    /// It is never published.
    Unpublished,
}

impl Delivery {
    /// Whether the router receives it, be it empty.
    pub(crate) fn reaches_router(self) -> bool {
        matches!(self, Self::Whole | Self::Emptied | Self::Lost)
    }
}

/// The fault of a simulation at work.
#[derive(Debug)]
pub(crate) struct Faults {
    fault: Option<Fault>,
    after_us: u64,
    odd_worker: u16,
    /// Whether the router's index follows the events.
    router_follows: bool,
    events: u64,
    stores: u64,
    workers: Vec<WorkerDelivery>,
}

/// What is remembered of each worker.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerDelivery {
    /// Number of the first event that was lost and not missed yet.
    lost: Option<u64>,
    /// Warnings about the block size so far.
    size_warnings: usize,
}

impl Faults {
    pub(crate) fn new(config: &Config) -> Self {
        let plan = config.fault;
        Self {
            fault: plan.map(|plan| plan.fault),
            after_us: plan.map_or(0, |plan| plan.after_ms * 1_000),
            odd_worker: config.odd_worker(),
            router_follows: true,
            events: 0,
            stores: 0,
            workers: vec![WorkerDelivery::default(); usize::from(config.workers)],
        }
    }

    /// A fault begins now, or all is well again.
    pub(crate) fn set(&mut self, plan: Option<FaultPlan>, now_us: u64) {
        self.fault = plan.map(|plan| plan.fault);
        self.after_us = now_us;
        self.router_follows = true;
    }

    /// When something happens at once.
    pub(crate) fn strikes_us(&self) -> Option<u64> {
        let strikes = self.fault.is_some_and(Fault::ends_something) || self.fault == Some(Fault::Slow);
        strikes.then_some(self.after_us)
    }

    /// The fault, once it has begun.
    pub(crate) fn now(&self, now_us: u64) -> Option<Fault> {
        self.fault.filter(|_| now_us >= self.after_us)
    }

    /// From now on the router's index follows the events, or does not.
    pub(crate) fn router_follows(&mut self, follows: bool) {
        self.router_follows = follows;
    }

    /// Whether a router that begins now gets what a worker holds: from its events, or as its response to a query.
    pub(crate) fn router_gets(&self, now_us: u64, worker: u16) -> bool {
        match self.now(now_us) {
            Some(
                Fault::NoEvents
                | Fault::Approximate
                | Fault::BlockSize
                | Fault::BlockSizeOversize
                | Fault::BlockSizePartial,
            ) => false,
            Some(Fault::NoEventsOne | Fault::MixedPlanes | Fault::KillWorker | Fault::GhostWorker) => {
                worker != self.odd_worker
            }
            Some(Fault::RouterRestart) => self.router_follows,
            _ => true,
        }
    }

    /// How many warnings about the block size a worker's publisher writes for so many blocks.
    pub(crate) fn size_warnings(&mut self, worker: u16, blocks: usize) -> usize {
        let so_far = &mut self.workers[usize::from(worker)].size_warnings;
        let more = blocks.min(SIZE_WARNINGS - *so_far);
        *so_far += more;
        more
    }

    /// A worker published an event, which was `lost` with that number or came. Returns the first lost one that is missed
    /// now.
    pub(crate) fn gap(&mut self, worker: u16, lost: Option<u64>) -> Option<u64> {
        let before = &mut self.workers[usize::from(worker)].lost;
        if let Some(lost) = lost {
            before.get_or_insert(lost);
            return None;
        }
        before.take()
    }

    /// What becomes of a stored event of so many blocks.
    pub(crate) fn stored(&mut self, now_us: u64, worker: u16, blocks: usize) -> Delivery {
        match self.now(now_us) {
            Some(Fault::BlockSize | Fault::BlockSizePartial) => Delivery::Emptied,
            Some(Fault::BlockSizeOversize) => Delivery::Unpublished,
            // A block that decode filled has few descendants; a prompt's have many.
            Some(Fault::UnknownParents) if blocks > 1 => {
                self.stores += 1;
                let is_unpublished = self.stores.is_multiple_of(KEPT_EVERY);
                if is_unpublished { Delivery::Unpublished } else { Delivery::Whole }
            }
            other => self.any(other, worker),
        }
    }

    /// What becomes of a removed event.
    pub(crate) fn removed(&mut self, now_us: u64, worker: u16) -> Delivery {
        match self.now(now_us) {
            Some(Fault::BlockSizePartial) => Delivery::Unpublished,
            other => self.any(other, worker),
        }
    }

    fn any(&mut self, fault: Option<Fault>, worker: u16) -> Delivery {
        match fault {
            Some(Fault::NoEvents) => Delivery::Unpublished,
            Some(Fault::NoEventsOne) if worker == self.odd_worker => Delivery::Unpublished,
            Some(Fault::MixedPlanes) if worker == self.odd_worker => Delivery::PastTheRouter,
            Some(Fault::Approximate) => Delivery::PastTheRouter,
            Some(Fault::RouterRestart) if !self.router_follows => Delivery::PastTheRouter,
            Some(Fault::Gap) => {
                self.events += 1;
                if self.events.is_multiple_of(LOST_EVERY) { Delivery::Lost } else { Delivery::Whole }
            }
            _ => Delivery::Whole,
        }
    }

    /// The hash of a block that was never stored, if its removal is to follow a stored event.
    pub(crate) fn unknown_removal(&mut self, now_us: u64) -> Option<u64> {
        if self.now(now_us) != Some(Fault::UnknownRemovals) {
            return None;
        }
        self.stores += 1;
        self.stores.is_multiple_of(UNKNOWN_REMOVAL_EVERY).then(|| mix(self.stores))
    }

    /// Where the requests of a conversation go.
    pub(crate) fn forced_worker(&self, now_us: u64, conversation: u64) -> ForcedWorker {
        let draw = mix(conversation) % 100;
        match self.now(now_us) {
            Some(Fault::HotWorker) if draw < HOT_PERCENT => ForcedWorker::To(0),
            Some(Fault::StarvedWorker) if draw >= STARVED_PERCENT => ForcedWorker::NotTo(self.odd_worker),
            _ => ForcedWorker::Free,
        }
    }

    /// Which frontend a user talks to.
    pub(crate) fn frontend(&self, user: u32) -> u8 {
        let second = user % SECOND_FRONTEND_EVERY == SECOND_FRONTEND_EVERY - 1;
        u8::from(self.fault == Some(Fault::Replicas) && second)
    }
}
