//! Breaks, losses and answers in every order: a worker of which everything is said to be known is as it is known.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use KnowledgeWhy::{ConnectionBroke, Dump, EventsLost, History, NoEvents};
use TreeKnowledge::{Complete, Partial};

/// Events published before anybody listens.
const BEFORE: u64 = 40;
/// Events that a worker keeps to answer by number.
const KEPT_EVENTS: u64 = 6;
/// A worker's index is behind what it published by less.
const LAG_MS: u64 = 500;
/// Names of blocks. Few, so that they come and go.
const BLOCKS: u64 = 6;

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A block comes or goes.
    Publish {
        block: u64,
    },
    /// The same, in a message that is lost.
    PublishUnheard {
        block: u64,
    },
    Cut,
    /// The source notices that its connection is lost.
    Notice,
    /// The connection is there again.
    Mend,
    Pass {
        ms: u64,
    },
    Request,
    /// The worker reads the query; its index is this many events behind at most.
    Read {
        behind: u64,
    },
    /// Its answer arrives.
    Answer,
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (1..=BLOCKS).prop_map(|block| Step::Publish { block }),
        1 => (1..=BLOCKS).prop_map(|block| Step::PublishUnheard { block }),
        2 => Just(Step::Cut),
        1 => Just(Step::Notice),
        3 => Just(Step::Mend),
        3 => prop_oneof![Just(50_u64), Just(500), Just(1_000)].prop_map(|ms| Step::Pass { ms }),
        2 => Just(Step::Request),
        4 => (0_u64..4).prop_map(|behind| Step::Read { behind }),
        4 => Just(Step::Answer),
        1 => Just(Step::Fail),
    ]
}

/// A worker, those who listen to it, and what is between them.
struct World {
    attached: Attached,
    /// Blocks that come or go, one an event, and when it was published.
    events: Vec<(u64, u64)>,
    is_up: bool,
    is_noticed: bool,
    /// Events that were published when the connection was there again.
    at_mend: u64,
    /// The query that is awaited, and what the worker read of it.
    open: Option<(u64, Option<TreeAnswer>)>,
    seen: usize,
    /// A message was lost, and nothing could show it yet: looks that are left until something must.
    unseen: Option<u32>,
}

impl World {
    fn new(is_old: bool) -> Self {
        let attached = if is_old { Attached::of_0_9() } else { Attached::new() };
        let events = (0..BEFORE).map(|n| (n * n % BLOCKS + 1, 0)).collect();
        let mut world = Self {
            attached,
            events,
            is_up: true,
            is_noticed: false,
            at_mend: 0,
            open: None,
            seen: 0,
            unseen: None,
        };
        world.attached.subscribe();
        world
    }

    fn published(&self) -> u64 {
        self.events.len() as u64
    }

    /// What it holds after so many events.
    fn held(&self, events: u64) -> BTreeSet<u64> {
        let mut held = BTreeSet::new();
        for (block, _) in &self.events[..events as usize] {
            if !held.remove(block) {
                held.insert(*block);
            }
        }
        held
    }

    fn event(&self, id: u64) -> Value {
        let block = self.events[id as usize - 1].0;
        if self.held(id).contains(&block) { stored(id, None, &[block]) } else { removed(id, &[block]) }
    }

    fn publish(&mut self, block: u64, is_heard: bool) {
        self.events.push((block, self.attached.now));
        if is_heard && self.is_up {
            let event = self.event(self.published());
            self.attached.hear(&[event]);
            // Numbers of events tell at once, those of messages after they might have come late.
            self.unseen = self.unseen.and(if self.attached.is_old { Some(2) } else { None });
        } else {
            self.attached.sequence += 1;
            if self.is_up {
                self.unseen = Some(u32::MAX);
            }
        }
    }

    fn mend(&mut self) {
        if !self.is_up {
            (self.is_up, self.is_noticed, self.at_mend) = (true, false, self.published());
            self.attached.break_connection();
            self.attached.subscribe();
        }
    }

    fn read(&mut self, behind: u64) {
        let settled = self.events.iter().filter(|(_, at)| at + LAG_MS <= self.attached.now).count() as u64;
        let index = self.published().saturating_sub(behind).max(settled).max(self.at_mend);
        let Some((query, answer @ None)) = &self.open else { return };
        let query = self.attached.queries.iter().find(|asked| asked.id == *query).expect("asked");
        let _ = answer;
        let first_kept = index.saturating_sub(KEPT_EVENTS) + 1;
        let number = |id| if self.attached.is_old { None } else { Some(id) };
        let read = match query.start_event_id {
            Some(from) if from > index => TreeAnswer::TooNew { newest_available: index },
            Some(from) if from >= first_kept => {
                let events: Vec<Value> = (from..=index).map(|id| self.event(id)).collect();
                TreeAnswer::Events { events: events_of(WORKER, &events), last_event_id: number(index) }
            }
            _ => {
                let blocks = self.held(index).into_iter().enumerate();
                let blocks: Vec<Value> = blocks.map(|(n, block)| stored(n as u64, None, &[block])).collect();
                // It reads its number first.
                dump(number(index.saturating_sub(behind % 2)), &blocks)
            }
        };
        if let Some((_, answer)) = &mut self.open {
            *answer = Some(read);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish { block } => self.publish(block, true),
            Step::PublishUnheard { block } => self.publish(block, false),
            Step::Cut => self.is_up = false,
            Step::Notice if !self.is_up => {
                self.is_noticed = true;
                self.attached.unsubscribe();
            }
            Step::Mend => self.mend(),
            Step::Pass { ms } => {
                self.attached.pass(ms);
                self.unseen = self.unseen.map(|left| if left == u32::MAX { left } else { left - 1 });
                self.unseen = self.unseen.filter(|left| *left > 0);
            }
            Step::Request => {
                self.attached.intake.request_dump(Worker::new(WORKER, 0));
                self.attached.pass(0);
            }
            Step::Read { behind } => self.read(behind),
            Step::Answer => {
                if let Some((query, Some(answer))) = self.open.take_if(|(_, answer)| answer.is_some()) {
                    self.attached.answer_to(query, Ok(answer));
                }
            }
            Step::Fail => {
                if let Some((query, _)) = self.open.take() {
                    let failed = QueryFailed { why: QueryFault::NoCallback, words: "silence".to_owned() };
                    self.attached.answer_to(query, Err(failed));
                }
            }
            Step::Notice => {}
        }
        // The latest query is the only one that is not answered or given up.
        for query in &self.attached.queries[self.seen..] {
            self.open = Some((query.id, None));
        }
        self.seen = self.attached.queries.len();
        if let Some((query, _)) = &self.open
            && self.attached.cancelled.contains(query)
        {
            self.open = None;
        }
        self.check(step);
    }

    fn check(&self, step: Step) {
        if self.attached.cluster.workers().is_empty() || self.attached.knowledge().state != Complete {
            return;
        }
        assert!(self.is_up || !self.is_noticed, "complete without a connection, after {step:?}");
        if self.is_up && self.unseen.is_none() {
            let held: BTreeSet<u64> = self.attached.held().into_iter().map(|(block, _)| block).collect();
            let why = self.attached.knowledge().why;
            assert_eq!(held, self.held(self.published()), "complete ({why:?}), after {step:?}");
        }
    }

    /// With a connection that stays, and a worker that answers, everything is known.
    fn settle(&mut self) {
        self.mend();
        self.step(Step::Publish { block: 1 });
        for _ in 0..3 {
            self.step(Step::Pass { ms: 1_000 });
        }
        for _ in 0..4 {
            self.step(Step::Request);
            for _ in 0..3 {
                self.step(Step::Pass { ms: 300_000 });
                self.step(Step::Read { behind: 0 });
                self.step(Step::Answer);
            }
        }
        assert_eq!(self.attached.knowledge().state, Complete, "{:?}", self.attached.knowledge());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn complete_is_said_of_what_is(is_old: bool, steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new(is_old);
        steps.into_iter().for_each(|step| world.step(step));
        world.settle();
    }
}
