//! `radixscope serve`: a Dynamo deployment over NATS, and what its logs add.

use anyhow::anyhow;

use radixscope_core::record::SourceKind;

use super::server::Feed;
use super::{Failure, server};
use crate::config::{LogFile, Serve};
use crate::shutdown::Shutdown;
use crate::source::{logs, nats};

/// Runs until asked to stop.
pub(super) async fn run(options: Serve, stopped: Shutdown) -> Result<(), Failure> {
    let Serve { nats: listen_to, logs, http, limits, .. } = options;
    if let Some(conflict) = LogFile::conflict(&logs.logs) {
        return Err(Failure::Usage(anyhow!(conflict)));
    }
    let source = nats::Source::new(listen_to).map_err(|error| Failure::Usage(error.into()))?;
    let name = source.name().to_owned();
    let mut feeds = vec![Feed::new(name, SourceKind::Nats, |to, stopped| source.run(to, stopped))];
    feeds.extend(logs.logs.into_iter().map(|log| {
        let source = logs::Source::new(log);
        Feed::new(source.name().to_owned(), SourceKind::Logs, |to, stopped| source.run(to, stopped))
    }));
    server::run(http, &limits, feeds, stopped).await
}
