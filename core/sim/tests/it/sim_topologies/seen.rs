//! What an observer makes of the messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use radixscope_dynamo::active_sequence::{self, AddRequest, SequenceChange};
use radixscope_dynamo::envelope::{self, Body};
use radixscope_dynamo::kv_event::{KvData, KvEvents, StorageTier};
use radixscope_dynamo::load::ActiveLoad;
use radixscope_dynamo::log_line::{self, LogEvent, LogRecord};
use radixscope_dynamo::subject;
use radixscope_model::record::Topic;
use radixscope_sim::{Channel, Config, Topology};

use crate::observed;
pub(crate) use crate::observed::{Message, START, run};

pub(crate) fn small(topology: Topology) -> Config {
    Config { topology, ..observed::small() }
}

/// What a worker holds, by its events alone.
#[derive(Default, Debug)]
pub(crate) struct WorkerCache {
    pub(crate) device: HashSet<u64>,
    pub(crate) host: HashSet<u64>,
    pub(crate) most_device: usize,
    pub(crate) most_host: usize,
    /// Stored events without a block.
    pub(crate) empty: u32,
    pub(crate) host_removed: u32,
    last_event_id: u64,
}

/// A step in the life of a request.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) at_ms: u64,
    pub(crate) component: String,
    pub(crate) request_id: String,
    pub(crate) worker: u64,
    pub(crate) by_worker: bool,
    pub(crate) step: SequenceChange,
}

impl Reported {
    /// As the reference writes it: component, step, and who reports it.
    pub(crate) fn in_text(&self) -> String {
        let step = match self.step {
            SequenceChange::Added(_) => "AddRequest",
            SequenceChange::PrefillCompleted => "MarkPrefillCompleted",
            SequenceChange::Freed => "Free",
        };
        format!("{} {step} {}", self.component, if self.by_worker { "W" } else { "R" })
    }

    pub(crate) fn added(&self) -> Option<&AddRequest> {
        match &self.step {
            SequenceChange::Added(added) => Some(added),
            _ => None,
        }
    }
}

/// A worker's own load.
#[derive(Debug)]
pub(crate) struct OwnLoad {
    pub(crate) component: String,
    pub(crate) worker: u64,
    pub(crate) used_blocks: u64,
}

/// Everything reported, folded.
#[derive(Default, Debug)]
pub(crate) struct Folded {
    pub(crate) held: BTreeMap<u64, WorkerCache>,
    pub(crate) reported: Vec<Reported>,
    pub(crate) loads: Vec<OwnLoad>,
    pub(crate) lines: Vec<LogRecord<'static>>,
    /// Next number of each publisher on each subject.
    pub(crate) envelopes: HashMap<(u64, String), u64>,
    /// Whether numbers may jump.
    pub(crate) has_gaps: bool,
}

impl Folded {
    pub(crate) fn of(messages: &[Message]) -> Self {
        let mut seen = Self::default();
        messages.iter().for_each(|message| seen.fold(message));
        seen
    }

    /// Takes the next message.
    pub(crate) fn fold(&mut self, message: &Message) {
        match message.channel {
            Channel::Nats => self.fold_published(message),
            Channel::Log => {
                let line = log_line::decode(&message.payload).expect("understood");
                self.lines.extend(line.map(LogRecord::into_owned));
            }
            Channel::Discovery | Channel::Deletion | Channel::Metrics => {}
        }
    }

    fn fold_published(&mut self, message: &Message) {
        let subject = subject::parse(&message.name).expect("a subject of Dynamo");
        let opened = envelope::open(&message.payload).expect("understood");
        let (body, format) = opened.payload();
        if let Body::Enveloped(envelope) = &opened {
            let key = (envelope.publisher_id, message.name.clone());
            let next = self.envelopes.entry(key).or_default();
            assert!(envelope.sequence == *next || self.has_gaps, "{}", message.name);
            *next = envelope.sequence + 1;
            assert_eq!(envelope.published_at.0, message.at_ms);
        }
        let component = subject.component.to_string();
        match subject.topic {
            Topic::KvEvents => {
                let mut events = KvEvents::default();
                events.decode(body, format).expect("understood");
                self.fold_events(&events);
            }
            Topic::ActiveSequences => {
                let mut steps = Vec::new();
                active_sequence::decode(body, format, &mut steps).expect("understood");
                self.reported.extend(steps.into_iter().map(|step| Reported {
                    at_ms: message.at_ms,
                    component: component.clone(),
                    request_id: step.request_id.into_owned(),
                    worker: step.worker.id.0,
                    by_worker: step.by_worker,
                    step: step.step,
                }));
            }
            Topic::KvMetrics => {
                let load = ActiveLoad::decode(body, format).expect("understood");
                assert_eq!((load.active_decode_blocks, load.active_prefill_tokens), (None, None));
                let used_blocks = load.kv_used_blocks.expect("a worker's own");
                self.loads.push(OwnLoad { component, worker: load.worker.id.0, used_blocks });
            }
            other => panic!("{other:?} is nothing that 1.6 publishes here"),
        }
    }

    fn fold_events(&mut self, events: &KvEvents) {
        for event in &events.events {
            let held = self.held.entry(event.worker.id.0).or_default();
            assert!(
                event.event_id == held.last_event_id + 1 || self.has_gaps,
                "contiguous from 1, all tiers"
            );
            held.last_event_id = event.event_id;
            let is_host = event.tier == StorageTier::HostPinned;
            assert!(is_host || event.tier == StorageTier::Device);
            let WorkerCache { device, host, .. } = held;
            let tier = if is_host { host } else { device };
            match &event.data {
                KvData::Stored { parent, start_position, blocks, .. } => {
                    let blocks = events.blocks_of(blocks);
                    assert!(
                        parent.is_none_or(|parent| tier.contains(&parent.0)) || self.has_gaps,
                        "the parent is held, in the same tier"
                    );
                    assert_eq!(start_position.is_some(), is_host, "host memory reports the position");
                    assert_eq!(*start_position == Some(0), is_host && parent.is_none());
                    held.empty += u32::from(blocks.is_empty());
                    for block in blocks {
                        assert!(tier.insert(block.block_hash.0), "what is held is not stored again");
                    }
                }
                KvData::Removed { hashes } => {
                    for hash in events.removed_of(hashes) {
                        assert!(tier.remove(&hash.0) || self.has_gaps, "what is removed was held");
                        held.host_removed += u32::from(is_host);
                    }
                }
                KvData::Cleared => panic!("nothing is cleared"),
            }
            held.most_device = held.most_device.max(held.device.len());
            held.most_host = held.most_host.max(held.host.len());
        }
    }

    /// The choices as the log has them.
    pub(crate) fn selected(&self) -> impl Iterator<Item = &log_line::Selected<'static>> {
        self.lines.iter().filter_map(|line| match &line.event {
            LogEvent::Selected(selected) => Some(selected),
            _ => None,
        })
    }
}
