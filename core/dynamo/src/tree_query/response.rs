//! Answers, from 0.9's bare arrays to 1.6's maps (the project's notes on attaching late, §3.2).

use super::super::error::{DecodeError, Reason};
use super::super::kv_event::KvEvents;
use super::super::request_plane::{Codec, shortened};
use super::super::wire::{Fault, InField, Json, Kind, MsgPack, Wire, once, required};
use super::TreeResponse;
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

/// Most events, blocks and hashes of one response together: eight times the largest cache that was ever measured.
pub const MAX_TREE_HASHES: usize = 1 << 23;

/// Reads an item of a response. `None`: it is the last and holds nothing.
///
/// # Errors
/// It was not understood, or not all of it: of a tree nothing may be missing. It is of another worker or rank than was
/// asked. It would take the place of a part of the tree only, which no version that is known does.
pub fn decode_response(
    item: &[u8],
    codec: Codec,
    asked: Worker,
) -> Result<Option<TreeResponse>, DecodeError> {
    let response = match codec {
        Codec::Json => read(&mut Json::new(item)),
        Codec::MsgPack => read(&mut MsgPack::new(item)),
    }
    .map_err(|fault| fault.into_error(Topic::TreeDump.as_str()))?;
    if let Some(TreeResponse::TreeDump { events, .. } | TreeResponse::Events { events, .. }) = &response
        && let Some(foreign) = events.events.iter().find(|event| event.worker != asked)
    {
        return Err(DecodeError::new(Reason::Malformed, foreign_text(foreign.worker, asked)));
    }
    Ok(response)
}

fn foreign_text(foreign: Worker, asked: Worker) -> String {
    format!(
        "{}: holds an event of worker {} rank {}; worker {} rank {} was asked",
        Topic::TreeDump.as_str(),
        foreign.id.0,
        foreign.dp_rank,
        asked.id.0,
        asked.dp_rank
    )
}

/// `{"data": …, "complete_final": false}`
fn read<'a, W: Wire<'a>>(wire: &mut W) -> Result<Option<TreeResponse>, Fault> {
    let start = wire.at();
    let (mut response, mut is_final) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"data" => once(&mut response, wire.optional(variant).field("data")?, "data", at)?,
            b"complete_final" => {
                once(&mut is_final, wire.bool().field("complete_final")?, "complete_final", at)?;
            }
            _ => wire.skip()?,
        }
    }
    wire.end()?;
    let response = response.flatten();
    if response.is_none() && !required(is_final, "complete_final", start)? {
        return Err(Fault::missing("data", start));
    }
    Ok(response)
}

/// A map of one entry: the response's kind and content.
fn variant<'a, W: Wire<'a>>(wire: &mut W) -> Result<TreeResponse, Fault> {
    let start = wire.at();
    let unknown = || Fault::new(Reason::UnknownKind, "a response of a kind that is not known", start);
    if wire.kind()? != Kind::Map {
        return Err(unknown());
    }
    let mut left = wire.map()?;
    let response = match wire.next_key(&mut left)? {
        Some(b"TreeDump") => {
            let (events, last_event_id) = tree(wire).field("TreeDump")?;
            TreeResponse::TreeDump { events, last_event_id }
        }
        Some(b"Events") => {
            let (events, last_event_id) = tree(wire).field("Events")?;
            TreeResponse::Events { events, last_event_id }
        }
        Some(b"TooNew") => {
            let newest_available = too_new(wire).field("TooNew")?;
            TreeResponse::TooNew { newest_available }
        }
        Some(b"InvalidRange") => wire.skip().map(|()| TreeResponse::InvalidRange)?,
        Some(b"TreeDumpFailed") => failed(wire).field("TreeDumpFailed")?,
        Some(b"Error") => {
            let message = wire.text().field("Error")?;
            TreeResponse::Error { rank: rank(&message), message: shortened(&message) }
        }
        _ => return Err(unknown()),
    };
    if wire.next_key(&mut left)?.is_some() {
        return Err(Fault::new(Reason::Malformed, "has more than one kind", start));
    }
    Ok(response)
}

/// `[…]` (≤ 1.0) or `{"events":[…],"last_event_id":7,"reset_scope":"all"}`: the events and the id.
fn tree<'a, W: Wire<'a>>(wire: &mut W) -> Result<(KvEvents, Option<u64>), Fault> {
    let mut events = KvEvents::default();
    if wire.kind()? == Kind::Array {
        events.read_whole(wire)?;
        return Ok((events, None));
    }
    let start = wire.at();
    let (mut has_events, mut last_event_id) = (None, None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        let at = wire.at();
        match key {
            b"events" => once(&mut has_events, events.read_whole(wire).field("events")?, "events", at)?,
            b"last_event_id" => last_event_id = wire.optional(W::u64).field("last_event_id")?,
            b"reset_scope" => reset_scope(wire).field("reset_scope")?,
            _ => wire.skip()?,
        }
    }
    required(has_events, "events", start)?;
    Ok((events, last_event_id))
}

fn reset_scope<'a, W: Wire<'a>>(wire: &mut W) -> Result<(), Fault> {
    let at = wire.at();
    let is_all = wire.nil()? || (wire.kind()? == Kind::Text && wire.word()? == b"all");
    if is_all { Ok(()) } else { Err(Fault::new(Reason::UnknownKind, "is not of the whole tree", at)) }
}

fn too_new<'a, W: Wire<'a>>(wire: &mut W) -> Result<u64, Fault> {
    let (start, mut newest) = (wire.at(), None);
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"newest_available" => newest = Some(wire.u64().field("newest_available")?),
            _ => wire.skip()?,
        }
    }
    required(newest, "newest_available", start)
}

fn failed<'a, W: Wire<'a>>(wire: &mut W) -> Result<TreeResponse, Fault> {
    let mut message = String::new();
    let mut left = wire.map()?;
    while let Some(key) = wire.next_key(&mut left)? {
        match key {
            b"message" => message = shortened(&wire.optional(W::text).field("message")?.unwrap_or_default()),
            _ => wire.skip()?,
        }
    }
    Ok(TreeResponse::TreeDumpFailed { message })
}

/// The rank that the worker has: `… dp_rank mismatch: request.dp_rank=0 this.dp_rank=1`.
fn rank(message: &str) -> Option<u32> {
    let (_, after) = message.split_once("dp_rank mismatch")?;
    let (_, rank) = after.split_once("this.dp_rank=")?;
    let end = rank.find(|char: char| !char.is_ascii_digit()).unwrap_or(rank.len());
    rank.get(..end)?.parse().ok()
}
