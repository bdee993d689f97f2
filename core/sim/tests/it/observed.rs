//! A simulated cluster and every message of it, as a subscriber receives them.

use radixscope_model::id::Millis;
use radixscope_sim::{Channel, Config, Simulation, Workload};

/// When simulations begin.
pub(crate) const START: Millis = Millis(1_767_225_600_000);

/// A cluster under memory pressure: small enough for every test, busy enough to evict and to queue.
pub(crate) fn small() -> Config {
    Config {
        blocks_per_worker: 900,
        block_size_tokens: 16,
        concurrency: 24,
        max_batch: 6,
        max_num_tokens: 1_024,
        workload: Workload::short(),
        ..Config::default()
    }
}

/// A message as a subscriber keeps it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Message {
    pub(crate) at_ms: u64,
    pub(crate) channel: Channel,
    pub(crate) name: String,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn run(config: Config, seconds: u64) -> (Simulation, Vec<Message>) {
    let mut simulation = Simulation::new(config, START).expect("valid");
    let mut messages = Vec::new();
    simulation.run_until(Millis(START.0 + seconds * 1_000), &mut |m| {
        messages.push(Message {
            at_ms: m.at_ms.0,
            channel: m.channel,
            name: m.name.to_owned(),
            payload: m.payload.to_owned(),
        });
    });
    (simulation, messages)
}

/// MessagePack's binary, which serde reads as a list by itself.
pub(crate) fn bytes<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Vec<u8>, D::Error> {
    struct Bytes;
    impl serde::de::Visitor<'_> for Bytes {
        type Value = Vec<u8>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("bin")
        }
        fn visit_bytes<E>(self, v: &[u8]) -> Result<Vec<u8>, E> {
            Ok(v.to_vec())
        }
    }
    d.deserialize_bytes(Bytes)
}
