//! Recorded messages, each at its time, with the time in its envelope moved to today.

use async_nats::Client;
use bytes::Bytes;

use super::Clock;
use crate::capture::Message;
use crate::envelope::published;
use crate::replay::publish_one;

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
    published(payload, |recorded_ms| (clock.today_s(recorded_ms as f64 / 1_000.0) * 1_000.0) as u64)
}
