//! Recorded messages, each at its time, with the time in its envelope moved to today.

use async_nats::Client;
use bytes::Bytes;

use super::Clock;
use crate::capture::Message;
use crate::replay::publish_one;

/// Key of the publication time in an envelope, and the mark of the 64-bit number after it (reference §2.4).
const PUBLISHED_AT: &[u8] = b"\xacpublished_at\xcf";
/// Messages that are due within this many recorded seconds go out together.
const TOGETHER_S: f64 = 0.02;

/// Publishes all of them; copies that JetStream delivered are left out.
pub(super) async fn publish(client: Client, messages: Vec<Message>, clock: Clock) {
    let mut due_s = f64::NEG_INFINITY;
    for mut message in messages.into_iter().filter(|message| !message.is_delivery_copy()) {
        if message.at_s > due_s + TOGETHER_S {
            client.flush().await.expect("NATS takes what it is sent");
            due_s = message.at_s;
            clock.until(due_s).await;
        }
        message.payload = today(message.payload, clock);
        publish_one(&client, &message).await;
    }
    client.flush().await.expect("NATS takes what it is sent");
}

/// The same payload as if it had been published today: otherwise every message would seem to be days late.
fn today(payload: Bytes, clock: Clock) -> Bytes {
    let Some(at) = payload.windows(PUBLISHED_AT.len()).position(|part| part == PUBLISHED_AT) else {
        return payload;
    };
    let number = at + PUBLISHED_AT.len()..at + PUBLISHED_AT.len() + 8;
    let mut payload = payload.to_vec();
    let field: &mut [u8] = &mut payload[number];
    let recorded_ms = u64::from_be_bytes((&*field).try_into().expect("eight bytes"));
    let today_ms = clock.today_s(recorded_ms as f64 / 1_000.0) * 1_000.0;
    field.copy_from_slice(&(today_ms as u64).to_be_bytes());
    payload.into()
}
