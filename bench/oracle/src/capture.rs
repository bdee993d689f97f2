//! Which recordings are compared, and the KV events in them.

use std::path::Path;

use dynamo_kv_router::protocols::RouterEvent;
use radixscope_captures::{Message, Recording};
use radixscope_dynamo::subject;
use radixscope_model::id::Worker;
use radixscope_model::record::Topic;

use crate::{Event, theirs};

/// Names of all recordings, sorted.
pub fn names() -> Vec<String> {
    Recording::all().iter().map(|recording| recording.folder().display().to_string()).collect()
}

/// The KV events of a recording, named as a fixture or by the path of its folder, each once: not the copies that
/// JetStream delivers to routers.
pub fn kv_events(capture: &str) -> Vec<Message> {
    let is_folder = Path::new(capture).is_dir();
    let recording = if is_folder { Recording::at(capture) } else { Recording::fixture(capture) };
    let topic_of = |m: &Message| subject::parse(&m.subject).map(|subject| subject.topic);
    recording.messages().filter(|m| topic_of(m) == Some(Topic::KvEvents) && !m.is_delivery_copy()).collect()
}

/// Events of a capture, in our terms: a worker's index is the order of its first event.
///
/// # Errors
/// A message that Dynamo's own types cannot be decoded from.
pub fn events(capture: &str) -> anyhow::Result<Vec<Event>> {
    let messages = kv_events(capture);
    let Some(wire) = theirs::wire_of(&messages) else { return Ok(Vec::new()) };
    let (mut workers, mut events) = (Vec::new(), Vec::new());
    for message in &messages {
        theirs::decode(wire, &message.payload, |mut event: RouterEvent| {
            let id = Worker::new(event.worker_id, event.event.dp_rank);
            let at = workers.iter().position(|w| *w == id).unwrap_or_else(|| {
                workers.push(id);
                workers.len() - 1
            });
            event.worker_id = at as u64;
            events.push(theirs::event(&event));
        })?;
    }
    Ok(events)
}
