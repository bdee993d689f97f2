//! `radixscope demo --nats`: the simulated cluster's messages on a real NATS server, on Dynamo's subjects. The only command
//! that writes to NATS. It does not publish into a stream with messages unless `--yes` is given.

use std::time::Duration;

use anyhow::anyhow;
use async_nats::Client;
use url::Url;

use radixscope_dynamo::subject::{self, Transport};
use radixscope_sim::{Channel, Config, EventTransport};

use super::Failure;
use super::demo::{pace, simulated};
use crate::config::Demo;
use crate::shutdown::{Shutdown, over};
use crate::source::SourceStatus;
use crate::source::demo::{self, Simulated};
use crate::source::nats::{Target, jetstream};

/// Dynamo's default for how long streams keep messages (reference §2.2).
const STREAM_MAX_AGE: Duration = Duration::from_secs(3_600);
/// How long to wait at the end for the server to accept what was published.
const FLUSH_WITHIN: Duration = Duration::from_secs(5);

/// Publishes until stopped.
pub(super) async fn run(options: Demo, url: Url, mut stopped: Shutdown) -> Result<(), Failure> {
    // Dynamo does not send logs and metrics through NATS.
    let config = Config { log: false, metrics: false, ..simulated(&options.simulation)? };
    let target = Target::new(&[url], &options.login).map_err(|error| Failure::Usage(error.into()))?;
    let (client, signals) = target.connect().await.map_err(|SourceStatus { detail, .. }| {
        Failure::Failed(anyhow!("{}", detail.trim_end_matches('.')))
    })?;
    // The event plane of 1.6 is NATS core, which stores nothing, so other publishers cannot be detected.
    if config.set_up().events != EventTransport::EventPlane {
        let stream = stream_of(&config.namespace, &config.component);
        prepare(&client, &stream, target.display_address(), options.yes).await?;
    }
    tracing::info!(
        "publishing {} workers of namespace {} to NATS at {}; show them with: radixscope serve --nats {}",
        config.workers * config.topology.pools(),
        config.namespace,
        target.display_address(),
        target.display_address()
    );
    let mut steps = demo::start(config, pace(&options.simulation), None, stopped.clone());
    let mut lost = signals.lost.clone();
    let mut published = 0u64;
    loop {
        tokio::select! {
            () = over(&mut stopped) => break,
            () = over(&mut lost) => {
                return Err(Failure::Failed(anyhow!("the connection to NATS at {} was lost", target.display_address())));
            }
            step = steps.recv() => match step {
                Some(step) => published += publish(&client, step.messages).await?,
                None => break,
            },
        }
        if let Some(complaint) = signals.take_errors().first() {
            return Err(Failure::Failed(anyhow!(
                "NATS at {} rejected a message: {complaint}",
                target.display_address()
            )));
        }
    }
    // What the server does not accept in time is dropped.
    let _ = tokio::time::timeout(FLUSH_WITHIN, client.flush()).await;
    tracing::info!(published, "stopped publishing");
    Ok(())
}

async fn publish(client: &Client, messages: Vec<Simulated>) -> Result<u64, Failure> {
    let mut published = 0;
    for Simulated { name, payload, .. } in messages.into_iter().filter(|m| m.channel == Channel::Nats) {
        let sent = client.publish(name.into_string(), payload).await;
        sent.map_err(|error| Failure::Failed(anyhow!("publishing: {error}")))?;
        published += 1;
    }
    Ok(published)
}

fn stream_of(namespace: &str, component: &str) -> String {
    subject::slug(&format!("namespace.{namespace}.component.{component}.kv-events"))
}

/// Creates the stream as Dynamo's publishers do, or refuses to add to one that is in use.
async fn prepare(client: &Client, stream: &str, shown: &str, yes: bool) -> Result<(), Failure> {
    debug_assert!(
        subject::parse(&subject::kv_event_stream_subject(stream))
            .is_some_and(|s| s.transport == Transport::JetStream)
    );
    match jetstream::message_count(client, stream).await {
        Ok(Some(messages)) if messages > 0 && !yes => Err(Failure::Failed(anyhow!(
            "NATS at {shown} already has {messages} messages in stream {stream}, possibly of a real cluster; publishing would add \
                 simulated workers to it. Use another server, or pass --yes"
        ))),
        Ok(Some(_)) => Ok(()),
        Ok(None) => jetstream::create(client, stream, STREAM_MAX_AGE)
            .await
            .map_err(|error| Failure::Failed(anyhow!("creating the stream {stream}: {error}"))),
        Err(error) => {
            tracing::warn!(
                "{error}: publishing without a JetStream stream, so there is no history for servers that start later"
            );
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_named_as_dynamo_names_it() {
        assert_eq!(stream_of("dynamo", "backend"), "namespace-dynamo-component-backend-kv-events");
        assert!(subject::is_kv_event_stream(&stream_of("My_NS", "backend")));
    }
}
