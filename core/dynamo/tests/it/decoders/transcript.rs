//! A message led through the decoders as a source would do it, and put into words for comparing.

use std::fmt::Write as _;

use radixscope_dynamo::active_sequence::{self, SequenceChange};
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::error::{DecodeError, Faults};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::kv_event::{KvData, KvEvents};
use radixscope_dynamo::load::ActiveLoad;
use radixscope_dynamo::session_affinity::SessionAffinity;
use radixscope_dynamo::trace::TraceRecord;
use radixscope_dynamo::{subject, trace};
use radixscope_model::record::Topic;

/// Everything that a payload says, one line each, and what of it was not understood.
pub fn payload(
    topic: Topic,
    body: &[u8],
    format: Format,
    publisher: Option<u64>,
) -> (String, Vec<DecodeError>) {
    let mut text = String::new();
    let errors = match topic {
        Topic::KvEvents => {
            let mut events = KvEvents::default();
            let result = events.decode(body, format);
            kv_events(&events, &mut text);
            all(result)
        }
        Topic::KvHitRate => match HitRate::decode(body, format) {
            Ok(hit) => {
                let _ = writeln!(text, "{} overlap {} of {}", hit.worker, hit.overlap_blocks, hit.isl_blocks);
                Vec::new()
            }
            Err(error) => vec![error],
        },
        Topic::KvMetrics => match ActiveLoad::decode(body, format) {
            Ok(load) => {
                let _ = writeln!(text, "{} {:?}", load.worker, load.origin(publisher));
                Vec::new()
            }
            Err(error) => vec![error],
        },
        Topic::ActiveSequences => {
            let mut steps = Vec::new();
            let result = active_sequence::decode(body, format, &mut steps);
            for step in steps {
                let what = match step.step {
                    SequenceChange::Added(request) => format!("{request:?}"),
                    other => format!("{other:?}"),
                };
                let by = if step.by_worker { " by worker" } else { "" };
                let _ = writeln!(text, "{} on {}{by}: {what}", step.request_id, step.worker);
            }
            all(result)
        }
        Topic::SessionAffinity => match SessionAffinity::decode(body, format) {
            Ok(SessionAffinity { session_id, worker, sequence, writer_id }) => {
                let _ = writeln!(text, "{session_id} bound to {worker} #{sequence} by {writer_id:?}");
                Vec::new()
            }
            Err(error) => vec![error],
        },
        Topic::RequestTrace => match trace::decode(body) {
            Ok(trace) => {
                let _ = trace.map(|trace| match trace {
                    TraceRecord::Ended(trace) => writeln!(text, "{trace:?}"),
                    TraceRecord::Selected(selection) => writeln!(text, "{selection:?}"),
                });
                Vec::new()
            }
            Err(error) => vec![error],
        },
        Topic::Discovery
        | Topic::TreeDump
        | Topic::Log
        | Topic::Metrics
        | Topic::Health
        | Topic::RouterPolicy
        | Topic::Indexer
        | Topic::ClientResult
        | Topic::Other => {
            unreachable!("not on NATS")
        }
    };
    (text, errors)
}

fn all(result: Result<(), Faults>) -> Vec<DecodeError> {
    let Err(faults) = result else { return Vec::new() };
    assert!(faults.total() > 0, "faults without a fault");
    faults.iter().map(|(error, _)| error.clone()).collect()
}

pub fn kv_events(events: &KvEvents, text: &mut String) {
    for event in &events.events {
        let id = event.event_id;
        let _ = match &event.data {
            KvData::Stored { parent, blocks, .. } => {
                let parent = parent.map_or("root".to_owned(), |parent| parent.to_string());
                let mut line = format!("{} #{id} {:?} stored under {parent}:", event.worker, event.tier);
                for block in events.blocks_of(blocks) {
                    let _ = write!(line, " {}={}", block.block_hash, block.tokens_hash);
                }
                writeln!(text, "{line}")
            }
            KvData::Removed { hashes } => {
                let hashes: Vec<String> = events.removed_of(hashes).iter().map(ToString::to_string).collect();
                writeln!(text, "{} #{id} {:?} removed {}", event.worker, event.tier, hashes.join(" "))
            }
            KvData::Cleared => writeln!(text, "{} #{id} {:?} cleared", event.worker, event.tier),
        };
    }
}

/// As [`payload`], from subject and body.
pub fn message(subject: &str, body: &[u8]) -> (String, Vec<DecodeError>) {
    let subject = subject::parse(subject).expect("a subject of ours");
    let body = match open(body) {
        Ok(body) => body,
        Err(error) => return (String::new(), vec![error]),
    };
    let (bytes, format) = body.payload();
    let publisher = body.envelope().map(|envelope| envelope.publisher_id);
    payload(subject.topic, bytes, format, publisher)
}
