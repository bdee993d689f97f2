//! Says again over NATS what was recorded: live, or into a stream as history.

use async_nats::Client;
use async_nats::jetstream::{self, consumer, stream};
use futures_util::future::try_join_all;
use serde_json::Value;

use crate::capture::{Capture, Message};
use crate::nats::Nats;
use crate::radixscope::Radixscope;
use crate::wait;

/// Messages between two waits for the server's word that it has them all.
const AT_ONCE: usize = 200;

/// Publishes messages as they were received. Copies that JetStream delivered are left out: NATS lets nobody but JetStream
/// itself send a message with such a reply subject ([`pull_like_a_router`] makes real ones).
pub async fn publish(client: &Client, messages: &[Message]) {
    for some in messages.chunks(AT_ONCE) {
        for message in some.iter().filter(|message| !message.is_delivery_copy()) {
            publish_one(client, message).await;
        }
        client.flush().await.expect("NATS takes what it is sent");
    }
}

/// Publishes one message as it was received.
pub async fn publish_one(client: &Client, message: &Message) {
    let (subject, payload) = (message.subject.clone(), message.payload.clone());
    match &message.reply {
        Some(reply) => client.publish_with_reply(subject, reply.clone(), payload).await,
        None => client.publish(subject, payload).await,
    }
    .expect("NATS takes what it is sent");
}

/// Creates the streams that keep `messages`, as Dynamo's workers do (reference §2.2).
pub async fn create_streams(jetstream: &jetstream::Context, messages: &[Message]) -> Vec<String> {
    let mut names: Vec<String> = messages.iter().filter_map(|m| m.stream().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    for name in &names {
        let config = stream::Config {
            name: name.clone(),
            subjects: vec![format!("{name}.*")],
            max_age: std::time::Duration::from_secs(3600),
            ..stream::Config::default()
        };
        jetstream.get_or_create_stream(config).await.expect("JetStream makes a stream");
    }
    names
}

/// Publishes messages into their stream, in order, and waits until all of them are kept.
pub async fn publish_retained(jetstream: &jetstream::Context, messages: &[Message]) {
    for some in messages.chunks(AT_ONCE) {
        let mut retained = Vec::with_capacity(some.len());
        for message in some {
            let publication = jetstream.publish(message.subject.clone(), message.payload.clone()).await;
            retained.push(publication.expect("JetStream takes what it is sent").into_future());
        }
        try_join_all(retained).await.expect("JetStream keeps what it was sent");
    }
}

/// Behaves like a router: pulls `count` messages through a durable consumer, so that each comes by again as a copy.
pub async fn pull_like_a_router(jetstream: &jetstream::Context, stream: &str, router_id: &str, count: usize) {
    use futures_util::StreamExt;
    let stream = jetstream.get_stream(stream).await.expect("the stream exists");
    let config = consumer::pull::Config {
        durable_name: Some(router_id.to_owned()),
        ack_policy: consumer::AckPolicy::Explicit,
        ..consumer::pull::Config::default()
    };
    let consumer = stream.get_or_create_consumer(router_id, config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("a pull");
    for _ in 0..count {
        let message = wait::within("the router is given a message", messages.next()).await;
        let message = message.expect("more messages").expect("no error");
        message.ack().await.expect("acknowledged");
    }
}

/// Names of the consumers on a stream.
pub async fn consumers(jetstream: &jetstream::Context, stream: &str) -> Vec<String> {
    use futures_util::TryStreamExt;
    let stream = jetstream.get_stream(stream).await.expect("the stream exists");
    stream.consumer_names().try_collect().await.expect("JetStream lists consumers")
}

/// A server that has heard a whole capture, and what its API then says. The NATS server stays for the sources' sake.
pub async fn replayed(name: &'static str, flags: &[&str]) -> (Nats, Radixscope, Value) {
    replayed_capture(Capture::load(name), flags).await
}

/// The same of any capture.
pub async fn replayed_capture(capture: Capture, flags: &[&str]) -> (Nats, Radixscope, Value) {
    let nats = Nats::start().await;
    let server = Radixscope::serve_with(&nats.url(), flags).await;
    server.until_ready().await;
    publish(&nats.client().await, &capture.messages).await;
    let cluster = server.until_quiet(capture.publications() as u64).await;
    (nats, server, cluster)
}
