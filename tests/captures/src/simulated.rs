//! What the simulator sends, typed as the sources of a real deployment hand it over, and a cluster played in virtual time.

use bytes::Bytes;

use radixscope_intake::{Intake, NatsSubjects, Payload, Received};
use radixscope_model::id::Millis;
use radixscope_model::record::{Entry, LinkState, Record, SourceKind};
use radixscope_sim::{Channel, Config, ConfigError, Simulation, WireMessage};
use radixscope_state::sink::RecordSink;

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
            Channel::Deletion => Payload::Discovery { key: message.name.into(), value: None, lease: None },
            Channel::Log => Payload::LogLine { log: message.name.into(), line: bytes },
            Channel::Metrics => Payload::Scrape { process: message.name.into(), text: bytes },
        }
    }
}

/// How long a simulated cluster runs.
#[derive(Clone, Copy, Debug)]
pub struct Played {
    /// Simulated time of the first second.
    pub start: Millis,
    /// Seconds that count as history, as those before a server starts.
    pub warm_up_s: u64,
    /// Seconds after them.
    pub live_s: u64,
}

/// Runs a simulated cluster in virtual time, decoded and joined as a server does it, into `sink`. After each second `each`
/// gets its end; it returns whether to go on.
///
/// # Errors
/// What in `config` cannot be simulated.
pub fn play<S: RecordSink>(
    config: Config,
    played: Played,
    sink: &mut S,
    mut each: impl FnMut(Millis, &mut S) -> bool,
) -> Result<Simulation, ConfigError> {
    let start = played.start;
    let mut simulation = Simulation::new(config, start)?;
    let (mut intake, mut simulated) = (Intake::default(), Simulated::default());
    let source = intake.source("simulated", SourceKind::Simulator, start, sink);
    let source = source.expect("the first source has a place");
    let becomes = |state, at_ms, sink: &mut S| {
        let record = Record::SourceState { source, state, detail: "".into() };
        sink.append(&Entry { at_ms, record });
    };
    becomes(LinkState::CatchingUp, start, sink);
    for second in 0..=played.warm_up_s + played.live_s {
        let until = Millis(start.0 + second * 1_000);
        simulation.run_until(until, &mut |message| {
            let payload = simulated.payload(&message);
            intake.handle(&Received { source, at_ms: message.at_ms, payload }, sink);
        });
        if second == played.warm_up_s {
            becomes(LinkState::Live, until, sink);
        }
        intake.flush(until, sink);
        if !each(until, sink) {
            break;
        }
    }
    Ok(simulation)
}
