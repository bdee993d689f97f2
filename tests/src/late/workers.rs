//! What recorded workers answer to queries at each time of the recording.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use radixscope_captures::{RecordedQuery, Recording};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::fake_worker::{Call, Script, whole};

#[derive(Clone)]
pub(super) struct Workers(Arc<Mutex<State>>);

struct State {
    /// Recorded time.
    now_s: f64,
    is_whole: bool,
    /// Queries for all blocks, by worker, oldest first.
    dumps: BTreeMap<u64, Vec<RecordedQuery>>,
    /// All events that workers published so far, received or not, with their ids.
    published: BTreeMap<u64, Vec<(u64, Value)>>,
    /// Answers that wait for their recorded time.
    held: Vec<(f64, Arc<Semaphore>)>,
    queried: Vec<(u64, Option<u64>)>,
}

impl Workers {
    /// `is_whole`: all their events are published again.
    pub(super) fn of(recording: &Recording, is_whole: bool) -> Self {
        let mut dumps: BTreeMap<u64, Vec<RecordedQuery>> = BTreeMap::new();
        for query in recording.queries().filter(|query| query.kind == "dump") {
            dumps.entry(query.worker_id).or_default().push(query);
        }
        Self(Arc::new(Mutex::new(State {
            now_s: f64::NEG_INFINITY,
            is_whole,
            dumps,
            published: BTreeMap::new(),
            held: Vec::new(),
            queried: Vec::new(),
        })))
    }

    /// When the first query of this occasion was asked, and of how many workers there is one.
    pub(super) fn first(&self, tag: &str) -> (f64, usize) {
        let state = self.state();
        let firsts = state.dumps.values().filter_map(|of| of.iter().find(|query| query.tag == tag));
        firsts.fold((f64::INFINITY, 0), |(first, count), query| (first.min(query.asked_s), count + 1))
    }

    /// The recording goes on until then: answers that were given by then are given now.
    pub(super) fn pass(&self, now_s: f64) {
        let mut state = self.state();
        state.now_s = now_s;
        state.held.retain(|(due_s, held)| {
            let is_due = *due_s <= now_s;
            if is_due {
                held.add_permits(1);
            }
            !is_due
        });
    }

    /// A worker, which it gives, says these events.
    pub(super) fn published(&self, events: Value) -> u64 {
        let mut state = self.state();
        let events = match events {
            Value::Array(events) => events,
            one => vec![one],
        };
        let worker = events[0]["worker_id"].as_u64().expect("an id");
        for event in events {
            assert_eq!(event["worker_id"], worker, "a publisher is one worker's");
            let number = event["event"]["event_id"].as_u64().expect("a number");
            state.published.entry(worker).or_default().push((number, event));
        }
        worker
    }

    /// The last event of each worker so far.
    pub(super) fn last_events(&self) -> Vec<(u64, u64)> {
        let state = self.state();
        let last =
            |published: &Vec<(u64, Value)>| published.iter().map(|(number, _)| *number).max().unwrap_or(0);
        state.published.iter().map(|(worker, published)| (*worker, last(published))).collect()
    }

    pub(super) fn queried(&self) -> Vec<(u64, Option<u64>)> {
        self.state().queried.clone()
    }

    pub(super) fn response(&self, call: &Call) -> Script {
        let query: Value = match call.is_msgpack() {
            true => rmp_serde::from_slice(&call.body).expect("MessagePack"),
            false => call.query(),
        };
        let worker = query["worker_id"].as_u64().expect("an id");
        let start = query["start_event_id"].as_u64();
        let mut state = self.state();
        state.queried.push((worker, start));
        match start {
            Some(start) => state.events(worker, start, call.is_msgpack()),
            None => state.dump(worker, call),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The response that was given next, when it was given.
    fn dump(&mut self, worker: u64, call: &Call) -> Script {
        if self.is_whole {
            return self.retained(worker, call.is_msgpack());
        }
        let mut dumps = self.dumps.get(&worker).into_iter().flatten();
        let Some(next) = dumps.find(|query| query.asked_s >= self.now_s) else {
            return Script::refusal("nothing was recorded that it could answer");
        };
        let address = next.instance["transport"]["tcp"].as_str().expect("an address");
        let path = address.split_once('/').map(|(_, path)| path);
        assert_eq!(Some(&*call.path), path, "the endpoint that was asked");
        assert_eq!(call.is_msgpack(), !next.is_json, "as its entry says");
        let held = Arc::new(Semaphore::new(0));
        self.held.push((next.answered_s, Arc::clone(&held)));
        Script::response(next.response()).held(&held)
    }

    /// What a worker answers that was asked before its first event, and keeps that answer: all events since.
    fn retained(&self, worker: u64, is_msgpack: bool) -> Script {
        let published = self.published.get(&worker).map_or(&[][..], Vec::as_slice);
        let events: Vec<&Value> = published.iter().map(|(_, event)| event).collect();
        let last = published.last().map_or(0, |(number, _)| *number);
        let dump = json!({"events": events, "last_event_id": last, "reset_scope": "all"});
        item(&json!({ "TreeDump": dump }), is_msgpack)
    }

    /// Its events from one on.
    fn events(&self, worker: u64, start: u64, is_msgpack: bool) -> Script {
        let published = self.published.get(&worker).map_or(&[][..], Vec::as_slice);
        let newest = published.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let events: Vec<&Value> =
            published.iter().filter(|(number, _)| *number >= start).map(|(_, event)| event).collect();
        let response = match events.is_empty() {
            true => {
                json!({"TooNew": {"requested_start": start, "requested_end": newest, "newest_available": newest}})
            }
            false => json!({"Events": {"events": events, "last_event_id": newest}}),
        };
        item(&response, is_msgpack)
    }
}

fn item(response: &Value, is_msgpack: bool) -> Script {
    let item = json!({"data": response, "complete_final": false});
    let item = match is_msgpack {
        true => rmp_serde::to_vec_named(&item).expect("plain data"),
        false => item.to_string().into_bytes(),
    };
    Script::response(whole(&item, is_msgpack))
}
