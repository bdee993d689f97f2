//! Messages of Dynamo's event plane, written by the library that everybody writes MessagePack with.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::viewer::now_ms;

/// Key of the publication time in an envelope, and the mark of the 64-bit number after it (reference §2.4).
const PUBLISHED_AT: &[u8] = b"\xacpublished_at\xcf";

/// The same envelope, or bytes that hold one, published at another time: Unix milliseconds, made of those that it names.
pub fn published(envelope: Bytes, at_ms: impl FnOnce(u64) -> u64) -> Bytes {
    let Some(at) = envelope.windows(PUBLISHED_AT.len()).position(|part| part == PUBLISHED_AT) else {
        return envelope;
    };
    let number = at + PUBLISHED_AT.len()..at + PUBLISHED_AT.len() + 8;
    let mut envelope = envelope.to_vec();
    let field: &mut [u8] = &mut envelope[number];
    let recorded_ms = u64::from_be_bytes((&*field).try_into().expect("eight bytes"));
    field.copy_from_slice(&at_ms(recorded_ms).to_be_bytes());
    envelope.into()
}

/// What is in an envelope of MessagePack.
pub fn payload(envelope: &[u8]) -> serde_json::Value {
    #[derive(Deserialize)]
    struct Envelope {
        payload: Bin,
    }
    struct Bin(Vec<u8>);
    impl<'de> Deserialize<'de> for Bin {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl serde::de::Visitor<'_> for Visitor {
                type Value = Bin;
                fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    to.write_str("bytes")
                }
                fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bin, E> {
                    Ok(Bin(bytes.to_vec()))
                }
            }
            from.deserialize_bytes(Visitor)
        }
    }
    let Envelope { payload: Bin(payload) } = rmp_serde::from_slice(envelope).expect("an envelope");
    rmp_serde::from_slice(&payload).expect("MessagePack")
}

/// `payload` in the envelope of 0.9 and later, published now.
pub fn envelope(publisher_id: u64, sequence: u64, topic: &str, payload: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Envelope<'a> {
        publisher_id: u64,
        sequence: u64,
        published_at: u64,
        topic: &'a str,
        payload: Bin,
    }
    struct Bin(Vec<u8>);
    impl Serialize for Bin {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.serialize_bytes(&self.0)
        }
    }
    let payload = Bin(rmp_serde::to_vec_named(payload).expect("plain data"));
    let published_at = now_ms().0;
    rmp_serde::to_vec_named(&Envelope { publisher_id, sequence, published_at, topic, payload })
        .expect("plain data")
}
