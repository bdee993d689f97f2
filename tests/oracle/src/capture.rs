//! Which recordings are compared, and the KV events in them.

use std::path::Path;

use radixscope_captures::{Message, Recording};
use radixscope_dynamo::subject;
use radixscope_model::record::Topic;

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
