//! Breaks, losses and answers in every order: a worker whose knowledge is `Complete` matches the tree.

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
    /// Its response arrives.
    Respond,
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
        4 => Just(Step::Respond),
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
    is_received: bool,
    /// Events that were published when the connection was there again.
    at_mend: u64,
    /// The query that is awaited, and what the worker read of it.
    open: Option<(u64, Option<TreeResponse>)>,
    seen: usize,
    /// A message was lost, and nothing could show it yet: looks that are left until something must.
    unseen: Option<u32>,
}

impl World {
    fn new(is_old: bool) -> Self {
        let (mut attached, endpoint) = match is_old {
            true => (Attached::of_0_9(), "worker_kv_indexer_query"),
            false => (Attached::new(), "worker_kv_query_source_abc"),
        };
        attached.list_worker(&[endpoint]);
        let events = (0..BEFORE).map(|n| (n * n % BLOCKS + 1, 0)).collect();
        let mut world = Self {
            attached,
            events,
            is_up: true,
            is_noticed: false,
            is_received: false,
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

    fn publish(&mut self, block: u64, is_received: bool) {
        self.events.push((block, self.attached.now));
        // A loss before its first message nothing would ever show.
        if self.is_up && (is_received || !self.is_received) {
            self.is_received = true;
            let event = self.event(self.published());
            self.attached.receive(&[event]);
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
        let final_events =
            self.events.iter().filter(|(_, at)| at + LAG_MS <= self.attached.now).count() as u64;
        let index = self.published().saturating_sub(behind).max(final_events).max(self.at_mend);
        let Some((query, response @ None)) = &self.open else { return };
        let query = self.attached.queries.iter().find(|asked| asked.id == *query).expect("asked");
        let _ = response;
        let first_kept = index.saturating_sub(KEPT_EVENTS) + 1;
        let number = |id| if self.attached.is_old { None } else { Some(id) };
        let read = match query.start_event_id {
            Some(from) if from > index => TreeResponse::TooNew { newest_available: index },
            Some(from) if from >= first_kept => {
                let events: Vec<Value> = (from..=index).map(|id| self.event(id)).collect();
                TreeResponse::Events { events: events_of(WORKER, &events), last_event_id: number(index) }
            }
            _ => {
                let blocks = self.held(index).into_iter().enumerate();
                let blocks: Vec<Value> = blocks.map(|(n, block)| stored(n as u64, None, &[block])).collect();
                // It reads its number first.
                dump(number(index.saturating_sub(behind % 2)), &blocks)
            }
        };
        if let Some((_, response)) = &mut self.open {
            *response = Some(read);
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
            Step::Respond => {
                if let Some((query, Some(response))) = self.open.take_if(|(_, response)| response.is_some()) {
                    self.attached.respond_to(query, Ok(response));
                }
            }
            Step::Fail => {
                if let Some((query, _)) = self.open.take() {
                    let failed = QueryFailed { why: QueryFault::NoCallback, detail: "silence".to_owned() };
                    self.attached.respond_to(query, Err(failed));
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
    fn recover(&mut self) {
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
                self.step(Step::Respond);
            }
        }
        assert_eq!(self.attached.knowledge().state, Complete, "{:?}", self.attached.knowledge());
    }
}

#[test]
fn no_worker_is_complete_while_the_connection_is_lost() {
    let mut attached = Attached::new();
    attached.receive(&[stored(1, None, &[1])]);
    attached.unsubscribe();
    attached.knows(Partial, ConnectionBroke);
    attached.pass(1_000);
    assert_eq!(attached.queries, [], "what it answered would be older than what is missed");
    attached.break_connection();
    attached.receive(&[stored(2, None, &[2])]);
    attached.knows(Complete, KnowledgeWhy::FromFirstEvent);
}

#[test]
fn what_was_answered_before_a_break_was_noticed_is_not_all() {
    let mut attached = Attached::of_0_9();
    attached.receive(&[stored(50, None, &[5])]);
    attached.request();
    attached.pass(500);
    attached.respond(dump(None, &[stored(0, None, &[5])]));
    attached.knows(Complete, Dump);
    // Two messages are lost with the connection, which breaks once more after the next one.
    attached.sequence += 2;
    attached.break_connection();
    attached.receive(&[stored(53, None, &[6])]);
    attached.knows(Partial, EventsLost);
    attached.break_connection();
    attached.receive(&[stored(54, None, &[7])]).pass(1_000).pass(1_000).pass(1_000);
    attached.knows(Partial, EventsLost);
    attached.request();
    attached.pass(500);
    attached.respond(dump(None, &[stored(0, None, &[7])]));
    attached.knows(Complete, Dump);
    assert_eq!(attached.held(), [(7, None)]);
    attached.pass(1_000);
    assert_eq!(attached.cluster.sources()[0].missed.iter().map(|missed| missed.lost()).sum::<u64>(), 0);
}

#[test]
fn a_response_from_before_the_reconnection_is_not_complete() {
    let mut attached = Attached::of_0_9();
    attached.list_worker(&["worker_kv_indexer_query"]);
    attached.subscribe();
    attached.request();
    attached.pass(500);
    // It reads its blocks, sends another event that is not received, and then the connection is there again.
    attached.sequence += 1;
    attached.break_connection();
    attached.subscribe();
    attached.respond(dump(None, &[stored(0, None, &[5])]));
    attached.receive(&[stored(52, None, &[6])]);
    attached.knows(Partial, NoEvents);
    attached.pass(500).pass(500);
    attached.respond(dump(None, &[stored(0, None, &[5, 7, 6])]));
    attached.knows(Complete, Dump);
}

#[test]
fn a_loss_that_is_certain_only_after_a_response_that_holds_it_is_none() {
    let mut attached = Attached::of_0_9();
    attached.receive(&[stored(50, None, &[5])]);
    attached.sequence += 1;
    attached.receive(&[stored(52, None, &[6])]);
    assert!(attached.intake.request_dump(Worker::new(WORKER, 0)));
    attached.pass(0).pass(500);
    attached.respond(dump(None, &[stored(0, None, &[6])]));
    attached.knows(Complete, Dump);
    attached.pass(1_000).pass(1_000).pass(1_000);
    attached.knows(Complete, Dump);
}

#[test]
fn a_worker_that_was_queried_before_it_spoke_is_queried_again_after_a_break() {
    let mut attached = Attached::new();
    attached.list_worker(&["worker_kv_query_source_abc"]);
    attached.subscribe();
    attached.respond(dump(Some(70), &[stored(0, None, &[1])]));
    attached.knows(Partial, NoEvents);
    attached.unsubscribe();
    attached.break_connection();
    attached.subscribe();
    assert_eq!(attached.starts(), [None, None]);
    attached.knows(Partial, NoEvents);
}

#[test]
fn a_stream_that_is_read_on_after_a_break_has_lost_nothing() {
    let mut attached = Attached::with_endpoints(&[]);
    attached.receive_in_stream(&[stored(0, None, &[1]), stored(1, None, &[2])]);
    attached.knows(Complete, History);
    attached.unsubscribe();
    attached.knows(Partial, ConnectionBroke);
    attached.break_connection();
    attached.subscribe();
    attached.knows(Partial, ConnectionBroke);
    attached.receive_in_stream(&[removed(2, &[1])]);
    attached.knows(Complete, History);
    // The server is another one, and its stream is not what was read.
    let mut missing = Missing::default();
    let at = Break { since_ms: Millis(attached.now - 1_000), until_ms: Millis(attached.now) };
    missing.broke(at);
    missing.broke_for_good(radixscope_model::record::Topic::KvEvents, at);
    attached.intake.missing(attached.source, &missing);
    attached.receive_in_stream(&[removed(3, &[2])]);
    attached.knows(Partial, EventsLost);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn only_complete_workers_are_reported_complete(is_old: bool, steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new(is_old);
        steps.into_iter().for_each(|step| world.step(step));
        world.recover();
    }
}
