//! What the simulator sends, typed as the sources of a real deployment hand it over.

use bytes::Bytes;

use radixscope_intake::{NatsSubjects, Payload};
use radixscope_sim::{Channel, WireMessage};

/// Types the simulator's messages.
#[derive(Default, Debug)]
pub struct Simulated {
    subjects: NatsSubjects,
}

impl Simulated {
    /// A message as a source would hand it over.
    pub fn payload(&mut self, message: &WireMessage<'_>) -> Payload {
        let bytes = Bytes::copy_from_slice(message.payload);
        match message.channel {
            Channel::Nats => {
                let publication = self.subjects.publication(message.name, None, bytes);
                publication.expect("the simulator delivers no copies")
            }
            Channel::Discovery => {
                Payload::Discovery { key: message.name.into(), value: Some(bytes), lease: None }
            }
            Channel::Log => Payload::LogLine { log: message.name.into(), line: bytes },
            Channel::Metrics => Payload::Scrape { process: message.name.into(), text: bytes },
        }
    }
}
