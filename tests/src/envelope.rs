//! Messages of Dynamo's event plane, written by the library that everybody writes MessagePack with.

use serde::Serialize;

use crate::viewer::now_ms;

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
