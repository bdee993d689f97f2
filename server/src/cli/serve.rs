//! `radixscope serve`: a Dynamo deployment over NATS, and what its logs and metrics add.

use anyhow::anyhow;

use radixscope_core::record::SourceKind;

use super::server::Feed;
use super::{Failure, server};
use crate::config::{LogFile, MetricsUrl, Serve};
use crate::shutdown::Shutdown;
use crate::source::{logs, nats, prometheus};

/// Runs until asked to stop.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { nats: listen_to, logs, prometheus: scraped, http, limits, .. } = options;
    let conflict = LogFile::conflict(&logs.logs).or_else(|| MetricsUrl::conflict(&scraped.prometheus));
    if let Some(conflict) = conflict {
        return Err(Failure::Usage(anyhow!(conflict)));
    }
    let mut feeds = Vec::new();
    if listen_to.nats.is_empty() {
        tracing::warn!("without --nats no KV events are heard: caches and their contents stay unknown");
    } else {
        let source = nats::Source::new(listen_to).map_err(|error| Failure::Usage(error.into()))?;
        let name = source.name().to_owned();
        feeds.push(Feed::new(name, SourceKind::Nats, |to, stopped| source.run(to, stopped)));
    }
    let sources = prometheus::Source::all(scraped).map_err(|error| Failure::Usage(error.into()))?;
    feeds.extend(sources.into_iter().map(|source| {
        Feed::new(source.name().to_owned(), SourceKind::Prometheus, |to, stopped| source.run(to, stopped))
    }));
    feeds.extend(logs.logs.into_iter().map(|log| {
        let source = logs::Source::new(log);
        Feed::new(source.name().to_owned(), SourceKind::Logs, |to, stopped| source.run(to, stopped))
    }));
    server::run(http, &limits, feeds, stopped).await
}
