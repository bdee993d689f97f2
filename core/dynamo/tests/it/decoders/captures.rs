//! Every message of every full capture decodes, and says what an independent decoder of owned structs says.

use std::collections::BTreeMap;

use radixscope_captures::{Recording, fixtures};
use radixscope_dynamo::discovery::{ChannelTransport, DiscoveryEntry, decode};
use radixscope_dynamo::envelope::{Format, open};
use radixscope_dynamo::hit_rate::HitRate;
use radixscope_dynamo::kv_event::{KvData, KvEvent, KvEvents, StorageTier};
use radixscope_dynamo::load::ActiveLoad;
use radixscope_dynamo::subject;
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

use crate::decoders::{plain, transcript};

/// Fails if the events are not those that the independent decoder finds in the same payload.
pub fn assert_same_events(events: &KvEvents, body: &[u8], format: Format) {
    let plain::Payload(expected) = plain::decode(body, format).expect("the plain decoder reads it");
    assert_eq!(events.events.len(), expected.len());
    for (ours, theirs) in events.events.iter().zip(&expected) {
        assert_same_event(events, ours, theirs);
    }
}

fn assert_same_event(events: &KvEvents, ours: &KvEvent, theirs: &plain::RouterEvent) {
    assert_eq!(ours.worker, Worker::new(theirs.worker_id, theirs.event.dp_rank));
    assert_eq!(ours.event_id, theirs.event.event_id);
    let tier = match theirs.storage_tier {
        plain::Tier::Device => StorageTier::Device,
        plain::Tier::HostPinned => StorageTier::HostPinned,
        plain::Tier::Disk => StorageTier::Disk,
        plain::Tier::External => StorageTier::External,
    };
    assert_eq!(ours.tier, tier);
    match (&ours.data, &theirs.event.data) {
        (KvData::Cleared, plain::Data::Cleared) => {}
        (KvData::Removed { hashes }, plain::Data::Removed(removed)) => {
            let ours: Vec<u64> = events.removed_of(hashes).iter().map(|hash| hash.0).collect();
            assert_eq!(ours, removed.block_hashes);
        }
        (KvData::Stored { parent, start_position, blocks, .. }, plain::Data::Stored(stored)) => {
            assert_eq!(parent.map(|hash| hash.0), stored.parent_hash);
            assert_eq!(*start_position, stored.start_position);
            let pairs =
                events.blocks_of(blocks).iter().map(|block| (block.block_hash.0, block.tokens_hash.0));
            let expected = stored.blocks.iter().map(|block| (block.block_hash, block.tokens_hash));
            assert!(pairs.eq(expected));
        }
        (ours, theirs) => panic!("{ours:?} is not {theirs:?}"),
    }
}

fn assert_same(topic: Topic, body: &[u8], format: Format, events: &mut KvEvents) {
    match topic {
        Topic::KvEvents => {
            events.decode(body, format).expect("a real message decodes");
            assert_same_events(events, body, format);
        }
        Topic::KvHitRate => {
            let ours = HitRate::decode(body, format).expect("a real message decodes");
            let theirs: plain::HitRate = plain::decode(body, format).expect("the plain decoder reads it");
            assert_eq!(ours.worker, Worker::new(theirs.worker_id, theirs.dp_rank));
            assert_eq!(ours.isl_blocks, theirs.isl_blocks);
            assert_eq!(ours.overlap_blocks, u64::from(theirs.overlap_blocks));
        }
        Topic::KvMetrics => {
            let ours = ActiveLoad::decode(body, format).expect("a real message decodes");
            let theirs: plain::Load = plain::decode(body, format).expect("the plain decoder reads it");
            assert_eq!(ours.worker, Worker::new(theirs.worker_id, theirs.dp_rank));
            assert_eq!(ours.active_decode_blocks, theirs.active_decode_blocks);
            assert_eq!(ours.active_prefill_tokens, theirs.active_prefill_tokens);
            assert_eq!(ours.kv_used_blocks, theirs.kv_used_blocks);
        }
        _ => {
            let (text, errors) = transcript::payload(topic, body, format, None);
            assert!(errors.is_empty() && !text.is_empty(), "{text}{errors:?}");
        }
    }
}

#[test]
fn every_message_of_every_capture_decodes_as_with_serde() {
    let mut events = KvEvents::default();
    for capture in Recording::all_in(&fixtures()) {
        let mut counts: BTreeMap<Topic, usize> = BTreeMap::new();
        for message in capture.messages() {
            let Some(subject) = subject::parse(&message.subject) else {
                assert!(message.subject.ends_with("forward-pass-metrics"), "{}", message.subject);
                continue;
            };
            assert_eq!(&*subject.namespace, "dynamo");
            let body = open(&message.payload).expect("a real message opens");
            let (bytes, format) = body.payload();
            if let Some(envelope) = body.envelope() {
                assert_eq!(envelope.topic, subject.topic.as_str().as_bytes());
            }
            assert_same(subject.topic, bytes, format, &mut events);
            *counts.entry(subject.topic).or_default() += 1;
        }
        println!("{}: {counts:?}", capture.name());
        assert!(!counts.is_empty(), "{} has no message", capture.name());
    }
}

#[test]
fn every_entry_of_discovery_of_every_capture_is_what_its_key_says() {
    #[derive(serde::Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        kvs: Vec<Pair<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Pair<'a> {
        key: String,
        #[serde(borrow)]
        value: &'a serde_json::value::RawValue,
    }
    for capture in Recording::all_in(&fixtures()) {
        let (mut cards, mut lines) = (0, 0);
        for line in capture.discovery() {
            lines += 1;
            let line: Line<'_> = serde_json::from_str(&line).expect("a line of a capture is JSON");
            for Pair { key, value } in line.kvs {
                let entry = decode(&key, value.get().as_bytes()).expect("a real value decodes");
                let id = match entry {
                    DiscoveryEntry::Instance(of) => {
                        assert!(key.starts_with("v1/instances/"), "{key}");
                        assert_eq!(
                            of.is_worker(),
                            key.contains("end/generate/")
                                || key.contains("fill/generate/")
                                || key.contains("end2/generate/"),
                            "{key}"
                        );
                        assert_eq!(
                            of.query_endpoint().is_some(),
                            of.endpoint.starts_with("worker_kv"),
                            "{key}"
                        );
                        assert!(of.transport.is_some());
                        of.instance_id.0
                    }
                    DiscoveryEntry::ModelCard(card) => {
                        assert!(key.starts_with("v1/mdc/"), "{key}");
                        cards += 1;
                        assert!(card.block_size_tokens.is_some_and(|tokens| tokens > 0));
                        card.instance_id.0
                    }
                    DiscoveryEntry::EventChannel(channel) => {
                        assert!(key.starts_with("v1/event_channels/"), "{key}");
                        let ChannelTransport::Nats { subject_prefix } = channel.transport else {
                            panic!("{key}: these were recorded over NATS")
                        };
                        // The subject that discovery names is the one that we listen to.
                        if channel.subject.topic != Topic::Other {
                            let named = subject::parse(&format!("{subject_prefix}.{}", channel.topic));
                            assert_eq!(named, Some(channel.subject), "{key}");
                        }
                        channel.publisher_id
                    }
                    DiscoveryEntry::EventSource(source) => {
                        assert!(key.starts_with("v1/event_sources/"), "{key}");
                        assert_eq!(source.subject.topic, Topic::KvEvents);
                        let recovery = source.recovery.expect("who answers");
                        assert_eq!(
                            (Some(recovery.worker), recovery.publisher_id),
                            (source.worker, Some(source.publisher_id))
                        );
                        source.publisher_id
                    }
                    DiscoveryEntry::Other => panic!("{key}"),
                };
                assert!(key.ends_with(&format!("/{id:x}")), "{key}");
            }
        }
        assert!(cards > 0 || lines == 0, "{} has no model card", capture.name());
    }
}
