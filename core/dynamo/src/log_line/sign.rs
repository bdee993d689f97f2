//! Lines that say how the path of KV events fares (reference §7.3, §9.1, §2.7): written by routers and by workers.

use super::event::LogEvent;
use super::fields::FieldKey;
use super::read::LogMessage;
use super::scan::Scan;
use crate::wire::{Fault, InField};
use radixscope_model::id::Worker;
use radixscope_model::record::LogSignal;

/// Beginnings of messages that say all there is to know.
const PLAIN: [(&str, LogSignal); 6] = [
    ("KV Routing initialized", LogSignal::RouterStarted),
    ("Not all workers have local_indexer enabled, using JetStream subscription", LogSignal::UsesJetStream),
    ("block_hash mismatch: sequence hashes should be uniform", LogSignal::HashMismatch),
    ("prefill_tokens < 0 with ISL", LogSignal::NegativePrefill),
    ("KV Router block size mismatch!", LogSignal::CardSizes),
    ("Checksum for new model does not match", LogSignal::CardSizes),
];

/// Reads a message; `None` if it is none of these.
pub(super) fn sign(message: LogMessage<'_>) -> Result<Option<LogEvent<'_>>, Fault> {
    let text = message.text;
    if let Some((_, sign)) = PLAIN.iter().find(|(phrase, _)| text.starts_with(phrase)) {
        return Ok(Some(LogEvent::Signal { sign: *sign, worker: None }));
    }
    for (phrase, sign) in [
        ("Failed to find parent block; skipping store operation", LogSignal::ParentUnknown),
        ("Failed to find block to remove; skipping remove operation", LogSignal::BlockUnknown),
    ] {
        if let Some(behind) = text.strip_prefix(phrase) {
            let fields = message.fields(behind);
            let named = fields.get(FieldKey::WorkerId).is_some();
            let worker = named.then(|| fields.worker()).transpose().field("worker")?;
            return Ok(Some(LogEvent::Signal { sign, worker }));
        }
    }
    if let Some(rest) = text.strip_prefix("Skipping KV event subscription") {
        // With events on, a router leaves them out that needs none: that of decode workers.
        let is_off = message.fields(rest).get(FieldKey::UseKvEvents) == Some("false");
        return Ok(is_off.then_some(LogEvent::Signal { sign: LogSignal::KvEventsOff, worker: None }));
    }
    if let Some(rest) = text.strip_prefix("Starting predict-on-route side indexer") {
        let ttl_ms = message.fields(rest).ms(FieldKey::TtlSecs)?.map(|secs| (secs * 1e3).round() as u32);
        return Ok(Some(LogEvent::Signal { sign: LogSignal::PredictsOnRoute { ttl_ms }, worker: None }));
    }
    if let Some(rest) = text.strip_prefix("Block not published. Block size must be ") {
        let sign = publisher_size(rest).field("block size")?;
        return Ok(Some(LogEvent::Signal { sign, worker: None }));
    }
    if let Some((block, rest)) = text.split_once(" tokens, which is greater than kv_block_size ") {
        return oversize(block, rest).field("block size");
    }
    if let Some(rest) = text.strip_prefix("Event ID gap detected for worker ") {
        let worker = Some(Worker::new(Scan::new(rest).u64().field("worker")?, 0));
        return Ok(Some(LogEvent::Signal { sign: LogSignal::EventGap, worker }));
    }
    if let Some((who, _)) = text.split_once(" does not have local indexer enabled")
        && let Some(id) = who.strip_prefix("Worker ")
    {
        let worker = Some(Worker::new(Scan::new(id).u64().field("worker")?, 0));
        return Ok(Some(LogEvent::Signal { sign: LogSignal::NoLocalIndexer, worker }));
    }
    Ok(None)
}

/// `16 tokens to be published. Block size is: 32`
fn publisher_size(text: &str) -> Result<LogSignal, Fault> {
    let mut scan = Scan::new(text);
    let publisher = scan.u32()?;
    scan.expect(" tokens to be published. Block size is: ")?;
    Ok(LogSignal::PublisherSize { publisher, engine: scan.u32()? })
}

/// `Block -7 contains 32`, in some versions without the hash, and `16`.
fn oversize<'a>(block: &str, size: &str) -> Result<Option<LogEvent<'a>>, Fault> {
    let Some((hash, tokens)) = block.split_once("contains ") else { return Ok(None) };
    if !hash.starts_with("Block ") {
        return Ok(None);
    }
    let engine = Scan::new(tokens).u32()?;
    let sign = LogSignal::Oversize { publisher: Scan::new(size).u32()?, engine };
    Ok(Some(LogEvent::Signal { sign, worker: None }))
}
