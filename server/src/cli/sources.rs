//! The sources that the command line names, for `serve` and `check` alike.

use anyhow::anyhow;

use radixscope_core::record::SourceKind;

use super::Failure;
use super::server::Feed;
use crate::config::{LogFile, Sources};
use crate::source::{logs, nats};

/// A feed for each.
pub(super) fn feeds(from: Sources) -> Result<Vec<Feed>, Failure> {
    let Sources { nats: listen_to, logs } = from;
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
    Ok(feeds)
}
