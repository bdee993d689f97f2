//! The sources that the command line names, for `serve` and `check` alike.

use anyhow::anyhow;
use tokio::sync::mpsc;

use radixscope_model::record::SourceKind;

use super::Failure;
use super::server::Feed;
use crate::config::{LogFile, MetricsUrl, Sources};
use crate::source::{logs, nats, prometheus, zmq};

/// A feed for each.
pub(super) fn feeds(from: Sources) -> Result<Vec<Feed>, Failure> {
    let Sources { nats: listen_to, zmq, logs, prometheus: scraped } = from;
    let namespace = listen_to.namespace.clone();
    let conflict = LogFile::conflict(&logs.logs).or_else(|| MetricsUrl::conflict(&scraped.prometheus));
    if let Some(conflict) = conflict {
        return Err(Failure::Usage(anyhow!(conflict)));
    }
    let mut feeds = Vec::new();
    if listen_to.nats.is_empty() && zmq.zmq_broker.is_empty() {
        tracing::warn!("without --nats no KV events are received: caches and their contents stay unknown");
    }
    if !listen_to.nats.is_empty() {
        let source = nats::Source::new(listen_to).map_err(|error| Failure::Usage(error.into()))?;
        let name = source.name().to_owned();
        feeds.push(Feed::new(name, SourceKind::Nats, |to, stopped| source.run(to, stopped)));
    }
    if !zmq.zmq_broker.is_empty() {
        let source = zmq::Source::new(zmq.zmq_broker, namespace);
        // A broker is listened to without being told to.
        let (_, commands) = mpsc::channel(1);
        feeds.push(Feed::new(source.name(), SourceKind::Zmq, move |to, stopped| {
            source.run(to, commands, stopped)
        }));
    }
    let sources = prometheus::Source::all(scraped).map_err(|error| Failure::Usage(error.into()))?;
    feeds.extend(sources.into_iter().map(|source| {
        Feed::new(source.name().to_owned(), SourceKind::Prometheus, |to, stopped| source.run(to, stopped))
    }));
    feeds.extend(logs.logs.into_iter().map(|log| {
        let source = logs::Source::new(log);
        Feed::new(source.name().to_owned(), SourceKind::Logs, |to, stopped| source.run(to, stopped))
    }));
    Ok(feeds)
}
